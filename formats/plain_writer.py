"""PlainWriter: elements of a message as XML, in plain Python.

It writes the same octets as ``SubtreeWriter``, where that one is not compiled (``markup.py``).
"""

from __future__ import annotations

from formats.element_stream import ContentKind, ElementStream
from formats.escapes import escaped_text, escaped_value


class PlainWriter:
    """Writes of one message; ``stream`` is that message."""

    def __init__(self, stream: ElementStream) -> None:
        self.stream = stream

    def document(self) -> bytes:
        """The message without XML declaration; comments and processing instructions outside the
        root element stand on lines of their own."""
        stream = self.stream
        within = stream.content_within(0)
        before = [self._piece(content) + "\n" for content in range(within.start)]
        after = ["\n" + self._piece(content) for content in range(within.stop, _count(stream))]
        inside = self._inside(0, within)
        tag = str(stream.name_of(0))
        start = f"<{tag}{self._declarations(0)}{self._attributes(0)}"
        root = f"{start}>{inside}</{tag}>" if inside else f"{start}/>"
        return "".join((*before, root, *after)).encode()

    def inside(self, element: int, first: int, last: int) -> bytes:
        """The markup between the tags of an element; its content is that from first to last."""
        return self._inside(element, range(first, last)).encode()

    def attributes(self, element: int) -> bytes:
        """The attributes of an element as in its start tag, each with a space before it."""
        return self._attributes(element).encode()

    def _inside(self, element: int, content: range) -> str:
        stream = self.stream
        out: list[str] = []
        lineage = [element]
        is_open = False  # the last start tag still lacks its end
        pieces = iter(content)
        piece = next(pieces, None)

        def close_down_to(parent: int) -> None:
            nonlocal is_open
            while lineage[-1] != parent:
                out.append("/>" if is_open else f"</{stream.name_of(lineage[-1])}>")
                lineage.pop()
                is_open = False

        end = stream.element_end[element]
        for current in range(element + 1, end + 1):
            while piece is not None and (current == end or stream.content_next[piece] <= current):
                close_down_to(stream.content_parent[piece])
                out.append(f">{self._piece(piece)}" if is_open else self._piece(piece))
                is_open = False
                piece = next(pieces, None)
            if current < end:
                close_down_to(stream.element_parent[current])
                before = ">" if is_open else ""
                declared, attributes = self._declarations(current), self._attributes(current)
                out.append(f"{before}<{stream.name_of(current)}{declared}{attributes}")
                lineage.append(current)
                is_open = True
        close_down_to(element)
        return "".join(out)

    def _piece(self, content: int) -> str:
        value = self.stream.content_value(content)
        kind = self.stream.content_kind[content]
        if kind == ContentKind.TEXT:
            return escaped_text(value)
        return f"<!--{value}-->" if kind == ContentKind.COMMENT else f"<?{value}?>"

    def _attributes(self, element: int) -> str:
        stream = self.stream
        return "".join(
            f' {stream.names[stream.attribute_name[each]]}="'
            f'{escaped_value(stream.attribute_value(each))}"'
            for each in stream.attributes_of(element)
        )

    def _declarations(self, element: int) -> str:
        """The declarations on an element that do not repeat one in force."""
        declared = self.stream.declarations_of(element)
        if not declared:
            return ""
        parent = self.stream.element_parent[element]
        scope = self.stream.namespaces_in_scope(parent) if parent >= 0 else {}
        return "".join(
            plain_declaration(prefix, namespace).decode()
            for prefix, namespace in declared
            if scope.get(prefix, "") != namespace
        )


def _count(stream: ElementStream) -> int:
    return len(stream.content_kind)


def plain_writer(stream: ElementStream) -> PlainWriter:
    """The writer of a message."""
    return PlainWriter(stream)


def plain_declaration(prefix: str, namespace: str) -> bytes:
    """A declaration as in a start tag, with a space before it."""
    return f' {f"xmlns:{prefix}" if prefix else "xmlns"}="{escaped_value(namespace)}"'.encode()
