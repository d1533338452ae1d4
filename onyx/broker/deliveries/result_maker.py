"""ResultMaker: the results of kept messages, made when somebody takes them (section 4.3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from formats import DecodeError, ElementStream, MessageRefused
from onyx.broker.deliveries.delivery_log import KeptMessage, Results
from onyx.broker.packing.codebook import Codebook, wire_format_of
from onyx.broker.packing.parcel import Parcel
from overlay.link.limits import FRAME_HEADROOM_BYTES, LinkLimits
from yfilter.engine.match_limits import MatchLimits
from yfilter.matcher import Matcher


def results_bytes_max(limits: LinkLimits) -> int:
    """Of results on one message, so many bytes fit into a frame, if compression saves nothing."""
    frame = limits.frame_bytes_max
    return frame - FRAME_HEADROOM_BYTES - frame // 64


class ResultMaker:
    """By the one Matcher for what a profile says now, by a small one for what it once said."""

    def __init__(self, codebook: Codebook, matcher: Matcher, bytes_max: int) -> None:
        """``bytes_max`` of results on one message fit into a frame."""
        self._codebook = codebook
        self._matcher = matcher
        self._bytes_max = bytes_max
        self._former = Matcher(MatchLimits(lazy_bytes_max=4096))
        self._counters: Counter[str] = Counter()

    def fitting(self, results: list[bytes] | None) -> Results:
        """None: there are more than a limit allows; what does not fit is left out, too."""
        payload = b"".join(results or ())
        if not results or len(payload) > self._bytes_max:
            self._counters["over_limit"] += 1
            return Results([], b"")
        return Results(list(map(len, results)), payload)

    def make(
        self, source: str, number: int, message: KeptMessage, profiles: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[list[str], Results | None]]:
        """The results of (profile, "" or its text of then), each when it is asked for; None for
        profiles that get nothing after all."""
        profiles = list(profiles)
        current = [profile for profile, text in profiles if not text]
        try:
            stream = self._opened(source, number, message)
        except (MessageRefused, DecodeError):
            self._counters["unreadable"] += 1
            yield [profile for profile, _ in profiles], self.fitting(None)
            return
        id_of = self._matcher.id_of
        for numbers, results, exceeded, _ in self._matcher.deliver_to(stream, current):
            self._counters["made"] += 1
            names = list(map(id_of, numbers))
            yield names, self.fitting(results) if results or exceeded else None
        for profile, text in profiles:
            if text:
                yield [profile], self._by_former(stream, profile, text)

    def statistics(self) -> dict[str, int]:
        return {f"results_{name}": count for name, count in self._counters.items()}

    def _by_former(self, stream: ElementStream, profile: str, text: str) -> Results | None:
        self._counters["made_by_former_text"] += 1
        self._former.add(text, profile)
        try:
            ((_, results, exceeded, _),) = self._former.deliver_to(stream, [profile])
        finally:
            self._former.remove(profile)
        return self.fitting(results) if results or exceeded else None

    def _opened(self, source: str, number: int, message: KeptMessage) -> ElementStream:
        form = wire_format_of(message.format)
        parcel = Parcel(
            *(self._codebook, message.root, source, number, 0, form, message.payload),
            pieces=message.pieces,
        )
        return parcel.stream
