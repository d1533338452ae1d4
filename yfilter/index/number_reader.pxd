cdef double number_in(const unsigned char[::1] values, int first, int last) except? -1
