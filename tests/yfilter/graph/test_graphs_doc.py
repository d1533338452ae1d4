"""docs/graphs.md says what graph profiles may say: its examples and tables are checked here."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from formats.graph.vocabulary import XSD
from yfilter.graph.filter_functions import FUNCTIONS
from yfilter.graph.graph_query import parse_graph_query, unbound_variables
from yfilter.graph.sparql_parser import CASTS
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "graphs.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## Profiles\n", 1)[1].split("\n## ", 1)[0]
_BLOCKS = re.findall(r"^```(\w+)\n(.*?)\n```$", SECTION, re.MULTILINE | re.DOTALL)


def test_examples_are_read_or_refused_as_the_page_says() -> None:
    read = 0
    for (kind, text), (_, following) in pairwise(_BLOCKS):
        if kind != "sparql":
            continue
        if following.startswith("line "):
            (warning,) = unbound_variables(text)
            assert str(warning) == following
        else:
            assert not parse_graph_query(text).whole
            read += 1
    assert read == 4


def test_the_functions_of_the_page_are_the_engines_own() -> None:
    row = next(line for line in SECTION.splitlines() if line.startswith("| functions |"))
    functions, _, casts = row.split(" | ")[1].partition("; casts to ")
    said = {name.lower() for name in re.findall("`([a-zA-Z_]+)`", functions)}
    of_values = {name for name in FUNCTIONS if name[0].isalpha()} - CASTS
    assert said == of_values | {"bound", "if", "coalesce", "isuri"}
    assert {
        XSD + name.removeprefix("xsd:") for name in re.findall("`([a-zA-Z:]+)`", casts)
    } == CASTS


def test_the_bounds_of_the_page_are_those_of_the_parser() -> None:
    assert f"| {DEFAULT_PROFILE_LIMITS.steps_max:,} |" in SECTION
    assert f"| variables | {DEFAULT_PROFILE_LIMITS.clauses_max} |" in SECTION
