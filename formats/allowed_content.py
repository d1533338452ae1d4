"""What a schema lets stand where: elements in elements, attributes, listed values, text.

A view for the question "can this ever be there?", so it never says less than the schema does:
order and number are left out, alternatives are put together, and what cannot be known (any
content, what stands in another document) is an element of any name with anything in it.

::

    declarations   0 anything    1 order         2 item           one entry for each declaration;
    children       {0}           {2}             {}               a name may have several, as the
    attributes     any           {id}            {no}             local elements of an XSD have

An element of a valid message follows a declaration that has its name and is among the children of
the one that its parent follows; the root element follows one of ``roots``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

# In a Name: any namespace, any local name.
ANY = "*"

# The values that a text can have, white space collapsed; None where there is no list of them.
Values: TypeAlias = frozenset[str] | None


class Name(NamedTuple):
    """A name, or all names of a namespace, or all with a local name: either part may be ANY."""

    namespace: str
    local: str

    def meets(self, namespace: str, local: str) -> bool:
        """Whether some name is meant by both; these parts may be ANY, too."""
        return (ANY in (namespace, self.namespace) or namespace == self.namespace) and (
            ANY in (local, self.local) or local == self.local
        )


class TextContent(IntEnum):
    """What text can stand directly in an element."""

    NONE = 0
    WHITE_SPACE = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class Declaration:
    """One element declaration, or several taken together.

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

    declarations: tuple[Declaration, ...]
    roots: frozenset[int]


ANYTHING = 0  # the number of the declaration that allows everything


@dataclass(slots=True)
class Draft:
    """A declaration in the making; what is added only ever allows more."""

    names: tuple[Name, ...]
    children: set[int] = field(default_factory=set)
    attributes: dict[Name, Values] = field(default_factory=dict)
    any_attribute: bool = False
    text: TextContent = TextContent.NONE
    values: Values = None

    def add_attribute(self, name: Name, values: Values) -> None:
        known = self.attributes.get(name, values)
        self.attributes[name] = None if known is None or values is None else known | values

    def allow_everything(self) -> None:
        self.children.add(ANYTHING)
        self.any_attribute = True
        self.text = TextContent.ANY
        self.values = None


class AllowedContentBuilder:
    """Takes declarations by number, so that they can refer to each other before they are made."""

    def __init__(self) -> None:
        anything = Draft((Name(ANY, ANY),))
        anything.allow_everything()
        self._drafts = [anything]

    def new(self, names: Iterable[Name]) -> tuple[int, Draft]:
        self._drafts.append(Draft(tuple(names)))
        return len(self._drafts) - 1, self._drafts[-1]

    def finish(self, roots: Iterable[int]) -> AllowedContent:
        declarations = tuple(
            Declaration(
                draft.names,
                frozenset(draft.children),
                MappingProxyType(draft.attributes),
                draft.any_attribute,
                draft.text,
                draft.values,
            )
            for draft in self._drafts
        )
        return AllowedContent(declarations, frozenset(roots))


def all_allowed() -> AllowedContent:
    """What allows every message."""
    return AllowedContentBuilder().finish((ANYTHING,))


def collapsed(text: str) -> str:
    """White space trimmed and joined, as listed values are compared."""
    return " ".join(text.split())
