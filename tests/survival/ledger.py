"""Ledger: what was published and accepted, what each profile got, and whether that is the same."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

GROUPS = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a profile wants: all messages, or those of one group."""

    group: int | None

    @property
    def text(self) -> str:
        return "/m" if self.group is None else f'/m[@g = "{self.group}"]'

    def takes(self, index: int) -> bool:
        return self.group is None or group_of(index) == self.group


@dataclass(slots=True)
class Verdict:
    """Counts of messages of the acknowledged and of deliveries; see ``Ledger.verdict``."""

    accepted: int = 0
    delivered: int = 0
    lost: int = 0
    doubled: int = 0
    disordered: int = 0
    wrong: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.disordered or self.wrong)


def group_of(index: int) -> int:
    return index * 2_654_435_761 % 2**32 % GROUPS


def message(index: int, padding: int) -> bytes:
    """The message ``index`` of a source."""
    return b'<m i="%d" g="%d">%b</m>' % (index, group_of(index), b"x" * padding)


def index_in(text: bytes) -> int:
    return int(text[text.index(b'"') + 1 : text.index(b'"', 6)])


class Ledger:
    """Messages of a source are counted from 0 as they are published; ``accepted`` holds those that
    were acknowledged as accepted, in that order, ``uncertain`` those of which nothing was heard."""

    def __init__(self) -> None:
        self.accepted: dict[str, array[int]] = {}
        self.uncertain: dict[str, set[int]] = {}
        self._wanted: dict[str, Wanted] = {}
        self._taken: dict[str, dict[str, array[int]]] = {}
        self.deliveries = 0

    def add_source(self, source: str) -> None:
        self.accepted[source] = array("Q")
        self.uncertain[source] = set()

    def add_profile(self, profile: str, wanted: Wanted) -> None:
        """Before the first message."""
        self._wanted[profile] = wanted
        self._taken[profile] = {}

    def take(self, profile: str, source: str, text: bytes) -> None:
        """A delivery."""
        self.deliveries += 1
        self._taken[profile].setdefault(source, array("Q")).append(index_in(text))

    def due(self) -> int:
        """How many deliveries there must be for all that was accepted."""
        groups = [Counter(map(group_of, accepted)) for accepted in self.accepted.values()]
        return sum(
            sum(count.values()) if wanted.group is None else count[wanted.group]
            for count in groups
            for wanted in self._wanted.values()
        )

    def is_complete(self) -> bool:
        """Whether each that was accepted was taken; a delivery may be of an uncertain one."""
        return self.deliveries >= self.due() and not self.verdict().lost

    def verdict(self) -> Verdict:
        """What is missing, twice, out of order, or not wanted, over all profiles."""
        verdict = Verdict(sum(map(len, self.accepted.values())), self.deliveries)
        for profile, wanted in self._wanted.items():
            for source, accepted in self.accepted.items():
                taken = self._taken[profile].get(source, array("Q"))
                due = [index for index in accepted if wanted.takes(index)]
                if list(taken) == due:
                    continue
                where = f"{profile} ({wanted.text}) of {source}"
                self._compare(verdict, where, taken, due, self.uncertain[source], wanted)
        return verdict

    def _compare(
        self,
        verdict: Verdict,
        where: str,
        taken: array[int],
        due: list[int],
        uncertain: set[int],
        wanted: Wanted,
    ) -> None:
        count = Counter(taken)
        lost = set(due) - count.keys()
        doubled = {index for index, times in count.items() if times > 1}
        may = uncertain.union(due)
        wrong = {index for index in count if index not in may or not wanted.takes(index)}
        disordered = [after for before, after in pairwise(taken) if after < before]
        verdict.lost += len(lost)
        verdict.doubled += sum(count[index] - 1 for index in doubled)
        verdict.wrong += len(wrong)
        verdict.disordered += len(disordered)
        for what, which in (
            *(("lost", lost), ("doubled", doubled), ("wrong", wrong)),
            ("disordered", disordered),
        ):
            if which:
                first, last = min(which), max(which)
                verdict.examples.append(f"{where}: {what} {len(which)}, from {first} to {last}")
