"""A source's schema as it was registered: its kind found out, its documents checked.

A DTD, a W3C XML Schema or a RELAX NG schema (XML syntax), of one document or of several as a bundle
(``schema_files.py``).  Reading one never opens a file or a connection: what is referred to and is
not in the bundle stays unread and is said (``what_is_unread``); such a schema is checked for
well-formedness only.
"""

from __future__ import annotations

import copy
import io
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeAlias

from lxml import etree

from formats.dtd import read_declarations
from formats.errors import SchemaRefused
from formats.names import XML_NAMESPACE
from formats.schema_document import RELAXNG, XSD, parse_schema_document
from formats.schema_files import BYTES_MAX, NESTING_MAX, Found, SchemaFiles, absolute

# -------------------------------------------------------------------------------------------------
# The documents of an XML Schema, each of them changed so that it can be read beside the others.
#
# ::
#
#     include            gone: the document is in the list; one without a target namespace is made
#                        one of the namespace that includes it
#     redefine           gone: what is redefined has another name, by which the new definition is
#                        derived from it
#     override           gone: what is overridden is gone, the new definition in its place
#     import             of a namespace that is there: kept, without its place
#
# What is not there stays as it is written, and ``SchemaFiles.unread`` says it.


_XSD_INCLUDE, _IMPORT = XSD + "include", XSD + "import"
_REDEFINE, _OVERRIDE = XSD + "redefine", XSD + "override"
_REFERENCES = (_XSD_INCLUDE, _IMPORT, _REDEFINE, _OVERRIDE)
_DONE = {
    _XSD_INCLUDE: "includes",
    _IMPORT: "imports",
    _REDEFINE: "redefines",
    _OVERRIDE: "overrides",
}
_TYPES = (XSD + "simpleType", XSD + "complexType")
_DERIVATIONS = (XSD + "restriction", XSD + "extension")
# What the W3C publishes at http://www.w3.org/2001/xml.xsd defines these.
_XML_ATTRIBUTES = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="http://www.w3.org/XML/1998/namespace">
  <xs:attribute name="lang" type="xs:string"/>
  <xs:attribute name="space" type="xs:NCName"/>
  <xs:attribute name="base" type="xs:anyURI"/>
  <xs:attribute name="id" type="xs:ID"/>
  <xs:attributeGroup name="specialAttrs">
    <xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/>
    <xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/>
  </xs:attributeGroup>
</xs:schema>"""


@dataclass(slots=True)
class XsdDocument:
    path: str
    root: Any
    changes: list[Any] = field(default_factory=list)  # xs:redefine and xs:override, off the root
    is_own: bool = True  # of the schema, not one that everybody knows

    @property
    def target(self) -> str:
        return str(self.root.get("targetNamespace", ""))


def read_xsd_documents(files: SchemaFiles) -> list[XsdDocument]:
    """The main document first.  SchemaRefused."""
    return _Loader(files).load()


class _Loader:
    def __init__(self, files: SchemaFiles) -> None:
        self._files = files
        self._documents: list[XsdDocument] = []
        self._known: set[tuple[str, str]] = set()  # path and target namespace
        self._waiting: deque[XsdDocument] = deque()
        self._nowhere: list[tuple[str, Any]] = []  # imports without a place, and in which document
        self._redefined = 0

    def load(self) -> list[XsdDocument]:
        main = parse_schema_document(self._files.data, self._file(self._files.main))
        self._add(self._files.main, main, main.get("targetNamespace", ""))
        while self._waiting:
            self._follow(self._waiting.popleft())
            if not self._waiting:
                self._find_namespaces()
        self._use_xml_attributes()
        for document in reversed(self._documents):  # those that others build upon first
            for change in document.changes:
                self._carry_out(document, change)
        return self._documents

    def _file(self, path: str) -> str:
        return path if self._files.is_bundle else ""

    def _add(self, path: str, root: Any, target: str) -> None:
        if root.tag != XSD + "schema":
            raise SchemaRefused(
                "unknown-schema", f"{path}: the root element is {root.tag}; expected an XML Schema"
            )
        if target and not root.get("targetNamespace"):
            root = _in_namespace(root, target)
        document = XsdDocument(path, root)
        self._known.add((path, target))
        self._documents.append(document)
        self._waiting.append(document)

    def _follow(self, document: XsdDocument) -> None:
        for part in list(document.root.iterchildren(*_REFERENCES)):
            place = part.get("schemaLocation", "").strip()
            namespace = part.get("namespace", "")
            if part.tag == _IMPORT and namespace == XML_NAMESPACE and not place:
                continue
            if part.tag == _IMPORT and not place:
                self._nowhere.append((document.path, part))
                continue
            if part.tag == _IMPORT and namespace == XML_NAMESPACE and self._is_there(namespace):
                continue
            self._refer(document, part, place, namespace)

    def _refer(self, document: XsdDocument, part: Any, place: str, namespace: str) -> None:
        files, is_import = self._files, part.tag == _IMPORT
        where = f"{document.path}, line {part.sourceline}: {_DONE[part.tag]}"
        if is_import and namespace == XML_NAMESPACE:  # published far away, and known
            files = self._quiet()
        found = files.open(document.path, place, where, namespace=namespace if is_import else "")
        if found is None:
            return
        target = namespace if is_import else document.target
        if (found.path, target) not in self._known:
            root = parse_schema_document(found.data, found.path)
            own = root.get("targetNamespace", "")
            if own != target and (own or is_import):
                self._files.note(
                    f"{where} {place}, which is of {own or 'no namespace'}, not of "
                    f"{target or 'none'}"
                )
                return
            self._add(found.path, root, target)
        if is_import:
            part.attrib.pop("schemaLocation", None)
            return
        document.root.remove(part)
        if part.tag != _XSD_INCLUDE:
            document.changes.append(part)

    def _quiet(self) -> SchemaFiles:
        """The same files, that note nothing."""
        quiet = copy.copy(self._files)
        quiet.unread = []
        return quiet

    def _is_there(self, namespace: str) -> bool:
        return any(document.target == namespace for document in self._documents)

    def _find_namespaces(self) -> None:
        """What is imported without a place, in a catalog."""
        for path, part in self._nowhere:
            namespace = part.get("namespace", "")
            if not self._is_there(namespace):
                where = f"{path}, line {part.sourceline}: imports"
                found = self._files.open(path, "", where, namespace=namespace)
                if found is not None:
                    self._add(found.path, parse_schema_document(found.data, found.path), namespace)
        self._nowhere.clear()

    def _use_xml_attributes(self) -> None:
        imports = [
            part
            for document in self._documents
            for part in document.root.iterchildren(_IMPORT)
            if part.get("namespace") == XML_NAMESPACE
        ]
        for part in imports:
            part.attrib.pop("schemaLocation", None)
        if imports and not self._is_there(XML_NAMESPACE):
            self._documents.append(
                XsdDocument("xml.xsd", parse_schema_document(_XML_ATTRIBUTES), is_own=False)
            )

    # -- redefine and override

    def _carry_out(self, document: XsdDocument, change: Any) -> None:
        for part in list(change.iterchildren(etree.Element)):
            old = self._component(document, part)
            if part.tag == XSD + "annotation" or (old is None and change.tag == _OVERRIDE):
                continue  # what would override nothing is not there
            if old is None:
                self._files.note(
                    f"{document.path}, line {part.sourceline}: redefines {part.get('name')}, which "
                    f"is not in {change.get('schemaLocation')}"
                )
                continue
            if change.tag == _OVERRIDE:
                old.getparent().remove(old)
            else:
                self._redefined += 1
                _derive_from(part, old, f"{part.get('name')}..{self._redefined}")
            document.root.append(part)

    def _component(self, changing: XsdDocument, new: Any) -> Any:
        """The one of the same kind and name."""
        kinds = _TYPES if new.tag in _TYPES else (new.tag,)
        for document in self._documents:
            if document.target == changing.target:
                for part in document.root.iterchildren(*kinds):
                    if part.get("name") == new.get("name"):
                        return part
        return None


def _derive_from(new: Any, old: Any, name: str) -> None:
    """Give the old one another name, which the new one refers to where it means itself."""
    own = old.get("name")
    old.set("name", name)
    referring, tags = ("base", _DERIVATIONS) if new.tag in _TYPES else ("ref", (new.tag,))
    for part in new.iterdescendants(*tags):
        prefix, colon, local = part.get(referring, "").strip().rpartition(":")
        if local == own:
            part.set(referring, f"{prefix}{colon}{name}")


def _in_namespace(root: Any, target: str) -> Any:
    """The same document as one of a namespace, which its references to none are to."""
    namespaces = {None: target, **root.nsmap}
    changed = etree.Element(root.tag, dict(root.attrib), namespaces)
    changed.set("targetNamespace", target)
    changed.text = root.text  # lines stay what they are
    changed.extend(list(root))
    return changed


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# A RELAX NG schema of several documents as one: a reference becomes what it refers to.
#
# Sections 4.6 and 4.7 of the specification: ``externalRef`` becomes the pattern that it names,
# ``include`` a ``div`` of what it names, without what it defines anew.  What is not there stays a
# reference.  Documents are put together as text, as prefixes in values have to keep their meaning.


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


# -------------------------------------------------------------------------------------------------
# A schema as libxml2 compiles it, of one document or of several; it fetches nothing.
#
# An XML Schema of several documents is handed to libxml2 with one more document for each namespace,
# which includes all that are of it: libxml2 imports a namespace from one place only.


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


# -------------------------------------------------------------------------------------------------


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
