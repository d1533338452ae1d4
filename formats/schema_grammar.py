"""The Grammar of a schema: its elements with their children and attributes, read off the document.

As with ``schema_terms`` what the document says is read, not all that it means: a wrong expectation
costs a message some bytes.  What a schema refers to elsewhere stays unread.  The result depends on
nothing but the bytes of the schema.

=========  ======================================  ==================================
kind       children, required                      attributes, required
=========  ======================================  ==================================
DTD        names of the content model; not in a    ``#REQUIRED`` or ``#FIXED``
           choice, without ``?`` and ``*``
XSD        ``element`` within the type, its base   ``use="required"`` within the type,
           and groups; not in a ``choice``, no     its base and groups
           ``minOccurs="0"`` around
RELAX NG   ``element`` within the pattern and      ``attribute``, likewise
           what it refers to; not in ``choice``,
           ``optional``, ``zeroOrMore``
=========  ======================================  ==================================
"""

from __future__ import annotations

from collections.abc import Iterator
from pyexpat import model as expat_model
from typing import Any

from lxml import etree

from formats.dtd import read_declarations
from formats.grammar import ElementDeclaration, Grammar, Name, make_grammar
from formats.names import XML_NAMESPACE
from formats.schema import RELAXNG, XSD, Schema, parse_schema_document

_DEPTH_MAX = 24  # of groups, types and references within each other
_CHILDREN_MAX = 256  # of one element
# Parts looked at, as often as they are referred to; what comes after that is not expected.
_STEPS_MAX = 200_000

_Declarations = dict[Name, ElementDeclaration]


def read_grammar(schema: Schema) -> Grammar:
    """The grammar of a schema that ``read_schema`` has accepted."""
    if schema.kind == "dtd":
        return make_grammar(_DtdReader().read(schema.data))
    root = parse_schema_document(schema.data)
    reader = _XsdReader(root) if schema.kind == "xsd" else _RelaxNgReader(root)
    return make_grammar(reader.read())


# --- DTD ------------------------------------------------------------------------------------


class _DtdReader:
    """Names get their namespaces from ``xmlns`` attributes, where these say one thing only."""

    def __init__(self) -> None:
        self._models: dict[str, Any] = {}
        self._attributes: dict[str, dict[str, bool]] = {}
        self._namespaces: dict[str, set[str]] = {}

    def read(self, data: bytes) -> _Declarations:
        read_declarations(data, self._models.setdefault, self._add_attribute)
        declarations: _Declarations = {}
        for element, content in self._models.items():
            name = self._name(element, self._namespace(""))
            if name is None:
                continue
            declared = declarations.setdefault(name, ElementDeclaration())
            declared.text = content[0] in (expat_model.XML_CTYPE_MIXED, expat_model.XML_CTYPE_ANY)
            for child, required in _dtd_children(content, True, 0):
                child_name = self._name(child, self._namespace(""))
                if child_name is not None and len(declared.children) < _CHILDREN_MAX:
                    declared.children.append((child_name, required))
            for attribute, required in self._attributes.get(element, {}).items():
                attribute_name = self._name(attribute, "")
                if attribute_name is not None:
                    declared.add_attribute(attribute_name, required)
        return declarations

    def _add_attribute(
        self, element: str, name: str, _kind: str, default: str | None, required: int
    ) -> None:
        if name == "xmlns" or name.startswith("xmlns:"):
            self._namespaces.setdefault(name.partition(":")[2], set()).add(default or "")
        else:
            fixed = default is not None and bool(required)
            needed = fixed or (default is None and bool(required))
            self._attributes.setdefault(element, {}).setdefault(name, needed)

    def _namespace(self, prefix: str) -> str | None:
        if prefix == "xml":
            return XML_NAMESPACE
        found = self._namespaces.get(prefix, set() if prefix else {""})
        return next(iter(found)) if len(found) == 1 else None

    def _name(self, written: str, unprefixed: str | None) -> Name | None:
        prefix, colon, local = written.rpartition(":")
        namespace = self._namespace(prefix) if colon else unprefixed
        return None if namespace is None or (colon and not namespace) else (namespace, local)


def _dtd_children(content: Any, required: bool, depth: int) -> Iterator[tuple[str, bool]]:
    kind, quantifier, name, parts = content
    required = required and quantifier in (
        expat_model.XML_CQUANT_NONE,
        expat_model.XML_CQUANT_PLUS,
    )
    if name is not None:
        yield name, required
    elif depth < _DEPTH_MAX:
        in_sequence = kind == expat_model.XML_CTYPE_SEQ
        for part in parts:
            yield from _dtd_children(part, required and in_sequence, depth + 1)


# --- XML Schema -----------------------------------------------------------------------------

_XSD_PARTICLES = {XSD + name for name in ("sequence", "choice", "all", "group", "any")}
_XSD_DERIVED = {
    XSD + name
    for name in ("complexContent", "simpleContent", "extension", "restriction", "attributeGroup")
}


class _XsdReader:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = 0
        self._target = root.get("targetNamespace", "")
        self._qualified = {
            "element": root.get("elementFormDefault") == "qualified",
            "attribute": root.get("attributeFormDefault") == "qualified",
        }
        self._global: dict[tuple[str, str], Any] = {}
        for child in root.iterchildren(etree.Element):
            self._global.setdefault((child.tag, child.get("name", "")), child)

    def read(self) -> _Declarations:
        declarations: _Declarations = {}
        for element in self._root.iter(XSD + "element"):
            if element.get("name"):
                name = self._name(element, "element")
                if name not in declarations:
                    declarations[name] = declared = ElementDeclaration()
                    self._read_element(element, declared)
        return declarations

    def _read_element(self, element: Any, declared: ElementDeclaration) -> None:
        kind = element.find(XSD + "complexType")
        if kind is None:
            kind = self._find("complexType", element.get("type", ""))
        if kind is None:
            declared.text = True
            return
        self._read_type(kind, declared, 0)

    def _read_type(self, node: Any, declared: ElementDeclaration, depth: int) -> None:
        self._steps += 1
        if depth > _DEPTH_MAX or self._steps > _STEPS_MAX:
            return
        declared.text = declared.text or node.get("mixed") == "true"
        for child in node.iterchildren(etree.Element):
            if child.tag in _XSD_DERIVED:
                declared.text = declared.text or child.tag == XSD + "simpleContent"
                base = self._find("complexType", child.get("base", ""))
                if base is not None:
                    self._read_type(base, declared, depth + 1)
                group = self._find("attributeGroup", child.get("ref", ""))
                self._read_type(child if group is None else group, declared, depth + 1)
            elif child.tag in _XSD_PARTICLES:
                self._read_particle(child, declared, True, depth + 1)
            elif child.tag == XSD + "attribute" and child.get("use") != "prohibited":
                name = self._name(child, "attribute")
                declared.add_attribute(name, child.get("use") == "required")

    def _read_particle(
        self, node: Any, declared: ElementDeclaration, required: bool, depth: int
    ) -> None:
        self._steps += 1
        if depth > _DEPTH_MAX or self._steps > _STEPS_MAX:
            return
        if len(declared.children) >= _CHILDREN_MAX:
            return
        required = required and node.get("minOccurs", "1") != "0"
        if node.tag == XSD + "element":
            declared.children.append((self._name(node, "element"), required))
        elif node.tag == XSD + "group" and node.get("ref"):
            group = self._find("group", node.get("ref"))
            if group is not None:
                self._read_particle(group, declared, required, depth + 1)
        else:
            required = required and node.tag != XSD + "choice"
            for child in node.iterchildren(*_XSD_PARTICLES, XSD + "element"):
                self._read_particle(child, declared, required, depth + 1)

    def _find(self, kind: str, name: str) -> Any:
        return self._global.get((XSD + kind, name.rpartition(":")[2])) if name else None

    def _name(self, node: Any, kind: str) -> Name:
        reference = node.get("ref")
        if reference:
            prefix, _, local = reference.rpartition(":")
            if prefix == "xml":
                return XML_NAMESPACE, local
            return node.nsmap.get(prefix or None, "" if prefix else self._target), local
        is_global = node.getparent() is self._root
        form = node.get("form")
        qualified = is_global or form == "qualified" or (form is None and self._qualified[kind])
        return self._target if qualified else "", node.get("name", "")


# --- RELAX NG -------------------------------------------------------------------------------

_RELAXNG_MAYBE = {RELAXNG + name for name in ("choice", "optional", "zeroOrMore")}
_RELAXNG_TEXT = {RELAXNG + name for name in ("text", "data", "value", "list", "mixed")}


class _RelaxNgReader:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = 0
        self._defines: dict[str, list[Any]] = {}
        for define in root.iter(RELAXNG + "define"):
            self._defines.setdefault(define.get("name", ""), []).append(define)

    def read(self) -> _Declarations:
        declarations: _Declarations = {}
        for element in self._root.iter(RELAXNG + "element"):
            name = _relaxng_name(element)
            if name is not None and name not in declarations:
                declarations[name] = declared = ElementDeclaration()
                self._read(element, declared, True, 0)
        return declarations

    def _read(self, node: Any, declared: ElementDeclaration, required: bool, depth: int) -> None:
        """What stands in a pattern."""
        self._steps += 1
        if depth > _DEPTH_MAX or self._steps > _STEPS_MAX:
            return
        for child in node.iterchildren(etree.Element):
            if child.tag in _RELAXNG_TEXT:
                declared.text = True
            name = _relaxng_name(child)
            if child.tag == RELAXNG + "element":
                if name is not None and len(declared.children) < _CHILDREN_MAX:
                    declared.children.append((name, required))
            elif child.tag == RELAXNG + "attribute":
                if name is not None:
                    declared.add_attribute(name, required)
            elif child.tag == RELAXNG + "ref":
                for define in self._defines.get(child.get("name", ""), ())[:8]:
                    if len(declared.children) < _CHILDREN_MAX:
                        self._read(define, declared, required, depth + 1)
            elif child.tag.startswith(RELAXNG):
                self._read(child, declared, required and child.tag not in _RELAXNG_MAYBE, depth + 1)


def _relaxng_name(node: Any) -> Name | None:
    """The name of an element or attribute pattern; None where it may have several."""
    inside = node.find(RELAXNG + "name")
    written = node.get("name") or (inside.text if inside is not None else None)
    if not written:
        return None
    prefix, _, local = written.strip().rpartition(":")
    if prefix:
        return (XML_NAMESPACE if prefix == "xml" else node.nsmap.get(prefix, "")), local
    if node.tag == RELAXNG + "attribute" and inside is None:
        return node.get("ns", ""), local
    at = inside if inside is not None else node
    while at is not None:
        if at.get("ns") is not None:
            return at.get("ns"), local
        at = at.getparent()
    return "", local
