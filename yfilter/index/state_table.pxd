# The C types of state_table.py, and the names of its numbers.
from yfilter.index.int_cache cimport IntCache
from yfilter.index.loop_sets cimport *
from yfilter.index.sorting cimport place_of
from yfilter.index.symbols cimport *
from yfilter.index.trie cimport *

cpdef enum:
    # Fields of a state.
    STATE_ROW = 0
    STATE_ACCEPTS = 1
    STATE_FLAGS = 2
    STATE_TIME = 3
    STATE_FIRST = 4
    STATE_COUNT = 5
    STATE_TWIN = 6
    STATE_ELSEWHERE = 7
    STATE_NAMES = 8
    STATE_EDGES = 9
    STATE_LOOPS = 10
    STATE_LEANS_ON = 11
    STATE_DIFFERING_NAMES = 12
    STATE_DIFFERING_EDGES = 13
    STATE_ROW_THEN = 14
    STATE_TIME_THEN = 15
    STATE_WIDTH = 16

    # Its flags; from FLAG_ASKED on one of FLAGS_ASKED for each edge.
    FLAG_FOLLOWS = 1
    FLAG_ATTRIBUTES = 2
    FLAG_ASKED = 4
    FLAGS_ASKED = 29

    # What a state accepts, or where it leads elsewhere, while nobody has asked.
    NOT_YET = -1


cdef class StateTable:
    cdef Trie trie
    cdef int[::1] only_label
    cdef readonly int[::1] label_bits
    cdef readonly int[::1] states
    cdef int[::1] members
    cdef int[::1] member_names
    cdef int[::1] member_edges
    cdef LoopSets loops
    cdef readonly IntCache transitions
    cdef int bound
    cdef int next_row
    cdef int _members_used
    cdef int[::1] _common
    cdef int _touched

    cdef int look_at(self, SymbolTable symbols) except -1
    cdef int append(self, int loops, int[::1] nodes, int count) except -1
    cdef int touch(self, int[::1] states, int count) except -1
    cdef int outdated(self, int state) except -1
    cdef int lean(self, int state, int other) except -1
    cdef bint leans(self, int state) noexcept
    cdef bint may_differ(self, int state, int edge) noexcept
    cdef long long key(self, int state, int edge) noexcept
    cdef long long table_bytes(self) noexcept
    cdef int _derive(self, int state) except -1
    cdef int _compare(self, int state, int other) except -1
    cdef int _compare_loops(self, int state, int other) except -1
    cdef int _put_loops_right(self, int state) except -1
    cdef int _put_right(
        self, int state, int[::1] members, int first, int count, bint own
    ) except -1
    cdef int _put_right_of_many(
        self, int state, int[::1] members, int first, int count, bint own
    ) except -1
    cdef int _note_bits(self, int place) except -1
    cdef int _heed(self, int state, int change, bint own) except -1
    cdef int _forget_name(self, int state, int symbol) except -1
    cdef int _forget(self, int state, int edge) except -1


cdef int asked_bit(int edge) noexcept
