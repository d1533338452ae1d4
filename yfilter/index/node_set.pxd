from yfilter.index.sorting cimport Sorter
from yfilter.index.trie cimport *


cdef class NodeSet:
    cdef Trie trie
    cdef int[::1] nodes
    cdef int[::1] loops
    cdef int[::1] _parents
    cdef int[::1] _children
    cdef Sorter _sorter
    cdef int count
    cdef int loop_count

    cdef void clear(self) noexcept
    cdef int push(self, int node) except -1
    cdef int choose_parents(
        self, int[::1] members, int[::1] bits_of, int first, int count, int bits
    ) except -1
    cdef int push_children(self, int count, int edge) except -1
    cdef int close(self) except -1
