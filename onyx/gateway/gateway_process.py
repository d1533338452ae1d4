"""The gateway as a process: its parts together, from start to stop.

``onyx gateway`` runs it in the foreground.  ``onyx up`` starts it as a child, which is kept alive
as a node's process is: ``python -m onyx.gateway.gateway_process ...``, not for people.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import trio

from onyx.background import background_tasks
from onyx.errors import EXIT_CONFIG, EXIT_OK, UserError
from onyx.gateway.app import application
from onyx.gateway.call import Gateway
from onyx.gateway.map_feed import MapFeed
from onyx.gateway.options import GatewayOptions
from onyx.gateway.serving import serve
from onyx.gateway.sessions import Sessions
from onyx.gateway.traffic import Traffic
from onyx.gateway.trials import Trials
from onyx.identity.known_networks import use_credentials
from onyx.logs import configure_logging, use_logs
from onyx.registration_client import RegistrationClient
from onyx.release import who
from overlay.link.open_files import allow_all_files
from overlay.log_options import LogOptions
from overlay.nodes import Address
from overlay.topology import TopologyError, load_topology

WATCH_SECONDS = 5.0

log = logging.getLogger("onyx.gateway")


async def run_gateway(
    registration: str,
    options: GatewayOptions,
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
    lifeline: int | None = None,
    read_logs: Callable[[], LogOptions | None] = LogOptions,
    admin: Address | None = None,
) -> None:
    """Until a signal, or the end of the lifeline, stops it; ``listener`` listens.  ``admin``: where
    it says how it is, if anywhere.

    At SIGHUP it logs as ``read_logs`` says, which may raise TopologyError, or stops where that says
    None.  NetworkUnreachable, NotAuthenticated before it is ``ready``."""
    allow_all_files()
    trials = Trials()
    try:
        async with background_tasks() as nursery:
            stop = nursery.cancel_scope
            if lifeline is not None:
                nursery.start_soon(_stop_at_end, lifeline, stop)
            nursery.start_soon(_stop_at_signal, stop)
            nursery.start_soon(_take_logs, read_logs, stop)
            sessions = Sessions(registration, options.sessions_max)
            feed = MapFeed(registration)
            await nursery.start(sessions.run)
            async with sessions.session(""):
                pass  # the network is there, and lets this gateway in
            await nursery.start(feed.run)
            traffic = Traffic()
            if admin is not None:
                _open_admin(nursery, admin, traffic, sessions)
                nursery.start_soon(_watch, registration, traffic)
            log.info("starts", extra=who())
            app = application(Gateway(options, sessions, trials, feed, traffic))
            await nursery.start(serve, app, options, listener)
            ready()
            await trio.sleep_forever()
    finally:
        trials.close()


def _open_admin(
    nursery: trio.Nursery, wanted: Address, traffic: Traffic, sessions: Sessions
) -> None:
    # What a gateway without an admin address need not load.
    from onyx.gateway.gateway_metrics import GatewayMetrics  # noqa: PLC0415
    from onyx.telemetry.admin_server import open_admin  # noqa: PLC0415

    metrics = GatewayMetrics(traffic, lambda: sessions.count)
    at = open_admin(nursery, wanted, metrics, lambda: traffic.hindrance)
    log.info("metrics at http://%s/metrics", at)


async def _watch(registration: str, traffic: Traffic) -> None:
    """Whether the network answers."""
    async with RegistrationClient(registration) as client:
        while True:
            with trio.move_on_after(WATCH_SECONDS) as patience:
                try:
                    await client.call("access.whoami")
                    traffic.hindrance = ""
                except UserError as error:
                    traffic.hindrance = str(error)
            if patience.cancelled_caught:
                traffic.hindrance = "the registration service does not answer"
            await trio.sleep(WATCH_SECONDS)


async def _stop_at_signal(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


async def _take_logs(read: Callable[[], LogOptions | None], stop: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async for _ in signals:
            try:
                options = read()
            except TopologyError as error:
                log.error("nothing is changed: %s", error)
                continue
            if options is None:
                stop.cancel()
                return
            use_logs(options)
            log.info("logs %s from level %s on", options.format, options.level)


def _logs(file: Path | None) -> LogOptions:
    return LogOptions() if file is None else load_topology(file).log


def admin_address(file: Path | None, listen: Address) -> Address | None:
    """Of the gateway that listens there, if the topology file says that there are such."""
    options = None if file is None else load_topology(file).admin
    return None if options is None else options.address(listen)


async def _stop_at_end(lifeline: int, scope: trio.CancelScope) -> None:
    """The launcher holds the other end and never writes."""
    async with trio.lowlevel.FdStream(lifeline) as stream:
        while await stream.receive_some(1):
            pass
        scope.cancel()


def main(argv: Sequence[str] | None = None) -> int:
    """The child that ``onyx up`` starts."""
    parser = argparse.ArgumentParser(prog="python -m onyx.gateway.gateway_process")
    parser.add_argument("registration")
    parser.add_argument("host")
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--name", action="append", default=[])
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--ready-fd", type=int, required=True)
    parser.add_argument("--lifeline-fd", type=int, required=True)
    parser.add_argument("--credentials", type=Path)
    parser.add_argument("--topology-file", type=Path)
    said = parser.parse_args(argv)
    read_logs = partial(_logs, said.topology_file)
    listener = socket.socket(fileno=said.listen_fd)
    listen = Address(said.host, listener.getsockname()[1])
    try:
        configure_logging("gateway", read_logs())
        admin = admin_address(said.topology_file, listen)
    except TopologyError as error:
        print(f"onyx: gateway: {error}", file=sys.stderr)
        return EXIT_CONFIG
    options = GatewayOptions(listen, said.certificate, said.key, tuple(said.name))

    def ready() -> None:
        os.write(said.ready_fd, b"ready\n")
        os.close(said.ready_fd)

    try:
        with use_credentials(said.credentials):
            trio.run(
                run_gateway,
                *(said.registration, options, listener, ready, said.lifeline_fd),
                *(read_logs, admin),
            )
    except UserError as error:
        print(f"onyx: gateway: {error}", file=sys.stderr)
        return error.exit_code
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
