"""Harvest: what the messages of a folder are made of, as far as profiles can be made from it.

The trees are read with lxml, not with the project's own parser: what the demo asks for should not
depend on what it tests.  A message that lxml refuses yields nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random

from lxml import etree

from demo.independent_parse import Element, parse

_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,6})?")
_VALUE_LENGTH_MAX = 60
_DOCUMENTS_MAX = 500


class Harvest:
    """Elements and values to draw from; each document is as likely as any other."""

    def __init__(self, messages: Iterable[bytes], random: Random) -> None:
        """At most 500 documents are kept, chosen evenly."""
        self._random = random
        trees = [root for root in map(parse_or_none, messages) if root is not None]
        if len(trees) > _DOCUMENTS_MAX:
            trees = random.sample(trees, _DOCUMENTS_MAX)
        self._documents = [[*root.iter(etree.Element)] for root in trees]
        names = ({element.tag for element in document} for document in self._documents)
        self._documents_with_name = Counter(name for found in names for name in found)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self._documents)

    def element(self) -> Element:
        """Any element of any document."""
        return self._draw(self._random.choice(self._documents))

    def element_with_attribute(self) -> tuple[Element, str, str] | None:
        """An element, and the name and value of one of its attributes."""
        element = self._some(lambda element: bool(values_of_attributes(element)))
        if element is None:
            return None
        name, value = self._random.choice(values_of_attributes(element))
        return element, name, value

    def leaf(self, *, numeric: bool = False) -> tuple[Element, str] | None:
        """An element that holds nothing but a short text, and the text."""
        leaf = self._some(
            lambda element: (
                (value := leaf_value(element)) is not None and (not numeric or is_number(value))
            )
        )
        return None if leaf is None else (leaf, str(leaf_value(leaf)))

    def inner_element(self) -> Element | None:
        """An element with at least two elements in it."""
        return self._some(lambda element: len(_elements_below(element)) >= 2)

    def two_below(self, element: Element) -> tuple[Element, Element]:
        """Two different elements somewhere below an inner element."""
        first, second = self._random.sample(_elements_below(element), 2)
        return first, second

    def _some(self, wanted: Callable[[Element], bool]) -> Element | None:
        """Any element that is as wanted, from the first of some documents that has one."""
        for _ in range(20):
            found = [element for element in self._random.choice(self._documents) if wanted(element)]
            if found:
                return self._draw(found)
        return None

    def _draw(self, elements: Sequence[Element]) -> Element:
        """Any of the elements, at times preferring names that many documents have."""
        candidates = self._random.choices(elements, k=self._random.choice((1, 1, 4)))
        return max(candidates, key=lambda element: self._documents_with_name[element.tag])


def parse_or_none(data: bytes) -> Element | None:
    """The root element, or None for what is not well-formed; nothing external is read."""
    try:
        return parse(data)
    except (etree.XMLSyntaxError, ValueError):
        return None


def path_from_root(element: Element) -> list[Element]:
    """The element's ancestors from the root down, and itself."""
    return [*reversed([*element.iterancestors()]), element]


def values_of_attributes(element: Element) -> list[tuple[str, str]]:
    """(name in lxml's form, value) of the attributes whose value can stand in a profile."""
    return [(str(k), str(v)) for k, v in element.attrib.items() if is_short(str(v))]


def leaf_value(element: Element) -> str | None:
    """The text of an element without children, if it is short and on one line."""
    value = element.text
    if len(element) or value is None or not is_short(value):
        return None
    return str(value)


def is_short(value: str) -> bool:
    return 0 < len(value) <= _VALUE_LENGTH_MAX and value.isprintable() and value == value.strip()


def is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def _elements_below(element: Element) -> list[Element]:
    return [*element.iterdescendants(etree.Element)]
