# The C types of column_writer.py.
cimport cython
from cpython.array cimport array as Array
from formats.element_stream cimport ElementStream

@cython.final
cdef class ColumnWriter:
    cdef public int elements, attributes, contents
    cdef readonly int declarations, depth, parent
    cdef readonly Py_ssize_t attribute_bytes
    cdef Py_ssize_t _content_bytes
    cdef object _declaration_element
    cdef list _declarations

    cdef Py_ssize_t _element_rows, _attribute_rows, _content_rows, _bytes
    cdef list _element_columns, _attribute_columns, _content_columns
    cdef int[::1] element_name, element_parent, element_depth, element_end
    cdef int[::1] attribute_start, attribute_name, attribute_offset
    cdef unsigned char[::1] content_kind
    cdef int[::1] content_parent, content_next, content_offset
    cdef bytearray _attribute_buffer, _content_buffer
    cdef unsigned char* _attribute_values
    cdef unsigned char* _content_values

    cdef begin(self, Py_ssize_t size)
    cdef int open_element(self) except -1
    cdef void name_element(self, int name) noexcept
    cdef void close_element(self) noexcept
    cdef declare(self, declaration)
    cdef declare_on(self, int element, declaration)
    cdef int close_attribute(self) except -1
    cdef bytes take_value(self)
    cdef void copy_value(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end
    ) noexcept
    cdef Py_ssize_t copy_plain_value(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end, unsigned char quote
    ) noexcept
    cdef int put_value(self, int code) except -1
    cdef void copy_content(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end
    ) noexcept
    cdef Py_ssize_t copy_plain_text(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end
    ) noexcept
    cdef int put_content(self, int code) except -1
    cdef int close_text(self) except -1
    cdef int close_content(self, int kind) except -1
    cdef reserve(self, Py_ssize_t elements, Py_ssize_t attributes, Py_ssize_t contents)
    cdef ElementStream finish(self, list names)
    cdef ElementStream finish_with(self, list names, bytes attribute_values, bytes content_values)
    cdef int _put(self, unsigned char* values, Py_ssize_t place, int code) except -1
    cdef _empty_rows(self)
    cdef _grow_elements(self, Py_ssize_t rows)
    cdef _grow_attributes(self, Py_ssize_t rows)
    cdef _grow_content(self, Py_ssize_t rows)
    cdef _grow_bytes(self, Py_ssize_t size)

cdef Array _cut(Array rows, Py_ssize_t count)
cdef void _copy(
    const unsigned char* data, Py_ssize_t start, Py_ssize_t end, unsigned char* values,
    Py_ssize_t place
) noexcept
cdef Py_ssize_t _copy_plain(
    const unsigned char* data, Py_ssize_t start, Py_ssize_t end, unsigned char mark,
    unsigned char* values, Py_ssize_t place
) noexcept
cdef int _width(int code) noexcept
