# The C types of literal_values.py.

cdef enum:
    NO_VALUE = 0
    DOUBLE = 1
    FLOAT = 2
    DECIMAL = 3
    DATE_TIME = 4
    DATE_TIME_STAMP = 5
    DATE = 6
    INTEGER = 7

cdef dict _KINDS, _SPECIAL
cdef bytes _PLAIN_TIME
cdef int _DAYS_BEFORE_1970

cpdef int value_kind(bytes datatype) except -1
cpdef bint is_seconds(int kind) noexcept
cpdef bytes derived_value(bytes lexical, int kind)
cdef bytes _integer(bytes lexical, int row)
cdef bint _is_plain_integer(bytes lexical) except -1
cdef bytes _seconds(bytes lexical, int kind)
cdef bint _is_plain_time(bytes lexical) except -1
cdef bytes _plain_seconds(bytes lexical)
cdef int _pair(const unsigned char* data, Py_ssize_t at) noexcept
cdef int _days_of(int year, int month) noexcept
cdef int _days_since_1970(int year, int month, int day) noexcept
