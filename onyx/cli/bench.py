"""``onyx bench``: how fast a network is, and whether it was faster."""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

import msgspec
import trio

from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import print_json, read_text, say, table
from onyx.cli.verb import Subparsers, add_verb
from onyx.clients import User
from onyx.data_directory import write_atomically
from onyx.data_source import DataSource
from onyx.errors import EXIT_OK, UnreadableInput
from onyx.registration_client import RegistrationClient
from onyx.release import version
from onyx.results import Results

# -------------------------------------------------------------------------------------------------
# Bench: how fast a network is just now, as its sources and users see it.
#
# Everything is its own: a source, whose messages have a root element of this run's name, and
# profiles that ask for that, of one user.  At the end, however it comes, all of them are removed.
#
# ``publish``   until the root broker has accepted a message, one after the other
# ``deliver``   from there to the one profile that wants it, in the hands of its user
# ``stream``    the same with many messages under way at once
# ``fan_out``   until the last of many profiles has a message
# ``churn``     until a new profile is live at every broker


CLEAN_SECONDS = 10.0
PERCENTILES = (50.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done: so many ``messages`` of about so many ``bytes``, ``profiles`` for one
    message, ``changes`` of profiles."""

    messages: int = 500
    bytes: int = 1024
    profiles: int = 100
    changes: int = 50


@dataclass(frozen=True, slots=True)
class Measure:
    """``name``; how many, their percentiles in milliseconds, and how many a second."""

    name: str
    count: int
    p50_ms: float
    p99_ms: float
    p99_9_ms: float
    per_s: float

    @classmethod
    def of(cls, name: str, seconds: Sequence[float], took: float) -> Measure:
        """``seconds`` of each; all ``took`` so many."""
        p50, p99, p99_9 = (round(percentile(seconds, each) * 1e3, 3) for each in PERCENTILES)
        return cls(name, len(seconds), p50, p99, p99_9, round(len(seconds) / took, 1))


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that so many percent do not exceed."""
    return sorted(samples)[ceil(len(samples) * percent / 100) - 1]


async def run_bench(registration: str, sizes: Sizes) -> list[Measure]:
    """All measures, in the order of the module's text."""
    run = f"bench-{uuid.uuid4().hex[:12]}"
    source = await DataSource.register(registration, name=run, key=run)
    try:
        async with source, User(registration, run) as user:
            try:
                return await _Bench(source, user, run, sizes).run()
            finally:
                # One may have been added whose id has not come.
                with trio.move_on_after(CLEAN_SECONDS, shield=True):
                    for profile in await user.profiles():
                        await user.remove_profile(profile.id)
    finally:
        with trio.move_on_after(CLEAN_SECONDS, shield=True):
            async with RegistrationClient(registration) as client:
                await client.remove_source(source.id)


class _Bench:
    def __init__(self, source: DataSource, user: User, run: str, sizes: Sizes) -> None:
        self._source = source
        self._user = user
        self._sizes = sizes
        self._added: list[str] = []  # profiles that are there
        self._name = run
        filling = "x" * max(0, sizes.bytes - len(f"<{run}><n>1</n><f></f></{run}>"))
        self._message = f"<{run}><n>1</n><f>{filling}</f></{run}>".encode()

    async def run(self) -> list[Measure]:
        found = [await self._publish()]
        results = await self._results(1)
        found.append(await self._deliver("deliver", results, 1, self._sizes.messages))
        found.append(await self._stream(results))
        await self._remove_all()
        many = self._sizes.profiles
        results = await self._results(many)
        few = max(1, self._sizes.messages // 10)
        found.append(await self._deliver("fan_out", results, many, few))
        await self._remove_all()
        found.append(await self._churn())
        return found

    async def _publish(self) -> Measure:
        times, began = [], trio.current_time()
        for _ in range(self._sizes.messages):
            times.append(await self._publish_one())
        return Measure.of("publish", times, trio.current_time() - began)

    async def _publish_one(self) -> float:
        began = trio.current_time()
        await self._source.publish(self._message)
        return trio.current_time() - began

    async def _results(self, profiles: int) -> Results:
        """Of so many new profiles, which all want every message, each another result of it."""
        for number in range(profiles):
            await self._add(f"<r{number}>{{ //{self._name}/n/text() }}</r{number}>")
        results = self._user.results(*self._added)
        await results.connect()
        return results

    async def _deliver(self, name: str, results: Results, profiles: int, messages: int) -> Measure:
        """Each message until the last of so many profiles has it."""
        times, began = [], trio.current_time()
        for _ in range(messages):
            sent = trio.current_time()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._publish_one)
                for _ in range(profiles):
                    await anext(results)
                times.append(trio.current_time() - sent)
        return Measure.of(name, times, trio.current_time() - began)

    async def _stream(self, results: Results) -> Measure:
        """From when each is given to the source."""
        sent: list[float] = []
        times: list[float] = []
        began = trio.current_time()

        async def messages() -> AsyncIterator[bytes]:
            for _ in range(self._sizes.messages):
                sent.append(trio.current_time())
                yield self._message

        async def publish() -> None:
            async with aclosing(self._source.publish_all(messages())) as outcomes:
                async for _ in outcomes:
                    pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish)
            for number in range(self._sizes.messages):
                await anext(results)
                times.append(trio.current_time() - sent[number])
        return Measure.of("stream", times, trio.current_time() - began)

    async def _remove_all(self) -> None:
        while self._added:
            await self._user.remove_profile(self._added[-1])
            self._added.pop()

    async def _churn(self) -> Measure:
        times, began = [], trio.current_time()
        for number in range(self._sizes.changes):
            before = trio.current_time()
            await self._add(f"//{self._name}[n = {number + 2}]")
            times.append(trio.current_time() - before)
            await self._remove_all()
        return Measure.of("churn", times, trio.current_time() - began)

    async def _add(self, text: str) -> None:
        self._added.append((await self._user.add_profile(text)).id)


# --- against a baseline -------------------------------------------------------------------


def regressions(
    found: Sequence[Measure], baseline: Mapping[str, Mapping[str, float]], tolerance: float
) -> list[str]:
    """What is slower than it was by more than a share ``tolerance``: a sentence each."""
    slower = []
    for measure in found:
        before = baseline.get(measure.name, {})
        for key in ("p50_ms", "p99_ms"):
            was, now = before.get(key), getattr(measure, key)
            if was is not None and now > was * (1 + tolerance):
                said = f"{measure.name}: {key.removesuffix('_ms')} {now:g} ms, was {was:g} ms"
                slower.append(said)
    return slower


class Baseline(msgspec.Struct):
    """What ``--save`` writes."""

    measures: dict[str, dict[str, float]]


def read_baseline(text: str, name: str) -> dict[str, dict[str, float]]:
    """UnreadableInput."""
    try:
        return msgspec.json.decode(text, type=Baseline).measures
    except msgspec.DecodeError as error:
        expected = "expected what onyx bench --save wrote"
        raise UnreadableInput(f"{name} is no baseline, {expected}: {error}") from None


EXIT_SLOWER = 1
HEADING = ("MEASURE", "COUNT", "P50 MS", "P99 MS", "P99.9 MS", "PER S")

DETAILS = """\
Publishes messages of its own to a source of its own, and takes them by profiles of its own:
until a message is accepted (publish), is delivered to one profile (deliver) and to many
(fan_out), many messages under way at once (stream), and until a new profile is live at
every broker (churn). Nobody else's profile is asked for but those that want everything.
Source and profiles are removed at the end, and when it is interrupted.

--save FILE writes what was measured; --baseline FILE compares with it.

Exit code 1: something is slower than in the baseline by more than --tolerance."""

EXAMPLES = """\
  onyx bench --topology topologies/figure4.toml
  onyx bench --save before.json
  onyx bench --baseline before.json --tolerance 0.3
"""


def add_parser(subparsers: Subparsers) -> None:
    usual = Sizes()
    takes = {
        f"--{name} N = {getattr(usual, name)}": f"{what} (default: {getattr(usual, name)})"
        for name, what in (
            ("messages", "for each measure"),
            ("bytes", "of a message, about"),
            ("profiles", "that get the same message in fan_out"),
            ("changes", "profiles that are added and removed"),
        )
    } | {
        "--save FILE": "write a baseline",
        "--baseline FILE": "compare with this one",
        "--tolerance SHARE = 0.5": "how much slower is as fast (default: 0.5, as networks are "
        "noisy)",
    }
    parser = add_verb(
        subparsers,
        "bench",
        "",
        run,
        takes,
        details=DETAILS,
        examples=EXAMPLES,
        kinds={"baseline": str},
    )
    add_client_arguments(parser)


async def run(arguments: argparse.Namespace) -> int:
    baseline = None
    if arguments.baseline is not None:
        baseline = read_baseline(read_text(arguments.baseline), arguments.baseline)
    sizes = Sizes(arguments.messages, arguments.bytes, arguments.profiles, arguments.changes)
    found = await run_bench(registration_address(arguments), sizes)
    if arguments.json:
        for measure in found:
            print_json(asdict(measure))
    else:
        print(table(HEADING, [tuple(asdict(measure).values()) for measure in found]))
    if arguments.save is not None:
        save(arguments.save, found, sizes)
    slower = [] if baseline is None else regressions(found, baseline, arguments.tolerance)
    for line in slower:
        say(f"slower: {line}")
    return EXIT_SLOWER if slower else EXIT_OK


def save(path: Path, found: Sequence[Measure], sizes: Sizes) -> None:
    """UnwritableOutput."""
    measures = {
        measure.name: {k: v for k, v in asdict(measure).items() if k != "name"} for measure in found
    }
    said = {"release": version(), "sizes": asdict(sizes), "measures": measures}
    write_atomically(path, (json.dumps(said, indent=1) + "\n").encode())
