# The C types of loop_sets.py, and the names of its numbers.
from yfilter.index.int_cache cimport IntCache
from yfilter.index.sorting cimport place_of
from yfilter.index.trie cimport *

cpdef enum:
    # Fields of a set of loops.
    LOOPS_FIRST = 0
    LOOPS_COUNT = 1
    LOOPS_NAMES = 2
    LOOPS_TIME = 3
    LOOPS_CHANGED = 4
    LOOPS_TWIN = 5
    LOOPS_WIDTH = 8


cdef class LoopSets:
    cdef Trie trie
    cdef LoopSets older
    cdef int[::1] sets
    cdef int[::1] members
    cdef int[::1] names
    cdef IntCache _numbers
    cdef int[::1] _merged
    cdef int[::1] _merged_names
    cdef int _bound
    cdef int _used

    cdef int union(self, int loops, int[::1] nodes, int first, int count) except -1
    cdef int carry(self, LoopSets older, int loops) except -1
    cdef int last_change(self, int loops) except -1
    cdef long long used_bytes(self) noexcept
    cdef int _intern(self, int count, int change) except -1
    cdef int _find(self, int[::1] nodes, int count, long long key) noexcept
    cdef int _derive(self, int loops) except -1


cdef long long hash_of(int start, int[::1] nodes, int count) noexcept
