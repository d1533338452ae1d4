"""ResultMaker: the results of kept messages, made when somebody takes them (section 4.3.1)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from formats import DecodeError, ElementStream, MessageRefused
from onyx.broker.deliveries.delivery_log import Results, joined, without_results
from onyx.broker.deliveries.late_results import LateResults
from onyx.broker.packing.codebook import Codebook, wire_format_of
from onyx.broker.packing.parcel import KeptMessage, Parcel
from overlay.link.dead_letters import DeadLetters
from overlay.link.frames import RESULTS_MAX, with_limit, with_media_type
from overlay.link.limits import FRAME_HEADROOM_BYTES, LinkLimits
from overlay.link.suspect import CoreFailed, suspect_message
from overlay.link.work_mark import AT, BEHIND, MARK
from overlay.statistics import Data
from yfilter.engine.readings import Readings
from yfilter.errors import MatchLimitExceeded
from yfilter.language.failures import failure_more, tells_more
from yfilter.language.profile_limits import MatchLimits
from yfilter.language.query_parser import parse_accepted
from yfilter.matcher import Matcher
from yfilter.matches import Delivered


def results_bytes_max(limits: LinkLimits) -> int:
    """Of results on one message, so many bytes fit into a frame, if compression saves nothing."""
    frame = limits.frame_bytes_max
    return frame - FRAME_HEADROOM_BYTES - frame // 64


def first_fitting(made: Delivered, bytes_max: int, text: str) -> Results:
    """The first results, which fit into a frame, and one that tells how many do not; ``text`` is
    the profile's, for which the engine may have told of results that it did not make."""
    results, media_type = made.results, made.media_type
    size = sum(map(len, results)) + LENGTH_BYTES * len(results)
    why = f"the results have {size} bytes, of which {bytes_max} fit in a frame"
    if size <= bytes_max:
        why = f"these are {len(results)} results, of which {_RESULTS_MAX} fit in a frame"
    profile = parse_accepted(text) if text else None

    def untold(count: int) -> list[bytes]:
        others = "" if made.exceeded is None else ", and others that were not made"
        said = f"{count} more{others}: {why} [result-too-large]"
        failure = b"" if profile is None else failure_more(profile, said)
        return [failure] if failure else with_limit([], said)

    told = 1 if profile is not None and tells_more(profile, results[-1]) else 0
    first, last = results[: len(results) - told], results[len(results) - told :]
    others = [*with_media_type([], media_type), *untold(len(first)), *last]
    room = bytes_max - sum(LENGTH_BYTES + len(one) for one in others)
    sizes = accumulate(LENGTH_BYTES + len(one) for one in first[:_RESULTS_MAX])
    count = bisect_right(list(sizes), room)
    if not count and not last:
        return without_results("result-too-large", f"none of {len(first)}: {why}")
    given = with_media_type(first[:count], media_type)
    return joined([*given, *untold(len(first) - count), *last])


LATE = Results([], b"")
"""What takes more than a slice."""

LENGTH_BYTES = 5  # at most, in a frame, of the length of a result
_NOBODY = array("i")
_RESULTS_MAX = RESULTS_MAX - 4  # besides what says something of them
OPENED_BYTES = 4 * 1024 * 1024  # of the messages that stay open, as they came; one always may


class _Opened:
    """A message that results are made of; ``made``: those of queries, by number, until profiles
    change."""

    __slots__ = ("changes", "made", "readings", "size")

    def __init__(self, readings: Readings, size: int) -> None:
        self.readings = readings
        self.size = size
        self.changes = -1
        self.made: dict[int, Results | None] = {}


class ResultMaker:
    """By the one Matcher for what a profile says now, by a small one for what it once said.

    The last messages stay open, for those who take them are many and not far from each other.
    """

    def __init__(
        self,
        codebook: Codebook,
        matcher: Matcher,
        bytes_max: int,
        dead: DeadLetters,
        late: LateResults,
        text_of: Callable[[str], str],
        counted: Data,
    ) -> None:
        """``bytes_max`` of results on one message fit into a frame; ``text_of``: what a profile
        says now."""
        self._codebook = codebook
        self._matcher = matcher
        self._bytes_max = bytes_max
        self._text_of = text_of
        self.late = late
        self._dead = dead
        self._former = Matcher(
            MatchLimits(lazy_bytes_max=4096, evaluation=matcher.limits.evaluation)
        )
        self._opened: dict[tuple[str, int, str], _Opened] = {}
        self._opened_bytes = 0
        self._counted = counted

    def fitting(self, made: Delivered, profile: str, text: str = "") -> Results | None:
        """Those of a profile, by its ``text`` or what it says now; None: it gets nothing.  What is
        beyond a limit is left out, which is told."""
        exceeded, results = made.exceeded, made.results
        given = results
        if results and made.media_type:  # PERF: most have none
            given = with_media_type(results, made.media_type)
        if exceeded is not None:
            given = with_limit(given, f"{exceeded.reason} [{exceeded.code}]")
        elif not results:
            return None
        size = sum(map(len, given)) + LENGTH_BYTES * (len(results) - 1)
        is_fitting = size <= self._bytes_max and len(results) <= _RESULTS_MAX
        if exceeded is not None or not is_fitting:
            self._counted.results_over_limit += 1
        if is_fitting:
            return Results(list(map(len, given)), b"".join(given))
        return first_fitting(made, self._bytes_max, text or self._text_of(profile))

    def make(
        self,
        source: str,
        number: int,
        message: KeptMessage,
        profiles: Iterable[tuple[str, str]],
        *,
        at_once: bool = False,
    ) -> Iterator[tuple[list[str], Results | None]]:
        """The results of (profile, "" or its text of then), each when it is asked for; None for
        profiles that get nothing after all.  What takes long is left out until ``late`` has it,
        but ``at_once``."""
        profiles = list(profiles)
        what = f"results of message {number} of {source}"
        suspect = suspect_message(what, source, message.payload)
        if self._dead.passed_over and self._dead.passes_stored(suspect):
            passed = without_results("passed-over", "to make them has ended the broker before")
            yield [profile for profile, _ in profiles], passed
            return
        made = self._make(source, number, message, profiles, at_once)
        while True:
            MARK.pack_into(self._dead.mark, 0, AT, suspect.what.encode())
            try:
                one = next(made)
            except StopIteration:
                return
            except Exception as error:
                raise CoreFailed(suspect) from error
            finally:
                self._dead.mark[0] = BEHIND
            yield one

    def _make(
        self,
        source: str,
        number: int,
        message: KeptMessage,
        profiles: list[tuple[str, str]],
        at_once: bool,
    ) -> Iterator[tuple[list[str], Results | None]]:
        try:
            opened = self._open(source, number, message)
        except (MessageRefused, DecodeError):
            unreadable = without_results("unreadable", "the kept message cannot be read any more")
            yield [profile for profile, _ in profiles], unreadable
            return
        lacking = []
        for profile, text in profiles:
            if message.is_late or self._is_asked(source, number, profile, text):
                results: Results | None = LATE
            elif text:
                results = self._by_former(opened.readings, profile, text)
            elif (query := self._matcher.query_of(profile)) in opened.made:
                results = opened.made[query]
            else:
                lacking.append(profile)
                continue
            if results is LATE:
                stream = opened.readings.carried
                yield from self._late(source, number, stream, [profile], text, at_once)
            else:
                yield [profile], results
        id_of, query_of = self._matcher.id_of, self._matcher.query_of
        for one in self._matcher.deliver_to(opened.readings, lacking):
            self._counted.results_made += 1
            names = list(map(id_of, one.numbers))
            if one.exceeded is not None and self.is_late(one.exceeded):
                stream = opened.readings.carried
                yield from self._late(source, number, stream, names, "", at_once)
                continue
            fitting = opened.made[query_of(names[0])] = self.fitting(one, names[0])
            yield names, fitting

    def _by_former(self, message: Readings, profile: str, text: str) -> Results | None:
        self._former.add(parse_accepted(text), profile)
        try:
            (one,) = self._former.deliver_to(message, [profile])
        finally:
            self._former.remove(profile)
        if one.exceeded is not None and self.is_late(one.exceeded):
            return LATE
        return self.fitting(one, profile, text)

    def is_late(self, exceeded: MatchLimitExceeded) -> bool:
        """Whether what left a profile without results is only its slice."""
        return not self._matcher.limits.evaluation.is_final(exceeded.code)

    def _is_asked(self, source: str, number: int, profile: str, text: str) -> bool:
        late = self.late
        return late.is_busy and late.knows(source, number, text or self._text_of(profile))

    def _late(
        self,
        source: str,
        number: int,
        stream: ElementStream,
        profiles: list[str],
        text: str,
        at_once: bool,
    ) -> Iterator[tuple[list[str], Results | None]]:
        """What takes more than a slice; nothing is known yet of what is left out."""
        ask = self.late.at_once if at_once else self.late.answer
        answer = ask(source, number, text or self._text_of(profiles[0]), stream, profiles)
        if answer is not None:
            made = Delivered(_NOBODY, list(answer.results), answer.limit, True, answer.media_type)
            yield profiles, self.fitting(made, profiles[0], text)

    def at_once(
        self, source: str, number: int, stream: ElementStream, profiles: list[str]
    ) -> Results | None:
        """What equal profiles that take long get of a message, for somebody who cannot wait."""
        ((_, results),) = self._late(source, number, stream, profiles, "", at_once=True)
        return results

    def _open(self, source: str, number: int, message: KeptMessage) -> _Opened:
        key = source, number, message.root
        opened = self._opened.pop(key, None)
        if opened is None:
            opened = _Opened(self._read(source, number, message), len(message.payload))
            self._opened_bytes += opened.size
        self._opened[key] = opened  # the last that was asked for is the last to go
        while self._opened_bytes > OPENED_BYTES and len(self._opened) > 1:
            self._opened_bytes -= self._opened.pop(next(iter(self._opened))).size
        if opened.changes != self._matcher.changes:
            opened.changes = self._matcher.changes
            opened.made.clear()
        return opened

    def _read(self, source: str, number: int, message: KeptMessage) -> Readings:
        form = wire_format_of(message.format)
        parcel = Parcel(
            *(self._codebook, message.root, source, number, 0, form, message.payload),
            pieces=message.pieces,
            accepted=message.accepted,
        )
        return parcel.readings
