# The C types of striping.py.
cimport cython
from formats.graph.striped_writer cimport StripedWriter
from formats.graph.terms cimport Terms

cdef enum:
    IS_TYPE = 1
    IS_MEMBER = 2
    HAS_ABOVE = 4
    HAS_NO_NAME = 8
    ROW_GROUP = 0
    ROW_PROPERTY = 1
    ROW_OBJECT = 2
    ROW_NEXT = 3
    ROW_WIDTH = 4
    GROUP_SUBJECT = 0
    GROUP_GRAPH = 1
    GROUP_FIRST = 2
    GROUP_LAST = 3
    GROUP_WIDTH = 4

cdef bytes _RDF, _TYPE, _MEMBER

@cython.final
cdef class GraphBuilder:
    cdef readonly Terms terms
    cdef readonly Py_ssize_t triples
    cdef object _limits
    cdef Py_ssize_t _triples_max, _bytes
    cdef int _row_end, _group_end, _salt
    cdef dict _named, _above
    cdef int[::1] _rows, _groups, _subject_group, _slots, _role
    cdef list _closed

    cpdef int add(self, int subject, int property, int object, int graph=*) except -1
    cdef int _group(self, int subject, int graph) except -1
    cdef int _new_group(self, int subject, int graph) except -1
    cdef Py_ssize_t _size(self, int term) except -1
    cdef unsigned int _slot(self, int group, int property, int object) noexcept
    cdef _grow_rows(self, Py_ssize_t rows)
    cdef _close(self, closure)
    cdef int _role_of(self, bytes name, closure) except -1
    cdef _close_group(self, int group, closure)
    cdef _add_listed(self, closure)
    cdef _check_sizes(self)

cdef bint _is_member(bytes name) except -1
cdef _longer(object column, Py_ssize_t rows)
