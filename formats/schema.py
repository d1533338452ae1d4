"""A source's schema as it was registered: its kind found out, its documents checked.

A DTD, a W3C XML Schema or a RELAX NG schema (XML syntax), of one document or of several as a bundle
(``schema_files.py``).  Reading one never opens a file or a connection: what is referred to and is
not in the bundle stays unread and is said (``what_is_unread``); such a schema is checked for
well-formedness only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from formats.dtd import read_declarations
from formats.errors import SchemaRefused
from formats.relaxng_documents import read_relaxng_document
from formats.schema_compiler import compile_dtd, compile_relaxng, compile_xsd
from formats.schema_document import RELAXNG, XSD, parse_schema_document
from formats.schema_files import SchemaFiles
from formats.xsd_documents import read_xsd_documents

SchemaKind: TypeAlias = Literal["dtd", "xsd", "relaxng"]

SCHEMA_BYTES_MAX = 4 * 1024 * 1024

_SUFFIXES: dict[str, SchemaKind] = {".dtd": "dtd", ".xsd": "xsd", ".rng": "relaxng"}


@dataclass(frozen=True, slots=True)
class Schema:
    """``name`` is the file name it was given under, ``data`` its bytes unchanged."""

    name: str
    kind: SchemaKind
    data: bytes = field(repr=False)

    def files(self) -> SchemaFiles:
        """Its documents, of which nothing but the main one is read yet."""
        return SchemaFiles.of(self.name, self.data)


def read_schema(name: str, data: bytes, bytes_max: int = SCHEMA_BYTES_MAX) -> Schema:
    """The schema in ``data``, or SchemaRefused with the place of what is wrong.

    The kind follows from the suffix of ``name``, or of a bundle's main document (``.dtd``,
    ``.xsd``, ``.rng``), or else from the content.  Codes: ``too-large``, ``unknown-schema`` (none
    of the three kinds, or not the one that the suffix says), ``malformed``, ``invalid-schema``.
    """
    if len(data) > bytes_max:
        raise SchemaRefused("too-large", f"{len(data)} bytes; at most {bytes_max} are allowed")
    files = SchemaFiles.of(name, data)
    schema = Schema(name, kind_of(files), data)
    compile_schema(schema)
    return schema


def compile_schema(schema: Schema) -> Any | None:
    """What libxml2 makes of it (lxml); None where it is not whole.  SchemaRefused."""
    files = schema.files()
    if schema.kind == "dtd":
        read_declarations(files)
        return compile_dtd(files) if files.is_whole else None
    if schema.kind == "relaxng":
        root = read_relaxng_document(files)
        return compile_relaxng(root) if files.is_whole else None
    documents = read_xsd_documents(files)
    return compile_xsd(documents) if files.is_whole else None


def read_roots(schema: Schema, files: SchemaFiles) -> list[Any]:
    """The root elements (lxml) of a schema that is written in XML, the main one first."""
    if schema.kind == "relaxng":
        return [read_relaxng_document(files)]
    return [document.root for document in read_xsd_documents(files) if document.is_own]


def what_is_unread(schema: Schema) -> tuple[str, ...]:
    """What a schema refers to that is not in it, as "main.xsd, line 3: includes types.xsd, …"."""
    files = schema.files()
    if schema.kind == "dtd":
        read_declarations(files)
    else:
        read_roots(schema, files)
    return tuple(files.unread)


def stands_alone(schema: Schema) -> bool:
    """Whether a schema that was read refers to no document that it has not."""
    return not what_is_unread(schema)


def kind_of(files: SchemaFiles) -> SchemaKind:
    """What the main document is; SchemaRefused ``unknown-schema``."""
    name, data = files.main, files.data
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    expected = _SUFFIXES.get(suffix)
    if suffix == ".rnc":
        raise SchemaRefused(
            "unknown-schema", "RELAX NG in compact syntax is not read; expected its XML syntax"
        )
    if expected == "dtd" or (expected is None and _looks_like_dtd(data)):
        if not data.strip():
            raise SchemaRefused("invalid-schema", "the DTD is empty", 1, 1)
        return "dtd"
    root = parse_schema_document(data, name if files.is_bundle else "")
    kind: SchemaKind | None = None
    if root.tag == f"{XSD}schema":
        kind = "xsd"
    elif str(root.tag).startswith(RELAXNG):
        kind = "relaxng"
    if kind is None or expected not in {None, kind}:
        raise SchemaRefused(
            "unknown-schema",
            f"the root element is {root.tag}; expected a {expected or 'XML Schema or RELAX NG'}",
            root.sourceline,
            1,
        )
    return kind


def _looks_like_dtd(data: bytes) -> bool:
    return b"<!ELEMENT" in data and b"<!DOCTYPE" not in data
