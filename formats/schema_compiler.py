"""A schema as libxml2 compiles it, of one document or of several; it fetches nothing.

An XML Schema of several documents is handed to libxml2 with one more document for each namespace,
which includes all that are of it: libxml2 imports a namespace from one place only.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, NoReturn

from lxml import etree

from formats.errors import SchemaRefused
from formats.schema_document import XSD
from formats.schema_files import SchemaFiles, absolute
from formats.xsd_documents import XsdDocument

_BUNDLE = "bundle:/"


class _Documents(etree.Resolver):  # type: ignore[misc]
    """Gives libxml2 what is in the bundle, and fails where it asks for anything else."""

    """``places``: where a document is, by other names that it has."""

    def __init__(self, documents: Mapping[str, bytes], places: Mapping[str, str]) -> None:
        self._documents = documents
        self._places = places

    def resolve(self, url: str, _public_id: str | None, context: Any) -> Any:
        place = self._places.get(url, url)
        if place not in self._documents:
            raise SchemaRefused("invalid-schema", f"{url} is not there")
        return self.resolve_string(self._documents[place], context, base_url=place)


def compile_dtd(files: SchemaFiles) -> Any:
    """SchemaRefused ``invalid-schema`` with the place of what is wrong, as the others."""
    if len(files.read) == 1:
        try:
            return etree.DTD(io.BytesIO(files.data))
        except etree.DTDParseError as error:
            _refuse(error.error_log, str(error))
    main = absolute("", files.main)
    documents = {absolute("", path): data for path, data in files.read.items()}
    places = {url: absolute("", path) for url, path in files.found.items()}
    parser = _parser(documents, places)
    try:
        document = etree.fromstring(f'<!DOCTYPE x SYSTEM "{main}"><x/>'.encode(), parser)
    except (etree.XMLSyntaxError, SchemaRefused) as error:
        log = getattr(error, "error_log", ())
        _refuse([e for e in log if str(e.filename).startswith(_BUNDLE)], str(error))
    return document.getroottree().docinfo.externalDTD


def compile_relaxng(root: Any) -> Any:
    try:
        return etree.RelaxNG(root)
    except etree.RelaxNGParseError as error:
        _refuse(error.error_log, str(error))


def compile_xsd(documents: list[XsdDocument]) -> Any:
    try:
        if len(documents) == 1:
            return etree.XMLSchema(documents[0].root)
        return etree.XMLSchema(_gathered(documents))
    except (etree.XMLSchemaParseError, SchemaRefused) as error:
        _refuse(getattr(error, "error_log", ()), str(error))


def _gathered(documents: list[XsdDocument]) -> Any:
    """The document of the main namespace."""
    namespaces = list(dict.fromkeys(document.target for document in documents))
    places = {name: f"{_BUNDLE}?{number}" for number, name in enumerate(namespaces)}
    members: dict[str, list[str]] = {name: [] for name in namespaces}
    texts: dict[str, bytes] = {}
    for document in documents:
        place = f"{_BUNDLE}{document.path}"
        while place in texts:
            place += "?"  # once more, in another namespace
        for part in document.root.iterchildren(XSD + "import"):
            part.set("schemaLocation", places[part.get("namespace", "")])
        texts[place] = etree.tostring(document.root)
        members[document.target].append(place)
    for name in namespaces:
        gathering = etree.Element(XSD + "schema", {"targetNamespace": name} if name else {})
        for place in members[name]:
            etree.SubElement(gathering, XSD + "include", schemaLocation=place)
        texts[places[name]] = etree.tostring(gathering)
    main = places[documents[0].target]
    return etree.fromstring(texts[main], _parser(texts), base_url=main)


def _parser(documents: Mapping[str, bytes], places: Mapping[str, str] | None = None) -> Any:
    """With ``places`` one for a DTD."""
    is_dtd = places is not None
    parser = etree.XMLParser(
        resolve_entities=True if is_dtd else "internal",  # all is asked of the resolver
        no_network=True,
        load_dtd=is_dtd,
        huge_tree=False,
    )
    parser.resolvers.add(_Documents(documents, places or {}))
    return parser


def _refuse(log: Any, reason: str) -> NoReturn:
    for entry in log:
        file = str(entry.filename or "").removeprefix(_BUNDLE)
        known = str(entry.filename or "").startswith(_BUNDLE) and not file.startswith("?")
        message = f"{file}: {entry.message}" if known else entry.message
        raise SchemaRefused("invalid-schema", message, entry.line, entry.column or 1)
    raise SchemaRefused("invalid-schema", reason)
