"""The documents of an XML Schema, each of them changed so that it can be read beside the others.

::

    include            gone: the document is in the list; one without a target namespace is made
                       one of the namespace that includes it
    redefine           gone: what is redefined has another name, by which the new definition is
                       derived from it
    override           gone: what is overridden is gone, the new definition in its place
    import             of a namespace that is there: kept, without its place

What is not there stays as it is written, and ``SchemaFiles.unread`` says it.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from formats.errors import SchemaRefused
from formats.names import XML_NAMESPACE
from formats.schema_document import XSD, parse_schema_document
from formats.schema_files import SchemaFiles

_INCLUDE, _IMPORT = XSD + "include", XSD + "import"
_REDEFINE, _OVERRIDE = XSD + "redefine", XSD + "override"
_REFERENCES = (_INCLUDE, _IMPORT, _REDEFINE, _OVERRIDE)
_DONE = {_INCLUDE: "includes", _IMPORT: "imports", _REDEFINE: "redefines", _OVERRIDE: "overrides"}
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
        if part.tag != _INCLUDE:
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
