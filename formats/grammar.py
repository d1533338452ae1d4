"""Grammar: what a schema lets one expect of a message, so that it need not be sent.

The paper's future work on parent-child relations (section 4.3.2): which child comes first in an
element, what follows an element, which attributes it has.  An expectation, not a rule: a message
may do otherwise and costs some bytes more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

# -------------------------------------------------------------------------------------------------
# Events and contexts of the binary forms, as numbers (docs/formats.md).
#
# Events are the steps of a message in document order.  A context is the place between two steps:
# what was started or ended last, and whether text came since then::
#
#     <a>t<b/></a>    events     start a   text    start b   end          end     end
#                     context  0       of a    of a+text   of b   after b    after a


# Events; from ELEMENT on they are the start of the element with the name number event - ELEMENT.
END = 0
TEXT = 1
COMMENT = 2
INSTRUCTION = 3
ATTRIBUTES = 4  # which attributes the next element has, where that is not what is expected
DECLARATION = 5  # a namespace declaration of the next element
ELEMENT = 6

# Contexts: 0 is before the root element; of a name number they begin at 4 * (number + 1).
# within these four: of the name, or after it; in both, with text.
AFTER, WITH_TEXT = 2, 1

PROBES_MAX = 8  # looks into a hash table of values, for a writer to be quick whatever comes
NUMBER_MAX = 0x7FFFFFFF  # on the wire


# -------------------------------------------------------------------------------------------------


NAMES_MAX = 4_096  # the names of elements first, in order; what is left out is sent

Name: TypeAlias = tuple[str, str]  # namespace, local


@dataclass(slots=True)
class ElementDeclaration:
    """What a schema says of the elements of a name: in its order, with whether it must be there."""

    children: list[tuple[Name, bool]] = field(default_factory=list)
    attributes: dict[Name, bool] = field(default_factory=dict)
    text: bool = False

    def add_attribute(self, name: Name, required: bool) -> None:
        """What is said first counts."""
        self.attributes.setdefault(name, required)


@dataclass(frozen=True, slots=True)
class Grammar:
    """Names numbered from 0, elements first, and an expectation for each.

    attributes  [name] the attributes of such an element, as name numbers
    first       [name] the event after its start
    following   [name] the event after its end
    root        the first event of a message
    """

    names: tuple[Name, ...] = ()
    attributes: tuple[tuple[int, ...], ...] = ()
    first: tuple[int, ...] = ()
    following: tuple[int, ...] = ()
    root: int = ELEMENT

    def serialized(self) -> Iterator[bytes]:
        """What goes into the version of a dictionary."""

        def number(value: int) -> bytes:
            return value.to_bytes(4, "little")

        yield number(len(self.names))
        for name in self.names:
            for part in name:
                encoded = part.encode()
                yield number(len(encoded)) + encoded
        for attributes in self.attributes:
            yield number(len(attributes)) + b"".join(map(number, attributes))
        yield from map(number, (*self.first, *self.following, self.root))


EMPTY_GRAMMAR = Grammar()


def make_grammar(declarations: dict[Name, ElementDeclaration]) -> Grammar:
    """The grammar of declared elements; depends on nothing but what is declared."""
    followers = _followers(declarations)
    elements = sorted({*declarations, *followers})
    attributes = {name for declared in declarations.values() for name in declared.attributes}
    names = (*elements, *sorted(attributes.difference(elements)))[:NAMES_MAX]
    numbers = {name: number for number, name in enumerate(names)}
    nothing = ElementDeclaration()

    def event(name: Name | None) -> int:
        number = numbers.get(name) if name else None
        return END if number is None else ELEMENT + number

    def first(declared: ElementDeclaration) -> int:
        child = _expected(declared.children)
        return TEXT if declared.text or (child and child not in numbers) else event(child)

    return Grammar(
        names,
        tuple(
            tuple(
                numbers[attribute]
                for attribute, required in declarations.get(name, nothing).attributes.items()
                if required and attribute in numbers
            )
            for name in names
        ),
        tuple(first(declarations[name]) if name in declarations else TEXT for name in names),
        tuple(event(followers.get(name)) for name in names),
        event(_root(declarations, followers)) or ELEMENT,
    )


def _expected(children: Iterable[tuple[Name, bool]]) -> Name | None:
    """The next child: the first that must be there, otherwise the first."""
    first = None
    for name, required in children:
        if required:
            return name
        first = first or name
    return first


def _followers(declarations: dict[Name, ElementDeclaration]) -> dict[Name, Name | None]:
    """For every child what is expected after it, where it stands first; None for the end."""
    followers: dict[Name, Name | None] = {}
    for parent in sorted(declarations):
        following, required_following = None, None
        of_this: dict[Name, Name | None] = {}
        for name, required in reversed(declarations[parent].children):
            if name != following:
                of_this[name] = required_following or following
            following = name
            required_following = name if required else required_following
        for name, follower in of_this.items():
            followers.setdefault(name, follower)
    return followers


def _root(
    declarations: dict[Name, ElementDeclaration], followers: dict[Name, Name | None]
) -> Name | None:
    """The first element that is no other's child."""
    return next((name for name in sorted(declarations) if name not in followers), None)
