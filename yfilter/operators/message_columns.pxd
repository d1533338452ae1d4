cimport cython


cdef class MessageColumns:
    cdef object _stream
    cdef readonly int elements
    cdef int deepest
    cdef const int[::1] name
    cdef const int[::1] parent
    cdef const int[::1] depth
    cdef const int[::1] end
    cdef const int[::1] attribute_start
    cdef const int[::1] attribute_name
    cdef const int[::1] attribute_offset
    cdef bytes attribute_values
    cdef const unsigned char[::1] content_kind
    cdef const int[::1] content_parent
    cdef const int[::1] content_next
    cdef const int[::1] content_offset
    cdef bytes content_values
    cdef readonly int[::1] text_first
    cdef readonly int[::1] text_next
    cdef readonly int[::1] within_first
    cdef readonly int[::1] within_last
    cdef readonly bint only_text

    cpdef int bind_columns(self, stream) except -1
    cdef int _link_contents(self) except -1
