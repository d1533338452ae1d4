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
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import NamedTuple

from formats.characters import find_illegal_character
from yfilter.errors import ProfileRefused
from yfilter.graph.query_ast import GraphQuery, Group, LiteralTerm, QueryForm, ResultSyntax
from yfilter.graph.query_text import (
    DEFAULT_RESULTS,
    ESCAPED,
    above_text,
    asked_above,
    filled,
    said_above,
    unparse,
    without_above,
)
from yfilter.graph.stars import GraphPart, graph_part
from yfilter.graph.term_conditions import plain_number
from yfilter.language import query_ast as ast
from yfilter.language.profile_limits import (
    DEFAULT_PROFILE_LIMITS,
    ProfileLimits,
    checked_text,
    utf8_length,
)
from yfilter.language.shapes import Partial, Shape, Shaped, TextShapes, Word, blank_like, filling
from yfilter.language.trees import Tree, changed, nodes_of

# -------------------------------------------------------------------------------------------------
# The *words* of a text are its plain strings, its short numbers and its IRIs in brackets; its
# *shape* is all the rest::
#
#     SELECT ?i { ?i dc:creator "Ann" ; ex:price ?p FILTER(?p < 10) }     words  Ann, 10
#
# The text is read with a placeholder for each word; where these are in the tree, and in its paths,
# the words of other texts will be.  A word belongs to the shape where its placeholder is not in
# both, or only a part of something, and in regular expressions, which are checked as read.
#
# PERF: 25 us instead of 117 for reading a profile of one star, 12 us instead of 77 for its paths
# (``benchmarks graph --part profiles``).


LENGTH_MAX = 2_048
KEYS_MAX = 8_192

_WORD = re.compile(
    r"""(?i:PREFIX)\s+[^\s<]*\s*<[^>]*> | \#[^\n]*
      | "(?P<quoted>[^"\n]+)"(?!\s*\^\^) | '(?P<single>[^'\n]+)'(?!\s*\^\^)
      | "[^"\n]*" | '[^'\n]*'
      | <(?P<iri>(?!http://www\.w3\.org/)https?://[A-Za-z0-9.-]{1,100}
            (?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,60}){0,4}/?(?:\#[A-Za-z0-9_-]{0,60})?)>
      | <[^<>"{}|^`\s]*>
      | (?<![\w:.+\-?$%/])(?:
            (?P<decimal>[0-9]{1,4}\.[0-9]{1,2}) | (?P<integer>[0-9]{1,6}) )(?![\w:]|\.[0-9eE])
    """,
    re.VERBOSE,
)
_MARK = "urn:onyx:word"
_MARKS = {
    "quoted": (f"{_MARK} %d", "\x01"),
    "single": (f"{_MARK} %d", "\x02"),
    "iri": (f"{_MARK}:w%d", "\x03"),
    "decimal": ("9%03d.25", "\x04"),
    "integer": ("9000%03d", "\x05"),
}
_MARK_OF = {sign: mark for mark, sign in _MARKS.values()}
_PART_OF = re.compile(rf"{_MARK}[ :]w?([0-9]+)|\Aw([0-9]+)\Z")
_OWN = re.compile(rf"{_MARK}|90[0-9]{{2}}|\\|\"\"\"|'''|\bBASE\b|\#[ \t]*above\b", re.IGNORECASE)
_WORDS_MAX = 64


@dataclass(frozen=True, slots=True, eq=False)
class GraphShape:
    """``text``: of the query, between the words of these numbers.  ``part``: what ``graph_part``
    makes of it.  ``of_index``: the query with the paths of its part, which have blanks;
    ``made_of``: what makes the words of these (shapes.py)."""

    query: Callable[[tuple[Word, ...]], GraphQuery]
    text: tuple[list[str], list[int]]
    part: Callable[[tuple[Word, ...]], GraphPart]
    of_index: Shape
    made_of: tuple[Callable[[str], Word], ...]


class MadeOfWords(NamedTuple):
    """A query as its shape and its words."""

    shape: GraphShape
    words: tuple[str, ...]

    def fill(self) -> GraphQuery:
        query = self.shape.query(self.words)
        return replace(query, known_part=_Origin(query.where, self))

    def text(self) -> str:
        """What ``unparse`` makes of the query."""
        pieces, numbers = self.shape.text
        if any(map(ESCAPED.search, self.words)):
            return unparse(self.fill())
        pieces = pieces.copy()
        pieces[1::2] = [self.words[number] for number in numbers]
        return "".join(pieces)

    def shapes(self) -> tuple[Shape, ...]:
        return (self.shape.of_index,)

    def shaped(self) -> Shaped:
        """What the index looks at, as the shape and the words of a profile."""
        made_of = zip(self.shape.made_of, self.words, strict=True)
        return Shaped(self.shape.of_index, tuple([make(word) for make, word in made_of]))


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a query comes from; it is of the query as long as that has the same ``where``."""

    where: Group
    made: MadeOfWords

    def part(self) -> GraphPart:
        return self.made.shape.part(self.made.shaped().words)


@dataclass(frozen=True, slots=True)
class _Blank:
    """Where the query of a shape comes from: its part has blanks."""

    where: Group
    blank_part: GraphPart

    def part(self) -> GraphPart:
        return self.blank_part


class QueryShapes:
    """``read`` gives what ``parse`` gives, and refuses what it refuses.

    ``learns_at_once``: with the first text of a shape, and not with the second.  To learn a shape
    takes as long as three texts.
    """

    def __init__(
        self,
        parse: Callable[[str], GraphQuery],
        keys_max: int = KEYS_MAX,
        *,
        learns_at_once: bool = True,
    ) -> None:
        self._parse = parse
        self._learns_at_once = learns_at_once
        self.texts = TextShapes(self._learn, keys_max)

    def read(self, text: str) -> GraphQuery:
        made = self.made_of_words(text)
        return self._parse(text) if made is None else made.fill()

    def made_of_words(self, text: str, *, learns_at_once: bool = False) -> MadeOfWords | None:
        """What ``read`` makes the query of; None where it parses the text.

        ``learns_at_once``: so this time.
        """
        if len(text) > LENGTH_MAX or _OWN.search(text) or find_illegal_character(text) >= 0:
            return None
        pieces, words = _taken_apart(text)
        if len(words) > _WORDS_MAX or len(set(words)) < len(words):
            return None
        at_once = learns_at_once or self._learns_at_once
        shape = self.texts.known(pieces, words, at_once=at_once)
        return None if shape is None else MadeOfWords(shape, tuple(words))

    def _learn(
        self, pieces: list[str], words: list[str], fixed: tuple[int, ...]
    ) -> GraphShape | Partial | None:
        shown = [
            word if number in fixed else _MARK_OF[mark] % number
            for number, (mark, word) in enumerate(zip(pieces[1::2], words, strict=True))
        ]
        text = "".join(
            shown[place // 2] if place % 2 else piece for place, piece in enumerate(pieces)
        )
        try:
            query = self._parse(text)
        except ProfileRefused:
            return None
        if query.whole:
            return None
        free = {mark: n for n, mark in enumerate(shown) if n not in fixed}
        of_query, of_part = _Blanks(free), _Blanks(free)
        part = of_part.of(graph_part(query))
        tree = replace(query, known_part=_Blank(query.where, part))
        made_of = tuple(_number_of if n in of_part.numbers else str for n in range(len(words)))
        marks = "|".join(map(re.escape, sorted(free, key=len, reverse=True)))
        written = re.split(f"({marks})", unparse(query)) if free else [unparse(query)]
        places = [free[mark] for mark in written[1::2]]
        fill = filling(of_query.of(query)), filling(part)
        shape = GraphShape(fill[0], (written, places), fill[1], Shape(tree), made_of)
        every = set(free.values())
        belong = set(fixed)
        for one in (of_query, of_part):
            belong |= (every - one.used) | (every & one.in_part)
        for node in nodes_of(query):
            if isinstance(node, ast.FunctionCall) and node.name == "regex":
                texts = [one.lexical for one in node.arguments if isinstance(one, LiteralTerm)]
                belong |= {free[one] for one in texts if one in free}
        if belong == set(fixed):
            return shape
        return None if fixed else Partial(tuple(sorted(belong)))


def _taken_apart(text: str) -> tuple[list[str], list[str]]:
    """Pieces of a text, every second of which stands for a word, by its kind; the words."""
    pieces: list[str] = []
    words: list[str] = []
    end = 0
    for found in _WORD.finditer(text):
        kind = found.lastgroup
        if kind is not None:
            first, last = found.span(kind)
            pieces += (text[end:first], _MARKS[kind][1])
            words.append(text[first:last])
            end = last
    pieces.append(text[end:])
    return pieces, words


class _Blanks:
    """Puts blanks in the place of marks in a tree; ``numbers``: the words that stand for numbers,
    ``used``: those that it found a place for, ``in_part``: those that are a part of something."""

    def __init__(self, free: dict[str, int]) -> None:
        self.numbers: set[int] = set()
        self.used: set[int] = set()
        self.in_part: set[int] = set()
        self._free = free
        self._numbers = {Decimal(mark): n for mark, n in free.items() if mark[0].isdecimal()}

    def of(self, tree: Tree) -> Tree:
        return changed(tree, self._blank)

    def _blank(self, part: object) -> object:
        if isinstance(part, str):
            number = self._free.get(part)
            if number is None:
                found = _PART_OF.finditer(part)
                self.in_part.update(int(one[1] or one[2]) for one in found)
        elif isinstance(part, int | Decimal):
            number = self._numbers.get(Decimal(part))
            if number is not None:
                self.numbers.add(number)
        else:
            return part
        if number is None:
            return part
        self.used.add(number)
        return blank_like("" if isinstance(part, str) else 0, number)


def _number_of(word: str) -> Word:
    return plain_number(float(word))


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
    from yfilter.graph.sparql_parser import RdqlParser, SparqlParser, is_rdql  # noqa: PLC0415

    parser = RdqlParser if is_rdql(text, _begin(text)) else SparqlParser
    return parser(text, limits).query()


def unbound_variables(text: str) -> list[ProfileRefused]:
    """Of a profile that was accepted: what a query in SPARQL asks of variables that no pattern
    gives a value, which may be misspelt; they are unbound in each solution."""
    from yfilter.graph.sparql_parser import SparqlParser, is_rdql  # noqa: PLC0415

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
