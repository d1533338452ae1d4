"""Delta: what changes in a routing query, and how it travels between brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from yfilter.engine.linear_paths import Conjunction


@dataclass(frozen=True, slots=True)
class Delta:
    """Disjuncts that come and disjuncts that go."""

    added: tuple[Conjunction, ...] = ()
    removed: tuple[Conjunction, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class DeltaSum:
    """Changes one after the other, as one: what comes and goes again is not mentioned."""

    __slots__ = ("_added", "_removed")

    def __init__(self) -> None:
        self._added: dict[Conjunction, None] = {}
        self._removed: dict[Conjunction, None] = {}

    def add(self, disjunct: Conjunction) -> None:
        if disjunct in self._removed:
            del self._removed[disjunct]
        else:
            self._added[disjunct] = None

    def remove(self, disjunct: Conjunction) -> None:
        if disjunct in self._added:
            del self._added[disjunct]
        else:
            self._removed[disjunct] = None

    def update(self, delta: Delta) -> None:
        for disjunct in delta.added:
            self.add(disjunct)
        for disjunct in delta.removed:
            self.remove(disjunct)

    def take(self) -> Delta:
        """The sum, from which on the next one counts."""
        delta = Delta(tuple(self._added), tuple(self._removed))
        self._added.clear()
        self._removed.clear()
        return delta


def texts(disjuncts: Iterable[Conjunction]) -> list[str]:
    """Disjuncts as they travel between brokers."""
    return [disjunct.text for disjunct in disjuncts]


def parse_delta(
    added: Iterable[str],
    removed: Iterable[str],
    parse: Callable[[str], Conjunction] = Conjunction.parse,
) -> Delta:
    """What ``texts`` made of a delta; ProfileRefused when it is not one."""
    return Delta(tuple(map(parse, added)), tuple(map(parse, removed)))
