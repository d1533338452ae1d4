cdef double number_in(const unsigned char* values, int first, int last) except? -1
