from yfilter.operators.scratch cimport Scratch


cdef bint compares(double number, int relation, double other) noexcept


cdef class ValueTest:
    cdef bint accepts(self, Scratch scratch) except -1


cdef class EqualTo(ValueTest):
    cdef bytes _octets
    cdef int _length
    cdef bint _wanted


cdef class OneOf(ValueTest):
    cdef readonly object values


cdef class Ordered(ValueTest):
    cdef int _operator
    cdef bytes _octets


cdef class NumberTest(ValueTest):
    cdef int _operator
    cdef readonly double number


cdef class Contains(ValueTest):
    cdef bytes _octets


cdef class StartsWith(ValueTest):
    cdef bytes _octets


cdef class EndsWith(ValueTest):
    cdef bytes _octets


cdef class Matches(ValueTest):
    cdef object _pattern
    cdef dict _known
    cdef long long _known_size
    cdef bint _found(self, Scratch scratch, bytes value) except -1
