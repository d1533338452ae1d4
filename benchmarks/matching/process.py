"""``python -m benchmarks.matching.process FOLDER``: measures the engine; see MatchJob.

A message counts as not seen before: all-in (parse, match, ids collected) is its first contact with
the engine; only then is it parsed alone, and by lxml.  Each of these goes over a block of messages
before the next does, so that none of them is timed in the wake of another, and blocks take turns,
so that a machine that slows down slows all of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import lxml.etree
import msgpack
from msgspec import structs

from benchmarks.machine import resident_bytes
from benchmarks.matching.job import JOB, MESSAGES, PROFILES, TIMINGS, MatchJob, Timings
from formats import ElementStream, WireFormat, decode, encode, parse_text
from formats.kernel import build_info
from yfilter import Matcher, MatchLimits, ProfileRefused, parse_profile

_CHUNK = 1_000  # profiles parsed, then installed, at a time: their texts are not held


def main(folder: Path) -> None:
    """Measures, and writes what it has measured into the folder."""
    job = MatchJob(**json.loads((folder / JOB).read_text(encoding="utf-8")))
    messages = msgpack.unpackb((folder / MESSAGES).read_bytes())
    run = _Run(job, folder / PROFILES)
    run.build()
    run.warm_up(messages["warm"])
    run.measure(messages["measured"])
    run.change(messages["changing"])
    (folder / TIMINGS).write_text(json.dumps(asdict(run.timings)), encoding="utf-8")


class _Run:
    """The engine under measurement.  The id of a registration is ``<profile>.<serial>``."""

    def __init__(self, job: MatchJob, profiles: Path) -> None:
        self._job = job
        self._profiles = profiles
        self._clock = job.clock()
        registered = job.subscribers or job.number
        limits: dict[str, Any] = {"profiles_max": registered + job.changes + 1}
        self._matcher = Matcher(MatchLimits(**limits | job.limits))
        self.timings = Timings(build=build_info(), registered=registered)

    def build(self) -> None:
        """Registers everything, a chunk at a time."""
        # What is needed once anyway must not be counted to the profiles.
        parse_profile("/a/b")
        lines = self._read(0, self._job.number) if self._job.subscribers else None
        registrations = enumerate(self._job.registrations())
        stream = self._lines()
        timings = self.timings
        timings.resident_before = resident_bytes()
        while chunk := list(islice(registrations, _CHUNK)):
            texts = [next(stream) if lines is None else lines[index] for _, index in chunk]
            start = self._clock()
            parsed = [parse_profile(text) for text in texts]
            between = self._clock()
            for (serial, index), profile in zip(chunk, parsed, strict=True):
                self._matcher.add(profile, f"{index}.{serial}")
            end = self._clock()
            timings.parse_profiles_us += (between - start) / 1000
            timings.install_us += (end - between) / 1000
        del parsed, texts, chunk
        timings.resident_built = resident_bytes()
        start = self._clock()
        self._matcher.prepare()
        timings.install_us += (self._clock() - start) / 1000

    def warm_up(self, messages: Sequence[bytes]) -> None:
        """So many messages, again from the first when there are no others."""
        for number in range(self._job.warmup if messages else 0):
            message = messages[number % len(messages)]
            start = self._clock()
            self._collect(message)
            if number < self._job.cold:
                self.timings.cold.append((self._clock() - start) / 1000)

    def measure(self, messages: Sequence[bytes]) -> None:
        """All-in, parse and lxml's parse of each message, all-in once more and from binary."""
        timings = self.timings
        for first in range(0, len(messages), self._job.block):
            block = messages[first : first + self._job.block]
            timings.matches.extend(self._time(self._collect, block, timings.all_in))
            self._time(_parse, block, timings.parse)
            self._time(_parse_with_lxml, block, timings.lxml_parse)
            self._time(self._collect, block, timings.again)
            encoded = [encode(parse_text(message), WireFormat.BINARY) for message in block]
            self._time(self._collect_binary, encoded, timings.binary)
        timings.message_bytes = [len(message) for message in messages]
        timings.resident_warm = resident_bytes()
        timings.statistics = structs.asdict(self._matcher.statistics())
        for message in messages[: self._job.checked]:
            found = {int(name.partition(".")[0]) for name in self._ids(message)}
            timings.checked.append(sorted(found))

    def change(self, messages: Sequence[bytes]) -> None:
        """Removes and adds profiles; a message after each pair while there are messages.

        Added are profiles the engine has not seen, or those removed when the file has no others.
        """
        job, timings = self._job, self.timings
        pairs = list(enumerate(job.registrations()))
        chosen = Random(f"changes {job.seed}").sample(pairs, min(job.changes, len(pairs)))
        del pairs
        removed = {index for _, index in chosen}
        texts = {i: text for i, text in enumerate(self._lines()) if i in removed}
        new = self._read(job.number, job.number + len(chosen))
        for turn, (serial, index) in enumerate(chosen):
            name = f"{index}.{serial}"
            fresh = turn < len(new)
            text = new[turn] if fresh else texts[index]
            start = self._clock()
            self._matcher.remove(name)
            taken = self._clock()
            profile = parse_profile(text)
            parsed = self._clock()
            self._matcher.add(profile, f"new.{turn}" if fresh else name)
            end = self._clock()
            timings.remove.append((taken - start) / 1000)
            timings.parse_added.append((parsed - taken) / 1000)
            timings.add.append((end - parsed) / 1000)
            if turn < len(messages):
                self._time(self._collect, messages[turn : turn + 1], timings.between_changes)

    def _time(
        self,
        function: Callable[[bytes], int],
        messages: Sequence[bytes],
        times: list[float],
    ) -> list[int]:
        """Calls the function on each message, appends the times, gives the results."""
        results = []
        for message in messages:
            start = self._clock()
            result = function(message)
            times.append((self._clock() - start) / 1000)
            results.append(result)
        return results

    def _ids(self, message: bytes | ElementStream) -> list[str]:
        """The ids of all profiles that the message matches; no routes are registered."""
        return self._matcher.matched_ids(message)

    def _collect(self, message: bytes) -> int:
        return len(self._matcher.matched_numbers(message))

    def _collect_binary(self, message: bytes) -> int:
        return len(self._matcher.matched_numbers(decode(message, WireFormat.BINARY)))

    def _lines(self) -> Iterator[str]:
        with self._profiles.open(encoding="utf-8") as file:
            for line in file:
                yield line.rstrip("\n")

    def _read(self, first: int, end: int) -> list[str]:
        return list(islice(self._lines(), first, end))


# What is parsed is dropped within the time, as it is in all-in: memory that is used again is warm.


def _parse(message: bytes) -> int:
    return len(parse_text(message))


def _parse_with_lxml(message: bytes) -> int:
    return len(lxml.etree.fromstring(message))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except ProfileRefused as error:
        reason, text = [*str(error).splitlines(), ""][:2]
        sys.exit(f"a profile was refused: {reason} {text.strip()}")
