# The C types of names_below.py, and the names of its numbers.
cimport cython
from yfilter.index.message_view cimport MessageView
from yfilter.index.symbols cimport SymbolTable

cpdef enum:
    # What is known of a path.
    ANSWER_NO = 0
    ANSWER_YES = 1
    ANSWER_PERHAPS = 2


@cython.final
cdef class NamesBelow:
    cdef MessageView _view
    cdef SymbolTable _symbols
    cdef unsigned long long[::1] _bits
    cdef bint _is_made
    cdef readonly bint is_sure

    cpdef begin(self)
    cdef int answer(self, int needs, int element) except -1
    cdef int _make(self) except -1


cpdef int needs_of(int first, bint first_descends, int last, int steps) except -1
