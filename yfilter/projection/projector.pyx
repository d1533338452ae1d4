"""Projection: the part of a message that the profiles behind a link need.

NeedWalk goes through a message with the hits of the index and decides which groups of needs hold;
Projector marks what they keep and has StreamSelection write one message for each class of links.
"""

from array import array
from collections import Counter
from typing import Any, TypeAlias

from formats.element_stream import ElementStream
from formats.names import QualifiedName
from yfilter.errors import MatchLimitExceeded
from yfilter.index.columns import grown, ints
from yfilter.index.index import Index
from yfilter.language.query_ast import ANY, Expression, NameTest
from yfilter.projection.needs import Kept, Need, Steps

cimport cython

from formats.columns cimport StreamSelection


# -------------------------------------------------------------------------------------------------
# The parts of a NeedTable: places, bindings, groups, conditions and the questions in them.


# The number of a kind, and the attribute or the part.
Looked: TypeAlias = tuple[int, NameTest | str | None]


@cython.final
cdef class Atom:
    """A question: is there an element at the end of a path, on which a condition holds?

    ``asked`` by conditions of bindings above it, each with its bit there.  ``query`` finds it, 0
    where that is the query of the place.
    """

    cdef public int query
    cdef public tuple steps
    cdef public object selection
    cdef public dict asked

    def __init__(self, query: int, steps: Steps, selection: Expression | None) -> None:
        self.query = query
        self.steps = steps
        self.selection = selection
        self.asked: dict[Binding, dict[Disjunct, int]] = {}


@cython.final
cdef class Disjunct:
    """One condition of a group: it holds when ``whole``, the bits of all its atoms, are found.

    ``bit`` is that of the group which it is in at present; ``touched`` (place, what is looked at).
    """

    cdef public object bit, whole
    cdef public Binding binding
    cdef public tuple atoms, touched

    def __init__(
        self, bit: int, binding: Binding, atoms: tuple[Any, ...], touched: tuple[Any, ...]
    ) -> None:
        self.bit = bit
        self.binding = binding
        self.atoms = atoms
        self.whole = (1 << len(atoms)) - 1
        self.touched = touched


@cython.final
cdef class Group:
    """Needs of one binding with the same kept paths and the same ``links``: ``bit`` in masks.

    ``needs``: how many there are, ``unconditional`` those of them that always hold.  ``places``:
    (place, what is kept there).
    """

    cdef public object bit, links
    cdef public tuple places
    cdef public int needs, unconditional

    def __init__(self, bit: int, links: int, places: tuple[Any, ...]) -> None:
        self.bit = bit
        self.links = links
        self.places = places
        self.needs = 0
        self.unconditional = 0


@cython.final
cdef class Binding:
    """Where elements are bound: the masks of the groups there.

    ``always`` are wanted at every such element, ``sometimes`` on a condition, ``full`` are those
    that want the whole element.  ``innermost`` is for the walk through a message: the open element
    that was bound here last.
    """

    cdef public dict groups
    cdef public object always, sometimes, full, innermost

    def __init__(self) -> None:
        self.groups: dict[tuple[tuple[Kept, ...], int], Group] = {}
        self.always = 0
        self.sometimes = 0
        self.full = 0
        self.innermost: object = None

    def set_masks(self, group: Group) -> None:
        """After a change of the group's needs."""
        self.always &= ~group.bit
        self.sometimes &= ~group.bit
        if group.unconditional:
            self.always |= group.bit
        elif group.needs:
            self.sometimes |= group.bit


@cython.final
cdef class Place:
    """The elements at the end of a path from the message; no steps are the document node.

    ``query`` finds them.  ``binding`` if they are bound, ``there`` if it is asked whether there is
    one; ``kept``: of which groups, ``touched``: for which sets of links, and by how many
    conditions.
    """

    cdef public int query
    cdef public tuple steps
    cdef public Binding binding
    cdef public Atom there
    cdef public dict kept, touched
    cdef dict _touched_by

    def __init__(self, query: int, steps: Steps) -> None:
        self.query = query
        self.steps = steps
        self.binding: Binding | None = None
        self.there: Atom | None = None
        self.kept: dict[Looked, int] = {}
        self.touched: dict[Looked, Counter[int]] = {}
        self._touched_by: dict[Looked, int] | None = None

    @property
    def is_used(self) -> bool:
        return bool(self.binding or self.there or self.kept or self.touched)

    def keep(self, looked: Looked, groups: int, wanted: bool) -> None:
        """Let groups keep nodes there, or keep them no more."""
        kept = self.kept.get(looked, 0) & ~groups | (groups if wanted else 0)
        if kept:
            self.kept[looked] = kept
        else:
            del self.kept[looked]

    def touch(self, looked: Looked, links: int, count: int) -> None:
        """So many conditions more of a set of links look at something there."""
        self._touched_by = None
        sets = self.touched.setdefault(looked, Counter())
        sets[links] += count
        if not sets[links]:
            del sets[links]
            if not sets:
                del self.touched[looked]

    cpdef dict touched_by(self):
        """The nodes that conditions read there, with the links of these conditions."""
        if self._touched_by is None:
            self._touched_by = {}
            for looked, sets in self.touched.items():
                links = 0
                for those in sets:
                    links |= those
                self._touched_by[looked] = links
        return self._touched_by


# -------------------------------------------------------------------------------------------------
# LinkClasses: of up to 64 links those that keep the same of a message, and what that is.
#
# A mask on an element or attribute is a set of links that keep it.  Links that no mask tells apart
# are one class; the lowest of its bits stands for it.

cdef enum:
    LINKS_AT_ONCE = 64  # bits of a word


@cython.final
cdef class LinkClasses:
    """``begin`` with links, ``split`` by each mask there is, then ``take`` what each class keeps.

    Of a class by its place: ``links``, and a list from ``heads`` on by ``following``: ``element``
    and ``kind`` as a StreamSelection takes them.
    """

    cdef public unsigned long long[::1] links
    cdef public int[::1] heads, element, kind, following
    cdef public Py_ssize_t count
    cdef unsigned long long _all
    cdef int[::1] _tails
    cdef int _taken

    def __init__(self) -> None:
        self.links = array("Q", bytes(8 * LINKS_AT_ONCE))
        self.heads = ints(LINKS_AT_ONCE)
        self._tails = ints(LINKS_AT_ONCE)
        self.element = ints(256)
        self.kind = ints(256)
        self.following = ints(256)

    cpdef int begin(self, unsigned long long links) except -1:
        """All links are one class."""
        cdef Py_ssize_t place
        self._all = links
        self.links[0] = links
        self.count = 1
        self._taken = 0
        for place in range(64):
            self.heads[place] = -1
        return 0

    cpdef int split(self, unsigned long long links) noexcept:
        """Links that keep something are of other classes than those that do not."""
        cdef Py_ssize_t place
        cdef unsigned long long both
        if not links or links == self._all:
            return 0
        for place in range(self.count):
            both = self.links[place] & links
            if both and both != self.links[place]:
                self.links[self.count] = self.links[place] & ~links
                self.links[place] = both
                self.count += 1
        return 0

    cpdef unsigned long long taker(self, Py_ssize_t place) noexcept:
        """The bit that stands for a class."""
        return self.links[place] & (~self.links[place] + 1)

    cpdef int take(
        self, int element, unsigned long long kept, unsigned long long values,
        unsigned long long wholes
    ) except -1:
        """An element, behind all others: by the links that keep it, with all below it but for
        attributes, or with all below it."""
        cdef Py_ssize_t place
        cdef unsigned long long taker
        for place in range(self.count):
            taker = self.taker(place)
            if kept & taker:
                self._append(place, element, 2 if wholes & taker else 1 if values & taker else 0)
        return 0

    cdef int _append(self, Py_ssize_t place, int element, int kind) except -1:
        cdef int at = self._taken
        if at == len(self.element):
            self.element = grown(self.element, 2 * at)
            self.kind = grown(self.kind, 2 * at)
            self.following = grown(self.following, 2 * at)
        self.element[at] = element
        self.kind[at] = kind
        self.following[at] = -1
        if self.heads[place] < 0:
            self.heads[place] = at
        else:
            self.following[self._tails[place]] = at
        self._tails[place] = at
        self._taken += 1
        return 0


# -------------------------------------------------------------------------------------------------
# NeedWalk: from where needs are found on a message to bound elements and what these want.
#
# The index says at which elements the queries of needs are found (``Index.locate``); they are taken
# in document order.  Conditions are decided for all links that are asked for together; those of
# other links are passed over.  Where all links keep an element whole, and nothing around it is
# undecided, the walk goes on behind its end.

cdef enum:
    VISITS_MAX = 200_000  # elements, hits and conditions looked at, a message


_Mask = int  # of groups or links, any number of bits
_Bits: TypeAlias = "dict[Disjunct, int]"


@cython.final
@cython.freelist(256)
cdef class OpenBinding:
    """A bound element: ``wanted`` are the groups it wants as far as is known, ``pending`` those
    that it may yet want.  ``outer`` is one around it of the same binding path."""

    cdef public Binding binding
    cdef public int element, end
    cdef public OpenBinding outer
    cdef public object wanted, pending
    cdef public dict found


cdef OpenBinding _opened(Binding binding, int element, int end, object groups):
    # PERF: a message may bind hundreds; a call of the class would cost as much as all the rest.
    cdef OpenBinding opened = OpenBinding.__new__(OpenBinding)
    opened.binding = binding
    opened.element = element
    opened.end = end
    opened.outer = binding.innermost
    opened.wanted = binding.always & groups
    opened.pending = binding.sometimes & groups
    opened.found = None
    binding.innermost = opened
    return opened


@cython.final
cdef class NeedWalk:
    """``walk`` a message; then ``document`` and ``bound`` are the bound elements, and ``places``
    (those at ``place_element``) where something may be kept, in document order."""

    cdef public int[::1] place_element
    cdef public OpenBinding document
    cdef public list bound, places
    cdef object _table, _index, _asked, _groups, _hits
    cdef long long _visits
    cdef int _pending
    cdef list _stack
    cdef const int[::1] _element_end

    def __init__(self, table: object, index: Index) -> None:
        self._table = table
        self._index = index
        self.place_element = ints(256)

    cpdef bint walk(self, object stream, object asked) except -1:
        """Which groups bound elements want, for links of a mask; False where that would cost too
        much."""
        cdef int elements = len(stream)
        self._asked = asked
        self._groups = self._table.asked_of(asked)
        self._visits = 0
        self._pending = 0
        self.bound: list[OpenBinding] = []
        self.places: list[Place] = []
        self._stack: list[OpenBinding] = []
        self._element_end = stream.element_end
        try:
            self._hits = self._index.locate(stream, VISITS_MAX)
        except MatchLimitExceeded:
            self._visits = VISITS_MAX + 1
            return False
        self.document = _opened(self._table.document, -1, elements, self._groups)
        self._enter(self.document)
        self._walk(elements)
        while self._stack:
            self._leave(self._stack.pop())
        self._leave(self.document)
        return self.visits <= VISITS_MAX

    @property
    def visits(self) -> int:
        """The cost of the last walk, as VISITS_MAX counts it."""
        visits: int = self._visits + self._index.locations.visits()
        return visits

    cdef int _walk(self, int elements) except -1:
        cdef const int[::1] elements_hit = self._hits.element
        cdef const int[::1] queries = self._hits.query
        found: dict[int, Place | Atom] = self._table.found
        cdef int hit, element
        cdef int close = elements  # where the innermost bound element ends
        cdef int following = 0  # the first element that is looked at
        for hit in range(self._hits.count):
            element = elements_hit[hit]
            if element < following:
                continue
            while element >= close:
                self._leave(self._stack.pop())
                close = self._closing(elements)
            what = found[queries[hit]]
            if isinstance(what, Place):
                following = max(following, self._look(element, what))
                close = self._closing(elements)
            else:
                following = max(following, self._ask(what, element, hit))
            if self._visits > VISITS_MAX:
                break
        return 0

    cdef int _closing(self, int elements) except -1:
        if not self._stack:
            return elements
        cdef OpenBinding innermost = self._stack[len(self._stack) - 1]
        return innermost.end

    cdef int _look(self, int element, Place place) except -1:
        """Binds an element; the one before which nothing has to be looked at."""
        cdef OpenBinding opened
        cdef Binding binding = place.binding
        cdef int following = 0
        self._visits += 1
        if place.kept or place.touched:
            if len(self.places) == len(self.place_element):
                self.place_element = grown(self.place_element, 2 * len(self.places))
            self.place_element[len(self.places)] = element
            self.places.append(place)
        if binding is not None and (binding.always | binding.sometimes) & self._groups:
            opened = _opened(
                binding, element, self._element_end[element], self._groups
            )
            self._stack.append(opened)
            self.bound.append(opened)
            if self._enter(opened):
                return opened.end
        if place.there is not None:
            following = self._ask(place.there, element, -1)
        return following

    cdef int _enter(self, OpenBinding opened) except -1:
        """Whether all of it is kept, so that nothing inside has to be looked at."""
        if self._is_whole(opened):
            opened.pending = 0
            return self._pending == 0
        if opened.pending:
            self._pending += 1
        return False

    cdef _leave(self, OpenBinding opened):
        if opened.pending:
            self._pending -= 1
        opened.binding.innermost = opened.outer

    cdef int _ask(self, Atom atom, int element, int hit) except -1:
        """An atom is found, and holds if its hit does; as ``_look``."""
        cdef OpenBinding around
        cdef Binding binding
        cdef int following = 0
        cdef bint is_known = hit < 0
        self._visits += 1
        for binding, disjuncts in atom.asked.items():
            around = binding.innermost
            while around is not None:
                if around.pending:
                    if not is_known:
                        is_known = self._hits.holds(hit)
                        if not is_known:
                            return following
                    if self._hold(disjuncts, around):
                        following = max(following, around.end)
                around = around.outer
        return following

    cdef int _hold(self, object disjuncts, OpenBinding opened) except -1:
        """An atom holds below a bound element; whether nothing inside has to be looked at now."""
        cdef bint is_whole
        cdef Disjunct disjunct
        bits: dict[Disjunct, int] = disjuncts
        for disjunct, bit in bits.items():
            self._visits += 1
            group = disjunct.bit
            if not group & opened.pending:
                continue
            if bit != disjunct.whole:
                if opened.found is None:
                    opened.found = {}
                together = opened.found.get(disjunct, 0) | bit
                opened.found[disjunct] = together
                if together != disjunct.whole:
                    continue
            opened.wanted |= group
            opened.pending &= ~group
            is_whole = self._is_whole(opened)
            if is_whole:
                opened.pending = 0
            if not opened.pending:
                self._pending -= 1
                return is_whole and self._pending == 0
        return False

    cdef bint _is_whole(self, OpenBinding opened) except -1:
        """Whether all links that are asked for keep the whole element."""
        full = opened.wanted & opened.binding.full
        return bool(full) and not self._asked & ~self._table.links_of(full)


# -------------------------------------------------------------------------------------------------
# Projector: what each of many links keeps of a message (section 4.2.2 of the paper, generalised).
#
# ::
#
#     locate   by the index: the elements that needs bind, keep and ask about (Index.locate)
#     walk     in document order: which groups each bound element wants (NeedWalk)
#     keep     in document order: nodes kept below bound elements, of groups they want
#     close    backwards: the ancestors of kept nodes
#     settle   in document order: the nodes that conditions read wherever an element of their paths
#              is kept, and all nodes of elements kept whole
#     select   the columns, once for links that keep the same (LinkClasses,
#              formats/stream_selection.py)
#
# All but the last is once a message, with a mask of the links on each element; a message that more
# than 64 links are reached by is kept to settled once for each 64.  What is only for links that are
# not asked for is passed over.
#
# Nothing is wrong with keeping too much.  So a message is passed on as it is where a decision would
# cost too much (VISITS_MAX), and where nearly all of it is kept, for then nothing is saved by
# writing it again.

cdef enum:
    _NODE = 0  # needs.Kind
    _ATTRIBUTE = 1
    _VALUE = 2
    _SUBTREE = 3
    _PART = 4
    _TAG_BYTES = 4  # an element without its values, roughly, in a binary form


WHOLE_SHARE = 0.95  # a message of which so much is kept is passed on as it is


cdef object _WORD = 0xFFFFFFFFFFFFFFFF


class Left:
    """The rest of a message for the links that keep the same: ``stream``, None for all of it.

    ``parts``: those that are wanted, as (element, its place in what is left, text).
    """

    __slots__ = ("parts", "stream")

    def __init__(self, stream: ElementStream | None, parts: list[tuple[int, int, str]]) -> None:
        self.stream = stream
        self.parts = parts


_Found: TypeAlias = "list[tuple[int, Left]]"  # by mask of links

WHOLE = Left(None, [])


@cython.final
cdef class Projector:
    """Add and remove needs of links, which are numbers; ``project`` messages for some of them."""

    cdef public object table
    cdef NeedWalk _walk
    cdef StreamSelection _selection
    cdef LinkClasses _classes
    cdef int[::1] _settled, _place_element
    cdef unsigned long long[::1] _kept, _values
    cdef unsigned long long _word
    cdef long long _messages, _links_asked, _written
    cdef int _settled_count, _at
    cdef Py_ssize_t _shift
    cdef double _whole_share
    cdef object _asked
    cdef list _parts, _places, _names
    cdef dict _words, _accepted
    cdef const int[::1] _element_parent, _element_end, _attribute_start, _attribute_name

    def __init__(self, index: Index, table: object, whole_share: float = WHOLE_SHARE) -> None:
        """``table``: a NeedTable of the index; ``whole_share``: of a message, from which on it is
        passed on as it is."""
        self._whole_share = whole_share
        self.table = table
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

    def add(self, need: Need, link: int) -> None:
        """Keep what a need asks for, too."""
        self.table.add(need, link)

    def remove(self, need: Need, link: int) -> None:
        """Undo one ``add``; KeyError if it is not there."""
        self.table.remove(need, link)

    cpdef object project(self, object stream, object asked):
        """The rest of the message for the links of a mask: the same for the links of each mask in
        the answer."""
        cdef Py_ssize_t shift
        self._messages += 1
        self._links_asked += asked.bit_count()
        root = self.table.document
        whole: _Mask = self.table.links_of(root.always & root.full) & asked
        self._asked = asked & ~whole
        left = [(whole, WHOLE)] if whole else []
        if self._asked:
            if self._walk.walk(stream, self._asked):
                for shift in range(0, self._asked.bit_length(), LINKS_AT_ONCE):
                    word = self._asked >> shift & _WORD
                    if word:
                        self._project(stream, word, shift, left)
            else:
                left.append((self._asked, WHOLE))
        return left

    def report(self, said) -> None:
        """``said``: an EngineStatistics; ``projected_links``: for how many links messages were
        looked at, ``projected_written``: how many messages were made of that."""
        self.table.report(said)
        said.projected_messages, said.projected_links = self._messages, self._links_asked
        said.projected_written = self._written

    @property
    def visits(self) -> int:
        """The cost of deciding about the last message, as VISITS_MAX counts it."""
        visits: int = self._walk.visits
        return visits

    cdef _project(self, object stream, unsigned long long word, Py_ssize_t shift, object left):
        """For the links of a word of the mask, the first of which has the number ``shift``."""
        cdef int elements = len(stream)
        cdef Py_ssize_t place
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
        cdef double whole = len(stream.attribute_values) + len(stream.content_values)
        whole += _TAG_BYTES * elements
        for place in range(self._classes.count):
            made = self._selected(place, whole)
            links = self._classes.links[place]
            left.append((links << shift, made))

    cdef object _selected(self, Py_ssize_t place, double whole):
        """For one class of links."""
        cdef double kept
        cdef int at = self._classes.heads[place]
        cdef unsigned long long taker = self._classes.taker(place)
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

    cdef _begin(self, object stream, int elements):
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

    cdef int _keep(self, int elements) except -1:
        """Marks what bound elements want, as far as it is not found below what is marked."""
        cdef int i, element
        cdef int following = 0  # the first element that is not below one marked whole
        cdef Py_ssize_t at = 0
        cdef int until = elements
        cdef OpenBinding opened
        cdef Place place
        wanting = [opened for opened in self._walk.bound if opened.wanted]
        cdef int next_wanting = _element_at(wanting, 0, elements)
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

    cdef unsigned long long _word_of(self, object groups) except? 0:
        """The links of this word that want any of some groups."""
        known = self._words.get(groups)
        if known is None:
            links = self.table.links_of(groups) & self._asked
            known = self._words[groups] = links >> self._shift & _WORD
        cdef unsigned long long word = known
        return word

    cdef _keep_of_document(self):
        """Keep of the root element all that is kept of the document node."""
        for (kind, _), groups in self.table.root.kept.items():
            wanted = groups & self._walk.document.wanted
            if wanted:
                self._mark(0, kind, None, self._word_of(wanted))

    cdef _mark(self, int element, int kind, object test, unsigned long long links):
        cdef int i
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

    cdef bytes _accepted_by(self, object test):
        """For each name of the message whether a test accepts it; None accepts all."""
        found = self._accepted.get(test)
        if found is None:
            found = self._accepted[test] = bytes(_accepts(test, name) for name in self._names)
        return found

    cdef int _close(self, int elements) noexcept:
        cdef int element
        self._kept[0] |= self._word
        for element in range(elements - 1, 0, -1):
            if self._kept[element]:
                self._kept[self._element_parent[element]] |= self._kept[element]
        return 0

    cdef int _settle(self, int elements) except -1:
        """Marks what follows from marks; ``_settled`` are the elements that are kept, without those
        of which nobody keeps anything but what follows from an element above."""
        cdef int element = 0
        cdef int below, end, i
        cdef unsigned long long above, values, wholes
        cdef unsigned long long last = 0
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

    cdef int _settle_places(self, int element, unsigned long long wholes) except -1:
        """Goes on to the places behind an element that is kept, and marks what conditions look at
        there; whether that may be anything."""
        cdef int count = len(self._places)
        cdef bint is_touched = False
        cdef unsigned long long links
        cdef Place place
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

    cdef int _next_place(self) noexcept:
        """The element of the next place; one behind all if there is none."""
        if self._at == len(self._places):
            return len(self._element_end)
        return self._place_element[self._at]

    cdef int _distribute(self) except -1:
        """To each class of links what it keeps, without what is in a run that it keeps."""
        cdef int i, element
        cdef unsigned long long kept
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


def _element_at(wanting: list[OpenBinding], Py_ssize_t at, int elements):
    if at >= len(wanting):
        return elements
    cdef OpenBinding opened = wanting[at]
    return opened.element


def _accepts(test: object, name: QualifiedName) -> bool:
    if not isinstance(test, NameTest):
        return True
    return test.namespace in (ANY, name.namespace) and test.local in (ANY, name.local)
