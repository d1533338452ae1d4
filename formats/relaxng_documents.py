"""A RELAX NG schema of several documents as one: a reference becomes what it refers to.

Sections 4.6 and 4.7 of the specification: ``externalRef`` becomes the pattern that it names,
``include`` a ``div`` of what it names, without what it defines anew.  What is not there stays a
reference.  Documents are put together as text, as prefixes in values have to keep their meaning.
"""

from __future__ import annotations

from typing import Any

from lxml import etree

from formats.errors import SchemaRefused
from formats.schema_document import RELAXNG, parse_schema_document
from formats.schema_files import BYTES_MAX, NESTING_MAX, Found, SchemaFiles

_INCLUDE, _EXTERNAL = RELAXNG + "include", RELAXNG + "externalRef"
_GRAMMAR, _DIV = RELAXNG + "grammar", RELAXNG + "div"
_COMPONENTS = (RELAXNG + "define", RELAXNG + "start")
_PLACE = "onyx-part"


def read_relaxng_document(files: SchemaFiles) -> Any:
    """The root element (lxml) of the whole.  SchemaRefused."""
    main = Found(files.main, files.data)
    root = parse_schema_document(main.data, main.path if files.is_bundle else "")
    if next(root.iter(_INCLUDE, _EXTERNAL), None) is None:
        return root
    return parse_schema_document(_Composer(files).text(main, root, ()))


class _Composer:
    def __init__(self, files: SchemaFiles) -> None:
        self._files = files
        self._bytes = 0

    def text(self, document: Found, root: Any, around: tuple[str, ...]) -> bytes:
        """Of a document, with all that it refers to; ``around``: those that it is in."""
        if document.path in around:
            raise SchemaRefused("invalid-schema", f"{document.path} includes itself")
        if len(around) >= NESTING_MAX:
            raise SchemaRefused(
                "too-large", f"its documents include each other {NESTING_MAX} times and more"
            )
        etree.strip_tags(root, etree.ProcessingInstruction)
        around = (*around, document.path)
        parts = []
        for reference in list(root.iter(_INCLUDE, _EXTERNAL)):
            part = self._part(document, reference, around)
            if part is not None:
                parts.append(part)
                _leave_place(reference, len(parts) - 1)
        text: bytes = etree.tostring(root, encoding="utf-8", with_tail=False)
        for number, part in enumerate(parts):
            text = text.replace(f"<?{_PLACE} {number}?>".encode(), part, 1)
        self._bytes += len(text)
        if self._bytes > BYTES_MAX:
            raise SchemaRefused("too-large", f"together it has more than {BYTES_MAX} bytes")
        return text

    def _part(self, document: Found, reference: Any, around: tuple[str, ...]) -> bytes | None:
        is_include = reference.tag == _INCLUDE
        does = "includes" if is_include else "refers to"
        where = f"{document.path}, line {reference.sourceline}: {does}"
        found = self._files.open(document.path, reference.get("href", "").strip(), where)
        if found is None:
            return None
        root = parse_schema_document(found.data, found.path)
        if not str(root.tag).startswith(RELAXNG) or (is_include and root.tag != _GRAMMAR):
            expected = "a grammar" if is_include else "a pattern"
            raise SchemaRefused(
                "invalid-schema",
                f"{found.path}: the root element is {root.tag}; expected {expected}",
            )
        if root.get("datatypeLibrary") is None:
            root.set("datatypeLibrary", "")
        if is_include:
            _leave_out(root, reference)
            root.tag = _DIV
        elif reference.get("ns") is not None and root.get("ns") is None:
            root.set("ns", reference.get("ns"))
        return self.text(found, root, around)


def _leave_out(grammar: Any, include: Any) -> None:
    """What the include defines anew."""
    anew = {(part.tag, _name(part)) for part in include.iter(*_COMPONENTS)}
    for part in list(grammar.iter(*_COMPONENTS)):
        if (part.tag, _name(part)) in anew and part.getparent() is not None:
            part.getparent().remove(part)


def _name(component: Any) -> str:
    return str(component.get("name", "")).strip()


def _leave_place(reference: Any, number: int) -> None:
    place = etree.ProcessingInstruction(_PLACE, str(number))
    if reference.tag == _EXTERNAL:
        place.tail = reference.tail
        reference.getparent().replace(reference, place)
    else:
        reference.tag = _DIV
        del reference.attrib["href"]
        reference.insert(0, place)
