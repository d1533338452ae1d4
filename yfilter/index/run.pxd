from yfilter.index.accept_lists cimport AcceptLists
from yfilter.index.lazy_states cimport LazyStates
from yfilter.index.message_view cimport MessageView
from yfilter.index.residuals cimport Residuals
from yfilter.index.trie cimport Trie, edge_bit


cdef class Run:
    cdef MessageView view
    cdef Residuals residuals
    cdef Trie trie
    cdef public LazyStates states
    cdef public int[::1] found
    cdef public long long candidates
    cdef public long long heads
    cdef public long long visits
    cdef public long long passed_over
    cdef public long long elements_spared
    cdef public int turns
    cdef int _count
    cdef int _epoch
    cdef object _new_states
    cdef object _groups
    cdef int _stamp
    cdef int[::1] _group_of
    cdef int[::1] _verdict
    cdef int[::1] _state
    cdef int[::1] _operator
    cdef double[::1] _number
    cdef int[::1] _start

    cpdef int match(self, int epoch, int root, long long visits_max, object groups) except -2
    cdef int _move(self, int depth, int edge, int element) except -1
    cdef int _branch(self, int state, int element, int depth, int count) except -1
    cdef int _enter(self, int state, int operator, double number, int depth, int count) except -1
    cdef int _accept(self, int place, int depth) except -1
    cdef int _accept_wanted(self, int place, int depth) except -1
    cdef int _take(self, int query, int residual, int depth) except -1
    cdef int _accept_range(self, int place, int depth, int operator, double number) except -1
    cdef int _turn(self, int live) except -1
    cdef int _cover_found(self, int more) except -1
    cdef int _follow(self, int state, int edge) except -1
