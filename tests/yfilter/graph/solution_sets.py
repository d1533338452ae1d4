"""Solutions of independent processors, compared as multisets up to the names of blank nodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TypeAlias

import pyoxigraph
from lxml import etree

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = {XSD + name for name in ("integer", "decimal", "float", "double")}
SPARQL = "{http://www.w3.org/2005/sparql-results#}"
XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

Term: TypeAlias = "tuple[str, ...]"
"""(kind, value, datatype or language); kind: uri, bnode or literal."""
Solution: TypeAlias = "frozenset[tuple[str, Term]]"


def solutions_of_json(document: bytes) -> list[Solution]:
    """The solutions of SPARQL 1.1 results JSON."""
    bindings = json.loads(document)["results"]["bindings"]
    return [
        frozenset((name, _term_of_json(term)) for name, term in solution.items())
        for solution in bindings
    ]


def solutions_of_xml(document: bytes) -> list[Solution]:
    """The solutions of SPARQL results XML."""
    found = []
    for result in etree.fromstring(document).iter(f"{SPARQL}result"):
        found.append(frozenset((str(each.get("name")), _term_of_xml(each[0])) for each in result))
    return found


def solutions_of_oxigraph(rows: Iterable[Mapping[str, object]]) -> list[Solution]:
    """Of (name, term) pairs of pyoxigraph."""
    return [
        frozenset((name, term_of(term)) for name, term in row.items() if term is not None)
        for row in rows
    ]


def term_of(term: object) -> Term:
    """A term of pyoxigraph."""
    if isinstance(term, pyoxigraph.NamedNode):
        return ("uri", term.value, "")
    if isinstance(term, pyoxigraph.BlankNode):
        return ("bnode", term.value, "")
    assert isinstance(term, pyoxigraph.Literal), term
    return literal(term.value, term.datatype.value, term.language or "")


def literal(lexical: str, datatype: str, language: str) -> Term:
    """A literal; of a number that somebody computed the value counts."""
    if language:
        return ("literal", lexical, f"@{language.lower()}")
    if datatype in NUMBERS and _is_number(lexical):
        return ("literal", _canonical(lexical), datatype)
    return ("literal", lexical, datatype or f"{XSD}string")


def are_equal(one: Iterable[Solution], other: Iterable[Solution]) -> bool:
    """Whether two multisets of solutions are the same, for some renaming of blank nodes."""
    left, right = list(one), list(other)
    if len(left) != len(right):
        return False
    if Counter(map(_nameless, left)) != Counter(map(_nameless, right)):
        return False
    left.sort(key=lambda solution: -len(_blanks(solution)))
    return _pair(left, right, {}, {})


def _pair(
    left: list[Solution], right: list[Solution], names: dict[str, str], taken: dict[str, str]
) -> bool:
    if not left:
        return True
    first = left[0]
    tried = set()
    for place, candidate in enumerate(right):
        if candidate in tried or _nameless(candidate) != _nameless(first):
            continue
        tried.add(candidate)
        more = _names(first, candidate, names, taken)
        if more is None:
            continue
        back = {value: key for key, value in more.items()}
        if _pair(left[1:], right[:place] + right[place + 1 :], names | more, taken | back):
            return True
        if not more:
            return False
    return False


def _names(
    one: Solution, other: Solution, names: dict[str, str], taken: dict[str, str]
) -> dict[str, str] | None:
    """The blank nodes of one as they are called in the other, those known before left out."""
    known = dict(other)
    more: dict[str, str] = {}
    for name, term in one:
        if term[0] != "bnode":
            continue
        label = known[name][1]
        expected = names.get(term[1]) or more.get(term[1])
        back = taken.get(label) or {v: k for k, v in more.items()}.get(label)
        if expected not in (None, label) or back not in (None, term[1]):
            return None
        if expected is None:
            more[term[1]] = label
    return more


def _blanks(solution: Solution) -> list[str]:
    return [term[1] for _, term in solution if term[0] == "bnode"]


def _nameless(solution: Solution) -> Solution:
    return frozenset((name, ("bnode",) if term[0] == "bnode" else term) for name, term in solution)


def _term_of_json(term: Mapping[str, str]) -> Term:
    if term["type"] in ("uri", "bnode"):
        return (term["type"], term["value"], "")
    return literal(term["value"], term.get("datatype", ""), term.get("xml:lang", ""))


def _term_of_xml(element: etree._Element) -> Term:
    kind = str(element.tag).removeprefix(SPARQL)
    text = element.text or ""
    if kind in ("uri", "bnode"):
        return (kind, text, "")
    return literal(text, element.get("datatype") or "", element.get(XML_LANGUAGE) or "")


def _is_number(lexical: str) -> bool:
    try:
        return Decimal(lexical).is_finite()
    except ArithmeticError:
        return False


def _canonical(lexical: str) -> str:
    number = Decimal(lexical)
    return f"{number.normalize():f}" if number else "0"
