"""Rules as atomic rules: the figures of the paper's section 3, and how the filter shares them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF_TYPE, XSD
from registration.metadata.atomic_rules import SAME, Form, JoinStep, Program, Trigger, decompose
from registration.metadata.documents import Statement
from registration.metadata.metadata_filter import MetadataFilter
from registration.metadata.rules import Constant, Join, parse_rule
from tests.registration.metadata.test_rules import FIGURE_1, NS, SCHEMA, only, said

CYCLE_PROVIDER, SERVER_INFORMATION = f"{NS}CycleProvider", f"{NS}ServerInformation"
SECTION_3_3_1 = """search CycleProvider c, ServerInformation s register c
where c.serverHost contains 'uni-passau.de' and c.serverInformation = s
      and s.memory > 64 and s.cpu > 500"""
MEMORY, CPU = said("c.serverInformation.memory > 64"), said("c.serverInformation.cpu > 500")
ROUND = "SELECT DISTINCT d.grp"  # the filter looks which groups are to be evaluated


class Watched:
    """Tables that note the statements which they execute, and ResultObjects before each round."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self.statements: list[str] = []
        self.rounds: list[list[tuple[str, int]]] = []

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> Any:
        self.statements.append(sql)
        if sql.startswith(ROUND):
            self.rounds.append(
                self.rows("SELECT r.uri, o.rule FROM ro o JOIN resources r ON r.number = o.res")
            )
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> Any:
        self.statements.append(sql)
        return self._connection.executemany(sql, rows)

    def create_function(self, name: str, narg: int, func: Any, /) -> None:
        self._connection.create_function(name, narg, func)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return sorted(self._connection.execute(sql))

    def counts(self) -> dict[str, int]:
        """Of each table that is stored, its rows."""
        names = [
            name for (name,) in self.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {name: self.rows(f"SELECT count(*) FROM {name}")[0][0] for name in names}


class Filter:
    """A filter that is given rules as texts."""

    def __init__(self, schema: RdfSchema) -> None:
        self.schema = schema
        self.tables = Watched()
        self.of = MetadataFilter(self.tables, schema)
        self.rules = 0

    def add(self, text: str, repository: int = 0) -> int:
        self.rules += 1
        self.of.add(self.rules, repository, parse_rule(text, self.schema, {}).alternatives)
        self.of.note_uses()
        return self.rules

    def write(self, statements: Sequence[Statement] = FIGURE_1, uri: str = "doc.rdf") -> None:
        self.tables.statements.clear()
        self.tables.rounds.clear()
        self.of.write({uri: statements})

    def matches(self, rule: int) -> set[str]:
        return set(self.of.statements.uris(self.of.matches(rule)).values())


@pytest.fixture(scope="module")
def schema() -> RdfSchema:
    return read_schema(SCHEMA, GraphSyntax.TURTLE)


@pytest.fixture
def rules(schema: RdfSchema) -> Filter:
    return Filter(schema)


def number(value: float) -> Constant:
    return Constant("number", float(value), str(value))


RULE_A = Trigger(SERVER_INFORMATION, f"{NS}memory", ">", number(64))
RULE_B = Trigger(SERVER_INFORMATION, f"{NS}cpu", ">", number(500))
PASSAU = Constant("text", "uni-passau.de", "'uni-passau.de'")
RULE_C = Trigger(CYCLE_PROVIDER, f"{NS}serverHost", "contains", PASSAU)
RULE_F = Form(
    (SERVER_INFORMATION, CYCLE_PROVIDER), (Join(0, "", "=", 1, f"{NS}serverInformation"),), 1
)


def program(text: str, schema: RdfSchema) -> Program:
    return decompose(only(parse_rule(text, schema, {})))


def test_a_rule_is_decomposed_as_in_section_3_3_1(schema: RdfSchema) -> None:
    expected = Program(
        {"s": (RULE_A, RULE_B), "c": (RULE_C,)}, (JoinStep(("s", "c"), RULE_F),), "c"
    )
    assert program(SECTION_3_3_1, schema) == expected
    path = """c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64
        and c.serverInformation.cpu > 500"""
    assert program(said(path), schema) == expected


def test_two_triggers_of_a_variable_are_joined_as_rule_e(rules: Filter) -> None:
    """Figures 5, 7 and 8: rules A and B give E, and E and C give F."""
    rules.add(SECTION_3_3_1)
    rows = rules.tables.rows
    a, b, e, c, f = 1, 2, 3, 4, 5
    assert rows("SELECT number, depth FROM atomic_rules") == [
        (a, 0),
        (b, 0),
        (e, 1),
        (c, 0),
        (f, 2),
    ]
    assert rows("SELECT l, r, grp, target FROM joins") == [(a, b, 1, e), (e, c, 2, f)]
    assert rows("SELECT rule, grp, side FROM deps") == [(a, 1, 0), (b, 1, 1), (e, 2, 0), (c, 2, 1)]
    same = Form((SERVER_INFORMATION, SERVER_INFORMATION), (SAME,), 0)
    known = rules.of._groups
    assert [known[form] for form in sorted(known, key=known.__getitem__)] == [1, 2]
    assert {number: group.form for number, group in rules.of._sql.items()} == {1: same, 2: RULE_F}
    assert rows("SELECT value, rule FROM f_gt_num") == [(64.0, a), (500.0, b)]
    assert rows("SELECT value, rule FROM f_contains") == [("uni-passau.de", c)]
    assert rows("SELECT rule FROM ends") == [(f,)]


def test_a_run_goes_by_the_rounds_of_figure_9(rules: Filter) -> None:
    rule = rules.add(SECTION_3_3_1)
    rules.write()
    assert rules.tables.rounds == [
        [("doc.rdf#host", 4), ("doc.rdf#info", 1), ("doc.rdf#info", 2)],
        [("doc.rdf#info", 3)],
        [("doc.rdf#host", 5)],
    ]
    assert rules.matches(rule) == {"doc.rdf#host"}


def test_similar_rules_share_what_is_equal_and_a_group(rules: Filter) -> None:
    """Section 3.3.3: rule A, all cycle providers, is there once, C1 and C2 are of one group."""
    first, second = rules.add(MEMORY), rules.add(CPU)
    rows = rules.tables.rows
    assert rows("SELECT count(*) FROM atomic_rules") == [(5,)]
    ((_, rule_a),) = rows("SELECT class, rule FROM f_class")
    assert rows("SELECT r, grp FROM joins") == [(rule_a, 1), (rule_a, 1)]
    assert rows("SELECT rule, fan FROM deps WHERE side = 1") == [(rule_a, 2)]
    assert rows("SELECT count(*) FROM groups") == [(1,)]
    rules.write()
    assert rules.matches(first) == rules.matches(second) == {"doc.rdf#host"}


def test_the_rule_of_a_thousand_repositories_adds_a_row_each(rules: Filter) -> None:
    rules.add(SECTION_3_3_1)
    rules.write()
    before = rules.tables.counts()
    for repository in range(1, 1_000):
        rules.add(SECTION_3_3_1, repository)
    assert rules.tables.counts() == {**before, "ends": 1_000}


def test_names_of_variables_do_not_matter(rules: Filter) -> None:
    rules.add(SECTION_3_3_1)
    before = rules.tables.counts()
    other = """search ServerInformation one, CycleProvider two register two
    where 500 < one.cpu and one.memory > 64.0 and two.serverHost contains 'uni-passau.de'
          and one = two.serverInformation"""
    rules.add(other)
    assert rules.tables.counts() == {**before, "ends": 2}


def test_statements_of_a_run_depend_on_groups_and_not_on_rules(schema: RdfSchema) -> None:
    def statements(count: int, *more: str) -> tuple[int, int]:
        of = Filter(schema)
        for value in range(count):
            of.add(said(f"c.serverInformation.memory > {value}"))
            of.add(said(f"c.serverInformation.cpu > {value} and c.serverHost contains 'passau'"))
        for text in more:
            of.add(text)
        of.write()
        return len(of.tables.statements), of.tables.counts()["groups"]

    few, groups = statements(1)
    assert statements(100) == (few, groups)
    another, more_groups = statements(100, said("c.partner? = c"))
    assert more_groups == groups + 1
    assert few < another <= few + 4


def test_a_circle_of_joins_is_one_join_of_all(rules: Filter) -> None:
    text = """search CycleProvider a, CycleProvider b, CycleProvider c register b
    where a.partner? = b and b.partner? = c and c.partner? = a and a.serverPort > 1"""
    assert [step.variables for step in program(text, rules.schema).joins] == [("a", "b", "c")]
    rule = rules.add(text)
    rows = rules.tables.rows
    assert rows("SELECT count(*) FROM joins") == [(0,)]
    ports, everything = 1, 2
    assert rows("SELECT position, rule, target FROM inputs") == [
        (0, ports, 3), (1, everything, 3), (2, everything, 3)
    ]  # fmt: skip
    rules.add(text, 1)
    assert rows("SELECT count(*) FROM inputs") == [(3,)]

    def partners(*pairs: tuple[int, int]) -> list[Statement]:
        found = []
        for each in range(4):
            found.append(Statement(f"d#{each}", RDF_TYPE, CYCLE_PROVIDER, "", ""))
            port = Statement(f"d#{each}", f"{NS}serverPort", str(each), f"{XSD}integer", "")
            found.append(port)
        found += [Statement(f"d#{one}", f"{NS}partner", f"d#{two}", "", "") for one, two in pairs]
        return found

    rules.write(partners((2, 0), (0, 1), (1, 3)))  # a chain is no circle
    assert rules.matches(rule) == set()
    rules.write(partners((2, 0), (0, 1), (1, 2)))
    assert rules.matches(rule) == {"d#0"}
    rules.write(partners((2, 0), (0, 1), (1, 3)))
    assert rules.matches(rule) == set()


def test_a_variable_that_is_joined_with_itself_is_one_input(rules: Filter) -> None:
    rule = rules.add(said("c.partner? = c"))
    assert rules.tables.rows("SELECT position FROM inputs") == [(0,)]
    host = Statement("doc.rdf#host", f"{NS}partner", "doc.rdf#host", "", "")
    rules.write([*FIGURE_1, host])
    assert rules.matches(rule) == {"doc.rdf#host"}
    rules.write()
    assert rules.matches(rule) == set()


def test_an_atomic_rule_goes_with_the_last_that_needs_it(rules: Filter) -> None:
    empty = dict.fromkeys(("atomic_rules", "joins", "deps", "ends", "matches", "asked"), 0)
    rules.write()
    texts = (SECTION_3_3_1, MEMORY, CPU)
    numbers = [rules.add(text) for text in texts]
    for text, rule in zip(texts, numbers, strict=True):
        kept = {each: rules.matches(each) for each in numbers if each > rule}
        rules.of.remove(rule, 0, parse_rule(text, rules.schema, {}).alternatives)
        assert {each: rules.matches(each) for each in kept} == kept
    counts = rules.tables.counts()
    assert {name: counts[name] for name in empty} == empty
