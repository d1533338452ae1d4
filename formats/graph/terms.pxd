# The C types of terms.py.
cimport cython

cdef enum:
    IRI = 0
    BLANK = 1
    STRING = 2
    TEXT = 3
    LITERAL = 4
    NO_TERM = -1
    TERM_KIND = 0
    TERM_DATATYPE = 1
    TERM_VALUE = 2
    TERM_WIDTH = 3

cdef bytes _XSD_STRING

@cython.final
cdef class Terms:
    cdef readonly list values, extras
    cdef int _count
    cdef int[::1] _rows
    cdef Py_ssize_t _iri_bytes_max, _literal_bytes_max
    cdef bint _is_xml
    cdef dict _iris, _blanks, _strings, _texts, _literals, _datatype_kinds

    cpdef trust_characters(self)
    cdef int kind(self, int term) noexcept
    cdef int datatype(self, int term) noexcept
    cdef int value_kind(self, int term) noexcept
    cdef int count(self) noexcept
    cpdef int iri(self, bytes value) except -1
    cpdef int blank(self, bytes label) except -1
    cpdef int new_blank(self) except -1
    cpdef int string(self, bytes value) except -1
    cpdef int text(self, bytes value, bytes language) except -1
    cpdef int literal(self, bytes value, int datatype) except -1
    cdef int _new(
        self, int kind, bytes value, int datatype, int value_kind, bytes extra
    ) except -1
    cdef _check_literal(self, bytes value)
    cdef _check(self, bytes value)
