"""ElementStreamBuilder: an ElementStream from parse events that are Python values."""

from __future__ import annotations

from collections.abc import Sequence

from formats.element_stream import ContentKind, ElementStream
from formats.names import QualifiedName


class ElementStreamBuilder:
    """Builds an ElementStream from parse events in document order.

    The caller keeps start and end balanced; adjacent text is joined into one text node.
    """

    def __init__(self) -> None:
        self._stream = ElementStream()
        self._name_ids: dict[QualifiedName, int] = {}
        self._attribute_values = bytearray()
        self._content_values = bytearray()
        self._open: list[int] = []
        self._text_open = False

    @property
    def depth(self) -> int:
        """How many elements are open."""
        return len(self._open)

    @property
    def name_count(self) -> int:
        return len(self._name_ids)

    @property
    def element_count(self) -> int:
        return len(self._stream.element_name)

    @property
    def value_bytes(self) -> int:
        """Bytes of all attribute values and content so far."""
        return len(self._attribute_values) + len(self._content_values)

    def start_element(
        self,
        name: QualifiedName,
        attributes: Sequence[tuple[QualifiedName, str]] = (),
        declarations: Sequence[tuple[str, str]] = (),
    ) -> None:
        stream = self._stream
        element = len(stream.element_name)
        self._text_open = False
        stream.element_name.append(self._name_id(name))
        stream.element_parent.append(self._open[-1] if self._open else -1)
        stream.element_depth.append(len(self._open))
        stream.element_end.append(element + 1)
        for attribute, value in attributes:
            stream.attribute_name.append(self._name_id(attribute))
            self._attribute_values += value.encode()
            stream.attribute_offset.append(len(self._attribute_values))
        stream.attribute_start.append(len(stream.attribute_name))
        for declaration in declarations:
            stream.declaration_element.append(element)
            stream.declarations.append(declaration)
        self._open.append(element)

    def end_element(self) -> None:
        self._text_open = False
        self._stream.element_end[self._open.pop()] = len(self._stream.element_name)

    def text(self, value: str) -> None:
        if not value:
            return
        if self._text_open:
            self._content_values += value.encode()
            self._stream.content_offset[-1] = len(self._content_values)
        else:
            self._content(ContentKind.TEXT, value)
            self._text_open = True

    def comment(self, value: str) -> None:
        self._text_open = False
        self._content(ContentKind.COMMENT, value)

    def processing_instruction(self, target: str, data: str) -> None:
        self._text_open = False
        self._content(ContentKind.PROCESSING_INSTRUCTION, f"{target} {data}" if data else target)

    def finish(self) -> ElementStream:
        self._stream.attribute_values = bytes(self._attribute_values)
        self._stream.content_values = bytes(self._content_values)
        return self._stream

    def _content(self, kind: ContentKind, value: str) -> None:
        stream = self._stream
        stream.content_kind.append(kind)
        stream.content_parent.append(self._open[-1] if self._open else -1)
        stream.content_next.append(len(stream.element_name))
        self._content_values += value.encode()
        stream.content_offset.append(len(self._content_values))

    def _name_id(self, name: QualifiedName) -> int:
        found = self._name_ids.get(name)
        if found is None:
            found = self._name_ids[name] = len(self._stream.names)
            self._stream.names.append(name)
        return found
