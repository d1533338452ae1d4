"""Writes what constructors construct, as XQuery builds content.

Copies of elements keep the namespaces that were in scope, attributes become attributes, adjacent
strings and numbers in one ``{ }`` get a space between them.  Where XQuery raises an error because
an attribute is given twice, the first one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from formats.characters import is_comment, is_processing_instruction
from formats.element_stream import ElementStream
from formats.element_stream_builder import ElementStreamBuilder
from formats.errors import MessageRefused
from formats.limits import DEFAULT_LIMITS
from formats.names import XML_NAMESPACE, QualifiedName
from formats.text import parse_text
from formats.xml_writer import XmlWriter
from yfilter.errors import MatchLimitExceeded
from yfilter.language.atoms import atom_text
from yfilter.language.budget import deeply
from yfilter.language.constructed_names import lexical_fault, namespace_fault
from yfilter.language.evaluator import Evaluator
from yfilter.language.namespaces import INITIAL_NAMESPACES
from yfilter.language.nodes import (
    NODES,
    AnyUri,
    Construction,
    Detached,
    DynamicError,
    Focus,
    Item,
    Node,
    NodeType,
    Opaque,
    Value,
    Written,
    element_node,
)
from yfilter.language.query_ast import Computed, Constructor, Expression, Markup, NodeKind

_FIXED: Final = (str, Constructor, Markup)
OWN_PREFIX: Final = "ns"  # of an attribute whose namespace has none
_TAG_SIZE = 16  # a start and an end tag, roughly; what is charged is an estimate


def written(
    evaluator: Evaluator, items: Iterable[Item], scope: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """Items as the content of nothing, side by side: a constructed element is a document.

    ``scope``: the meanings of prefixes around them."""
    items = list(items)

    def write() -> bytes:
        writer = ContentWriter(evaluator, scope)
        writer.items(items)
        return writer.xml.getvalue()

    return deeply(write)  # functions that construct are called while it is written


def detached(evaluator: Evaluator, expression: Markup | Computed, focus: Focus) -> Value:
    """The computed node; nothing for text of the empty sequence."""
    if isinstance(expression, Markup):
        target = QualifiedName("", "", expression.target) if expression.target else None
        return [Detached(expression.kind, target, expression.value)]
    if expression.kind is NodeKind.ELEMENT:
        name = _computed_name(evaluator, expression, focus)
        declared = ((name.prefix, name.namespace),) if name.namespace else ()
        return [Construction(Constructor(name, (), declared, (expression.content,)), focus)]
    value = evaluator.value(expression.content, focus)
    if not value and expression.kind is NodeKind.TEXT:
        return []
    text = " ".join(evaluator.string(item) for item in value)
    evaluator.charge_bytes(len(text))
    if expression.name is None:
        return [Detached(expression.kind, None, checked_content(expression.kind, text))]
    name = _computed_name(evaluator, expression, focus)
    text = checked_content(expression.kind, text)
    if (name.namespace, name.local) == (XML_NAMESPACE, "id"):
        text = " ".join(text.split())
    elif name.namespace and not name.prefix:
        name = name._replace(prefix=OWN_PREFIX)
    return [Detached(expression.kind, name, text)]


def checked_content(kind: NodeKind, text: str) -> str:
    """The text of a node that is made; DynamicError for one that XML cannot have."""
    if kind is NodeKind.COMMENT and not is_comment(text):
        raise DynamicError("XQDY0072", "a comment cannot hold this")
    if kind is NodeKind.PROCESSING_INSTRUCTION:
        text = text.lstrip(" \t\n\r")
        if not is_processing_instruction("x", text):
            raise DynamicError("XQDY0026", "a processing instruction cannot hold this")
    return text


def holder(item: Detached) -> tuple[ElementStream, NodeType]:
    """A tree of one element with nothing but the item in it, and the item's type there."""
    builder = ElementStreamBuilder()
    is_attribute = item.kind is NodeKind.ATTRIBUTE
    attributes = [(item.name, item.value)] if is_attribute and item.name is not None else []
    builder.start_element(QualifiedName("", "", "holder"), attributes)
    if item.kind is NodeKind.COMMENT:
        builder.comment(item.value)
    elif item.kind is NodeKind.PROCESSING_INSTRUCTION and item.name is not None:
        builder.processing_instruction(item.name.local, item.value)
    elif not is_attribute:
        builder.text(item.value)
    builder.end_element()
    return builder.finish(), NodeType.ATTRIBUTE if is_attribute else NodeType.CONTENT


def name_of_value(value: Opaque, kind: NodeKind = NodeKind.ELEMENT) -> QualifiedName:
    """The name that an xs:QName is; DynamicError for one that no such node can have."""
    prefix, _, local = value.text.rpartition(":")
    namespace = value.key[0]
    name = QualifiedName(prefix, namespace, local)
    if fault := namespace_fault(name, kind):
        raise DynamicError(fault, f"{value.text} has a prefix or a namespace of XML's own")
    return name._replace(prefix="xml") if namespace == XML_NAMESPACE else name


def _computed_name(evaluator: Evaluator, expression: Computed, focus: Focus) -> QualifiedName:
    if isinstance(expression.name, QualifiedName):
        return expression.name
    assert expression.name is not None
    atom = evaluator.one_atom(evaluator.value(expression.name, focus))
    kind = expression.kind
    if isinstance(atom, Opaque) and atom.type == "xs:QName":
        if kind is not NodeKind.PROCESSING_INSTRUCTION:
            return name_of_value(atom, kind)
        atom = f"{atom}"
    if not isinstance(atom, str) or isinstance(atom, AnyUri):
        raise DynamicError("XPTY0004", "a name is a string or an xs:QName")
    text = str(atom).strip()
    if fault := lexical_fault(text, kind):
        raise DynamicError(fault, f"{text[:80]!r} is no name of {kind.value}")
    prefix, colon, local = text.rpartition(":")
    known = {**INITIAL_NAMESPACES, **dict(expression.namespaces)}
    if kind is not NodeKind.ELEMENT and not colon:
        name = QualifiedName("", "", local)
    elif prefix not in known:
        raise DynamicError("XQDY0074", f"the prefix of {text[:80]!r} is not declared")
    else:
        name = QualifiedName(prefix, known[prefix], local)
    if fault := namespace_fault(name, kind):
        raise DynamicError(fault, f"{text[:80]!r} is a declaration of a namespace")
    return name


class Trees(Evaluator):
    """An evaluation whose constructed items become trees, once an expression looks into them."""

    def materialised(self, item: Construction) -> Node:
        if item.node is None:
            limits = replace(DEFAULT_LIMITS, bytes_max=self.limits.bytes_max)
            try:
                stream = parse_text(written(self, [item]), limits)
            except MessageRefused as refusal:  # larger or deeper than a message may be
                raise MatchLimitExceeded("result-too-large", str(refusal)) from None
            self.streams.append(stream)
            item.node = element_node(0, len(self.streams) - 1)
        return item.node

    def attached(self, item: Detached) -> Node:
        """A constructed node without a parent as a tree of its own; nothing sees what holds it."""
        if item.node is None:
            stream, type_ = holder(item)
            item.node = self.tree(stream, Node(0 if type_ is NodeType.ATTRIBUTE else 1, type_, 0))
        return item.node

    def tree(self, stream: ElementStream, top: Node) -> Node:
        """``top`` of these columns as the top of one more tree: nothing is above it."""
        self.streams.append(stream)
        top = top._replace(tree=len(self.streams) - 1)
        self.axes.tops[top.tree] = top
        return top

    def value(self, expression: Expression, focus: Any) -> Value:
        found: Value = focus.value(expression)
        return found


class ContentWriter:
    """Content going into an XmlWriter; counts what that costs."""

    def __init__(
        self, evaluator: Evaluator, scope: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.xml = XmlWriter(scope)
        self._evaluator = evaluator

    def items(self, items: Iterable[Item]) -> None:
        """The value of one enclosed expression as content of the open element."""
        after_atom = False
        for item in items:
            is_atom = not isinstance(item, NODES)
            if is_atom and after_atom:
                self._text(" ")
            after_atom = is_atom
            self._evaluator.charge()
            self._item(item)

    def _item(self, item: Item) -> None:
        if isinstance(item, Construction):
            if item.node is not None:
                self._copy_element(item.node)
            else:
                self._construct(item)
        elif isinstance(item, Written):
            self._evaluator.charge_bytes(len(item.markup))
            self.xml.markup(item.markup)
        elif isinstance(item, Detached):
            self._detached(item)
        elif not isinstance(item, Node):
            self._text(atom_text(item))
        elif item.type is NodeType.DOCUMENT:
            self._copy_document(item)
        elif item.type is NodeType.ELEMENT:
            self._copy_element(item)
        elif item.type is NodeType.CONTENT:
            self._evaluator.charge_bytes(len(self._evaluator.string_value(item)))
            self.xml.copy_content(self._evaluator.streams[item.tree], item.number)
        else:
            raise DynamicError("XQTY0024", "an attribute after other content of the element")

    def _construct(self, construction: Construction) -> None:
        constructor, focus = construction.constructor, construction.focus
        tag = StartTag(constructor)
        for name, value in constructor.attributes:
            tag.add(name, "".join(self._value_part(part, focus) for part in value))
        content = list(constructor.content)
        first: Value = ()
        place = 0
        while place < len(content) and not first:
            part = content[place]
            if isinstance(part, _FIXED):
                break
            place += 1
            first = self._evaluator.value(part, focus)
            leading = 0
            while leading < len(first) and self._attribute(tag, first[leading]):
                leading += 1
            first = first[leading:]
        self._evaluator.charge_bytes(tag.size)
        self.xml.start_element(constructor.name, tag.attributes, constructor.declarations)
        self.items(first)
        for part in content[place:]:
            if isinstance(part, str):
                self._text(part)
            elif isinstance(part, Constructor):
                self._construct(Construction(part, focus))
            else:
                self.items(self._evaluator.value(part, focus))
        self.xml.end_element()

    def _attribute(self, tag: StartTag, item: Item) -> bool:
        """Adds the item to the start tag if it is an attribute."""
        if isinstance(item, Detached) and item.kind is NodeKind.ATTRIBUTE:
            assert item.name is not None
            self._add(tag, item.name, item.value)
            return True
        if isinstance(item, Node) and item.type is NodeType.ATTRIBUTE:
            stream = self._evaluator.streams[item.tree]
            name = stream.names[stream.attribute_name[item.number]]
            self._add(tag, name, stream.attribute_value(item.number))
            return True
        return False

    def _add(self, tag: StartTag, name: QualifiedName, value: str) -> None:
        if not tag.add(name, value) and self._evaluator.strict:
            raise DynamicError("XQDY0025", f"the attribute {name} is given twice")

    def _value_part(self, part: str | Expression, focus: Focus) -> str:
        """A part of an attribute's value; several items get a space between them."""
        if isinstance(part, str):
            return part
        strings: list[str] = []
        for item in self._evaluator.value(part, focus):
            strings.append(self._evaluator.string(item))
            self._evaluator.charge_bytes(len(strings[-1]))
        return " ".join(strings)

    def _detached(self, item: Detached) -> None:
        self._evaluator.charge_bytes(len(item.value) + _TAG_SIZE)
        if item.kind is NodeKind.TEXT:
            self.xml.text(item.value)
        elif item.kind is NodeKind.COMMENT:
            self.xml.comment(item.value)
        elif item.kind is NodeKind.PROCESSING_INSTRUCTION:
            assert item.name is not None
            self.xml.processing_instruction(item.name.local, item.value)
        else:
            raise DynamicError("XQTY0024", "an attribute after other content of the element")

    def _copy_document(self, document: Node) -> None:
        stream = self._evaluator.streams[document.tree]
        outside = [piece for piece, parent in enumerate(stream.content_parent) if parent < 0]
        for piece in outside:
            if stream.content_next[piece] == 0:
                self.xml.copy_content(stream, piece)
        self._copy_element(Node(0, NodeType.ELEMENT, 0, document.tree))
        for piece in outside:
            if stream.content_next[piece] > 0:
                self.xml.copy_content(stream, piece)

    def _copy_element(self, node: Node) -> None:
        stream, element = self._evaluator.streams[node.tree], node.number
        end = stream.element_end[element]
        first, last = stream.attribute_start[element], stream.attribute_start[end]
        content = stream.content_within(element)
        self._evaluator.charge_bytes(
            _TAG_SIZE * (end - element)
            + (stream.attribute_offset[last] - stream.attribute_offset[first])
            + (stream.content_offset[content.stop] - stream.content_offset[content.start])
        )
        self.xml.copy_element(stream, element)

    def _text(self, text: str) -> None:
        self._evaluator.charge_bytes(len(text))
        self.xml.text(text)


class StartTag:
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

    def add(self, name: QualifiedName, value: str) -> bool:
        """Whether the attribute is new."""
        if (name.namespace, name.local) in self._names:
            return False
        if (name.namespace, name.local) == (XML_NAMESPACE, "id"):
            value = " ".join(value.split())
        self._names.add((name.namespace, name.local))
        if name.namespace:
            name = name._replace(prefix=self._prefix(name))
        self.attributes.append((name, value))
        self.size += len(value)
        return True

    def _prefix(self, name: QualifiedName) -> str:
        own = name.prefix or ("xml" if name.namespace == XML_NAMESPACE else OWN_PREFIX)
        prefix, count = own, 0
        while self._prefixes.setdefault(prefix, name.namespace) != name.namespace:
            count += 1
            prefix = f"{own}{count}"
        return prefix
