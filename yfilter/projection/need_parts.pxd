# The C types of need_parts.py.
cimport cython

@cython.final
cdef class Atom:
    cdef public int query
    cdef public tuple steps
    cdef public object selection
    cdef public dict asked

@cython.final
cdef class Disjunct:
    cdef public object bit, whole
    cdef public Binding binding
    cdef public tuple atoms, touched

@cython.final
cdef class Group:
    cdef public object bit, links
    cdef public tuple places
    cdef public int needs, unconditional

@cython.final
cdef class Binding:
    cdef public dict groups
    cdef public object always, sometimes, full, innermost

@cython.final
cdef class Place:
    cdef public int query
    cdef public tuple steps
    cdef public Binding binding
    cdef public Atom there
    cdef public dict kept, touched
    cdef dict _touched_by

    cpdef dict touched_by(self)
