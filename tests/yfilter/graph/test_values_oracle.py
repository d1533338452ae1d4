"""Functions and operators of SPARQL on values, by the compiled engine, against pyoxigraph.

A seed draws the variants from a grammar (``value_variants.txt``); ``ONYX_VARIANTS=3000
ONYX_VARIANTS_SEED=7`` draws more, and others.  A difference is of one of the classes below, in
which pyoxigraph is not the authority, or a mistake.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random

import pyoxigraph
import pytest

from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from tests.yfilter.graph.solution_sets import (
    XSD,
    Solution,
    are_equal,
    solutions_of_json,
    solutions_of_oxigraph,
)
from tests.yfilter.test_values_oracle import SEED, drawn, grammar
from yfilter import Matcher

VARIANTS = int(os.environ.get("ONYX_VARIANTS", "400"))
DATA = b"<urn:s> <urn:p> 1 ."
PREFIX = f"PREFIX xsd: <{XSD}> "
UNKNOWN = r"dayTimeDuration|xsd:time|<urn:t>"
KEEPING = ("str(", "concat(", "coalesce(", "xsd:dateTime(", "sameTerm(")
Answer = str | None  # the text of the value; None where there is none

CLASSES: dict[str, Callable[[str, Answer, Answer], bool]] = {
    # 17.4.2.6: the datatype that is written, not what it is derived from
    "types derived from integer": lambda e, o, t: re.search("xsd:(long|byte)", e) is not None
    and t is not None and re.sub("long|byte", "integer", o or "") == t,
    # 17.3: implicit time zones are the processor's; here no zone may be any
    "no time zone": lambda e, o, t: o is None
    and re.search('2:00:00"|"2026-05-03"', e) is not None and "20" in e.replace('2:00:00"', "", 1),
    # F&O 3.1, 4.2: the precision of a quotient is the processor's
    "digits of a quotient": lambda e, o, t: re.search("/|^xsd:decimal.*float", e) is not None
    and re.fullmatch("-?[0-9.]+", o or "") is not None
    and re.fullmatch("-?[0-9.]+", t or "") is not None
    and abs(Decimal(str(o)) - Decimal(str(t))) < Decimal("1e-16"),
    # 17.3: arithmetic is of numbers
    "arithmetic of times": lambda e, o, t: o is None and re.search("Time [+-] ", e) is not None,
    # 17.2.2: the effective boolean value of a plain literal, be it with a language, is its length
    "truth of a text with a language": lambda e, o, t: o is not None and t is None
    and re.search(r"@(en|fr)\b", e) is not None
    and re.match(r"!|if\(|.* (&&|\|\|) ", e) is not None,
    # F&O 3.1, 4.3: a comparison with NaN is false, and no error
    "NaN": lambda e, o, t: o == "false" and t is None and "NaN" in e,
    # 17.4.1.7: two literals of which one is of an unknown datatype are an error, if not alike
    "unknown datatypes": lambda e, o, t: o is None and re.search(UNKNOWN, e) is not None,
    # XML Schema 1.1 2, 3.3.7: 60 is no second
    "leap seconds": lambda e, o, t: o is None and ":60Z" in e,
    # F&O 3.1, 5.6.3: an error (FORX0003) where the pattern matches nothing
    "patterns of nothing": lambda e, o, t: o is None and e.startswith("replace") and '"x*"' in e,
    # F&O 3.1, 5.6.3: $2x is the second group and an x
    "numbers of groups": lambda e, o, t: e.startswith("replace") and "$2x" in e,
    # 17.3: texts with languages have no order
    "order of texts with languages": lambda e, o, t: o is None and "@" in e
    and re.search(" [<>]=? ", e) is not None,
    # 17.3: booleans are in order
    "order of booleans": lambda e, o, t: t is None and o in ("true", "false")
    and re.fullmatch('(true|false|"1".{2}xsd:boolean) [<>]=? (true|false|"1".{2}xsd:boolean)', e)
    is not None,
    # 17.4.2.5: the lexical form, as it is written
    "lexical forms": lambda e, o, t: e.startswith(KEEPING) and o is not None and t is not None
    and re.search('e[0-9]|[0-9]0|24:00|"1".{2}xsd:boolean|float', e) is not None,
    # 17.2.2: the effective boolean value of what is no lexical form is false; it has no order
    "no lexical form": lambda e, o, t: '"x"^^xsd:integer' in e
    and (o, t) in (("2", None), ("true", None), ("false", None), (None, "false"), (None, "true")),
    # XML Schema 2, 3.4.13: an integer has any number of digits; F&O 3.1, 19.1.2.2: as a text 1.0E20
    "long numbers": lambda e, o, t: ("1e20" in e
    and o in ("1" + "0" * 20, "1.0E20", f"{XSD}integer", f"{XSD}decimal"))
    or (t is None and re.fullmatch("-?[0-9]{19,}", o or "") is not None),
    # 17.1: integer / decimal is a decimal
    "nothing divided": lambda e, o, t: re.search(r"-?0(e0)? / ", e) is not None and t is None,
}  # fmt: skip


def _value(solutions: list[Solution]) -> Answer:
    return next((term[1] for solution in solutions for _, term in solution), None)


def test_values_are_those_of_pyoxigraph() -> None:
    rng, rules = Random(f"values{SEED}"), grammar(Path(__file__).parent)
    expressions = list(dict.fromkeys(drawn(rng, "expression", rules) for _ in range(VARIANTS)))
    store = pyoxigraph.Store()
    store.load(DATA, format=pyoxigraph.RdfFormat.TURTLE)
    graph = read_graph(DATA, GraphSyntax.TURTLE)
    counts: Counter[str] = Counter()
    unknown = []
    for expression in expressions:
        query = f"{PREFIX}SELECT (({expression}) AS ?v) {{ ?s <urn:p> ?o }}"
        rows = store.query(query)
        assert isinstance(rows, pyoxigraph.QuerySolutions)
        wanted = solutions_of_oxigraph([{"v": row["v"]} for row in rows])
        matcher = Matcher()
        matcher.add(query)
        made = [result for each in matcher.deliver(graph) for result in each.results]
        found = [solution for result in made for solution in solutions_of_json(result)]
        name = "equal" if are_equal(found, wanted) else None
        answers = _value(found), _value(wanted)
        name = name or next((n for n, of in CLASSES.items() if of(expression, *answers)), None)
        counts[name or "unknown"] += 1
        if name is None:
            unknown.append((expression, *answers))
    print(len(expressions), dict(counts))
    assert not unknown, counts
    assert counts["equal"] > len(expressions) // 2


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('xsd:string("0.1"^^xsd:float)', "0.1"),
        ('xsd:string("16777217"^^xsd:float)', "1.6777216E7"),
        ('xsd:string("2026-05-03T24:00:00.00+00:00"^^xsd:dateTime)', "2026-05-04T00:00:00Z"),
        (
            'xsd:string("2026-05-03T01:02:03.450-05:30"^^xsd:dateTime)',
            "2026-05-03T01:02:03.45-05:30",
        ),
        ('xsd:string("2026-05-03+00:00"^^xsd:date)', "2026-05-03Z"),
        ('substr("abc", 2)', "bc"),
        ('substr("abc", -1, 3)', "a"),
        ('substr("abc", 1.5)', None),
        ('substr("abc", 2e0, 1)', None),
    ],
)
def test_recorded_values(expression: str, value: str | None) -> None:
    matcher = Matcher()
    matcher.add(f"{PREFIX}SELECT (({expression}) AS ?v) {{ ?s <urn:p> ?o }}")
    (made,) = matcher.deliver(read_graph(DATA, GraphSyntax.TURTLE))
    assert _value(solutions_of_json(made.results[0])) == value
