"""Which names a computed constructor can give a node, and XQuery's errors for all others."""

from __future__ import annotations

from formats.characters import is_colonless_name
from formats.name_faults import XMLNS_NAMESPACE
from formats.names import XML_NAMESPACE, QualifiedName
from yfilter.language.query_ast import NodeKind


def lexical_fault(text: str, kind: NodeKind) -> str:
    """The error that a text, without white space around it, is as a name; "" if it may be one."""
    prefix, colon, local = text.rpartition(":")
    if kind is NodeKind.PROCESSING_INSTRUCTION:
        if colon or not is_colonless_name(local):
            return "XQDY0041"
        return "XQDY0064" if local.lower() == "xml" else ""
    is_name = is_colonless_name(local) and (not colon or is_colonless_name(prefix))
    return "" if is_name else "XQDY0074"


def namespace_fault(name: QualifiedName, kind: NodeKind) -> str:
    """The error that the namespace of a name is, "" if none: those of XML are not given anew."""
    is_declaration = (
        name.prefix == "xmlns"
        or name.namespace == XMLNS_NAMESPACE
        or (kind is NodeKind.ATTRIBUTE and not name.namespace and name.local == "xmlns")
    )
    is_xml = name.namespace == XML_NAMESPACE
    if is_declaration or (name.prefix and (name.prefix == "xml") != is_xml):
        return "XQDY0044" if kind is NodeKind.ATTRIBUTE else "XQDY0096"
    return ""
