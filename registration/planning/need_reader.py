"""NeedReader: text of a profile -> its needs, many thousand times a second.

Populations are large and their profiles alike: most differ from others in constants only.  So the
constants are taken out of a text, what is left (its *shape*) is analysed once, and the constants
of each profile are put back::

    /nitf[head/pubdata/@edition.area = "SF"]     shape  /nitf[head/pubdata/@edition.area = ·]
                                                 needs  /nitf/head/pubdata/@edition.area: slot 0

That may be done for a constant only if nothing else depends on it.  A *slot* is therefore free if
it stands behind a comparison operator and, when a marker is put there, the marker comes out as the
constant of a selection of the routing query, where all constants are treated alike.  What stands
in the other slots is part of the shape.  Whatever looks unusual is read without the cache.

PERF: about 6 us a profile instead of two milliseconds (``python -m benchmarks pep --scaling``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formats.characters import find_illegal_character
from registration.planning.exclusiveness import (
    Need,
    Pattern,
    canonical_value,
    common_needs,
    needs_of,
)
from yfilter.engine.linear_paths import routing_query
from yfilter.errors import ProfileRefused
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS
from yfilter.language.query_ast import Comparison, Expression, Literal, Or
from yfilter.language.query_parser import parse_profile

SHAPES_MAX = 50_000

_SLOT = re.compile(r"""("[^"]*"|'[^']*'|(?<=[=<>])[ ]?[0-9]+(?:\.[0-9]+)?(?![\w.]))""")
_BEHIND_COMPARISON = re.compile(r"(?:[<>]|(?<!:)=)\s*\Z")
# Entity references and line ends change what a constant is; the marker must be ours.
_UNUSUAL = re.compile("[&\r\ue000]|98765432")
_NUMBER_MARKER = 98765432000


@dataclass(frozen=True, slots=True)
class _Template:
    """The needs of a shape: pattern, and each value as the number of a slot or as itself."""

    needs: tuple[tuple[Pattern, tuple[int | str, ...]], ...]

    def fill(self, slots: Sequence[str]) -> tuple[Need, ...]:
        return tuple(
            Need(pattern, (_constant(slots[values[0]]),))
            if len(values) == 1 and isinstance(values[0], int)
            else Need(pattern, tuple(sorted({_filled(value, slots) for value in values})))
            for pattern, values in self.needs
        )


class NeedReader:
    """Reads profiles; remembers at most ``shapes_max`` shapes, then begins anew."""

    def __init__(self, shapes_max: int = SHAPES_MAX) -> None:
        self._shapes_max = shapes_max
        self._free_slots: dict[str, tuple[int, ...]] = {}
        self._templates: dict[tuple[str, ...], _Template] = {}
        self._read = 0
        self._analysed = 0

    def read(self, text: str) -> tuple[Need, ...]:
        """The needs of the profile; ProfileRefused as the parser would."""
        self._read += 1
        if _UNUSUAL.search(text) or len(text) > DEFAULT_PROFILE_LIMITS.length_max:
            return self._analyse(text)
        if not text.isprintable() and find_illegal_character(text) >= 0:
            return self._analyse(text)
        parts = _SLOT.split(text)
        slots = parts[1::2]
        between = parts[::2]
        shape = "\0".join((*between, "".join(slot[0] for slot in slots)))
        free = self._free_slots.get(shape)
        if free is None:
            free = self._find_free(shape, between, slots)
        # The usual case: every constant is free.
        key: tuple[str, ...] = (shape,)
        if len(free) < len(slots):
            key = (shape, *(slot for index, slot in enumerate(slots) if index not in free))
        template = self._templates.get(key)
        if template is None:
            template = self._make_template(key, between, slots, free)
        return template.fill(slots)

    def statistics(self) -> dict[str, int]:
        return {"read": self._read, "analysed": self._analysed, "shapes": len(self._templates)}

    def _analyse(self, text: str) -> tuple[Need, ...]:
        self._analysed += 1
        return needs_of(parse_profile(text))

    def _find_free(
        self, shape: str, between: Sequence[str], slots: Sequence[str]
    ) -> tuple[int, ...]:
        """The slots on whose constants nothing else depends."""
        wanted = [index for index in range(len(slots)) if _BEHIND_COMPARISON.search(between[index])]
        try:
            marked = _Marked(between, slots, wanted)
            free = tuple(index for index in wanted if index in marked.found)
        except ProfileRefused:
            free = ()
        self._make_room()
        self._free_slots[shape] = free
        return free

    def _make_template(
        self,
        key: tuple[str, ...],
        between: Sequence[str],
        slots: Sequence[str],
        free: tuple[int, ...],
    ) -> _Template:
        self._analysed += 1
        marked = _Marked(between, slots, free)
        if set(free) <= marked.found:
            template = marked.template()
        else:  # with these constants in the other slots it is another profile
            needs = needs_of(parse_profile(_joined(between, slots)))
            template = _Template(tuple((need.pattern, need.values) for need in needs))
            if free:
                return template
        self._make_room()
        self._templates[key] = template
        return template

    def _make_room(self) -> None:
        if max(len(self._free_slots), len(self._templates)) >= self._shapes_max:
            self._free_slots.clear()
            self._templates.clear()


class _Marked:
    """A profile with markers in some slots, taken apart.

    ``found``: the slots whose markers are constants of selections.
    """

    def __init__(self, between: Sequence[str], slots: Sequence[str], marked: Sequence[int]) -> None:
        filled = list(slots)
        self._slot_of: dict[str, int] = {}  # canonical marker -> slot
        for index in marked:
            filled[index], canonical = _marker(slots[index], index)
            self._slot_of[canonical] = index
        self._conjunctions = routing_query(parse_profile(_joined(between, filled)))
        self.found = {self._slot_of[value] for value in self._constants() if value in self._slot_of}

    def template(self) -> _Template:
        return _Template(
            tuple(
                (need.pattern, tuple(self._slot_of.get(value, value) for value in need.values))
                for need in common_needs(self._conjunctions)
            )
        )

    def _constants(self) -> Iterator[str]:
        for conjunction in self._conjunctions:
            for path in conjunction.paths:
                for step in path.steps:
                    for selection in step.selections:
                        yield from _constants_of(selection)


def _constants_of(selection: Expression) -> Iterator[str]:
    """The constants that a selection compares with, directly or in one of its alternatives."""
    match selection:
        case Or(parts):
            for part in parts:
                yield from _constants_of(part)
        case Comparison(left, _, right):
            for side in (left, right):
                if isinstance(side, Literal):
                    yield canonical_value(str(side.value))


def _marker(slot: str, index: int) -> tuple[str, str]:
    """What to write into a slot, and the canonical value of that constant."""
    if slot[0] in "\"'":
        return f"{slot[0]}\ue000{index}{slot[0]}", f"\ue000{index}"
    return f" {_NUMBER_MARKER + index}", str(_NUMBER_MARKER + index)


def _joined(between: Sequence[str], slots: Sequence[str]) -> str:
    pieces = [between[0]]
    for slot, rest in zip(slots, between[1:], strict=True):
        pieces += (slot, rest)
    return "".join(pieces)


def _filled(value: int | str, slots: Sequence[str]) -> str:
    return _constant(slots[value]) if isinstance(value, int) else value


def _constant(slot: str) -> str:
    return canonical_value(slot[1:-1] if slot[0] in "\"'" else slot)
