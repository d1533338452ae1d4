# The C types of names_below.py, and the names of its numbers.
cimport cython
from yfilter.index.message_view cimport MessageView
from yfilter.index.symbols cimport SymbolTable

cpdef enum:
    # What is known of a path.
    ANSWER_NO = 0
    ANSWER_YES = 1
    ANSWER_PERHAPS = 2

    # The words of an element: bits of its children, from NAMES_BELOW on of all below.
    NAMES_BELOW = 4
    NAMES_WIDTH = 8

    # What a path needs, by its first and its last step: a word, and a bit in it.
    NEED_FIRST_WORD = 0
    NEED_FIRST_BIT = 3
    NEED_LAST_WORD = 9
    NEED_LAST_BIT = 12
    NEED_WORDS = 7
    NEED_BITS = 63
    NEED_NO_MORE = 0x40000


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
