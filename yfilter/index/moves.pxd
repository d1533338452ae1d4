cimport cython
from yfilter.index.lazy_states cimport *
from yfilter.index.state_table cimport *


@cython.final
cdef class Moves:
    cdef int count
    cdef long long[::1] key
    cdef int[::1] target
    cdef int[::1] state
    cdef int[::1] element
    cdef int[::1] item
    cdef int _touched
    cdef int _room

    cdef int cover(self, int room) except -1
    cdef int resolve(self, LazyStates states, int clock) except -1
    cdef int _edge(self, int i) noexcept
