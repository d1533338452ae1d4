# The C types of stream_selection.py.
cimport cython

@cython.final
cdef class StreamSelection:
    cdef public object stream
    cdef public unsigned char[::1] elements, attributes
    cdef object _element_room, _attribute_room, _before_room, _number_room
    cdef int[::1] _before
    cdef const int[::1] _element_name, _element_parent, _element_depth, _element_end
    cdef const int[::1] _attribute_start, _attribute_name, _attribute_offset
    cdef const unsigned char[::1] _attribute_values, _content_kind, _content_values
    cdef const int[::1] _content_parent, _content_next, _content_offset

    cpdef int begin(self, object stream) except -1
    cpdef Py_ssize_t kept_bytes(self) except -1
    cpdef object selected(self)
    cpdef int place_of(self, int element) except -1
    cdef int _select_elements(self, object result) except -1
    cdef int _select_attributes(self, object result) except -1
    cdef int _select_names(self, object result) except -1
    cdef int _select_declarations(self, object result) except -1
    cdef int _select_content(self, object result) except -1
