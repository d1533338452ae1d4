"""MessageSample: some of the messages that were published, to see what disjuncts cost.

How often a value occurs, and which disjuncts hold on the same messages, is not in the disjuncts; a
few hundred messages tell (section 3.3 of Liu, Petrovic, Jacobsen, WWW 2008, whose summaries are of
publications, too).  A disjunct's *holding* is a number with a bit for each message of the sample.

What a broker is sent because it wants it says nothing of the rest.  So one message in SAMPLE_EVERY
of each source goes to every broker that wants anything of its tree, and its number tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

from formats import ElementStream
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.readings import Readings
from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import MatchLimits
from yfilter.matcher import LinkTarget, Matcher

SAMPLE_EVERY = 256
SAMPLED_MAX = 256
SAMPLED_BYTES_MAX = 4 * 1024 * 1024  # of all; as ``written_size`` counts
AT_A_TIME = 512  # disjuncts that are tried together
LAZY_BYTES_MAX = 1024 * 1024


class MessageSample:
    """The last messages that were given to it, within the bounds."""

    def __init__(self) -> None:
        self._messages: deque[tuple[ElementStream | Readings, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, message: ElementStream | Readings) -> None:
        stream = message.carried if isinstance(message, Readings) else message
        size = stream.written_size()
        self._messages.append((message, size))
        self._bytes += size
        while len(self._messages) > SAMPLED_MAX or self._bytes > SAMPLED_BYTES_MAX:
            self._bytes -= self._messages.popleft()[1]

    def holdings(self, disjuncts: Iterable[Conjunction]) -> Iterator[tuple[Conjunction, int]]:
        """Each distinct disjunct with its holding; lazy, some hundred at a time."""
        waiting = list(dict.fromkeys(disjuncts))
        messages = [message for message, _ in self._messages]
        for start in range(0, len(waiting), AT_A_TIME):
            tried = waiting[start : start + AT_A_TIME]
            yield from zip(tried, _holdings(tried, messages), strict=True)


def _holdings(disjuncts: list[Conjunction], messages: list[ElementStream | Readings]) -> list[int]:
    matcher = Matcher(MatchLimits(lazy_bytes_max=LAZY_BYTES_MAX))
    for number, disjunct in enumerate(disjuncts):
        matcher.add_route(disjunct, LinkTarget("", str(number)))
    found = [0] * len(disjuncts)
    for bit, message in enumerate(messages):
        with suppress(MatchLimitExceeded):
            for link in matcher.matched_links(message):
                found[int(link)] |= 1 << bit
    return found
