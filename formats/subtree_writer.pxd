# The C types of subtree_writer.py.
cimport cython
from formats.words cimport bytes_below, copy_run, marks_in, marks_in_text, put_word, word_at

cdef int _SLACK, _ROOM, _IN_VALUES, _IN_TEXT

@cython.final
cdef class SubtreeWriter:
    cdef public object stream
    cdef public Py_ssize_t used
    cdef const int[::1] _tag_start
    cdef const unsigned char *_tags
    cdef const unsigned char *_escaped
    cdef bytes _escaped_octets, _tags_octets, _attribute_octets, _content_octets
    cdef const int[::1] element_name, element_end, attribute_start, attribute_name, content_parent
    cdef const int[::1] _element_parent, _attribute_offset, _content_next, _content_offset
    cdef const unsigned char *_attribute_values
    cdef const unsigned char[::1] content_kind
    cdef const unsigned char *_content_values
    cdef bytearray _buffer
    cdef unsigned char *_data
    cdef Py_ssize_t _room
    cdef list _declared
    cdef int _open, _declaring, _next_declared
    cdef bint _tag_open

    cpdef bytes document(self)
    cpdef bytes inside(self, int element, int first, int last)
    cpdef bytes attributes(self, int element)
    cpdef bytes taken(self, Py_ssize_t start)
    cpdef bytes part(self, Py_ssize_t first, Py_ssize_t last)
    cpdef int put(self, bytes octets) except -1
    cpdef int put_again(self, Py_ssize_t first, Py_ssize_t size) except -1
    cpdef int put_element(self, int element, bytes declared) except -1
    cpdef int put_attribute(self, int attribute) except -1
    cpdef int put_value(self, int attribute, int where) except -1
    cpdef int put_text(self, int content, int where) except -1
    cpdef int put_piece(self, int content) except -1
    cpdef int put_string(self, int element, int where) except -1
    cpdef int put_escaped(self, bytes octets, int where) except -1
    cpdef int put_name(self, int name, bint with_prefix) except -1
    cpdef int first_content(self, int element) noexcept
    cpdef int end_of_content(self, int element, int first) noexcept
    cpdef bint is_plain(self, int element) except -1
    cdef list _declared_on_root(self)
    cdef int _put_inside(self, int element, int first, int last) except -1
    cdef int _put_declarations(self, int element) except -1
    cdef int _put_attributes(self, int element) except -1
    cdef int _put_content(self, int content) except -1
    cdef int _close_down_to(self, int parent) except -1
    cdef int _put_start(self, int name) except -1
    cdef int _put_tag(self, Py_ssize_t first, Py_ssize_t last) except -1
    cdef int _put_end(self, int element) except -1
    cdef int _put_escaped(
        self, const unsigned char* octets, Py_ssize_t first, Py_ssize_t last, int where
    ) except -1
    cdef int _put_reference(self, int octet) except -1
    cdef int _put_run(
        self, const unsigned char* octets, Py_ssize_t first, Py_ssize_t last
    ) except -1
    cdef int _put_octet(self, int octet) except -1
    cdef int _put_two(self, int octet, int other) except -1
    cdef int _reserve(self, Py_ssize_t size) except -1
    cdef int _grow(self, Py_ssize_t size) except -1
    cdef int _after(self, int following, int first) noexcept
