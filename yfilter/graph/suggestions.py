"""What somebody probably meant who wrote something else in a graph profile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from formats.graph.vocabulary import RDF, RDFS, XSD

# Prefixes that nobody has to look up.
KNOWN_PREFIXES = {
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "rss": "http://purl.org/rss/1.0/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "content": "http://purl.org/rss/1.0/modules/content/",
}
# Functions of XPath and SQL -> those of SPARQL.
_FOREIGN_FUNCTIONS = {
    **dict.fromkeys(("starts", "startswith"), "strstarts(…)"),
    **dict.fromkeys(("ends", "endswith"), "strends(…)"),
    **dict.fromkeys(("upper", "toupper"), "ucase(…)"),
    **dict.fromkeys(("lower", "tolower"), "lcase(…)"),
    **dict.fromkeys(("length", "len"), "strlen(…)"),
    "matches": "regex(…)",
    "like": "regex(…) or contains(…)",
    "string": "str(…), or strlen(…) for its length",
    "substring": "substr(…)",
    "not": "'!', or NOT EXISTS { … }",
    "exists": "EXISTS { … }",
    "ceiling": "ceil(…)",
    "isuri": "isURI(…)",
    "type": "datatype(…), or the pattern ?x a <class>",
    "number": "xsd:decimal(…)",
    "integer": "xsd:integer(…)",
    "date": "xsd:dateTime(…)",
}
# Words and symbols of other languages -> what stands there in SPARQL.
_FOREIGN = {
    "and": "'&&'",
    "or": "'||'",
    "not": "'!', or NOT EXISTS { … }",
    "eq": "'='",
    "ne": "'!='",
    "lt": "'<'",
    "le": "'<='",
    "gt": "'>'",
    "ge": "'>='",
    "==": "'='",
    "like": "regex(…) or contains(…)",
    "is": "'=', or bound(…)",
    "between": "two comparisons with '&&'",
    "suchthat": "FILTER(…)",
    "using": "PREFIX p: <…> in front of the query",
    "return": "SELECT ?x … WHERE { … }",
    "join": "a triple with the same variable",
    "null": "!bound(?x)",
}
_HYPHENATED = re.compile(r"[a-z]+(?:-[a-z]+)+(?=\s*\()")
_XPATH_FUNCTIONS = {
    "starts-with": "strstarts(…)",
    "ends-with": "strends(…)",
    "upper-case": "ucase(…)",
    "lower-case": "lcase(…)",
    "string-length": "strlen(…)",
    "substring-before": "strbefore(…)",
    "substring-after": "strafter(…)",
    "encode-for-uri": "encode_for_uri(…)",
}
_XPATH = "a pattern of triples, ?x <property> ?y; a path from '/' is a profile of its own"
_KEYWORDS = (
    *("SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "WHERE", "PREFIX", "BASE", "FILTER", "OPTIONAL"),
    *("UNION", "MINUS", "GRAPH", "BIND", "VALUES", "DISTINCT", "REDUCED", "EXISTS", "NOT", "ORDER"),
    *("GROUP", "HAVING", "LIMIT", "OFFSET", "BY", "AS", "IN", "UNDEF", "SERVICE", "FROM"),
)


def prefix_suggestion(prefix: str, declared: Iterable[str]) -> str:
    """How an undeclared prefix may be declared, or which declared one was meant."""
    if prefix in KNOWN_PREFIXES:
        return f"PREFIX {prefix}: <{KNOWN_PREFIXES[prefix]}> in front of the query"
    if close := get_close_matches(prefix, list(declared), n=1, cutoff=0.5):
        return f"'{close[0]}:'"
    return f"PREFIX {prefix}: <…> in front of the query"


def function_suggestion(name: str, functions: Iterable[str]) -> str:
    """A function of the language in place of one that there is not."""
    if name.lower() in _FOREIGN_FUNCTIONS:
        return _FOREIGN_FUNCTIONS[name.lower()]
    close = get_close_matches(name.lower(), [known.lower() for known in functions], n=1)
    return f"{close[0]}(…)" if close else "a function of the table in docs/graphs.md"


def variable_suggestion(name: str, bound: Iterable[str]) -> str:
    """A variable that the patterns bind in place of one that they do not."""
    close = get_close_matches(name, list(bound), n=1, cutoff=0.5)
    return f"?{close[0]}" if close else f"a pattern with ?{name} in it"


def instead_of(text: str, offset: int, word: str, expected: str) -> str:
    """What the token ``word`` at ``offset`` may have been meant for, or ``expected``."""
    before = text[:offset].rstrip()
    if hyphenated := _HYPHENATED.match(text, offset):
        return _XPATH_FUNCTIONS.get(hyphenated[0], expected)
    if text.startswith("<>", offset):
        return "'!='"
    if text.startswith("<?", offset):
        return "white space behind '<'"
    if word.lower() in _FOREIGN:
        return _FOREIGN[word.lower()]
    if before.endswith("=") and word == "=":
        return "one '='"
    if before.endswith("<") and word == ">":
        return "'!='"
    if word == "/" and before.endswith(("{", ".", "}", "WHERE", "where")):
        return _XPATH
    if word.isalpha():
        if text[: offset + len(word)].endswith("$" + word):
            return f"?{word}"
        if before.upper().endswith(("SELECT", "DISTINCT", " AS")):
            return f"a variable: ?{word}"
        close = get_close_matches(word.upper(), _KEYWORDS, n=1, cutoff=0.7)
        if close and close[0] != word.upper():
            return close[0]
    return expected
