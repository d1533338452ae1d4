# The C types of wire_bytes.py.
cimport cython

cdef long long NUMBER_MAX

@cython.final
cdef class WireBytes:
    cdef readonly bytes form
    cdef const unsigned char* data
    cdef public Py_ssize_t at, stop
    cdef readonly Py_ssize_t size

    cpdef begin(self, bytes form, Py_ssize_t at)
    cpdef int number(self) except -1
    cdef int _long_number(self) except -1
    cpdef refuse(self, str code, str reason)
