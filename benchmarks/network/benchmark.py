"""``python -m benchmarks network``: what a user of a broker gets, by real processes.

A network of one broker is started as ``onyx up`` starts it; messages are published as any source
publishes, and their results taken as any user takes them.  Every delivery is checked: which
messages, in which order, and every byte of them.  Scenarios:

===========  =====================================================================================
one          one publisher, one subscriber of everything, small messages; beside ``--peers``
fan          one publisher, 100 subscribers of everything, small messages; beside ``--peers``
wide         300 users with a connection each, messages of 10 KB; beside plain asyncio, with TLS
clients      small messages that wait, taken one at a time by ``onyx``, ``.aio`` and ``.blocking``
paths        path profiles of which 16 % match, beside a service made with lxml; the broker killed
             among its deliveries
away         messages that all want, published while the users are away, who come later
away-paths   many path profiles whose users are away; the broker killed before they come
large        messages of 20,000 quotes for 1,000 FLWOR profiles
registering  many profiles registered; the broker killed and started again with them
===========  =====================================================================================

What is measured so far is told after each scenario with ``--json``, as a line of its own, of which
the last one has all; and when the run is interrupted (SIGINT, SIGTERM), which ends all processes
that were started.

In all of them but the last the broker is pinged while it is at work, beside what is timed where
that takes processor time from it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import trio

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, count, positive
from benchmarks.network.away import measure_away
from benchmarks.network.away_paths import measure_away_paths
from benchmarks.network.clients import measure_clients
from benchmarks.network.fan import measure_fan
from benchmarks.network.large import measure_large
from benchmarks.network.one import measure_one
from benchmarks.network.paths import measure_paths
from benchmarks.network.peers import PEERS, measure_peers
from benchmarks.network.pings import NetworkReport
from benchmarks.network.processor import allow_many_files
from benchmarks.network.registering import measure_registering
from benchmarks.network.sizes import QUICK, Sizes
from benchmarks.network.wide import measure_wide
from formats.kernel import build_info
from onyx import UserError
from onyx.background import background_tasks
from overlay.link.lone_error import lone_error

_OTHER_FILES = 256  # that a process has open besides its connections

Scenario: TypeAlias = Callable[[Sizes, Path, NetworkReport], Awaitable[None]]

SCENARIOS: Mapping[str, Scenario] = {
    "one": measure_one,
    "fan": measure_fan,
    "wide": measure_wide,
    "clients": measure_clients,
    "paths": measure_paths,
    "away": measure_away,
    "away-paths": measure_away_paths,
    "large": measure_large,
    "registering": measure_registering,
}
_SIZES = (
    ("--users", "to share the profiles out to, each with a connection (default: 1,000)"),
    ("--one-messages", "of one (default: 10,000)"),
    ("--latency-rounds", "messages of one, one at a time (default: 500)"),
    ("--fan-profiles", "of fan (default: 100)"),
    ("--fan-messages", "of fan (default: 500)"),
    ("--wide-users", "of wide (default: 300)"),
    ("--wide-messages", "of wide (default: 60)"),
    ("--idle-users", "of wide, to whom nothing happens (default: 1,000)"),
    ("--client-messages", "of clients (default: 4,000)"),
    ("--path-messages", "of paths (default: 200)"),
    ("--crash-messages", "of paths, while the broker is killed (default: 60)"),
    ("--message-bytes", "of paths and away (default: 10,000)"),
    ("--away-profiles", "of away (default: 1,000)"),
    ("--away-messages", "of away (default: 100)"),
    ("--waiting-profiles", "of away-paths (default: 6,103)"),
    ("--waiting-messages", "of away-paths (default: 500)"),
    ("--large-profiles", "of large (default: 1,000)"),
    ("--large-quotes", "in a message of large (default: 20,000)"),
    ("--large-messages", "of large (default: 3)"),
    ("--registered", "profiles of registering, one by one (default: 20,000)"),
    ("--registered-in-bulk", "of registering, before them (default: 80,000)"),
    ("--seconds", "to wait for anything (default: 600)"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--scenario", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS), help="which"
    )
    parser.add_argument(
        "--peers",
        metavar="NAMES",
        type=_peers,
        default=(),
        help=f"other brokers, where they are installed: some of {','.join(PEERS)}",
    )
    parser.add_argument(
        "--path-profiles",
        metavar="N",
        type=positive,
        nargs="+",
        help="of paths, one run each (default: 1,000 and 10,000)",
    )
    for name, text in _SIZES:
        parser.add_argument(name, metavar="N", type=positive, help=text)
    parser.add_argument(
        "--yfilter",
        metavar="DIR",
        type=Path,
        help="messages and profiles-path.txt.gz of YFilter's release, for away-paths "
        "(default: generated ones)",
    )
    parser.add_argument("--seed", metavar="N", type=count, help="of what is generated (default: 1)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to see that it runs")


def run(options: argparse.Namespace) -> NetworkReport:
    """Measures as the options say; raises WrongAnswers where a delivery is wrong."""
    report = NetworkReport()
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    sizes = _sizes(options)
    allow_many_files(max(sizes.path_profiles) + _OTHER_FILES if "paths" in options.scenario else 0)
    unfinished = trio.run(_run, options, sizes, report)
    if not unfinished:
        report.summary()
        return report
    so_far = report.so_far()
    print(json.dumps(so_far.to_json()) if options.json else so_far.to_text(), flush=True)
    raise BenchmarkError(f"interrupted in {unfinished}; this is what was measured before")


async def _run(options: argparse.Namespace, sizes: Sizes, report: NetworkReport) -> str:
    """The name of what was interrupted by a signal; "" where nothing was."""
    progress = _Progress(options.json, report)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with background_tasks(trio.open_nursery()) as nursery:

            async def end_at_signal() -> None:
                async for _ in signals:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(end_at_signal)
            with tempfile.TemporaryDirectory(prefix="onyx-network-") as directory:
                for name in options.scenario:
                    with progress.of(name):
                        await SCENARIOS[name](sizes, Path(directory) / name, report)
                for name in options.peers:
                    with progress.of(name):
                        here = Path(directory) / name
                        await measure_peers(name, options.scenario, sizes, here, report)
    return progress.unfinished


class _Progress:
    """What is ``unfinished``, and, as JSON, what was measured before."""

    def __init__(self, as_json: bool, report: NetworkReport) -> None:
        self.unfinished = ""
        self._as_json = as_json
        self._report = report

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        self.unfinished = name
        with _told(name):
            yield
        self.unfinished = ""
        if self._as_json:
            print(json.dumps(self._report.so_far().to_json()), flush=True)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What goes wrong meanwhile as an error of a benchmark."""
    if sys.stderr.isatty():
        print(f"network: {name} ...", file=sys.stderr)
    try:
        yield
    except (ExceptionGroup, UserError, ConnectionError) as raised:
        error = lone_error(raised)
        if isinstance(error, BenchmarkError):
            raise error from None
        if isinstance(error, UserError | ConnectionError):
            raise BenchmarkError(f"{name}: {error}") from error
        raise


def _peers(text: str) -> Sequence[str]:
    names = text.split(",")
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(PEERS)}")
    return names


def _sizes(options: argparse.Namespace) -> Sizes:
    names = [name.strip("-").replace("-", "_") for name, _ in _SIZES]
    given = {name: getattr(options, name) for name in (*names, "path_profiles", "seed", "yfilter")}
    base = QUICK if options.quick else Sizes()
    return replace(base, **{name: value for name, value in given.items() if value is not None})


NETWORK = Benchmark(
    name="network",
    summary="what a user of a broker gets, by real processes",
    add_options=add_options,
    quick=("--quick",),
    run=run,
)
