"""SchemaModel: what a schema declares, whatever language it is written in.

Read once by ``dtd_reader``, ``xsd_reader`` or ``relaxng_reader``; three views are taken of it:

==================  =======================================================  ====================
view                question                                                 asked by
==================  =======================================================  ====================
``schema_grammar``  what is to be expected next?  (may be wrong)             the wire forms
``content_model``   how often can it be there at the most?                   planning
``allowed_content`` can it ever be there?                                    warnings
==================  =======================================================  ====================

An element of a valid message follows a declaration that has its name and stands in the content of
the one that its parent follows; the root element follows one of ``roots``.  What cannot be known
(any content, what stands in another document) is the declaration ANYTHING.

::

    <!ELEMENT order (customer?, item*)>     1 order      [2 customer 0..1, 3 item 0..inf]
    <!ATTLIST order id CDATA #REQUIRED>                  id, required

Content is shared: what a schema names once is one particle, however often it is referred to, so
that a view should remember what it knows of a group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import inf
from typing import NamedTuple, TypeAlias

# In a Name: any namespace, any local name.
ANY = "*"
# Groups within groups, and references within each other; what is deeper is not known.
DEPTH_MAX = 100

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
class Elements:
    """One element that follows one of some declarations, the likeliest first.

    ``least`` and ``most`` of a particle: how often it comes in a row.
    """

    declarations: tuple[int, ...]
    least: int = 1
    most: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Particles one after the other (or in any order), or one of them; ``depth`` below it."""

    parts: tuple[Particle, ...] = ()
    is_choice: bool = False
    least: int = 1
    most: float = 1.0
    depth: int = 1


Particle: TypeAlias = Elements | Group

ANYTHING = 0  # the number of the declaration that allows everything
NOTHING = Group()
ANY_ELEMENTS = Elements((ANYTHING,), 0, inf)


def group(parts: Iterable[Particle], *, is_choice: bool = False) -> Particle:
    """The particle of some parts, as plain as it can be said."""
    kept = tuple(part for part in parts if part is not NOTHING or is_choice)
    if len(kept) <= 1:
        return kept[0] if kept else NOTHING
    depth = 1 + max(part.depth if isinstance(part, Group) else 0 for part in kept)
    return Group(kept, is_choice, depth=depth) if depth <= DEPTH_MAX else ANY_ELEMENTS


def repeated(particle: Particle, least: int, most: float) -> Particle:
    """A particle several times over."""
    if most == 0 or particle is NOTHING:
        return NOTHING
    if (least, most) == (1, 1.0):
        return particle
    return replace(particle, least=particle.least * least, most=particle.most * most)


@dataclass(frozen=True, slots=True)
class Attribute:
    """``expected``: the name that it will have, None where that is open."""

    name: Name
    expected: Name | None
    required: bool = False
    values: Values = None


@dataclass(frozen=True, slots=True)
class Content:
    """What stands in an element; ``values`` are those of its own text."""

    particle: Particle = NOTHING
    attributes: tuple[Attribute, ...] = ()
    any_attribute: bool = False
    text: TextContent = TextContent.NONE
    values: Values = None


ANY_CONTENT = Content(ANY_ELEMENTS, any_attribute=True, text=TextContent.ANY)


@dataclass(slots=True)
class Declaration:
    """One element declaration.

    ``names`` that such an element can have; ``expected``, the one that it will have, or None.
    ``instead``: what ``xsi:type`` and the like can put in the place of its content.
    """

    names: tuple[Name, ...]
    expected: Name | None = None
    content: Content = ANY_CONTENT
    instead: tuple[Content, ...] = ()


def _anything() -> list[Declaration]:
    return [Declaration((Name(ANY, ANY),))]


@dataclass(slots=True)
class SchemaModel:
    """``outermost``: the roots that one expects.  ``is_whole``: it refers to no other document."""

    declarations: list[Declaration] = field(default_factory=_anything)
    roots: tuple[int, ...] = ()
    outermost: tuple[int, ...] = ()
    is_whole: bool = True

    def add(self, declaration: Declaration) -> int:
        """Its number."""
        self.declarations.append(declaration)
        return len(self.declarations) - 1


def collapsed(text: str) -> str:
    """White space trimmed and joined, as listed values are compared."""
    return " ".join(text.split())
