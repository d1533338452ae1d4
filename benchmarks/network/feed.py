"""Feed: messages that are published round and round, and the profiles that shall get them.

It is written to a file, from which the processes of the benchmark read it.  The n-th message that
a source publishes, from 1, is ``messages[(n - 1) % len(messages)]``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import lxml.etree

from benchmarks.network.sizes import Sizes
from benchmarks.workload import ProfileMaker, make_messages, make_schema

SMALL_BYTES = 60
_SMALL = 1_000  # different ones
_LOOKED_AT = 20  # messages by which profiles are chosen
_OFTEN = 0.3  # the share of messages that a profile matches to be chosen for matching often
EVERYTHING = "/*"


@dataclass(frozen=True, slots=True)
class Feed:
    """Profiles whose results are whole messages, and messages."""

    messages: Sequence[bytes]
    profiles: Sequence[str]

    def write(self, file: Path) -> str:
        """Puts it on disk; the name of the file."""
        messages = [message.decode() for message in self.messages]
        text = json.dumps({"messages": messages, "profiles": self.profiles})
        file.write_text(text, encoding="utf-8")
        return str(file)

    @classmethod
    def read(cls, file: str) -> Feed:
        """What ``write`` has written."""
        values = json.loads(Path(file).read_text(encoding="utf-8"))
        return cls([message.encode() for message in values["messages"]], values["profiles"])

    def published(self, number: int, after: int = 0) -> Iterator[bytes]:
        """So many messages, behind those that were published before."""
        for place in range(after, after + number):
            yield self.messages[place % len(self.messages)]

    def bytes(self, number: int) -> int:
        """Of the first so many."""
        return sum(map(len, self.published(number)))

    def expected(self, number: int) -> list[list[int]]:
        """By lxml: for each profile the numbers of the first so many messages that match it."""
        trees = [lxml.etree.fromstring(message) for message in self.messages]
        found = []
        for profile in self.profiles:
            matches = lxml.etree.XPath(f"boolean({profile})")
            places = [place for place, tree in enumerate(trees) if matches(tree)]
            rounds = range(0, number, len(trees))
            numbers = chain.from_iterable((at + place + 1 for place in places) for at in rounds)
            found.append([one for one in numbers if one <= number])
        return found


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
    waiting: list[tuple[str, float]] = []
    total = 0.0
    for text in ProfileMaker(schema, sizes.seed).distinct():
        path = lxml.etree.XPath(f"boolean({text})")
        waiting.append((text, sum(bool(path(tree)) for tree in trees) / len(trees)))
        wanted = sizes.matching * (len(chosen) + 1) - total
        place = _next(waiting, wanted > 0)
        if place is not None:
            found, share = waiting.pop(place)
            chosen.append(found)
            total += share
        if len(chosen) == profiles:
            break
    return Feed(made, chosen)


def _next(waiting: Sequence[tuple[str, float]], often: bool) -> int | None:
    """The first that matches often, or does not."""
    for place, (_, share) in enumerate(waiting):
        if (share >= _OFTEN) is often:
            return place
    return None
