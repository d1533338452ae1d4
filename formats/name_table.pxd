# The C types of name_table.py.
cimport cython

cdef int PROBES_MAX

@cython.final
cdef class NameTable:
    cdef readonly bint worn
    cdef long long _message
    cdef unsigned int _seed
    cdef unsigned int _mask
    cdef int _used
    cdef Py_ssize_t _raw_size
    cdef int[::1] _slots
    cdef unsigned int[::1] _hashes
    cdef int[::1] _bindings
    cdef int[::1] _raw_at
    cdef int[::1] _raw_length
    cdef unsigned char[::1] _raw
    cdef int[::1] _local
    cdef long long[::1] _local_message
    cdef int[::1] _global
    cdef int[::1] _meaning
    cdef long long[::1] _attribute_tag
    cdef list _names
    cdef dict _meanings
    cdef list _declarations
    cdef dict _binding_ids
    cdef list _message_names

    cpdef begin(self)
    cpdef list message_names(self)
    cdef Py_ssize_t message_size(self)
    cpdef unsigned int hash_seed(self) noexcept
    cpdef int bind(self, bytes prefix, bytes namespace) except -2
    cpdef tuple declaration(self, int binding)
    cdef int find(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t colon, unsigned int hashed,
        int binding
    ) except -2
    cpdef bint is_repeated(self, int number, long long tag) noexcept
    cdef int _number(self, int name) except -2
    cdef bint _is(self, int name, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef int _learn(
        self, unsigned int slot, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t colon,
        unsigned int hashed, int binding
    ) except -2
    cdef _empty(self)
