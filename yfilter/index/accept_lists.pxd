from yfilter.index.atoms cimport AtomTable
from yfilter.index.record_pool cimport RecordPool
from yfilter.index.residual_rows cimport *
from yfilter.index.sorting cimport sort_by
from yfilter.index.trie cimport *


cdef class AcceptLists:
    cdef Trie trie
    cdef AtomTable atoms
    cdef RecordPool records
    cdef readonly int[::1] lists
    cdef readonly double[::1] bounds
    cdef int _lists_used
    cdef int _bounds_used
    cdef int[::1] _next
    cdef double[::1] _numbers
    cdef int[::1] _queries

    cdef int make(self, int[::1] members, int first, int count) except -1
    cdef int make_range(self, int[::1] members, int first, int count) except -1
    cdef int copy(self, AcceptLists older, int source) except -1
    cdef long long used_bytes(self) noexcept
    cdef int _gather(self, int[::1] members, int first, int count) except -1
    cdef int _cover(self, int room) except -1
    cdef int _lay_out(self) except -1
    cdef int _write(self, int query, int residual) except -1
    cdef int _reserve(self, int count) except -1
