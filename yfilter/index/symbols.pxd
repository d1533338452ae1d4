cdef int _SLOTS

cdef class SymbolTable:
    cdef public int[::1] exact
    cdef public int[::1] in_namespace
    cdef public int[::1] any_namespace
    cdef public int[::1] label_bits
    cdef public int[::1] only_label
    cdef public int[::1] seen
    cdef public int[::1] label
    cdef public int[::1] attribute
    cdef public int[::1] first
    cdef object _symbols
    cdef object _attributes
    cdef dict _labels
    cdef dict _labels_of
    cdef int _next_label
    cdef dict _remembered
    cdef unsigned long long[::1] _slots
    cdef list _slot_names

    cpdef int translate(self, list names) except -1
    cdef int _learn(self, name, int slot, unsigned long long address) except -1
