"""ResultPlan: the results of most profiles, written without an interpreter.

Most ``return`` clauses copy elements that are found by child steps from the bound one, write their
strings, or put them into attributes::

    for $i in //item return <hit id="{$i/@id}">{$i/title}, {string($i/body/p)}</hit>

Such a constructor is a list of pieces, made once, and a result is one pass over them.  The same is
done for a constructor around all results.  What is written is what ``construction`` writes; every
other profile goes there, and so does every message that declares namespaces below its root element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from formats.element_stream import ElementStream
from formats.xml_writer import escaped_text, escaped_value, subtree_writer
from yfilter.language.budget import Budget
from yfilter.language.query_ast import (
    ANY,
    PART_VARIABLE,
    Constructor,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    NameTest,
    NodeKind,
    Origin,
    Part,
    PathExpression,
    Profile,
)


@dataclass(frozen=True, slots=True)
class _Way:
    """Child steps from the bound element, and an attribute of what they lead to."""

    steps: tuple[NameTest, ...]
    attribute: NameTest | None


@dataclass(frozen=True, slots=True)
class _Copies:
    """All elements at the end of a way."""

    way: _Way


@dataclass(frozen=True, slots=True)
class _Text:
    """The string of the first node at the end of a way."""

    way: _Way


@dataclass(frozen=True, slots=True)
class _Element:
    """``attributes``: label and value, each in pieces; the strings of a way with spaces between."""

    tag: bytes
    attributes: tuple[tuple[bytes, tuple[bytes | _Way, ...]], ...]
    content: tuple[_Piece, ...]


@dataclass(frozen=True, slots=True)
class _Spliced:
    """What came with the message for the bound element; ``otherwise`` where nothing has come."""

    digest: str
    otherwise: _Piece | None


class NoPiece(Exception):
    """A piece has not come, and a plan cannot say how it is computed."""


_Piece: TypeAlias = "bytes | _Copies | _Text | _Element | _Spliced"


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """``each`` is written for each bound element; within ``around`` if there is one."""

    each: _Piece
    around: tuple[bytes, bytes] | None

    def results(self, stream: ElementStream, bindings: list[int], budget: Budget) -> list[bytes]:
        """The documents.  Raises MatchLimitExceeded, and NoPiece for a profile with parts."""
        writing = _writing(stream)
        writing.budget = budget
        documents = []
        for binding in bindings:
            budget.charge_tuple()
            parts: list[bytes] = []
            writing.write(parts, self.each, binding)
            documents.append(b"".join(parts))
        if self.around is None:
            return documents
        return [b"".join((self.around[0], *documents, self.around[1]))]


def is_plain_message(stream: ElementStream) -> bool:
    """Whether namespaces are declared on the root element only."""
    declared = stream.declaration_element
    return not declared or declared[len(declared) - 1] == 0


def result_plan(profile: Profile) -> ResultPlan | None:
    """The plan, if there is one, of a profile that binds its path's elements, no remainder left."""
    flwor = profile.flwor
    if flwor is None or len(flwor.clauses) != 1 or flwor.order:
        return None
    clause = flwor.clauses[0]
    if not isinstance(clause, ForClause) or clause.position:
        return None
    each = _piece(flwor.result, clause.variable)
    if not isinstance(each, _Copies | _Element | _Spliced) or (
        isinstance(each, _Copies) and each.way.steps
    ):
        return None
    if profile.body is flwor:
        return ResultPlan(each, None)
    around = _around(profile.body, flwor)
    return None if around is None else ResultPlan(each, around)


class _Writing:
    """Pieces written for one message, on the ``budget`` of one profile after the other."""

    budget: Budget

    def __init__(self, stream: ElementStream) -> None:
        self.stream = stream
        self._writer = subtree_writer(stream)
        self._numbers: dict[NameTest, list[int]] = {}
        scope = stream.namespaces_in_scope(0).items()
        self._declarations = "".join(
            f' xmlns{":" if prefix else ""}{prefix}="{escaped_value(uri)}"' for prefix, uri in scope
        ).encode()

    def write(self, parts: list[bytes], piece: _Piece, binding: int) -> None:
        if isinstance(piece, bytes):
            parts.append(piece)
        elif isinstance(piece, _Copies):
            for element in self._elements(piece.way, binding):
                self._add(parts, self._writer.element(element, self._declarations))
        elif isinstance(piece, _Text):
            strings = self._strings(piece.way, binding)
            if strings and strings[0]:
                self._add(parts, escaped_text(strings[0]).encode())
        elif isinstance(piece, _Spliced):
            self._splice(parts, piece, binding)
        else:
            self._write_element(parts, piece, binding)

    def _splice(self, parts: list[bytes], spliced: _Spliced, binding: int) -> None:
        markup = self.stream.pieces.get((binding, spliced.digest))
        if markup:
            self._add(parts, markup)
        elif markup is None:
            if spliced.otherwise is None:
                raise NoPiece
            self.write(parts, spliced.otherwise, binding)

    def _write_element(self, parts: list[bytes], element: _Element, binding: int) -> None:
        parts += (b"<", element.tag)
        for label, value in element.attributes:
            parts.append(label)
            for part in value:
                if isinstance(part, bytes):
                    parts.append(part)
                else:
                    text = " ".join(self._strings(part, binding))
                    self._add(parts, escaped_value(text).encode())
            parts.append(b'"')
        before = len(parts)
        parts.append(b">")
        for piece in element.content:
            self.write(parts, piece, binding)
        if len(parts) == before + 1:
            parts[before] = b"/>"
        else:
            parts += (b"</", element.tag, b">")

    def _add(self, parts: list[bytes], written: bytes) -> None:
        self.budget.charge_bytes(len(written))
        parts.append(written)

    def _elements(self, way: _Way, binding: int) -> list[int]:
        found = [binding]
        for test in way.steps:
            numbers = self._numbers_of(test)
            if not numbers:
                return []
            writer = self._writer
            if len(numbers) == 1:
                found = [
                    child for element in found for child in writer.children(element, numbers[0])
                ]
            else:  # one name with several prefixes
                found = sorted(
                    child
                    for element in found
                    for number in numbers
                    for child in writer.children(element, number)
                )
            self.budget.charge(writer.looked_at())
        return found

    def _strings(self, way: _Way, binding: int) -> list[str]:
        elements = self._elements(way, binding)
        stream = self.stream
        if way.attribute is None:
            return [self._writer.string(element) for element in elements]
        numbers = self._numbers_of(way.attribute)
        if not numbers:
            return []
        attributes = [
            self._writer.attribute(element, number) for element in elements for number in numbers
        ]
        return [stream.attribute_value(attribute) for attribute in attributes if attribute >= 0]

    def _numbers_of(self, test: NameTest) -> list[int]:
        """The number of a name in this message, -1 for any; nothing if it is not there."""
        numbers = self._numbers.get(test)
        if numbers is None:
            numbers = self._numbers[test] = _numbers_of(self.stream, test)
        return numbers


def _writing(stream: ElementStream) -> _Writing:
    """That of the message written from last is kept: many results are made of one."""
    if not _LAST or _LAST[0].stream is not stream:
        _LAST[:] = [_Writing(stream)]
    return _LAST[0]


_LAST: list[_Writing] = []


def _numbers_of(stream: ElementStream, test: NameTest) -> list[int]:
    if test == (ANY, ANY):
        return [-1]
    return [
        number
        for number, name in enumerate(stream.names)
        if name.namespace == test.namespace and name.local == test.local
    ]


# -- from the tree


def _piece(expression: str | Expression, variable: str) -> _Piece | None:
    match expression:
        case str():
            return escaped_text(expression).encode()
        case PathExpression():
            way = _way(expression, variable)
            return None if way is None or way.attribute is not None else _Copies(way)
        case FunctionCall("string", (PathExpression() as path,)):
            way = _way(path, variable)
            return None if way is None else _Text(way)
        case Constructor():
            return _element(expression, variable)
        case Part(of, digest, inner) if of == variable:
            return _Spliced(digest, _piece(inner, PART_VARIABLE))
        case _:
            return None


def _element(constructor: Constructor, variable: str) -> _Element | None:
    if constructor.declarations or constructor.name.namespace:
        return None
    attributes = []
    for name, value in constructor.attributes:
        parts = [
            escaped_value(part).encode() if isinstance(part, str) else _value(part, variable)
            for part in value
        ]
        known = tuple(part for part in parts if part is not None)
        if name.namespace or len(known) < len(parts):
            return None
        attributes.append((f' {name.local}="'.encode(), known))
    pieces = [_piece(part, variable) for part in constructor.content]
    content = tuple(piece for piece in pieces if piece is not None)
    if len(content) < len(pieces):
        return None
    return _Element(constructor.name.local.encode(), tuple(attributes), content)


def _value(expression: Expression, variable: str) -> _Way | None:
    return _way(expression, variable) if isinstance(expression, PathExpression) else None


def _way(path: PathExpression, variable: str) -> _Way | None:
    if path.origin is not Origin.VARIABLE or path.variable != variable:
        return None
    steps: list[NameTest] = []
    attribute = None
    for step in path.steps:
        test = step.test
        if step.descendant or step.axis is not None or step.predicates or attribute or test is None:
            return None
        is_any = test == (ANY, ANY) and step.kind is NodeKind.ELEMENT
        if ANY in test and not is_any:
            return None
        if step.kind is NodeKind.ATTRIBUTE:
            attribute = test
        elif step.kind is NodeKind.ELEMENT:
            steps.append(test)
        else:
            return None
    return _Way(tuple(steps), attribute)


def _around(body: Expression, flwor: Flwor) -> tuple[bytes, bytes] | None:
    """Start and end of a constructor with nothing but the FLWOR expression and text in it."""
    if not isinstance(body, Constructor):
        return None
    parts = body.content
    place = next(place for place, part in enumerate(parts) if part is flwor)
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts) - 1:
        return None
    before, after = "".join(texts[:place]), "".join(texts[place:])
    empty = _element(Constructor(body.name, body.attributes, body.declarations), "")
    if empty is None or any(isinstance(p, _Way) for _, value in empty.attributes for p in value):
        return None
    pieces: list[bytes] = [b"<", empty.tag]
    for label, value in empty.attributes:
        pieces += (label, *(part for part in value if isinstance(part, bytes)), b'"')
    start = b"".join((*pieces, b">", escaped_text(before).encode()))
    return start, b"".join((escaped_text(after).encode(), b"</", empty.tag, b">"))
