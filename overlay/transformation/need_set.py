"""NeedSet: the needs of a broker on one tree, and what of them its parent must know.

Equal needs are told once.  Needs of one binding that keep the same paths are a *group*; they differ
in their conditions::

    /feed/entry   subtree title    if c/@t = "a"    }  told, each
                                   if c/@t = "b"    }
    /feed/entry   subtree .        always              told; the group above is covered, and hidden

A need without a condition covers the needs of its binding that keep no more, and ``EVERYTHING``
covers all.  Beyond the budget what is told is *widened* (widening.py): single needs are told with
weaker conditions, first those that save most bytes for what they let through, and where that is not
enough, everything is.  So less is cut from messages, and nobody misses anything.  What was widened
becomes exact again when there is room to spare.

Invariant: what is told keeps all that the needs keep; what ``take`` returned, summed, is what is
told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

from overlay.transformation.widening import Choices, WideNeeds
from yfilter.engine.linear_paths import Conjunction
from yfilter.projection.needs import EVERYTHING, Kept, Need, Steps

_EXACT_AGAIN_AT = 0.6  # of the budget
_WIDENED_TO = 0.95  # of the budget, that not every need that comes then is one too many


@dataclass(frozen=True, slots=True)
class NeedDelta:
    """Needs that come and needs that go."""

    added: tuple[Need, ...] = ()
    removed: tuple[Need, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class _Mode(Enum):
    """How a group is told: not at all, as one need without a condition, each need."""

    HIDDEN = "hidden"
    OPEN = "open"
    EXACT = "exact"


class _Group:
    """Where it would tell its need without a condition, which covers the others, it is open."""

    __slots__ = ("binding", "kept", "mode", "needs")

    def __init__(self, binding: Steps, kept: tuple[Kept, ...]) -> None:
        self.binding = binding
        self.kept = kept
        self.needs = WideNeeds()
        self.mode = _Mode.HIDDEN

    @property
    def is_open(self) -> bool:
        return self.needs.always is not None

    @property
    def shown(self) -> Iterable[Need]:
        if self.mode is _Mode.OPEN and self.needs.always is not None:
            return (self.needs.always,)
        return self.needs.told if self.mode is _Mode.EXACT else ()

    def covers(self, other: _Group) -> bool:
        """Of the same binding."""
        return self is not other and all(
            any(mine.covers(theirs) for mine in self.kept) for theirs in other.kept
        )


_Groups: TypeAlias = dict[_Group, None]
_Key = TypeVar("_Key")


class _Bound:
    """The groups of one binding: those that are ``_open`` by the steps of their kept paths, and
    once more by those of which all below is kept; all by the steps of their longest one, and by
    the beginnings of these."""

    def __init__(self) -> None:
        self.groups: dict[tuple[Kept, ...], _Group] = {}
        self._open: dict[tuple[Steps, bool], _Groups] = {}
        self._longest: dict[Steps, _Groups] = {}
        self._beginnings: dict[Steps, _Groups] = {}

    def enter(self, group: _Group) -> None:
        self.groups[group.kept] = group
        longest = _longest(group.kept)
        self._longest.setdefault(longest, {})[group] = None
        for beginning in _beginnings(longest):
            self._beginnings.setdefault(beginning, {})[group] = None

    def leave(self, group: _Group) -> None:
        del self.groups[group.kept]
        longest = _longest(group.kept)
        _discard(self._longest, longest, group)
        for beginning in _beginnings(longest):
            _discard(self._beginnings, beginning, group)

    def note_open(self, group: _Group, is_open: bool) -> None:
        deep = {(kept.steps, True) for kept in group.kept if kept.kind.is_deep}
        for place in deep | {(kept.steps, False) for kept in group.kept}:
            if is_open:
                self._open.setdefault(place, {})[group] = None
            else:
                _discard(self._open, place, group)

    def is_covered(self, group: _Group) -> bool:
        """By an open group; of all its paths that is looked at which the fewest groups have."""
        fewest: list[_Groups] = []
        least = len(self.groups) + 1
        for kept in group.kept:
            above = ((steps, True) for steps in _beginnings(kept.steps[:-1]) if kept.steps)
            found = [self._open.get(place, {}) for place in ((kept.steps, False), *above)]
            count = sum(map(len, found))
            if count < least:
                fewest, least = found, count
            if not count:
                return False
        return any(other.covers(group) for groups in fewest for other in groups)

    def covered_by(self, group: _Group) -> Iterator[_Group]:
        found: _Groups = {}
        for kept in group.kept:
            places = self._beginnings if kept.kind.is_deep else self._longest
            found |= places.get(kept.steps, {})
        return (other for other in found if group.covers(other))


class NeedSet:
    """Needs with their takers; ``told`` is what the parent knows."""

    def __init__(self, bytes_max: int) -> None:
        """``bytes_max``: of the texts of what is told."""
        self._bytes_max = bytes_max
        self._takers: dict[Need, int] = {}
        self._bindings: dict[Steps, _Bound] = {}
        self._told: dict[Need, None] = {}
        self._told_bytes = 0
        self._news: dict[Need, bool] = {}  # need -> added
        self._roots_bytes = 0  # of what the groups would tell, hidden or not
        self._widened: list[tuple[_Group, Need]] = []  # in the order of that
        self._everything = False  # for want of room
        self._widenings = 0
        self.is_changed = True  # since ``take``

    def change(self, added: Iterable[Need], removed: Iterable[Need]) -> None:
        """One taker more for each of ``added``, one less for each of ``removed``; KeyError for
        one without a taker."""
        self.is_changed = True
        for need in added:
            self._takers[need] = self._takers.get(need, 0) + 1
            if self._takers[need] == 1:
                self._enter(need)
        for need in removed:
            self._takers[need] -= 1
            if not self._takers[need]:
                del self._takers[need]
                self._leave(need)

    def restore(self, told: Need) -> None:
        """Something that the parent knew before a restart; before anything else is added."""
        self.is_changed = True
        self._note(told, added=False)

    def take(self) -> NeedDelta:
        """What the parent must be told since the last time."""
        self.is_changed = False
        self._fit()
        added = tuple(need for need, is_added in self._news.items() if is_added)
        removed = tuple(need for need, is_added in self._news.items() if not is_added)
        self._news.clear()
        return NeedDelta(added, removed)

    @property
    def told(self) -> Iterator[Need]:
        return iter(self._told)

    def statistics(self) -> dict[str, int]:
        """``needs_widened``: how many needs are told by a wider one."""
        return {
            "needs": len(self._takers),
            "needs_told": len(self._told),
            "needs_told_bytes": self._told_bytes,
            "needs_widened": sum(group.needs.widened for group in self._groups())
            + self._everything,
            "widenings": self._widenings,
        }

    # --- changes --------------------------------------------------------------------------

    def _enter(self, need: Need) -> None:
        bound = self._bindings.setdefault(need.binding, _Bound())
        group = bound.groups.get(need.kept)
        if group is None:
            group = _Group(need.binding, need.kept)
            bound.enter(group)
        self._change(group, lambda: group.needs.enter(need))

    def _leave(self, need: Need) -> None:
        bound = self._bindings[need.binding]
        group = bound.groups[need.kept]
        self._change(group, lambda: group.needs.leave(need))
        if not group.needs:
            bound.leave(group)
            if not bound.groups:
                del self._bindings[need.binding]

    def _change(self, group: _Group, change: Callable[[], tuple[list[Need], list[Need]]]) -> None:
        """Change what a group would tell, and tell it if it is not covered."""
        was_open = group.is_open
        come, gone = change()
        self._roots_bytes += sum(len(need.text) for need in come)
        self._roots_bytes -= sum(len(need.text) for need in gone)
        if group.mode is _Mode.EXACT:
            for need in come:
                self._tell(need)
        for need in gone if group.mode is not _Mode.HIDDEN else ():
            self._untell(need)
        if group.is_open == was_open:
            if group.mode is _Mode.HIDDEN:
                self._show(group, self._mode_of(group))
            return
        self._bindings[group.binding].note_open(group, not was_open)
        self._show(group, self._mode_of(group))
        if not group.binding and group.kept == EVERYTHING.kept:
            self._settle(self._groups())
        else:
            self._settle(self._bindings[group.binding].covered_by(group))

    def _settle(self, groups: Iterable[_Group]) -> None:
        for group in groups:
            self._show(group, self._mode_of(group))

    def _mode_of(self, group: _Group) -> _Mode:
        if self._everything or self._is_hidden(group):
            return _Mode.HIDDEN
        return _Mode.OPEN if group.is_open else _Mode.EXACT

    def _is_hidden(self, group: _Group) -> bool:
        messages = self._bindings.get(EVERYTHING.binding)
        whole = None if messages is None else messages.groups.get(EVERYTHING.kept)
        if whole is not None and whole is not group and whole.is_open:
            return True
        return self._bindings[group.binding].is_covered(group)

    def _show(self, group: _Group, mode: _Mode) -> None:
        if mode is group.mode:
            return
        before = list(group.shown)
        group.mode = mode
        for need in group.shown:
            self._tell(need)
        for need in before:
            if need not in group.shown:
                self._untell(need)

    def _tell(self, need: Need) -> None:
        if need not in self._told:
            self._told[need] = None
            self._told_bytes += len(need.text)
            self._note(need, added=True)

    def _untell(self, need: Need) -> None:
        if need in self._told:
            del self._told[need]
            self._told_bytes -= len(need.text)
            self._note(need, added=False)

    def _note(self, need: Need, *, added: bool) -> None:
        if self._news.get(need, added) is not added:
            del self._news[need]  # what comes and goes again is not mentioned
        else:
            self._news[need] = added

    # --- the budget -----------------------------------------------------------------------

    def _fit(self) -> None:
        if self._everything or self._widened:
            self._narrow(_EXACT_AGAIN_AT * self._bytes_max)
        if self._told_bytes <= self._bytes_max or self._everything:
            return
        room = _WIDENED_TO * self._bytes_max
        groups = {group.needs: group for group in self._groups() if group.mode is _Mode.EXACT}
        choices = Choices(self._told_bytes - self._bytes_max, len(self._told))
        for group in groups.values():
            choices.add(group.needs, group.needs.told)
        while self._told_bytes > room and (best := choices.best()) is not None:
            needs, told, condition = best
            self._widen(groups[needs], told, condition, choices)
        if self._told_bytes > self._bytes_max:
            self._widenings += 1
            self._everything = True
            self._settle(self._groups())
            self._tell(EVERYTHING)

    def _widen(
        self,
        group: _Group,
        needs: tuple[Need, ...],
        condition: Conjunction | None,
        choices: Choices,
    ) -> None:
        if group.mode is not _Mode.EXACT:
            return  # covered by what was widened before
        self._widenings += 1
        wide = Need(group.binding, condition, group.kept)
        is_new = wide not in group.needs.told
        self._change(group, lambda: group.needs.widen(needs, wide))
        self._widened.append((group, wide))
        if is_new and wide in group.needs.told:
            choices.add(group.needs, (wide,))

    def _narrow(self, room: float) -> None:
        """What was widened last becomes exact again first, as long as there is room to spare."""
        if self._everything:
            if self._roots_bytes > room:
                return
            self._everything = False
            if EVERYTHING not in self._takers:
                self._untell(EVERYTHING)
            self._settle(self._groups())
        while self._widened:
            group, wide = self._widened[-1]
            if wide in group.needs.below:
                if self._told_bytes + group.needs.bytes_of_narrow(wide) > room:
                    return
                self._change(group, lambda: group.needs.narrow(wide))  # noqa: B023 - at once
            self._widened.pop()

    def _groups(self) -> Iterator[_Group]:
        return (group for bound in self._bindings.values() for group in bound.groups.values())


def _beginnings(steps: Steps) -> Iterator[Steps]:
    return (steps[:length] for length in range(len(steps) + 1))


def _longest(kept: Iterable[Kept]) -> Steps:
    return max((one.steps for one in kept), key=len)


def _discard(groups: dict[_Key, _Groups], key: _Key, group: _Group) -> None:
    groups[key].pop(group, None)
    if not groups[key]:
        del groups[key]
