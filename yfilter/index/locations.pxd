cimport cython
from yfilter.index.accept_lists cimport *
from yfilter.index.offers cimport Offers
from yfilter.index.residual_rows cimport *


@cython.final
cdef class Locations(Offers):
    cdef readonly int count
    cdef readonly int[::1] element
    cdef readonly int[::1] query
    cdef readonly int[::1] residual
    cdef int[::1] _met_element
    cdef int[::1] _met_query
    cdef int[::1] _met_residual
    cdef int[::1] _start

    cpdef int begin(self, long long visits_max) except -1
    cpdef int end(self) except -1
    cpdef object visits(self)
    cpdef bint holds(self, int hit) except -1
