"""``onyx provider serve``: this machine as a cycle provider of queries (ObjectGlobe, 2.1)."""

from __future__ import annotations

import argparse
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from onyx.cli.network_option import registration_address
from onyx.cli.values import tell_of
from onyx.cli.verb import Takes
from onyx.errors import NotAuthenticated, UsageError
from onyx.identity.known_networks import is_loopback
from overlay.link.credentials import Credentials
from registration.queries.providers import CycleProvider, Market
from registration.queries.refusals import did_you_mean

TAKES: Takes = {
    "catalog FILE": "the provider's own catalog, whose rules it keeps",
    "name NAME": "which cycle provider of the catalog it is",
    "--credentials FILE": "of provider/NAME (onyx cert issue)",
    "--revoked FILE": "numbers of revoked certificates (identity/revoked of the network)",
    "--insecure": "without TLS and signatures, for this machine alone",
    "--allow-weak-sandbox": "run functions though this machine cannot enforce the whole sandbox",
}


def run_serve(arguments: argparse.Namespace) -> None:
    """Execute fragments of queries until it is interrupted."""
    from onyx.queries.catalog import Catalog  # noqa: PLC0415 - takes long to load
    from onyx.queries.functions import FunctionStore  # noqa: PLC0415
    from onyx.queries.identity import Identity  # noqa: PLC0415
    from onyx.queries.provider_process import (  # noqa: PLC0415
        CycleService,
        Peers,
        Serving,
        plug_in,
    )
    from onyx.queries.signatures import Gate  # noqa: PLC0415
    from registration.spark.fragment_job import STATIC_SETTINGS  # noqa: PLC0415
    from registration.spark.session import SparkOptions, spark_session  # noqa: PLC0415

    stop = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    market = Catalog.read(arguments.catalog).market
    site = _own(market, arguments)
    check, identity = None, Identity()
    if not arguments.insecure:
        if arguments.credentials is None:
            raise NotAuthenticated(
                f"{site.name} has no credentials: say --credentials FILE, of onyx cert issue "
                f"provider/{site.name}, or --insecure"
            )
        identity = Identity.of(arguments.credentials)
        if identity.signer is None or str(identity.signer.principal) != f"provider/{site.name}":
            raise NotAuthenticated(f"{arguments.credentials} is not of provider/{site.name}")
        check = identity.check(arguments.revoked)
        _keep_renewed(Credentials(arguments.credentials), arguments)
    settings = {"spark.driver.memory": f"{site.memory_megabytes:.0f}m", **STATIC_SETTINGS}
    options = SparkOptions(
        arguments.master or f"local[{SLOTS * site.cores}]", {**settings, **dict(arguments.conf)}
    )
    with (
        TemporaryDirectory(prefix="onyx-functions-") as folder,
        ExitStack() as stack,
        ThreadPoolExecutor(1) as pool,
    ):
        # Rows are passed on without Spark, and signatures checked, while it starts.
        started = pool.submit(lambda: stack.enter_context(spark_session(options)))
        started.add_done_callback(lambda done: stop.set() if done.exception() else None)
        service = CycleService(
            site,
            market,
            started.result,
            Gate(check),
            Peers(market, identity),
            plug_in(market, FunctionStore(Path(folder)), check, weak=arguments.allow_weak_sandbox),
            is_open=arguments.insecure,
        )
        file = None if arguments.insecure else arguments.credentials
        with Serving(service, site.host, site.port or 0, file) as server:
            where = f"{site.host}:{server.port}"
            tell_of(arguments, {"event": "ready", "at": where}, f"{site.name} is ready at {where}")
            while not stop.wait(LOOK_SECONDS):
                server.look_after()
        started.result()


LOOK_SECONDS = 1.0
"""Between two looks for new credentials."""
SLOTS = 4
"""Tasks at once a core: a task that waits for rows of elsewhere must leave room for others."""


def _keep_renewed(shown: Credentials, arguments: argparse.Namespace) -> None:
    """In a thread of its own, where the registration service is known."""
    # What a provider without one need not load.
    from onyx.renewal import keep_renewed  # noqa: PLC0415

    try:
        where = registration_address(arguments)
    except UsageError:
        return  # nobody says where: a file that somebody else renews is taken as well
    run = partial(trio.run, keep_renewed, shown, where)
    threading.Thread(target=run, name="renewal", daemon=True).start()


def _own(market: Market, arguments: argparse.Namespace) -> CycleProvider:
    sites = {each.name: each for each in market.cycle_providers.values()}
    site = sites.get(arguments.name)
    if site is None:
        hint = did_you_mean(arguments.name, sites)
        raise UsageError(f"{arguments.catalog} has no cycle provider {arguments.name}; {hint}")
    if site.port is None:
        raise UsageError(f"{site.name} has no port in {arguments.catalog}")
    if arguments.insecure and not is_loopback(site.host):
        raise UsageError(f"{site.host} is not of this machine alone, as --insecure wants it")
    return site
