"""Return template + bindings -> the results of one profile for one message.

The engine has matched the profile's matching path and hands over the elements that it bound to
the first variable.  What is left is done here: the other clauses, the whole ``where``, and the
``return``.

====================  =========================================================================
the profile is        results
====================  =========================================================================
a path                the message, once, when there is a binding
a FLWOR expression    one document for each item of its value, in order
a constructor around  one document, when the FLWOR expression in it yields anything
a FLWOR expression
====================  =========================================================================

Content is built as XQuery builds it: copies of elements keep the namespaces that were in scope,
attributes of the message become attributes, adjacent strings and numbers in one ``{ }`` get a
space between them.  Where XQuery raises an error because an attribute is given twice, the first
one counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from formats.element_stream import ElementStream
from formats.names import QualifiedName
from formats.text import to_text
from formats.xml_writer import XmlWriter
from yfilter.errors import MatchLimitExceeded
from yfilter.language.evaluation import Evaluator
from yfilter.language.nodes import DOCUMENT, Item, Node, NodeType, Variables, element_node
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import (
    Constructor,
    Expression,
    Flwor,
    ForClause,
    LetClause,
    PathExpression,
    Profile,
)


@dataclass(frozen=True, slots=True)
class _Construction:
    """A constructor still to be carried out, with the variables of its tuple."""

    constructor: Constructor
    variables: Variables


_Result: TypeAlias = Item | _Construction


def render(
    profile: Profile,
    stream: ElementStream,
    bindings: Sequence[int],
    limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
) -> list[bytes]:
    """The results of ``profile`` for the message, each a well-formed document in UTF-8.

    ``bindings`` are the elements of the profile's matching path (``matching_path.py``), in any
    order.  Empty means that the profile does not match after all.  Raises MatchLimitExceeded.
    """
    if not bindings:
        return []
    if isinstance(profile.body, PathExpression):
        return [to_text(stream)]
    return _Renderer(stream, sorted(set(bindings)), limits).documents(profile.body)


class _Renderer:
    """One profile on one message; counts what that costs."""

    def __init__(
        self, stream: ElementStream, bindings: Sequence[int], limits: EvaluationLimits
    ) -> None:
        self._stream = stream
        self._bindings = bindings
        self._limits = limits
        self._tuples_left = limits.tuples_max
        self._bytes_left = limits.bytes_max
        self._evaluator = Evaluator(stream, limits)

    def documents(self, body: Flwor | Constructor) -> list[bytes]:
        if isinstance(body, Flwor):
            return [self._document(result) for result in self._results(body, {}, first=True)]
        flwor = next(part for part in body.content if isinstance(part, Flwor))
        results = list(self._results(flwor, {}, first=True))
        if not results:
            return []
        writer = XmlWriter()
        self._write_constructor(writer, _Construction(body, {}), {id(flwor): results})
        return [writer.getvalue()]

    def _document(self, result: _Result) -> bytes:
        if result == DOCUMENT:
            text = to_text(self._stream)
            self._charge(len(text))
            return text
        writer = XmlWriter()
        self._write(writer, [result])
        return writer.getvalue()

    # -- tuples

    def _results(
        self, flwor: Flwor, variables: Variables, *, first: bool = False
    ) -> Iterator[_Result]:
        """The items of a FLWOR expression; ``first``: its first variable is bound already."""
        for scope in self._tuples(flwor, 0, variables, first):
            if flwor.where is None or self._evaluator.holds(flwor.where, DOCUMENT, scope):
                yield from self._items(flwor.result, scope)

    def _tuples(
        self, flwor: Flwor, index: int, variables: Variables, first: bool
    ) -> Iterator[Variables]:
        if index == len(flwor.clauses):
            yield variables
            return
        clause = flwor.clauses[index]
        if isinstance(clause, LetClause):
            value = self._evaluator.evaluate(clause.value, DOCUMENT, variables)
            yield from self._tuples(flwor, index + 1, {**variables, clause.variable: value}, first)
            return
        for node in self._bound(clause, variables, first and index == 0):
            self._tuples_left -= 1
            if self._tuples_left < 0:
                raise MatchLimitExceeded(
                    "too-many-tuples",
                    f"a profile binds more than {self._limits.tuples_max} tuples",
                )
            yield from self._tuples(flwor, index + 1, {**variables, clause.variable: [node]}, first)

    def _bound(self, clause: ForClause, variables: Variables, is_bound: bool) -> Iterable[Node]:
        if is_bound:
            return map(element_node, self._bindings)
        return self._evaluator.select(clause.path, DOCUMENT, variables)

    def _items(self, expression: Expression, variables: Variables) -> Iterator[_Result]:
        if isinstance(expression, Constructor):
            yield _Construction(expression, variables)
        elif isinstance(expression, Flwor):
            yield from self._results(expression, variables)
        else:
            yield from self._evaluator.evaluate(expression, DOCUMENT, variables)

    # -- content

    def _write(self, writer: XmlWriter, results: Iterable[_Result]) -> None:
        """The value of one enclosed expression as content of the open element."""
        after_atom = False
        for result in results:
            is_atom = not isinstance(result, Node | _Construction)
            if is_atom and after_atom:
                self._write_text(writer, " ")
            after_atom = is_atom
            if isinstance(result, _Construction):
                self._write_constructor(writer, result)
            elif isinstance(result, Node) and result.type is NodeType.DOCUMENT:
                self._copy_document(writer)
            elif isinstance(result, Node) and result.type is NodeType.ELEMENT:
                self._copy_element(writer, result.number)
            else:
                self._write_text(writer, self._evaluator.string(result))

    def _write_constructor(
        self,
        writer: XmlWriter,
        construction: _Construction,
        known: Mapping[int, Sequence[_Result]] = MappingProxyType({}),
    ) -> None:
        """``known``: values of enclosed expressions, by identity, that are computed already."""
        constructor, variables = construction.constructor, construction.variables
        tag = _StartTag(constructor)
        for name, value in constructor.attributes:
            tag.add(name, "".join(self._value_part(part, variables) for part in value))
        content = deque(constructor.content)
        waiting: list[_Result] = []
        while content and not waiting:
            part = content[0]
            if isinstance(part, str | Constructor | Flwor):
                break
            content.popleft()
            waiting = list(self._items(part, variables))
            while waiting and _is_attribute(waiting[0]):
                self._copy_attribute(tag, waiting.pop(0))
        self._charge(tag.size)
        writer.start_element(constructor.name, tag.attributes, constructor.declarations)
        self._write(writer, waiting)
        for part in content:
            if isinstance(part, str):
                self._write_text(writer, part)
            else:
                self._write(writer, known.get(id(part)) or self._items(part, variables))
        writer.end_element()

    def _value_part(self, part: str | Expression, variables: Variables) -> str:
        """A part of an attribute's value; several items get a space between them."""
        if isinstance(part, str):
            return part
        strings: list[str] = []
        for item in self._items(part, variables):
            assert not isinstance(item, _Construction)  # the parser sees to it
            strings.append(self._evaluator.string(item))
            self._charge(len(strings[-1]))
        return " ".join(strings)

    def _copy_attribute(self, tag: _StartTag, node: _Result) -> None:
        assert isinstance(node, Node)
        stream = self._stream
        name = stream.names[stream.attribute_name[node.number]]
        tag.add(name, stream.attribute_value(node.number))

    def _copy_document(self, writer: XmlWriter) -> None:
        stream = self._stream
        outside = [piece for piece, parent in enumerate(stream.content_parent) if parent < 0]
        for piece in outside:
            if stream.content_next[piece] == 0:
                writer.copy_content(stream, piece)
        self._copy_element(writer, 0)
        for piece in outside:
            if stream.content_next[piece] > 0:
                writer.copy_content(stream, piece)

    def _copy_element(self, writer: XmlWriter, element: int) -> None:
        stream = self._stream
        end = stream.element_end[element]
        first, last = stream.attribute_start[element], stream.attribute_start[end]
        content = stream.content_within(element)
        self._charge(
            _TAG_SIZE * (end - element)
            + (stream.attribute_offset[last] - stream.attribute_offset[first])
            + (stream.content_offset[content.stop] - stream.content_offset[content.start])
        )
        writer.copy_element(stream, element)

    def _write_text(self, writer: XmlWriter, text: str) -> None:
        self._charge(len(text))
        writer.text(text)

    def _charge(self, size: int) -> None:
        """Counts what is about to be written, so that a bound holds before memory is spent."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise MatchLimitExceeded(
                "result-too-large",
                f"the results of a profile are larger than {self._limits.bytes_max} bytes",
            )


_TAG_SIZE = 16  # a start and an end tag, roughly; what is charged is an estimate


class _StartTag:
    """The attributes of an element under construction, each name once.

    An attribute copied from the message keeps its prefix where that is free to mean its
    namespace, and else gets another one.
    """

    def __init__(self, constructor: Constructor) -> None:
        self.attributes: list[tuple[QualifiedName, str]] = []
        self.size = _TAG_SIZE
        self._names: set[tuple[str, str]] = set()
        self._prefixes = dict(constructor.declarations)
        self._prefixes[constructor.name.prefix] = constructor.name.namespace
        for name, _ in constructor.attributes:
            if name.prefix:
                self._prefixes[name.prefix] = name.namespace

    def add(self, name: QualifiedName, value: str) -> None:
        if (name.namespace, name.local) in self._names:
            return
        self._names.add((name.namespace, name.local))
        if name.namespace:
            name = name._replace(prefix=self._prefix(name))
        self.attributes.append((name, value))
        self.size += len(value)

    def _prefix(self, name: QualifiedName) -> str:
        prefix, count = name.prefix, 0
        while self._prefixes.setdefault(prefix, name.namespace) != name.namespace:
            count += 1
            prefix = f"{name.prefix}{count}"
        return prefix


def _is_attribute(result: _Result) -> bool:
    return isinstance(result, Node) and result.type is NodeType.ATTRIBUTE
