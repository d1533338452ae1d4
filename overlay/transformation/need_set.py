"""NeedSet: the needs of a broker on one tree, and what of them its parent must know.

Equal needs are told once.  Needs of one binding that keep the same paths are a *group*; they differ
in their conditions::

    /feed/entry   subtree title    if c/@t = "a"    }  told, each
                                   if c/@t = "b"    }
    /feed/entry   subtree .        always              told; the group above is covered, and hidden

A need without a condition covers the needs of its binding that keep no more, and ``EVERYTHING``
covers all.  Beyond the budget what is told is *widened*: the largest groups are told without their
conditions, and where that is not enough, everything is.  So less is cut from messages, and nobody
misses anything.  What was widened becomes exact again when all fits with room to spare.

Invariant: what is told keeps all that the needs keep; what ``take`` returned, summed, is what is
told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from yfilter.projection.needs import EVERYTHING, Kept, Need, Steps

_EXACT_AGAIN_AT = 0.6  # of the budget


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


@dataclass(slots=True, eq=False)
class _Group:
    """``needs``: those with takers; ``always``: the need of the group without a condition."""

    always: Need
    needs: dict[Need, None] = field(default_factory=dict)
    bytes: int = 0
    widened: bool = False
    mode: _Mode = _Mode.HIDDEN

    @property
    def is_open(self) -> bool:
        return self.widened or self.always in self.needs

    def told(self) -> Iterable[Need]:
        if self.mode is _Mode.OPEN:
            return (self.always,)
        return self.needs if self.mode is _Mode.EXACT else ()

    def covers(self, other: _Group) -> bool:
        """Of the same binding."""
        return self is not other and all(
            any(mine.covers(theirs) for mine in self.always.kept) for theirs in other.always.kept
        )


_Groups: TypeAlias = dict[tuple[Kept, ...], _Group]


class NeedSet:
    """Needs with their takers; ``told`` is what the parent knows."""

    def __init__(self, bytes_max: int) -> None:
        """``bytes_max``: of the texts of what is told."""
        self._bytes_max = bytes_max
        self._takers: dict[Need, int] = {}
        self._bindings: dict[Steps, _Groups] = {}
        self._exact_bytes = 0
        self._told: dict[Need, None] = {}
        self._told_bytes = 0
        self._news: dict[Need, bool] = {}  # need -> added
        self._is_widened = False
        self._everything = False  # for want of room
        self._widenings = 0

    def change(self, added: Iterable[Need], removed: Iterable[Need]) -> None:
        """One taker more for each of ``added``, one less for each of ``removed``; KeyError for
        one without a taker."""
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
        self._note(told, added=False)

    def take(self) -> NeedDelta:
        """What the parent must be told since the last time."""
        self._fit()
        added = tuple(need for need, is_added in self._news.items() if is_added)
        removed = tuple(need for need, is_added in self._news.items() if not is_added)
        self._news.clear()
        return NeedDelta(added, removed)

    @property
    def told(self) -> Iterator[Need]:
        return iter(self._told)

    def statistics(self) -> dict[str, int]:
        return {
            "needs": len(self._takers),
            "needs_told": len(self._told),
            "needs_told_bytes": self._told_bytes,
            "needs_widened": sum(group.widened for group in self._groups()) + self._everything,
            "widenings": self._widenings,
        }

    # --- changes --------------------------------------------------------------------------

    def _enter(self, need: Need) -> None:
        groups = self._bindings.setdefault(need.binding, {})
        group = groups.get(need.kept)
        is_new = group is None
        if group is None:
            group = groups[need.kept] = _Group(Need(need.binding, None, need.kept))
        was_open = group.is_open
        group.needs[need] = None
        group.bytes += len(need.text)
        self._exact_bytes += len(need.text)
        if is_new or group.is_open != was_open:
            self._settle(group)
        elif group.mode is _Mode.EXACT:
            self._tell(need)

    def _leave(self, need: Need) -> None:
        groups = self._bindings[need.binding]
        group = groups[need.kept]
        self._exact_bytes -= len(need.text)
        if len(group.needs) == 1:
            self._show(group, _Mode.HIDDEN)
            group.needs.clear()
            group.widened = False
            del groups[need.kept]
            self._settle(group)
            if not groups:
                del self._bindings[need.binding]
            return
        was_open = group.is_open
        if group.mode is _Mode.EXACT:
            self._untell(need)
        del group.needs[need]
        group.bytes -= len(need.text)
        if group.is_open != was_open:
            self._settle(group)

    def _settle(self, changed: _Group) -> None:
        """Show the groups of a binding as they are to be told, or all if all depends on it."""
        if changed.always == EVERYTHING:
            self._settle_all()
            return
        for group in self._bindings[changed.always.binding].values():
            if group is changed or changed.covers(group):
                self._show(group, self._mode_of(group))

    def _settle_all(self) -> None:
        for group in self._groups():
            self._show(group, self._mode_of(group))

    def _mode_of(self, group: _Group) -> _Mode:
        if self._everything or self._is_hidden(group):
            return _Mode.HIDDEN
        return _Mode.OPEN if group.is_open else _Mode.EXACT

    def _is_hidden(self, group: _Group) -> bool:
        whole = self._bindings.get((), {}).get(EVERYTHING.kept)
        if whole is not None and whole.is_open and whole is not group:
            return True
        others = self._bindings[group.always.binding].values()
        return any(other.is_open and other.covers(group) for other in others)

    def _show(self, group: _Group, mode: _Mode) -> None:
        if mode is group.mode:
            return
        before = list(group.told())
        group.mode = mode
        for need in group.told():
            self._tell(need)
        for need in before:
            if need not in group.told():
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
        if self._is_widened and self._exact_bytes <= _EXACT_AGAIN_AT * self._bytes_max:
            self._make_exact()
        while self._told_bytes > self._bytes_max and not self._everything:
            self._is_widened = True
            self._widenings += 1
            exact = [group for group in self._groups() if group.mode is _Mode.EXACT]
            largest = max(exact, key=lambda group: group.bytes, default=None)
            if largest is not None and len(largest.needs) > 1:
                largest.widened = True
                self._settle(largest)
            else:
                self._everything = True
                self._settle_all()
                self._tell(EVERYTHING)

    def _make_exact(self) -> None:
        self._is_widened = self._everything = False
        if EVERYTHING not in self._takers:
            self._untell(EVERYTHING)
        for group in self._groups():
            group.widened = False
        self._settle_all()

    def _groups(self) -> Iterator[_Group]:
        return (group for groups in self._bindings.values() for group in groups.values())
