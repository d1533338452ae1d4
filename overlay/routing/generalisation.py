"""Generalisation: fewer, wider disjuncts when a routing query outgrows its budget (section 4.2.1).

A wider disjunct stands for several, and lets a few messages more pass, never one less.  What may
take the place of some disjuncts:

=====================  ==========================================================================
method                 ``/a/b[@x = "3"][@y]/c and /a/d[@z = "u"]`` becomes
=====================  ==========================================================================
drop one part          ``/a/b[@x = "3"]/c and /a/d[@z = "u"]``, ``/a/b[@x = "3"][@y]/c``, ...
a run of steps to //   ``//c``
keep one equality      ``/a/b[@x = "3"]``, ``//b[@x = "3"]``, ``//*[@x = "3"]``
a list of values       each of these, and the whole, with ``@x = ("3", "5", "9")``
a range of numbers     ``/a/b[@x >= 3][@x <= 9][@y]/c and /a/d[@z = "u"]`` for 3, 5 and 9
=====================  ==========================================================================

Which ones: those that save most for what they let pass.  A message passes for nothing when the
wide disjunct holds and none of those that it stands for does; how often that is, is known where it
was measured (``routing_table.py``), else counted on a sample of messages (``message_sample.py``),
of which each disjunct says once on which it holds; that finds what matches together, too.  Without
a sample it is estimated with conditions taken to be independent (``_Shares``): an equality is
taken to hold rarely whichever it is, and only whole numbers can be seen to lie close together.

What takes the place of disjuncts of the graph reading is of it, too: its paths begin with the root
element of graphs, and ``//`` comes behind that (``generalisation.py``).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import TypeAlias

from formats.graph.striped import (
    BLANK,
    DATATYPE,
    GRAPH_BLANK,
    GRAPH_IRI,
    GRAPH_NAMESPACE,
    IRI_OBJECT,
    IRI_SUBJECT,
    LANGUAGE,
    PROPERTY_IRI,
    SUBJECT,
)
from overlay.routing.message_sample import MessageSample
from yfilter.engine.linear_paths import (
    ANY_DOCUMENT,
    ANY_GRAPH,
    Conjunction,
    LinearPath,
    LinearStep,
    without_implied,
)
from yfilter.engine.readings import Reading, reading_of
from yfilter.language.numbers import parse_double
from yfilter.language.query_ast import (
    ANY,
    ANY_NAME,
    Comparison,
    Expression,
    LeafCondition,
    Literal,
    NameTest,
    NodeKind,
    Operator,
    Sequence,
)
from yfilter.language.query_text import unparse

# -------------------------------------------------------------------------------------------------
# Of striped graphs: which of their values have an order, and which say next to nothing.
#
# IRIs, blank nodes and languages have none that means anything, so there are no ranges of them.
# That a text is in a language, or that a graph has a subject, holds of nearly all messages.


_UNORDERED = frozenset(
    (IRI_SUBJECT, IRI_OBJECT, GRAPH_IRI, PROPERTY_IRI, DATATYPE, BLANK, GRAPH_BLANK, LANGUAGE)
)
_SUBJECTS = *ANY_GRAPH.paths[0].steps, LinearStep(False, NameTest(GRAPH_NAMESPACE, SUBJECT))
_ALWAYS = frozenset(step.test for step in _SUBJECTS)

ANYTHING = frozenset((ANY_DOCUMENT.text, ANY_GRAPH.text, str(LinearPath(_SUBJECTS))))
"""The texts of what all messages of a reading satisfy."""


def reading_of_all(paths: tuple[LinearPath, ...]) -> Reading:
    """The reading of a conjunction of them."""
    return max(reading_of(path.steps) for path in paths)


def root_steps(path: LinearPath) -> tuple[LinearStep, ...]:
    """What a path of the same reading has to begin with."""
    return ANY_GRAPH.paths[0].steps if reading_of(path.steps) is Reading.GRAPH else ()


def has_order(leaf: LeafCondition, reading: Reading) -> bool:
    """Whether a range of the values of a leaf says anything."""
    return reading is Reading.DOCUMENT or _attribute(leaf) not in _UNORDERED


def is_telling(leaf: LeafCondition, reading: Reading) -> bool:
    """Whether an equality of a leaf holds of few messages."""
    return reading is Reading.DOCUMENT or _attribute(leaf) != LANGUAGE


def is_everywhere(test: NameTest, reading: Reading) -> bool:
    """Whether all messages of a reading have an element of a name."""
    return reading is Reading.GRAPH and test in _ALWAYS


def _attribute(leaf: LeafCondition) -> str:
    """The name of an attribute in no namespace, "" for anything else."""
    test = leaf.test if leaf.kind is NodeKind.ATTRIBUTE else None
    return "" if test is None or test.namespace else test.local


# -------------------------------------------------------------------------------------------------


# What a disjunct costs in a table beside its text, its syntax tree and its places in forest and
# engine: measured, see docs/benchmarks.md.
DISJUNCT_BYTES = 5 * 1024


@dataclass(frozen=True, slots=True)
class Budget:
    """How large a routing query may become; ``bytes_max`` counts ``disjunct_bytes``."""

    disjuncts_max: int
    bytes_max: int

    def allows(self, disjuncts: int, size: int, share: float = 1.0) -> bool:
        return disjuncts <= share * self.disjuncts_max and size <= share * self.bytes_max

    def weight(self, disjunct: Conjunction) -> float:
        """The part of the budget that a disjunct takes."""
        return 1 / self.disjuncts_max + disjunct_bytes(disjunct) / self.bytes_max


UNBOUNDED = Budget(2**62, 2**62)


def disjunct_bytes(disjunct: Conjunction) -> int:
    """What a disjunct costs in a routing table, in bytes."""
    return DISJUNCT_BYTES + len(disjunct.text)


@dataclass(frozen=True, slots=True)
class Wider:
    """A disjunct in the place of several; ``cost``: the share of all messages that are thought to
    pass for nothing because of it."""

    disjunct: Conjunction
    cost: float


def generalise(
    disjuncts: SequenceOf[Conjunction],
    budget: Budget,
    excess: float,
    cost_of: Callable[[Conjunction, float], float] = lambda disjunct, cost: cost,
    sample: MessageSample | None = None,
    cost_max: float = 1.0,
) -> Iterator[Wider | None]:
    """Wider disjuncts that take the place of some of ``disjuncts`` and make their weight in
    ``budget`` less by ``excess`` or more, if that can be done in one round; best first.

    Each covers at least two of them; none when nothing can be said about any two of them that is
    less than everything.  ``cost_of``: what is known of the cost of a disjunct, given what it is
    thought to be.  None between them after some work, so that the caller can do something else.
    """
    left = set(range(len(disjuncts)))
    weights = [budget.weight(disjunct) for disjunct in disjuncts]

    def weighed(group: _Group) -> _Group:
        group.weight = budget.weight(group.made)
        group.cost = cost_of(group.made, group.cost)
        return group

    def score(group: _Group) -> float:
        saving = sum(weights[member] for member in group.members if member in left) - group.weight
        return -min(saving, excess) / group.cost

    costs = _Costs(disjuncts, sample)
    heap: list[tuple[float, int, _Group]] = []
    for order, group in enumerate(_groups(disjuncts, costs)):
        if group is not None and weighed(group).cost <= cost_max:
            heap.append((score(group), order, group))
        if group is None or order % _GROUPS_A_BREATH == 0:
            yield None
    heapq.heapify(heap)
    while heap and excess > 0:
        before, order, group = heapq.heappop(heap)
        choices = [choice for choice in group.choices if choice.number in left]
        if 1 < len(choices) < len(group.choices):  # others have taken some of its members
            group = weighed(_list_group(choices, costs))
        now = score(group)
        if now >= 0:
            continue
        if now > before and heap and now > heap[0][0]:
            heapq.heappush(heap, (now, order, group))
            continue
        excess += group.weight - sum(weights[member] for member in left.intersection(group.members))
        left.difference_update(group.members)
        yield Wider(group.made, group.cost)


_GROUPS_A_BREATH = 16


@dataclass(slots=True, eq=False)
class _Group:
    """Disjuncts (their numbers) that ``made`` covers; ``cost``: the messages that pass for
    nothing, as a share of all; ``choices``: what a list is made of, one for each member."""

    members: list[int]
    made: Conjunction
    cost: float
    choices: list[_Choice] = field(default_factory=list)
    weight: float = 0.0


_MISSED_MIN = 1e-4  # so that of two that seem to cost nothing the narrower one is better
_Paths: TypeAlias = tuple[LinearPath, ...]


class _Texts:
    """The texts of conjunctions that are not made yet; a step is written once."""

    def __init__(self) -> None:
        self._steps: dict[LinearStep, str] = {}

    def of(self, paths: _Paths) -> str:
        texts = {"".join(map(self._of_step, path.steps)) for path in paths}
        return " and ".join(sorted(texts))

    def _of_step(self, step: LinearStep) -> str:
        text = self._steps.get(step)
        if text is None:
            text = self._steps[step] = str(LinearPath((step,)))
        return text


def _groups(disjuncts: SequenceOf[Conjunction], costs: _Costs) -> Iterator[_Group | None]:
    """All groups of at least two; None now and then in between."""
    texts = _Texts()
    wider: dict[str, tuple[_Paths, list[int]]] = {}
    choices: dict[tuple[str, LeafCondition], dict[int, _Choice]] = defaultdict(dict)
    for number, disjunct in enumerate(disjuncts):
        wider_paths = map(without_implied, _wider(disjunct.paths))
        candidates = {texts.of(paths): paths for paths in wider_paths}
        for text, paths in candidates.items():
            if text not in ANYTHING | {disjunct.text} and reading_of_all(paths) is disjunct.reading:
                wider.setdefault(text, (paths, []))[1].append(number)
        for choice in _choices(number, disjunct):
            choices[choice.pattern, choice.leaf].setdefault(number, choice)
        yield None
    shared = {key: list(found.values()) for key, found in choices.items() if len(found) > 1}
    made = [(Conjunction(paths), members) for paths, members in wider.values() if len(members) > 1]
    asked = (choice.made for found in shared.values() for choice in found)
    yield from costs.measure(chain(disjuncts, (one for one, _ in made), asked))
    for one, members in made:
        yield _Group(members, one, costs.of_wider(one, members))
    for found in shared.values():
        yield from _lists(found, costs)
        yield from _ranges(found, costs)


# --- structure and parts ----------------------------------------------------------------------


def _wider(paths: _Paths) -> Iterator[_Paths]:
    """What a disjunct may become, values as they are."""
    for at, path in enumerate(paths):
        if len(paths) > 1:
            yield paths[:at] + paths[at + 1 :]
        for narrower in _without_a_part(path):
            yield (*paths[:at], narrower, *paths[at + 1 :])
        yield from ((kept,) for kept in _essences(path))


def _without_a_part(path: LinearPath) -> Iterator[LinearPath]:
    """The path without one of its conditions, one of its names, or its last step."""
    for at, step in enumerate(path.steps):
        for condition in step.selections:
            others = tuple(other for other in step.selections if other != condition)
            yield _with_step(path, at, replace(step, selections=others))
        if step.test != ANY_NAME and at < len(path.steps) - 1:
            yield _with_step(path, at, replace(step, test=ANY_NAME))
    if len(path.steps) > 1:
        yield LinearPath(path.steps[:-1])


def _essences(path: LinearPath) -> Iterator[LinearPath]:
    """One equality alone; the last name alone."""
    for at, step in enumerate(path.steps):
        for condition in step.selections:
            if _asked_values(condition) is not None:
                yield from _alone(path, at, condition)
    start = root_steps(path)
    named = [step.test for step in path.steps[len(start) :] if step.test.local != ANY]
    if named and not is_everywhere(named[-1], reading_of(path.steps)):
        yield LinearPath((*start, LinearStep(True, named[-1])))


def _alone(path: LinearPath, at: int, condition: Expression) -> Iterator[LinearPath]:
    """One condition with the way to it, with its element only, and with nothing; none for one that
    would say next to nothing."""
    asked, start = _asked_values(condition), root_steps(path)
    if at < len(start) or (asked and not is_telling(asked[0], reading_of(path.steps))):
        return
    step = path.steps[at]
    bare = tuple(LinearStep(above.descendant, above.test) for above in path.steps[:at])
    yield LinearPath((*bare, replace(step, selections=(condition,))))
    yield LinearPath((*start, LinearStep(True, step.test, (condition,))))
    yield LinearPath((*start, LinearStep(True, ANY_NAME, (condition,))))


def _with_step(path: LinearPath, at: int, step: LinearStep) -> LinearPath:
    return LinearPath((*path.steps[:at], step, *path.steps[at + 1 :]))


# --- values -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Choice:
    """``leaf`` is one of ``values`` at a step of a path of ``made``, which disjunct ``number`` is
    (``is_whole``), or a wider one with that equality; ``pattern``: all the rest."""

    number: int
    made: Conjunction
    place: tuple[int, int, Expression]
    leaf: LeafCondition
    values: frozenset[str]
    pattern: str
    is_whole: bool

    def with_values(self, values: Iterable[str]) -> Conjunction:
        """With a list of other values."""
        parts = tuple(map(Literal, sorted(values)))
        return self._with((Comparison(self.leaf.path, Operator.EQ, Sequence(parts)),))

    def as_range(self, low: str, high: str) -> Conjunction:
        """With a range of numbers instead."""
        return self._with(
            (_bound(self.leaf, Operator.GE, low), _bound(self.leaf, Operator.LE, high))
        )

    def _with(self, conditions: tuple[Expression, ...]) -> Conjunction:
        path_at, step_at, condition = self.place
        path = self.made.paths[path_at]
        step = path.steps[step_at]
        others = tuple(other for other in step.selections if other != condition)
        changed = _with_step(path, step_at, replace(step, selections=others + conditions))
        paths = self.made.paths
        return Conjunction((*paths[:path_at], changed, *paths[path_at + 1 :]))


def _choices(number: int, disjunct: Conjunction) -> Iterator[_Choice]:
    """Each equality of a disjunct, and of what it becomes when only that one is kept."""
    for path_at, path in enumerate(disjunct.paths):
        for step_at, step in enumerate(path.steps):
            for condition in step.selections:
                asked = _asked_values(condition)
                if asked is None:
                    continue
                places = [(disjunct, path_at, step_at)]
                for kept in _alone(path, step_at, condition):
                    places.append((Conjunction((kept,)), 0, len(kept.steps) - 1))
                for made, *at in places:
                    pattern = made.text.replace(unparse(condition), "=", 1)
                    place = (at[0], at[1], condition)
                    yield _Choice(number, made, place, *asked, pattern, made is disjunct)


def _asked_values(condition: Expression) -> tuple[LeafCondition, frozenset[str]] | None:
    """Of an equality with a text, or a list of texts."""
    listed = condition.value_list()
    if listed is not None:
        return listed.leaf, listed.values
    known = condition.leaf_condition()
    if known is None or not known.equals_text:
        return None
    return known.leaf, frozenset((str(known.value),))


_LISTED_MAX = 64  # values; the index looks up each


def _lists(choices: list[_Choice], costs: _Costs) -> Iterator[_Group]:
    """Disjuncts that differ in one value: those whose value costs least, then more and more."""
    ordered = sorted(choices, key=lambda choice: (costs.of_list([choice]), sorted(choice.values)))
    while len(ordered) > 1:
        count, values = 0, set[str]()
        for choice in ordered:
            if len(values | choice.values) > _LISTED_MAX:
                break
            values |= choice.values
            count += 1
        lengths = [2**power for power in range(1, count.bit_length()) if 2**power < count]
        for length in (*lengths, count) if count > 1 else ():
            yield _list_group(ordered[:length], costs)
        ordered = ordered[max(1, count) :]


def _list_group(choices: list[_Choice], costs: _Costs) -> _Group:
    values = frozenset[str]().union(*(choice.values for choice in choices))
    one = choices[0]
    made = one.with_values(values) if len(values) > 1 else one.made
    return _Group([choice.number for choice in choices], made, costs.of_list(choices), choices)


def _ranges(choices: list[_Choice], costs: _Costs) -> Iterator[_Group]:
    """Disjuncts that are equal but for one number, halved again and again at the widest gap."""
    by_value: dict[str, list[int]] = defaultdict(list)
    if not has_order(choices[0].leaf, choices[0].made.reading):
        return
    for choice in choices:
        if choice.is_whole and len(choice.values) == 1:
            (value,) = choice.values
            if _is_numeric(value):
                by_value[value].append(choice.number)
    if len(by_value) < _RANGE_VALUES_MIN:
        return
    one = next(choice for choice in choices if choice.is_whole)
    ordered = sorted(by_value, key=float)
    pending = [(0, len(ordered))]
    while pending:
        start, end = pending.pop()
        if end - start < _RANGE_VALUES_MIN:
            continue
        low, high = ordered[start], ordered[end - 1]
        members = [number for value in ordered[start:end] for number in by_value[value]]
        yield _Group(members, one.as_range(low, high), costs.of_range(one, low, high, end - start))
        middle = max(
            range(start + max(1, (end - start) // 4), end - max(1, (end - start) // 4) + 1),
            key=lambda at: float(ordered[at]) - float(ordered[at - 1]),
        )
        pending += [(start, middle), (middle, end)]


_RANGE_VALUES_MIN = 2


def _bound(leaf: LeafCondition, relation: Operator, value: str) -> Expression:
    """``leaf >= value``."""
    return Comparison(leaf.path, relation, Literal(_number(value)))


def _number(value: str) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < _EXACT_BELOW else number


def _is_numeric(value: str) -> bool:
    number = parse_double(value)
    return number is not None and abs(number) < _NUMBERS_BELOW


_EXACT_BELOW = 2**53
_NUMBERS_BELOW = 1e300  # so that neither NaN nor an infinity is written


# --- how often a disjunct holds ---------------------------------------------------------------

# Of what a message says nothing is known, so what could hold of most is taken to do so: to think
# that too often costs a better choice, to think it too seldom lets every message pass.
_SHARE_OF_RANGE, _SHARE_OF_CONDITION = 0.95, 0.9
_SHARE_OF_NAME = 0.95  # so that of two paths the one that says more is the narrower
_VALUES_LEAST = 200  # of any leaf
_NUMBERS_BETWEEN = 10.0  # values that exist for each that is asked for


class _Costs:
    """The share of messages that a group lets pass for nothing: counted on the sample as far as
    that goes, else guessed."""

    def __init__(self, disjuncts: SequenceOf[Conjunction], sample: MessageSample | None) -> None:
        self._disjuncts = disjuncts
        self._guessed = _Shares(disjuncts)
        self._sample = sample if sample is not None and len(sample) >= _SAMPLED_MIN else None
        self._holdings: dict[Conjunction, int] = {}

    def measure(self, disjuncts: Iterable[Conjunction]) -> Iterator[None]:
        """Find out on which messages of the sample they hold, in steps."""
        if self._sample is not None:
            for disjunct, holding in self._sample.holdings(disjuncts):
                self._holdings[disjunct] = holding
                yield None

    def of_wider(self, made: Conjunction, members: SequenceOf[int]) -> float:
        share = self._guessed.of(made)
        parts = [min(1.0, self._guessed.of(self._disjuncts[member]) / share) for member in members]
        guess = share * max(prod(1 - part for part in parts), _MISSED_MIN)
        return self._useless(self._holdings.get(made, 0), members, guess)

    def of_list(self, choices: SequenceOf[_Choice]) -> float:
        holding = 0
        for choice in choices:
            holding |= self._holdings.get(choice.made, 0)
        wider = (self._guessed.of(choice.made) for choice in choices if not choice.is_whole)
        guess = max(min(1.0, sum(wider)), _MISSED_MIN)
        return self._useless(holding, [choice.number for choice in choices], guess)

    def of_range(self, one: _Choice, low: str, high: str, asked: int) -> float:
        """``asked``: how many values of the range are."""
        share = self._guessed.without_equality(one.made, one.leaf)
        return share * self._guessed.missed_between(one.leaf, low, high, asked)

    def _useless(self, holding: int, members: SequenceOf[int], guess: float) -> float:
        if self._sample is None:
            return guess
        for member in members:
            holding &= ~self._holdings[self._disjuncts[member]]
        counted = holding.bit_count() + _GUESS_WEIGHT * guess
        return max(counted / (len(self._sample) + _GUESS_WEIGHT), _MISSED_MIN)


_SAMPLED_MIN = 32  # messages
_GUESS_WEIGHT = 1.0  # a guess counts as so many messages


class _Shares:
    """The share of messages that satisfy a disjunct, guessed from the disjuncts of a table."""

    def __init__(self, disjuncts: Iterable[Conjunction]) -> None:
        values: dict[LeafCondition, set[str]] = defaultdict(set)
        for disjunct in disjuncts:
            for path in disjunct.paths:
                for step in path.steps:
                    for leaf, asked in filter(None, map(_asked_values, step.selections)):
                        values[leaf] |= asked
        self._values = {leaf: max(_VALUES_LEAST, len(found)) for leaf, found in values.items()}
        self._known: dict[Conjunction, float] = {}

    def of(self, disjunct: Conjunction) -> float:
        known = self._known.get(disjunct)
        if known is None:
            known = self._known[disjunct] = prod(map(self._of_path, disjunct.paths))
        return known

    def without_equality(self, disjunct: Conjunction, leaf: LeafCondition) -> float:
        """The disjunct, had it not one equality of this leaf."""
        return self.of(disjunct) * self._values_of(leaf)

    def missed_between(self, leaf: LeafCondition, low: str, high: str, asked: int) -> float:
        """The share of the values of a leaf that lie in a range without being asked for."""
        width = float(high) - float(low) + 1
        whole = float(low).is_integer() and float(high).is_integer()
        there = width if whole else max(width, asked * _NUMBERS_BETWEEN)
        return max(min(1.0, (there - asked) / self._values_of(leaf)), _MISSED_MIN)

    def _values_of(self, leaf: LeafCondition) -> int:
        return self._values.get(leaf, _VALUES_LEAST)

    def _of_path(self, path: LinearPath) -> float:
        reading = reading_of(path.steps)
        named = sum(
            step.test != ANY_NAME and not is_everywhere(step.test, reading) for step in path.steps
        )
        return _SHARE_OF_NAME**named * prod(
            self._of_condition(condition, reading)
            for step in path.steps
            for condition in step.selections
        )

    def _of_condition(self, condition: Expression, reading: Reading) -> float:
        asked = _asked_values(condition)
        if asked is not None and not is_telling(asked[0], reading):
            return _SHARE_OF_CONDITION
        if asked is not None:
            return min(_SHARE_OF_RANGE, len(asked[1]) / self._values_of(asked[0]))
        known = condition.leaf_condition()
        if known is None or known.operator is None:
            return _SHARE_OF_CONDITION
        return _SHARE_OF_RANGE
