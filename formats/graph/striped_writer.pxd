# The C types of striped_writer.py.
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
    A_OWN = 21
    OWN_NAMES = 22

    # In place of E_CLASS: with A_OWN.
    OWN_CLASS = -1

cdef list _OWN_NAMES, _OWN_SIZES, _DIGITS, _IDLE
cdef dict _known_names

@cython.final
cdef class StripedWriter:
    cdef Terms _terms
    cdef object _limits
    cdef ColumnWriter _out
    cdef Py_ssize_t _written
    cdef int _blanks
    cdef int[::1] _own
    cdef dict _namespaces
    cdef list _names, _name_sizes, _property_names, _blank_numbers

    cdef begin(self, Py_ssize_t size)
    cdef finish(self)
    cdef int open_subject(self, int subject, int graph) except -1
    cdef void close_subject(self) noexcept
    cdef write_closure(self, list found)
    cdef int write_triple(self, int property, int object) except -1
    cdef int _write_object(self, int term) except -1
    cdef int _write_node(self, int term, int iri, int blank) except -1
    cdef int _write_value(self, int name, bytes value) except -1
    cdef bytes _blank(self, int term)
    cdef int _name(self, int number) except -1
    cdef int _own_name(self, int name) except -1
    cdef int _new_name(self, name, int size) except -1
    cdef int _property_name(self, int term) except? -1
    cdef str _new_prefix(self, str namespace)
    cdef _check_written(self)
