"""Expressions of filters: values, SPARQL's errors, and their logic; lists by the sections of 17."""

from __future__ import annotations

import pytest

from tests.yfilter.graph.messages import turtle
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.join import MessageGraph
from yfilter.graph.join_program import JoinProgram
from yfilter.graph.query_ast import (
    Bind,
    Iri,
    LiteralTerm,
)
from yfilter.graph_answers import has_solution
from yfilter.language.budget import Budget
from yfilter.language.profile_limits import EvaluationLimits

NOTHING = turtle(":s :p :o .")
PROLOGUE = "PREFIX : <urn:x:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def value(expression: str) -> str:
    """What an expression is: a literal's lexical form and what its datatype is called."""
    query = parse_graph_query(
        f"{PROLOGUE} SELECT ?v {{ OPTIONAL {{ :s :none ?none }} BIND({expression} AS ?v) }}"
    )
    bound = [each for each in query.where.elements if isinstance(each, Bind)]
    assert bound, f"{expression} is not of the tree"
    run = JoinProgram(query.where, query.variables).solutions(
        MessageGraph(NOTHING), Budget(EvaluationLimits())
    )
    number = run.rows[0][0]
    if number == 0:
        return "error"
    term = run.term(number)
    if isinstance(term, Iri):
        return f"<{term.value}>"
    assert isinstance(term, LiteralTerm)
    kind = f"@{term.language}" if term.language else term.datatype.rpartition("#")[2]
    return f"{term.lexical} {kind}"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 = 1.0", "true"),
        ("1 = 01", "true"),
        ("0.1 + 0.2 = 0.3", "true"),
        ("0.1e0 + 0.2e0 = 0.3e0", "false"),
        ("9007199254740993 = 9007199254740992", "false"),
        ("9007199254740993 = 9007199254740992e0", "true"),
        ("16777217 = '16777216'^^xsd:float", "true"),
        ("'NaN'^^xsd:double = 'NaN'^^xsd:double", "false"),
        ("'NaN'^^xsd:double <= 1", "false"),
        ("'x'^^xsd:integer = 1", "error"),
        ("'300'^^xsd:byte = 300", "error"),
        ("'a' = 'a'@en", "false"),
        ("'a'@EN = 'a'@en", "true"),
        ("'a' < 'b'", "true"),
        ("'a' < 1", "error"),
        (":a = :a", "true"),
        (":a = 'a'", "false"),
        (":a < :b", "error"),
        ("'a'^^:t = 'a'^^:t", "true"),
        ("'a'^^:t = 'b'^^:t", "error"),
        ("'a'^^:t != 'b'^^:t", "error"),
        ("'1'^^xsd:boolean = true", "true"),
        ("false < true", "true"),
        (
            "'2020-01-01T00:00:00Z'^^xsd:dateTime = '2020-01-01T01:00:00+01:00'^^xsd:dateTime",
            "true",
        ),
        ("'2020-01-01T00:00:00'^^xsd:dateTime < '2020-01-01T10:00:00Z'^^xsd:dateTime", "error"),
        ("'2020-01-01T00:00:00'^^xsd:dateTime < '2020-01-02T10:00:00Z'^^xsd:dateTime", "true"),
        ("'2020-02-30'^^xsd:date = '2020-03-01'^^xsd:date", "error"),
        ("'-0001-12-31'^^xsd:date < '12020-01-01'^^xsd:date", "true"),
    ],
)
def test_comparisons_are_of_values(expression: str, expected: str) -> None:
    written = expression.replace("^^:w", "^^xsd:dateTime")
    assert value(written).removesuffix(" boolean") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true || 1/0", "true"),
        ("false || 1/0", "error"),
        ("false && 1/0", "false"),
        ("true && 1/0", "error"),
        ("!(1/0)", "error"),
        ("1 IN (1/0, 1)", "true"),
        ("2 IN (1/0, 1)", "error"),
        ("2 NOT IN (1, 3)", "true"),
        ("1 NOT IN (1/0, 1)", "false"),
        ("!''", "true"),
        ("!'x'^^xsd:integer", "true"),
        ("!:a", "error"),
        ("!'NaN'^^xsd:double", "true"),
        ("IF(1/0, true, true)", "error"),
        ("IF(bound(?none), 1/0, true)", "true"),
        ("COALESCE(1/0, ?none, true)", "true"),
        ("COALESCE(1/0)", "error"),
    ],
)
def test_an_error_is_a_third_value(expression: str, expected: str) -> None:
    assert value(expression).removesuffix(" boolean") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 1", "2 integer"),
        ("1 + 1.5", "2.5 decimal"),
        ("1 / 4", "0.25 decimal"),
        ("1.0 / 0", "error"),
        ("1e0 / 0", "INF double"),
        ("-'1'^^xsd:byte", "-1 integer"),
        ("1 + '1'^^xsd:float", "2 float"),
        ("'1.1'^^xsd:float + 0", "1.1 float"),
        ("abs(-1.50)", "1.5 decimal"),
        ("round(-2.5)", "-2 decimal"),
        ("round(2.5)", "3 decimal"),
        ("ceil(1.2)", "2 decimal"),
        ("floor(-1.2e0)", "-2 double"),
        ("xsd:integer(1.9)", "1 integer"),
        ("xsd:integer('1.9')", "error"),
        ("xsd:integer('INF'^^xsd:double)", "error"),
        ("xsd:decimal(1e-3)", "0.001 decimal"),
        ("xsd:boolean('NaN'^^xsd:double)", "false boolean"),
        ("xsd:boolean('yes')", "error"),
        ("xsd:string(1.50)", "1.5 string"),
        ("xsd:string(:a)", "urn:x:a string"),
        ("xsd:dateTime('2020-01-01')", "error"),
        ("xsd:date('2020-01-02T03:04:05Z'^^xsd:dateTime)", "2020-01-02Z date"),
    ],
)
def test_numbers_are_promoted_and_cast(expression: str, expected: str) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("str('a'@en)", "a string"),
        ("lang('a'@EN)", "en string"),
        ("langMatches('en-gb', 'EN')", "true boolean"),
        ("langMatches('', '*')", "false boolean"),
        ("datatype(1)", "<http://www.w3.org/2001/XMLSchema#integer>"),
        ("datatype('a'@en)", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"),
        ("strlen('é😀')", "2 integer"),
        ("ucase('é'@fr)", "É @fr"),
        ("contains('abc'@en, 'b')", "true boolean"),
        ("contains('abc'@en, 'b'@fr)", "error"),
        ("contains(:abc, 'b')", "error"),
        ("strstarts('abc', 'ab')", "true boolean"),
        ("regex('abc', 'B', 'i')", "true boolean"),
        ("regex(1, '1')", "error"),
        ("year('2020-01-02T03:04:05.5Z'^^xsd:dateTime)", "2020 integer"),
        ("seconds('2020-01-02T03:04:05.5Z'^^xsd:dateTime)", "5.5 decimal"),
        # 24:00:00 is the beginning of the next day.
        ("year('2025-12-31T24:00:00Z'^^xsd:dateTime)", "2026 integer"),
        ("month('2026-02-28T24:00:00'^^xsd:dateTime)", "3 integer"),
        ("day('2024-02-28T24:00:00.0+05:30'^^xsd:dateTime)", "29 integer"),
        ("day('-0001-12-31T24:00:00Z'^^xsd:dateTime)", "1 integer"),
        ("hours('2026-01-31T24:00:00Z'^^xsd:dateTime)", "0 integer"),
        ("xsd:date('2026-01-31T24:00:00-05:00'^^xsd:dateTime)", "2026-02-01-05:00 date"),
        ("hours('2026-01-31'^^xsd:date)", "error"),
        ("day('2026-01-31'^^xsd:date)", "31 integer"),
        ("sameTerm(1, 01)", "false boolean"),
        ("concat('a'@en, 'b'@en)", "ab @en"),
        ("concat('a'@en, 'b')", "ab string"),
        ("concat('a', 1)", "error"),
        ("substr('a😀c'@en, 2)", "😀c @en"),
        ("substr('abc', 0, 2)", "a string"),
        ("strbefore('abc'@en, 'b')", "a @en"),
        ("strbefore('abc'@en, 'z')", " string"),
        ("strafter('abc', '')", "abc string"),
        ("replace('abab', '(a)b', '$1-')", "a-a- string"),
        ("encode_for_uri('a é/~')", "a%20%C3%A9%2F~ string"),
        ("strlang('a', 'EN')", "a @en"),
        ("strlang('a'@en, 'fr')", "error"),
        ("strdt('1', xsd:integer)", "1 integer"),
        ("tz('2020-01-02T03:04:05-05:00'^^xsd:dateTime)", "-05:00 string"),
        ("timezone('2020-01-02T03:04:05-05:30'^^xsd:dateTime)", "-PT5H30M dayTimeDuration"),
        ("timezone('2020-01-02T03:04:05'^^xsd:dateTime)", "error"),
        ("isNumeric('x'^^xsd:integer)", "false boolean"),
    ],
)
def test_functions_of_terms(expression: str, expected: str) -> None:
    assert value(expression) == expected


def test_a_condition_that_is_an_error_does_not_hold() -> None:
    for condition, holds in (("1 < 2", True), ("1 < :a", False), ("!(1 < :a)", False)):
        query = parse_graph_query(f"{PROLOGUE} SELECT ?s {{ ?s ?p ?o FILTER({condition}) }}")
        assert has_solution(query, NOTHING, EvaluationLimits()) is holds
