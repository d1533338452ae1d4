# The C types of run.py, and the names of its numbers.
cimport cython
from yfilter.index.atoms cimport *
from yfilter.index.lazy_states cimport *
from yfilter.index.message_view cimport MessageView
from yfilter.index.moves cimport Moves
from yfilter.index.offers cimport Offers
from yfilter.index.state_table cimport *
from yfilter.index.trie cimport *

cpdef enum:
    # An item of a move to an atom: the row of own atoms << ITEM_SHIFT | the operator.
    ITEM_OPERATOR = 7
    ITEM_SHIFT = 3

    # The operator of the head that carries the structure.
    STRUCTURE = -1

    # What ``go`` gives for a message that would cost too much, and ``go_on`` when there is more.
    TOO_COSTLY = -1
    MORE = 1


@cython.final
cdef class Run:
    cdef MessageView view
    cdef Offers _taker
    cdef Trie trie
    cdef public LazyStates states
    cdef public long long heads
    cdef public int turns
    cdef public long long elements_spared
    cdef object _new_states
    cdef Moves _down
    cdef Moves _across
    cdef Moves _onto
    cdef int _count
    cdef int _position
    cdef unsigned long long _entered
    cdef long long _moved
    cdef readonly int[::1] _state
    cdef int[::1] _operator
    cdef double[::1] _number
    cdef int[::1] _first
    cdef int[::1] _end

    cpdef int go(self, Offers taker, int root, long long visits_max) except -2
    cpdef int begin(self, Offers taker, int root) except -2
    cpdef int go_on(self, long long visits_max, long long piece) except -2
    cpdef bint is_empty(self, int root) noexcept
    cdef int _move(self, int position) except -1
    cdef int _ask_down(self, int position) except -1
    cdef int _ask_attributes(self) except -1
    cdef int _ask_atoms(self) except -1
    cdef int _enter_all(self, int position, int end) except -1
    cdef int _enter(self, int state, int operator, double number, int element) except -1
    cdef int _turn(self, int first) except -1
