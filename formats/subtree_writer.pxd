# The C types of subtree_writer.py.
cimport cython

cdef int _IN_VALUES, _IN_TEXT

@cython.final
cdef class SubtreeWriter:
    cdef public object stream
    cdef const int[::1] _label_start
    cdef const unsigned char *_labels
    cdef const unsigned char *_escaped
    cdef bytes _escaped_octets, _labels_octets, _attribute_octets, _content_octets
    cdef const int[::1] _element_name, _element_parent, _element_end
    cdef const int[::1] _attribute_start, _attribute_name, _attribute_offset
    cdef const unsigned char *_attribute_values
    cdef const unsigned char[::1] _content_kind
    cdef const int[::1] _content_parent, _content_next, _content_offset
    cdef const unsigned char *_content_values
    cdef unsigned char[::1] _out
    cdef int _label_max, _open, _looked_at
    cdef bint _tag_open

    cpdef bytes inside(self, int element, int first, int last)
    cpdef bytes element(self, int element, bytes declarations)
    cpdef str string(self, int element)
    cpdef list children(self, int element, int name)
    cpdef int attribute(self, int element, int name)
    cpdef bytes attributes(self, int element)
    cdef bytes _label(self, int name)
    cdef int _end_of_content(self, int element, int first) noexcept
    cdef int _after(self, int following, int first) noexcept
    cdef Py_ssize_t _put_attributes(
        self, unsigned char[::1] out, Py_ssize_t used, int element
    ) noexcept
    cdef Py_ssize_t _put_content(self, unsigned char[::1] out, Py_ssize_t used, int content) noexcept
    cdef Py_ssize_t _close_down_to(self, unsigned char[::1] out, Py_ssize_t used, int parent) noexcept
    cdef Py_ssize_t _put_label(
        self, unsigned char[::1] out, Py_ssize_t used, int before, int name
    ) noexcept
    cdef Py_ssize_t _put_escaped(
        self, unsigned char[::1] out, Py_ssize_t used, const unsigned char* octets, int first,
        int last, int where
    ) noexcept
    cdef Py_ssize_t _put_reference(self, unsigned char[::1] out, Py_ssize_t used, int octet) noexcept
    cdef Py_ssize_t _put(
        self, unsigned char[::1] out, Py_ssize_t used, const unsigned char* octets, int first,
        int last
    ) noexcept
    cdef _reserve(self, int element, int first, int last)
