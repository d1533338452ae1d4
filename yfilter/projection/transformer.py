"""Transformer: a message as it goes over a link: what is needed of it, and pieces (section 4.2.2).

For each part that is wanted at an element a link has the choice: its piece, or what it looks at::

    plain     nothing is computed                                      raw of all parts
    common    what several of the parts have in common is computed     pieces of it, raw of the rest
    largest   the parts are computed                                   pieces

All three are right, since whoever gets a message computes what he lacks.  So it is measured now
and then (MEASURED_EVERY) which makes the least of a message, and that is done until the next time.
What has come as a piece is passed on as a piece, or goes into the larger part that is computed of
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from formats.binary import encode_binary
from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded
from yfilter.language.nodes import DynamicError
from yfilter.projection.needs import Kind, Need
from yfilter.projection.part_needs import with_looks
from yfilter.projection.parts import KnownPart, part_of_text
from yfilter.projection.pieces import computed, pack_pieces
from yfilter.projection.projector import Projector

MEASURED_EVERY = 64  # messages in which parts are wanted
PARTS_MAX = 256  # different parts of a link that are ever computed; the others stay plain

_TAGS_BYTES = 16  # of an element

PLAIN, COMMON, LARGEST = "plain", "common", "largest"


class Transformer:
    """Add and remove needs; ``project`` messages.

    Without ``restructures``, which may change, nothing is computed, but what has come is passed on.
    """

    def __init__(
        self, *, restructures: bool = False, new_projector: Callable[[], Projector] = Projector
    ) -> None:
        self.restructures = restructures
        self._new_projector = new_projector
        self._needs: Counter[Need] = Counter()
        self._parts: Counter[str] = Counter()  # by text, of how many needs
        self._ways = {PLAIN: _Way(new_projector())}
        self._way = PLAIN
        self._until_measured = 0
        self._counters: Counter[str] = Counter()

    def add(self, need: Need) -> None:
        """Keep what a need asks for, too."""
        self._needs[need] += 1
        if self._needs[need] == 1:
            self._change(need, 1)

    def remove(self, need: Need) -> None:
        """Undo one ``add``; KeyError if it is not there."""
        if not self._needs[need]:
            del self._needs[need]
            raise KeyError(need)
        self._needs[need] -= 1
        if not self._needs[need]:
            del self._needs[need]
            self._change(need, -1)

    def project(self, stream: ElementStream) -> ElementStream:
        """The message with what is needed; the very same if that is nearly all of it."""
        if not self._parts:
            return self._ways[PLAIN].projector.project(stream)
        if not self.restructures:
            return self._by(PLAIN, stream)
        if self._until_measured <= 0:
            return self._measured(stream)
        left = self._by(self._way, stream)
        self._until_measured -= bool(self._ways[self._way].projector.parts)
        return left

    def statistics(self) -> dict[str, int | str]:
        """``way``: what is done with parts; ``pieces_computed`` and ``pieces_passed_on``."""
        return {
            **self._ways[self._way].projector.statistics(),
            "needs": len(self._needs),
            "parts": len(self._parts),
            "way": self._way,
            **self._counters,
        }

    def _change(self, need: Need, count: int) -> None:
        parts = [kept.part for kept in need.kept if kept.kind is Kind.PART]
        known = set(self._parts)
        for text in parts:
            self._parts[text] += count
            if not self._parts[text]:
                del self._parts[text]
        if known == set(self._parts):
            for way in self._ways.values():
                way.change(need, count)
            return
        # Other parts: what is common may be something else now.
        self._ways[PLAIN].change(need, count)
        self._ways = {PLAIN: self._ways[PLAIN]}
        self._way = PLAIN
        self._until_measured = 0

    def _measured(self, stream: ElementStream) -> ElementStream:
        """By the way that makes least of the message, as all others from now on."""
        made = {PLAIN: self._by(PLAIN, stream)}
        if not self._ways[PLAIN].projector.parts:
            return made[PLAIN]  # nothing to be learnt
        self._until_measured = MEASURED_EVERY
        self._make_ways()
        for name in self._ways:
            if name not in made:
                made[name] = self._by(name, stream)
        sizes = {name: _size(left) for name, left in made.items()}
        self._way = min(sizes, key=lambda name: (sizes[name], name))
        return made[self._way]

    def _make_ways(self) -> None:
        if len(self._ways) > 1 or len(self._parts) > PARTS_MAX:
            return
        parts = [part_of_text(text) for text in self._parts]
        largest = frozenset(part.digest for part in parts)
        seen = Counter(
            digest for part in parts for digest in {inner.digest for inner in part.with_all_inner()}
        )
        common = frozenset(digest for digest, count in seen.items() if count > 1)
        for name, chosen in ((LARGEST, largest), (COMMON, common)):
            if chosen and (name == LARGEST or chosen != largest):
                way = self._ways[name] = _Way(self._new_projector(), chosen)
                for need in self._needs:
                    way.change(need, 1)

    def _by(self, name: str, stream: ElementStream) -> ElementStream:
        way = self._ways[name]
        left = way.projector.project(stream)
        if left is stream or not (way.chosen or stream.pieces):
            return left
        try:
            left.pieces = self._pieces(way, stream)
        except (DynamicError, MatchLimitExceeded):
            self._counters["pieces_failed"] += 1  # whoever wants the result finds out the same
            return self._by(PLAIN, stream)
        if name != PLAIN and _weight(left) > _weight(stream):
            self._counters["pieces_too_large"] += 1  # no link carries more than came
            return self._by(PLAIN, stream)
        return left

    def _pieces(self, way: _Way, stream: ElementStream) -> Mapping[tuple[int, str], bytes]:
        pieces: dict[tuple[int, str], bytes] = {}
        for element, text in way.projector.parts:
            place = way.projector.place_of(element)
            self._collect(part_of_text(text), way, stream, element, place, pieces)
        return pieces

    def _collect(
        self,
        part: KnownPart,
        way: _Way,
        stream: ElementStream,
        element: int,
        place: int,
        pieces: dict[tuple[int, str], bytes],
    ) -> None:
        """The piece of a part, or those of the parts in it that are chosen or have come."""
        key = place, part.digest
        came = stream.pieces.get((element, part.digest))
        if came is not None:
            self._counters["pieces_passed_on"] += 1
            pieces[key] = came
        elif part.digest in way.chosen:
            if key not in pieces:
                self._counters["pieces_computed"] += 1
                pieces[key] = computed(part, stream, element)
        else:
            for inner in part.inner:
                self._collect(inner, way, stream, element, place, pieces)


class _Way:
    """A projector for what is left when the parts that are ``chosen`` are computed."""

    def __init__(self, projector: Projector, chosen: frozenset[str] = frozenset()) -> None:
        self.projector = projector
        self.chosen = chosen

    def change(self, need: Need, count: int) -> None:
        raw = with_looks(need, self.chosen)
        if count > 0:
            self.projector.add(raw)
        else:
            self.projector.remove(raw)


def _weight(stream: ElementStream) -> int:
    """About what values, tags and pieces have in bytes, as text."""
    values = len(stream.attribute_values) + len(stream.content_values)
    return values + _TAGS_BYTES * len(stream) + sum(map(len, stream.pieces.values()))


def _size(stream: ElementStream) -> int:
    return len(encode_binary(stream)) + len(pack_pieces(stream.pieces))
