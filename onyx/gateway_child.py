"""A gateway beside a network that runs, as a process that is kept alive; what ``onyx up`` starts.

Nothing of the gateway itself is loaded here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import trio

from onyx.background import background_tasks
from onyx.child_process import ChildProcess, RestartPolicy
from onyx.errors import UsageError
from onyx.identity.known_networks import is_loopback
from onyx.listening import bind, bound_address
from onyx.release import lacks
from overlay.gateway import GatewayTable
from overlay.nodes import Address
from overlay.topology import TopologyError

NAME = "gateway"
START_SECONDS = 60.0


def gateway_lacks() -> str:
    """What a gateway takes and is not installed, "" where all is."""
    return lacks("gateway", starlette="starlette", hypercorn="hypercorn")


def check_gateway(gateway: GatewayTable, file: str) -> None:
    """TopologyError or UsageError where a gateway cannot run, or would be open to strangers."""
    if why := gateway_lacks():
        raise UsageError(f"a gateway {why}")
    if gateway.tls_certificate is None and not is_loopback(gateway.listen.host):
        reason = f'"{gateway.listen}" is not of this machine alone: expected tls_certificate'
        raise TopologyError(file, "gateway.listen", reason)


@asynccontextmanager
async def running_gateway(
    registration: str,
    gateway: GatewayTable,
    credentials: Path | None,
    *,
    file: str = "",
    report: Callable[[str, ChildProcess], None] = lambda event, child: None,
    write_line: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
    topology_file: Path | None = None,
    keep: Callable[[ChildProcess], None] = lambda child: None,
) -> AsyncIterator[str]:
    """The address of its page, as a URL, once it is there; it ends with the block.

    ``credentials`` is the file of whom it is to the network (None: as this account is known); of
    ``topology_file`` it takes how it logs, and again at SIGHUP; ``keep`` is given its
    process.
    TopologyError when the address cannot be had, LaunchError when it does not come up.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(bind(gateway.listen, file, "gateway.listen"))
        lifeline, own_end = os.pipe()
        stack.callback(os.close, lifeline)
        stack.callback(os.close, own_end)
        child = _GatewayProcess(
            *(registration, gateway, listener.fileno(), lifeline, credentials),
            *(report, write_line, topology_file),
        )
        async with background_tasks(trio.open_nursery()) as nursery:
            nursery.start_soon(child.run)
            with trio.fail_after(START_SECONDS):
                await child.wait_ready()
            child.is_kept = True
            keep(child)
            scheme = "http" if gateway.tls_certificate is None else "https"
            yield f"{scheme}://{Address(*bound_address(listener, gateway.listen))}/"


class _GatewayProcess(ChildProcess):
    def __init__(
        self,
        registration: str,
        gateway: GatewayTable,
        listen_fd: int,
        lifeline: int,
        credentials: Path | None,
        report: Callable[[str, ChildProcess], None],
        write_line: Callable[[str], None],
        topology_file: Path | None,
    ) -> None:
        file, fds = topology_file or Path(), (listen_fd,)
        policy = RestartPolicy()
        super().__init__(NAME, file, fds, lifeline, credentials, policy, report, write_line)
        self._registration, self._gateway = registration, gateway
        self._of_file = topology_file

    def _command(self, ready_fd: int) -> list[str]:
        gateway = self._gateway
        options = {
            "--certificate": gateway.tls_certificate,
            "--key": gateway.tls_key,
            "--listen-fd": self._listen_fds[0],
            "--ready-fd": ready_fd,
            "--lifeline-fd": self._lifeline_fd,
            "--credentials": self._credentials,
            "--topology-file": self._of_file,
        }
        said = [word for name, value in options.items() if value is not None
                for word in (name, str(value))]  # fmt: skip
        names = [word for name in gateway.names for word in ("--name", name)]
        module = [sys.executable, "-P", "-m", "onyx.gateway.gateway_process"]
        return [*module, self._registration, gateway.listen.host, *said, *names]
