"""docs/metadata.md says what is so: its example, language, message and codes are checked here."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from formats.graph.rdf_schema import read_schema
from formats.graph.syntaxes import GraphSyntax
from registration.metadata import provider, rules
from registration.metadata.change_messages import read_change
from registration.metadata.documents import DOCUMENT_BYTES_MAX
from registration.metadata.rule_sparql import read_rule

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "metadata.md").read_text(encoding="utf-8")
BLOCKS: dict[str, list[str]] = {}
for kind, body in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
    BLOCKS.setdefault(kind, []).append(body)
SCHEMA = b"""@prefix : <urn:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:A a rdfs:Class . :B a rdfs:Class . :b a owl:FunctionalProperty ; rdfs:range :B .
:c a owl:FunctionalProperty ; rdfs:range xsd:integer . :t rdfs:range xsd:string ."""


def test_the_example_prints_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = BLOCKS["python"]
    exec(compile(code, "docs/metadata.md", "exec"), {})
    assert capsys.readouterr().out == BLOCKS["text"][0]
    with closing(sqlite3.connect("l1.onyx")) as tables:
        (query,) = BLOCKS["sql"]
        assert tables.execute(query).fetchall() == [("pirates.uni-passau.de", 92, None)]


def test_the_grammar_is_that_of_the_code() -> None:
    said = {line.strip() for line in BLOCKS["text"][1].splitlines()}
    known = {line.strip() for line in (rules.__doc__ or "").splitlines()}
    (extended,) = said - known
    assert extended.startswith("extension") and len(said) == 8


def test_rules_and_sparql_say_the_same() -> None:
    schema = read_schema(SCHEMA, GraphSyntax.TURTLE)
    found = re.findall(r"^\| `(search .*|where .*)` \| `(.*)` \|$", PAGE, re.MULTILINE)
    assert len(found) == 4
    for rule, query in found:
        text = rule if rule.startswith("search") else f"search A a register a {rule}"
        where = query if query.startswith("SELECT") else f"SELECT ?a WHERE {{ ?a a :A . {query} }}"
        where = where.replace("?a a :A . FILTER", "?a a :A FILTER")
        one, other = read_rule(text, schema, {}), read_rule(f"PREFIX : <urn:> {where}", schema, {})
        assert one.sparql == other.sparql


def test_the_message_is_one() -> None:
    (text,) = BLOCKS["xml"]
    change = read_change(text.encode())
    assert change.to["L1"] == (12, True, "5c8f61ba0a2d77e3")
    assert read_change(change.to_bytes()) == change


def test_limits_and_codes_are_those_of_the_code() -> None:
    section = PAGE.split("## Limits and refusals", 1)[1]
    for limit in (
        f"{rules.ALTERNATIVES_MAX} alternatives",
        f"{rules.VARIABLES_MAX} variables",
        f"{rules.PATH_MAX} properties",
        f"{rules.LIMITS.length_max:,} characters",
        f"{DOCUMENT_BYTES_MAX >> 20} MiB",
        f"{provider.BATCH_MAX:,} documents",
        f"{provider.NAME_LENGTH_MAX} characters",
    ):
        assert limit in " ".join(section.split())
    said = set(re.findall(r"`([a-z-]+)`", section))
    code = "\n".join(
        each.read_text("utf-8") for each in (ROOT / "registration" / "metadata").glob("*.py")
    )
    raised = r'(?:refusal|_?refused|MessageRefused|Fault|_Wrong)\(\s*(?:\w[^"(]*(?:\([^"]*\))?, )?"'
    found = set(re.findall(rf'{raised}([a-z][a-z-]+)"', code))
    found |= {f"unknown-{each}" for each in re.findall(r'_unknown\(\s*"(\w+)"', code)}
    from_elsewhere = {"syntax", "too-large", "too-long"}
    assert found - said == set()
    assert said - found - from_elsewhere == set()
