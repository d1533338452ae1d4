# The C types of wire_names.py.
cimport cython
from formats.name_table cimport NameTable
from formats.wire_words cimport WireWords

@cython.final
cdef class WireNames:
    cdef bytes _head
    cdef Py_ssize_t _at, _offset
    cdef WireWords _words
    cdef readonly object limits
    cdef readonly list names, bindings
    cdef readonly int count, binding_count, prefix_count
    cdef int[::1] binding, meaning, size, prefix
    cdef unsigned char[::1] is_xmlns
    cdef dict _first_binding

    cdef bint resolve(self, int number) except -1
    cdef _set(self, int number, int binding, int meaning, tuple known)
    cdef tuple _check(self, name)
    cdef _read_bindings(self)
    cdef _read_names(self)
    cdef bint _find_names(self, NameTable table) except -1
    cdef bint _is_wrong(self, name) except -1
    cdef _word(self)
    cdef int _number(self) except -1
    cdef _refuse(self, str code, str reason)
