"""Nodes and values that expressions are about: small, comparable, without the message itself.

::

    <a x="1">t<b/></a>     DOCUMENT (-1, ..)   a (0, ELEMENT, 0)   @x (0, ATTRIBUTE, 0)
                           "t" (1, TEXT, 0)    b (1, ELEMENT, 1)

As tuples they sort in document order: an attribute comes after its element, a text node before
the element that would start next after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias


class NodeType(IntEnum):
    """In the order in which nodes of the same ``position`` come in the document."""

    DOCUMENT = 0
    TEXT = 1
    ELEMENT = 2
    ATTRIBUTE = 3


class Node(NamedTuple):
    """A node of a message; nodes compare in document order.

    ``position`` is the number of the element itself, of an attribute's element, or of the element
    that would start next after a text node; ``number`` that of the element, attribute or
    content.
    """

    position: int
    type: NodeType
    number: int


class WrittenNumber(float):
    """An integer or decimal literal whose text differs from that of the same xs:double."""

    written: str

    def __new__(cls, value: float, written: str) -> WrittenNumber:
        number = super().__new__(cls, value)
        number.written = written
        return number


DOCUMENT = Node(-1, NodeType.DOCUMENT, 0)

Item: TypeAlias = Node | str | int | float
Value: TypeAlias = Sequence[Item]
Variables: TypeAlias = Mapping[str, Value]


def element_node(element: int) -> Node:
    return Node(element, NodeType.ELEMENT, element)
