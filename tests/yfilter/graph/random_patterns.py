"""Random graphs and random patterns over few terms, so that much joins; each from a seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyoxigraph

from formats.graph.vocabulary import XSD
from yfilter.graph.query_ast import (
    Alternatives,
    Bind,
    Exists,
    Filter,
    Group,
    GroupElement,
    InGraph,
    Iri,
    LiteralTerm,
    Membership,
    Minus,
    Optionally,
    Term,
    TriplePattern,
    Values,
    Variable,
    negation,
)
from yfilter.language import query_ast as ast
from yfilter.language.query_ast import Operator

NODES = [Iri(f"urn:n:{name}") for name in "ab"]
PROPERTIES = [Iri(f"urn:p:{name}") for name in "pq"]
NUMBERS = [
    LiteralTerm("1", f"{XSD}integer"),
    LiteralTerm("2", f"{XSD}integer"),
    LiteralTerm("1.5", f"{XSD}decimal"),
    LiteralTerm("2", f"{XSD}double"),
    LiteralTerm("1", f"{XSD}float"),
]
LITERALS = [
    *NUMBERS,
    LiteralTerm("x"),
    LiteralTerm("xy"),
    LiteralTerm("x", language="en"),
    LiteralTerm("true", f"{XSD}boolean"),
    LiteralTerm("2020-01-01T00:00:00Z", f"{XSD}dateTime"),
    LiteralTerm("2020-01-01T01:00:00+01:00", f"{XSD}dateTime"),
    LiteralTerm("2021-05-05", f"{XSD}date"),
    LiteralTerm("z", "urn:t:other"),
]
GRAPHS = [Iri("urn:g:1"), Iri("urn:g:2")]
VARIABLES = [Variable(name) for name in "stuv"]
GRAPH_VARIABLE = Variable("g")
BLANK_VARIABLE = Variable("_:0")
ORDERS = [Operator.LT, Operator.LE, Operator.GT, Operator.GE]


def random_quads(random: Random, graphs: bool) -> list[pyoxigraph.Quad]:
    """The triples of a message, some of them in named graphs."""
    found = []
    for _ in range(random.randint(4, 16)):
        graph: pyoxigraph.NamedNode | pyoxigraph.DefaultGraph = pyoxigraph.DefaultGraph()
        if graphs and random.random() < 0.3:
            graph = pyoxigraph.NamedNode(random.choice(GRAPHS).value)
        prop = pyoxigraph.NamedNode(random.choice(PROPERTIES).value)
        found.append(pyoxigraph.Quad(_node(random), prop, _object(random), graph))
    return found


def _node(random: Random) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode:
    if random.random() < 0.3:
        return pyoxigraph.BlankNode(random.choice("kl"))
    return pyoxigraph.NamedNode(random.choice(NODES).value)


def _object(
    random: Random,
) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal:
    if random.random() < 0.5:
        return _node(random)
    chosen = random.choice(LITERALS)
    if chosen.language:
        return pyoxigraph.Literal(chosen.lexical, language=chosen.language)
    return pyoxigraph.Literal(chosen.lexical, datatype=pyoxigraph.NamedNode(chosen.datatype))


class RandomPattern:
    """``exists``: whether EXISTS may stand in filters, ``graphs``: GRAPH in groups.

    Left out is what processors disagree about: MINUS within EXISTS, a variable of GRAPH that its
    group looks at, and one whose group has no triple.
    """

    def __init__(self, random: Random, *, exists: bool = True, graphs: bool = True) -> None:
        self._random = random
        self._exists = exists
        self._graphs = graphs
        self._binds = 0
        self._within_exists = False

    def group(self, depth: int = 2) -> Group:
        """Patterns of all kinds, in any order."""
        random = self._random
        elements: list[GroupElement] = [
            self._triple() for _ in range(random.choice([0, 1, 1, 1, 1, 2, 2]))
        ]
        for _ in range(random.randint(0, 3) if depth else 0):
            elements.insert(random.randint(0, len(elements)), self._element(depth))
        if depth and random.random() < 0.2:
            self._binds += 1
            elements.append(Bind(self._value(), Variable(f"b{self._binds}")))
        return Group(tuple(elements))

    def _element(self, depth: int) -> GroupElement:
        kinds: list[Callable[[], GroupElement]] = [
            lambda: Optionally(self.group(depth - 1)),
            lambda: Optionally(self.group(depth - 1)),
            lambda: self.group(depth - 1),
            lambda: Alternatives((self.group(depth - 1), self.group(depth - 1))),
            self._values,
            lambda: Filter(self.condition(depth)),
            lambda: Filter(self.condition(depth)),
            lambda: Filter(self.condition(depth)),
        ]
        if not self._within_exists:
            kinds.append(lambda: Minus(self.group(depth - 1)))
        if self._graphs:
            kinds.append(lambda: self._in_graph(depth))
        return self._random.choice(kinds)()

    def _in_graph(self, depth: int) -> InGraph:
        graph = self._random.choice([*GRAPHS, GRAPH_VARIABLE, GRAPH_VARIABLE])
        return InGraph(graph, Group((self._triple(), *self.group(depth - 1).elements)))

    def _triple(self) -> TriplePattern:
        random = self._random
        thing = random.choice(LITERALS) if random.random() < 0.15 else self._place()
        prop = random.choice(VARIABLES) if random.random() < 0.2 else random.choice(PROPERTIES)
        return TriplePattern(self._place(), prop, thing)

    def _place(self) -> Term:
        random = self._random
        if random.random() < 0.1:
            return BLANK_VARIABLE
        return random.choice(NODES) if random.random() < 0.2 else random.choice(VARIABLES)

    def _values(self) -> Values:
        random = self._random
        variables = random.sample(VARIABLES, random.randint(1, 2))
        terms = [None, *NODES, *LITERALS[:2]]
        return Values(
            tuple(variables),
            tuple(
                tuple(random.choice(terms) for _ in variables) for _ in range(random.randint(1, 3))
            ),
        )

    def condition(self, depth: int) -> ast.Expression:
        """One on whose meaning independent processors agree."""
        random = self._random
        if random.random() < 0.3:
            parts = (self.condition(0), self.condition(0))
            return random.choice([ast.And(parts), ast.Or(parts), negation(parts[0])])
        if depth and self._exists and not self._within_exists and random.random() < 0.25:
            self._within_exists = True
            group = self.group(depth - 1)
            self._within_exists = False
            return Exists(group, random.random() < 0.5)
        return self._test()

    def _test(self) -> ast.Expression:
        random = self._random
        variable = random.choice(VARIABLES)
        term = random.choice([*NODES, *LITERALS, *VARIABLES, *VARIABLES])
        number = random.choice(NUMBERS)
        match random.randrange(8):
            case 0 | 1:
                operator = random.choice([Operator.EQ, Operator.NE])
                return ast.Comparison(variable, operator, term)
            case 2:
                return ast.Comparison(variable, random.choice(ORDERS), number)
            case 3:
                left = ast.FunctionCall(random.choice("+-*"), (variable, number))
                return ast.Comparison(left, random.choice(ORDERS), number)
            case 4:
                return ast.FunctionCall("bound", (variable,))
            case 5:
                tests = ("isiri", "isblank", "isliteral", "isnumeric")
                return ast.FunctionCall(random.choice(tests), (variable,))
            case 6:
                tests = ("contains", "strstarts", "strends", "regex")
                text = ast.FunctionCall("str", (variable,))
                return ast.FunctionCall(random.choice(tests), (text, LiteralTerm("x")))
            case _:
                choices = tuple(random.sample([*NODES, *LITERALS], 2))
                return Membership(variable, choices, random.random() < 0.3)

    def _value(self) -> ast.Expression:
        random = self._random
        variable = random.choice(VARIABLES)
        return random.choice([variable, random.choice(NODES), ast.FunctionCall("str", (variable,))])
