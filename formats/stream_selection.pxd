# The C types of stream_selection.py.
cimport cython
from cpython.array cimport array

@cython.final
cdef class StreamSelection:
    cdef public unsigned long long[::1] attributes, wholes
    cdef public Py_ssize_t elements
    cdef object _stream
    cdef array _ints, _octet_column
    cdef list _run_rooms
    cdef int[::1] _numbers, _used, _first, _end, _kind, _place
    cdef int[::1] _content_first, _content_last, _open_old, _open_new
    cdef unsigned char[::1] _kinds, _octets
    cdef unsigned long long _taker
    cdef Py_ssize_t _count, _attributes, _attribute_bytes, _contents, _content_bytes
    cdef const int[::1] _element_name, _element_parent, _element_depth, _element_end
    cdef const int[::1] _attribute_start, _attribute_name, _attribute_offset, _declaration_element
    cdef const unsigned char[::1] _attribute_values, _content_kind, _content_values
    cdef const int[::1] _content_parent, _content_next, _content_offset

    cpdef int begin(self, object stream) except -1
    cpdef int begin_taker(self, unsigned long long taker) except -1
    cpdef int take(self, int element, int kind) except -1
    cpdef Py_ssize_t kept_bytes(self) except -1
    cpdef int place_of(self, int element) except -1
    cpdef object selected(self)
    cdef int _count_attributes(self, int element, int last, int kind) except -1
    cdef int _count_all(self, int first, int last) noexcept
    cdef int _copy_elements(self, Py_ssize_t elements) except -1
    cdef int _copy_attributes(self, Py_ssize_t starts, Py_ssize_t names, Py_ssize_t offsets) except -1
    cdef int _copy_content(self, Py_ssize_t parents, Py_ssize_t nexts, Py_ssize_t ends, Py_ssize_t values) except -1
    cdef object _used_names(self, Py_ssize_t elements, Py_ssize_t names, Py_ssize_t attributes)
    cdef int _copy_declarations(self, object result) except -1
    cdef int _runs_room(self, Py_ssize_t count) except -1
    cdef int _make_room(self, Py_ssize_t numbers, Py_ssize_t kinds, Py_ssize_t octets) except -1
