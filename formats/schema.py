"""A source's schema as it was registered: its kind found out, its text checked.

A DTD, a W3C XML Schema or a RELAX NG schema (XML syntax).  Reading one never opens a file or a
connection: what a schema imports from elsewhere stays unread, and such a schema is checked for
well-formedness only.
"""

from __future__ import annotations

import io
import pyexpat
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeAlias

from lxml import etree

from formats.errors import SchemaRefused

SchemaKind: TypeAlias = Literal["dtd", "xsd", "relaxng"]

SCHEMA_BYTES_MAX = 4 * 1024 * 1024

XSD = "{http://www.w3.org/2001/XMLSchema}"
RELAXNG = "{http://relaxng.org/ns/structure/1.0}"
_ELSEWHERE = {
    "xsd": tuple(XSD + name for name in ("import", "include", "redefine", "override")),
    "relaxng": tuple(RELAXNG + name for name in ("include", "externalRef")),
}
_SUFFIXES: dict[str, SchemaKind] = {".dtd": "dtd", ".xsd": "xsd", ".rng": "relaxng"}


@dataclass(frozen=True, slots=True)
class Schema:
    """``name`` is the file name it was given under, ``data`` its bytes unchanged."""

    name: str
    kind: SchemaKind
    data: bytes = field(repr=False)


def read_schema(name: str, data: bytes, bytes_max: int = SCHEMA_BYTES_MAX) -> Schema:
    """The schema in ``data``, or SchemaRefused with the place of what is wrong.

    The kind follows from the suffix of ``name`` (``.dtd``, ``.xsd``, ``.rng``) or else from the
    content.  Codes: ``too-large``, ``unknown-schema`` (none of the three kinds, or not the one
    that the suffix says), ``malformed``, ``invalid-schema``.
    """
    if len(data) > bytes_max:
        raise SchemaRefused("too-large", f"{len(data)} bytes; at most {bytes_max} are allowed")
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    expected = _SUFFIXES.get(suffix)
    if suffix == ".rnc":
        raise SchemaRefused(
            "unknown-schema", "RELAX NG in compact syntax is not read; expected its XML syntax"
        )
    if expected == "dtd" or (expected is None and _looks_like_dtd(data)):
        if _check_dtd(data):
            _compile_dtd(data)
        return Schema(name, "dtd", data)
    tree = parse_schema_document(data)
    kind = _kind_of(tree)
    if kind is None or expected not in {None, kind}:
        raise SchemaRefused(
            "unknown-schema",
            f"the root element is {tree.tag}; expected a {expected or 'XML Schema or RELAX NG'}",
            tree.sourceline,
            1,
        )
    # What needs other documents cannot be compiled alone.
    if _is_whole(kind, tree):
        _compile(kind, tree)
    return Schema(name, kind, data)


def stands_alone(schema: Schema) -> bool:
    """Whether a schema that was read refers to no other document."""
    if schema.kind == "dtd":
        return _check_dtd(schema.data)
    return _is_whole(schema.kind, parse_schema_document(schema.data))


def _is_whole(kind: SchemaKind, tree: Any) -> bool:
    return next(tree.iter(*_ELSEWHERE[kind]), None) is None


def _looks_like_dtd(data: bytes) -> bool:
    return b"<!ELEMENT" in data and b"<!DOCTYPE" not in data


def _check_dtd(data: bytes) -> bool:
    """Read an external DTD subset with expat, which opens nothing by itself; whether it is whole,
    without parts from elsewhere."""
    if not data.strip():
        raise SchemaRefused("invalid-schema", "the DTD is empty", 1, 1)
    parser = pyexpat.ParserCreate()
    parser.SetParamEntityParsing(pyexpat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    incomplete = False

    def external_entity(
        context: str | None, _base: str | None, system_id: str | None, _public: str | None
    ) -> int:
        nonlocal incomplete
        if system_id != "schema.dtd":
            incomplete = True  # a parameter entity from elsewhere stays unread
            return 1
        subset = parser.ExternalEntityParserCreate(context)
        subset.ExternalEntityRefHandler = part_from_elsewhere
        try:
            subset.Parse(data, True)
        except pyexpat.ExpatError as error:
            reason = pyexpat.ErrorString(error.code) or "not well-formed"
            raise SchemaRefused("malformed", reason, error.lineno, error.offset + 1) from None
        except (ValueError, LookupError) as error:
            raise SchemaRefused("malformed", f"its encoding is not read: {error}") from None
        return 1

    def part_from_elsewhere(*_: object) -> int:
        nonlocal incomplete
        incomplete = True
        return 1

    parser.ExternalEntityRefHandler = external_entity
    parser.Parse(b'<!DOCTYPE x SYSTEM "schema.dtd"><x/>', True)
    return not incomplete


def _compile_dtd(data: bytes) -> None:
    try:
        etree.DTD(io.BytesIO(data))
    except etree.DTDParseError as error:
        _refuse(error.error_log, str(error))


def parse_schema_document(data: bytes) -> Any:
    """The root element (lxml) of a schema that is written in XML; SchemaRefused otherwise."""
    parser = etree.XMLParser(
        resolve_entities="internal", no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        reason = error.msg.removesuffix(f", line {line}, column {column}")
        raise SchemaRefused("malformed", reason, line or 1, max(column, 1)) from None


def _kind_of(tree: Any) -> SchemaKind | None:
    if tree.tag == f"{XSD}schema":
        return "xsd"
    if str(tree.tag).startswith(RELAXNG):
        return "relaxng"
    return None


def _compile(kind: SchemaKind, tree: Any) -> None:
    try:
        if kind == "xsd":
            etree.XMLSchema(tree)
        else:
            etree.RelaxNG(tree)
    except (etree.XMLSchemaParseError, etree.RelaxNGParseError) as error:
        _refuse(error.error_log, str(error))


def _refuse(log: Any, reason: str) -> NoReturn:
    for entry in log:
        raise SchemaRefused("invalid-schema", entry.message, entry.line, entry.column or 1)
    raise SchemaRefused("invalid-schema", reason)
