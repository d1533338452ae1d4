"""The text of a graph profile: ``parse_graph_query(unparse(query)) == query``.

It is standard SPARQL and says all by itself: IRIs are in full.  A blank node of a pattern is
written as a variable that no user may select, ``_:0`` as ``?__0``, as it may stand in several
groups, which a blank node in SPARQL may not.

::

    # results: application/sparql-results+xml
    SELECT ?i WHERE { ?i <http://purl.org/dc/elements/1.1/creator> "Ann" . FILTER(?i != ?j) . }
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from formats.graph.vocabulary import RDF_TYPE, RDFS, XSD
from yfilter.errors import MatchLimitExceeded
from yfilter.graph import query_ast as sparql
from yfilter.language import query_ast as ast
from yfilter.language.temporal import moment_at
from yfilter.language.trees import Tree, changed, nodes_of

# -------------------------------------------------------------------------------------------------
# Classes above those asked for with ``a/^rdfs:subClassOf*``: brokers on a message's way do not know
# the taxonomies, so the profile has a comment in front for each class that has any::
#
#     # above <http://topics.example/Fog>: <http://topics.example/Weather> <http://e/Topic>
#     SELECT ?post { ?post a/^rdfs:subClassOf* <http://topics.example/Fog> }


_LINE = re.compile(
    r"^[ \t]*#[ \t]*above[ \t]+<([^<>\s]*)>[ \t]*:((?:[ \t]*<[^<>\s]*>)*)[ \t]*(?:\r\n?|\n|$)",
    re.MULTILINE,
)
_IRI = re.compile(r"<([^<>\s]*)>")


def said_above(comments: str) -> dict[str, tuple[str, ...]]:
    """The classes above each, as comments say them."""
    return {found[1]: tuple(_IRI.findall(found[2])) for found in _LINE.finditer(comments)}


def without_above(comments: str) -> str:
    """The comments without these."""
    return _LINE.sub("", comments)


def asked_above(tree: object) -> dict[str, tuple[str, ...]]:
    """The classes of which those above are asked for, each with these."""
    return {
        node.object.value: node.classes
        for node in nodes_of(tree)
        if isinstance(node, sparql.TriplePattern)
        and node.closure is sparql.Closure.INSTANCE_ABOVE
        and isinstance(node.object, sparql.Iri)
    }


def filled(tree: Tree, above: Mapping[str, tuple[str, ...]]) -> Tree:
    """The tree with the classes above those that it asks for."""

    def fill(node: object) -> object:
        match node:
            case sparql.TriplePattern(_, _, sparql.Iri(name), sparql.Closure.INSTANCE_ABOVE):
                return replace(node, classes=above.get(name, ()))
        return node

    return changed(tree, fill)


def above_text(asked: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """The comments of (class, those above it)."""
    return "".join(
        f"# above <{name}>: {' '.join(f'<{one}>' for one in classes)}\n"
        for name, classes in asked
        if classes
    )


DEFAULT_RESULTS = {
    sparql.QueryForm.SELECT: sparql.ResultSyntax.JSON,
    sparql.QueryForm.CONSTRUCT: sparql.ResultSyntax.N_TRIPLES,
    sparql.QueryForm.ASK: sparql.ResultSyntax.AS_PUBLISHED,
}
_WRITTEN_BLANK = re.compile("__[0-9]+")
ESCAPED = re.compile(r'[\\"\n\r\t]')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


_AT_A_TIME = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|<[^<>\s]*>|[?$]\w+|\w*:\w*"
    r"|\b(?P<service>SERVICE)\b|\b(?P<now>NOW)\( \)",
    re.IGNORECASE,
)


def asked_at(whole: str, accepted: int | None) -> str:
    """A whole query as pyoxigraph is asked it of a message that was ``accepted`` then (see
    ElementStream): NOW() is put in, an error where nobody knows it.

    MatchLimitExceeded for SERVICE, for which it would send requests.
    """
    parts = _around_now(whole)
    if len(parts) == 1:
        return whole
    now = f'"{moment_at(accepted)}"^^<{XSD}dateTime>' if accepted else "(1/0)"
    return now.join(parts)


@lru_cache  # PERF: the same for each message
def _around_now(whole: str) -> tuple[str, ...]:
    """The text before, between and behind each NOW(); MatchLimitExceeded as ``asked_at``."""
    parts, start = [], 0
    for found in _AT_A_TIME.finditer(whole):
        if found["service"]:
            raise MatchLimitExceeded("query-failed", "SERVICE is not answered")
        if found["now"]:
            parts.append(whole[start : found.start()])
            start = found.end()
    return (*parts, whole[start:])


def unparse(query: sparql.GraphQuery) -> str:
    """The canonical text of a query."""
    results = ""
    if query.results is not DEFAULT_RESULTS[query.form]:
        results = f"# results: {query.results.value}\n"
    if query.whole:
        return results + query.whole
    results = above_text(asked_above(query.where).items()) + results
    match query.form:
        case sparql.QueryForm.SELECT:
            distinct = "DISTINCT " if query.is_distinct else ""
            variables = " ".join(map(term_text, query.variables)) or "*"
            head = f"SELECT {distinct}{variables}"
        case sparql.QueryForm.CONSTRUCT:
            template = "".join(f" {_template_text(triple)} ." for triple in query.template)
            head = f"CONSTRUCT {{{template} }}"
        case sparql.QueryForm.ASK:
            head = "ASK"
    return f"{results}{head} WHERE {group_text(query.where)}"


def is_written_blank(name: str) -> bool:
    """Whether a variable of this name is how ``unparse`` writes a blank node."""
    return name.startswith("__") and _WRITTEN_BLANK.fullmatch(name) is not None


def quoted(text: str) -> str:
    """A string of SPARQL."""
    return f'"{ESCAPED.sub(lambda found: _ESCAPES[found[0]], text)}"'


def term_text(term: sparql.Term) -> str:
    match term:
        case sparql.Iri(value):
            return f"<{value}>"
        case sparql.Variable(name):
            return f"?__{name[2:]}" if term.is_blank else f"?{name}"
        case sparql.LiteralTerm(lexical, datatype, language):
            if language:
                return f"{quoted(lexical)}@{language}"
            suffix = "" if datatype == _STRING else f"^^<{datatype}>"
            return quoted(lexical) + suffix


_STRING = XSD + "string"


def group_text(group: sparql.Group) -> str:
    return "{" + "".join(f" {element_text(element)} ." for element in group.elements) + " }"


def element_text(element: sparql.GroupElement) -> str:
    match element:
        case sparql.TriplePattern():
            return _triple_text(element)
        case sparql.Filter(condition):
            return f"FILTER({expression_text(condition)})"
        case sparql.Bind(value, variable):
            return f"BIND({expression_text(value)} AS {term_text(variable)})"
        case sparql.Alternatives(groups):
            return " UNION ".join(map(group_text, groups))
        case sparql.Optionally(group):
            return f"OPTIONAL {group_text(group)}"
        case sparql.Minus(group):
            return f"MINUS {group_text(group)}"
        case sparql.InGraph(graph, group):
            return f"GRAPH {term_text(graph)} {group_text(group)}"
        case sparql.Values(variables, rows):
            names = " ".join(map(term_text, variables))
            return f"VALUES ({names}) {{{''.join(map(_row_text, rows))} }}"
        case sparql.Group():
            return group_text(element)


def _row_text(row: tuple[sparql.Iri | sparql.LiteralTerm | None, ...]) -> str:
    return f" ({' '.join('UNDEF' if term is None else term_text(term) for term in row)})"


def _triple_text(triple: sparql.TriplePattern) -> str:
    subject, value = term_text(triple.subject), term_text(triple.object)
    match triple.closure:
        case sparql.Closure.NONE:
            return f"{subject} {term_text(triple.property)} {value}"
        case sparql.Closure.INSTANCE:
            return f"{subject} <{RDF_TYPE}>/<{RDFS}subClassOf>* {value}"
        case sparql.Closure.PROPERTY:
            above = term_text(triple.property)
            return f"{subject} {above} {value} . {above} <{RDFS}subPropertyOf>* <{triple.above}>"
        case sparql.Closure.INSTANCE_ABOVE:
            return f"{subject} <{RDF_TYPE}>/^<{RDFS}subClassOf>* {value}"


def _template_text(triple: sparql.TriplePattern) -> str:
    terms = (triple.subject, triple.property, triple.object)
    return " ".join(
        term.name if isinstance(term, sparql.Variable) and term.is_blank else term_text(term)
        for term in terms
    )


def expression_text(expression: ast.Expression) -> str:
    """Parts are in parentheses wherever they might be needed."""
    match expression:
        case ast.Comparison(left, operator, right):
            return f"{_part_text(left)} {operator.value} {_part_text(right)}"
        case ast.And(parts):
            return " && ".join(map(_part_text, parts))
        case ast.Or(parts):
            return " || ".join(map(_part_text, parts))
        case ast.FunctionCall("not", (operand,)):
            return f"!{_part_text(operand)}"
        case sparql.Membership(operand, choices, is_negated):
            word = "NOT IN" if is_negated else "IN"
            return f"{_part_text(operand)} {word} ({', '.join(map(expression_text, choices))})"
        case ast.FunctionCall("-", (operand,)):
            return f"- {_part_text(operand)}"
        case ast.FunctionCall("+" | "-" | "*" | "/" as operator, operands):
            return f" {operator} ".join(map(_part_text, operands))
        case ast.FunctionCall(name, arguments):
            called = f"<{name}>" if ":" in name else name
            return f"{called}({', '.join(map(expression_text, arguments))})"
        case sparql.Exists(group, is_negated):
            return f"{'NOT ' if is_negated else ''}EXISTS {group_text(group)}"
        case sparql.Iri() | sparql.LiteralTerm() | sparql.Variable():
            return term_text(expression)
    raise TypeError(f"{type(expression).__name__} has no text")


def _part_text(expression: ast.Expression) -> str:
    text = expression_text(expression)
    match expression:
        case sparql.Iri() | sparql.LiteralTerm() | sparql.Variable():
            return text
        case ast.FunctionCall(name) if name[0].isalpha() and name != "not":
            return text
    return f"({text})"
