# The C types of namespace_scope.py.
cimport cython

cdef int NO_NAMESPACE, UNKNOWN, XML_BINDING

@cython.final
cdef class NamespaceScope:
    cdef readonly int size
    cdef int[::1] _element, _prefix_at, _prefix_end, _binding

    cdef void clear(self) noexcept
    cdef bint declare(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, int element, int binding
    ) except -1
    cdef void close(self, int element) noexcept
    cdef int binding_of(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t colon
    ) except -2
    cdef bint _is(
        self, int scope, const unsigned char* data, Py_ssize_t at, Py_ssize_t end
    ) noexcept
