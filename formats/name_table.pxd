# The C types of name_table.py, and the names of its numbers.
cimport cython

cpdef enum:
    # Fields of a name.
    NAME_FIRST = 0
    NAME_SECOND = 1
    NAME_SHAPE = 2
    NAME_RAW = 3
    NAME_MESSAGE = 4
    NAME_NUMBER = 5
    NAME_MEANING = 6
    NAME_TAG = 7
    NAME_WIDTH = 8

cdef int PROBES_MAX

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
