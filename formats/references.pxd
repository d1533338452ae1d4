# The C types of references.py.
cdef int NONE

cpdef int read_reference(const unsigned char* data, Py_ssize_t at) noexcept
cdef int _predefined(const unsigned char* data, Py_ssize_t at) noexcept
cdef int _hexadecimal(unsigned char digit) noexcept
cdef bint _is_character(int code) noexcept
