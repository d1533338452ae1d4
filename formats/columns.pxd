# The C of columns.py, compiled into the modules that use it.
from cpython.array cimport array as Array

cdef inline int* numbers_of(Array column) noexcept:
    return column.data.as_ints

cdef inline unsigned char* bytes_of(Array column) noexcept:
    return column.data.as_uchars
