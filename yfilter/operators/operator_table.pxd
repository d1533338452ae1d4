from yfilter.operators.operator cimport Operator
from yfilter.operators.scratch cimport *

cdef long long _TIMED_FROM, _VISIT_NANOS, _INTERPRETED_NANOS
cdef double _NOT_BEGUN

cdef class OperatorTable:
    cdef public Scratch scratch
    cdef list _operators
    cdef list _entries
    cdef dict _numbers
    cdef list _free
    cdef object _stream
    cdef bint _is_new
    cdef dict _answers
    cdef dict _selected
    cdef dict _by_value
    cdef dict _spent
    cdef dict _seconds
    cdef dict _why
    cdef dict _late
    cdef object _limits
    cdef public bint gave_up
    cdef public object exceeded
    cdef public long long over_limit
    cdef public long long visits
    cdef public long long nanos

    cdef list _select(self, int number)
    cdef int _look(self) except -1
    cdef bint _spend(self, Operator operator, int number, long long spent) except -1
    cdef bint holds(self, int number, int element) except -1
