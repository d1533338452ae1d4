cimport cython
from yfilter.index.message_view cimport MessageView
from yfilter.index.symbols cimport SymbolTable


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
