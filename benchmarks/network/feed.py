"""Feed: messages that are published round and round, and the profiles that shall get them.

It is written to a file, from which the processes of the benchmark read it.  The n-th message that
a source publishes, from 1, is ``messages[(n - 1) % len(messages)]``.
"""

from __future__ import annotations

import gzip
import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

import lxml.etree

from benchmarks.benchmark import BenchmarkError
from benchmarks.network.sizes import Sizes
from benchmarks.workload import ProfileMaker, make_messages, make_schema

SMALL_BYTES = 60
_SMALL = 1_000  # different ones
_LOOKED_AT = 20  # messages by which profiles are chosen
_OFTEN = 0.3  # the share of messages that a profile matches to be chosen for matching often
EVERYTHING = "/*"


@dataclass(frozen=True)
class Feed:
    """Profiles, and messages.  ``answers``: the results of each profile for each message; () where
    each result is the whole message, for every profile that matches it."""

    messages: Sequence[bytes]
    profiles: Sequence[str]
    answers: Sequence[Sequence[Sequence[bytes]]] = ()

    def write(self, file: Path) -> str:
        """Puts it on disk; the name of the file."""
        messages = [message.decode() for message in self.messages]
        answers = [[[one.decode() for one in each] for each in of] for of in self.answers]
        values = {"messages": messages, "profiles": self.profiles, "answers": answers}
        file.write_text(json.dumps(values), encoding="utf-8")
        return str(file)

    @classmethod
    def read(cls, file: str) -> Feed:
        """What ``write`` has written."""
        values = json.loads(Path(file).read_text(encoding="utf-8"))
        answers = [[[one.encode() for one in each] for each in of] for of in values["answers"]]
        messages = [message.encode() for message in values["messages"]]
        return cls(messages, values["profiles"], answers or ())

    def published(self, number: int, after: int = 0) -> Iterator[bytes]:
        """So many messages, behind those that were published before."""
        for place in range(after, after + number):
            yield self.messages[place % len(self.messages)]

    def size(self, number: int) -> int:
        """Of the first so many."""
        return sum(map(len, self.published(number)))

    def results(self, profile: int, number: int) -> Sequence[bytes]:
        """Of the profile at a place for a message that it matches, by the message's number."""
        place = (number - 1) % len(self.messages)
        return self.answers[profile][place] if self.answers else [self.messages[place]]

    def expected(self, number: int) -> list[list[int]]:
        """For each profile the numbers of the first so many messages that match it."""
        length = len(self.messages)
        found = []
        for places in self._matching:
            rounds = range(0, number, length)
            numbers = chain.from_iterable((at + place + 1 for place in places) for at in rounds)
            found.append([one for one in numbers if one <= number])
        return found

    @cached_property
    def _matching(self) -> list[list[int]]:
        """The places of the messages that match, for each profile; by lxml where the result is the
        whole message."""
        if self.answers:
            return [[at for at, results in enumerate(of) if results] for of in self.answers]
        trees = [lxml.etree.fromstring(message) for message in self.messages]
        known: dict[str, list[int]] = {}
        for profile in self.profiles:
            if profile not in known:
                matches = lxml.etree.XPath(f"boolean({profile})")
                known[profile] = [place for place, tree in enumerate(trees) if matches(tree)]
        return [known[profile] for profile in self.profiles]


def small_feed(profiles: int) -> Feed:
    """Messages of 60 bytes, and profiles of everything."""
    messages = []
    for number in range(_SMALL):
        start, end = f'<quote n="{number}"><last>', "</last></quote>"
        messages.append((start + "7" * (SMALL_BYTES - len(start + end)) + end).encode())
    return Feed(messages, [EVERYTHING] * profiles)


def path_feed(profiles: int, messages: int, sizes: Sizes) -> Feed:
    """Generated messages, and generated path profiles of which the wished share matches one.

    Generated profiles match more rarely; some that match often are put among them.
    """
    schema = make_schema(sizes.seed)
    made = make_messages(schema, sizes.seed, messages, sizes.message_bytes)
    looked_at = make_messages(schema, sizes.seed + 1, _LOOKED_AT, sizes.message_bytes)
    trees = [lxml.etree.fromstring(message) for message in looked_at]
    chosen: list[str] = []
    waiting: dict[bool, deque[tuple[str, float]]] = {True: deque(), False: deque()}
    total = 0.0
    for text in ProfileMaker(schema, sizes.seed).distinct():
        path = lxml.etree.XPath(f"boolean({text})")
        share = sum(bool(path(tree)) for tree in trees) / len(trees)
        waiting[share >= _OFTEN].append((text, share))
        of_kind = waiting[sizes.matching * (len(chosen) + 1) > total]
        if of_kind:
            found, share = of_kind.popleft()
            chosen.append(found)
            total += share
        if len(chosen) == profiles:
            break
    return Feed(made, chosen)


def everything_feed(profiles: int, messages: int, sizes: Sizes) -> Feed:
    """Generated messages, and profiles of everything."""
    schema = make_schema(sizes.seed)
    made = make_messages(schema, sizes.seed, messages, sizes.message_bytes)
    return Feed(made, [EVERYTHING] * profiles)


def yfilter_feed(directory: Path, profiles: int) -> Feed:
    """The messages of YFilter's release, and the first so many of ``profiles-path.txt.gz``."""
    files = sorted((directory / "messages").glob("*.xml"))
    try:
        with gzip.open(directory / "profiles-path.txt.gz", "rt", encoding="utf-8") as lines:
            texts = [line.strip() for line in islice(lines, profiles)]
    except OSError as error:
        raise BenchmarkError(f"YFilter's release: {error}") from None
    if not files or len(texts) < profiles:
        raise BenchmarkError(f"{directory} has {len(files)} messages and {len(texts)} profiles")
    return Feed([file.read_bytes() for file in files], texts)
