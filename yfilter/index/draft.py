# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Draft: one query as numbers, before anything of it is in the index.

Profiles of the same shape differ in their words only, so what is asked of an element is analysed
once for each shape: a *recipe* says which words become which names, attributes and values.  A way
is a list of steps, each with its recipe and words, which the draft carries out::

    /a[@id = "x"][b]           step  False  ("", "a")  recipe  ("id", "x", "b")

    recipe      2   ATOM 0 ~0 0 1   NESTED 1  False ~1 2 0       constants "", ""

    step        DESCENDANT SYMBOL CONDITION NEXT                 conditions and ways are chains
    condition   KIND A VALUE NEXT CHECK_A CHECK_B               A: attribute, or first step of a way

Numbers in a recipe, in the order of the tree::

    conditions  count  condition …
    condition   kind attribute value          attribute  0 and a name, TEXT_NODE or STRING_VALUE
                NESTED count  step …          name       namespace local
                VERIFIED n                    what makes the condition of the words is constant n
    step        is_descendant name  conditions

A namespace, a local name or a value is the number of a word, or ``~n`` for constant n of the
recipe; no value stands after EXISTS.  Symbols and attributes are held by the draft until the query
holds them; atoms, numbers and records are made when it is known what for (see query_writer.py).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Callable, Sequence
from typing import TypeAlias

from yfilter.index.columns import grown, ints
from yfilter.index.symbols import Name
from yfilter.language.query_ast import Expression
from yfilter.language.shapes import Word

if cython.compiled:
    from cython.cimports.yfilter.index.symbols import SymbolTable
else:
    from yfilter.index.residual_rows import CHECK_EXISTS, CHECK_NESTED, CHECK_VERIFIED
    from yfilter.index.symbols import SymbolTable

if not cython.compiled:
    STEP_DESCENDANT, STEP_SYMBOL, STEP_CONDITION, STEP_NEXT, STEP_WIDTH = range(5)

    CONDITION_KIND, CONDITION_A, CONDITION_VALUE, CONDITION_NEXT = range(4)
    CONDITION_CHECK_A, CONDITION_CHECK_B, CONDITION_WIDTH = range(4, 7)

# What a recipe has of its own: words, keys of text tests, what fills verified conditions.
Constant: TypeAlias = Word | bytes | Callable[[tuple[Word, ...]], Expression]


class Recipe:
    """What is asked of an element, for all words; see above."""

    def __init__(self, codes: Sequence[int], constants: list[Constant]) -> None:
        self.codes = ints(len(codes))
        self.constants = constants
        for place, code in enumerate(codes):
            self.codes[place] = code


# Descendant or child, name test, what is asked of the element and the words for that.
FilledStep: TypeAlias = "tuple[bool, Name, tuple[Recipe, tuple[Word, ...]] | None]"
FilledWay: TypeAlias = "list[FilledStep]"


class Draft:
    """``fill`` it with the ways of a query; rows are numbered from 1."""

    def __init__(self, symbols: SymbolTable) -> None:
        self.steps = ints(STEP_WIDTH * 16)
        self.conditions = ints(CONDITION_WIDTH * 16)
        self.ways = ints(16)  # the first step of each
        self.way_count = 0
        self.values: list[Word | bytes | Expression] = []
        self._symbols = symbols
        self._step_count = 0
        self._condition_count = 0
        self._codes = ints(0)
        self._at = 0
        self._constants: list[Constant] = []
        self._words: tuple[Word, ...] = ()

    def fill(self, ways: list[FilledWay]) -> cython.int:
        """The ways of a query, whose symbols and attributes are held from now on."""
        self.way_count = 0
        self.values.clear()
        self._step_count = 0
        self._condition_count = 0
        for way in ways:
            self._add_way(way)
        return 0

    def new_condition(
        self, kind: cython.int, a: cython.int, value: cython.int, following: cython.int
    ) -> cython.int:
        """A row of ``conditions``."""
        row: cython.int
        self._condition_count += 1
        row = CONDITION_WIDTH * self._condition_count
        if row + CONDITION_WIDTH > len(self.conditions):
            self.conditions = grown(self.conditions, 2 * row)
        self.conditions[row + CONDITION_KIND] = kind
        self.conditions[row + CONDITION_A] = a
        self.conditions[row + CONDITION_VALUE] = value
        self.conditions[row + CONDITION_NEXT] = following
        return self._condition_count

    def _add_way(self, way: FilledWay) -> cython.int:
        step: cython.int
        conditions: cython.int
        last: cython.int = 0
        recipe: Recipe
        if self.way_count == len(self.ways):
            self.ways = grown(self.ways, 2 * self.way_count)
        for descendant, test, asked in way:
            step = self._new_step(descendant, self._symbols.acquire(test))
            if last:
                self.steps[STEP_WIDTH * last + STEP_NEXT] = step
            else:
                self.ways[self.way_count] = step
            if asked is not None:
                recipe, self._words = asked
                self._codes = recipe.codes
                self._constants = recipe.constants
                self._at = 0
                conditions = self._read_conditions()  # may replace the column
                self.steps[STEP_WIDTH * step + STEP_CONDITION] = conditions
            last = step
        self.way_count += 1
        return 0

    def _new_step(self, descendant: cython.int, symbol: cython.int) -> cython.int:
        row: cython.int
        self._step_count += 1
        row = STEP_WIDTH * self._step_count
        if row + STEP_WIDTH > len(self.steps):
            self.steps = grown(self.steps, 2 * row)
        self.steps[row + STEP_DESCENDANT] = descendant
        self.steps[row + STEP_SYMBOL] = symbol
        self.steps[row + STEP_CONDITION] = 0
        self.steps[row + STEP_NEXT] = 0
        return self._step_count

    def _read_conditions(self) -> cython.int:
        """The first of the conditions that come next in the recipe, or 0."""
        count: cython.int = self._next()
        kind: cython.int
        a: cython.int
        value: cython.int
        condition: cython.int
        first: cython.int = 0
        last: cython.int = 0
        _i: cython.int
        for _i in range(count):
            kind = self._next()
            value = 0
            if kind == CHECK_NESTED:
                a = self._read_way()
            elif kind == CHECK_VERIFIED:
                a = 0
                value = len(self.values)
                fill = self._constants[self._next()]
                self.values.append(fill(self._words))
            else:
                a = self._read_attribute()
                if kind != CHECK_EXISTS:
                    value = len(self.values)
                    self.values.append(self._read_word())
            condition = self.new_condition(kind, a, value, 0)
            if last:
                self.conditions[CONDITION_WIDTH * last + CONDITION_NEXT] = condition
            else:
                first = condition
            last = condition
        return first

    def _read_way(self) -> cython.int:
        """The first step of the way that comes next in the recipe."""
        count: cython.int = self._next()
        descendant: cython.int
        conditions: cython.int
        step: cython.int
        first: cython.int = 0
        last: cython.int = 0
        _i: cython.int
        for _i in range(count):
            descendant = self._next()
            step = self._new_step(descendant, self._symbols.acquire(self._read_name()))
            conditions = self._read_conditions()  # may replace the column
            self.steps[STEP_WIDTH * step + STEP_CONDITION] = conditions
            if last:
                self.steps[STEP_WIDTH * last + STEP_NEXT] = step
            else:
                first = step
            last = step
        return first

    def _read_attribute(self) -> cython.int:
        attribute: cython.int = self._next()
        return attribute or self._symbols.acquire_attribute(self._read_name())

    def _read_name(self) -> Name:
        namespace = self._read_word()
        return namespace, self._read_word()  # type: ignore[return-value]  # names are strings

    def _read_word(self) -> Word:
        code: cython.int = self._next()
        return self._words[code] if code >= 0 else self._constants[~code]

    def _next(self) -> cython.int:
        self._at += 1
        return self._codes[self._at - 1]
