from yfilter.index.atoms cimport AtomTable
from yfilter.index.draft cimport *
from yfilter.index.residual_rows cimport *

cdef int _NONE, _RANGE, _EQUALITY


cdef class AccessPath:
    cdef int[::1] spine
    cdef int length
    cdef int at
    cdef int access
    cdef Draft _draft
    cdef AtomTable _atoms
    cdef int _first_descendant
    cdef int _last_descendant
    cdef int _way
    cdef int _fork
    cdef int _nested
    cdef int _rank
    cdef double _first_worth
    cdef int _second_worth

    cpdef int choose(self) except -1
    cdef int position_of(self, int at) noexcept
    cdef int _consider_nested(self, int way) except -1
    cdef int _consider(self, int way, int fork, int nested) except -1
    cdef bint _is_better(self, int rank, double first, int second) noexcept
    cdef bint _is_asked(self, int step, int fork, int nested) noexcept
    cdef int _lay_out(self, int way, int fork, int nested) except -1
    cdef int _change_draft(self) except -1
    cdef int _ask(self, int step, int kind, int way) except -1
    cdef int _length_of(self, int way) noexcept
