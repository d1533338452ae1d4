"""Nodes and values that expressions are about: small, comparable, without the message itself.

::

    <a x="1">t<b/></a>     DOCUMENT (-1, ..)   a (0, ELEMENT, 0)   @x (0, ATTRIBUTE, 0)
                           "t" (1, CONTENT, 0) b (1, ELEMENT, 1)

As tuples they sort in document order: an attribute comes after its element, a text node before
the element that would start next after it.  ``tree`` is 0 for the message; elements that an
expression constructs and then looks into are trees of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import c_float
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from formats.names import QualifiedName
from yfilter.language.namespaces import ERROR_NAMESPACE
from yfilter.language.query_ast import Constructor, FunctionDeclaration, NodeKind
from yfilter.language.temporal import Temporal


class NodeType(IntEnum):
    """In the order in which nodes of the same ``position`` come in the document."""

    DOCUMENT = 0
    CONTENT = 1  # a text node, a comment or a processing instruction
    ELEMENT = 2
    ATTRIBUTE = 3


class Node(NamedTuple):
    """A node of a message; nodes of one tree compare in document order.

    ``position`` is the number of the element itself, of an attribute's element, or of the element
    that would start next after a piece of content; ``number`` that of the element, attribute or
    content.
    """

    position: int
    type: NodeType
    number: int
    tree: int = 0


class Untyped(str):
    """xs:untypedAtomic: what a node's value is; compared as what it is compared with."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Opaque:
    """An atomic value of a type that only elementpath reckons with; see atoms.py.

    ``key`` compares as values do that can be compared: those of one type, and all durations.
    """

    type: str
    text: str
    key: tuple[Any, ...]
    value: Any = field(compare=False, repr=False)

    @property
    def primitive(self) -> str:
        return "xs:duration" if self.type.endswith("Duration") else self.type

    def __str__(self) -> str:
        return self.text


class AnyUri(str):
    """xs:anyURI: compared as a string."""

    __slots__ = ()


class Float(float):
    """xs:float: a number of single precision; what is too large for one is an infinity."""

    __slots__ = ()

    def __new__(cls, value: float) -> Float:
        return super().__new__(cls, c_float(value).value)

    def __repr__(self) -> str:
        """The shortest that is read as the same number."""
        texts = (f"{float(self):.{digits}g}" for digits in range(1, 10))
        return next((text for text in texts if c_float(float(text)).value == self), "nan")


Library: TypeAlias = Mapping[tuple[str, int], FunctionDeclaration]
"""Declared functions and variables by name and number of arguments."""


class Functions(NamedTuple):
    """What is declared; in how many calls this is."""

    table: Library
    depth: int


class Focus(NamedTuple):
    """Where an expression is evaluated: context item, its position, how many there are.

    ``functions``: in the body of a declared function.
    """

    item: Item | None
    position: int
    size: int
    variables: Variables
    functions: Functions | None = None


@dataclass(slots=True, eq=False)
class Construction:
    """An element still to be constructed, with what its expressions refer to.

    It is written when it is delivered; ``node`` is set when an expression looks into it first.
    """

    constructor: Constructor
    focus: Focus
    node: Node | None = field(default=None)


@dataclass(slots=True, eq=False)
class Detached:
    """A constructed attribute, text node, comment or processing instruction without a parent.

    ``node`` is set when an expression takes it as a node first.
    """

    kind: NodeKind
    name: QualifiedName | None
    value: str
    node: Node | None = field(default=None)


@dataclass(slots=True, eq=False)
class Written(Detached):
    """Items that are written already; nothing is done with them but making them content."""

    markup: bytes = b""


class DynamicError(Exception):
    """What XPath calls a dynamic error; ``code`` is its name there, such as FORG0001, and with
    its namespace ``Q{uri}name`` in another one; ``value`` is what fn:error() was given."""

    def __init__(self, code: str, reason: str, value: Value = ()) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason
        self.value = value

    @property
    def local(self) -> str:
        return self.code.rpartition("}")[2]

    @property
    def namespace(self) -> str:
        return self.code[2:].rpartition("}")[0] if "}" in self.code else ERROR_NAMESPACE


DOCUMENT = Node(-1, NodeType.DOCUMENT, 0)

NODES: Final = (Node, Construction, Detached)  # items that are no atomic values

Atom: TypeAlias = str | int | float | Decimal | Temporal | Opaque
Item: TypeAlias = Node | Construction | Detached | Atom
Value: TypeAlias = Sequence[Item]
Variables: TypeAlias = Mapping[str, Value]


def element_node(element: int, tree: int = 0) -> Node:
    return Node(element, NodeType.ELEMENT, element, tree)
