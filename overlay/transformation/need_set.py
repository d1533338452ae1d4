"""NeedSet: the needs of a broker on one tree, and what of them its parent must know.

Equal needs are told once.  Needs of one binding that keep the same paths are a *group*; they differ
in their conditions::

    /feed/entry   subtree title    if c/@t = "a"    }  told, each
                                   if c/@t = "b"    }
    /feed/entry   subtree .        always              told; the group above is covered, and hidden

A need without a condition covers the needs of its binding that keep no more, and ``EVERYTHING``
covers all.  Beyond the budget what is told is *widened* (need_set.py): single needs are told with
weaker conditions, first those that save most bytes for what they let through, and where that is not
enough, everything is.  So less is cut from messages, and nobody misses anything.  What was widened
becomes exact again when there is room to spare.

Invariant: what is told keeps all that the needs keep; what ``take`` returned, summed, is what is
told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias, TypeVar

from overlay.statistics import Transformation
from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.language.query_ast import (
    ANY_NAME,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    NodeKind,
    Operator,
)
from yfilter.projection.needs import EVERYTHING, Kept, Kind, Need, Steps

# -------------------------------------------------------------------------------------------------
# Wider needs: what else a need could be told as, in fewer bytes, and what that would let through.
#
# A need is made wider in its condition: a path less, comparisons less, or none at all::
#
#     /feed/entry  if /*[@k = "a"] and /*/c[. > 5]  keep title
#       if /*[@k = "a"]                      without the second path
#       if /*[@k] and /*/c[. > 5]            without what its first path compares
#       always
#
#     /feed/entry  if /*[@k = "harbour"]     keep title
#       if /*[starts-with(@k, "harbou")]     without an end of what it compares with, as others
#       if /*[starts-with(@k, "har")]
#       if /*[@k]
#
# Whatever meets the condition meets the weaker ones; so wider needs keep all that it keeps.
#
# How much a need lets through is a guess from the form of its condition, as query optimisers make
# it where nothing is known of the data; it only says what is widened first.


PATHS_MAX = 8  # of a condition, that are looked at, the longest ones

_EQUAL, _COMPARED, _THERE, _BELOW = 0.01, 0.3, 0.5, 0.8  # shares of elements, guessed
_WEIGHTS = {Kind.NODE: 1, Kind.ATTRIBUTE: 1, Kind.VALUE: 4, Kind.SUBTREE: 16, Kind.PART: 8}


def weaker(condition: Conjunction, *, few: bool = False) -> Iterator[Conjunction | None]:
    """Conditions that hold wherever it does, and in more places; None, which always holds, last.

    ``few``: only those of them that say much less."""
    if len(condition.paths) == 1:
        (path,) = condition.paths
        for halved in (True,) if few else (False, True):
            beginning = _with_beginnings(path, halved)
            if beginning != path:
                yield Conjunction((beginning,))
    if few:
        yield None
        return
    for path in sorted(condition.paths, key=lambda path: -len(str(path)))[:PATHS_MAX]:
        others = tuple(other for other in condition.paths if other is not path)
        if others:
            yield Conjunction(others)
            bare = _without_comparisons(path)
            if bare != path and not _is_trivial(bare):
                yield Conjunction((*others, bare))
    bare_paths = tuple(map(_without_comparisons, condition.paths))
    bare_paths = tuple(path for path in bare_paths if not _is_trivial(path))
    if bare_paths and bare_paths != condition.paths:
        yield Conjunction(bare_paths)
    yield None


def share_of(condition: Conjunction | None) -> float:
    """Of bound elements those that meet a condition, guessed."""
    share = 1.0
    for path in condition.paths if condition is not None else ():
        share *= _BELOW ** (len(path.steps) - 1)
        for step in path.steps:
            for selection in step.selections:
                share *= _share_of_selection(selection)
    return share


def weight_of(need: Need) -> int:
    """Of what is kept of a bound element, guessed."""
    return sum(_WEIGHTS[kept.kind] for kept in need.kept)


def _with_beginnings(path: LinearPath, halved: bool) -> LinearPath:
    """With the beginnings of the strings that it compares for equality, or the beginnings of these:
    the first half, or all but the last character."""
    steps = []
    for step in path.steps:
        selections = tuple(_with_beginning(one, halved) for one in step.selections)
        steps.append(replace(step, selections=selections))
    return LinearPath(tuple(steps))


def _with_beginning(selection: Expression, halved: bool) -> Expression:
    known = selection.leaf_condition()
    match selection:
        case FunctionCall("starts-with", (path, Literal(str(text)))):
            pass
        case _ if known is not None and known.equals_text and known.is_single:
            path, text = known.path, str(known.value)
        case _:
            return selection  # also of several text nodes, which have no beginning
    if len(text) < 2:
        return selection
    return FunctionCall("starts-with", (path, Literal(text[: len(text) // 2 if halved else -1])))


def _without_comparisons(path: LinearPath) -> LinearPath:
    """Of its conditions, that attributes are there."""
    steps = []
    for step in path.steps:
        known = (one.leaf_condition() or one.value_list() for one in step.selections)
        left = (one.leaf for one in known if one is not None)
        there = tuple(one.path for one in left if one.kind is NodeKind.ATTRIBUTE)
        steps.append(replace(step, selections=there))
    return LinearPath(tuple(steps))


def _is_trivial(path: LinearPath) -> bool:
    """Whether it is just the bound element, or any root element."""
    return len(path.steps) == 1 and not path.steps[0].selections and path.steps[0].test == ANY_NAME


def _share_of_selection(selection: Expression) -> float:
    match selection:
        case FunctionCall("starts-with", (_, Literal(str(prefix)))):
            return max(2 * _EQUAL, 0.5 ** (1 + len(prefix)))
    if isinstance(selection, Comparison):
        return _EQUAL if selection.operator is Operator.EQ else _COMPARED
    return _COMPARED if selection.leaf() is None else _THERE


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Widening: which needs are told with weaker conditions, where there is no room for what they are.
#
# The needs of a group are a forest; what is told are its roots.  To widen is to put a need with a
# weaker condition above those that it covers::
#
#     /*[@k = "a"] and /*/c      /*[@k = "b"] and /*/d      /*[@k = "c"]         told, each
#                  \              /
#                /*[@k]  the two above are told as this                         told, with the third
#
# Of all that could be done first comes what saves most bytes for what more it lets through; both
# are of single needs, and a wider need that others are told as already costs nothing more.


SHARE_MIN = 0.5  # of what a wider need lets through, that counts as more in any case

NEEDS_MAX = 4096  # of which all choices are looked at; beyond that a few of each


class WideNeeds:
    """The needs of one group.  ``told`` are those that nothing is above, ``always`` the one of them
    without a condition; ``above`` gives the wider need that another is told as, ``below`` the
    others of such a one.

    What changes ``told`` gives what comes to it and what goes.
    """

    __slots__ = ("_needs", "above", "always", "below", "told")

    def __init__(self) -> None:
        self._needs: dict[Need, None] = {}
        self.told: dict[Need, None] = {}
        self.always: Need | None = None
        self.above: dict[Need, Need] = {}
        self.below: dict[Need, dict[Need, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._needs)

    def enter(self, need: Need) -> tuple[list[Need], list[Need]]:
        self._needs[need] = None
        if need in self.below:
            return [], []
        if self.below and need.condition is not None:
            for condition in weaker(need.condition):
                wide = Need(need.binding, condition, need.kept)
                if wide in self.below:
                    self.above[need] = wide
                    self.below[wide][need] = None
                    return [], []
        self._tell(need)
        return [need], []

    def leave(self, need: Need) -> tuple[list[Need], list[Need]]:
        del self._needs[need]
        while need not in self.below and need not in self._needs:
            wide = self.above.pop(need, None)
            if wide is None:
                self._untell(need)
                return [], [need]
            del self.below[wide][need]
            if self.below[wide]:
                break
            del self.below[wide]
            need = wide
        return [], []

    def widen(self, needs: Iterable[Need], wide: Need) -> tuple[list[Need], list[Need]]:
        """Tell needs that are told as a wider one."""
        gone = [need for need in needs if need != wide]
        for need in gone:
            self._untell(need)
            self.above[need] = wide
            self.below.setdefault(wide, {})[need] = None
        if wide in self.told or wide in self.above:
            return [], gone
        self._tell(wide)
        return [wide], gone

    def narrow(self, wide: Need) -> tuple[list[Need], list[Need]]:
        """Undo ``widen``; nothing may be above it."""
        come = list(self.below.pop(wide))
        for need in come:
            del self.above[need]
            self._tell(need)
        if wide in self._needs:
            return come, []
        self._untell(wide)
        return come, [wide]

    @property
    def widened(self) -> int:
        """How many needs are told by a wider one."""
        return sum(need in self.above for need in self._needs)

    def bytes_of_narrow(self, wide: Need) -> int:
        """How many bytes more would be told."""
        more = sum(len(need.text) for need in self.below[wide])
        return more if wide in self._needs else more - len(wide.text)

    def _tell(self, need: Need) -> None:
        self.told[need] = None
        if need.condition is None:
            self.always = need

    def _untell(self, need: Need) -> None:
        del self.told[need]
        if need.condition is None:
            self.always = None


class _Choice:
    """A wider need, as a condition, and those that would be told as it."""

    __slots__ = ("bytes", "condition", "group", "needs", "share", "shares", "size", "weight")

    def __init__(self, group: WideNeeds, of: Need, condition: Conjunction | None) -> None:
        self.group = group
        self.condition = condition
        self.needs: dict[Need, None] = {}
        self.bytes = 0
        self.shares = 0.0
        self.share = share_of(condition)
        self.weight = weight_of(of)
        self.size = len(of.text) - len(_text(of.condition)) + len(_text(condition))

    def change(self, need: Need, sign: int) -> None:
        if sign > 0:
            self.needs[need] = None
        else:
            del self.needs[need]
        self.bytes += sign * len(need.text)
        self.shares += sign * share_of(need.condition)

    @property
    def saved(self) -> int:
        return self.bytes - self.size

    @property
    def more(self) -> float:
        """What more is let through."""
        return self.weight * max(self.share - self.shares, SHARE_MIN * self.share)


class Choices:
    """All that could be widened, the best first.

    ``add`` what is told; each that is given by ``best`` must be carried out, and its wide need
    added if that is told now.
    """

    def __init__(self, bytes_wanted: int, needs: int) -> None:
        """``bytes_wanted``: to save more at once is no better; ``needs``: about how many there are
        to be looked at, at once."""
        self._bytes_wanted = bytes_wanted
        self._few = needs > NEEDS_MAX
        self._choices: dict[tuple[WideNeeds, Conjunction | None], _Choice] = {}
        self._of: dict[Need, list[_Choice]] = {}
        self._waiting: list[tuple[float, int, _Choice]] = []  # a heap
        self._order = count()

    def add(self, group: WideNeeds, needs: Iterable[Need]) -> None:
        changed: dict[_Choice, None] = {}
        for need in needs:
            if need.condition is None:
                continue
            for condition in dict.fromkeys(weaker(need.condition, few=self._few)):
                choice = self._choices.get((group, condition))
                if choice is None:
                    choice = self._choices[group, condition] = _Choice(group, need, condition)
                choice.change(need, 1)
                self._of.setdefault(need, []).append(choice)
                changed[choice] = None
        for choice in changed:
            self._push(choice)

    def best(self) -> tuple[WideNeeds, tuple[Need, ...], Conjunction | None] | None:
        """A group, what of it is to be told with a condition, and this; None where nothing saves
        anything."""
        while self._waiting:
            benefit, _, choice = heappop(self._waiting)
            if choice.saved <= 0:
                continue
            if -benefit > self._benefit(choice):
                self._push(choice)
                continue
            needs = tuple(choice.needs)
            for need in needs:
                for other in self._of.pop(need):
                    other.change(need, -1)
            return choice.group, needs, choice.condition
        return None

    def _push(self, choice: _Choice) -> None:
        if choice.saved > 0:
            heappush(self._waiting, (-self._benefit(choice), next(self._order), choice))

    def _benefit(self, choice: _Choice) -> float:
        """Bytes saved, for what more is let through."""
        return min(choice.saved, self._bytes_wanted) / choice.more


def _text(condition: Conjunction | None) -> str:
    return "" if condition is None else condition.text


# -------------------------------------------------------------------------------------------------


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

    @property
    def widened(self) -> int:
        """How many needs are told by a wider one."""
        return sum(group.needs.widened for group in self._groups()) + self._everything

    def report(self, said: Transformation) -> None:
        said.needs_widened += self.widened

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
