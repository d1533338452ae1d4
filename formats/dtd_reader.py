"""Reads the SchemaModel of a DTD.

A DTD knows prefixes, not namespaces.  A message may declare what it likes where the DTD lets it,
so the namespace of a name is open then; expected is what ``xmlns`` attributes say, if that is one
thing only.
"""

from __future__ import annotations

from math import inf
from pyexpat import model as expat_model
from typing import Any

from formats.dtd import read_declarations
from formats.names import XML_NAMESPACE
from formats.schema_files import SchemaFiles
from formats.schema_model import (
    ANY,
    ANY_ELEMENTS,
    DEPTH_MAX,
    Attribute,
    Content,
    Declaration,
    Elements,
    Name,
    Particle,
    SchemaModel,
    TextContent,
    Values,
    collapsed,
    group,
    repeated,
)

_OCCURRENCES = {
    expat_model.XML_CQUANT_NONE: (1, 1.0),
    expat_model.XML_CQUANT_OPT: (0, 1.0),
    expat_model.XML_CQUANT_REP: (0, inf),
    expat_model.XML_CQUANT_PLUS: (1, inf),
}


def read_dtd(files: SchemaFiles) -> SchemaModel:
    """The model of a DTD that ``read_schema`` has accepted."""
    return _DtdReader(files).read(files.is_whole)


class _DtdReader:
    def __init__(self, files: SchemaFiles) -> None:
        self._model = SchemaModel()
        self._contents: dict[str, Any] = {}
        # By element and name as written: what is declared first is binding.
        self._attributes: dict[str, dict[str, tuple[str, str | None, bool]]] = {}
        self._namespaces: dict[str, set[str]] = {}  # by prefix, as xmlns attributes say
        self._numbers: dict[str, int] = {}
        read_declarations(files, self._contents.setdefault, self._add_attribute)

    def read(self, is_whole: bool) -> SchemaModel:
        model = self._model
        for name in self._contents:
            declaration = Declaration((self._name(name),), self._expected(name, ""))
            self._numbers[name] = model.add(declaration)
        model.roots = tuple(self._numbers.values())
        met: set[str] = set()
        for name, content in self._contents.items():
            model.declarations[self._numbers[name]].content = self._content(name, content)
            met.update(child for child in _names_in(content) if child != name)
        outermost = (self._numbers[name] for name in self._contents if name not in met)
        model.outermost = tuple(outermost) or model.roots
        model.is_whole = is_whole
        return model

    def _add_attribute(
        self, element: str, name: str, kind: str, default: str | None, required: int
    ) -> None:
        if name == "xmlns" or name.startswith("xmlns:"):
            self._namespaces.setdefault(name.partition(":")[2], set()).add(default or "")
        else:
            declared = (kind, default, bool(required))
            self._attributes.setdefault(element, {}).setdefault(name, declared)

    def _content(self, element: str, content: Any) -> Content:
        attributes = tuple(
            Attribute(
                self._attribute_name(name),
                self._expected(name, None),
                required,  # or fixed
                _values(kind, default, required),
            )
            for name, (kind, default, required) in self._attributes.get(element, {}).items()
        )
        if content[0] == expat_model.XML_CTYPE_ANY:
            declared = Elements(self._model.roots, 0, inf)
            return Content(declared, attributes, text=TextContent.ANY)
        text = TextContent.WHITE_SPACE
        if content[0] == expat_model.XML_CTYPE_EMPTY:
            text = TextContent.NONE
        elif content[0] == expat_model.XML_CTYPE_MIXED:
            text = TextContent.ANY
        return Content(self._particle(content, 0), attributes, text=text)

    def _particle(self, content: Any, depth: int) -> Particle:
        kind, quantifier, name, parts = content
        if depth > DEPTH_MAX:
            return ANY_ELEMENTS
        if name is None:
            is_choice = kind in (expat_model.XML_CTYPE_CHOICE, expat_model.XML_CTYPE_MIXED)
            inner = (self._particle(part, depth + 1) for part in parts)
            found = group(inner, is_choice=is_choice)
        else:
            found = Elements((self._number(name),))
        return repeated(found, *_OCCURRENCES[quantifier])

    def _number(self, name: str) -> int:
        """Of a declaration; what is not declared cannot be in a valid message."""
        if name not in self._numbers:
            never = Declaration((self._name(name),), self._expected(name, ""), Content())
            self._numbers[name] = self._model.add(never)
        return self._numbers[name]

    # -- names

    def _name(self, written: str) -> Name:
        prefix, _, local = written.rpartition(":")
        return Name(ANY if prefix or self._namespaces else "", local)

    def _attribute_name(self, written: str) -> Name:
        prefix, _, local = written.rpartition(":")
        return Name((XML_NAMESPACE if prefix == "xml" else ANY) if prefix else "", local)

    def _expected(self, written: str, default_prefix: str | None) -> Name | None:
        """``default_prefix``: the one whose namespace a name without one is in; None for none."""
        prefix, colon, local = written.rpartition(":")
        if not colon and default_prefix is None:
            return Name("", local)
        if prefix == "xml":
            return Name(XML_NAMESPACE, local)
        said = self._namespaces.get(prefix, set() if prefix else {""})
        namespace = next(iter(said)) if len(said) == 1 else None
        return None if namespace is None or (colon and not namespace) else Name(namespace, local)


def _values(kind: str, default: str | None, required: bool) -> Values:
    listed = kind.removeprefix("NOTATION")
    if listed.startswith("("):
        return frozenset(listed[1:-1].split("|"))
    return frozenset((collapsed(default),)) if required and default is not None else None


def _names_in(content: Any) -> list[str]:
    """The names in a content model of expat: (type, quantifier, name, parts)."""
    names, models = [], [content]
    while models:
        _, _, name, parts = models.pop()
        names += [name] if name else []
        models += parts
    return names
