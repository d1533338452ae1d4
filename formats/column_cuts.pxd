# The C of column_cuts.py, compiled into the modules that use it.
from cpython.array cimport array, clone
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy

cdef inline array ints_of(array kind, int[::1] room, Py_ssize_t first, Py_ssize_t last):
    cdef array made = clone(kind, last - first, False)
    if last > first:
        memcpy(made.data.as_ints, &room[first], 4 * (last - first))
    return made

cdef inline array octets_of(array kind, unsigned char[::1] room, Py_ssize_t first, Py_ssize_t last):
    cdef array made = clone(kind, last - first, False)
    if last > first:
        memcpy(made.data.as_uchars, &room[first], last - first)
    return made

cdef inline bytes bytes_of(unsigned char[::1] room, Py_ssize_t first, Py_ssize_t last):
    if last == first:
        return b""
    return PyBytes_FromStringAndSize(<char *>&room[first], last - first)

cdef inline int copy_octets(unsigned char[::1] target, Py_ssize_t at, const unsigned char[::1] source, Py_ssize_t first, Py_ssize_t count) noexcept:
    if count > 0:
        memcpy(&target[at], &source[first], count)
    return 0
