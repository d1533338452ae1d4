"""Evaluator: what functions, operators and constructors ask of the evaluation they are part of.

It knows the trees that an evaluation sees, the message first and then what was constructed and
looked into, and what an item of them is: as a string, as an atomic value, as a node.  The value
of an expression in a constructor is that of the focus where it was met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from formats.characters import is_colonless_name, is_comment, is_processing_instruction
from formats.element_stream import ContentKind, ElementStream
from formats.element_stream_builder import ElementStreamBuilder
from formats.errors import MessageRefused
from formats.limits import DEFAULT_LIMITS
from formats.name_faults import XMLNS_NAMESPACE
from formats.names import XML_NAMESPACE, QualifiedName
from formats.text import parse_text
from formats.xml_writer import XmlWriter
from yfilter.errors import MatchLimitExceeded
from yfilter.language import query_ast as ast
from yfilter.language.atoms import atom_text, cast, holds_pair, is_number, to_double, type_name
from yfilter.language.budget import ELEMENTPATH_COST, MUCH, TEXT_VISIT, Budget, deeply
from yfilter.language.namespaces import INITIAL_NAMESPACES
from yfilter.language.nodes import (
    NODES,
    AnyUri,
    Atom,
    Construction,
    Detached,
    DynamicError,
    Focus,
    Item,
    Node,
    NodeType,
    Opaque,
    Untyped,
    Value,
    Written,
    element_node,
)
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.temporal import Temporal

_CONTENT_KINDS = {
    ContentKind.TEXT: ast.NodeKind.TEXT,
    ContentKind.COMMENT: ast.NodeKind.COMMENT,
    ContentKind.PROCESSING_INSTRUCTION: ast.NodeKind.PROCESSING_INSTRUCTION,
}
_KINDS = {
    NodeType.DOCUMENT: ast.NodeKind.DOCUMENT,
    NodeType.ELEMENT: ast.NodeKind.ELEMENT,
    NodeType.ATTRIBUTE: ast.NodeKind.ATTRIBUTE,
}


class Evaluator(Budget):
    """One evaluation on one message, within one budget; ``strict`` as in evaluation.py.

    ``streams`` are the trees by number: that of the message is 0.  ``tops``: of trees that begin
    within their columns, the node that nothing is above.
    """

    def __init__(self, stream: ElementStream, limits: EvaluationLimits, *, strict: bool) -> None:
        super().__init__(limits)
        self.stream = stream
        self.streams = [stream]
        self.strict = strict
        self.pending: object = None  # PendingUpdates of the ``modify`` that is evaluated
        self.tops: dict[int, Node] = {}
        self._ordinals: dict[Node, str] = {}  # of nodes among their like, for locations
        self.places: tuple[Value, Mapping[str, list[int]]] = (), {}  # of index-of, of one list

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
            is_text = item.kind in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.TEXT)
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
                if item.value or item.kind is not ast.NodeKind.TEXT:  # no tree holds an empty text
                    found.append(self.attached(item))
            else:
                raise DynamicError("XPTY0019", "a step needs nodes, this is a value")
        return found

    # -- constructed items, which become trees once an expression looks into them

    def materialised(self, item: Construction) -> Node:
        if item.node is None:
            limits = replace(DEFAULT_LIMITS, bytes_max=self.limits.bytes_max)
            try:
                stream = parse_text(written(self, [item]), limits)
            except MessageRefused as refusal:  # larger or deeper than a message may be
                raise MatchLimitExceeded("result-too-large", str(refusal)) from None
            item.node = self._added(stream, element_node(0))
        return item.node

    def attached(self, item: Detached) -> Node:
        """A constructed node without a parent as a tree of its own; nothing sees what holds it."""
        if item.node is None:
            stream, type_ = holder(item)
            item.node = self.tree(stream, Node(0 if type_ is NodeType.ATTRIBUTE else 1, type_, 0))
        return item.node

    def tree(self, stream: ElementStream, top: Node) -> Node:
        """``top`` of these columns as the top of one more tree: nothing is above it."""
        top = self._added(stream, top)
        self.tops[top.tree] = top
        return top

    def _added(self, stream: ElementStream, top: Node) -> Node:
        """The top of one more tree, whose maker pays for its rows among the columns."""
        rows = 1
        if top.type is NodeType.ELEMENT:
            end = stream.element_end[top.number]
            rows = end - top.number + len(stream.content_within(top.number))
            rows += stream.attribute_start[end] - stream.attribute_start[top.number]
        elif top.type is NodeType.DOCUMENT:
            rows = len(stream) + len(stream.content_kind) + len(stream.attribute_name)
        self.charge_rows(rows)
        self.streams.append(stream)
        return top._replace(tree=len(self.streams) - 1)

    def parent(self, node: Node) -> Node | None:
        """The element or document above a node."""
        stream = self.streams[node.tree]
        top = self.tops.get(node.tree)
        if node == top or node.type is NodeType.DOCUMENT:
            return None
        if node.type is NodeType.ATTRIBUTE:
            return element_node(node.position, node.tree)
        parents = stream.content_parent if node.type is NodeType.CONTENT else stream.element_parent
        parent = parents[node.number]
        if parent >= 0:
            return element_node(parent, node.tree)
        if node.tree == 0 or (top is not None and top.type is NodeType.DOCUMENT):
            return Node(-1, NodeType.DOCUMENT, 0, node.tree)
        return None  # a constructed element has none

    def root(self, node: Node) -> Node:
        return self.lineage(node)[-1]

    def lineage(self, node: Node) -> list[Node]:
        """A node and those above it, up to the root."""
        found = [node]
        while (parent := self.parent(found[-1])) is not None:
            found.append(parent)
        self.charge(len(found))
        return found

    def children(self, node: Node) -> list[Node]:
        """The elements and the content of an element or a document, in document order."""
        stream, tree, number = self.streams[node.tree], node.tree, node.number
        if node.type is NodeType.DOCUMENT:
            number, elements, pieces = -1, iter((0,)), range(len(stream.content_next))
        else:
            elements, pieces = stream.children_of(number), stream.content_within(number)
        found = [
            Node(stream.content_next[piece], NodeType.CONTENT, piece, tree)
            for piece in pieces
            if stream.content_parent[piece] == number
        ]
        found += [element_node(element, tree) for element in elements]
        self.charge(len(pieces) + len(found))
        return sorted(found)

    def kind(self, node: Node) -> ast.NodeKind:
        if node.type is NodeType.CONTENT:
            content = self.streams[node.tree].content_kind[node.number]
            return _CONTENT_KINDS[ContentKind(content)]
        return _KINDS[node.type]

    def location(self, node: Node) -> str:
        """A path to the node, whose names are as they are written; "" of a document."""
        steps = []
        while (parent := self.parent(node)) is not None:
            if node.type is NodeType.ATTRIBUTE:
                steps.append(f"@{self.name_of(node)}")
            else:
                if node not in self._ordinals:
                    self._count(parent)
                steps.append(f"{self._said(node)}{self._ordinals[node]}")
            node = parent
        top = "" if node.type is NodeType.DOCUMENT else self._said(node)
        return "/".join((top, *reversed(steps)))

    def _count(self, parent: Node) -> None:
        """Learns the place of each child among siblings of its name, as a predicate; a text that is
        the only one has none."""
        places: dict[str, list[Node]] = {}
        for each in self.children(parent):
            places.setdefault(self._said(each), []).append(each)
        for name, alike in places.items():
            for place, each in enumerate(alike, 1):
                is_only = name == "text()" and len(alike) == 1
                self._ordinals[each] = "" if is_only else f"[{place}]"

    def _said(self, node: Node) -> str:
        """The test of a step to a node that is no attribute without a parent."""
        if node.type is NodeType.CONTENT:
            return self.kind(node).value
        return str(self.name_of(node))

    def value(self, expression: ast.Expression, focus: Any) -> Value:
        found: Value = focus.value(expression)
        return found


def effective_boolean(value: Value) -> bool:
    """XPath's effective boolean value: nodes exist; a string is not empty; a number is not 0.
    FORG0006 for several values, and for one of any other type."""
    if not value:
        return False
    first = value[0]
    if isinstance(first, NODES):
        return True
    if len(value) > 1 or isinstance(first, Temporal | Opaque):
        raise DynamicError("FORG0006", "no effective boolean value")
    if isinstance(first, float):
        return not isnan(first) and first != 0
    return bool(first)


# -------------------------------------------------------------------------------------------------
# Which names a computed constructor can give a node, and XQuery's errors for all others.


def lexical_fault(text: str, kind: ast.NodeKind) -> str:
    """The error that a text, without white space around it, is as a name; "" if it may be one."""
    prefix, colon, local = text.rpartition(":")
    if kind is ast.NodeKind.PROCESSING_INSTRUCTION:
        if colon or not is_colonless_name(local):
            return "XQDY0041"
        return "XQDY0064" if local.lower() == "xml" else ""
    is_name = is_colonless_name(local) and (not colon or is_colonless_name(prefix))
    return "" if is_name else "XQDY0074"


def namespace_fault(name: QualifiedName, kind: ast.NodeKind) -> str:
    """The error that the namespace of a name is, "" if none: those of XML are not given anew."""
    is_declaration = (
        name.prefix == "xmlns"
        or name.namespace == XMLNS_NAMESPACE
        or (kind is ast.NodeKind.ATTRIBUTE and not name.namespace and name.local == "xmlns")
    )
    is_xml = name.namespace == XML_NAMESPACE
    if is_declaration or (name.prefix and (name.prefix == "xml") != is_xml):
        return "XQDY0044" if kind is ast.NodeKind.ATTRIBUTE else "XQDY0096"
    return ""


# -------------------------------------------------------------------------------------------------
# General comparisons: whether some pair of a value on the left and one on the right compares so; of
# numbers, or where no side has any typed value, without looking at pairs.


FEW_ATOMS = 8  # which cost less than a visit
_TEXTS = (str, Untyped)
_EXACT_MAX = 1 << 53
_Comparable = TypeVar("_Comparable", str, float)


def some_pair(evaluator: Evaluator, left: Value, relation: ast.Operator, right: Value) -> bool:
    """Pairs that cannot be compared do not hold; if ``evaluator.strict`` they raise."""
    if not left or not right:
        return False
    if len(left) == 1 and len(right) == 1 and _is_plain(left[0], right[0]):
        return relation.holds(left[0], right[0])
    if len(left) + len(right) > FEW_ATOMS:
        count = len(left) + len(right)
        evaluator.charge(count if count > MUCH else count // FEW_ATOMS)
    one, other = evaluator.atoms(left), evaluator.atoms(right)
    if not evaluator.strict:
        if _all_text(one) and _all_text(other):
            return _some(list(map(str, one)), relation, list(map(str, other)))
        if (_all_inexact(one) and _all_double_or_untyped(other)) or (
            _all_inexact(other) and _all_double_or_untyped(one)
        ):
            return _some_numbers(_numbers(one), relation, _numbers(other))
    is_cast = any(isinstance(atom, Opaque) for atom in (*one, *other))
    cost = len(other) * (ELEMENTPATH_COST if is_cast else 1)
    for a in one:
        evaluator.charge(cost)
        if any(_holds(evaluator, a, relation, b) for b in other):
            return True
    return False


def _is_plain(left: object, right: object) -> bool:
    """Whether two values are texts, or numbers that lose nothing as doubles."""
    # PERF: most comparisons are of these; a member of an Enum costs more than the comparison.
    if type(left) in _TEXTS:
        return type(right) in _TEXTS
    return all(
        type(value) is float or (type(value) is int and -_EXACT_MAX < value < _EXACT_MAX)
        for value in (left, right)
    )


def _holds(evaluator: Evaluator, left: Atom, relation: ast.Operator, right: Atom) -> bool:
    try:
        return holds_pair(left, relation, right)
    except DynamicError:
        if evaluator.strict:
            raise
        return False


def _all_text(atoms: list[Atom]) -> bool:
    return all(isinstance(atom, str) for atom in atoms)


def _all_inexact(atoms: list[Atom]) -> bool:
    """Numbers that lose nothing as doubles."""
    return all(
        isinstance(atom, float)
        or (isinstance(atom, int) and not isinstance(atom, bool) and abs(atom) < _EXACT_MAX)
        for atom in atoms
    )


def _all_double_or_untyped(atoms: list[Atom]) -> bool:
    return _all_inexact([atom for atom in atoms if not isinstance(atom, Untyped)])


def _numbers(atoms: list[Atom]) -> list[float]:
    """The atoms as xs:double, without those that are none."""
    numbers = []
    for atom in atoms:
        if is_number(atom):
            numbers.append(to_double(atom))
            continue
        try:
            numbers.append(to_double(atom))
        except DynamicError:
            continue
    return numbers


def _some_numbers(left: list[float], relation: ast.Operator, right: list[float]) -> bool:
    """As _some, where NaN differs from every number, itself included, and has no order."""
    proper_left = [number for number in left if not isnan(number)]
    proper_right = [number for number in right if not isnan(number)]
    has_nan = len(proper_left) < len(left) or len(proper_right) < len(right)
    if relation is ast.Operator.NE and has_nan:
        return bool(left and right)
    return _some(proper_left, relation, proper_right)


def _some(left: list[_Comparable], relation: ast.Operator, right: list[_Comparable]) -> bool:
    """Whether some pair compares so, without looking at every pair."""
    if not left or not right:
        return False
    if relation is ast.Operator.EQ:
        return not set(left).isdisjoint(right)
    if relation is ast.Operator.NE:
        return len({*left, *right}) > 1
    if relation.value[0] == "<":
        return relation.holds(min(left), max(right))
    return relation.holds(max(left), min(right))


# -------------------------------------------------------------------------------------------------
# Sequence types: whether a value is of one, and what it is as an argument of a declared type.


_LEAST_MOST = {"": (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}


def as_declared(evaluator: Evaluator, value: Value, wanted: ast.SequenceType | None) -> Value:
    """A value as an argument or a result of a function: atomic where that is declared."""
    if wanted is None:
        return value
    if wanted.name.startswith("xs:"):
        value = [_promoted(atom, wanted.name) for atom in evaluator.atoms(value)]
    if not is_of_type(evaluator, value, wanted):
        raise DynamicError("XPTY0004", "a value of another type than the one declared")
    return value


def _promoted(atom: Atom, wanted: str) -> Atom:
    if isinstance(atom, Untyped) and wanted not in ("xs:untypedAtomic", "xs:anyAtomicType"):
        return cast(atom, wanted)
    if wanted in ("xs:float", "xs:double") and is_number(atom):
        return cast(atom, wanted)
    if wanted == "xs:string" and isinstance(atom, AnyUri):
        return str(atom)
    if wanted == "xs:anyURI" and isinstance(atom, str):  # functions of names give strings
        return AnyUri(atom)
    return atom


def is_of_type(evaluator: Evaluator, value: Value, wanted: ast.SequenceType) -> bool:
    if wanted.name == "empty-sequence":
        return not value
    least, most = _LEAST_MOST[wanted.occurrence]
    if len(value) < least or (most is not None and len(value) > most):
        return False
    return wanted.name == "item" or all(_item_matches(evaluator, item, wanted) for item in value)


def _item_matches(evaluator: Evaluator, item: Item, wanted: ast.SequenceType) -> bool:
    if isinstance(item, Detached):
        name = item.name
        return wanted.kind is ast.NodeKind.NODE or (
            item.kind is wanted.kind
            and (wanted.test is None or name is None or wanted.test.accepts(name[1], name[2]))
        )
    if isinstance(item, Construction):  # still to be written; its name is all that is asked
        test, constructed = wanted.test, item.constructor.name
        return wanted.kind is ast.NodeKind.NODE or (
            wanted.kind is ast.NodeKind.ELEMENT
            and test is not None
            and test.accepts(constructed.namespace, constructed.local)
        )
    if isinstance(item, Node):
        if wanted.kind is ast.NodeKind.NODE:
            return True
        name = evaluator.name_of(item)
        is_named = wanted.test is None or (
            name is not None and wanted.test.accepts(name.namespace, name.local)
        )
        return wanted.kind is evaluator.kind(item) and is_named
    name_ = type_name(item)
    return wanted.name in (name_, "xs:anyAtomicType") or (
        (name_, wanted.name) == ("xs:integer", "xs:decimal")
        or (wanted.name == "xs:duration" and name_.endswith("Duration"))
    )


# -------------------------------------------------------------------------------------------------
# Content as XQuery builds it.  Of an attribute that is given twice the first one counts.


_FIXED: Final = (str, ast.Constructor, ast.Markup)
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


def detached(evaluator: Evaluator, expression: ast.Markup | ast.Computed, focus: Focus) -> Value:
    """The computed node; nothing for text of the empty sequence."""
    if isinstance(expression, ast.Markup):
        target = QualifiedName("", "", expression.target) if expression.target else None
        return [Detached(expression.kind, target, expression.value)]
    if expression.kind is ast.NodeKind.ELEMENT:
        name = _computed_name(evaluator, expression, focus)
        declared = ((name.prefix, name.namespace),) if name.namespace else ()
        return [Construction(ast.Constructor(name, (), declared, (expression.content,)), focus)]
    value = evaluator.value(expression.content, focus)
    if not value and expression.kind is ast.NodeKind.TEXT:
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


def checked_content(kind: ast.NodeKind, text: str) -> str:
    """The text of a node that is made; DynamicError for one that XML cannot have."""
    if kind is ast.NodeKind.COMMENT and not is_comment(text):
        raise DynamicError("XQDY0072", "a comment cannot hold this")
    if kind is ast.NodeKind.PROCESSING_INSTRUCTION:
        text = text.lstrip(" \t\n\r")
        if not is_processing_instruction("x", text):
            raise DynamicError("XQDY0026", "a processing instruction cannot hold this")
    return text


def holder(item: Detached) -> tuple[ElementStream, NodeType]:
    """A tree of one element with nothing but the item in it, and the item's type there."""
    builder = ElementStreamBuilder()
    is_attribute = item.kind is ast.NodeKind.ATTRIBUTE
    attributes = [(item.name, item.value)] if is_attribute and item.name is not None else []
    builder.start_element(QualifiedName("", "", "holder"), attributes)
    if item.kind is ast.NodeKind.COMMENT:
        builder.comment(item.value)
    elif item.kind is ast.NodeKind.PROCESSING_INSTRUCTION and item.name is not None:
        builder.processing_instruction(item.name.local, item.value)
    elif not is_attribute:
        builder.text(item.value)
    builder.end_element()
    return builder.finish(), NodeType.ATTRIBUTE if is_attribute else NodeType.CONTENT


def name_of_value(value: Opaque, kind: ast.NodeKind = ast.NodeKind.ELEMENT) -> QualifiedName:
    """The name that an xs:QName is; DynamicError for one that no such node can have."""
    prefix, _, local = value.text.rpartition(":")
    namespace = value.key[0]
    name = QualifiedName(prefix, namespace, local)
    if fault := namespace_fault(name, kind):
        raise DynamicError(fault, f"{value.text} has a prefix or a namespace of XML's own")
    return name._replace(prefix="xml") if namespace == XML_NAMESPACE else name


def _computed_name(evaluator: Evaluator, expression: ast.Computed, focus: Focus) -> QualifiedName:
    if isinstance(expression.name, QualifiedName):
        return expression.name
    assert expression.name is not None
    atom = evaluator.one_atom(evaluator.value(expression.name, focus))
    kind = expression.kind
    if isinstance(atom, Opaque) and atom.type == "xs:QName":
        if kind is not ast.NodeKind.PROCESSING_INSTRUCTION:
            return name_of_value(atom, kind)
        atom = f"{atom}"
    if not isinstance(atom, str) or isinstance(atom, AnyUri):
        raise DynamicError("XPTY0004", "a name is a string or an xs:QName")
    text = str(atom).strip()
    if fault := lexical_fault(text, kind):
        raise DynamicError(fault, f"{text[:80]!r} is no name of {kind.value}")
    prefix, colon, local = text.rpartition(":")
    known = {**INITIAL_NAMESPACES, **dict(expression.namespaces)}
    if kind is not ast.NodeKind.ELEMENT and not colon:
        name = QualifiedName("", "", local)
    elif prefix not in known:
        raise DynamicError("XQDY0074", f"the prefix of {text[:80]!r} is not declared")
    else:
        name = QualifiedName(prefix, known[prefix], local)
    if fault := namespace_fault(name, kind):
        raise DynamicError(fault, f"{text[:80]!r} is a declaration of a namespace")
    return name


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
            elif isinstance(part, ast.Constructor):
                self._construct(Construction(part, focus))
            else:
                self.items(self._evaluator.value(part, focus))
        self.xml.end_element()

    def _attribute(self, tag: StartTag, item: Item) -> bool:
        """Adds the item to the start tag if it is an attribute."""
        if isinstance(item, Detached) and item.kind is ast.NodeKind.ATTRIBUTE:
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

    def _value_part(self, part: str | ast.Expression, focus: Focus) -> str:
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
        if item.kind is ast.NodeKind.TEXT:
            self.xml.text(item.value)
        elif item.kind is ast.NodeKind.COMMENT:
            self.xml.comment(item.value)
        elif item.kind is ast.NodeKind.PROCESSING_INSTRUCTION:
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

    def __init__(self, constructor: ast.Constructor) -> None:
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
            name = name._replace(prefix=free_prefix(name, self._prefixes))
        self.attributes.append((name, value))
        self.size += len(value)
        return True


def free_prefix(name: QualifiedName, prefixes: dict[str, str]) -> str:
    """A prefix that means the namespace of an attribute, which is noted among the ``prefixes``: its
    own one where that means nothing else, or that with a number behind it."""
    own = name.prefix or ("xml" if name.namespace == XML_NAMESPACE else OWN_PREFIX)
    prefix, count = own, 0
    while prefixes.setdefault(prefix, name.namespace) != name.namespace:
        count += 1
        prefix = f"{own}{count}"
    return prefix
