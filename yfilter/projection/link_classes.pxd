# The C types of link_classes.py.
cimport cython

cdef int LINKS_AT_ONCE

@cython.final
cdef class LinkClasses:
    cdef public unsigned long long[::1] links
    cdef public int[::1] heads, element, kind, following
    cdef public Py_ssize_t count
    cdef unsigned long long _all
    cdef int[::1] _tails
    cdef int _taken

    cpdef int begin(self, unsigned long long links) except -1
    cpdef int split(self, unsigned long long links) noexcept
    cpdef unsigned long long taker(self, Py_ssize_t place) noexcept
    cpdef int take(self, int element, unsigned long long kept, unsigned long long values, unsigned long long wholes) except -1
    cdef int _append(self, Py_ssize_t place, int element, int kind) except -1
