"""The text of a Schematron schema -> what it says, with everything that is abstract made concrete.

``include``s and ``extends`` are replaced by what they name, abstract patterns by their instances,
and of phases the patterns that are active are left.  Entities are those of the file itself, as in
messages; whatever else is read is asked of ``read``, which the caller bounds.  What is within
expressions is as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from typing import TypeAlias

import lxml.etree

from formats.errors import MessageRefused
from formats.text import parse_text
from yfilter.errors import SchematronRefused
from yfilter.schematron.expressions import bare

Element: TypeAlias = lxml.etree._Element

NAMESPACES = ("http://purl.oclc.org/dsdl/schematron", "http://www.ascc.net/xml/schematron")
XSLT = "http://www.w3.org/1999/XSL/Transform"
BINDINGS = ("xslt", "xpath", "xpath1", "xslt2", "xpath2", "xslt3", "xpath3", "xpath31")
OF_XPATH_1 = ("xslt", "xpath", "xpath1")  # of which keys are strings
FILES_MAX = 256
BYTES_MAX = 16 * 1024 * 1024

_FILE = "{urn:onyx:schematron}file"
_ALL, _DEFAULT = "#ALL", "#DEFAULT"
_DOCUMENT = re.compile(
    r"""(?:"[^"]*"|'[^']*')|(?<![\w.\-:$@])(?:fn:)?doc(?:ument)?\s*\(\s*("[^"]*"|'[^']*')\s*\)"""
)
_SUBSTITUTED = ("context", "test", "value", "select", "path", "subject", "match", "use")

Read: TypeAlias = Callable[[str], bytes]
"""What is in the file of that name, seen from the schema's; SchematronRefused if it may not be
read."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``checks`` are its ``assert`` and ``report`` elements, ``lets`` its variables."""

    element: Element
    context: str
    lets: tuple[Element, ...]
    checks: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    id: str
    lets: tuple[Element, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """``globals``: variables of the schema, the phase and its stylesheet parts; ``functions`` and
    ``keys``: of XSLT, by name as written; ``notes``: diagnostics and properties, by id."""

    binding: str
    namespaces: Mapping[str, str]
    globals: tuple[Element, ...]
    functions: Mapping[str, tuple[Element, ...]]
    keys: Mapping[str, tuple[Element, ...]]
    notes: Mapping[str, Element]
    patterns: tuple[Pattern, ...]


def read_schema(
    text: bytes, file: str, phase: str | None, read: Read, documents: Mapping[str, bytes]
) -> Schema:
    """The schema in ``text``; ``phase`` None: its default phase, or all; ``documents`` by the names
    by which its expressions may read them.  SchematronRefused."""
    root = _Includes(read).whole(text, file)
    if local(root) != "schema":
        raise refusal(root, f"this is <{root.tag}>; expected <schema> of Schematron")
    _write_documents(root, documents)
    binding = root.get("queryBinding", "xslt").lower()
    if binding not in BINDINGS:
        expected = ", ".join(BINDINGS)
        raise refusal(root, f"the query binding is {binding!r}; expected one of {expected}")
    chosen, active = _active(root, phase)
    functions = _functions(root)
    return Schema(
        binding,
        _namespaces(root, (one for each in functions.values() for one in each)),
        (*_lets(root), *_lets(chosen)),
        functions,
        _keys(root),
        {each.get("id", ""): each for each in _all(root, "diagnostic", "property")},
        tuple(
            Pattern(pattern.get("id", ""), _lets(pattern), tuple(_rules(root, pattern)))
            for pattern in _patterns(root)
            if active is None or pattern.get("id") in active
        ),
    )


def _write_documents(root: Element, documents: Mapping[str, bytes]) -> None:
    """``doc('name')`` and ``document('name')`` of a document that is given as a variable with its
    content; the name is seen from the file that the expression is in."""
    variables: dict[str, str] = {}
    for element in root.iter(lxml.etree.Element):

        def written(found: re.Match[str], element: Element = element) -> str:
            name = found[1] and normpath(join(dirname(place(element)[0]), found[1][1:-1]))
            if not name or name not in documents:
                return found[0]
            return f"${variables.setdefault(name, f'_document{len(variables) + 1}')}"

        for attribute in _SUBSTITUTED:
            if (expression := element.get(attribute)) is not None:
                element.set(attribute, _DOCUMENT.sub(written, expression))
    for name, variable in variables.items():
        let = lxml.etree.Element(root.tag.replace("}schema", "}let"), name=variable)
        let.append(content := _parsed(documents[name], name))
        if any("}" in attribute for each in content.iter() for attribute in each.attrib):
            raise SchematronRefused(
                "an attribute with a prefix; expected none in a code list", name
            )
        root.insert(0, let)


def _parsed(text: bytes, file: str) -> Element:
    """The root element, entities that the text declares itself expanded."""
    try:
        root = _tree(text, entities=False)
        if next(root.iter(lxml.etree.Entity), None) is not None:
            parse_text(text)  # which holds what entities expand to against its bounds
            root = _tree(text, entities=True)
    except MessageRefused as refused:
        raise SchematronRefused(refused.reason, file, refused.line) from None
    except lxml.etree.XMLSyntaxError as error:
        raise SchematronRefused(f"this is no XML: {error}", file) from None
    return root


def _tree(text: bytes, *, entities: bool) -> Element:
    parser = lxml.etree.XMLParser(
        resolve_entities="internal" if entities else False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    return lxml.etree.fromstring(text, parser)


def local(element: Element) -> str:
    """The name of an element of Schematron; "" for others."""
    name = lxml.etree.QName(element)
    return name.localname if name.namespace in NAMESPACES else ""


def place(element: Element) -> tuple[str, int]:
    """The file and the line that an element is from."""
    for each in (element, *element.iterancestors()):
        if file := each.get(_FILE):
            return file, element.sourceline or 0
    return "", element.sourceline or 0


def refusal(element: Element, reason: str) -> SchematronRefused:
    return SchematronRefused(reason, *place(element))


class _Includes:
    """Reads a schema with all that it includes, within bounds."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._files = self._bytes = 0

    def whole(self, text: bytes, file: str, above: tuple[str, ...] = ()) -> Element:
        self._files += 1
        self._bytes += len(text)
        if self._files > FILES_MAX or self._bytes > BYTES_MAX:
            bounds = f"{FILES_MAX} files and {BYTES_MAX:,} bytes"
            raise SchematronRefused(f"this is more than {bounds} together", file)
        root = _parsed(text, file)
        root.set(_FILE, file)
        above = (*above, file)
        for element in list(root.iter(lxml.etree.Element)):
            name = local(element)
            if name == "include" or (name == "extends" and element.get("href")):
                found = self._other(element, above)
                _replace(element, [found] if name == "include" else list(found))
            elif element.tag in (f"{{{XSLT}}}include", f"{{{XSLT}}}import"):
                _replace(element, list(self._other(element, above)))
        return root

    def _other(self, element: Element, above: tuple[str, ...]) -> Element:
        href, _, fragment = element.get("href", "").partition("#")
        href = normpath(join(dirname(above[-1]), href))
        if href in above:
            raise refusal(element, f"{href} includes itself")
        try:
            other = self.whole(self._read(href), href, above)
        except SchematronRefused as refused:
            raise refusal(element, f"{href} cannot be included: {refused}") from None
        if not fragment:
            return other
        for each in other.iter(lxml.etree.Element):
            if fragment in (each.get("id"), each.get("{http://www.w3.org/XML/1998/namespace}id")):
                each.set(_FILE, href)
                return each
        raise refusal(element, f"nothing in {href} has the id {fragment!r}")


def _replace(element: Element, others: Iterable[Element]) -> None:
    parent = element.getparent()
    if parent is None:
        raise refusal(element, "a schema cannot be an include")
    file = place(element)[0]
    for other in others:
        if other.get(_FILE) is None:
            other.set(_FILE, place(other)[0] or file)
        element.addprevious(other)
    parent.remove(element)


def _active(root: Element, phase: str | None) -> tuple[Element | None, set[str] | None]:
    """The phase, and the ids of its patterns; None for all."""
    name = phase or _DEFAULT
    if name == _DEFAULT:
        name = root.get("defaultPhase", _ALL)
    if name == _ALL:
        return None, None
    phases = {each.get("id", ""): each for each in _all(root, "phase")}
    if name not in phases:
        known = ", ".join(sorted(phases)) or "none"
        raise refusal(root, f"there is no phase {name!r}; expected one of: {known}")
    return phases[name], {each.get("pattern", "") for each in _all(phases[name], "active")}


def _patterns(root: Element) -> Iterator[Element]:
    patterns = list(_all(root, "pattern"))
    abstract = {each.get("id", ""): each for each in patterns if each.get("abstract") == "true"}
    for pattern in patterns:
        if pattern.get("documents"):
            raise refusal(pattern, "a pattern of other documents; a profile sees one message")
        made_of = pattern.get("is-a")
        if made_of is not None:
            if made_of not in abstract:
                raise refusal(pattern, f"there is no abstract pattern {made_of!r}")
            yield _instance(abstract[made_of], pattern)
        elif pattern.get("abstract") != "true":
            yield pattern


def _instance(abstract: Element, pattern: Element) -> Element:
    """The abstract pattern with each ``$parameter`` replaced, longest names first."""
    made = deepcopy(abstract)
    made.set(_FILE, place(abstract)[0])
    values = {each.get("name", ""): each.get("value", "") for each in _all(abstract, "param")}
    values |= {each.get("name", ""): each.get("value", "") for each in _all(pattern, "param")}
    made.set("id", pattern.get("id", ""))
    names = sorted(map(re.escape, values), key=len, reverse=True)
    if names:
        parameter = re.compile(rf"\$({'|'.join(names)})(?![\w.-])")
        for element in made.iter(lxml.etree.Element):
            for name in _SUBSTITUTED:
                if name in element.attrib:
                    element.set(name, parameter.sub(lambda m: values[m[1]], element.get(name)))
    for let in reversed(_lets(pattern)):
        made.insert(0, deepcopy(let))
    return made


def _rules(root: Element, pattern: Element) -> Iterator[Rule]:
    abstract = {
        each.get("id", ""): each
        for parent in (root, pattern)
        for each in _all(parent, "rule")
        if each.get("abstract") == "true"
    }
    for rule in _all(pattern, "rule"):
        if rule.get("abstract") == "true":
            continue
        context = rule.get("context", "").strip()
        if not bare(context).strip():
            raise refusal(rule, "a rule without a context")
        parts = list(_extended(rule, abstract, ()))
        yield Rule(
            rule,
            context,
            tuple(each for each in parts if _is_let(each)),
            tuple(each for each in parts if local(each) in ("assert", "report")),
        )


def _extended(
    rule: Element, abstract: Mapping[str, Element], above: tuple[Element, ...]
) -> Iterator[Element]:
    """What is in a rule, and in those that it extends, in their place."""
    for each in rule:
        name = each.get("rule", "")
        if local(each) != "extends":
            yield each
        elif name not in abstract or abstract[name] in above:
            raise refusal(each, f"there is no abstract rule {name!r} to extend")
        else:
            yield from _extended(abstract[name], abstract, (*above, abstract[name]))


def _all(parent: Element, *names: str) -> Iterator[Element]:
    for each in parent.iter(lxml.etree.Element):
        if local(each) in names:
            yield each


def _lets(parent: Element | None) -> tuple[Element, ...]:
    return tuple(each for each in parent if _is_let(each)) if parent is not None else ()


def _is_let(element: Element) -> bool:
    return local(element) == "let" or element.tag in (f"{{{XSLT}}}variable", f"{{{XSLT}}}param")


def _namespaces(root: Element, functions: Iterable[Element]) -> dict[str, str]:
    """Those of ``ns``; what they leave open is what the document itself declares."""
    found = {each.get("prefix", ""): each.get("uri", "") for each in _all(root, "ns")}
    found.setdefault("xsd", "http://www.w3.org/2001/XMLSchema")
    for each in (root, *functions):
        found = {prefix: uri for prefix, uri in each.nsmap.items() if prefix} | found
    return found


def _functions(root: Element) -> dict[str, tuple[Element, ...]]:
    """By name; of several with as many parameters the last one, as of imported stylesheets."""
    found: dict[str, dict[int, Element]] = {}
    for each in root.iter(f"{{{XSLT}}}function"):
        arity = sum(child.tag == f"{{{XSLT}}}param" for child in each)
        found.setdefault(each.get("name", ""), {})[arity] = each
    return {name: tuple(each.values()) for name, each in found.items()}


def _keys(root: Element) -> dict[str, tuple[Element, ...]]:
    found: dict[str, tuple[Element, ...]] = {}
    for each in root.iter(f"{{{XSLT}}}key"):
        name = each.get("name", "")
        found[name] = (*found.get(name, ()), each)
    return found
