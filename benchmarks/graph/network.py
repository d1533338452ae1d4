"""From bytes published to results taken, by real processes, over a loop of pyoxigraph.

A source publishes Turtle at one broker and a user takes the results of all profiles.  The loop
does in its one process what that is for: it parses each message into a store and asks it every
profile as an ASK query.  What is delivered of the loop's messages has to be what it answers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pyoxigraph
import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.catalogue import EXAMPLE, PREFIXES, Catalogue, Zipf, written
from benchmarks.network.onyx_network import onyx_network, publisher, register
from benchmarks.report import Report
from onyx import DataSource, User

PROFILES = 1_000
_LOOPED = 8  # messages that the loop answers
_WARMUP = 50  # messages ahead of those that are timed
_AT_ONCE = 16
_TURTLE = "text/turtle"


def measure_network(report: Report, options: argparse.Namespace) -> None:
    """Adds ``network_us`` and ``loop_us`` a message, and ``network_over_loop``: how many times as
    long the loop takes."""
    catalogue, random = Catalogue(options.seed), Random(f"profiles {options.seed}")
    profiles = list(dict.fromkeys(_patterns(random)))
    count = max(options.messages, _LOOPED)
    messages = [
        written(catalogue.message(number), pyoxigraph.RdfFormat.TURTLE)
        for number in range(_WARMUP + count)
    ]
    with tempfile.TemporaryDirectory(prefix="onyx-graph-") as directory:
        seconds, got = trio.run(_play, Path(directory) / "network", profiles, messages)
    looped = messages[_WARMUP : _WARMUP + _LOOPED]
    start = time.perf_counter()
    answers = [_loop(data, profiles) for data in looped]
    loop = (time.perf_counter() - start) / len(looped)
    for number, answer in enumerate(answers, start=_WARMUP + 1):
        delivered = {profile for profile, message in got if message == number}
        if delivered != answer:
            wrong = sorted(delivered ^ answer)
            raise WrongAnswers(f"message {number}: {profiles[wrong[0]]} is wrong of {len(wrong)}")
    timed = sum(message > _WARMUP for _, message in got)
    report.figure("network_profiles", "profiles of the network and the loop", len(profiles))
    report.figure("network_deliveries", "deliveries of a message", timed / count)
    report.figure("loop_us", "pyoxigraph parses and asks all profiles", 1e6 * loop, "us")
    report.figure("network_us", "published to taken", 1e6 * seconds / count, "us", "loop_us")
    report.figure("network_over_loop", "the loop / the network", loop * count / seconds)
    report.remark("the network's is elapsed time of all its processes, the loop's of its one")


def _patterns(random: Random) -> Iterator[str]:
    """A class and a number in a range; a name; two descriptions that are linked."""
    prologue = "".join(f"PREFIX {name}: <{iri}> " for name, iri in PREFIXES.items())
    classes, words, properties = Zipf(800, 0.6), Zipf(30_000, 0.9), Zipf(60, 0.8)
    for number in range(PROFILES):
        kind = f"<{EXAMPLE}class/C{classes.choose(random)}>"
        place = properties.choose(random)
        if number % 3 == 0:
            where = f"?s a {kind} ; p:num{place} ?n . FILTER(?n < {random.randint(0, 9999)})"
        elif number % 3 == 1:
            where = f'?s p:name{place} "w{words.choose(random)}"'
        else:
            where = f"?s p:rel{place} ?o . ?o a {kind}"
        yield f"{prologue}SELECT * WHERE {{ {where} }}"


async def _play(
    directory: Path, profiles: Sequence[str], messages: Sequence[bytes]
) -> tuple[float, list[tuple[int, int]]]:
    """(seconds, the deliveries: place of the profile, number of the message)."""
    got: list[tuple[int, int]] = []
    async with onyx_network(directory) as network, publisher(network) as source:
        places = {
            profile: place
            for place, profile in enumerate(await register(network, profiles, _AT_ONCE))
        }
        last = await _sentinel(network.registration, places, len(profiles))
        async with User(network.registration, "benchmark") as user:
            results = user.results(*places)
            await results.connect()
            seconds = 0.0
            for some in (messages[:_WARMUP], messages[_WARMUP:]):
                start = time.perf_counter()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_publish, source, [*some, last])
                    async for delivery in results:
                        if places[delivery.profile] == len(profiles):
                            break
                        got.append((places[delivery.profile], delivery.number))
                results.acknowledge_nowait()
                seconds = time.perf_counter() - start
    # The sentinel behind the warm-up has a number, too.
    return seconds, [(place, n - (n > _WARMUP)) for place, n in got]


async def _sentinel(registration: str, places: dict[str, int], place: int) -> bytes:
    """A message behind all others, and a profile that it alone matches."""
    async with User(registration, "benchmark") as user:
        info = await user.add_profile("ASK { <urn:last> <urn:is> <urn:here> }")
    places[info.id] = place
    return b"<urn:last> <urn:is> <urn:here> ."


async def _publish(source: DataSource, messages: Sequence[bytes]) -> None:
    async for outcome in source.publish_all([(data, _TURTLE) for data in messages]):
        if not outcome.accepted:
            raise WrongAnswers(f"message {outcome.number} was refused: {outcome.reason}")


def _loop(data: bytes, profiles: Sequence[str]) -> set[int]:
    """The places of the profiles that a message has solutions of."""
    store = pyoxigraph.Store()
    store.load(data, pyoxigraph.RdfFormat.TURTLE)
    return {place for place, text in enumerate(profiles) if store.query(_asking(text))}


def _asking(text: str) -> str:
    return text.replace("SELECT * WHERE", "ASK", 1)
