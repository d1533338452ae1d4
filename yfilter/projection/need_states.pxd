# The C types of need_states.py.
cimport cython

@cython.final
cdef class NeedStates:
    cdef object _table
    cdef public long long names_version, made, outdated
    cdef long long _tests
    cdef list _names, _free
    cdef dict _accepted, _numbers
    cdef public list contents
    cdef public unsigned char[::1] flags
    cdef int[::1] _next, _label
    cdef Py_ssize_t _width, _rows

    cpdef int bind(self, list names) except -1
    cpdef int follow(self, int state, int name) except -1
    cpdef bytes accepted(self, object test)
    cdef _forget(self)
    cdef _take_in(self)
    cdef _drop(self, int number)
    cdef _clear_row(self, int number)
    cdef int _find(self, int state, int name) except -1
    cdef int _add(self, object items) except -1
    cdef int _widen(self, int label, list names) except -1
