# The C types of turtle_terms.py.
cimport cython
from formats.graph.terms cimport Terms

cdef enum:
    NO_TERM = -1
    NAME = 1
    LOCAL = 2
    IRI_BYTE = 4
    HOST = 8
    SPACE = 16
    BEHIND = 32
    ESCAPABLE = 64

cdef bytes _KINDS, _RDF, _XSD

cdef class TurtleTerms:
    cdef bytes _message
    cdef const unsigned char* _data
    cdef const unsigned char* _kinds
    cdef Py_ssize_t _at, _end
    cdef bint _in_lines
    cdef Terms _terms
    cdef dict _namespaces, _known, _datatypes

    cdef int _read_named_node(self) except? -1
    cdef int _read_iri(self) except? -1
    cdef int _skip_iri(self) noexcept
    cdef int _read_label(self) except? -1
    cdef int _read_prefixed(self) except? -1
    cdef bint _skip_local(self) noexcept
    cdef void _skip_name(self) noexcept
    cdef int _read_literal(self) except? -1
    cdef bytes _read_string(self)
    cdef int _read_number(self) except? -1
    cdef int _read_plain(self, Py_ssize_t size, bytes name) except? -1
    cdef bint _is_word(self, bytes word) except -1
    cdef bint _is_bare(self, bytes word) except -1
    cdef void _skip_space(self) noexcept
    cdef void _skip_blanks(self) noexcept

cdef bint _is_hex(unsigned char byte) noexcept
