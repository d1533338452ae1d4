cimport cython
from yfilter.index.accept_lists cimport *
from yfilter.index.atoms cimport *
from yfilter.index.message_view cimport MessageView
from yfilter.index.residual_rows cimport *
from yfilter.index.residuals cimport *


cdef class Offers:
    cdef MessageView view
    cdef readonly Residuals residuals
    cdef int _touched, _offered, _low, _high
    cdef int[::1] _place
    cdef int[::1] _element
    cdef int[::1] _operator
    cdef int[::1] _lists
    cdef double[::1] _bounds
    cdef double[::1] _number

    cdef int offer(self, int place, int element, int operator, double number) except -1
    cdef int settle(self, AcceptLists accepts) except -1
    cdef bint is_any_wanted(self) noexcept
    cdef bint is_possible(self, int required) noexcept
    cdef int _take(self, int query, int residual, int element) except -1
    cdef int _take_sure(self, int place, int element) except -1
    cdef int _take_unsure(self, int place, int element) except -1
    cdef int _take_list(self, int place, int element) except -1
    cdef int _take_range(self, int place, int offer) except -1
    cdef int _take_seconds(self, int at, int end, int element) except -1
    cdef int _take_alike(self, int at, int end, bint is_below, int element) except -1
    cdef bint _held(self, int query, int record, int element) except -1
    cdef int _satisfy(self, int bounds, int count, double number, int operator) except -1
    cdef int _take_held(self, int at, int end, int element) except -1
    cdef int _take_rows(self, int at, int end, int element) except -1
