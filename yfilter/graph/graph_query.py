"""Text of a graph profile -> GraphQuery: which language it is in, and what comments in front say of
it: how results are written, and what the taxonomies say (query_text.py).

::

    # results: text/turtle
    PREFIX dc: <http://purl.org/dc/elements/1.1/>
    CONSTRUCT WHERE { ?i dc:creator "Ann" }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from yfilter.errors import ProfileRefused
from yfilter.graph.query_ast import GraphQuery, QueryForm, ResultSyntax
from yfilter.graph.query_shapes import MadeOfWords, QueryShapes
from yfilter.graph.query_text import (
    DEFAULT_RESULTS,
    above_text,
    asked_above,
    filled,
    said_above,
    without_above,
)
from yfilter.language.profile_limits import (
    DEFAULT_PROFILE_LIMITS,
    ProfileLimits,
    checked_text,
    utf8_length,
)

_FIRST = re.compile(
    r"\ufeff?(?:\s+|#[^\r\n]*)*+(?:(?:PREFIX|BASE|SELECT|CONSTRUCT|ASK|DESCRIBE)\b(?!\s*(?:/|::))"
    r"|(?:INSERT|DELETE)\s*(?:DATA\b|WHERE\b|\{))",
    re.IGNORECASE,
)
_COMMENTS = re.compile(r"\ufeff?(?:\s+|#[^\n]*)*+")
_RESULTS = re.compile(r"^[ \t]*#[ \t]*results[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_MAY_ASK_ABOVE = re.compile(r"subClassOf|>=|\\|#[ \t]*above")
ABOVE_BYTES_MAX = 65_536  # of comments on classes above
_GRAPHS = (ResultSyntax.N_TRIPLES, ResultSyntax.TURTLE, ResultSyntax.RDF_XML)
_SYNTAXES = {
    QueryForm.SELECT: (ResultSyntax.JSON, ResultSyntax.XML),
    QueryForm.CONSTRUCT: _GRAPHS,
    QueryForm.ASK: _GRAPHS,
}


def is_graph_query(text: str) -> bool:
    """Whether a profile is to be read as SPARQL or RDQL, by its first word."""
    return _FIRST.match(text) is not None


def may_ask_above(text: str) -> bool:
    """Whether it takes a parser to know that ``with_classes_above`` changes nothing."""
    return _MAY_ASK_ABOVE.search(text) is not None


def with_classes_above(text: str, above: Callable[[bytes], Sequence[bytes]]) -> str:
    """The text of a profile, of any language, with the classes above those that it asks for;
    ``above``: by the taxonomies, IRIs in UTF-8.  What it says of these itself is left out.

    Raises ProfileRefused, also for one that would have too many (``too-many-above``).
    """
    if not may_ask_above(text) or not is_graph_query(text):
        return text
    end = _begin(text)
    asked = asked_above(parse_graph_query(text).where)
    said = above_text((name, tuple(map(bytes.decode, above(name.encode())))) for name in asked)
    rest = without_above(text[:end]) + text[end:]
    room = min(ABOVE_BYTES_MAX, DEFAULT_PROFILE_LIMITS.length_max - utf8_length(rest))
    if utf8_length(said) > room:
        raise ProfileRefused(
            "too-many-above",
            f"the classes above those that it asks for take {utf8_length(said)} bytes to say; "
            f"at most {room}",
        )
    return said + rest


def parse_graph_query(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> GraphQuery:
    """The query that ``text`` says; raises ProfileRefused."""
    if limits is DEFAULT_PROFILE_LIMITS:
        return _SHAPES.read(text)
    return parse_anew(text, limits)


def made_of_words(text: str, *, learns_at_once: bool = False) -> MadeOfWords | None:
    """The query as the words of a shape that is known, or is now; None where the text is parsed."""
    return _SHAPES.made_of_words(text, learns_at_once=learns_at_once)


def parse_anew(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> GraphQuery:
    """The query, whether its shape is known or not."""
    above = said_above(text[: _begin(text)])
    text = checked_text(text, limits)
    try:
        query = _parse(text, limits)
    except RecursionError:
        raise ProfileRefused("too-deep", "nested too deep", text) from None
    if above:
        query = replace(query, where=filled(query.where, above))
    results = _results(text, query.form)
    return query if results is query.results else replace(query, results=results)


def _parse(text: str, limits: ProfileLimits) -> GraphQuery:
    """PERF: whoever holds no graph profiles loads no parsers of them."""
    from yfilter.graph.rdql_parser import RdqlParser, is_rdql  # noqa: PLC0415
    from yfilter.graph.sparql_parser import SparqlParser  # noqa: PLC0415

    parser = RdqlParser if is_rdql(text, _begin(text)) else SparqlParser
    return parser(text, limits).query()


def unbound_variables(text: str) -> list[ProfileRefused]:
    """Of a profile that was accepted: what a query in SPARQL asks of variables that no pattern
    gives a value, which may be misspelt; they are unbound in each solution."""
    from yfilter.graph.rdql_parser import is_rdql  # noqa: PLC0415
    from yfilter.graph.sparql_parser import SparqlParser  # noqa: PLC0415

    if not is_graph_query(text) or is_rdql(text, _begin(text)):
        return []
    text = checked_text(text, DEFAULT_PROFILE_LIMITS)
    parser = SparqlParser(text, DEFAULT_PROFILE_LIMITS)
    parser.query()
    return list(parser.unbound())


_SHAPES = QueryShapes(parse_anew, learns_at_once=False)


def _begin(text: str) -> int:
    """Where the comments in front end."""
    comments = _COMMENTS.match(text)
    return comments.end() if comments else 0


def _results(text: str, form: QueryForm) -> ResultSyntax:
    """What a comment in front of the query says of its results, or what is so anyway."""
    said = _RESULTS.search(text, 0, _begin(text))
    if said is None:
        return DEFAULT_RESULTS[form]
    media_type = said[1].lower()
    syntaxes = _SYNTAXES[form]
    for syntax in syntaxes:
        if syntax.value == media_type:
            return syntax
    names = [syntax.value for syntax in syntaxes]
    close = get_close_matches(media_type, names, n=1, cutoff=0.5)
    raise ProfileRefused(
        "results",
        f"results of {form} are not written as '{said[1]}'",
        text,
        said.start(1),
        close[0] if close else " or ".join(names),
    )
