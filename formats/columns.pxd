# The columns of a message, for other extensions: see columns.pyx.
cimport cython
from cpython.array cimport array as Array


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
    cdef object finish(self, list names)
    cdef object finish_with(self, list names, bytes attribute_values, bytes content_values)
    cdef int _put(self, unsigned char* values, Py_ssize_t place, int code) except -1
    cdef _empty_rows(self)
    cdef _grow_elements(self, Py_ssize_t rows)
    cdef _grow_attributes(self, Py_ssize_t rows)
    cdef _grow_content(self, Py_ssize_t rows)
    cdef _grow_bytes(self, Py_ssize_t size)


@cython.final
cdef class NameTable:
    cdef readonly bint worn
    cdef long long _message
    cdef unsigned int _seed
    cdef unsigned int _mask
    cdef readonly int used
    cdef int _last
    cdef Py_ssize_t _raw_size
    cdef int[::1] _slots
    cdef unsigned long long[::1] _rows
    cdef unsigned char[::1] _raw
    cdef readonly int message_size
    cdef Py_ssize_t _last_word
    cdef list _names
    cdef dict _meanings
    cdef list _declarations
    cdef dict _binding_ids
    cdef list _message_names

    cpdef begin(self, Py_ssize_t size)
    cpdef list message_names(self)
    cpdef int bind(self, bytes prefix, bytes namespace) except -2
    cpdef tuple declaration(self, int binding)
    cdef int find(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t colon,
        int binding, long long tag
    ) except -2
    cdef last_name(self)
    cdef int first_of_meaning(self, int number) noexcept
    cdef void spoil(self) noexcept
    cpdef unsigned int slot_of(self, bytes name) noexcept
    cdef unsigned int _slot(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, unsigned long long first,
        unsigned long long second, unsigned long long shape
    ) noexcept
    cdef bint _is(self, int name, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef int _learn(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t colon,
        int binding
    ) except -2
    cdef _empty(self)


@cython.final
cdef class StreamSelection:
    cdef public unsigned long long[::1] attributes, wholes
    cdef public Py_ssize_t elements
    cdef object _stream
    cdef Array _ints, _octet_column
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
    cdef int _copy_attributes(
        self, Py_ssize_t starts, Py_ssize_t names, Py_ssize_t offsets
    ) except -1
    cdef int _copy_content(
        self, Py_ssize_t parents, Py_ssize_t nexts, Py_ssize_t ends, Py_ssize_t values
    ) except -1
    cdef object _used_names(self, Py_ssize_t elements, Py_ssize_t names, Py_ssize_t attributes)
    cdef int _copy_declarations(self, object result) except -1
    cdef int _runs_room(self, Py_ssize_t count) except -1
    cdef int _make_room(self, Py_ssize_t numbers, Py_ssize_t kinds, Py_ssize_t octets) except -1


cdef enum:
    # Where an octet is escaped.
    IN_VALUES = 1
    IN_TEXT = 2


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
