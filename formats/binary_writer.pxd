# The C types of binary_writer.py.
cimport cython
from formats.element_stream cimport ElementStream
from formats.value_writer cimport ValueWriter
from formats.wire_head cimport WireHead
from formats.wire_model cimport WireModel

cdef int AFTER, ATTRIBUTES, DECLARATION, ELEMENT, END, TEXT, WITH_TEXT
cdef int _NAMES_KEPT_MAX, _BYTES_KEPT_MAX, _NUMBER_BYTES
cdef list _IDLE

@cython.final
cdef class BinaryWriter:
    cdef ValueWriter _values
    cdef WireHead _head, _last_head
    cdef WireModel _model, _last_model
    cdef int _name_room
    cdef Py_ssize_t _bit, _token
    cdef int[::1] _predicted, _set_of, _open_name
    cdef object _open_names
    cdef list _set_element
    cdef dict _own_sets
    cdef bytearray _token_buffer, _bit_buffer
    cdef unsigned char[::1] _tokens, _bits
    # Of the stream that is being written.
    cdef int* _element_name
    cdef int* _element_end
    cdef int* _attribute_start
    cdef int* _attribute_name
    cdef int* _declaration_element
    cdef int* _content_next
    cdef int* _content_parent
    cdef unsigned char* _content_kind
    cdef Py_ssize_t _declarations

    cpdef bytes write(self, ElementStream stream, WireModel model)
    cdef WireHead _find_head(self, ElementStream stream)
    cdef _begin(self, ElementStream stream)
    cdef int _write_structure(self, int elements, int contents) except -1
    cdef void _write_event(self, int context, int event) noexcept
    cdef bint _has_expected(self, int name, int element) except -1
    cdef int _write_set(self, int context, int name, int element) except -1
    cdef void _put(self, int number) noexcept
    cdef _grow_names(self, int count)
    cdef _grow_bytes(self, Py_ssize_t size)
