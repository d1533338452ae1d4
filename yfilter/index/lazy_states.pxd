from yfilter.index.accept_lists cimport AcceptLists
from yfilter.index.int_cache cimport IntCache, former
from yfilter.index.loop_sets cimport *
from yfilter.index.node_set cimport NodeSet
from yfilter.index.state_table cimport *
from yfilter.index.steps cimport Steps
from yfilter.index.symbols cimport SymbolTable
from yfilter.index.trie cimport *


cdef class LazyStates(StateTable):
    cdef LazyStates older
    cdef readonly AcceptLists accepts
    cdef IntCache _sets
    cdef Steps _steps
    cdef NodeSet _set
    cdef int _leaning_on
    cdef bint _differs
    cdef public long long bytes_max
    cdef public long long computed
    cdef public long long gone_through
    cdef public long long carried

    cdef int start(self, int root) except -1
    cdef int follow(self, int state, int edge) except -1
    cdef int elsewhere(self, int state) except -1
    cdef int fresh(self, int target, int state, int edge) except -1
    cdef int carry(self, LazyStates older, int state) except -1
    cdef int accepted(self, int state, bint ranged) except -1
    cpdef long long used_bytes(self)
    cdef bint is_full(self) noexcept
    cdef int _step(self, int state, int edge, int before) except -1
    cdef int _with_loops(self, int target, int state) except -1
    cdef int _computed_step(self, int state, int edge) except -1
    cdef int _other_step(self, int state, int edge) except? -1
    cdef int _carried_step(self, int state, int edge) except? -1
    cdef int _intern(self, int loops) except -1
    cdef int _find(self, int loops, NodeSet nodes, long long key) noexcept
    cdef int _twin(self, int loops, NodeSet nodes) except -1
    cdef int _new_state(self, int loops, long long key) except -1
