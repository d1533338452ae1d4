"""Evaluator: what functions, operators and constructors ask of the evaluation they are part of.

It knows the trees that an evaluation sees, the message first and then what was constructed and
looked into, and what an item of them is: as a string, as an atomic value, as a node.  What an
expression's value is says whoever stands on top (``MessageEvaluator``), and so does how a
constructed item becomes a tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from math import isnan

from formats.element_stream import ContentKind, ElementStream
from formats.names import QualifiedName
from yfilter.language.atoms import atom_text
from yfilter.language.axes import Axes
from yfilter.language.budget import TEXT_VISIT, Budget
from yfilter.language.nodes import (
    NODES,
    Atom,
    Construction,
    Detached,
    DynamicError,
    Focus,
    Item,
    Library,
    Node,
    NodeType,
    Opaque,
    Untyped,
    Value,
)
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Expression, FunctionDeclaration, NodeKind
from yfilter.language.temporal import Temporal


class DeclaredValues:
    """What one evaluation knows of libraries: ``values`` of variables, or their errors, by the
    identity of the declaration."""

    __slots__ = ("_tables", "values")

    def __init__(self) -> None:
        self.values: dict[int, Value | DynamicError] = {}
        self._tables: dict[int, tuple[tuple[FunctionDeclaration, ...], Library]] = {}

    def table(self, library: tuple[FunctionDeclaration, ...]) -> Library:
        """The same one for equal libraries."""
        known = self._tables.get(id(library))
        if known is None:
            equal = (table for other, table in self._tables.values() if other == library)
            table = next(equal, None)
            if table is None:
                table = {(one.name, len(one.parameters)): one for one in library}
            known = self._tables[id(library)] = library, table
        return known[1]


class Evaluator(Budget, ABC):
    """One evaluation on one message, within one budget; ``strict`` as in evaluation.py.

    ``streams`` are the trees by number: that of the message is 0.
    """

    def __init__(self, stream: ElementStream, limits: EvaluationLimits, *, strict: bool) -> None:
        super().__init__(limits)
        self.stream = stream
        self.streams = [stream]
        self.strict = strict
        self.declared = DeclaredValues()
        self.pending: object = None  # PendingUpdates of the ``modify`` that is evaluated
        self.axes = Axes(self.streams, self.charge)

    @abstractmethod
    def value(self, expression: Expression, focus: Focus) -> Value:
        """The items of an expression; DynamicError."""

    @abstractmethod
    def shared(self, expression: Expression, focus: Focus) -> Value:
        """As ``value``, for those who do not look at every item: what is known costs nothing."""

    @abstractmethod
    def joined(
        self,
        clause: object,
        variable: str,
        value: Value,
        conditions: Iterable[Expression],
        focus: Focus,
    ) -> Iterator[tuple[int, Item]] | None:
        """The items of a value for which equalities among conditions hold, with their positions.

        None for all of them.  ``clause`` ranges over the value, and is known by its identity.
        """

    @abstractmethod
    def materialised(self, item: Construction) -> Node:
        """The constructed element as a tree of its own, so that steps can go into it."""

    @abstractmethod
    def tree(self, stream: ElementStream, top: Node) -> Node:
        """``top`` of these columns as the top of one more tree: nothing is above it."""

    @abstractmethod
    def attached(self, item: Detached) -> Node:
        """A constructed node without a parent as a tree of its own; nothing sees what holds it."""

    def condition(self, condition: Expression, focus: Focus) -> bool:
        """Whether it holds; one that raises an error does not."""
        try:
            return self.truth(condition, focus)
        except DynamicError:
            if self.strict:
                raise
            return False

    def truth(self, condition: Expression, focus: Focus) -> bool:
        return effective_boolean(self.value(condition, focus), strict=self.strict)

    def name_of(self, item: Node | Construction | Detached) -> QualifiedName | None:
        """Of an element, an attribute or a processing instruction; None of other nodes."""
        if isinstance(item, Construction):
            return item.constructor.name
        if isinstance(item, Detached):
            return item.name
        stream, number = self.streams[item.tree], item.number
        if item.type is NodeType.ELEMENT:
            return stream.name_of(number)
        if item.type is NodeType.ATTRIBUTE:
            return stream.names[stream.attribute_name[number]]
        is_content = item.type is NodeType.CONTENT
        if is_content and stream.content_kind[number] == ContentKind.PROCESSING_INSTRUCTION:
            return QualifiedName("", "", stream.content_value(number).split(" ")[0])
        return None

    def string_value(self, node: Node) -> str:
        """XPath's string value of a node."""
        stream = self.streams[node.tree]
        match node.type:
            case NodeType.ELEMENT:
                text = stream.string_value(node.number)
                if len(text) >= TEXT_VISIT:
                    self.charge_text(len(text))
                return text
            case NodeType.ATTRIBUTE:
                return stream.attribute_value(node.number)
            case NodeType.CONTENT:
                value = stream.content_value(node.number)
                if stream.content_kind[node.number] == ContentKind.PROCESSING_INSTRUCTION:
                    return value.partition(" ")[2]
                return value
            case NodeType.DOCUMENT:
                text = stream.string_value(0)
                self.charge_text(len(text))
                return text

    def string(self, item: Item) -> str:
        """``fn:string`` of one item."""
        if isinstance(item, NODES):
            return str(self.atom(item))
        return atom_text(item)

    def first_string(self, value: Value) -> str:
        return self.string(value[0]) if value else ""

    def atom(self, item: Item) -> Atom:
        """The typed value of one item."""
        if isinstance(item, Node) and item.type in (NodeType.ATTRIBUTE, NodeType.ELEMENT):
            return Untyped(self.string_value(item))
        if isinstance(item, Detached):
            is_text = item.kind in (NodeKind.ATTRIBUTE, NodeKind.TEXT)
            return Untyped(item.value) if is_text else item.value
        if isinstance(item, Construction):
            item = self.materialised(item)
        if not isinstance(item, Node):
            return item
        text = self.string_value(item)
        if item.type is NodeType.CONTENT:
            kind = self.streams[item.tree].content_kind[item.number]
            return Untyped(text) if kind == ContentKind.TEXT else text
        return Untyped(text)

    def atoms(self, value: Value) -> list[Atom]:
        return [self.atom(item) for item in value]

    def one_atom(self, value: Value) -> Atom | None:
        """The one atomic value of an operand; None for the empty sequence."""
        if len(value) > 1:
            raise DynamicError("XPTY0004", "several items where one is wanted")
        return self.atom(value[0]) if value else None

    def nodes(self, value: Value) -> list[Node]:
        """The items as nodes; XPTY0019 for a value that is none."""
        found = []
        for item in value:
            if isinstance(item, Construction):
                found.append(self.materialised(item))
            elif isinstance(item, Node):
                found.append(item)
            elif isinstance(item, Detached):
                if item.value or item.kind is not NodeKind.TEXT:  # no tree holds an empty text
                    found.append(self.attached(item))
            else:
                raise DynamicError("XPTY0019", "a step needs nodes, this is a value")
        return found


def effective_boolean(value: Value, *, strict: bool = False) -> bool:
    """XPath's effective boolean value: nodes exist; a string is not empty; a number is not 0."""
    if not value:
        return False
    first = value[0]
    if isinstance(first, NODES):
        return True
    if strict and (len(value) > 1 or isinstance(first, Temporal | Opaque)):
        raise DynamicError("FORG0006", "no effective boolean value")
    if isinstance(first, float):
        return not isnan(first) and first != 0
    return bool(first)
