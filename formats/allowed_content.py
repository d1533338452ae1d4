"""What a schema lets stand where: elements in elements, attributes, listed values, text.

A view for the question "can this ever be there?", so it never says less than the schema does:
order and number are left out, alternatives are put together, and what cannot be known (any
content, what stands in another document) is an element of any name with anything in it.

::

    declarations   0 anything    1 order         2 item           one entry for each declaration;
    children       {0}           {2}             {}               a name may have several, as the
    attributes     any           {id}            {no}             local elements of an XSD have
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from formats.schema import Schema
from formats.schema_model import (
    ANYTHING,
    Content,
    Declaration,
    Elements,
    Name,
    Particle,
    SchemaModel,
    TextContent,
    Values,
)
from formats.schema_reader import read_schema_model


@dataclass(frozen=True, slots=True)
class Allowed:
    """What one declaration allows.

    ``children``: numbers of declarations.  ``attributes``: with the values that each can have.
    ``values``: those of the element's own text.
    """

    names: tuple[Name, ...]
    children: frozenset[int]
    attributes: Mapping[Name, Values]
    any_attribute: bool
    text: TextContent
    values: Values


@dataclass(frozen=True, slots=True)
class AllowedContent:
    """``roots``: numbers of the declarations that the root element can follow."""

    declarations: tuple[Allowed, ...]
    roots: frozenset[int]


@lru_cache(maxsize=64)
def read_allowed_content(schema: Schema) -> AllowedContent:
    """What a schema that ``read_schema`` has accepted allows, or more; every message, if it needs
    other documents."""
    model = read_schema_model(schema)
    if not model.is_whole:
        model = SchemaModel(roots=(ANYTHING,))
    declarations = tuple(map(_allowed, model.declarations))
    return AllowedContent(declarations, frozenset(model.roots))


def _allowed(declaration: Declaration) -> Allowed:
    contents = (declaration.content, *declaration.instead)
    texts = [content for content in contents if content.text is TextContent.ANY]
    return Allowed(
        declaration.names,
        frozenset(_numbers(content.particle for content in contents)),
        MappingProxyType(_attributes(contents)),
        any(content.any_attribute for content in contents),
        max(content.text for content in contents),
        _either(content.values for content in texts) if texts else None,
    )


def _numbers(particles: Iterable[Particle]) -> set[int]:
    """The declarations in particles, those that are shared looked at once."""
    found: set[int] = set()
    waiting, met = list(particles), set()
    while waiting:
        particle = waiting.pop()
        if isinstance(particle, Elements):
            found.update(particle.declarations)
        elif id(particle.parts) not in met:
            met.add(id(particle.parts))
            waiting += particle.parts
    return found


def _attributes(contents: Iterable[Content]) -> dict[Name, Values]:
    values: dict[Name, list[Values]] = {}
    for content in contents:
        for attribute in content.attributes:
            values.setdefault(attribute.name, []).append(attribute.values)
    return {name: _either(of_name) for name, of_name in values.items()}


def _either(values: Iterable[Values]) -> Values:
    """What is in one of some lists; None if one of them is not a list."""
    found: set[str] = set()
    for listed in values:
        if listed is None:
            return None
        found |= listed
    return frozenset(found)
