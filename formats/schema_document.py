"""A schema document that is written in XML, as lxml reads it: it fetches nothing."""

from __future__ import annotations

from typing import Any

from lxml import etree

from formats.errors import SchemaRefused

XSD = "{http://www.w3.org/2001/XMLSchema}"
RELAXNG = "{http://relaxng.org/ns/structure/1.0}"


def parse_schema_document(data: bytes, file: str = "") -> Any:
    """The root element (lxml) of a schema that is written in XML; SchemaRefused otherwise, which
    names ``file``, one of several."""
    parser = etree.XMLParser(
        resolve_entities="internal", no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        reason = error.msg.removesuffix(f", line {line}, column {column}")
        reason = f"{file}: {reason}" if file else reason
        raise SchemaRefused("malformed", reason, line or 1, max(column, 1)) from None
