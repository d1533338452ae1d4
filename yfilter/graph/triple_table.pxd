# The C types of triple_table.py, and the names of its numbers.
cimport cython

cpdef enum:
    # Fields of a row, terms by number; BELOW: the property stated, where PROPERTY is one above it.
    TRIPLE_GRAPH = 0
    TRIPLE_SUBJECT = 1
    TRIPLE_PROPERTY = 2
    TRIPLE_OBJECT = 3
    TRIPLE_BELOW = 4
    TRIPLE_WIDTH = 5

    # What a chain is by, added up; its graph is always given.
    BY_SUBJECT = 1
    BY_PROPERTY = 2
    BY_OBJECT = 4
    CHAIN_KINDS = 8


@cython.final
cdef class TripleTable:
    cdef readonly int[::1] rows
    cdef readonly int count
    cdef readonly int _capacity
    cdef int _built
    cdef unsigned int _mask
    cdef int[::1] _heads
    cdef int[::1] following

    cpdef int add(self, int graph, int subject, int property, int object, int below) except -1
    cdef int first(self, int kind, int graph, int subject, int property, int object) except -2
    cdef inline int after(self, int kind, int row) noexcept
    cdef int _build(self, int kind) except -1
