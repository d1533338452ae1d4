"""XmlWriter: XML text, written from scratch and copied from messages.

Results of ``return`` clauses mix both: constructed elements around subtrees of a message.  The
writer knows the namespaces in force at every moment, so that whatever is written there means the
same as it did where it came from, and no declaration is repeated.

::

    message                                     written inside <r xmlns="urn:r">
    <m xmlns:p="urn:p"><a><p:b/></a></m>        copy of a: <a xmlns:p="urn:p" xmlns=""><p:b/></a>

This is XQuery's copy-namespaces mode *preserve, inherit* (XQuery 1.0, section 3.7.1.3): a copied
element keeps every namespace that was in scope on it, and inherits those of its new parent unless
it has the prefix itself.

Invariant: a name is never written where its prefix means something else; the missing declaration
is added instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from formats.characters import find_illegal_character, is_comment, is_processing_instruction
from formats.element_stream import ContentKind, ElementStream
from formats.escapes import escaped_text, escaped_value
from formats.markup import declaration, subtree_writer
from formats.names import XML_NAMESPACE, QualifiedName

# What a start tag changed: (prefix, what it meant outside, None if nothing).
_Changes = Sequence[tuple[str, str | None]]


class XmlWriter:
    """Writes one piece of XML: any number of elements, text, comments side by side and nested.

    Misuse (unbalanced elements, a character that XML cannot carry, a prefix that would have to
    mean two things on one element) is a ValueError.
    """

    def __init__(self, scope: Mapping[str, str] = MappingProxyType({})) -> None:
        """``scope``: what prefixes mean around what is written, as far as they mean anything."""
        self._parts: list[bytes] = []
        self._scope: dict[str, str] = {"": "", "xml": XML_NAMESPACE, **scope}
        self._open: list[tuple[str, _Changes]] = []
        self._tag_open = False  # the last start tag still lacks its ">"

    @property
    def depth(self) -> int:
        """How many elements are open."""
        return len(self._open)

    def start_element(
        self,
        name: QualifiedName,
        attributes: Iterable[tuple[QualifiedName, str]] = (),
        declarations: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Open an element; declarations that its names need and that are not in force are added.

        ``declarations`` are (prefix, namespace) pairs; ("", "") undeclares the default namespace.
        One that is already in force is not written again.
        """
        attributes = list(attributes)
        names = tuple([attribute for attribute, _ in attributes])
        own = own_declarations(name, names, tuple(declarations))
        pairs = [(str(attribute), _legal(value)) for attribute, value in attributes]
        self._start(str(name), own.items(), pairs)

    def end_element(self) -> None:
        """Close the element opened last."""
        if not self._open:
            raise ValueError("end_element: no element is open")
        self._end()

    def text(self, value: str) -> None:
        """Character data; escaped here."""
        self._text(_legal(value))

    def comment(self, value: str) -> None:
        if not is_comment(value):
            raise ValueError(f"a comment cannot hold {value!r}")
        self._raw(f"<!--{value}-->".encode())

    def processing_instruction(self, target: str, data: str = "") -> None:
        if not is_processing_instruction(target, data):
            raise ValueError(f"a processing instruction cannot hold {target!r}, {data!r}")
        self._raw((f"<?{target} {data}?>" if data else f"<?{target}?>").encode())

    def copy_element(self, stream: ElementStream, element: int) -> None:
        """Copy an element of a message with its subtree and the namespaces in scope on it."""
        content = stream.content_within(element)
        level = len(self._open)
        scope = stream.namespaces_in_scope(element)
        self._copy_start(stream, element, scope.items())
        if self._scope[""] == scope.get("", "") and _is_plain_inside(stream, element):
            # Every prefix inside is in scope on the element, and so it is here.
            inside = subtree_writer(stream).inside(element, content.start, content.stop)
            if inside:
                self._raw(inside)
        else:
            self._copy_inside(stream, element, content)
        while len(self._open) > level:
            self._end()

    def copy_content(self, stream: ElementStream, content: int) -> None:
        """Copy one text node, comment or processing instruction of a message."""
        value = stream.content_value(content)
        kind = stream.content_kind[content]
        if kind == ContentKind.TEXT:
            self._text(value)
        elif kind == ContentKind.COMMENT:
            self._raw(f"<!--{value}-->".encode())
        else:
            self._raw(f"<?{value}?>".encode())

    def markup(self, markup: bytes) -> None:
        """What another writer has written, where no default namespace is in force."""
        if markup:
            self._raw(markup)

    def getvalue(self) -> bytes:
        """What was written, in UTF-8 and without an XML declaration."""
        if self._open:
            raise ValueError(f"getvalue: {len(self._open)} elements are still open")
        return b"".join(self._parts)

    def _copy_inside(self, stream: ElementStream, element: int, content: range) -> None:
        content_parent, content_next = stream.content_parent, stream.content_next
        waiting, last = content.start, content.stop
        lineage = [element]  # the elements of the message that are open
        for current in range(element + 1, stream.element_end[element]):
            while waiting < last and content_next[waiting] <= current:
                self._close_down_to(lineage, content_parent[waiting])
                self.copy_content(stream, waiting)
                waiting += 1
            self._close_down_to(lineage, stream.element_parent[current])
            self._copy_start(stream, current, stream.declarations_of(current))
            lineage.append(current)
        for piece in range(waiting, last):
            self._close_down_to(lineage, content_parent[piece])
            self.copy_content(stream, piece)

    def _copy_start(
        self,
        stream: ElementStream,
        element: int,
        declarations: Iterable[tuple[str, str]],
    ) -> None:
        name = stream.name_of(element)
        own = dict(declarations)
        if name.prefix not in own:
            # Only in its new place can the name lack a declaration: a name in no namespace, below
            # a default namespace that is inherited from there.
            own[name.prefix] = name.namespace
        self._start(str(name), own.items(), ())
        if stream.attribute_start[element] < stream.attribute_start[element + 1]:
            self._parts.append(subtree_writer(stream).attributes(element))

    def _close_down_to(self, lineage: list[int], parent: int) -> None:
        while lineage[-1] != parent:
            lineage.pop()
            self._end()

    def _start(
        self,
        tag: str,
        declarations: Iterable[tuple[str, str]],
        attributes: Iterable[tuple[str, str]],
    ) -> None:
        if self._tag_open:
            self._parts.append(b">")
        self._parts.append(f"<{tag}".encode())
        changes: list[tuple[str, str | None]] = []
        for prefix, namespace in declarations:
            in_force = self._scope.get(prefix)
            if in_force != namespace:
                changes.append((prefix, in_force))
                self._scope[prefix] = namespace
                self._parts.append(declaration(prefix, namespace))
        for label, value in attributes:
            self._parts.append(f' {label}="{escaped_value(value)}"'.encode())
        self._open.append((tag, changes))
        self._tag_open = True

    def _end(self) -> None:
        tag, changes = self._open.pop()
        self._parts.append(b"/>" if self._tag_open else f"</{tag}>".encode())
        self._tag_open = False
        for prefix, before in changes:
            if before is None:
                del self._scope[prefix]
            else:
                self._scope[prefix] = before

    def _text(self, value: str) -> None:
        if value:
            self._raw(escaped_text(value).encode())

    def _raw(self, markup: bytes) -> None:
        if self._tag_open:
            self._parts.append(b">")
            self._tag_open = False
        self._parts.append(markup)


def _is_plain_inside(stream: ElementStream, element: int) -> bool:
    """Whether nothing is declared below an element."""
    declared = stream.declaration_element
    return bisect_left(declared, element + 1) == bisect_left(declared, stream.element_end[element])


@lru_cache(maxsize=1024)  # PERF: results have few kinds of elements
def own_declarations(
    name: QualifiedName,
    attributes: tuple[QualifiedName, ...],
    declarations: tuple[tuple[str, str], ...],
) -> Mapping[str, str]:
    """What each prefix must mean on the element itself, or ValueError."""
    own: dict[str, str] = {}
    for prefix, namespace in [*declarations, *_bindings_needed(name, attributes)]:
        if own.setdefault(prefix, namespace) != namespace:
            raise ValueError(
                f"<{name}>: prefix {prefix!r} cannot mean both {own[prefix]!r} and {namespace!r}"
            )
        if (prefix == "xml") != (namespace == XML_NAMESPACE) or prefix == "xmlns":
            raise ValueError(f"<{name}>: prefix {prefix!r} cannot mean {namespace!r}")
        if prefix and not namespace:
            raise ValueError(f"<{name}>: prefix {prefix!r} needs a namespace")
        _legal(namespace)
    return own


def _bindings_needed(
    name: QualifiedName, attributes: Sequence[QualifiedName]
) -> Iterator[tuple[str, str]]:
    yield name.prefix, name.namespace
    seen = set()
    for attribute in attributes:
        if (attribute.namespace, attribute.local) in seen:
            raise ValueError(f"<{name}>: attribute {attribute} is given twice")
        seen.add((attribute.namespace, attribute.local))
        if attribute.prefix:
            yield attribute.prefix, attribute.namespace
        elif attribute.namespace:
            raise ValueError(f"<{name}>: attribute {attribute} in a namespace needs a prefix")
        elif attribute.local == "xmlns":
            raise ValueError(f"<{name}>: xmlns is a declaration, not an attribute")


def _legal(value: str) -> str:
    place = find_illegal_character(value)
    if place >= 0:
        raise ValueError(f"XML cannot carry the character U+{ord(value[place]):04X}")
    return value
