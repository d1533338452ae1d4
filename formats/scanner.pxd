# The C types of scanner.py.
cimport cython
from formats.column_writer cimport ColumnWriter
from formats.name_table cimport NameTable
from formats.namespace_scope cimport NamespaceScope
from formats.references cimport read_reference

cdef unsigned char NAME_START, NAME, SPACE, TEXT, CDATA, COMMENT, DOUBLE_QUOTED, SINGLE_QUOTED
cdef int NO_NAMESPACE
cdef bytes BYTE_KINDS

@cython.final
cdef class Scanner:
    cdef bytes _message, _xml_declaration
    cdef const unsigned char* _data
    cdef const unsigned char* _kinds
    cdef ColumnWriter _out
    cdef NameTable _names
    cdef NamespaceScope _scope
    cdef object _limits
    cdef long long _tag
    cdef Py_ssize_t _at, _end, _colon
    cdef int _scope_before, _first_attribute

    cdef Py_ssize_t _bytes_max, _name_bytes_max, _namespace_bytes_max
    cdef Py_ssize_t _depth_max, _elements_max, _attributes_max, _attributes_total_max, _names_max

    cdef int[::1] _open_at, _open_end
    cdef int[::1] _name_at, _name_end, _name_colon

    cpdef scan(self, bytes data, limits)
    cdef _set_limits(self, limits)
    cdef _skip_prolog(self)
    cdef bint _read_document(self) except -1
    cdef bint _read_text(self) except -1
    cdef bint _read_cdata(self) except -1
    cdef bint _read_comment(self) except -1
    cdef bint _read_instruction(self) except -1
    cdef bint _read_end_tag(self) except -1
    cdef bint _read_start_tag(self) except -1
    cdef void _close_element(self) noexcept
    cdef bint _read_attribute(self) except -1
    cdef bint _read_value(self, unsigned char quote, int plain) except -1
    cdef bint _declare(self, Py_ssize_t start, Py_ssize_t end) except -1
    cdef bint _resolve_names(self, int depth, Py_ssize_t colon) except -1
    cdef bint _read_name(self) noexcept
    cdef int _read_reference(self) noexcept
    cdef bint _read_line_end(self) except -1
    cdef void _copy(self, int plain) noexcept
    cdef bint _copy_to_end(self, int plain, unsigned char mark, int count) except -1
    cdef void _copy_byte(self) noexcept
    cdef bint _skip_space(self) noexcept
