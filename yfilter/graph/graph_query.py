"""Text of a graph profile -> GraphQuery: which language it is in, and how results are written.

::

    # results: text/turtle
    PREFIX dc: <http://purl.org/dc/elements/1.1/>
    CONSTRUCT WHERE { ?i dc:creator "Ann" }
"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches

from yfilter.errors import ProfileRefused
from yfilter.graph.query_ast import GraphQuery, QueryForm, ResultSyntax
from yfilter.graph.query_shapes import QueryShapes
from yfilter.graph.query_text import DEFAULT_RESULTS
from yfilter.graph.rdql_parser import RdqlParser, is_rdql
from yfilter.graph.sparql_parser import SparqlParser
from yfilter.language.checked_text import checked_text
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS, ProfileLimits

_FIRST = re.compile(
    r"(?:\s+|#[^\r\n]*)*+(?:(?:PREFIX|BASE|SELECT|CONSTRUCT|ASK|DESCRIBE)\b(?!\s*(?:/|::))"
    r"|(?:INSERT|DELETE)\s*(?:DATA\b|WHERE\b|\{))",
    re.IGNORECASE,
)
_COMMENTS = re.compile(r"(?:\s+|#[^\n]*)*+")
_RESULTS = re.compile(r"^[ \t]*#[ \t]*results[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_GRAPHS = (ResultSyntax.N_TRIPLES, ResultSyntax.TURTLE, ResultSyntax.RDF_XML)
_SYNTAXES = {
    QueryForm.SELECT: (ResultSyntax.JSON, ResultSyntax.XML),
    QueryForm.CONSTRUCT: _GRAPHS,
    QueryForm.ASK: _GRAPHS,
}


def is_graph_query(text: str) -> bool:
    """Whether a profile is to be read as SPARQL or RDQL, by its first word."""
    return _FIRST.match(text) is not None


def parse_graph_query(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> GraphQuery:
    """The query that ``text`` says; raises ProfileRefused."""
    if limits is DEFAULT_PROFILE_LIMITS:
        return _SHAPES.read(text)
    return parse_anew(text, limits)


def parse_anew(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> GraphQuery:
    """The query, whether its shape is known or not."""
    text = checked_text(text, limits)
    try:
        parser = RdqlParser if is_rdql(text, _begin(text)) else SparqlParser
        query = parser(text, limits).query()
    except RecursionError:
        raise ProfileRefused("too-deep", "nested too deep", text) from None
    return replace(query, results=_results(text, query.form))


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
