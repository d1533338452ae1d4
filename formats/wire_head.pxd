# The C types of wire_head.py.
cimport cython

@cython.final
cdef class WireHead:
    cdef readonly list names, declarations, declared
    cdef readonly bytes form
    cdef readonly int count
    cdef int[::1] number
