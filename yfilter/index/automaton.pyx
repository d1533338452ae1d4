"""The automaton of the index: all access paths in one trie, made deterministic lazily.

Trie holds the steps and the equalities of all queries, AtomTable their values, SymbolTable the
names.  LazyStates are sets of trie nodes with their transitions (StateTable, Steps) and the queries
that they accept (AcceptLists, SecondAccess), in generations within a bound of memory.
"""

import json
import struct
from array import array
from typing import NamedTuple, Protocol, TypeAlias, cast

from formats.names import QualifiedName
from yfilter.index.columns import doubles, grown, ints, longs, octets, touch
from yfilter.index.pattern_set import PatternSet
from yfilter.index.pattern_texts import NO_TEXTS, PatternTexts, pattern_in, texts_of
from yfilter.index.place_index import PlaceIndex
from yfilter.index.text_programs import STEPS, described as program_described
from yfilter.language.numbers import number_text
from yfilter.language.patterns import compile_pattern
from yfilter.language.query_ast import ANY, Expression, NameTest
from yfilter.language.query_text import unparse
from yfilter.language.words import (
    NOWHERE, SPACED_OCTETS, WORD_FUNCTIONS, described, needles_of, spaced,
)

from libc.math cimport INFINITY
from libc.string cimport memcmp, memcpy, memset

from yfilter.index.value_hash cimport value_hash

cdef enum:
    # Numbers of 32 bits in a row.
    ATOM_WIDTH = sizeof(AtomRow) // 4
    NODE_WIDTH = sizeof(TrieNode) // 4
    QUERY_WIDTH = sizeof(TrieQuery) // 4
    STATE_WIDTH = sizeof(StateRow) // 4
    LOOPS_WIDTH = sizeof(LoopsRow) // 4


# -------------------------------------------------------------------------------------------------
# Edge bits: of 31 one for each edge of a trie, to tell early where an edge certainly is not.

cdef inline int name_bit(int edge) noexcept nogil:
    return edge_bit(edge) if edge else ~0x7FFFFFFF


# -------------------------------------------------------------------------------------------------
# Sorting the beginning of a column, or of two side by side, where it stands; finding in one.
#
# Numbers by their digits of eight bits, the lowest first, which takes as long whatever their order;
# a few of them, and the pairs of ``sort_by``, by Shell's method.


FEW = 40


cdef class Sorter:
    """``sort`` with memory of its own."""

    def __init__(self) -> None:
        self._places = ints(256)
        self._spare = ints(256)

    cdef int sort(self, int[::1] column, int count) except -1:
        """Order the first ``count`` numbers of a column, none below 0."""
        cdef int i
        cdef int every = 0
        cdef int shift = 0
        if count <= FEW:
            return _sort_few(column, count)
        if count > len(self._spare):
            self._spare = ints(2 * count)
        for i in range(count):
            every |= column[i]
        while shift < 32 and every >> shift:
            self._pass(column, self._spare, count, shift)
            if every >> shift <= 255:
                for i in range(count):
                    column[i] = self._spare[i]
                return 0
            self._pass(self._spare, column, count, shift + 8)
            shift += 16
        return 0

    cdef int _pass(self, int[::1] source, int[::1] into, int count, int shift) noexcept:
        """Order by one digit; numbers with the same stay as they are to each other."""
        cdef int[::1] places = self._places
        cdef int i, digit
        cdef int before = 0
        for i in range(256):
            places[i] = 0
        for i in range(count):
            places[(source[i] >> shift) & 255] += 1
        for i in range(256):
            digit = places[i]
            places[i] = before
            before += digit
        for i in range(count):
            digit = (source[i] >> shift) & 255
            into[places[digit]] = source[i]
            places[digit] += 1
        return 0


cdef int _sort_few(int[::1] column, int count) noexcept:
    cdef int gap = 1
    cdef int i, j, value
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, count):
            value = column[i]
            j = i
            while j >= gap and column[j - gap] > value:
                column[j] = column[j - gap]
                j -= gap
            column[j] = value
        gap = gap // 3
    return 0


cdef int sort_by(double[::1] keys, int[::1] values, int count) noexcept:
    """Order the first ``count`` keys, and the values with them."""
    cdef int gap = 1
    cdef int i, j
    cdef double key
    cdef int value
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, count):
            key = keys[i]
            value = values[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                values[j] = values[j - gap]
                j -= gap
            keys[j] = key
            values[j] = value
        gap = gap // 3
    return 0


cdef int place_of(int[::1] column, int first, int count, int value) noexcept:
    """Where a number stands among some in order, from ``first`` on; or -1."""
    # PERF: no branch depends on what is there.
    cdef int half
    if count == 0:
        return -1
    while count > 1:
        half = count >> 1
        first += half * (column[first + half] <= value)
        count -= half
    return first if column[first] == value else -1


# -------------------------------------------------------------------------------------------------
# IntCache: numbers under 64 bit keys, by open addressing; it may forget, but never errs.
#
# Key and value lie side by side, 16 bytes a slot, half of the slots in use at most: one cache line
# a look-up.  A table that is full is not rehashed, which would stall one message: it becomes the
# one before, an empty one of twice its size takes its place, and what is asked for is carried over
# by ``recall``.  What nobody asked for until the next such change is forgotten.

cpdef enum:
    # Fields of a slot.
    SLOT_KEY = 0
    SLOT_VALUE = 1
    SLOT_WIDTH = 2

    # No value; one that is to be looked for once more; the first of those that ``retire`` puts.
    ABSENT = -1
    SOUGHT = -2
    RETIRED = -3


cdef class IntCache:
    """``get`` looks into the present table only; on ABSENT ask ``recall``.  Keys are above 0."""

    def __init__(self, bits: int, bits_max: int) -> None:
        self._slots = longs(SLOT_WIDTH << bits)
        self._before = longs(SLOT_WIDTH << 1)
        self._count = 0
        self._shift = 64 - bits
        self._before_shift = 63
        self._before_mask = 1
        self._mask = (1 << bits) - 1
        self._shift_min = 64 - bits_max

    cdef inline int get(self, long long key) noexcept:
        cdef unsigned long long mask = self._mask
        cdef unsigned long long place = _hash_of_key(key) >> self._shift
        cdef long long found = self._slots[SLOT_WIDTH * place + SLOT_KEY]
        while found != key:
            if found == 0:
                return ABSENT
            place = (place + 1) & mask
            found = self._slots[SLOT_WIDTH * place + SLOT_KEY]
        cdef int value = self._slots[SLOT_WIDTH * place + SLOT_VALUE]
        return value

    cdef int get_all(self, long long[::1] keys, int[::1] values, int count) noexcept:
        """``get`` for many keys at once; a key of 0 is passed over, its value left alone."""
        # PERF: no load waits for another but for the few keys that are not in their first slot.
        cdef long long[::1] slots = self._slots
        cdef int shift = self._shift
        cdef unsigned long long place
        cdef long long found
        cdef int i
        for i in range(count):
            if keys[i]:
                place = _hash_of_key(keys[i]) >> shift
                found = slots[SLOT_WIDTH * place + SLOT_KEY]
                if found == keys[i]:
                    values[i] = slots[SLOT_WIDTH * place + SLOT_VALUE]
                else:
                    values[i] = SOUGHT
        for i in range(count):
            if values[i] == SOUGHT:
                values[i] = self.get(keys[i])
        return 0

    cdef inline int recall(self, long long key) noexcept:
        """The value under a key, also of the table before; carried over to the present one."""
        cdef unsigned long long mask, place
        cdef int value
        mask = self._mask
        place = _hash_of_key(key) >> self._shift
        while self._slots[SLOT_WIDTH * place + SLOT_KEY] != 0:
            if self._slots[SLOT_WIDTH * place + SLOT_KEY] == key:
                value = self._slots[SLOT_WIDTH * place + SLOT_VALUE]
                return value
            place = (place + 1) & mask
        mask = self._before_mask
        place = _hash_of_key(key) >> self._before_shift
        while self._before[SLOT_WIDTH * place + SLOT_KEY] != 0:
            if self._before[SLOT_WIDTH * place + SLOT_KEY] == key:
                value = self._before[SLOT_WIDTH * place + SLOT_VALUE]
                if value >= 0:
                    self.put(key, value)
                return value
            place = (place + 1) & mask
        return ABSENT

    cdef int put(self, long long key, int value) except -1:
        """Set a value; those below 0 are ABSENT and what ``retire`` puts."""
        cdef unsigned long long mask, place
        mask = self._mask
        if self._count >= mask >> 1:
            self._grow()
            mask = self._mask
        place = _hash_of_key(key) >> self._shift
        while (
            self._slots[SLOT_WIDTH * place + SLOT_KEY] != 0
            and self._slots[SLOT_WIDTH * place + SLOT_KEY] != key
        ):
            place = (place + 1) & mask
        if self._slots[SLOT_WIDTH * place + SLOT_KEY] == 0:
            self._count += 1
        self._slots[SLOT_WIDTH * place + SLOT_KEY] = key
        self._slots[SLOT_WIDTH * place + SLOT_VALUE] = value
        return 0

    cdef int retire(self, long long key) except -1:
        """Mark a key as absent; ``former`` tells its last value."""
        cdef int value = self.recall(key)
        if value >= 0:
            self.put(key, RETIRED - value)
        return 0

    cdef int cover(self, int count) except -1:
        """Make room for so many, as far as the bound goes, while there are none."""
        if self._count:
            return 0
        while self._shift > self._shift_min and count > self._mask >> 1:
            self._shift -= 1
            self._mask = 2 * self._mask + 1
        self._slots = longs(SLOT_WIDTH * (self._mask + 1))
        touch(self._slots, 8 * len(self._slots))
        return 0

    cpdef long long size_bytes(self):
        return 8 * (len(self._slots) + len(self._before))

    cdef int _grow(self) except -1:
        self._before = self._slots
        self._before_shift = self._shift
        self._before_mask = self._mask
        if self._shift > self._shift_min:
            self._shift -= 1
            self._mask = 2 * self._mask + 1
        self._slots = longs(SLOT_WIDTH * (self._mask + 1))
        self._count = 0
        return 0


cdef int former(int value) noexcept:
    """The value of a key before it was retired, from its value now; or 0."""
    return RETIRED - value if value <= RETIRED else 0


cdef inline unsigned long long _hash_of_key(long long key) noexcept:
    cdef unsigned long long multiplier = 0x9E3779B97F4A7C15
    cdef unsigned long long mask = 0xFFFFFFFFFFFFFFFF
    cdef unsigned long long mixed = key ^ (key >> 32)
    return (mixed * multiplier) & mask


# -------------------------------------------------------------------------------------------------
# Slots: an open-addressing table of numbers above 0, for tables that keep the keys of these.
#
# Of three slots two are in use at most.


cdef class Slots:
    """``enter`` a number that is not there; ``leave`` takes one out.  A table finds the number of a
    key by itself: from ``home_of`` on, up to a slot of 0."""

    def __init__(self) -> None:
        self._slots = ints(64)

    cdef unsigned long long home_of(self, int number) except? 0:
        """The hash of the key of a number."""
        raise NotImplementedError

    cdef int enter(self, int number) except -1:
        cdef unsigned long long mask = len(self._slots) - 1
        cdef unsigned long long slot = self.home_of(number) & mask
        while self._slots[slot] != 0:
            slot = (slot + 1) & mask
        self._slots[slot] = number
        return 0

    cdef int leave(self, int number) except -1:
        cdef unsigned long long mask = len(self._slots) - 1
        cdef unsigned long long hole = self.home_of(number) & mask
        cdef unsigned long long slot, home
        while self._slots[hole] != number:
            hole = (hole + 1) & mask
        # Close the hole: a later entry of the same run may be moved up to it.
        slot = (hole + 1) & mask
        while self._slots[slot] != 0:
            home = self.home_of(self._slots[slot]) & mask
            if ((slot - home) & mask) >= ((slot - hole) & mask):
                self._slots[hole] = self._slots[slot]
                hole = slot
            slot = (slot + 1) & mask
        self._slots[hole] = 0
        return 0

    cdef int make_room(self, int count) except -1:
        """For one more beside so many."""
        cdef int i
        old = self._slots
        if 3 * (count + 1) > 2 * len(old):
            self._slots = ints(2 * len(old))
            for i in range(len(old)):
                if old[i] != 0:
                    self.enter(old[i])
        return 0


# -------------------------------------------------------------------------------------------------
# KeyTable: very many short keys under numbers that the caller gives, found both ways.
#
# The octets of all keys stand in one column, rooms a multiple of ROOM_OCTETS.  A row for each
# number says where, PLACE in such multiples, and LENGTH, -1 for no key; an open-addressing table of
# numbers finds a key's.  A key costs its octets and 14 to 20 bytes.
#
# The table's order depends on Python's hash of bytes, which is another in every process.

cpdef enum:
    # Fields of a key.
    KEY_PLACE = 0
    KEY_LENGTH = 1
    KEY_WIDTH = 2

    # Rooms are multiples of so many octets.
    ROOM_OCTETS = 4


cdef class KeyTable(Slots):
    """``insert`` a key that is not there under a number from 1 that has none; ``remove`` it."""

    cdef unsigned char[::1] _octets
    cdef int[::1] _rows
    cdef int _count, _used
    cdef dict _free
    cdef long long _free_octets

    def __init__(self) -> None:
        super().__init__()
        self._octets = octets(1024)
        self._rows = ints(KEY_WIDTH * 16)
        self._count = 0
        self._used = 0
        self._free: dict[int, list[int]] = {}
        self._free_octets = 0

    cpdef int find(self, bytes key) except -1:
        """The number of a key, 0 if it is not there."""
        cdef long long mask = len(self._slots) - 1
        cdef long long slot = hash(key)
        cdef int number
        cdef long long place
        cdef int length = len(key)
        cdef int i
        cdef const unsigned char* wanted = key
        slot = slot & mask
        number = self._slots[slot]
        while number != 0:
            if self._rows[KEY_WIDTH * number + KEY_LENGTH] == length:
                place = self._rows[KEY_WIDTH * number + KEY_PLACE]
                place = ROOM_OCTETS * place
                i = 0
                while i < length and self._octets[place + i] == wanted[i]:
                    i += 1
                if i == length:
                    return number
            slot = (slot + 1) & mask
            number = self._slots[slot]
        return 0

    cpdef int insert(self, bytes key, int number) except -1:
        """A new key under a new number."""
        cdef long long place
        cdef int length = len(key)
        cdef int i
        cdef const unsigned char* wanted = key
        self.make_room(self._count)
        if KEY_WIDTH * number + 1 >= len(self._rows):
            self._rows = grown(self._rows, KEY_WIDTH * (number + number // 4 + 8))
        place = self._place_for((length + ROOM_OCTETS - 1) // ROOM_OCTETS)
        self._rows[KEY_WIDTH * number + KEY_PLACE] = place
        self._rows[KEY_WIDTH * number + KEY_LENGTH] = length
        place = ROOM_OCTETS * place
        for i in range(length):
            self._octets[place + i] = wanted[i]
        self._count += 1
        return self.enter(number)

    cpdef int remove(self, int number) except -1:
        """Take the key of a number out."""
        cdef int room = (
            self._rows[KEY_WIDTH * number + KEY_LENGTH] + ROOM_OCTETS - 1
        ) // ROOM_OCTETS
        self.leave(number)
        self._free.setdefault(room, []).append(self._rows[KEY_WIDTH * number + KEY_PLACE])
        self._free_octets += ROOM_OCTETS * room
        self._rows[KEY_WIDTH * number + KEY_LENGTH] = -1
        self._count -= 1
        return 0

    cpdef bytes key(self, int number):
        """The key of a number that has one."""
        cdef long long place = self._rows[KEY_WIDTH * number + KEY_PLACE]
        cdef int length = self._rows[KEY_WIDTH * number + KEY_LENGTH]
        place = ROOM_OCTETS * place
        return (&self._octets[place])[:length]

    def __len__(self) -> int:
        return self._count

    def size_bytes(self) -> int:
        return len(self._octets) + 4 * (len(self._rows) + len(self._slots))

    def used_bytes(self) -> int:
        return ROOM_OCTETS * self._used - self._free_octets + 14 * self._count

    cdef int _place_for(self, int room) except -1:
        cdef int place
        free = self._free.get(room)
        if free:
            self._free_octets -= ROOM_OCTETS * room
            place = free.pop()
            if not free:
                del self._free[room]
            return place
        place = self._used
        self._used = place + room
        if ROOM_OCTETS * self._used > len(self._octets):
            self._octets = grown(self._octets, ROOM_OCTETS * (self._used + self._used // 4))
        return place

    cdef unsigned long long home_of(self, int number) except? 0:
        return hash(self.key(number))


# -------------------------------------------------------------------------------------------------
# RecordPool: short sequences of numbers, equal ones kept once.
#
# A record is the place of its first number in ``words``; before it stand its length and the count
# of its users, POOLED_LENGTH and POOLED_USERS from there::
#
#     words   … length users | n0 n1 n2 …
#                              ^ record
#
# Records are found by an open-addressing table of places, whose keys are the records themselves.
# A record without users is free, and is used again for one of its length.  Memory: 8 bytes a
# record, 4 a number, and 6 to 12 in the table.


# A seed that hides the table's order from authors of profiles.
_RECORD_SEED = hash("yfilter.index.record_pool") & 0xFFFFFFFF


cdef class RecordPool(Slots):
    """``acquire`` gives the record of a sequence; ``release`` takes back one use."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ints(256)
        self._used = POOLED_BEFORE
        self.count = 0
        self._free: dict[int, list[int]] = {}
        self._free_words = 0
        self._first_seed = _RECORD_SEED

    cdef int acquire(self, int[::1] numbers, int length) except -1:
        """The record of the first ``length`` numbers of a column, made if there is none; not 0."""
        cdef int record, candidate, i
        cdef long long mask
        cdef unsigned long long slot
        self.make_room(self.count)
        record = self._allocate(length)
        for i in range(length):
            self.words[record + i] = numbers[i]
        mask = len(self._slots) - 1
        slot = self.home_of(record) & mask
        while self._slots[slot] != 0:
            candidate = self._slots[slot]
            if self.words[candidate + POOLED_LENGTH] == length:
                i = 0
                while i < length and self.words[candidate + i] == self.words[record + i]:
                    i += 1
                if i == length:
                    self.words[candidate + POOLED_USERS] += 1
                    self._free.setdefault(length, []).append(record)
                    self._free_words += length + POOLED_BEFORE
                    return candidate
            slot = (slot + 1) & mask
        self._slots[slot] = record
        self.words[record + POOLED_USERS] = 1
        self.count += 1
        return record

    cpdef bint release(self, int record) except -1:
        """Take back one use; whether it was the last one, so that the record is gone."""
        self.words[record + POOLED_USERS] -= 1
        if self.words[record + POOLED_USERS] > 0:
            return False
        self.leave(record)
        self.count -= 1
        self._free.setdefault(self.words[record + POOLED_LENGTH], []).append(record)
        self._free_words += self.words[record + POOLED_LENGTH] + POOLED_BEFORE
        return True

    def size_bytes(self) -> int:
        return 4 * (len(self.words) + len(self._slots))

    def used_bytes(self) -> int:
        return 4 * (self._used - self._free_words) + 6 * self.count

    cdef int _allocate(self, int length) except -1:
        cdef int record
        free = self._free.get(length)
        if free:
            self._free_words -= length + POOLED_BEFORE
            record = free.pop()
            if not free:
                del self._free[length]
            return record
        record = self._used + POOLED_BEFORE
        if record + length >= len(self.words):
            self.words = grown(self.words, (record + length) * 3 // 2)
        self._used = record + length
        self.words[record + POOLED_LENGTH] = length
        return record

    cdef unsigned long long home_of(self, int record) except? 0:
        cdef int i
        cdef unsigned long long mask = 0xFFFFFFFFFFFFFFFF
        cdef unsigned long long prime = 0xFF51AFD7ED558CCD
        cdef unsigned long long mixed = self._first_seed
        cdef unsigned long long word
        for i in range(record, record + self.words[record + POOLED_LENGTH]):
            word = self.words[i] & 0x7FFFFFFF
            mixed = ((mixed ^ word) * prime) & mask
            mixed ^= mixed >> 32
        return mixed


# -------------------------------------------------------------------------------------------------
# SubscriberRuns: the registrations of each query as a run of numbers.
#
# Read for every match of every message, hence no object::
#
#     first of a query    0: nobody   n > 0: registration n alone   -p: the run at place p
#     run at p            count << RUN_SHIFT | b, n0 n1 n2 …                a block of 2^b numbers
#
# A short run is one cache miss: its length stands before it, and a block of up to 16 numbers begins
# at a multiple of its size, so that it lies in one line.  A block that is given up is used again
# for a run of its size.

cdef enum:
    _LINE = 16  # numbers in a cache line
cdef enum:
    _BITS_MIN = 2

cpdef enum:
    # The first number of a run: count << RUN_SHIFT | bits of its block.
    RUN_BITS = 31
    RUN_SHIFT = 5


_ZERO = array("i", [0])


cdef class SubscriberRuns:
    """``add`` and ``remove`` registrations; ``collect`` those of many queries.  All are above 0."""

    def __init__(self) -> None:
        self._first = ints(64)
        self._runs = ints(64)
        self._used = _LINE
        self._free: dict[int, list[int]] = {}  # blocks by their bits
        self._places = ints(1024)

    cpdef int add(self, int query, int registration) except -1:
        """One more registration of a query."""
        cdef int first, place, count
        if query >= len(self._first):
            self._first = grown(self._first, query + query // 2 + 8)
        first = self._first[query]
        if first == 0:
            self._first[query] = registration
            return 0
        if first > 0:
            place = self._take(_BITS_MIN)
            self._runs[place] += 1 << RUN_SHIFT
            self._runs[place + 1] = first
        else:
            place = -first
        count = self._runs[place] >> RUN_SHIFT
        if count + 1 == 1 << (self._runs[place] & RUN_BITS):
            place = self._moved(place)
        self._runs[place] += 1 << RUN_SHIFT
        self._runs[place + 1 + count] = registration
        self._first[query] = -place
        return 0

    cpdef int remove(self, int query, int registration) except -1:
        """Take out one that was added; how many of the query are left, at least."""
        cdef int i
        cdef int place = -self._first[query]
        cdef int last
        if place < 0:
            self._first[query] = 0
            return 0  # the only one
        i = place + 1
        last = place + (self._runs[place] >> RUN_SHIFT)
        while self._runs[i] != registration:
            i += 1
        self._runs[i] = self._runs[last]
        self._runs[place] -= 1 << RUN_SHIFT
        if self._runs[place] >> RUN_SHIFT == 1:
            self._first[query] = self._runs[place + 1]
            self._give_up(place, self._runs[place] & RUN_BITS)
        return 1

    cpdef list of(self, int query):
        """The registrations of one query."""
        if query >= len(self._first) or self._first[query] == 0:
            return []
        cdef int first = self._first[query]
        if first > 0:
            return [first]
        return [
            self._runs[i] for i in range(1 - first, 1 - first + (self._runs[-first] >> RUN_SHIFT))
        ]

    cpdef object collect(self, int[::1] queries, int count):
        """The registrations of the first ``count`` queries of a column, as a new column."""
        # PERF: first the misses of all queries, then those of all runs; none waits for another.
        cdef int[::1] first = self._first
        cdef int[::1] runs = self._runs
        cdef int[::1] places, out
        cdef int total = 0
        cdef int place, length, i, j
        if count > len(self._places):
            self._places = ints(2 * count)
        places = self._places
        for i in range(count):
            places[i] = first[queries[i]]
        for i in range(count):
            total += (places[i] > 0) + (runs[-min(places[i], 0)] >> RUN_SHIFT)  # no run at 0
        column = _ZERO * total
        out = column
        total = 0
        for i in range(count):
            place = places[i]
            if place > 0:
                out[total] = place
                total += 1
            elif place:
                length = runs[-place] >> RUN_SHIFT
                place = 1 - place
                for j in range(length):
                    out[total + j] = runs[place + j]
                total += length
        return column

    def size_bytes(self) -> int:
        return 4 * (len(self._first) + len(self._runs))

    cdef int _moved(self, int place) except -1:
        """The run in a block of twice the size."""
        cdef int i
        cdef int bits = self._runs[place] & RUN_BITS
        cdef int to = self._take(bits + 1)
        for i in range(1, 1 << bits):
            self._runs[to + i] = self._runs[place + i]
        self._runs[to] = self._runs[place] + 1
        self._give_up(place, bits)
        return to

    cdef int _take(self, int bits) except -1:
        """A block of 2^bits numbers, at a multiple of its size or of a line; its run is empty."""
        cdef int place
        cdef int size = 1 << bits
        free = self._free.get(bits)
        if free:
            place = free.pop()
        else:
            while self._used & (min(size, _LINE) - 1):  # the blocks up to there are for others
                self._give_up(self._used, _BITS_MIN)
                self._used += 1 << _BITS_MIN
            place = self._used
            self._used = place + size
            if self._used > len(self._runs):
                self._runs = grown(self._runs, self._used + self._used // 2)
        self._runs[place] = bits
        return place

    cdef int _give_up(self, int place, int bits) except -1:
        self._free.setdefault(bits, []).append(place)
        return 0


# -------------------------------------------------------------------------------------------------
# Residuals as numbers: the rest to verify of a query whose access predicate holds.
#
# A residual is 0 for nothing; a number above 0 for one equality or twig of an element whose depth
# is known::
#
#     number << CODE_SHIFT | CODE_TWIG | CODE_ABSOLUTE | depth
#
# CODE_ABSOLUTE says that the depth counts from the root, else it counts up from the candidate's
# element.  Below 0 it is a record of ``RecordPool`` with its sign turned::
#
#     MODE_FIXED    required count      | position check | …          elements of known depth
#     MODE_ON_PATH  required count      | offset … | step | step …    some way down to the element
#     MODE_BELOW    the same, for a nested path                       some way down from it
#
#     step          is_descendant symbol count | check | …
#     check         kind a b
#
#     kind            a          b         what is asked of the element
#     CHECK_ATOM      atom                 an equality
#     LESS to         attribute  number    a comparison by operator, see AtomTable
#       AT_LEAST
#     CHECK_EXISTS    TEXT_NODE            of an attribute PRESENCE says that, an atom
#     CHECK_DIFFERS   attribute  atom      some value that is another
#     CHECK_NESTED    record               a path found below
#     CHECK_TWIG      twig                 the same, of nothing but names: see Twigs
#     CHECK_ANYWHERE  record               a path found from the message, looked for once a message
#     CHECK_VERIFIED  operator             whatever else: see yfilter/operators
#
# ``required`` is what the message must contain somewhere: ``atom << REQUIRED_SHIFT |
# REQUIRED_ATOM``, ``symbol << REQUIRED_SHIFT`` or 0.  A ``position`` is ``steps up <<
# POSITION_SHIFT``, or ``depth << POSITION_SHIFT | POSITION_ABSOLUTE``.


# -------------------------------------------------------------------------------------------------
# Atoms: the comparisons that stand in profiles, each once.
#
# An *equality* ``@name = "value"`` is found by hashing the bytes of a value as they stand in the
# message; that with a number, ``@name = 9``, by the number that they say, since ``9.0`` equals it,
# too.  Its value is ``number_key``, which is no text's.  A *range* is what all comparisons ``@name
# < number`` of one attribute and operator have in common; their numbers stand with the profiles, in
# order, each kept once.
#
# An atom is a row of ``atoms``, an AtomRow of 32 bytes::
#
#     ATTRIBUTE           whose values it is about
#     HASH                of attribute and value
#     PLACE, LENGTH       of the value in ``octets``; of a range the operator, and -1
#     USERS               how many hold it; a free row has none
#     FIRST_EDGE, EDGES   the first node of the trie on an edge of it, and how many there are
#     SEEN                where it was met last (see MessageView)
#
# ``contains`` and its like are atoms with keys of their own, which are found by TextTests.
#
# Equalities of one attribute stand in an open-addressing table together with all others.


# The key of a text test: TEXT_TEST, its kind, the text; at most TEXT_MAX octets of it.  That of a
# test of words has their needles (see words.py) in the place of the text, at most TEXTS_MAX, with a
# zero between them.
TEXT_TESTS = {
    "contains": CONTAINS,
    "starts-with": STARTS_WITH,
    "ends-with": ENDS_WITH,
    "matches": MATCHES,
    **{name: SPACED + spacing for name, spacing in WORD_FUNCTIONS.items()},
}
TEXT_MAX = 64
TEXTS_MAX = 64

# The key of a test that each value of its attribute passes.
PRESENCE = bytes((TEXT_TEST, PRESENT))

_ATOM_SEED = hash("yfilter.index.atoms") & 0xFFFFFFFFFFFF


class TextTestTable(Protocol):
    """A finder of text tests in values: see TextTests."""

    def add(self, attribute: int, key: bytes, atom: int) -> int: ...
    def remove(self, attribute: int, key: bytes) -> int: ...


cdef class AtomTable:
    """Equalities, ranges and numbers, with a count of users each.

    ``equalities`` of an attribute counts those with a text, ``number_equalities`` those with a
    number, ``tests`` those that ``text_tests`` finds; ``length_max`` is the longest text ever among
    them (longer ones of a message need not be hashed).  ``ranges`` of ``attribute * RANGES +
    operator - 1`` is the range, 0 where there is none, and ``range_counts`` how many an attribute
    has; ``numbers`` are the doubles that ranges
    compare with.
    """

    def __init__(self) -> None:
        self.rows = ints(1)
        self._cover_rows(64)
        self.octets = octets(256)
        self.length_max = ints(16)
        self.equalities = ints(16)
        self.number_equalities = ints(16)
        self.tests = ints(16)
        self.ranges = ints(16 * RANGES)
        self.range_counts = ints(16)
        self.numbers = doubles(64)
        self._slots = longs(64)  # tag << 32 | atom, or 0
        self._bound = 1
        self._count = 0
        self._octets_used = 0
        self._octets_free = 0
        self._free_atoms: list[int] = []
        self._free_octets: dict[int, list[int]] = {}
        self._number_of: dict[float, int] = {}
        self._number_users: list[int] = []
        self._free_numbers: list[int] = []
        self._seed = _ATOM_SEED
        self.text_tests: TextTestTable | None = None
        self._touched = 0
        self._which = ints(256)
        self._slot = array("I", bytes(4 * 256))
        self._hash = array("I", bytes(4 * 256))
        # From 7 on: number_key of the second double.
        self._key = self._key_bytes = bytearray(b"\xff" * 16)
        self._double = cast("array[float]", memoryview(self._key_bytes).cast("d"))

    cdef int find_all(
        self, const unsigned char* values, int[::1] attributes, const int[::1] offsets, int count,
        int[::1] found
    ) except -1:
        """Set ``found`` to the equality of each of ``count`` values that lie end to end, or to 0.

        ``attributes`` has the attribute of each, or 0 where nobody asks for it.
        """
        # PERF: each loop is of cache misses that do not wait for each other.
        cdef long long[::1] slots = self._slots
        cdef unsigned int mask = len(slots) - 1
        cdef long long low = 0xFFFFFFFF
        cdef int attribute
        cdef unsigned int hashed, slot
        cdef long long tag
        cdef int touched = 0
        cdef int wanted = 0
        cdef int kept = 0
        cdef int i, k
        if count > len(self._which):
            self._which = ints(2 * count)
            self._slot = array("I", bytes(8 * count))
            self._hash = array("I", bytes(8 * count))
        for i in range(count):
            found[i] = 0
            attribute = attributes[i]
            if attribute and offsets[i + 1] - offsets[i] <= self.length_max[attribute]:
                hashed = value_hash(self._seed, attribute, values, offsets[i], offsets[i + 1])
                touched ^= slots[hashed & mask] != 0
                self._which[wanted] = i
                self._hash[wanted] = hashed
                wanted += 1
        for k in range(wanted):
            hashed = self._hash[k]
            slot = hashed & mask
            tag = hashed & 0x7FFFFFFF
            while slots[slot] != 0 and slots[slot] >> 32 != tag:
                slot = (slot + 1) & mask
            if slots[slot] != 0:
                touched ^= self.atoms[(slots[slot] & low)].place
                self._which[kept] = self._which[k]
                self._hash[kept] = hashed
                self._slot[kept] = slot
                kept += 1
        for k in range(kept):
            touched ^= self.octets[self.atoms[(slots[self._slot[k]] & low)].place]
        self._touched = touched
        for k in range(kept):
            i = self._which[k]
            found[i] = self._find_from(
                self._slot[k], attributes[i], values, offsets[i], offsets[i + 1], self._hash[k]
            )
        return 0

    cdef int find(self, int attribute, const unsigned char* values, int first, int last) noexcept:
        """The equality of an attribute with ``values[first:last]``, or 0."""
        cdef unsigned int hashed = value_hash(self._seed, attribute, values, first, last)
        cdef unsigned int slot = hashed & (len(self._slots) - 1)
        return self._find_from(slot, attribute, values, first, last, hashed)

    cdef int find_number(self, int attribute, double number) noexcept:
        """The equality of an attribute with a number, which is not NaN, or 0."""
        self._double[1] = number + 0.0  # of 0 and -0 the first
        return self.find(attribute, self._key, 7, 16)

    cdef int _find_from(
        self, unsigned int slot, int attribute, const unsigned char* values, int first, int last,
        unsigned int hashed
    ) noexcept:
        """The same, from a slot on that is on its way."""
        cdef long long atom
        cdef int i, place
        cdef int length = last - first
        cdef unsigned int mask = len(self._slots) - 1
        cdef long long low = 0xFFFFFFFF
        cdef long long tag = hashed & 0x7FFFFFFF
        while self._slots[slot] != 0:
            if self._slots[slot] >> 32 == tag:
                atom = self._slots[slot] & low
                if self.atoms[atom].attribute == attribute and self.atoms[atom].length == length:
                    place = self.atoms[atom].place
                    i = 0
                    while i < length and self.octets[place + i] == values[first + i]:
                        i += 1
                    if i == length:
                        return atom
            slot = (slot + 1) & mask
        return 0

    cpdef int acquire(self, int attribute, bytes value) except -1:
        """The equality of an attribute with a text in UTF-8 or ``number_key``; see ``release``."""
        cdef int atom, i, place
        cdef int length = len(value)
        cdef unsigned int hashed, slot
        cdef const unsigned char* values = value
        self.cover(attribute)
        atom = self.find(attribute, values, 0, length)
        if atom:
            self.atoms[atom].users += 1
            return atom
        if 2 * (self._count + 1) > len(self._slots):
            self._rehash(2 * len(self._slots))
        atom = self._new_atom()
        place = self._place_for(length)
        for i in range(length):
            self.octets[place + i] = values[i]
        hashed = value_hash(self._seed, attribute, values, 0, length)
        self.atoms[atom].attribute = attribute
        self.atoms[atom].hash = hashed & 0x7FFFFFFF
        self.atoms[atom].place = place
        self.atoms[atom].length = length
        if _is_number(value):
            self.number_equalities[attribute] += 1
        elif value[:1] == b"\xfe":
            self.tests[attribute] += 1
            assert self.text_tests is not None
            self.text_tests.add(attribute, value, atom)
        else:
            self.equalities[attribute] += 1
            self.length_max[attribute] = max(self.length_max[attribute], length)
        self._count += 1
        slot = hashed & (len(self._slots) - 1)
        while self._slots[slot] != 0:
            slot = (slot + 1) & (len(self._slots) - 1)
        self._slots[slot] = _entry(hashed, atom)
        return atom

    cpdef int acquire_range(self, int attribute, int operator) except -1:
        """The range of an attribute and an operator; ``release`` undoes it."""
        cdef int atom
        self.cover(attribute)
        atom = self.ranges[attribute * RANGES + operator - 1]
        if atom:
            self.atoms[atom].users += 1
            return atom
        atom = self._new_atom()
        self.ranges[attribute * RANGES + operator - 1] = atom
        self.range_counts[attribute] += 1
        self.atoms[atom].attribute = attribute
        self.atoms[atom].place = operator
        self.atoms[atom].length = -1
        return atom

    cpdef int release(self, int atom) except -1:
        """Take back one use; gives the attribute whose atom is gone by that, or 0."""
        cdef int attribute = self.atoms[atom].attribute
        self.atoms[atom].users -= 1
        if self.atoms[atom].users > 0:
            return 0
        if self.atoms[atom].length < 0:
            self.ranges[attribute * RANGES + self.atoms[atom].place - 1] = 0
            self.range_counts[attribute] -= 1
        else:
            self._unlink(atom)
            if self.octets[self.atoms[atom].place] == NUMBER_KEY and self.atoms[atom].length:
                self.number_equalities[attribute] -= 1
            elif self.octets[self.atoms[atom].place] == TEXT_TEST and self.atoms[atom].length:
                self.tests[attribute] -= 1
                assert self.text_tests is not None
                self.text_tests.remove(attribute, self._value(atom))
            else:
                self.equalities[attribute] -= 1
                if self.equalities[attribute] == 0:
                    self.length_max[attribute] = 0
            self._free_octets.setdefault(_rounded(self.atoms[atom].length), []).append(
                self.atoms[atom].place
            )
            self._octets_free += _rounded(self.atoms[atom].length)
            self._count -= 1
        self.atoms[atom].attribute = 0
        self._free_atoms.append(atom)
        return attribute

    cpdef int acquire_number(self, double value) except -1:
        """The place of a double in ``numbers``; not NaN."""
        cdef int number
        known = self._number_of.get(value)
        if known is not None:
            self._number_users[known] += 1
            return known
        if self._free_numbers:
            number = self._free_numbers.pop()
            self._number_users[number] = 1
        else:
            number = len(self._number_users)
            self._number_users.append(1)
            if number >= len(self.numbers):
                self.numbers = grown(self.numbers, 2 * number)
        self.numbers[number] = value
        self._number_of[value] = number
        return number

    cpdef int release_number(self, int number) except -1:
        self._number_users[number] -= 1
        if not self._number_users[number]:
            del self._number_of[self.numbers[number]]
            self._free_numbers.append(number)
        return 0

    cpdef int cover(self, int attribute) except -1:
        """Make the columns long enough for an attribute's number."""
        if attribute >= len(self.equalities):
            size = 2 * attribute
            self.equalities = grown(self.equalities, size)
            self.number_equalities = grown(self.number_equalities, size)
            self.tests = grown(self.tests, size)
            self.length_max = grown(self.length_max, size)
            self.ranges = grown(self.ranges, size * RANGES)
            self.range_counts = grown(self.range_counts, size)
        return 0

    cpdef int constants(self, int attribute) except -1:
        """How many texts and numbers an attribute is to be equal to."""
        if attribute >= len(self.equalities):
            return 0
        return (
            self.equalities[attribute] + self.number_equalities[attribute] + self.tests[attribute]
        )

    cdef int users_of(self, int attribute, bytes value) except -1:
        """How many hold the equality of an attribute with a text or the key of one."""
        cdef int atom = self.find(attribute, value, 0, len(value))
        return self.atoms[atom].users if atom else 0

    cpdef bint is_range(self, int atom) except -1:
        return self.atoms[atom].length < 0

    def describe(self, atom: int) -> str:
        """For people."""
        if self.is_range(atom):
            return ("<", "<=", ">", ">=")[self.atoms[atom].place - 1] + " number"
        key = self._value(atom)
        if _is_number(key):
            (number,) = struct.unpack_from("=d", key, 1)
            return f"= {number_text(number)}"
        if key[:1] == b"\xfe" and key[1] == INTEGER:
            return f"by its value: {key[2:].decode()}"
        if key[:1] == b"\xfe" and key[1] == PLACE:
            return key[2:].decode()
        if key[:1] == b"\xfe" and key[1] == PROGRAM:
            return f"by its text: {program_described(key[2:].decode())}"
        if key == PRESENCE:
            return "there"
        if key[:1] == b"\xfe" and key[1] == MATCHES:
            pattern, flags = pattern_in(key[2:].decode())
            return f'matches "{pattern}"{f" {flags}" if flags else ""}'
        if key[:1] == b"\xfe" and key[1] > SPACED:
            return " or ".join(described(key[1] - SPACED, text) for text in key[2:].split(b"\0"))
        if key[:1] == b"\xfe":
            name = next(name for name, kind in TEXT_TESTS.items() if kind == key[1])
            return f'{name} "{key[2:].decode()}"'
        return f'= "{key.decode()}"'

    def value(self, atom: int) -> str:
        """The text of an equality that has one."""
        return self._value(atom).decode()

    @property
    def bound(self) -> int:
        """All atoms are below."""
        return self._bound

    @property
    def count(self) -> int:
        return self._bound - 1 - len(self._free_atoms)

    def size_bytes(self) -> int:
        return (
            4 * (len(self.rows) + 2 * len(self._slots) + 8 * len(self.equalities))
            + len(self.octets)
            + 8 * len(self.numbers)
        )

    def used_bytes(self) -> int:
        atoms = self.count
        return 32 * atoms + 16 * self._count + self._octets_used - self._octets_free

    def _value(self, atom: int) -> bytes:
        place, length = self.atoms[atom].place, self.atoms[atom].length
        return bytes(self.octets[place + i] for i in range(length))

    cdef int _cover_rows(self, int count) except -1:
        """Room for so many atoms."""
        self.rows = grown(self.rows, ATOM_WIDTH * count)
        self.atoms = <AtomRow*>&self.rows[0]
        return 0

    cdef int _new_atom(self) except -1:
        cdef int atom
        if self._free_atoms:
            atom = self._free_atoms.pop()
        else:
            atom = self._bound
            if atom == len(self.rows) // ATOM_WIDTH:
                self._cover_rows(atom + atom // 2 + 8)
            self._bound = atom + 1
        memset(&self.atoms[atom], 0, sizeof(AtomRow))
        self.atoms[atom].users = 1
        return atom

    cdef int _place_for(self, int length) except -1:
        """Room for a value; rooms are multiples of 8 bytes."""
        cdef int place
        cdef int room = _rounded(length)
        free = self._free_octets.get(room)
        if free:
            self._octets_free -= room
            place = free.pop()
            if not free:
                del self._free_octets[room]
            return place
        place = self._octets_used
        if place + room > len(self.octets):
            self.octets = grown(self.octets, (place + room) * 3 // 2)
        self._octets_used = place + room
        return place

    cdef int _rehash(self, int capacity) except -1:
        cdef int atom
        cdef unsigned int slot, hashed
        cdef unsigned int mask = capacity - 1
        self._slots = longs(capacity)
        for atom in range(1, self._bound):
            if self.atoms[atom].users > 0 and self.atoms[atom].length >= 0:
                hashed = self.atoms[atom].hash
                slot = hashed & mask
                while self._slots[slot] != 0:
                    slot = (slot + 1) & mask
                self._slots[slot] = _entry(hashed, atom)
        return 0

    cdef int _unlink(self, int atom) except -1:
        """Take an equality out of the table, and close the hole."""
        cdef unsigned int mask = len(self._slots) - 1
        cdef unsigned int hole = self.atoms[atom].hash
        cdef unsigned int slot, home
        cdef long long low = 0xFFFFFFFF
        hole = hole & mask
        while self._slots[hole] & low != atom:
            hole = (hole + 1) & mask
        slot = (hole + 1) & mask
        while self._slots[slot] != 0:
            home = (self._slots[slot] >> 32) & mask
            if ((slot - home) & mask) >= ((slot - hole) & mask):
                self._slots[hole] = self._slots[slot]
                hole = slot
            slot = (slot + 1) & mask
        self._slots[hole] = 0
        return 0


def number_key(number: float) -> bytes:
    """The value of an equality with a number: an octet that no UTF-8 has, and the double."""
    return b"\xff" + struct.pack("=d", number + 0.0)


def test_key(name: str, text: str) -> bytes | None:
    """The key of a text test, by the name of its function; None for one that cannot be found."""
    texts = needles_of(name, [text]) if TEXT_TESTS[name] > SPACED else [text.encode()]
    if name != "matches":
        if not texts or len(texts) > TEXTS_MAX or NOWHERE in texts:
            return None
        if not all(0 < len(one) <= TEXT_MAX for one in texts):
            return None
    return bytes((TEXT_TEST, TEXT_TESTS[name])) + b"\0".join(texts)


def _is_number(key: bytes) -> bool:
    return key[:1] == b"\xff"


cdef inline long long _entry(unsigned int hashed, int atom) noexcept:
    cdef long long tag = hashed & 0x7FFFFFFF
    return tag << 32 | atom


def _rounded(length: int) -> int:
    return (length + 7) // 8 * 8


# -------------------------------------------------------------------------------------------------
# Trie: the paths of all indexed queries at once, with shared prefixes (section 4.1).
#
# The NFA of the paper, where one predicate of each query, its access predicate, is an edge in two
# levels, so that a query is touched only where its predicate holds::
#
#     /nitf/head[@id = "x"]//series       1 ─nitf▶ 2 ─head▶ 3 ─@id▶ 4 ─"x"▶ 5 ─ε▶ 6⟲ ─series▶ 7
#
# An edge is a number: ``symbol << EDGE_SHIFT | EDGE_NAME`` a name test, EDGE_LOOP the ε-move to a
# state that stays; EDGE_ATTRIBUTE is made so of an attribute, EDGE_ATOM of an atom of that
# attribute.
#
# Each priority class of queries of each reading has a root of its own, nodes 1 to ROOTS, so that a
# run of one meets nothing of the others.
#
# A node is a row of ``nodes``, a TrieNode of 40 bytes::
#
#     PARENT, EDGE       the node above and the edge from it
#     LOOP, FIRST_QUERY  the node behind the ε-move, the first query accepted; or 0
#     USES               how many children, loops and queries it has
#     CHANGED            time of the last change
#     NEXT, PREVIOUS     node on an edge of the same atom
#     NAMES, EDGES       a bit for each name edge, for each other edge, that it had (``edge_bit``)
#
# A query is a row of ``queries``, a TrieQuery of 20 bytes::
#
#     NODE               where it is accepted
#     NEXT, PREVIOUS     query of the node
#     RESIDUAL, NUMBER   what is left to verify (automaton.pxd); of its range
#
# A query that stands for another one, a second way in which that is found, has it in ``alias``.
#
# Children are found by an open-addressing table of node numbers, 6 to 12 bytes a node, whose keys
# are parent and edge of the node itself.  A node lives as long as something uses it; free rows are
# linked by PARENT, or NODE, and used again.
#
# Every change is noted under a time: which node, which edge it has now, or LOG_QUERIES for the
# queries accepted, or LOG_REUSED, and when the node changed before.  The last LOG_SIZE changes can
# be looked up.  An added query is one change, of the node where its own part of the trie begins; a
# removed one is one of its node.  That nodes are gone is not noted: who still knows them finds
# nothing behind them, and is told when their numbers are used again, LOG_REUSED.  To make that
# rare, an eighth of the rows stays free.


def root_of(priority: int, reading: int) -> int:
    """The root of a class of queries of a reading."""
    return 1 + priority + ROOTS // 2 * reading


class QueryRow(NamedTuple):
    """Where a query is accepted, what is left to verify, and the number of its range."""

    node: int
    residual: int
    number: int


cdef class Trie(Slots):
    """Nodes, queries and the log of changes; ``clock`` is the time of the last one."""

    def __init__(self, atoms: AtomTable) -> None:
        super().__init__()
        self.node_rows = self.query_rows = ints(1)
        self._cover_nodes(64)
        self._cover_queries(64)
        self.alias = ints(1)
        self.log_node = ints(LOG_SIZE)
        self.log_edge = ints(LOG_SIZE)
        self.log_before = ints(LOG_SIZE)
        self.clock = 1
        self._recent = array("Q", bytes(8 * 512))  # a bit for nodes changed since a time
        self._recent_since = 0
        self._node_bound = ROOTS + 1
        self.node_count = ROOTS
        self._first_free = 0
        self._last_free = 0
        self._query_bound = 1
        self.query_count = 0
        self._free_query = 0
        self._atoms = atoms
        for root in range(1, ROOTS + 1):
            self.nodes[root].uses = 1  # a root is never pruned

    cdef int child(self, int node, int edge) noexcept:
        """The node behind an edge, or 0; not for EDGE_LOOP."""
        cdef unsigned int mask = len(self._slots) - 1
        cdef unsigned int slot = _hash_of_edge(node, edge) & mask
        cdef int found = self._slots[slot]
        while found != 0:
            if self.nodes[found].parent == node and self.nodes[found].edge == edge:
                return found
            slot = (slot + 1) & mask
            found = self._slots[slot]
        return 0

    cdef int child_of_all(self, int[::1] parents, int count, int edge, int[::1] found) noexcept:
        """``child`` of many nodes at once, by the same edge."""
        # PERF: each loop is of cache misses that do not wait for each other.
        cdef TrieNode* nodes = self.nodes
        cdef int[::1] slots = self._slots
        cdef unsigned int mask = len(self._slots) - 1
        cdef int other = 0
        cdef int i
        for i in range(count):
            found[i] = slots[_hash_of_edge(parents[i], edge) & mask]
        for i in range(count):
            other |= nodes[found[i]].parent ^ parents[i]
            other |= nodes[found[i]].edge ^ edge
        if other:
            for i in range(count):
                if nodes[found[i]].parent != parents[i] or nodes[found[i]].edge != edge:
                    found[i] = self.child(parents[i], edge)
        return 0

    cdef int next_changed(self, int[::1] column, int first, int end, int time) noexcept:
        """The first place, from ``first`` on, of a node that changed after a time; or ``end``."""
        # PERF: the filter spares the look at nearly all nodes, each a cache miss.
        cdef int i, node
        cdef bint filtered = time >= self._recent_since
        for i in range(first, end):
            node = column[i]
            if filtered and not (self._recent[(node >> 6) & 511] >> (node & 63)) & 1:
                continue
            if self.nodes[node].changed > time:
                return i
        return end

    cpdef int extend(self, int node, int edge) except -1:
        """The node behind an edge, made if there is none."""
        cdef int made = self.child(node, edge)
        if made:
            return made
        self.make_room(self.node_count)
        if self._is_known(node):
            self._note(node, edge)
        made = self._new_node(node, edge)
        self.enter(made)
        if edge & EDGE_ATTRIBUTE:  # or an atom, which has that bit, too
            self.nodes[node].edges |= edge_bit(edge)
        else:
            self.nodes[node].names |= name_bit(edge)
        if edge & EDGE_KIND == EDGE_ATOM:
            self._link_edge(made, edge >> EDGE_SHIFT)
        return made

    cpdef int loop_of(self, int node) except -1:
        """The looping node behind the ε-move, made if there is none."""
        cdef int made = self.nodes[node].loop
        if made == 0:
            if self._is_known(node):
                self._note(node, EDGE_LOOP)
            made = self._new_node(node, EDGE_LOOP)
            self.nodes[node].loop = made
        return made

    cpdef int add_query(self, int node, int residual, int number) except -1:
        """A query accepted at a node; its number, from 1."""
        cdef int query = self._free_query
        cdef int first
        if query:
            self._free_query = self.queries[query].node
        else:
            query = self._query_bound
            if query == len(self.query_rows) // QUERY_WIDTH:
                self._cover_queries(query + query // 2 + 8)
            self._query_bound = query + 1
        self.query_count += 1
        first = self.nodes[node].first_query
        self.queries[query] = TrieQuery(node, first, 0, residual, number)
        if first:
            self.queries[first].previous = query
        self.nodes[node].first_query = query
        if self._is_known(node):
            self._note(node, LOG_QUERIES)
        self.nodes[node].uses += 1
        return query

    cdef int set_alias(self, int query, int other) except -1:
        """A query stands for another one, which is found where it is."""
        if query >= len(self.alias):
            self.alias = grown(self.alias, query + query // 2 + 8)
        self.alias[query] = other
        return 0

    cpdef int answers(self, int query) except -1:
        """The query that is found where this one is: itself, or the one that it stands for."""
        if query < len(self.alias) and self.alias[query]:
            return self.alias[query]
        return query

    cpdef int remove_query(self, int query) except -1:
        """Take a query out, and the nodes that only it used."""
        cdef int node = self.queries[query].node
        cdef int following = self.queries[query].next
        cdef int previous = self.queries[query].previous
        if following:
            self.queries[following].previous = previous
        if previous:
            self.queries[previous].next = following
        else:
            self.nodes[node].first_query = following
        if query < len(self.alias):
            self.alias[query] = 0
        self.queries[query].node = self._free_query
        self._free_query = query
        self.query_count -= 1
        self._note(node, LOG_QUERIES)
        self.nodes[node].uses -= 1
        self._prune(node)
        return 0

    def edges_to(self, node: int) -> list[int]:
        """The edges from the root to a node, backwards."""
        edges = []
        while node > ROOTS:
            edges.append(self.nodes[node].edge)
            node = self.nodes[node].parent
        return edges

    def restart_clock(self) -> None:
        """Begin at time 1 again; every caller has to forget the times that it remembers."""
        for node in range(self._node_bound):
            self.nodes[node].changed = 0
        self.clock = 1
        self._recent_since = 0

    def size_bytes(self) -> int:
        return 4 * (
            len(self.node_rows)
            + len(self.query_rows)
            + len(self.alias)
            + len(self._slots)
            + 3 * LOG_SIZE
        )

    def used_bytes(self) -> int:
        return 48 * self.node_count + 20 * self.query_count

    @property
    def query_bound(self) -> int:
        """All queries are below."""
        return self._query_bound

    def children(self, nodes_max: int) -> dict[int, list[int]]:
        """About so many of the oldest nodes under their parents, up to the roots; for people."""
        found: dict[int, list[int]] = {}
        seen = set(range(1, ROOTS + 1))
        for oldest in range(ROOTS + 1, self._node_bound):
            if len(seen) - ROOTS >= nodes_max:
                break
            node = oldest
            while node not in seen and self.nodes[node].edge != -1:
                seen.add(node)
                parent = self.nodes[node].parent
                found.setdefault(parent, []).append(node)
                node = parent
        return found

    cdef int _cover_nodes(self, int count) except -1:
        """Room for so many nodes."""
        self.node_rows = grown(self.node_rows, NODE_WIDTH * count)
        self.nodes = <TrieNode*>&self.node_rows[0]
        return 0

    cdef int _cover_queries(self, int count) except -1:
        """Room for so many queries."""
        self.query_rows = grown(self.query_rows, QUERY_WIDTH * count)
        self.queries = <TrieQuery*>&self.query_rows[0]
        return 0

    # For people.

    def edge_of(self, node: int) -> int:
        return self.nodes[node].edge

    def parent_of(self, node: int) -> int:
        return self.nodes[node].parent

    def queries_of(self, node: int) -> list[int]:
        """The queries that a node accepts."""
        cdef int query = self.nodes[node].first_query
        found = []
        while query:
            found.append(query)
            query = self.queries[query].next
        return found

    def query(self, query: int) -> QueryRow:
        cdef TrieQuery row = self.queries[query]
        return QueryRow(row.node, row.residual, row.number)

    cdef list queries_behind(self, int edge):
        """The same for all nodes behind an edge."""
        cdef int node
        found = [node for node in range(self._node_bound) if self.nodes[node].edge == edge]
        return self.queries_below(array("i", found)) if found else []

    cdef list queries_below(self, int[::1] nodes):
        """The queries accepted at some nodes or behind them, each with its residual; looks at the
        whole trie."""
        cdef int node, above, query
        cdef list found = []
        reached = set(nodes)
        for node in range(ROOTS + 1, self._node_bound):
            if self.nodes[node].edge == -1:
                continue  # a free one
            above = node
            while above > ROOTS and above not in reached:
                above = self.nodes[above].parent
            if above > ROOTS:
                query = self.nodes[node].first_query
                while query:
                    found.append((self.answers(query), self.queries[query].residual))
                    query = self.queries[query].next
        return found

    cdef bint _is_known(self, int node) noexcept:
        """Whether a node is in use; one that is not was made, or is freed, by the same change."""
        return self.nodes[node].uses != 0

    cdef int _prune(self, int node) except -1:
        """Free a node that nothing uses, and then what only led to it."""
        cdef int parent, edge
        while not self._is_known(node):
            parent = self.nodes[node].parent
            edge = self.nodes[node].edge
            if edge == EDGE_LOOP:
                self.nodes[parent].loop = 0
            else:
                self.leave(node)
                if edge & EDGE_KIND == EDGE_ATOM:
                    self._unlink_edge(node, edge >> EDGE_SHIFT)
            self.nodes[node].parent = 0
            self.nodes[node].edge = -1
            if self._first_free:
                self.nodes[self._last_free].parent = node
            else:
                self._first_free = node
            self._last_free = node
            self.node_count -= 1
            self.nodes[parent].uses -= 1
            node = parent
        return 0

    cdef int _new_node(self, int parent, int edge) except -1:
        cdef int node = self._first_free
        cdef int changed
        # Those freed long ago, and only if many are free: few states know them still.
        if node and 8 * (self._node_bound - 1 - self.node_count) > self._node_bound:
            self._first_free = self.nodes[node].parent
            self._note(node, LOG_REUSED)
        else:
            node = self._node_bound
            if node == len(self.node_rows) // NODE_WIDTH:
                self._cover_nodes(node + node // 2 + 8)
            self._node_bound = node + 1
        self.node_count += 1
        changed = self.nodes[node].changed
        memset(&self.nodes[node], 0, sizeof(TrieNode))
        self.nodes[node].changed = changed
        self.nodes[node].parent = parent
        self.nodes[node].edge = edge
        self.nodes[parent].uses += 1
        return node

    cdef int _note(self, int node, int edge) except -1:
        cdef int i
        cdef unsigned long long bit = 1
        self.clock += 1
        self.log_node[self.clock & LOG_MASK] = node
        self.log_edge[self.clock & LOG_MASK] = edge
        self.log_before[self.clock & LOG_MASK] = self.nodes[node].changed
        if self.clock - self._recent_since > 1024:
            for i in range(512):
                self._recent[i] = 0
            self._recent_since = self.clock - 1
        self.nodes[node].changed = self.clock
        self._recent[(node >> 6) & 511] |= bit << (node & 63)
        return 0

    cdef int _link_edge(self, int node, int atom) except -1:
        cdef AtomRow* rows = self._atoms.atoms
        cdef int first = rows[atom].first_edge
        self.nodes[node].next = first
        self.nodes[node].previous = 0
        if first:
            self.nodes[first].previous = node
        rows[atom].first_edge = node
        rows[atom].edges += 1
        return 0

    cdef int _unlink_edge(self, int node, int atom) except -1:
        cdef AtomRow* rows = self._atoms.atoms
        cdef int following = self.nodes[node].next
        cdef int previous = self.nodes[node].previous
        if following:
            self.nodes[following].previous = previous
        if previous:
            self.nodes[previous].next = following
        else:
            rows[atom].first_edge = following
        rows[atom].edges -= 1
        return 0

    cdef unsigned long long home_of(self, int node) except? 0:
        return _hash_of_edge(self.nodes[node].parent, self.nodes[node].edge)


cdef inline unsigned int _hash_of_edge(int node, int edge) noexcept:
    cdef unsigned long long key = node
    cdef unsigned long long multiplier = 0x9E3779B97F4A7C15
    cdef unsigned long long mask = 0xFFFFFFFFFFFFFFFF
    key = (key << 32) ^ edge
    key = ((key ^ (key >> 29)) * multiplier) & mask
    return key >> 32


# -------------------------------------------------------------------------------------------------
# Symbols and labels: name tests and names of messages as small numbers.
#
# A *symbol* is a name test that some path asks for.  A *label* stands for all names that the
# symbols cannot tell apart; it is the triple of the symbols that accept them besides ``*``::
#
#     symbols  1 a    2 Q{u}*    3 *:a    0 *          (0 is always there)
#
#     name     a      accepted by 1, 3       label 1 = (1, 0, 3)
#              u:a                2, 3       label 2 = (0, 2, 3)
#              b                             label 0 = (0, 0, 0)
#
# The automaton moves on labels, which makes one transition of up to four.  The names of a message
# are translated once.  A label's number is never used for another triple, so that a new symbol
# outdates no transition: names that it accepts get new labels.
#
# Attributes are asked for by full name only.  Numbers below ATTRIBUTES are the two values of an
# element that are no attribute: its text nodes and its string value.  A column, a value that is
# computed of an element, has a number as an attribute has.

cdef enum:
    _SLOTS = 2048  # for names that are the same objects; a power of 2


Name: TypeAlias = "tuple[str, str]"  # as NameTest: namespace, local

_NAMES_REMEMBERED = 100_000


class Column(NamedTuple):
    """A value that is computed of elements; ``items`` that count of it, see Operator."""

    items: int
    value: Expression


cdef class Numbers:
    """Numbers for name tests and columns, with a count of users each; a number without users is
    free again."""

    def __init__(self, int first) -> None:
        self.of: dict[tuple[str, str] | Column, int] = {}
        self._users = ints(64)
        self._keys = [NameTest("", "")] * first
        self._free: list[int] = []

    cdef int acquire(self, object key) except? -1:
        """The number of a key; if it is new, minus the number."""
        cdef int number
        found = self.of.get(key)
        if found is not None:
            number = found
            self._users[number] += 1
            return number
        test = NameTest(*key) if type(key) is tuple else key
        if self._free:
            number = self._free.pop()
            self._keys[number] = test
        else:
            number = len(self._keys)
            self._keys.append(test)
            if number >= len(self._users):
                self._users = grown(self._users, 2 * number)
        self._users[number] = 1
        self.of[test] = number
        return -number

    cdef int retain(self, int number) noexcept:
        self._users[number] += 1
        return 0

    cdef bint release(self, int number) except -1:
        """Whether that was the last user."""
        self._users[number] -= 1
        if self._users[number]:
            return False
        del self.of[self._keys[number]]
        self._free.append(number)
        return True

    def key(self, number: int) -> NameTest | Column:
        return self._keys[number]

    def __len__(self) -> int:
        return len(self.of)


cdef class SymbolTable:
    """Symbols with a count of users each, labels, and the names of one message at a time.

    Columns for the run: ``exact``, ``in_namespace`` and ``any_namespace`` of a label are the
    symbols of its triple, 0 where there is none, ``label_bits`` their edge bits; ``only_label`` of
    a symbol is its label if it has one only, 0 if it has none, else SEVERAL.  ``seen`` of a symbol
    is the index of a name that it accepts in the message translated last, if that name's label has
    the symbol; else it
    was not seen (so that nothing has to be cleared).  ``label``, ``attribute`` and ``first`` are
    about the names of that message: label, attribute number or 0, and the first equal name.
    """

    def __init__(self) -> None:
        self.symbols = Numbers(1)
        self.attributes = Numbers(ATTRIBUTES)
        self.labels: dict[tuple[int, int, int], int] = {}
        self._labels_of: dict[int, list[tuple[int, int, int]]] = {}
        self._next_label = 1
        self._remembered: dict[QualifiedName, tuple[int, int]] = {}
        self._slots = array("Q", bytes(8 * KNOWN_WIDTH * _SLOTS))  # address, meaning
        self._slot_names: list[QualifiedName | None] = [None] * _SLOTS
        self.exact = ints(64)
        self.in_namespace = ints(64)
        self.any_namespace = ints(64)
        self.only_label = ints(64)
        self.label_bits = ints(64)
        self.seen = ints(64)
        self.label = ints(64)
        self.attribute = ints(64)
        self.first = ints(64)

    cpdef int acquire(self, object test) except -1:
        """The symbol of a name test; ``release`` undoes it."""
        cdef int symbol
        if test[1] == ANY and test[0] == ANY:
            return 0
        symbol = self.symbols.acquire(test)
        if symbol < 0:
            symbol = -symbol
            if symbol >= len(self.only_label):
                self.only_label = grown(self.only_label, 2 * symbol)
                self.seen = grown(self.seen, 2 * symbol)
            self.only_label[symbol] = 0
            self.seen[symbol] = 0
            self._forget_names()
        return symbol

    cdef int retain(self, int symbol) noexcept:
        if symbol:
            self.symbols.retain(symbol)
        return 0

    cpdef int release(self, int symbol) except -1:
        if symbol and self.symbols.release(symbol):
            self._forget_names()
            for triple in self._labels_of.pop(symbol, ()):
                self.labels.pop(triple, None)
        return 0

    cpdef int acquire_attribute(self, object test) except -1:
        """The number of an attribute; ``release_attribute`` undoes it."""
        cdef int attribute = self.attributes.acquire(test)
        if attribute < 0:
            self._forget_names()
            return -attribute
        return attribute

    cdef int retain_attribute(self, int attribute) noexcept:
        if attribute >= ATTRIBUTES:
            self.attributes.retain(attribute)
        return 0

    cpdef int release_attribute(self, int attribute) except -1:
        if attribute >= ATTRIBUTES and self.attributes.release(attribute):
            self._forget_names()
        return 0

    cpdef int translate(self, list names) except -1:
        """Set ``label``, ``attribute``, ``first`` and ``seen`` for the names of a message."""
        cdef int index, label, exact, name, slot
        cdef unsigned long long address
        cdef unsigned long long low = 0xFFFFFFFF
        cdef int count = len(names)
        if count > len(self.label):
            self.label = ints(2 * count)
            self.attribute = ints(2 * count)
            self.first = ints(2 * count)
        for index in range(count):
            # PERF: the names of messages are the same objects again and again.
            address = _address(names[index])
            slot = KNOWN_WIDTH * ((address >> 4 ^ address >> 15) & (_SLOTS - 1))
            if self._slots[slot + KNOWN_ADDRESS] != address:
                self._learn(names[index], slot, address)
            label = self._slots[slot + KNOWN_MEANING] >> 32
            self.attribute[index] = self._slots[slot + KNOWN_MEANING] & low
            self.label[index] = label
            self.first[index] = index
            if label:
                exact = self.exact[label]
                name = self.seen[exact]
                if exact and name < index and self.exact[self.label[name]] == exact:
                    self.first[index] = name  # with another prefix
                else:
                    self.seen[exact] = index
                self.seen[self.in_namespace[label]] = index
                self.seen[self.any_namespace[label]] = index
        return count

    def describe(self, symbol: int) -> str:
        if symbol == ANY_SYMBOL:
            return ANY
        namespace, local = self.symbols.key(symbol)
        if namespace == ANY:
            return f"*:{local}"
        return f"Q{{{namespace}}}{local}" if namespace or local == ANY else local

    def describe_attribute(self, attribute: int) -> str:
        if attribute < ATTRIBUTES:
            return "text()" if attribute == TEXT_NODE else "."
        key = self.attributes.key(attribute)
        if isinstance(key, Column):
            return unparse(key.value)
        namespace, local = key
        return f"@Q{{{namespace}}}{local}" if namespace else f"@{local}"

    cdef int _learn(self, name, int slot, unsigned long long address) except -1:
        """Put what is known of a name, by its address, into a slot instead of another."""
        known = self._remembered.get(name)
        if known is None:
            known = self._remember(name)
        cdef unsigned long long label, attribute
        label, attribute = known
        self._slots[slot + KNOWN_ADDRESS] = address
        self._slots[slot + KNOWN_MEANING] = label << 32 | attribute
        self._slot_names[slot // KNOWN_WIDTH] = name  # as long as it is held, nothing else is there
        return 0

    def _forget_names(self) -> None:
        """Forget the remembered names, since their meaning has changed."""
        if self._remembered:
            self._remembered.clear()
            self._slots = array("Q", bytes(8 * KNOWN_WIDTH * _SLOTS))

    def _remember(self, name: QualifiedName) -> tuple[int, int]:
        """The label and the attribute number of a name."""
        symbol_of = self.symbols.of
        triple = (
            symbol_of.get((name.namespace, name.local), 0),
            symbol_of.get((name.namespace, ANY), 0),
            symbol_of.get((ANY, name.local), 0),
        )
        label = self.labels.get(triple) or (any(triple) and self._new_label(triple)) or ELSEWHERE
        known = label, self.attributes.of.get((name.namespace, name.local), 0)
        # Messages may hold any names, so the memory of names has a bound.
        if len(self._remembered) >= _NAMES_REMEMBERED:
            self._forget_names()
        self._remembered[name] = known
        return known

    def _new_label(self, triple: tuple[int, int, int]) -> int:
        label = self._next_label
        self._next_label += 1
        if label >= len(self.exact):
            self.exact = grown(self.exact, 2 * label)
            self.in_namespace = grown(self.in_namespace, 2 * label)
            self.any_namespace = grown(self.any_namespace, 2 * label)
            self.label_bits = grown(self.label_bits, 2 * label)
        self.exact[label], self.in_namespace[label], self.any_namespace[label] = triple
        self.labels[triple] = label
        for symbol in triple:
            if symbol:
                self.label_bits[label] |= edge_bit(symbol << EDGE_SHIFT)
                triples = self._labels_of.setdefault(symbol, [])
                triples.append(triple)
                self.only_label[symbol] = label if len(triples) == 1 else SEVERAL
        return label


cdef inline size_t _address(name) noexcept:
    return <size_t>(<void*>(name))


# -------------------------------------------------------------------------------------------------
# TextTests: ``contains`` and its like of all profiles, in one pass over a value.
#
# A test of an attribute is an atom as an equality is (see AtomTable), with a key of its own::
#
#     0xfe   kind   the text
#
# The texts stand in a byte trie, below the number of their attribute.  From each place of a value
# one goes down as far as there is a way; the tests at the nodes passed hold there, as far as the
# place is the right one.  So a value costs its length, and the ways that begin in it, whatever the
# number of tests.  Words and tokens are looked for in the value as words.py spaces it, in tries of
# their own, from its spaces.  A regular expression stands in the trie by the texts that it needs
# (pattern_texts.py); all of which one is found there, and those that need none, are searched for at
# once (pattern_set.py).  Of a number conditions on it are tests, too (number_tests.py), and of a
# text those that differ in the constants of functions on it (text_programs.py), and of a place its
# relations to others (place_index.py).


cdef enum:
    _NO_OCTET = 256
    _NO_ASCII = 0xFF  # in SPACED_OCTETS
    _SPACE = 32
    _SEARCHES_MAX = 0x7FFFFFFF


cdef class TextTests:
    """``add`` and ``remove`` tests; ``found`` has the atoms of those that ``find`` found last."""

    def __init__(self, trie: Trie) -> None:
        self._trie = trie
        self._queries: dict[tuple[int, bytes], object] = {}
        # Patterns by attribute and the texts that they need, and those met in a value.
        self._patterns: dict[tuple[int, PatternTexts], int] = {}
        self._sets: dict[int, tuple[PatternSet, list[int]]] = {}
        self._last_set = 0
        self._wanted: set[int] = set()
        self.integers: object | None = None  # see number_tests.py
        self._programs: dict[int, TextPrograms] = {}  # by attribute
        self._places: dict[int, PlaceIndex] = {}  # by attribute
        self.cost = 0  # of what else ``find`` did last, in visits
        self.gave_up = False  # as that was too much
        self.found = ints(64)
        self._seen = ints(64)  # by atom: the search that found it last
        self._spaced = octets(256)
        self._count = 0
        self._search = 0

    cpdef int add(self, int attribute, bytes key, int atom) except -1:
        """A test that is not there yet."""
        if key[1] == INTEGER:
            self.integers.add(attribute, key[2:].decode(), atom)
            self._queries[attribute, key] = atom
        elif key[1] == PROGRAM:
            if attribute not in self._programs:
                self._programs[attribute] = TextPrograms()
            (<TextPrograms> self._programs[attribute]).add(atom, key[2:].decode())
            self._queries[attribute, key] = atom
        elif key[1] == PLACE:
            self._places.setdefault(attribute, PlaceIndex()).add(atom, key[2:].decode())
            self._queries[attribute, key] = atom
        elif key[1] == MATCHES:
            self._add_pattern(attribute, key, atom)
        else:
            queries = [
                self._write(attribute, key[1], text, key[1], atom) for text in key[2:].split(b"\0")
            ]
            self._queries[attribute, key] = queries if len(queries) > 1 else queries[0]
        return 0

    cdef int _write(self, int attribute, int kind, bytes text, int test, int number) except -1:
        """A text of a kind below an attribute; ``test`` and ``number``: what it is found for."""
        cdef Trie trie = self._trie
        cdef const unsigned char* data = text
        cdef int node = trie.extend(1, attribute << EDGE_SHIFT)
        cdef int i
        if SPACED < kind < PRESENT:
            node = trie.extend(node, (_NO_OCTET + kind) << EDGE_SHIFT)
        # The walk for words begins behind spaces.
        for i in range(SPACED < kind < CASELESS, len(text)):
            node = trie.extend(node, data[i] << EDGE_SHIFT)
        return trie.add_query(node, test, number)

    cdef int _add_pattern(self, int attribute, bytes key, int atom) except -1:
        cdef int kind
        pattern, flags = pattern_in(key[2:].decode())
        compiled = compile_pattern(pattern, flags)
        needed = texts_of(compiled, flags)
        place = attribute, needed
        number = self._patterns.get(place)
        if number is None:
            self._last_set += 1
            number = self._patterns[place] = self._last_set
            kind = CASELESS if needed.folded else CONTAINS
            queries = [self._write(attribute, kind, text, MATCHES, number) for text in needed.texts]
            self._sets[number] = PatternSet(), queries
        self._sets[number][0].add(atom, compiled.written)
        self._queries[attribute, key] = place, atom
        return 0

    cpdef int remove(self, int attribute, bytes key) except -1:
        known = self._queries.pop((attribute, key))
        if key[1] == INTEGER:
            self.integers.remove(attribute, known)
            return 0
        if key[1] == PROGRAM:
            if (<TextPrograms> self._programs[attribute]).remove(known) == 0:
                del self._programs[attribute]
            return 0
        if key[1] == PLACE:
            self._places[attribute].remove(known)
            if not len(self._places[attribute]):
                del self._places[attribute]
            return 0
        if key[1] != MATCHES:
            for query in [known] if isinstance(known, int) else known:
                self._trie.remove_query(query)
            return 0
        place, atom = known
        number = self._patterns[place]
        patterns, queries = self._sets[number]
        patterns.remove(atom)
        if not len(patterns):
            for query in queries:
                self._trie.remove_query(query)
            del self._patterns[place], self._sets[number]
        return 0

    cdef int find(self, int attribute, bytes values, int first, int last) except -1:
        """How many tests hold for ``values[first:last]``."""
        cdef const unsigned char* data = values
        cdef Trie trie = self._trie
        cdef int root = trie.child(1, attribute << EDGE_SHIFT)
        cdef int node, kind, length, query
        cdef bint at_words
        self._count = 0
        self.cost = 0
        self.gave_up = False
        if self._search == _SEARCHES_MAX:
            self._seen = ints(len(self._seen))
            self._search = 0
        self._search += 1
        if self._programs:
            programs = self._programs.get(attribute)
            if programs is not None:
                self.cost = (<TextPrograms> programs).run(values[first:last].decode(), self)
        if self._places:
            places = self._places.get(attribute)
            if places is not None:
                for atom in places.find(values[first:last].decode()):
                    self._emit(atom)
                self.cost, self.gave_up = places.cost, places.gave_up
        if self._patterns:
            number = self._patterns.get((attribute, NO_TEXTS))
            if number is not None:
                self._wanted.add(number)
        if root:
            query = trie.nodes[root].first_query  # there is but PRESENCE, which has no text
            if query:
                self._emit(trie.queries[query].number)
            if trie.nodes[root].names:
                self._walk(root, data, first, last, False)
            for kind in range(SPACED + 1, CASELESS + 1):
                node = trie.child(root, (_NO_OCTET + kind) << EDGE_SHIFT)
                if node == 0:
                    continue
                length = self._space(data, first, last, kind - SPACED)
                if length >= 0:
                    self._walk(node, &self._spaced[0], 1, length, True)
                    continue
                text = spaced(values[first:last], kind - SPACED)
                at_words = kind != CASELESS
                self._walk(node, text, at_words, len(text), at_words)
        if self._wanted:
            text = values[first:last]
            for number in self._wanted:
                for atom in self._sets[number][0].find(text):
                    self._emit(atom)
            self._wanted.clear()
        return self._count

    cdef int _space(self, const unsigned char* data, int first, int last, int spacing) except -2:
        """How long ``data`` is, spaced, as ``_spaced`` is then; -1 for one that is not of ASCII."""
        # PERF: as words.spaced has it, octet by octet.
        cdef const unsigned char* table
        cdef unsigned char octet
        cdef unsigned char* found
        cdef int length = 1
        cdef int i
        known = SPACED_OCTETS.get(spacing)
        if known is None:
            return -1
        table = known
        if last - first + 2 > len(self._spaced):
            self._spaced = octets(2 * (last - first))
        found = &self._spaced[0]
        found[0] = _SPACE
        for i in range(first, last):
            octet = table[data[i]]
            if octet == _NO_ASCII:
                return -1
            if octet != _SPACE or found[length - 1] != _SPACE:
                found[length] = octet
                length += 1
        if found[length - 1] != _SPACE:
            found[length] = _SPACE
            length += 1
        return length

    cdef int _walk(
        self, int root, const unsigned char* data, int first, int last, bint at_words
    ) except -1:
        """Emit the tests in a trie of octets that hold for ``data[first:last]``; those that begin
        behind a space, or anywhere."""
        cdef Trie trie = self._trie
        cdef int start, at, node, query, kind
        for start in range(first, last):
            if at_words and data[start - 1] != _SPACE:
                continue
            node = root
            at = start
            # PERF: the bits of a node's edges spare nearly all look-ups.
            while at < last and trie.nodes[node].names & name_bit(data[at] << EDGE_SHIFT):
                node = trie.child(node, data[at] << EDGE_SHIFT)
                if node == 0:
                    break
                at += 1
                query = trie.nodes[node].first_query
                while query:
                    kind = trie.queries[query].residual
                    if kind == MATCHES:
                        self._wanted.add(trie.queries[query].number)
                    elif (
                        kind == CONTAINS
                        or kind > SPACED
                        or (kind == STARTS_WITH and start == first)
                        or (kind == ENDS_WITH and at == last)
                    ):
                        self._emit(trie.queries[query].number)
                    query = trie.queries[query].next
        return 0

    cdef int _emit(self, int atom) except -1:
        if atom >= len(self._seen):
            self._seen = grown(self._seen, 2 * atom)
        if self._seen[atom] == self._search:
            return 0
        self._seen[atom] = self._search
        if self._count == len(self.found):
            self.found = grown(self.found, 2 * self._count)
        self.found[self._count] = atom
        self._count += 1
        return 0


# -------------------------------------------------------------------------------------------------
# TextPrograms: conditions on one text, each by functions of it with constants of its own.
#
# A program is a row of steps, and a test (text_programs.py has their names and constants)::
#
#     atom, steps    for each step, and the test   its number in STEPS   two constants
#
# Each constant is its place and its length in ``_letters``, or a number and 0.  One without steps
# takes those of the program before it, which are equal.  A text is the characters of a string, at
# one place or the other of ``_work``; a step leaves a part of it, or writes another one.

cdef extern from "Python.h":
    Py_UCS4* PyUnicode_AsUCS4(object text, Py_UCS4* into, Py_ssize_t size, int ends) except NULL

cdef enum:
    _TRANSLATE, _KEEP, _BEFORE, _AFTER, _CONCAT, _SUBSTRING, _LAST, _NORMALIZE, _REPLACE, _TOKENIZE
    _EQUAL, _CONTAINS, _STARTS, _ENDS, _LENGTH
    _STEP_WIDTH = 5
    _CHARACTERS_A_VISIT = 32


cdef class TextPrograms:
    """``add`` and ``remove`` programs by their atoms; ``run`` them on a text."""

    cdef dict _texts
    cdef int[::1] _rows
    cdef unsigned int[::1] _letters, _work
    cdef const unsigned int* _now
    cdef unsigned long long _now_has
    cdef int _count, _added, _size
    cdef long long _cost
    cdef bint _is_made

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._rows = ints(1)
        self._letters = self._work = array("I", [0])
        self._count = 0  # of the numbers in ``_rows``
        self._added = 0  # characters to a text, at most
        self._is_made = False

    cdef int add(self, int atom, str program) except -1:
        self._texts[atom] = program
        self._is_made = False
        return 0

    cdef int remove(self, int atom) except -1:
        """How many are left."""
        del self._texts[atom]
        self._is_made = False
        return len(self._texts)

    cdef int _make(self) except -1:
        letters = array("I", [0])
        rows: list[int] = []
        known: list[object] = []
        self._added = 0
        for program, atom in sorted((program, atom) for atom, program in self._texts.items()):
            *steps, last = json.loads(program)
            before = [] if steps == known else steps
            known = steps
            rows += (atom, len(before))
            added = 0
            for name, *constants in (*before, last):
                rows.append(STEPS[name])
                if name == "concat":
                    added += sum(map(len, constants))
                for constant in constants:
                    if isinstance(constant, int):
                        rows += (constant, 0)
                    else:
                        rows += (len(letters), len(constant))
                        letters.extend(map(ord, constant))
            self._added = max(self._added, added)
        self._letters = letters
        self._rows = array("i", rows)
        self._count = len(rows)
        self._is_made = True
        return 0

    cdef long long run(self, str text, TextTests tests) except -1:
        """Emit the atoms of those that hold; the visits that this counts for."""
        cdef int size = len(text)
        cdef int room, steps
        cdef int at = 0
        cdef unsigned int* whole
        cdef unsigned long long has
        if not self._is_made:
            self._make()
        room = size + self._added + 1
        if size + 2 * room > len(self._work):
            self._work = array("I", bytes(8 * (size + 2 * room)))
        whole = &self._work[0]
        PyUnicode_AsUCS4(text, <Py_UCS4*> whole, len(self._work), 0)
        has = _bits_of(whole, size)
        self._cost = 0
        while at < self._count:
            steps = self._rows[at + 1]
            if steps:
                self._now, self._size, self._now_has = whole, size, has
                self._take(at + 2, steps, whole + size, whole + size + room)
            if self._holds(at + 2 + steps * _STEP_WIDTH):
                tests._emit(self._rows[at])
            at += 2 + (steps + 1) * _STEP_WIDTH
        return 1 + self._cost // _CHARACTERS_A_VISIT

    cdef bint _holds(self, int at) noexcept:
        """Whether a test holds of the text that the steps have left."""
        cdef int first = self._rows[at + 1]
        cdef int length = self._rows[at + 2]
        cdef int step = self._rows[at]
        cdef int size = self._size
        cdef const unsigned int* now = self._now
        cdef const unsigned int* text
        self._cost += 1
        if step == _LENGTH:
            return first <= size <= self._rows[at + 3]
        text = &self._letters[0] + first
        if step == _EQUAL:
            return size == length and memcmp(now, text, 4 * size) == 0
        if step == _STARTS:
            return size >= length and memcmp(now, text, 4 * length) == 0
        if step == _ENDS:
            return size >= length and memcmp(now + (size - length), text, 4 * length) == 0
        if _bits_of(text, length) & ~self._now_has:
            return False
        self._cost += size
        return _place_in(now, size, text, length) >= 0

    cdef int _take(self, int at, int steps, unsigned int* into, unsigned int* other) noexcept:
        """Take the steps of a program, from its first number on."""
        cdef const unsigned int* now = self._now
        cdef const unsigned int* one
        cdef const unsigned int* two
        cdef int size = self._size
        cdef unsigned long long letters = self._now_has
        cdef unsigned long long asked
        cdef int step, first, second, length, second_length, place
        cdef int _i
        for _i in range(steps):
            step = self._rows[at]
            first, length = self._rows[at + 1], self._rows[at + 2]
            second, second_length = self._rows[at + 3], self._rows[at + 4]
            at += _STEP_WIDTH
            self._cost += size + 1
            if step == _SUBSTRING:
                first = min(first, size)
                now, size = now + first, max(min(second, size) - first, 0)
                continue
            if step == _LAST:
                first = min(first, size)
                now, size = now + (size - first), first
                continue
            one, two = &self._letters[0] + first, &self._letters[0] + second
            # PERF: most constants have a letter that the text has not.
            asked = _bits_of(one, length)
            if step == _CONCAT or step == _NORMALIZE:
                letters |= asked | _bits_of(two, second_length) | 1ULL << 32
            elif not asked & letters if step == _TRANSLATE else asked & ~letters and step != _KEEP:
                if step == _TOKENIZE:
                    size = size > 0
                elif step == _BEFORE or step == _AFTER:
                    size = 0
                continue
            if step == _BEFORE:
                size = max(_place_in(now, size, one, length), 0)
                continue
            if step == _AFTER:
                place = _place_in(now, size, one, length)
                now, size = now + (place + length), size - place - length if place >= 0 else 0
                continue
            if step == _TOKENIZE:  # how many there are, in the place of a length
                length = _replaced(now, size, one, length, NULL, length + 1, NULL) - size
                size = length + 1 if size else 0
                continue
            if step == _NORMALIZE:
                length = _normalized(now, size, into)
            elif step == _REPLACE:
                letters |= _bits_of(two, second_length)
                length = _replaced(now, size, one, length, two, second_length, into)
            elif step == _CONCAT:
                memcpy(into, one, 4 * length)
                memcpy(into + length, now, 4 * size)
                memcpy(into + length + size, two, 4 * second_length)
                length += size + second_length
            else:
                self._cost += <long long> size * length
                if step == _KEEP:
                    length = _kept(now, size, one, length, into)
                else:
                    letters |= _bits_of(two, second_length)
                    length = _translated(now, size, one, length, two, second_length, into)
            now, size = into, length
            into, other = other, into
        self._now, self._size, self._now_has = now, size, letters
        return 0


# Each writes a text from another one, and gives its size.

cdef int _normalized(const unsigned int* text, int size, unsigned int* into) noexcept nogil:
    cdef int written = 0
    cdef int i
    for i in range(size):
        if text[i] != 32 and text[i] != 9 and text[i] != 10 and text[i] != 13:
            into[written] = text[i]
            written += 1
        elif written and into[written - 1] != 32:
            into[written] = 32
            written += 1
    return written - 1 if written and into[written - 1] == 32 else written


cdef inline unsigned long long _bits_of(const unsigned int* letters, int count) noexcept nogil:
    """A bit for each, by which most others are told apart from them."""
    cdef unsigned long long bits = 0
    cdef int i
    for i in range(count):
        bits |= 1ULL << (letters[i] & 63)
    return bits


cdef int _kept(
    const unsigned int* text, int size, const unsigned int* letters, int count, unsigned int* into
) noexcept nogil:
    cdef unsigned long long bits = _bits_of(letters, count)
    cdef int written = 0
    cdef int i
    for i in range(size):
        if bits >> (text[i] & 63) & 1 and _place_in(letters, count, text + i, 1) >= 0:
            into[written] = text[i]
            written += 1
    return written


cdef int _translated(
    const unsigned int* text, int size, const unsigned int* old, int count,
    const unsigned int* new, int new_count, unsigned int* into
) noexcept nogil:
    cdef unsigned long long bits = _bits_of(old, count)
    cdef int written = 0
    cdef int i, place
    for i in range(size):
        place = _place_in(old, count, text + i, 1) if bits >> (text[i] & 63) & 1 else -1
        if place < new_count:
            into[written] = text[i] if place < 0 else new[place]
            written += 1
    return written


cdef int _replaced(
    const unsigned int* text, int size, const unsigned int* part, int length,
    const unsigned int* other, int other_length, unsigned int* into
) noexcept nogil:
    """With another text in the place of each part; nothing is written where that is NULL."""
    cdef int written = 0
    cdef int place
    while True:
        place = _place_in(text, size, part, length)
        if place < 0:
            break
        if into != NULL:
            memcpy(into + written, text, 4 * place)
            memcpy(into + written + place, other, 4 * other_length)
        written += place + other_length
        text, size = text + place + length, size - place - length
    if into != NULL:
        memcpy(into + written, text, 4 * size)
    return written + size


cdef inline int _place_in(
    const unsigned int* text, int size, const unsigned int* part, int length
) noexcept nogil:
    """Where a part is first in a text; -1 if it is not there."""
    cdef int i, j
    if length == 0:
        return 0
    for i in range(size - length + 1):
        if text[i] == part[0]:
            for j in range(1, length):
                if text[i + j] != part[j]:
                    break
            else:
                return i
    return -1


# -------------------------------------------------------------------------------------------------
# NodeSet: a set of trie nodes under construction, closed under ε.
#
# ``clear``, ``push`` nodes that are not there yet, ``close``: then ``nodes`` and ``loops``, the
# looping nodes behind them, are in order.


cdef class NodeSet:
    """``count`` nodes and ``loop_count`` loops."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.nodes = ints(256)
        self.loops = ints(256)
        self._parents = ints(256)
        self._children = ints(256)
        self._sorter = Sorter()
        self.count = 0
        self.loop_count = 0

    cdef void clear(self) noexcept:
        """Begin a new set."""
        self.count = 0
        self.loop_count = 0

    cdef int push(self, int node) except -1:
        """Add a node, unless it is 0, and its loop."""
        if node:
            if self.count >= len(self.nodes):
                self.nodes = grown(self.nodes, 2 * self.count)
                self.loops = grown(self.loops, 2 * self.count)
            self.nodes[self.count] = node
            self.count += 1
            self.loops[self.loop_count] = self.trie.nodes[node].loop
            self.loop_count += self.loops[self.loop_count] != 0
        return 0

    cdef int choose_parents(
        self, int[::1] members, int[::1] bits_of, int first, int count, int bits
    ) except -1:
        """How many of a range of nodes have one of some bits; ``push_children`` is about them."""
        cdef int i
        cdef int found = 0
        cdef int[::1] parents
        if count >= len(self._parents):
            self._parents = ints(2 * count)
            self._children = ints(2 * count)
        parents = self._parents
        for i in range(first, first + count):
            parents[found] = members[i]
            found += (bits_of[i] & bits) != 0
        return found

    cdef int push_children(self, int count, int edge) except -1:
        """Add what is behind an edge of the parents, which are so many."""
        cdef int i
        self.trie.child_of_all(self._parents, count, edge, self._children)
        for i in range(count):
            self.push(self._children[i])
        return 0

    cdef int close(self) except -1:
        """All is there."""
        self._sorter.sort(self.nodes, self.count)
        self._sorter.sort(self.loops, self.loop_count)
        return 0


# -------------------------------------------------------------------------------------------------
# LoopSets: the looping nodes that states hold, one generation's, each set once.
#
# A ``//`` that was passed stays with everything below it, so that half of what states hold are
# looping nodes, in a tenth as many different sets.  They accept nothing and have no edges but
# names.  A set is a number, 0 the empty one, and a row of ``sets``, a LoopsRow::
#
#     FIRST, COUNT   its members
#     NAMES          a bit for each name edge of its members
#     TIME           when it was last looked at
#     CHANGED        time of a member's last change, by then
#     TWIN           the same set in the generation before, or -1
#
# ``members`` are in order; ``names`` has the bits of each.

cdef class LoopSets:
    """``union`` makes sets; ``last_change`` brings one up to date."""

    def __init__(self, trie: Trie, bytes_max: int, older: LoopSets | None) -> None:
        bits_max = max(6, (bytes_max // 64).bit_length() - 1)
        self.trie = trie
        self.older = older
        self._set_rows = ints(max(bytes_max // 4, 64))
        self.sets = <LoopsRow*>&self._set_rows[0]
        self.members = ints(max(bytes_max // 4, 64))
        self.names = ints(max(bytes_max // 4, 64))
        self._numbers = IntCache(min(8, bits_max), bits_max)
        self._merged = ints(256)
        self._merged_names = ints(256)
        self._bound = 1
        self._used = 0

    cdef int union(self, int loops, int[::1] nodes, int first, int count) except -1:
        """The set with some nodes more, which stand in order from ``first`` on."""
        # PERF: facts are taken from the set, since each of its nodes is a cache miss.
        cdef int merged = 0
        cdef int node
        cdef int i = self.sets[loops].first
        cdef int end = i + self.sets[loops].count
        cdef int last = first + count
        cdef int change
        if count == 0:
            return loops
        change = self.last_change(loops)
        if count + end - i > len(self._merged):
            self._merged = ints(2 * (count + end - i))
            self._merged_names = ints(2 * (count + end - i))
        while i < end or first < last:
            if first == last or (i < end and self.members[i] < nodes[first]):
                self._merged[merged] = self.members[i]
                self._merged_names[merged] = self.names[i]
                i += 1
            else:
                if i < end and self.members[i] == nodes[first]:
                    i += 1
                node = nodes[first]
                self._merged[merged] = node
                self._merged_names[merged] = self.trie.nodes[node].names
                change = max(change, self.trie.nodes[node].changed)
                first += 1
            merged += 1
        if merged == self.sets[loops].count:
            return loops
        return self._intern(merged, change)

    cdef int carry(self, LoopSets older, int loops) except -1:
        """The same set as one of the generation before."""
        return self.union(0, older.members, older.sets[loops].first, older.sets[loops].count)

    cdef int last_change(self, int loops) except -1:
        """The time of the last change of a member; facts about the members are up to date then."""
        cdef Trie trie = self.trie
        cdef int change = self.sets[loops].time + 1
        cdef int place
        if trie.clock - change >= 8:
            place = self.sets[loops].first + self.sets[loops].count
            if trie.next_changed(self.members, self.sets[loops].first, place, change - 1) < place:
                self._derive(loops)
        else:
            while change <= trie.clock:
                place = trie.log_node[change & LOG_MASK]
                place = place_of(
                    self.members, self.sets[loops].first, self.sets[loops].count, place
                )
                if place >= 0:
                    self.names[place] = trie.nodes[self.members[place]].names
                    self.sets[loops].names |= self.names[place]
                    self.sets[loops].changed = change
                change += 1
        self.sets[loops].time = trie.clock
        return self.sets[loops].changed

    cdef long long used_bytes(self) noexcept:
        cdef long long total = 8 * self._used + 32 * self._bound
        return total + self._numbers.size_bytes()

    cdef int _intern(self, int count, int change) except -1:
        """The set of the nodes in ``_merged``, the last of which changed then."""
        cdef int i
        cdef int bits = 0
        cdef long long key = hash_of(count, self._merged, count)
        cdef int loops = self._find(self._merged, count, key)
        if loops:
            self.last_change(loops)
            return loops
        loops = self._bound
        self._bound = loops + 1
        if LOOPS_WIDTH * (loops + 1) > len(self._set_rows):
            self._set_rows = grown(self._set_rows, 2 * len(self._set_rows))
            self.sets = <LoopsRow*>&self._set_rows[0]
        if self._used + count > len(self.members):
            self.members = grown(self.members, 2 * (self._used + count))
            self.names = grown(self.names, 2 * (self._used + count))
        self.sets[loops].first = self._used
        self.sets[loops].count = count
        self.sets[loops].time = self.trie.clock
        self.sets[loops].twin = -1
        if self.older is not None:
            self.sets[loops].twin = self.older._find(self._merged, count, key) or -1
        for i in range(count):
            bits |= self._merged_names[i]
            self.members[self._used + i] = self._merged[i]
            self.names[self._used + i] = self._merged_names[i]
        self.sets[loops].names = bits
        self.sets[loops].changed = change
        self._used += count
        self._numbers.put(key, loops)
        return loops

    cdef int _find(self, int[::1] nodes, int count, long long key) noexcept:
        cdef int i = 0
        cdef int loops = self._numbers.recall(key)
        if loops < 0 or self.sets[loops].count != count:
            return 0
        while i < count and self.members[self.sets[loops].first + i] == nodes[i]:
            i += 1
        return loops if i == count else 0

    cdef int _derive(self, int loops) except -1:
        cdef int i, node
        cdef int bits = 0
        cdef int last = 0
        for i in range(self.sets[loops].first, self.sets[loops].first + self.sets[loops].count):
            node = self.members[i]
            self.names[i] = self.trie.nodes[node].names
            bits |= self.names[i]
            last = max(last, self.trie.nodes[node].changed)
        self.sets[loops].names = bits
        self.sets[loops].changed = last
        return 0


cdef long long hash_of(int start, int[::1] nodes, int count) noexcept:
    """A number above 0 for the first nodes of a column, and one more."""
    # PERF: a sum, whose products do not wait for each other.
    cdef int i
    cdef long long key
    cdef unsigned long long mask = 0x7FFFFFFFFFFFFFFF
    cdef unsigned long long prime = 0x7F51AFD7ED558CCD
    cdef unsigned long long mixed = start
    cdef unsigned long long product
    mixed = (mixed * 0x1E3779B97F4A7C15) & mask
    for i in range(count):
        product = nodes[i] + 1
        product = (product * prime) & mask
        mixed = (mixed + (product ^ (product >> 31))) & mask
    key = mixed | 1
    return key


# -------------------------------------------------------------------------------------------------
# StateTable: the rows of deterministic states, and what changes of the trie make wrong in them.
#
# A state is a row of ``states``, a StateRow, which is a cache line::
#
#     ROW               row of its transitions
#     ACCEPTS           place of what it accepts (AcceptLists), 0 for nothing, NOT_YET
#     FLAGS             something follows, it has attribute edges, a bit for edges with a transition
#     TIME              when it was last known to be right
#     FIRST, COUNT      its members, without loops
#     TWIN              the same set in the generation before, or 0
#     ELSEWHERE         the state behind a name that no member has an edge for, or NOT_YET
#     NAMES, EDGES      a bit for each name edge, for each other edge, of the members (``edge_bit``)
#     LOOPS             its looping nodes (LoopSets)
#     LEANS_ON          a state that it leans on, or 0
#     DIFFERING_NAMES   a bit for each name edge on which it may differ from that one
#     DIFFERING_EDGES   the same for other edges
#     ROW_THEN          that one's row of transitions when it began to lean
#     TIME_THEN         that one's time, by then
#
# ``members`` are in order; ``member_names`` and ``member_edges`` have the edge bits of each.
#
# The trie's log says what changed since a state was last used; only what that concerns is
# forgotten.  Where a change made another set, that *leans on* the state whose place it takes: it
# has that one's transitions, but on edges that only one of both has or that changed, and with the
# loops that it has more.  A state that a change made begin anew leans on what it was itself, whose
# row nobody writes.


cdef class StateTable:
    """``outdated`` puts a state right, unless its very set may be wrong: then it is left."""

    def __init__(self, trie: Trie, loops: LoopSets, bytes_max: int) -> None:
        bits_max = max(6, (bytes_max // 64).bit_length() - 1)
        self.trie = trie
        self.loops = loops
        self.state_rows = ints(max(bytes_max // 4, 1024))
        self.states = <StateRow*>&self.state_rows[0]
        self.members = ints(max(bytes_max // 4, 64))
        self.member_names = ints(max(bytes_max // 4, 64))
        self.member_edges = ints(max(bytes_max // 4, 64))
        self.transitions = IntCache(min(10, bits_max), bits_max)
        self.bound = self.next_row = 1
        self._members_used = 0
        self._touched = 0
        self._common = ints(64)

    cdef int look_at(self, SymbolTable symbols) except -1:
        """For a new message, whose names and labels these are."""
        self.only_label = symbols.only_label
        self.label_bits = symbols.label_bits

    cdef int append(self, int loops, int[::1] nodes, int count) except -1:
        """A new state, of a set of loops and so many other nodes; it is right."""
        cdef int i
        cdef int state = self.bound
        cdef int first = self._members_used
        if STATE_WIDTH * (state + 1) > len(self.state_rows):
            self.state_rows = grown(self.state_rows, 2 * len(self.state_rows))
            self.states = <StateRow*>&self.state_rows[0]
        if first + count > len(self.members):
            self.members = grown(self.members, 2 * (first + count))
            self.member_names = grown(self.member_names, 2 * (first + count))
            self.member_edges = grown(self.member_edges, 2 * (first + count))
        self.bound = state + 1
        for i in range(count):
            self.members[first + i] = nodes[i]
        self._members_used = first + count
        self.states[state].first = first
        self.states[state].count = count
        self.states[state].loops = loops
        self.states[state].row = self.next_row
        self.next_row += 1
        self.states[state].elsewhere = NOT_YET
        self.states[state].time = self.trie.clock
        self._derive(state)
        return state

    cdef int touch_states(self, int[::1] states, int count) except -1:
        """Of so many states some are going to be put right."""
        # PERF: loads that nothing waits for, so that what follows is in the cache.
        cdef int i
        cdef int touched = 0
        for i in range(count):
            if self.states[states[i]].time != self.trie.clock:
                touched ^= self.members[self.states[states[i]].first]
                touched ^= self.members[
                    self.states[states[i]].first + (self.states[states[i]].count >> 1)
                ]
                touched ^= self.loops.sets[self.states[states[i]].loops].first
        self._touched = touched
        return 0

    cdef int outdated(self, int state) except -1:
        """Whether the set itself may be wrong by now; what else changed is put right."""
        if self.states[state].time == self.trie.clock:
            return False
        if self._put_right(
            state, self.members, self.states[state].first, self.states[state].count, True
        ):
            return True
        if self._put_loops_right(state):
            return True
        self.states[state].time = self.trie.clock
        return False

    cdef int lean(self, int state, int other) except -1:
        """A new state leans on the one whose place it takes; on which edges may they differ?"""
        cdef bint wrong
        cdef int common = self._compare(state, other)
        self.states[state].row_then = self.states[other].row
        self.states[state].time_then = self.states[other].time
        # What changed since then counts.
        self.states[state].time = self.states[other].time
        wrong = self._put_right(state, self._common, 0, common, False)
        if self.states[other].loops == self.states[state].loops:
            wrong |= self._put_loops_right(state)
        else:
            common = self._compare_loops(state, other)
            wrong |= self._put_right(state, self._common, 0, common, False)
        self.states[state].time = self.trie.clock
        self.states[state].leans_on = 0 if wrong else other
        return 0

    cdef int _compare(self, int state, int other) except -1:
        """How many members both have, in ``_common``; on what the others have, they may differ."""
        cdef int i = self.states[other].first
        cdef int j = self.states[state].first
        cdef int end = i + self.states[other].count
        cdef int last = j + self.states[state].count
        cdef int common = 0
        if last - j > len(self._common):
            self._common = ints(2 * (last - j))
        while i < end or j < last:
            if i < end and j < last and self.members[i] == self.members[j]:
                self._common[common] = self.members[j]
                common += 1
                i += 1
                j += 1
            elif j == last or (i < end and self.members[i] < self.members[j]):
                self.states[state].differing_names |= self.member_names[i]
                self.states[state].differing_edges |= self.member_edges[i]
                i += 1
            else:
                self.states[state].differing_names |= self.member_names[j]
                self.states[state].differing_edges |= self.member_edges[j]
                j += 1
        return common

    cdef int _compare_loops(self, int state, int other) except -1:
        """``_compare`` of the loops; the state may have more, not less of them in use."""
        cdef LoopSets loops = self.loops
        cdef LoopsRow theirs = loops.sets[self.states[other].loops]
        cdef LoopsRow own = loops.sets[self.states[state].loops]
        cdef int i = theirs.first
        cdef int j = own.first
        cdef int end = i + theirs.count
        cdef int last = j + own.count
        cdef int common = 0
        if last - j > len(self._common):
            self._common = ints(2 * (last - j))
        while i < end or j < last:
            if i < end and j < last and loops.members[i] == loops.members[j]:
                self._common[common] = loops.members[j]
                common += 1
                i += 1
                j += 1
            elif j == last or (i < end and loops.members[i] < loops.members[j]):
                if self.trie.nodes[loops.members[i]].uses:
                    self.states[state].differing_names = -1
                i += 1
            else:
                self.states[state].differing_names |= loops.names[j]
                j += 1
        return common

    cdef bint leans(self, int state) noexcept:
        """Whether it leans on a state whose transitions are still those of then."""
        cdef int other = self.states[state].leans_on
        if other == state:
            return True  # on its own transitions before it lost them
        return other != 0 and self.states[other].row == self.states[state].row_then

    cdef bint may_differ(self, int state, int edge) noexcept:
        """Whether the state that this one leans on may lead elsewhere by an edge."""
        if edge & EDGE_KIND:
            return self.states[state].differing_edges & edge_bit(edge) != 0
        return (
            self.states[state].differing_names
            & (self.label_bits[edge >> EDGE_SHIFT] | name_bit(0))
            != 0
        )

    cdef long long key(self, int state, int edge) noexcept:
        cdef long long row = self.states[state].row
        return (row << 32) | edge

    cdef long long table_bytes(self) noexcept:
        cdef long long total = self._members_used
        total = 12 * total + 64 * self.bound
        return total + self.loops.used_bytes() + self.transitions.size_bytes()

    cdef int _derive(self, int state) except -1:
        cdef StateRow* row = &self.states[state]
        cdef TrieNode* node
        cdef int i
        cdef int accepting = 0
        cdef int names = self.loops.sets[row.loops].names
        cdef int edges = 0
        for i in range(row.first, row.first + row.count):
            node = &self.trie.nodes[self.members[i]]
            names |= node.names
            edges |= node.edges
            self.member_names[i], self.member_edges[i] = node.names, node.edges
            if node.first_query:
                accepting = NOT_YET
        row.accepts = accepting
        row.flags = (names != 0 or row.loops != 0) | (edges != 0) * FLAG_ATTRIBUTES
        row.names, row.edges = names, edges
        return 0

    cdef int _put_loops_right(self, int state) except -1:
        """``_put_right`` of the loops."""
        cdef LoopSets loops = self.loops
        cdef int number = self.states[state].loops
        if number == 0 or loops.last_change(number) <= self.states[state].time:
            return False
        return self._put_right(
            state, loops.members, loops.sets[number].first, loops.sets[number].count, False
        )

    cdef int _put_right(
        self, int state, int[::1] members, int first, int count, bint own
    ) except -1:
        """Forget what changes of some nodes concern; whether the set itself may be wrong.

        ``own`` says that these are the members of the state, and that it should have their loops.
        """
        # PERF: few changes are looked for among the nodes, else the nodes among the changes.
        cdef Trie trie = self.trie
        cdef int place
        cdef int change = self.states[state].time + 1
        if trie.clock - change >= 8:
            return self._put_right_of_many(state, members, first, count, own)
        while change <= trie.clock:
            place = place_of(members, first, count, trie.log_node[change & LOG_MASK])
            if place >= 0:
                if self._heed(state, change, own):
                    return True
                if own:
                    self._note_bits(place)
            change += 1
        return False

    cdef int _put_right_of_many(
        self, int state, int[::1] members, int first, int count, bint own
    ) except -1:
        cdef Trie trie = self.trie
        cdef int time = self.states[state].time
        cdef int end = first + count
        cdef int change
        cdef int place = trie.next_changed(members, first, end, time)
        while place < end:
            change = trie.nodes[members[place]].changed
            while change > time:
                if trie.clock - change >= LOG_SIZE or self._heed(state, change, own):
                    return True
                change = trie.log_before[change & LOG_MASK]
            if own:
                self._note_bits(place)
            place = trie.next_changed(members, place + 1, end, time)
        return False

    cdef int _note_bits(self, int place) except -1:
        self.member_names[place] = self.trie.nodes[self.members[place]].names
        self.member_edges[place] = self.trie.nodes[self.members[place]].edges
        return 0

    cdef int _heed(self, int state, int change, bint own) except -1:
        """Forget what one change of a member concerns; whether the set itself may be wrong."""
        cdef int edge = self.trie.log_edge[change & LOG_MASK]
        if edge in (EDGE_LOOP, LOG_REUSED):  # a loop more, or another node of this number
            return own or edge == LOG_REUSED
        if edge == LOG_QUERIES:
            self.states[state].accepts = NOT_YET
        elif edge & EDGE_KIND:
            self.states[state].flags |= FLAG_ATTRIBUTES
            self.states[state].edges |= edge_bit(edge)
            self.states[state].differing_edges |= edge_bit(edge)
            self._forget(state, edge)
        else:
            self.states[state].flags |= FLAG_FOLLOWS
            self.states[state].names |= name_bit(edge)
            self.states[state].differing_names |= name_bit(edge)
            self._forget_name(state, edge >> EDGE_SHIFT)
        return False

    cdef int _forget_name(self, int state, int symbol) except -1:
        """The transitions on labels that have a symbol, 0 for ``*``."""
        cdef int label = self.only_label[symbol] if symbol else SEVERAL
        if symbol == 0:
            self.states[state].elsewhere = NOT_YET
        if label > 0:
            self._forget(state, label << EDGE_SHIFT)
        elif label < 0:  # it begins anew, and leans on what it was
            self.states[state].leans_on = state
            self.states[state].differing_names = -1
            self.states[state].row_then = self.states[state].row
            self.states[state].row = self.next_row
            self.next_row += 1

    cdef int _forget(self, int state, int edge) except -1:
        # PERF: most states were never asked for most edges, and looking that up is a cache miss.
        if self.states[state].flags & asked_bit(edge):
            self.transitions.retire(self.key(state, edge))


cdef int asked_bit(int edge) noexcept:
    """The flag of an edge."""
    return FLAG_ASKED << (edge % FLAGS_ASKED)


# -------------------------------------------------------------------------------------------------
# Second access: a crowded accept list divided by another comparison of its queries (seed 003, 4).
#
# Where very many queries share the equality that finds them, each would be looked at for the rest.
# Those of a list that compare the same value with a number, each with a bound of its own, are put
# in order of their bounds, so that a value finds exactly those that it satisfies::
#
#     /a[@s = "A"]/b[@n > 1]      list of /a[@s = "A"]/b      second  @n > of the element
#     /a[@s = "A"]/b[@n > 2]                                  bounds  1  2
#     /a[@s = "A"]/b[c/@m < 5]                                second  @m < of a c below
#                                                             bounds  5
#
# The value may be a column, such as a count, of an element of known position.
#
# A comparison is necessary for its query, not sufficient: candidates taken by it are verified as
# all others.  A comparison stands at an element of known position, or somewhere in a path below
# one, or in a path anywhere in the message, however deep in nested paths.
#
# Queries whose records differ in nothing but the bound are *alike* and have a group of their own:
# where one of them holds, all with a looser bound hold, so a few are verified and not each.

cpdef enum:
    CROWD_MIN = 64  # so many queries that share a comparison are worth a group
    ANY_ELEMENT = -1  # the symbol of a step of any name
    TRAIL_MAX = 12  # records that lead to a comparison
    TEMPLATES_MIN = 1024  # from so many different ones on it counts how many are equal


cdef class SecondAccess:
    """``divide`` a list, then ``collect`` its groups.

    Of each group ``position``, ``symbol`` (0: the element there itself), ``attribute`` and
    ``operator`` of the comparison, with CHECK_COLUMN for that of a column, and its ``size``: 0, or
    at least CROWD_MIN; ``position`` is POSITION_UNKNOWN for a path anywhere.  ``template``: the
    common form of its queries but for their bounds, 0 where they are not alike.  ``group_of`` a
    query is -1 where it is undivided.
    """

    def __init__(self, records: RecordPool, atoms: AtomTable) -> None:
        self.groups = 0
        self.group_of = ints(CROWD_MIN)
        self.position = ints(8)
        self.symbol = ints(8)
        self.attribute = ints(8)
        self.operator = ints(8)
        self.template = ints(8)
        self.size = ints(8)
        self.members = ints(CROWD_MIN)
        self.numbers = doubles(CROWD_MIN)
        self._records = records
        self._atoms = atoms
        self._number_of = ints(CROWD_MIN)  # of each query the bound
        self._template_of = ints(CROWD_MIN)  # and what it has beside that
        self._in_order = ints(CROWD_MIN)  # the queries of groups, group by group
        self._end = ints(8)  # where those of a group end
        self._last = ints(8)  # the bound that a group met last, and how often it was another
        self._changes = ints(8)
        self._known: dict[tuple[int, int, int, int, int], int] = {}  # groups, by what they share
        self._group = 0  # of the comparison that was met last
        # The best comparison of a query so far.
        self._is_counting = False
        self._best = self._best_number = 0
        # The way to the comparison at hand, and to the best: records, and their words for the next.
        self._depth = self._best_depth = 0
        self._records_down = ints(TRAIL_MAX)
        self._places_down = ints(TRAIL_MAX)
        self._best_records = ints(TRAIL_MAX)
        self._best_places = ints(TRAIL_MAX)
        self._templates = RecordPool()
        self._last_template = 0
        self._made = self._different = 0  # how many templates
        self._key = ints(64)

    cdef int divide(self, int[::1] queries, int count, TrieQuery* rows) except -1:
        """Find the groups of so many queries; ``rows`` are those of the trie.

        Of several comparisons of a query the one counts whose bounds differ most in the list.
        """
        cdef int i, residual, group
        cdef int following = 0
        self._begin(count)
        self._is_counting = True
        for i in range(count):
            residual = rows[queries[i]].residual
            if residual < 0:
                self._read(-residual)
        self._is_counting = False
        for i in range(count):
            self._best = -1
            residual = rows[queries[i]].residual
            if residual < 0:
                self._read(-residual)
            self.group_of[i] = self._best
            if self._best >= 0:
                self.size[self._best] += 1
                self._number_of[i] = self._best_number
                self._template_of[i] = self._made_template()
        self._part_alike(count)
        for group in range(self.groups):
            if self.size[group] < CROWD_MIN:
                self.size[group] = 0
            self._end[group] = following
            following += self.size[group]
        for i in range(count):
            group = self.group_of[i]
            if group >= 0 and self.size[group] == 0:
                self.group_of[i] = -1
            elif group >= 0:
                self._in_order[self._end[group]] = i
                self._end[group] += 1
        self._templates = RecordPool()  # it is large
        self._last_template = self._made = self._different = 0
        return 0

    cdef int collect(self, int group) except -1:
        """Set ``members`` and ``numbers`` to the places of a group's queries and their bounds, in
        order of the bounds; how many there are."""
        cdef int i
        cdef int count = self.size[group]
        for i in range(count):
            self.members[i] = self._in_order[self._end[group] - count + i]
            self.numbers[i] = self._atoms.numbers[self._number_of[self.members[i]]]
        sort_by(self.numbers, self.members, count)
        return count

    cdef int _part_alike(self, int count) except -1:
        """Give those that are alike, if there are enough, a group of their own."""
        cdef int i, group, template
        for i in range(count):
            group = self.group_of[i]
            template = self._template_of[i]
            if (
                group < 0
                or template == 0
                or self._templates.words[template + POOLED_USERS] < CROWD_MIN
            ):
                continue
            self._find_group(
                self.position[group],
                self.symbol[group],
                self.attribute[group],
                self.operator[group],
                template,
            )
            self.group_of[i] = self._group
            self.size[self._group] += 1
            self.size[group] -= 1
        return 0

    cdef int _made_template(self) except -1:
        """The form of a query beside its bound: the records down to it, without the bound and the
        numbers of records on the way; 0 where hardly any are equal."""
        cdef int[::1] words = self._records.words
        cdef int first, count, level, i
        cdef int length = 0
        for level in range(self._best_depth + 1):
            first = self._best_records[level]
            count = words[first + POOLED_LENGTH]
            if length + count + 2 > len(self._key):
                self._key = grown(self._key, 2 * (length + count + 2))
            self._key[length] = count
            self._key[length + 1] = self._best_places[level] - first
            length += 2
            for i in range(count):
                self._key[length + i] = words[first + i]
            self._key[length + self._best_places[level] - first] = 0
            length += count
        # PERF: nearly always that of the query before.
        cdef int template = self._last_template
        cdef int[::1] known = self._templates.words
        if template and known[template + POOLED_LENGTH] == length:
            i = 0
            while i < length and known[template + i] == self._key[i]:
                i += 1
            if i == length:
                known[template + POOLED_USERS] += 1
                self._made += 1
                return template
        if self._different > TEMPLATES_MIN and 2 * self._different > self._made:
            return 0
        self._made += 1
        self._last_template = template = self._templates.acquire(self._key, length)
        self._different += self._templates.words[template + POOLED_USERS] == 1
        return template

    cdef int _begin(self, int count) except -1:
        """Room for so many queries, and no groups."""
        self.groups = 0
        self._known = {}
        if count > len(self.group_of):
            self.group_of = ints(2 * count)
            self.members = ints(2 * count)
            self.numbers = doubles(2 * count)
            self._number_of = ints(2 * count)
            self._template_of = ints(2 * count)
            self._in_order = ints(2 * count)
        return 0

    cdef int _read(self, int record) except -1:
        """Meet all comparisons of a record."""
        cdef int[::1] words = self._records.words
        cdef int place = record + RECORD_ROWS
        cdef int _i
        self._depth = 0
        self._records_down[0] = record
        if words[record + RECORD_MODE] != MODE_FIXED:
            return self._read_way(record, 0, False)
        for _i in range(words[record + RECORD_COUNT]):
            self._read_check(place + FIXED_CHECK, words[place + FIXED_POSITION], 0)
            place += FIXED_WIDTH
        return 0

    cdef int _read_way(self, int record, int position, bint is_below) except -1:
        """Meet the comparisons of a way down from an element, or of one down to it."""
        cdef int[::1] words = self._records.words
        cdef int steps = words[record + RECORD_COUNT]
        cdef int step, place, symbol, i
        for step in range(steps):
            place = record + words[record + RECORD_ROWS + step]
            # Which ones elements of any name are is not looked up.
            symbol = words[place + WAY_SYMBOL] or ANY_ELEMENT
            if not is_below:
                position = POSITION_UNKNOWN
                if step == steps - 1:
                    position = symbol = 0  # it is the element
            for i in range(words[place + WAY_COUNT]):
                self._read_check(place + WAY_CHECKS + CHECK_WIDTH * i, position, symbol)
        return 0

    cdef int _read_check(self, int place, int position, int symbol) except -1:
        """Meet the comparisons of a check."""
        cdef int[::1] words = self._records.words
        cdef int kind = words[place + CHECK_KIND]
        if LESS <= kind <= AT_LEAST and symbol != ANY_ELEMENT:
            return self._meet(place, position, symbol)
        if LESS <= kind ^ CHECK_COLUMN <= AT_LEAST and symbol == 0:
            return self._meet(place, position, symbol)
        if kind not in (CHECK_NESTED, CHECK_ANYWHERE) or self._depth + 1 == TRAIL_MAX:
            return 0
        self._places_down[self._depth] = place + CHECK_A
        self._depth += 1
        self._records_down[self._depth] = words[place + CHECK_A]
        if kind == CHECK_ANYWHERE:
            position = POSITION_UNKNOWN
        self._read_way(words[place + CHECK_A], position, True)
        self._depth -= 1
        return 0

    cdef int _meet(self, int place, int position, int symbol) except -1:
        """Count a comparison, or see whether it is the best of its query."""
        cdef int[::1] words = self._records.words
        cdef int number = words[place + CHECK_B]
        cdef int level
        self._find_group(position, symbol, words[place + CHECK_A], words[place + CHECK_KIND], 0)
        cdef int group = self._group
        if self._is_counting:
            self._changes[group] += self._last[group] != number
            self._last[group] = number
        elif self._changes[group] >= CROWD_MIN and (
            self._best < 0 or self._changes[group] > self._changes[self._best]
        ):
            self._best = group
            self._best_number = number
            self._places_down[self._depth] = place + CHECK_B
            self._best_depth = self._depth
            for level in range(self._depth + 1):
                self._best_records[level] = self._records_down[level]
                self._best_places[level] = self._places_down[level]
        return 0

    cdef int _find_group(
        self, int position, int symbol, int attribute, int operator, int template
    ) except -1:
        """Set ``_group`` to that of a comparison, made if there is none."""
        cdef int group
        # PERF: nearly always one of the first, which a tuple for the key would cost more than.
        for group in range(min(self.groups, 4)):
            if (
                self.position[group] == position
                and self.symbol[group] == symbol
                and self.attribute[group] == attribute
                and self.operator[group] == operator
                and self.template[group] == template
            ):
                self._group = group
                return 0
        key = (position, symbol, attribute, operator, template)
        group = self._known.setdefault(key, self.groups)
        self._group = group
        if group < self.groups:
            return 0
        if group == len(self.size):
            self._grow(2 * group)
        self.position[group] = position
        self.symbol[group] = symbol
        self.attribute[group] = attribute
        self.operator[group] = operator
        self.template[group] = template
        self.size[group] = 0
        self._last[group] = -1
        self._changes[group] = 0
        self.groups = group + 1
        return 0

    cdef int _grow(self, int room) except -1:
        self.position = grown(self.position, room)
        self.symbol = grown(self.symbol, room)
        self.attribute = grown(self.attribute, room)
        self.operator = grown(self.operator, room)
        self.template = grown(self.template, room)
        self.size = grown(self.size, room)
        self._end = grown(self._end, room)
        self._last = grown(self._last, room)
        self._changes = grown(self._changes, room)
        return 0


# -------------------------------------------------------------------------------------------------
# AcceptLists: the queries that states accept, one generation's.
#
# A list is five sections behind their lengths: those that are sure, those with one equality of an
# ancestor to look up, those with a residual to check, and what the message has to contain for it to
# hold, those with one twig of an ancestor to look up, by the ancestor (see automaton.pxd), and
# those that a second access divides, by the comparison (see SecondAccess)::
#
#     list    EPOCH SURE QUICK SLOW GROUPS SECONDS QUICK_FOUND SLOW_FOUND
#             | query … | query residual … | query residual required … | group … | second …
#     group   POSITION COUNT EPOCH ELEMENT | query twig …
#     second  POSITION SYMBOL ATTRIBUTE OPERATOR COUNT BOUNDS ALIKE | query residual required …
#     ranged  EPOCH RANGED BOUNDS - GROUPS SECONDS - - | query residual required …
#
# Behind the bounds of a ranged list stands, for each FAR_ROWS of its rows, the farthest bound on
# the other side of the same value: of ``[@n > 3 and @n < 7]``, which ``>`` finds, 7.  A number
# beyond it passes these rows over together.
#
# SURE, QUICK, SLOW, RANGED and COUNT say how many; GROUPS is the length of all groups, SECONDS of
# all seconds.  The numbers of a second, and of a ranged list, stand in ``bounds`` from BOUNDS on,
# ascending; where it is ALIKE the residuals differ in nothing else.  EPOCH, and the ELEMENT of a
# group, are those that it was last taken for.  Of the quick and the slow ones so many as FOUND says
# were found in the message of that epoch, and stand first: the order of rows says nothing else.


cdef class AcceptLists:
    """Lists are made once and never change, but for the order of their rows."""

    def __init__(self, trie: Trie, atoms: AtomTable, records: RecordPool, bytes_max: int) -> None:
        self.trie = trie
        self.atoms = atoms
        self.records = records
        self.lists = ints(max(bytes_max // 4, 64))
        self.bounds = doubles(max(bytes_max // 8, 64))
        self._second = SecondAccess(records, atoms)
        self._lists_used = 1
        self._bounds_used = 0
        self._numbers = doubles(64)
        self._queries = ints(64)
        self._next = ints(SECTIONS)  # of each section, how many or where the next one goes

    cdef int make(self, int[::1] members, int first, int count) except -1:
        """The list of a state with these members; its place, or 0 if it accepts nothing."""
        cdef TrieQuery* queries = self.trie.queries
        cdef int i, query, place
        cdef int found = self._gather(members, first, count)
        if found == 0:
            return 0
        for i in range(SECTIONS):
            self._next[i] = 0
        for i in range(found):
            self._next[_section(queries[self._queries[i]].residual)] += 1
        self._divide(found)
        cdef bint divided = self._next[SECTION_SECONDS] != 0
        place = self._lay_out()
        for i in range(found):
            query = self._queries[i]
            if not divided or self._second.group_of[i] < 0:
                self._write(query, queries[query].residual)
        if divided:
            self._write_seconds()
        return place

    cdef int make_range(self, int[::1] members, int first, int count) except -1:
        """The list of a state that is reached by a range; its place, or 0 for nothing."""
        cdef int i, place
        count = self._gather(members, first, count)
        if count == 0:
            return 0
        for i in range(count):
            self._numbers[i] = self.atoms.numbers[self.trie.queries[self._queries[i]].number]
        sort_by(self._numbers, self._queries, count)
        place = self._reserve(LIST_QUERIES + SLOW_WIDTH * count)
        self.lists[place + LIST_EPOCH] = 0
        self.lists[place + LIST_RANGED] = count
        self.lists[place + LIST_BOUNDS] = self._keep_bounds(
            self._numbers, 0, self._put_farthest(count)
        )
        self.lists[place + LIST_SLOW] = RANGED
        self.lists[place + LIST_GROUPS] = 0
        self.lists[place + LIST_SECONDS] = 0
        for i in range(count):
            self._write_row(place + LIST_QUERIES + SLOW_WIDTH * i, self._queries[i])
        return place

    cdef int copy(self, AcceptLists older, int source) except -1:
        """Take a list over from the generation before."""
        cdef int i, place, at
        cdef bint ranged = older.lists[source + LIST_SLOW] == RANGED
        cdef int count = older.lists[source + LIST_SURE]  # or LIST_RANGED
        cdef int seconds = older.lists[source + LIST_SECONDS]
        cdef int length = LIST_QUERIES + count + older.lists[source + LIST_GROUPS] + seconds
        if ranged:
            length += (SLOW_WIDTH - 1) * count
        else:
            length += (
                QUICK_WIDTH * older.lists[source + LIST_QUICK]
                + SLOW_WIDTH * older.lists[source + LIST_SLOW]
            )
        place = self._reserve(length)
        for i in range(length):
            self.lists[place + i] = older.lists[source + i]
        if ranged:
            self.lists[place + LIST_BOUNDS] = self._keep_bounds(
                older.bounds, older.lists[source + LIST_BOUNDS], bounds_of(count)
            )
        at = place + length - seconds
        while at < place + length:
            count = self.lists[at + SECOND_COUNT]
            self.lists[at + SECOND_BOUNDS] = self._keep_bounds(
                older.bounds, self.lists[at + SECOND_BOUNDS], count
            )
            at += SECOND_QUERIES + SLOW_WIDTH * count
        return place

    cdef int _put_farthest(self, int count) except -1:
        """Put the farthest bounds of so many rows of a ranged list behind their bounds; how many
        numbers there are then."""
        cdef int at = self.trie.queries[self._queries[0]].node
        cdef int node = at
        cdef AtomRow atom
        cdef bint is_above
        cdef int i, far
        cdef double bound
        while self.trie.nodes[node].edge & EDGE_KIND != EDGE_ATOM:
            node = self.trie.nodes[node].parent
        atom = self.atoms.atoms[self.trie.nodes[node].edge >> EDGE_SHIFT]
        is_above = atom.place >= GREATER
        if node != at:  # the value is not that of the element where the query is found
            atom.attribute = 0
        if bounds_of(count) > len(self._numbers):
            self._numbers = grown(self._numbers, bounds_of(count))
        for i in range(count):
            far = count + i // FAR_ROWS
            bound = self._farthest(self._queries[i], atom)
            if i % FAR_ROWS == 0 or (bound > self._numbers[far]) == is_above:
                self._numbers[far] = bound
        return bounds_of(count)

    cdef double _farthest(self, int query, AtomRow atom) except? -1:
        """The bound of a query, found by a range, on the other side of the value; infinite where
        there is none."""
        cdef int[::1] words = self.records.words
        cdef int record = -self.trie.queries[query].residual
        cdef bint is_above = atom.place >= GREATER
        cdef int _i, kind, place
        # A text node is one of several: another one may be below the other bound.
        if record > 0 and words[record + RECORD_MODE] == MODE_FIXED and atom.attribute > TEXT_NODE:
            place = record + RECORD_ROWS
            for _i in range(words[record + RECORD_COUNT]):
                kind = words[place + FIXED_CHECK + CHECK_KIND]
                if (
                    words[place + FIXED_POSITION] == 0
                    and LESS <= kind <= AT_LEAST
                    and (kind <= AT_MOST) == is_above
                    and words[place + FIXED_CHECK + CHECK_A] == atom.attribute
                ):
                    return self.atoms.numbers[words[place + FIXED_CHECK + CHECK_B]]
                place += FIXED_WIDTH
        return INFINITY if is_above else -INFINITY

    cdef long long used_bytes(self) noexcept:
        cdef long long total = self._lists_used
        return 4 * total + 8 * self._bounds_used

    cdef int _gather(self, int[::1] members, int first, int count) except -1:
        """Put the queries that some nodes accept into ``_queries``; how many they are."""
        # PERF: the first of all nodes, then the second of all, and so on: hardly any load waits
        # for the one before.
        cdef int i, query
        cdef int at = 0
        cdef int found = 0
        if count > len(self._queries):
            self._cover(2 * count)
        for i in range(first, first + count):
            query = self.trie.nodes[members[i]].first_query
            self._queries[found] = query
            found += query != 0
        while at < found:
            query = self.trie.queries[self._queries[at]].next
            if query:
                if found == len(self._queries):
                    self._cover(2 * found)
                self._queries[found] = query
                found += 1
            at += 1
        return found

    cdef int _cover(self, int room) except -1:
        """Make room for so many queries."""
        self._queries = grown(self._queries, room)
        self._numbers = grown(self._numbers, room)
        return 0

    cdef int _divide(self, int found) except -1:
        """Take those that a second access finds out of the slow ones of so many queries."""
        cdef int group
        if self._next[SECTION_SLOW] < CROWD_MIN:
            return 0
        self._second.divide(self._queries, found, self.trie.queries)
        for group in range(self._second.groups):
            if self._second.size[group]:
                self._next[SECTION_SECONDS] += (
                    SECOND_QUERIES + SLOW_WIDTH * self._second.size[group]
                )
                self._next[SECTION_SLOW] -= self._second.size[group]
        return 0

    cdef int _write_seconds(self) except -1:
        """The section of what was divided."""
        cdef SecondAccess second = self._second
        cdef int at = self._next[SECTION_SECONDS]
        cdef int group, count, i
        for group in range(second.groups):
            count = second.collect(group)
            if count == 0:
                continue
            self.lists[at + SECOND_POSITION] = second.position[group]
            self.lists[at + SECOND_SYMBOL] = second.symbol[group]
            self.lists[at + SECOND_ATTRIBUTE] = second.attribute[group]
            self.lists[at + SECOND_OPERATOR] = second.operator[group]
            self.lists[at + SECOND_COUNT] = count
            self.lists[at + SECOND_BOUNDS] = self._keep_bounds(second.numbers, 0, count)
            self.lists[at + SECOND_ALIKE] = second.template[group] != 0
            at += SECOND_QUERIES
            for i in range(count):
                self._write_row(at, self._queries[second.members[i]])
                at += SLOW_WIDTH
        return 0

    cdef int _write_row(self, int at, int query) except -1:
        """A query with its residual, and what that requires."""
        cdef int residual = self.trie.queries[query].residual
        self.lists[at + LISTED_QUERY] = self.trie.answers(query)
        self.lists[at + LISTED_RESIDUAL] = residual
        self.lists[at + LISTED_REQUIRED] = (
            self.records.words[RECORD_REQUIRED - residual] if residual < 0 else 0
        )
        return 0

    cdef int _keep_bounds(self, double[::1] numbers, int first, int count) except -1:
        """Where so many numbers stand in ``bounds`` from now on."""
        cdef int i
        cdef int place = self._bounds_used
        if place + count > len(self.bounds):
            self.bounds = grown(self.bounds, 2 * (place + count))
        for i in range(count):
            self.bounds[place + i] = numbers[first + i]
        self._bounds_used = place + count
        return place

    cdef int _lay_out(self) except -1:
        """Room for as many of each section as ``next`` says, that of seconds by its length; then
        it says where they begin."""
        cdef int[::1] following = self._next
        cdef int sure = following[SECTION_SURE]
        cdef int quick = following[SECTION_QUICK]
        cdef int slow = following[SECTION_SLOW]
        cdef int seconds = following[SECTION_SECONDS]
        cdef int groups = 0
        cdef int section, at
        for section in range(SECTION_GROUPS, SECTION_SECONDS):
            if following[section]:
                groups += GROUP_QUERIES + GROUPED_WIDTH * following[section]
        at = self._reserve(
            LIST_QUERIES + sure + QUICK_WIDTH * quick + SLOW_WIDTH * slow + groups + seconds
        )
        cdef int place = at
        self.lists[at + LIST_EPOCH] = 0
        self.lists[at + LIST_SURE] = sure
        self.lists[at + LIST_QUICK] = quick
        self.lists[at + LIST_SLOW] = slow
        self.lists[at + LIST_GROUPS] = groups
        self.lists[at + LIST_SECONDS] = seconds
        following[SECTION_SURE] = at + LIST_QUERIES
        following[SECTION_QUICK] = following[SECTION_SURE] + sure
        following[SECTION_SLOW] = following[SECTION_QUICK] + QUICK_WIDTH * quick
        at = following[SECTION_SLOW] + SLOW_WIDTH * slow
        for section in range(SECTION_GROUPS, SECTION_SECONDS):
            if following[section]:
                groups = following[section]
                self.lists[at + GROUP_POSITION] = section - SECTION_GROUPS
                self.lists[at + GROUP_COUNT] = groups
                self.lists[at + GROUP_EPOCH] = 0
                following[section] = at + GROUP_QUERIES
                at += GROUP_QUERIES + GROUPED_WIDTH * groups
        following[SECTION_SECONDS] = at
        return place

    cdef int _write(self, int query, int residual) except -1:
        """Put a query into its section."""
        cdef int section = _section(residual)
        cdef int at = self._next[section]
        if section == SECTION_SLOW:
            self._write_row(at, query)
            self._next[section] = at + SLOW_WIDTH
            return 0
        self.lists[at + LISTED_QUERY] = self.trie.answers(query)
        if section == SECTION_SURE:
            self._next[section] = at + 1
        elif section == SECTION_QUICK:
            self.lists[at + LISTED_RESIDUAL] = residual
            self._next[section] = at + QUICK_WIDTH
        else:
            self.lists[at + LISTED_TWIG] = residual >> CODE_SHIFT
            self._next[section] = at + GROUPED_WIDTH
        return 0

    cdef int _reserve(self, int count) except -1:
        cdef int place = self._lists_used
        if place + count > len(self.lists):
            self.lists = grown(self.lists, 2 * (place + count))
        self._lists_used = place + count
        return place


cdef inline int bounds_of(int count) noexcept:
    """How many numbers a ranged list of so many rows has."""
    return count + (count + FAR_ROWS - 1) // FAR_ROWS


cdef inline int _section(int residual) noexcept:
    """The section of a query, by what is left to verify."""
    if residual == 0:
        return SECTION_SURE
    if residual < 0:
        return SECTION_SLOW
    if residual & CODE_TWIG:
        return SECTION_GROUPS + (residual & CODE_POSITION)
    return SECTION_QUICK


# -------------------------------------------------------------------------------------------------
# Steps: which nodes are behind an edge of some others.
#
# Nodes come as a range of a column, with a column of their edge bits beside it (see ``edge_bit``),
# so that the few that may have the edge are found without a look at all.


cdef class Steps:
    """``found`` has the nodes; ``by_loops`` begins a step by a name, ``by_name`` adds to it."""

    def __init__(self, trie: Trie, atoms: AtomTable) -> None:
        self.found = NodeSet(trie)
        self._trie = trie
        self._atoms = atoms

    def begin(self, symbols: SymbolTable) -> None:
        """For a new message, whose names were translated."""
        self._exact = symbols.exact
        self._in_namespace = symbols.in_namespace
        self._any_namespace = symbols.any_namespace
        self._label_bits = symbols.label_bits

    cdef int by_loops(self, LoopSets loops, int number, int label) except -1:
        """Begin with what is behind a name of a set of loops, which stay themselves."""
        self.found.clear()
        return self.by_name(
            loops.members, loops.names, loops.sets[number].first, loops.sets[number].count, label
        )

    cdef int by_name(
        self, int[::1] members, int[::1] names, int first, int count, int label
    ) except -1:
        """Add what is behind a name, by each symbol of its label and ``*``."""
        cdef NodeSet nodes = self.found
        cdef int parents = nodes.choose_parents(members, names, first, count, name_bit(0))
        nodes.push_children(parents, 0)
        if label:
            parents = nodes.choose_parents(members, names, first, count, self._label_bits[label])
            if self._exact[label]:
                nodes.push_children(parents, self._exact[label] << EDGE_SHIFT)
            if self._in_namespace[label]:
                nodes.push_children(parents, self._in_namespace[label] << EDGE_SHIFT)
            if self._any_namespace[label]:
                nodes.push_children(parents, self._any_namespace[label] << EDGE_SHIFT)
        return 0

    cdef int by_edge(
        self, int[::1] members, int[::1] edges, int first, int count, int edge
    ) except -1:
        """Follow the edges of an attribute or an atom."""
        cdef NodeSet nodes = self.found
        cdef AtomRow* atom = &self._atoms.atoms[edge >> EDGE_SHIFT]  # if it is the edge of one
        cdef int node
        nodes.clear()
        # The shorter way: from the atom's edges up, or from the members down.
        if edge & EDGE_KIND == EDGE_ATOM and atom.edges <= count // 16:
            node = atom.first_edge
            while node:
                if place_of(members, first, count, self._trie.nodes[node].parent) >= 0:
                    nodes.push(node)
                node = self._trie.nodes[node].next
            return 0
        return nodes.push_children(
            nodes.choose_parents(members, edges, first, count, edge_bit(edge)), edge
        )


# -------------------------------------------------------------------------------------------------
# LazyStates: one generation of the automaton's deterministic states, made as messages need them.
#
# A state is a set of trie nodes, closed under ε.  Its transitions, on labels, attributes and atoms,
# and the lists of what it accepts are computed at the first use and kept.  States, transitions and
# lists are a cache with a bound: when a generation is full, a new one begins, and what messages
# still use is carried over, so that no message pays for all.  With the one before, which is then
# dropped, there are two generations at most.
#
# A change makes another set of few states only (see StateTable): states that it does not concern
# stay, and a new set leans on the one whose place it takes.


cdef class LazyStates(StateTable):
    """``follow`` moves on, ``accepted`` tells what is accepted; state 0 is the empty set."""

    def __init__(
        self, trie: Trie, atoms: AtomTable, records: RecordPool, symbols: SymbolTable,
        bytes_max: int, older: LazyStates | None
    ) -> None:
        loops = LoopSets(trie, bytes_max, older.loops if older else None)
        super().__init__(trie, loops, bytes_max)
        bits_max = max(6, (bytes_max // 64).bit_length() - 1)
        self.older = older
        self.accepts = AcceptLists(trie, atoms, records, bytes_max)
        self._sets = IntCache(min(8, bits_max), bits_max)
        self._steps = Steps(trie, atoms)
        self._set = self._steps.found
        self._leaning_on = 0
        self.bytes_max = bytes_max
        self.computed = 0
        self.gone_through = 0  # nodes, while steps were computed
        self.begin(symbols)

    cdef int start(self, int root) except -1:
        """The state of the document node, for the queries behind a root of the trie."""
        self._set.clear()
        self._set.push(root)
        return self._intern(0)

    cdef int follow(self, int state, int edge) except -1:
        """The state behind an edge, for when ``transitions`` does not have it: it may be stale."""
        cdef int target = -1
        # PERF: most states were never asked for most edges, and looking that up is a cache miss.
        if self.states[state].flags & asked_bit(edge):
            target = self.transitions.recall(self.key(state, edge))
        if target >= 0:
            return target
        return self._step(state, edge, former(target))

    cdef int elsewhere(self, int state) except -1:
        """The state behind a name that no member has an edge for; it may be stale."""
        cdef int target = self.states[state].elsewhere
        if target < 0:
            target = self._step(state, 0, 0)
            self.states[state].elsewhere = target
        return target

    cdef int fresh(self, int target, int state, int edge) except -1:
        """The state behind an edge, given what it was some time ago."""
        if self.outdated(target):
            target = self._step(state, edge, target)
            if edge == 0:
                self.states[state].elsewhere = target
        return target

    cdef int carry(self, LazyStates older, int state) except -1:
        """The state with the same members as one of the generation before."""
        cdef int i
        cdef int first = older.states[state].first
        self._set.clear()
        for i in range(first, first + older.states[state].count):
            self._set.push(older.members[i])
        self._set.loop_count = 0
        return self._intern(self.loops.carry(older.loops, older.states[state].loops))

    cdef int accepted(self, int state, bint ranged) except -1:
        """The place of a state's list, made if it is NOT_YET there; 0 for nothing."""
        cdef int place = 0
        cdef LazyStates older = self.older
        cdef int twin = self.states[state].twin
        cdef int first = self.states[state].first
        cdef int count = self.states[state].count
        self.gone_through += count
        if older is not None and twin and not older.outdated(twin):
            place = older.states[twin].accepts
        if older is not None and place > 0:
            place = self.accepts.copy(older.accepts, place)
        elif ranged:
            place = self.accepts.make_range(self.members, first, count)
        else:
            place = self.accepts.make(self.members, first, count)
        self.states[state].accepts = place
        return place

    cdef bint is_full(self) noexcept:
        return self.used_bytes() > self.bytes_max or self.next_row > 2_000_000_000

    cpdef long long used_bytes(self):
        cdef long long total = self.table_bytes()
        return total + self.accepts.used_bytes() + self._sets.size_bytes()

    def get_ready(self, long long size) -> None:
        """Ask the system for about so many bytes of memory that new states will take."""
        touch(self.state_rows, size // 10)
        touch(self.members, size // 5)
        touch(self.member_names, size // 5)
        touch(self.member_edges, size // 5)
        touch(self.loops.members, size // 20)
        touch(self.loops.names, size // 20)
        touch(self.accepts.lists, size // 5)
        self.transitions.cover(size // 64)
        self._sets.cover(size // 160)

    def begin(self, symbols: SymbolTable) -> None:
        """For a new message, whose names were translated."""
        self.look_at(symbols)
        self._steps.begin(symbols)

    def forget_older(self) -> None:
        """Let the generation before go."""
        self.older = None
        self.loops.older = None

    cdef int _step(self, int state, int edge, int before) except -1:
        """The state behind an edge, which was another one before, or 0."""
        cdef int target = -1
        cdef int known
        if self.older is not None and self.states[state].twin > 0:
            target = self._carried_step(state, edge)
        if target < 0 and self.states[state].leans_on:
            known = self._other_step(state, edge)
            if known >= 0 and not self._differs:
                target = self._with_loops(known, state) if edge & EDGE_KIND == EDGE_NAME else known
            elif known > 0:
                before = known
        if before == 0 and edge & EDGE_KIND == EDGE_NAME:
            before = max(
                0, self.states[state].elsewhere
            )  # it may have been as elsewhere
        if target < 0:
            self.computed += 1
            self._leaning_on = before
            target = self._computed_step(state, edge)
            self._leaning_on = 0
        self.states[state].flags |= asked_bit(edge)
        self.transitions.put(self.key(state, edge), target)
        return target

    cdef int _with_loops(self, int target, int state) except -1:
        """The state with the members of one, and the loops of another besides its own."""
        cdef int i
        cdef int loops = self.states[target].loops if target else 0
        cdef int more = self.states[state].loops
        if loops == more:
            return target
        more = self.loops.union(
            loops, self.loops.members, self.loops.sets[more].first, self.loops.sets[more].count
        )
        if more == loops:
            return target
        self._set.clear()
        for i in range(
            self.states[target].first, self.states[target].first + self.states[target].count
        ):
            self._set.push(self.members[i])
        self._set.loop_count = 0
        self._leaning_on = target
        state = self._intern(more)
        self._leaning_on = 0
        if self.states[state].accepts < 0:
            # They accept the same.
            self.states[state].accepts = self.states[target].accepts
        return state

    cdef int _computed_step(self, int state, int edge) except -1:
        cdef int first = self.states[state].first
        cdef int count = self.states[state].count
        cdef int loops = self.states[state].loops
        self.gone_through += count
        if edge & EDGE_KIND == EDGE_NAME:
            self._steps.by_loops(self.loops, loops, edge >> EDGE_SHIFT)
            self._steps.by_name(self.members, self.member_names, first, count, edge >> EDGE_SHIFT)
            return self._intern(loops)
        self._steps.by_edge(self.members, self.member_edges, first, count, edge)
        return self._intern(0)

    cdef int _other_step(self, int state, int edge) except? -1:
        """The step of a state that this one leans on, or that one leans on, and so on; or -1.

        ``_differs``: whether this one's may be another.
        """
        cdef int target = -1
        cdef int left = 8
        cdef int other = self.states[state].leans_on
        cdef long long row
        self._differs = False
        if (
            other != state
            and self.leans(state)
            and self.states[other].time
            != self.states[state].time_then
        ):
            self.lean(state, other)
        while target < 0 and left > 0 and self.leans(state):
            left -= 1
            other = self.states[state].leans_on
            if other != state and self.states[other].time != self.states[state].time_then:
                break  # it was put right since then
            self._differs |= self.may_differ(state, edge)
            if self.states[other].flags & asked_bit(edge):
                row = self.states[state].row_then
                target = self.transitions.recall((row << 32) | edge)
            if other == state:
                break
            state = other
        return -1 if target > 0 and self.outdated(target) else target

    cdef int _carried_step(self, int state, int edge) except? -1:
        """The step as the generation before knew it, or -1."""
        cdef LazyStates older = self.older
        cdef int twin = self.states[state].twin
        cdef int target = -1
        if older is not None and not older.outdated(twin):
            target = older.transitions.recall(older.key(twin, edge))
            if target > 0 and older.outdated(target):
                return -1
            if target > 0:
                return self.carry(older, target)
        return target

    cdef int _intern(self, int loops) except -1:
        """The state of the nodes in the set and their loops, and some loops more; fresh."""
        cdef int state
        cdef long long key
        cdef NodeSet nodes = self._set
        nodes.close()
        self.gone_through += nodes.count + nodes.loop_count
        loops = self.loops.union(loops, nodes.loops, 0, nodes.loop_count)
        if nodes.count == 0 and loops == 0:
            return 0
        key = hash_of(loops, nodes.nodes, nodes.count)
        state = self._find(loops, nodes, key)
        # One of nodes that have been used again stays as it is: what led to it may do so still.
        return self._new_state(loops, key) if state == 0 or self.outdated(state) else state

    cdef int _find(self, int loops, NodeSet nodes, long long key) noexcept:
        cdef int i = 0
        cdef int first
        cdef int state = self._sets.recall(key)
        if (
            state < 0
            or self.states[state].loops != loops
            or self.states[state].count != nodes.count
        ):
            return 0
        first = self.states[state].first
        while i < nodes.count and self.members[first + i] == nodes.nodes[i]:
            i += 1
        return state if i == nodes.count else 0

    cdef int _twin(self, int loops, NodeSet nodes) except -1:
        """The state with these members, if they are the same nodes still."""
        cdef int state = 0
        if loops >= 0:
            state = self._find(loops, nodes, hash_of(loops, nodes.nodes, nodes.count))
        return 0 if self.outdated(state) else state

    cdef int _new_state(self, int loops, long long key) except -1:
        cdef NodeSet nodes = self._set
        cdef int state = self.append(loops, nodes.nodes, nodes.count)
        self._sets.put(key, state)
        if self._leaning_on:
            self.lean(state, self._leaning_on)
        if self.older is not None:
            self.states[state].twin = self.older._twin(self.loops.sets[loops].twin, nodes)
        return state


# -------------------------------------------------------------------------------------------------
# Moves: steps of many states along edges of the automaton, made together.
#
# Nearly every transition and every state that a message needs is a cache miss.  ``resolve`` takes
# each step of the way for all moves before the next step: the misses of one step do not depend on
# each other, and the processor waits for many at a time.


cdef class Moves:
    """``count`` moves of an ``element``'s states; ``target`` is where each leads, 0 for nowhere.

    ``item`` is the caller's.  A key of ``edge`` 0 is for a name that the state has no edge for.
    """

    def __init__(self) -> None:
        self.count = 0
        self._touched = 0
        self._room = 0
        self.cover(256)

    cdef int cover(self, int room) except -1:
        """Make room for so many; the present entries are lost."""
        if room > self._room:
            self._room = 2 * room
            self.key = longs(2 * room)
            self.target = ints(2 * room)
            self.state = ints(2 * room)
            self.element = ints(2 * room)
            self.item = ints(2 * room)
        return 0

    cdef int resolve(self, LazyStates states, int clock) except -1:
        """Find all targets, none of them out of date."""
        cdef StateRow* rows = states.states
        cdef int i, first
        cdef int stale = 0
        cdef int touched = 0
        states.transitions.get_all(self.key, self.target, self.count)
        # PERF: loads that nothing waits for, so that what new steps begin with is in the cache.
        for i in range(self.count):
            if self.target[i] < 0 and rows[self.state[i]].count:
                first = rows[self.state[i]].first
                touched ^= states.members[first] ^ states.member_edges[first]
        self._touched = touched
        for i in range(self.count):
            if self.target[i] < 0:
                if self.key[i]:
                    self.target[i] = states.follow(self.state[i], self._edge(i))
                else:
                    self.target[i] = states.elsewhere(self.state[i])
        rows = states.states
        for i in range(self.count):
            stale |= (self.target[i] != 0) & (rows[self.target[i]].time != clock)
        if stale:
            states.touch_states(self.target, self.count)
            for i in range(self.count):
                if self.target[i] and states.states[self.target[i]].time != clock:
                    self.target[i] = states.fresh(self.target[i], self.state[i], self._edge(i))
        return 0

    cdef int _edge(self, int i) noexcept:
        # Typed, for the compiler takes a literal of more than 31 bits for an object.
        cdef long long mask = 0xFFFFFFFF
        return self.key[i] & mask
