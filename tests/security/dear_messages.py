"""Messages that cost a broker more than others of their size: a table, and a search for more.

A message of the search is a head, pieces that are repeated within it, a middle, other pieces, and a
tail; pieces with a closing part may stand in each other.  The oracle is no clock: it counts calls,
and the elements, attributes and declarations that the message becomes.  What compiled code does
within one call is seen by what it becomes, or by the memory that it takes (``tests/fuzz/cost.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from formats import (
    DecodeError,
    ElementStream,
    MessageLimits,
    MessageRefused,
    WireFormat,
    decode,
    encode,
)
from formats.graph.reader import graph_of_document
from formats.publication import read_publication
from formats.text import parse_text
from tests.fuzz.cost import Meter

XML, TURTLE, TRIG = "application/xml", "text/turtle", "application/trig"
LINES, JSON_LD = "application/n-triples", "application/ld+json"
RDF = b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="u:"'
BASE = "http://e/"
NUMBER = b"\0"  # in a piece: another number each time
SIZE_MAX = 64 * 1024

Piece = tuple[bytes, bytes]
"""What opens it, what closes it."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """``frame``: head, middle and tail of every message; ``pieces`` between head and middle, and
    between middle and tail."""

    format: str
    frame: tuple[bytes, bytes, bytes]
    pieces: tuple[tuple[Piece, ...], tuple[Piece, ...]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A message of any size.  ``share``: of its bytes, in 16 parts, that are before the middle;
    ``depth``: so many pieces stand in each other, 0: all."""

    syntax: Syntax
    first: tuple[Piece, ...]
    second: tuple[Piece, ...]
    share: int
    depth: int

    def message(self, size: int) -> bytes:
        """About so long, and no longer, but for the frame."""
        head, middle, tail = self.syntax.frame
        room = size - len(head) - len(middle) - len(tail)
        before = room * self.share // 16
        first = self._run(self.first, before, 1)
        second = self._run(self.second, room - before, self.depth)
        return b"".join((head, first, middle, second, tail))

    @staticmethod
    def _run(pieces: tuple[Piece, ...], room: int, depth: int) -> bytes:
        made: list[bytes] = []
        closing: list[bytes] = []
        number = used = 0
        while pieces:
            begin, end = pieces[number % len(pieces)]
            begin, end = (each.replace(NUMBER, b"%x" % number) for each in (begin, end))
            used += len(begin) + len(end)
            if used > room:
                break
            made.append(begin)
            closing.append(end)
            number += 1
            if depth and len(closing) == depth:
                made += reversed(closing)
                closing.clear()
        return b"".join((*made, *reversed(closing)))


def _pieces(*texts: str) -> tuple[Piece, ...]:
    """Each with ``...`` between what opens and what closes it, and ``%`` for a number."""
    parts = (text.replace("%", "\0").partition("...") for text in texts)
    return tuple((begin.encode(), end.encode()) for begin, _, end in parts)


SYNTAXES: Mapping[str, Syntax] = {
    "xml": Syntax(
        "text",
        (b"<!DOCTYPE r [", b"]><r>", b"</r>"),
        (
            _pieces(
                *('<!ATTLIST b a% CDATA "x">', '<!ATTLIST b xmlns:p% CDATA "u">'),
                *('<!ATTLIST c% a NMTOKEN "x">', '<!ENTITY e "<b/><b/><b/>">', "<!ELEMENT b% ANY>"),
                *('<!ENTITY e% "&e;&e;">', '<!ENTITY f% "x">', "<!-- -->", "<?p?>"),
            ),
            _pieces(
                *(
                    "<b/>",
                    "<b>...</b>",
                    "<b%/>",
                    "<b a%=''/>",
                    "<b a='' c='' d=''/>",
                    "&e;",
                    "&f1;",
                ),
                *("<b xmlns:p%='u'>...</b>", "<b xmlns='u%'/>", "x", "<![CDATA[]]>", "<?p?>"),
                *("<!---->", "<\u65e5%/>", "&#65;", "<b>", "&e1;"),
            ),
        ),
    ),
    "rdf-xml": Syntax(
        "text",
        (RDF, b">", b"</r:RDF>"),
        (
            _pieces(' xmlns:n%="u"', ' u:a%=""'),
            _pieces(
                *("<u:a>...</u:a>", "<u:b/>", '<u:b r:parseType="Literal">...</u:b>', "<r:li/>"),
                *(
                    '<u:b r:parseType="Collection">...</u:b>',
                    '<u:b r:parseType="Resource">...</u:b>',
                ),
                *(
                    '<u:a r:ID="i%"/>',
                    "<u:b%/>",
                    '<u:b r:nodeID="n%"/>',
                    '<u:b xml:lang="a">x</u:b>',
                ),
                *('<u:a xml:base="u:%">...</u:a>', '<r:Description u:c=""/>'),
            ),
        ),
    ),
    "turtle": Syntax(
        TURTLE,
        (b"", b"<u:s> <u:p> ", b"1 ."),
        (
            _pieces("@prefix p%: <u:%> . ", "<u:s%> <u:p> 1 . ", "<a> <b> <c> . ", "# (\n"),
            _pieces(
                *("(...)", "[ <u:p> ...]", "1, ", "%, ", "(), ", "[], ", "_:b%, ", "'('@a-b%, "),
                *("''^^<u:%>, ", "1 ; <u:p%> ", "<a>, ", "<<( <u:a> <u:b> ...)>>", "(1), "),
            ),
        ),
    ),
    "trig": Syntax(
        TRIG,
        (b"", b"<u:g> { ", b"}"),
        (
            _pieces("GRAPH <u:%> { <u:a> <u:b> 1 } ", "{ <u:a> <u:b> [] } "),
            _pieces("<u:s%> <u:p> 1 . ", "{...}", "[] <u:p> (1 2) . ", "(...) <u:p> 1 . "),
        ),
    ),
    "n-triples": Syntax(
        LINES,
        (b"", b"", b""),
        (
            _pieces("_:a% <u:p> _:b% .\n", '<u:s> <u:p%> "" .\n', "# \n"),
            _pieces('<u:s> <u:%/p> "1"^^<u:d%> .\n', "<u:s%> <u:p> <u:o> .\n", '<u:s> <u:p> "'),
        ),
    ),
    "json-ld": Syntax(
        JSON_LD,
        (b'{"@context":{', b'"z":"u:z"},"u:p":[', b"1]}"),
        (
            _pieces(
                *('"t%":"u:%",', '"t%":{"@id":"u:%","@container":"@list"},', '"t%":"t%%:x",'),
                *('"t%":{"@id":"u:%","@context":{}},', '"t%":{"@id":"u:%","@container":"@type"},'),
            ),
            _pieces(
                *(
                    "1,",
                    "%,",
                    '{"u:a":1},',
                    '{"@list":[...1]},',
                    "[...1],",
                    '{"@id":"u:%"},',
                    "{},",
                ),
                *('{"@context":{},"u:a":1},', '{"t%":1},', '{"@context":{"s%":"u:s"},"t1":[1]},'),
            ),
        ),
    ),
}
BINARY_FORMS = tuple(each for each in WireFormat if each is not WireFormat.TEXT)


def _defaults(attributes: int, elements: int) -> bytes:
    """Elements that a DOCTYPE gives attributes."""
    declared = b" ".join(b'a%d CDATA "x"' % number for number in range(attributes))
    return b"<!DOCTYPE a [<!ATTLIST b %s>]><a>%s</a>" % (declared, b"<b/>" * elements)


def _namespaces(count: int) -> bytes:
    return b"<a %s/>" % b" ".join(b'xmlns:p%d="u"' % number for number in range(count))


def _packed(text: bytes, form: WireFormat) -> bytes:
    return encode(parse_text(text), form)


MEMBERS: Mapping[str, tuple[str, bytes]] = {
    "900 default attributes of 1,000 elements": ("text", _defaults(900, 1_000)),
    "20 default attributes of 15,000 elements": ("text", _defaults(20, 15_000)),
    "3,000 namespace declarations": ("text", _namespaces(3_000)),
    "an entity of 4,000 elements, 200 times": (
        "text",
        b'<!DOCTYPE a [<!ENTITY e "%s">]><a>%s</a>' % (b"<b/>" * 4_000, b"&e;" * 200),
    ),
    "2,000 entities, each made of the next": (
        "text",
        b"<!DOCTYPE a [%s]><a/>"
        % b"".join(b'<!ENTITY e%x "&e%x;">' % (n, n + 1) for n in range(2_000)),
    ),
    "16,000 elements, the last of them not closed": ("text", b"<a>" + b"<b/>" * 16_000),
    "8,000 names": ("text", b"<a>%s</a>" % b"".join(b"<b%x/>" % n for n in range(8_000))),
    "65,000 brackets": (TURTLE, b"<u:a> <u:b> " + b"(" * 65_000),
    "30,000 brackets that are closed": (
        TURTLE,
        b"<u:a> <u:b> %s%s ." % (b"(" * 30_000, b")" * 30_000),
    ),
    "a relative IRI, then 65,000 brackets": (TURTLE, b"<a> <u:b> " + b"(" * 65_000),
    "30,000 items of a list": (TURTLE, b"<u:a> <u:b> (%s) ." % (b"1 " * 30_000)),
    "16,000 objects, the last a triple": (
        TURTLE,
        b"<u:a> <u:b> %s<<( <u:a> <u:b> 1 )>> ." % (b"1," * 16_000),
    ),
    "32,000 items of a list in JSON": (JSON_LD, b'{"u:a":{"@list":[%s1]}}' % (b"1," * 32_000)),
    "60 contexts over 1,800 terms": (
        JSON_LD,
        b'{"@context":{%s"z":"u:z"},"u:b":[%s1]}'
        % (
            b"".join(b'"t%x":"u:%x",' % (n, n) for n in range(1_800)),
            b'{"@context":{},"u:a":1},' * 60,
        ),
    ),
    "10,000 elements in an XML literal": (
        "text",
        b'%s><u:a><u:b r:parseType="Literal">%s</u:b></u:a></r:RDF>' % (RDF, b"<u:a/>" * 10_000),
    ),
    "9,000 members of a container": (
        "text",
        b"%s><u:a>%s</u:a></r:RDF>" % (RDF, b"<r:li/>" * 9_000),
    ),
    "300 bytes that unpack to 400,000 elements": (
        "text+zstd",
        _packed(b"<a>%s</a>" % (b"<b/>" * 400_000), WireFormat.TEXT_ZSTD),
    ),
    "50 bytes of binary for 400,000 attributes": (
        "binary+zstd",
        _packed(b"<a>%s</a>" % (b"<b c=''/>" * 400_000), WireFormat.BINARY_ZSTD),
    ),
}
"""By name: the format of a Publish frame, and the payload."""


@dataclass(frozen=True, slots=True)
class Cost:
    """``calls`` of functions; ``parts``: elements, attributes and declarations that the message
    becomes, with its graph; ``refused``: the code, "" if it is not."""

    calls: int
    parts: int
    refused: str

    @property
    def total(self) -> int:
        return self.calls + self.parts


def read(form: str, payload: bytes, limits: MessageLimits) -> Iterator[ElementStream]:
    """What a root broker makes of a message; MessageRefused or DecodeError."""
    if "/" in form:
        yield read_publication(payload, form, limits, base=BASE)
        return
    scaled = limits if form == "text" else limits.of(len(payload))
    stream = decode(payload, WireFormat(form), scaled)
    yield stream
    if stream.names[stream.element_name[0]].local == "RDF":
        yield graph_of_document(stream, base=BASE)


def cost(form: str, payload: bytes, limits: MessageLimits | None = None) -> Cost:
    """TooCostly beyond what the meter allows."""
    parts, refused, meter = 0, "", Meter()
    with meter:
        try:
            for stream in read(form, payload, limits or MessageLimits()):
                parts += len(stream) + len(stream.attribute_name) + len(stream.declarations)
                encode(stream, WireFormat.BINARY)
        except (MessageRefused, DecodeError) as refusal:
            refused = refusal.code
    meter.check()
    return Cost(meter.calls, parts, refused)


def search(
    name: str, chance: Random, rounds: int, size: int, value: Callable[[str, bytes], float]
) -> tuple[float, Shape]:
    """The dearest that is found in a syntax: the best so far is changed in one place."""
    syntax = SYNTAXES[name]
    best = max(
        (_valued(_any(syntax, chance), size, value) for _ in range(max(rounds // 3, 1))),
        key=lambda pair: pair[0],
    )
    for _ in range(rounds):
        other = _valued(_changed(best[1], chance), size, value)
        if other[0] > best[0]:
            best = other
    return best


def damaged_forms(chance: Random, count: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Messages of the search in the binary forms, some bytes of which are others."""
    while count:
        text = _any(SYNTAXES["xml"], chance).message(size)
        form = chance.choice(BINARY_FORMS)
        try:
            payload = bytearray(encode(parse_text(text), form))
        except MessageRefused:
            continue
        for _ in range(chance.randrange(4)):
            payload[chance.randrange(len(payload))] = chance.randrange(256)
        yield form.value, bytes(payload)
        count -= 1


def _valued(shape: Shape, size: int, value: Callable[[str, bytes], float]) -> tuple[float, Shape]:
    return value(shape.syntax.format, shape.message(size)), shape


def _some(pieces: tuple[Piece, ...], chance: Random) -> tuple[Piece, ...]:
    return tuple(chance.choice(pieces) for _ in range(chance.choice((1, 1, 2, 3))))


def _any(syntax: Syntax, chance: Random) -> Shape:
    first, second = (_some(pieces, chance) for pieces in syntax.pieces)
    return Shape(syntax, first, second, chance.randrange(17), chance.choice((0, 1, 1, 8, 60)))


def _changed(shape: Shape, chance: Random) -> Shape:
    first, second = shape.syntax.pieces
    return chance.choice(
        (
            replace(shape, first=_some(first, chance)),
            replace(shape, second=_some(second, chance)),
            replace(shape, second=(*shape.second, chance.choice(second))[-4:]),
            replace(shape, share=chance.randrange(17)),
            replace(shape, depth=chance.choice((0, 1, 8, 60, 200))),
        )
    )
