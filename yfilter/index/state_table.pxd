from yfilter.index.int_cache cimport IntCache
from yfilter.index.loop_sets cimport LoopSets
from yfilter.index.symbols cimport SymbolTable
from yfilter.index.steps cimport asked_bit
from yfilter.index.trie cimport Trie, edge_bit, name_bit


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

    cdef int look_at(self, SymbolTable symbols) except -1
    cdef int append(self, int loops, int[::1] nodes, int count) except -1
    cdef int outdated(self, int state) except -1
    cdef int renew(self, int state) except -1
    cdef int lean(self, int state, int other) except -1
    cdef bint may_differ(self, int state, int edge) noexcept
    cdef long long key(self, int state, int edge) noexcept
    cdef long long table_bytes(self) noexcept
    cdef int _derive(self, int state) except -1
    cdef int _put_loops_right(self, int state) except -1
    cdef int _put_right(self, int state, int node) except -1
    cdef int _forget_name(self, int state, int symbol) except -1
    cdef int _forget(self, int state, int edge) except -1
