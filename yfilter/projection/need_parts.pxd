# The C types of need_parts.py.
cimport cython

@cython.final
cdef class Atom:
    cdef public dict disjuncts

@cython.final
cdef class Disjunct:
    cdef public object bit, whole
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
cdef class Check:
    cdef public Binding binding
    cdef public int subject
    cdef public object attribute
    cdef public dict atoms, equal, differs, substrings, prefixes, equal_numbers, numbers, others
    cdef public Atom there
    cdef public long long names_version
    cdef public bytes accepted
