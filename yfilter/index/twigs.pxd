cimport cython
from yfilter.index.accept_lists cimport *
from yfilter.index.lazy_states cimport *
from yfilter.index.message_view cimport MessageView
from yfilter.index.names_below cimport NamesBelow, needs_of
from yfilter.index.record_pool cimport RecordPool
from yfilter.index.residual_rows cimport *
from yfilter.index.state_table cimport *
from yfilter.index.symbols cimport SymbolTable
from yfilter.index.trie cimport *


@cython.final
cdef class Twigs:
    cdef MessageView view
    cdef SymbolTable symbols
    cdef RecordPool records
    cdef readonly Trie trie
    cdef readonly LazyStates states
    cdef readonly unsigned long long[::1] rows
    cdef readonly long long walked
    cdef readonly int stamp
    cdef public int row_bytes_max
    cdef public int questions_min
    cdef object _new_states
    cdef readonly NamesBelow names
    cdef readonly int[::1] needs
    cdef int _words
    cdef int _row_count
    cdef int _owners
    cdef int[::1] _row_of
    cdef int[::1] _owner
    cdef int[::1] _path

    cpdef int begin(self) except -1
    cpdef int acquire(self, int record) except -1
    cpdef int remove(self, int twig) except -1
    cpdef int start(self) except -1
    cpdef int record(self, int twig) noexcept
    cdef int answer(self, int twig, int element) except -1
    cdef int row(self, int element, int count, long long visits_max) except -2
    cdef int _added(self, int node, int record) except -1
    cdef int _made(self, int element, long long visits_max) except -1
    cdef int _walk(self, int element, int row, long long visits_max) except -1
    cdef int _moved(self, int top, int depth, int label) except -1
    cdef int _turn(self, int top, int depth) except -1
    cdef int _take(self, int place, int row) except -1
    cdef int _forget_rows(self) except -1
