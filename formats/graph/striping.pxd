# The C types of striping.py.
cimport cython
from formats.column_writer cimport ColumnWriter
from formats.graph.terms cimport Terms

cdef enum:
    E_GRAPH = 0
    E_SUBJECT = 1
    E_NAMED_SUBJECT = 2
    E_OTHER = 3
    E_CLOSURE = 4
    E_CLASS = 5
    E_ABOVE = 6
    E_MEMBER = 7
    A_SUBJECT = 8
    A_BLANK = 9
    A_GRAPH = 10
    A_GRAPH_BLANK = 11
    A_IRI = 12
    A_STRING = 13
    A_TEXT = 14
    A_LANGUAGE = 15
    A_LEXICAL = 16
    A_DATATYPE = 17
    A_NUMBER = 18
    A_SECONDS = 19
    A_PROPERTY = 20
    OWN_NAMES = 21

cdef bytes _TYPE, _MEMBER
cdef list _OWN_NAMES, _IDLE
cdef dict _known_properties, _known_names

@cython.final
cdef class GraphBuilder:
    cdef readonly Terms terms
    cdef readonly Py_ssize_t triples
    cdef object _limits
    cdef Py_ssize_t _triples_max, _bytes, _written
    cdef int _rows, _groups, _salt, _blanks
    cdef dict _named, _namespaces
    cdef int[::1] _row_group, _row_property, _row_object, _row_next
    cdef int[::1] _group_subject, _group_graph, _group_first, _group_last
    cdef int[::1] _subject_group, _slots, _own
    cdef ColumnWriter _out
    cdef list _names, _name_sizes, _property_names, _blank_numbers, _closed

    cpdef int add(self, int subject, int property, int object, int graph=*) except -1
    cdef _finish(self, ColumnWriter out, closure)
    cdef int _group(self, int subject, int graph) except -1
    cdef int _new_group(self, int subject, int graph) except -1
    cdef Py_ssize_t _size(self, int term) except -1
    cdef unsigned int _slot(self, int group, int property, int object) noexcept
    cdef _grow_rows(self, Py_ssize_t rows)
    cdef _grow_groups(self, Py_ssize_t groups)
    cdef _grow_subjects(self, Py_ssize_t subjects)
    cdef _close(self, closure)
    cdef _check_sizes(self)
    cdef _begin_names(self)
    cdef int _write_group(self, int group) except -1
    cdef int _write_triple(self, int property, int object) except -1
    cdef int _write_object(self, int term) except -1
    cdef int _write_node(self, int term, int iri, int blank) except -1
    cdef int _write_value(self, int name, bytes value) except -1
    cdef bytes _blank(self, int term)
    cdef int _name(self, int number) except -1
    cdef int _own_name(self, int name) except -1
    cdef int _new_name(self, name) except -1
    cdef int _property_name(self, int term) except? -1
    cdef str _new_prefix(self, str namespace)
    cdef _check_written(self)
    cdef _refuse_expansion(self)

cdef bint _is_member(bytes name) except -1
cdef _longer(object column, Py_ssize_t rows)
