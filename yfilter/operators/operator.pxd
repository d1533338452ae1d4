cdef class Operator:
    cdef public bint is_costly
    cdef public bint uses_context
    cdef public object free
    cdef bint holds(self, long long node) except -1
    cdef object items(self, long long node)
    cdef object value(self, long long node)
    cdef object atom(self, long long node)
    cdef object first_atom(self, long long node)
