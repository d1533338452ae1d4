# The C types of binary.py: the frames between a payload and its reader.
from formats.binary_reader cimport read_binary

cdef Py_ssize_t _VERSION_AT, _HEAD_AT

cdef int _check_head(bytes data, bytes magic, limits) except -1
