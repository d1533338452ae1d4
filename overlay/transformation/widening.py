"""Widening: which needs are told with weaker conditions, where there is no room for what they are.

The needs of a group are a forest; what is told are its roots.  To widen is to put a need with a
weaker condition above those that it covers::

    /*[@k = "a"] and /*/c      /*[@k = "b"] and /*/d      /*[@k = "c"]          told, each
                 \\              /
               /*[@k]  the two above are told as this                           told, with the third

Of all that could be done first comes what saves most bytes for what more it lets through; both are
of single needs, and a wider need that others are told as already costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count

from yfilter.engine.linear_paths import Conjunction
from yfilter.projection.needs import Need
from yfilter.projection.wider_needs import share_of, weaker, weight_of

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
