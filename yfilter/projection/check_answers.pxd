# The C types of check_answers.py.
cimport cython
from yfilter.projection.need_parts cimport Check
from yfilter.projection.need_states cimport NeedStates

cdef int _STRUCTURE, _ATTRIBUTE, _TEXT, _STRING_VALUE, _EVALUATION_VISITS

@cython.final
cdef class CheckAnswers:
    cdef public long long visits
    cdef NeedStates _states
    cdef object _stream, _evaluator
    cdef const int[::1] _element_end, _attribute_start, _attribute_name, _attribute_offset
    cdef const int[::1] _content_parent, _content_next, _content_offset
    cdef const unsigned char[::1] _content_kind
    cdef bytes _attribute_values, _content_values

    cpdef begin(self, object stream)
    cpdef object answers(self, Check check, int element)
    cdef _compare(self, object found, Check check, bytes value)
    cdef bint _holds(self, object condition, int element) except -1
    cdef bytes _string_value(self, int element)
