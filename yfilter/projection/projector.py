# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Projector: what each of many links keeps of a message (section 4.2.2 of the paper, generalised).

::

    locate   by the index: the elements that needs bind, keep and ask about (Index.locate)
    walk     in document order: which groups each bound element wants (need_walk.py)
    keep     in document order: what is kept below bound elements, of groups they want
    close    backwards: whatever stands above something that is kept
    settle   in document order: what conditions look at wherever an element of their paths is
             kept, and all of what is kept as a whole
    select   the columns, once for links that keep the same (link_classes.py,
             formats/stream_selection.py)

All but the last is once a message, with a mask of the links on each element; a message that more
than 64 links are reached by is kept to settled once for each 64.  What is only for links that are
not asked for is passed over.

Nothing is wrong with keeping too much.  So a message is passed on as it is where a decision would
cost too much (VISITS_MAX), and where nearly all of it is kept, for then nothing is saved by writing
it again.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array
from typing import TypeAlias

from formats.element_stream import ElementStream
from formats.names import QualifiedName
from yfilter.index.columns import ints
from yfilter.index.index import Index
from yfilter.language.query_ast import ANY, NameTest
from yfilter.projection.need_table import NeedTable
from yfilter.projection.needs import Need

if cython.compiled:
    from cython.cimports.formats.stream_selection import StreamSelection
    from cython.cimports.yfilter.projection.link_classes import LinkClasses
    from cython.cimports.yfilter.projection.need_parts import Place
    from cython.cimports.yfilter.projection.need_walk import NeedWalk, OpenBinding
else:
    from formats.stream_selection import StreamSelection
    from yfilter.projection.link_classes import LinkClasses
    from yfilter.projection.need_parts import Place
    from yfilter.projection.need_walk import NeedWalk, OpenBinding

WHOLE_SHARE = 0.95  # a message of which so much is kept is passed on as it is

_NODE, _ATTRIBUTE, _VALUE, _SUBTREE, _PART = range(5)  # needs.Kind

_TAG_BYTES = 4  # an element without its values, roughly, in a binary form
_LINKS_AT_ONCE = 64  # those of LinkClasses
_WORD = 0xFFFFFFFFFFFFFFFF

_Mask = int  # of groups or links, any number of bits


class Left:
    """What is left of a message for the links that keep the same: ``stream``, None for all of it.

    ``parts``: those that are wanted, as (element, its place in what is left, text).
    """

    __slots__ = ("parts", "stream")

    def __init__(self, stream: ElementStream | None, parts: list[tuple[int, int, str]]) -> None:
        self.stream = stream
        self.parts = parts


_Found: TypeAlias = "list[tuple[int, Left]]"  # by mask of links

WHOLE = Left(None, [])


class Projector:
    """Add and remove needs of links, which are numbers; ``project`` messages for some of them."""

    def __init__(self, index: Index, whole_share: float = WHOLE_SHARE) -> None:
        """``whole_share``: of a message, from which on it is passed on as it is."""
        self._whole_share = whole_share
        self.table = NeedTable(index)
        self._walk = NeedWalk(self.table, index)
        self._names: list[QualifiedName] = []
        self._accepted: dict[object, bytes] = {}
        self._selection = StreamSelection()
        self._classes = LinkClasses()
        self._kept = array("Q", bytes(8 * 256))
        self._values = array("Q", bytes(8 * 256))
        self._settled = ints(256)
        self._messages = 0
        self._links_asked = 0
        self._written = 0
        self._elements = 0
        self._elements_kept = 0
        self._over_limit = 0

    def add(self, need: Need, link: int) -> None:
        """Keep what a need asks for, too."""
        self.table.add(need, link)

    def remove(self, need: Need, link: int) -> None:
        """Undo one ``add``; KeyError if it is not there."""
        self.table.remove(need, link)

    def project(self, stream: ElementStream, asked: _Mask) -> _Found:
        """What is left of the message for the links of a mask: for those of each mask that is given
        the same."""
        self._messages += 1
        self._links_asked += asked.bit_count()
        root = self.table.document
        whole: _Mask = self.table.links_of(root.always & root.full) & asked
        self._asked = asked & ~whole
        left = [(whole, WHOLE)] if whole else []
        if self._asked:
            if self._walk.walk(stream, self._asked):
                shift: cython.Py_ssize_t
                for shift in range(0, self._asked.bit_length(), _LINKS_AT_ONCE):
                    word = self._asked >> shift & _WORD
                    if word:
                        self._project(stream, word, shift, left)
            else:
                self._over_limit += 1
                left.append((self._asked, WHOLE))
        return left

    def statistics(self) -> dict[str, int]:
        """``projected_links``: for how many links messages were looked at, ``projected_written``:
        how many messages were made of that, ``projection_over_limit``: those that would have cost
        too much."""
        return {
            **self.table.statistics(),
            "projected_messages": self._messages,
            "projected_links": self._links_asked,
            "projected_written": self._written,
            "projection_elements": self._elements,
            "projection_elements_kept": self._elements_kept,
            "projection_over_limit": self._over_limit,
        }

    @property
    def visits(self) -> int:
        """What it cost to decide about the last message, as VISITS_MAX counts it."""
        visits: int = self._walk.visits
        return visits

    def _project(
        self, stream: ElementStream, word: cython.ulonglong, shift: cython.Py_ssize_t, left: _Found
    ) -> None:
        """For the links of a word of the mask, the first of which has the number ``shift``."""
        elements: cython.int = len(stream)
        place: cython.Py_ssize_t
        links: object
        self._word = word
        self._shift = shift
        self._words: dict[int, int] = {}
        self._parts: list[tuple[int, str, int]] = []
        self._begin(stream, elements)
        for place in range(elements):
            self._kept[place] = 0
            self._values[place] = 0
        self._selection.begin(stream)
        self._classes.begin(self._word)
        self._keep(elements)
        self._close(elements)
        self._settle(elements)
        self._distribute()
        whole: cython.double = len(stream.attribute_values) + len(stream.content_values)
        whole += _TAG_BYTES * elements
        for place in range(self._classes.count):
            made = self._selected(place, whole)
            self._elements += elements
            self._elements_kept += elements if made.stream is None else self._selection.elements
            links = self._classes.links[place]
            left.append((links << shift, made))

    def _selected(self, place: cython.Py_ssize_t, whole: cython.double) -> Left:
        """For one class of links."""
        kept: cython.double
        at: cython.int = self._classes.heads[place]
        taker: cython.ulonglong = self._classes.taker(place)
        self._selection.begin_taker(taker)
        while at >= 0:
            self._selection.take(self._classes.element[at], self._classes.kind[at])
            at = self._classes.following[at]
        kept = self._selection.kept_bytes() + _TAG_BYTES * self._selection.elements
        parts: list[tuple[int, int, str]] = []
        for element, text, links in self._parts:
            if links & taker:
                parts.append((element, self._selection.place_of(element), text))
        if self._selection.wholes[0] & taker or kept >= self._whole_share * whole:
            return Left(None, parts) if parts else WHOLE
        self._written += 1
        return Left(self._selection.selected(), parts)

    def _begin(self, stream: ElementStream, elements: cython.int) -> None:
        if elements > len(self._settled):
            self._settled = ints(elements + elements // 2)
            self._kept = array("Q", bytes(8 * (elements + elements // 2)))
            self._values = array("Q", bytes(8 * (elements + elements // 2)))
        if stream.names != self._names:
            self._names = list(stream.names)
            self._accepted = {}
        self._places = self._walk.places
        self._place_element = self._walk.place_element
        self._element_parent = stream.element_parent
        self._element_end = stream.element_end
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name

    # -- keep

    def _keep(self, elements: cython.int) -> cython.int:
        """Marks what bound elements want, as far as it is not found below what is marked."""
        i: cython.int
        element: cython.int
        following: cython.int = 0  # the first element that is not below one marked whole
        at: cython.Py_ssize_t = 0
        until: cython.int = elements
        opened: OpenBinding
        place: Place
        wanting = [opened for opened in self._walk.bound if opened.wanted]
        next_wanting: cython.int = _element_at(wanting, 0, elements)
        active: _Mask = self._walk.document.wanted
        around: list[tuple[int, _Mask]] = []
        if active:
            self._keep_of_document()
        for i in range(len(self._places)):
            element = self._place_element[i]
            while next_wanting <= element:
                while next_wanting >= until:
                    active = around.pop()[1]
                    until = around[len(around) - 1][0] if around else elements
                opened = wanting[at]
                around.append((opened.end, active))
                until = opened.end
                active = active | opened.wanted
                at += 1
                next_wanting = _element_at(wanting, at, elements)
            while element >= until:
                active = around.pop()[1]
                until = around[len(around) - 1][0] if around else elements
            place = self._places[i]
            if element < following or not active or not place.kept:
                continue
            for (kind, what), groups in place.kept.items():
                wanted = groups & active
                if wanted:
                    self._mark(element, kind, what, self._word_of(wanted))
            if self._selection.wholes[element] == self._word:
                following = self._element_end[element]
        return 0

    def _word_of(self, groups: _Mask) -> cython.ulonglong:
        """The links of this word that want any of some groups."""
        known = self._words.get(groups)
        if known is None:
            links = self.table.links_of(groups) & self._asked
            known = self._words[groups] = links >> self._shift & _WORD
        word: cython.ulonglong = known
        return word

    def _keep_of_document(self) -> None:
        """What is kept of the document node is kept of the root element."""
        for (kind, _), groups in self.table.root.kept.items():
            wanted = groups & self._walk.document.wanted
            if wanted:
                self._mark(0, kind, None, self._word_of(wanted))

    def _mark(
        self, element: cython.int, kind: cython.int, test: object, links: cython.ulonglong
    ) -> None:
        i: cython.int
        self._kept[element] |= links
        if kind == _SUBTREE:
            self._selection.wholes[element] |= links
        elif kind == _VALUE:
            self._values[element] |= links
        elif kind == _PART:
            if links:
                self._parts.append((element, str(test), links))
                self._classes.split(links)
        elif kind == _ATTRIBUTE and test is not None:
            accepted: bytes = self._accepted_by(test)
            for i in range(self._attribute_start[element], self._attribute_start[element + 1]):
                if accepted[self._attribute_name[i]]:
                    self._selection.attributes[i] |= links

    def _accepted_by(self, test: object) -> bytes:
        """For each name of the message whether a test accepts it; None accepts all."""
        found = self._accepted.get(test)
        if found is None:
            found = self._accepted[test] = bytes(_accepts(test, name) for name in self._names)
        return found

    def _close(self, elements: cython.int) -> cython.int:
        element: cython.int
        self._kept[0] |= self._word
        for element in range(elements - 1, 0, -1):
            if self._kept[element]:
                self._kept[self._element_parent[element]] |= self._kept[element]
        return 0

    def _settle(self, elements: cython.int) -> cython.int:
        """Marks what follows from marks; ``_settled`` are the elements that are kept, without those
        of which nobody keeps anything but what follows from an element above."""
        element: cython.int = 0
        below: cython.int
        end: cython.int
        i: cython.int
        above: cython.ulonglong
        values: cython.ulonglong
        wholes: cython.ulonglong
        last: cython.ulonglong = 0
        self._settled_count = 0
        self._at = 0
        while element < elements:
            end = self._element_end[element]
            values = self._values[element]
            wholes = self._selection.wholes[element]
            above = 0
            if element > 0:
                above = self._values[self._element_parent[element]]
                values |= above
                wholes |= self._selection.wholes[self._element_parent[element]]
            self._values[element] = values
            self._selection.wholes[element] = wholes
            self._kept[element] |= values | wholes
            if not self._kept[element]:
                element = end
                continue
            if self._settle_places(element, wholes):
                values = self._values[element]
            if self._kept[element] != last:
                last = self._kept[element]
                self._classes.split(last)
            if values | wholes:
                self._classes.split(values & ~wholes)
                self._classes.split(wholes)
            for i in range(self._attribute_start[element], self._attribute_start[element + 1]):
                if self._selection.attributes[i]:
                    self._classes.split(self._selection.attributes[i])
            self._settled[self._settled_count] = element
            self._settled_count += 1
            # Where no place is below there are no marks.
            if wholes == self._word or self._next_place() >= end:
                if values:
                    for below in range(element + 1, end):
                        self._selection.wholes[below] = wholes
                element = end
                continue
            element += 1
        return 0

    def _settle_places(self, element: cython.int, wholes: cython.ulonglong) -> cython.bint:
        """Goes on to the places behind an element that is kept, and marks what conditions look at
        there; whether that may be anything."""
        count: cython.int = len(self._places)
        is_touched: cython.bint = False
        links: cython.ulonglong
        place: Place
        while self._at < count and self._place_element[self._at] <= element:
            place = self._places[self._at]
            if self._place_element[self._at] == element and place.touched and wholes != self._word:
                is_touched = True
                for (kind, what), touching in place.touched_by().items():
                    links = self._kept[element]
                    links &= touching >> self._shift & _WORD
                    if links:
                        self._mark(element, kind, what, links)
            self._at += 1
        return is_touched

    def _next_place(self) -> cython.int:
        """The element of the next place; one behind all if there is none."""
        if self._at == len(self._places):
            return len(self._element_end)
        return self._place_element[self._at]

    def _distribute(self) -> cython.int:
        """To each class of links what it keeps, without what is in a run that it keeps."""
        i: cython.int
        element: cython.int
        kept: cython.ulonglong
        for i in range(self._settled_count):
            element = self._settled[i]
            kept = self._kept[element]
            if element > 0:
                kept &= ~self._values[self._element_parent[element]]
                kept &= ~self._selection.wholes[self._element_parent[element]]
            if kept:
                self._classes.take(
                    element, kept, self._values[element], self._selection.wholes[element]
                )
        return 0


def _element_at(
    wanting: list[OpenBinding], at: cython.Py_ssize_t, elements: cython.int
) -> cython.int:
    if at >= len(wanting):
        return elements
    opened: OpenBinding = wanting[at]
    return opened.element


def _accepts(test: object, name: QualifiedName) -> bool:
    if not isinstance(test, NameTest):
        return True
    return test.namespace in (ANY, name.namespace) and test.local in (ANY, name.local)
