"""Updates of ``copy … modify … return …``: copies of nodes with changes (XQuery Update, 1.0).

A copy is the same columns as one more tree, in which nothing is above the copied node.  What
``modify`` says is collected, and looked at only when all of it has been: so an update never sees
another one (snapshot semantics).  Then the copy is written anew: what nothing was said of as it
stands, with its subtree, in one piece.

As there, one node is renamed, replaced, or given a value at most once; a replaced or deleted node
takes with it what was said below it; what is inserted beside it stays.
"""

from __future__ import annotations

from msgspec.structs import replace

from formats.characters import is_colonless_name
from formats.element_stream import ContentKind
from formats.errors import MessageRefused
from formats.limits import DEFAULT_LIMITS
from formats.names import QualifiedName
from formats.text import parse_text
from yfilter.errors import MatchLimitExceeded
from yfilter.language import query_ast as ast
from yfilter.language.budget import deep_recursion
from yfilter.language.evaluator import (
    ContentWriter,
    Evaluator,
    StartTag,
    checked_content,
    lexical_fault,
    name_of_value,
    namespace_fault,
)
from yfilter.language.namespaces import INITIAL_NAMESPACES
from yfilter.language.nodes import (
    Atom,
    Detached,
    DynamicError,
    Item,
    Node,
    NodeType,
    Opaque,
    Value,
    element_node,
)

_BESIDE = (ast.UpdateKind.INSERT_BEFORE, ast.UpdateKind.INSERT_AFTER)
_KINDS = {
    ContentKind.TEXT: ast.NodeKind.TEXT,
    ContentKind.COMMENT: ast.NodeKind.COMMENT,
    ContentKind.PROCESSING_INSTRUCTION: ast.NodeKind.PROCESSING_INSTRUCTION,
}


class PendingUpdates:
    """What one ``modify`` says of the copies, the trees by these numbers."""

    def __init__(self, evaluator: Evaluator, trees: set[int]) -> None:
        self.deleted: set[Node] = set()
        self.replaced: dict[Node, Value] = {}
        self.values: dict[Node, str] = {}
        self.names: dict[Node, QualifiedName] = {}
        self.attributes: dict[Node, list[Item]] = {}  # inserted, by the element
        self._inserted: dict[tuple[ast.UpdateKind, Node], list[Item]] = {}
        self._targets: set[Node] = set()
        self._evaluator = evaluator
        self._trees = trees

    def delete(self, target: Node) -> None:
        self._add(target)
        if self._parent(target) is not None:  # without one, nothing is to be done
            self.deleted.add(target)

    def replace(self, target: Node, value: Value) -> None:
        self._add(target)
        attributes, content = self._split(value)
        if target.type is NodeType.DOCUMENT:
            raise DynamicError("XUTY0008", "a document cannot be replaced")
        if self._parent(target) is None:
            raise DynamicError("XUDY0009", "a node without a parent cannot be replaced")
        is_attribute = target.type is NodeType.ATTRIBUTE
        if content if is_attribute else attributes:
            code = "XUTY0011" if is_attribute else "XUTY0010"
            raise DynamicError(code, "attributes replace attributes, other nodes other nodes")
        if target in self.replaced:
            raise DynamicError("XUDY0016", "a node is replaced twice")
        self.replaced[target] = value

    def replace_value(self, target: Node, text: str) -> None:
        self._add(target)
        self._evaluator.charge_bytes(len(text))
        if target.type is NodeType.DOCUMENT:
            raise DynamicError("XUTY0008", "a document has no value to replace")
        if target in self.values:
            raise DynamicError("XUDY0017", "the value of a node is replaced twice")
        kind = self._content_kind(target)
        self.values[target] = text if kind is None else checked_content(_KINDS[kind], text)

    def rename(self, target: Node, name: QualifiedName) -> None:
        self._add(target)
        is_content = target.type is NodeType.CONTENT
        is_target = self._content_kind(target) is ContentKind.PROCESSING_INSTRUCTION
        if target.type is NodeType.DOCUMENT or (is_content and not is_target):
            raise DynamicError("XUTY0012", "a node that has no name is renamed")
        if is_target and (name.namespace or name.prefix):
            raise DynamicError("XUDY0025", "a processing instruction has a name without prefix")
        if is_target:
            fault = lexical_fault(name.local, ast.NodeKind.PROCESSING_INSTRUCTION)
        else:
            is_element = target.type is NodeType.ELEMENT
            fault = namespace_fault(
                name, ast.NodeKind.ELEMENT if is_element else ast.NodeKind.ATTRIBUTE
            )
        if fault:
            raise DynamicError(fault, f"{name} is no name of this node")
        if target in self.names:
            raise DynamicError("XUDY0015", "a node is renamed twice")
        self.names[target] = name

    def insert(self, target: Node, kind: ast.UpdateKind, value: Value) -> None:
        self._add(target)
        attributes, content = self._split(value)
        owner: Node | None = target
        if kind in _BESIDE:
            if target.type not in (NodeType.ELEMENT, NodeType.CONTENT):
                raise DynamicError("XUTY0006", "nothing can be beside this node")
            owner = self._parent(target)
            if owner is None:
                raise DynamicError("XUDY0029", "nothing can be beside a node without a parent")
        elif target.type not in (NodeType.ELEMENT, NodeType.DOCUMENT):
            raise DynamicError("XUTY0005", "nothing can be in this node")
        if attributes:
            assert owner is not None
            if owner.type is not NodeType.ELEMENT:
                raise DynamicError("XUTY0022", "a document has no attributes")
            self.attributes.setdefault(owner, []).extend(attributes)
        self._inserted.setdefault((kind, target), []).extend(content)

    def inserted(self, kind: ast.UpdateKind, target: Node) -> Value:
        return self._inserted.get((kind, target), ())

    def applied(self, copy: Node) -> Node | Detached:
        """A copy as it has become; itself if nothing was said of it."""
        if not any(target.tree == copy.tree for target in self._targets):
            return copy
        evaluator = self._evaluator
        if copy.type in (NodeType.ATTRIBUTE, NodeType.CONTENT):
            return self._single(copy)
        writer = _CopyWriter(evaluator, self, copy, self._touched(copy))
        try:
            with deep_recursion():
                writer.write()
            limits = replace(DEFAULT_LIMITS, bytes_max=evaluator.limits.bytes_max)
            stream = parse_text(writer.xml.getvalue(), limits)
        except ValueError as error:  # a character that XML cannot carry, a prefix of two meanings
            raise DynamicError("XUDY0024", str(error)) from None
        except MessageRefused as refusal:
            if copy.type is NodeType.DOCUMENT and refusal.code == "malformed":
                raise DynamicError("FODC0006", "a document without its one element") from None
            raise MatchLimitExceeded("result-too-large", str(refusal)) from None
        top = element_node(0) if copy.type is NodeType.ELEMENT else copy
        return evaluator.tree(stream, top)

    def _add(self, target: Node) -> None:
        if target.tree not in self._trees:
            raise DynamicError("XUDY0014", "what is changed is no part of a copy")
        self._evaluator.charge()
        self._targets.add(target)

    def _parent(self, node: Node) -> Node | None:
        return self._evaluator.parent(node)

    def _content_kind(self, node: Node) -> ContentKind | None:
        if node.type is not NodeType.CONTENT:
            return None
        return ContentKind(self._evaluator.streams[node.tree].content_kind[node.number])

    def _split(self, value: Value) -> tuple[list[Item], list[Item]]:
        """The attributes that lead a value, and what comes after them."""
        is_attribute = [
            item.type is NodeType.ATTRIBUTE
            if isinstance(item, Node)
            else isinstance(item, Detached) and item.kind is ast.NodeKind.ATTRIBUTE
            for item in value
        ]
        count = is_attribute.index(False) if False in is_attribute else len(value)
        if any(is_attribute[count:]):
            raise DynamicError("XUTY0004", "an attribute after other content")
        return list(value[:count]), list(value[count:])

    def _touched(self, copy: Node) -> set[int]:
        """The elements in which something is different, up to the top."""
        stream = self._evaluator.streams[copy.tree]
        touched: set[int] = set()
        for target in self._targets:
            if target.tree != copy.tree or target.type is NodeType.DOCUMENT:
                continue
            element = target.position
            if target.type is NodeType.CONTENT:
                element = stream.content_parent[target.number]
            while element >= 0 and element not in touched:
                touched.add(element)
                if element == copy.position:
                    break
                element = stream.element_parent[element]
        return touched

    def _single(self, copy: Node) -> Detached:
        """An attribute, text, comment or processing instruction that was copied alone."""
        value = self.values.get(copy, self._evaluator.string_value(copy))
        name = self.names.get(copy, self._evaluator.name_of(copy))
        kind = self._content_kind(copy)
        return Detached(ast.NodeKind.ATTRIBUTE if kind is None else _KINDS[kind], name, value)


class _CopyWriter(ContentWriter):
    """Writes a copy with its changes; ``touched`` are the elements that have any in them."""

    def __init__(
        self, evaluator: Evaluator, pending: PendingUpdates, copy: Node, touched: set[int]
    ) -> None:
        super().__init__(evaluator)
        self._pending = pending
        self._copy = copy
        self._tree = copy.tree
        self._stream = evaluator.streams[copy.tree]
        self._touched = touched

    def write(self) -> None:
        if self._copy.type is NodeType.DOCUMENT:
            self._children(self._copy)
        else:
            self._element(self._copy)

    def _place(self, node: Node) -> None:
        """A node below the top, with what was inserted beside it."""
        pending = self._pending
        self.items(pending.inserted(ast.UpdateKind.INSERT_BEFORE, node))
        if node in pending.replaced:
            self.items(pending.replaced[node])
        elif node not in pending.deleted:
            if node.type is NodeType.ELEMENT:
                self._element(node)
            else:
                self._content(node)
        self.items(pending.inserted(ast.UpdateKind.INSERT_AFTER, node))

    def _element(self, node: Node) -> None:
        if node.number not in self._touched:
            self._copy_element(node)
            return
        self._evaluator.charge()
        stream, pending, element = self._stream, self._pending, node.number
        is_top = node == self._copy
        declared = stream.namespaces_in_scope(element) if is_top else {}
        declared.update(stream.declarations_of(element))
        name = pending.names.get(node, stream.name_of(element))
        if declared.get(name.prefix, name.namespace) != name.namespace:
            if name.namespace:
                raise DynamicError("XUDY0023", f"a prefix would mean two things on <{name}>")
            declared[""] = ""
        tag = StartTag(ast.Constructor(name, (), tuple(declared.items())))
        for number in stream.attributes_of(element):
            self._old_attribute(tag, Node(element, NodeType.ATTRIBUTE, number, self._tree))
        for item in pending.attributes.get(node, ()):
            self._attribute(tag, item)
        self._evaluator.charge_bytes(tag.size)
        self.xml.start_element(name, tag.attributes, declared.items())
        if node in pending.values:
            self._text(pending.values[node])
        else:
            self._children(node)
        self.xml.end_element()

    def _old_attribute(self, tag: StartTag, node: Node) -> None:
        stream, pending = self._stream, self._pending
        if node in pending.replaced:
            for item in pending.replaced[node]:
                self._attribute(tag, item)
        elif node not in pending.deleted:
            name = pending.names.get(node, stream.names[stream.attribute_name[node.number]])
            value = pending.values.get(node)
            self._add(tag, name, stream.attribute_value(node.number) if value is None else value)

    def _add(self, tag: StartTag, name: QualifiedName, value: str) -> None:
        if not tag.add(name, value):
            raise DynamicError("XUDY0021", f"the attribute {name} is given twice")

    def _children(self, node: Node) -> None:
        pending = self._pending
        self.items(pending.inserted(ast.UpdateKind.INSERT_FIRST, node))
        for child in self._evaluator.children(node):
            self._place(child)
        self.items(pending.inserted(ast.UpdateKind.INSERT_INTO, node))
        self.items(pending.inserted(ast.UpdateKind.INSERT_LAST, node))

    def _content(self, node: Node) -> None:
        stream, pending = self._stream, self._pending
        value, name = pending.values.get(node), self._evaluator.name_of(node)
        name = pending.names.get(node, name)
        if value is None and node not in pending.names:
            self._evaluator.charge_bytes(len(self._evaluator.string_value(node)))
            self.xml.copy_content(stream, node.number)
            return
        value = self._evaluator.string_value(node) if value is None else value
        kind = stream.content_kind[node.number]
        if kind == ContentKind.TEXT:
            self._text(value)
        elif kind == ContentKind.COMMENT:
            self.xml.comment(value)
        elif name is not None:
            self.xml.processing_instruction(name.local, value)


def renamed(atom: Atom | None) -> QualifiedName:
    """A computed name, an xs:QName or a string without a prefix that needs declaring."""
    if isinstance(atom, Opaque) and atom.type == "xs:QName":
        return name_of_value(atom)
    text = str(atom).strip() if isinstance(atom, str) else ""
    prefix, colon, local = text.rpartition(":")
    if not is_colonless_name(local) or (colon and prefix not in INITIAL_NAMESPACES):
        raise DynamicError("XQDY0074", f"{text[:80]!r} is no name")
    return QualifiedName(prefix, INITIAL_NAMESPACES[prefix], local)
