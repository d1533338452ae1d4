# The C types of symbols.py, and the names of its numbers.
from yfilter.index.trie cimport *

cpdef enum:
    ANY_SYMBOL = 0
    ELSEWHERE = 0

    # Values of an element that are no attribute, and where the numbers of attributes begin.
    TEXT_NODE = 1
    STRING_VALUE = 2
    ATTRIBUTES = 3

    # Of a symbol with more labels than one.
    SEVERAL = -1

    # Fields of what is known of a name by its address.
    KNOWN_ADDRESS = 0
    KNOWN_MEANING = 1
    KNOWN_WIDTH = 2

cdef int _SLOTS


cdef class Numbers:
    cdef readonly dict of
    cdef int[::1] _users
    cdef list _keys
    cdef list _free

    cdef int acquire(self, object key) except? -1
    cdef int retain(self, int number) noexcept
    cdef bint release(self, int number) except -1


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
    cdef Numbers _symbols
    cdef Numbers _attributes
    cdef dict _labels
    cdef dict _labels_of
    cdef int _next_label
    cdef dict _remembered
    cdef unsigned long long[::1] _slots
    cdef list _slot_names

    cpdef int translate(self, list names) except -1
    cdef int _learn(self, name, int slot, unsigned long long address) except -1
    cpdef int acquire(self, object test) except -1
    cdef int retain(self, int symbol) noexcept
    cpdef int release(self, int symbol) except -1
    cpdef int acquire_attribute(self, object test) except -1
    cdef int retain_attribute(self, int attribute) noexcept
    cpdef int release_attribute(self, int attribute) except -1
