# The C types of join.py, and the names of its numbers.
cimport cython
from yfilter.graph.message_graph cimport MessageGraph
from yfilter.graph.triple_table cimport *

cpdef enum:
    # Slots of every run: one that is never bound, which stands for the default graph, too, and one
    # that takes what nobody asks for.
    SLOT_UNBOUND = 0
    SLOT_ANY = 1
    SLOTS_FIRST = 2

    # Where a triple pattern looks.
    SOURCE_STATED = 0
    SOURCE_CLASSES = 1
    SOURCE_ABOVE = 2
    SOURCE_OWN_CLASSES = 3

    # Visits that are charged at once.
    VISITS_CHARGED = 256

    # Of a row that is kept: without its columns, of a column, and what is charged at once.
    ROW_BYTES = 56
    POINTER_BYTES = 8
    ROW_BYTES_CHARGED = 1048576


cdef class Operator


@cython.final
cdef class Run:
    cdef readonly MessageGraph graph
    cdef readonly object budget
    cdef readonly list rows
    cdef readonly list extra
    cdef dict _extra_numbers
    cdef dict _extra_values
    cdef dict _tables
    cdef list _collected
    cdef TripleTable _classes
    cdef TripleTable _own_classes
    cdef TripleTable _above
    cdef int[::1] slots
    cdef int _visits
    cdef int _row_bytes
    cdef bint _first_only

    cdef inline int visit(self) except -1
    cdef int _charge(self) except -1
    cdef int count_row(self, int columns) except -1
    cpdef int finish(self) except -1
    cpdef object value(self, int slot)
    cpdef bint is_bound(self, int slot) noexcept
    cpdef object term(self, int number)
    cpdef int number_of(self, term) except 0
    cpdef int set_slot(self, int slot, int number) except -1
    cpdef bint exists(self, Operator head) except -1
    cpdef bint run(self, Operator head) except -1
    cdef TripleTable table(self, int source)


cdef class Operator:
    cdef public Operator following
    cdef int each(self, Run run) except -1


cdef class MatchTriple(Operator):
    cdef int _source
    cdef int _graph
    cdef int _subject
    cdef int _property
    cdef int _object
    cdef int _below
    cdef bint _repeats
    cdef bint _agrees(self, TripleTable table, Py_ssize_t at) noexcept


cdef class MatchClass(Operator):
    cdef int _graph
    cdef int _subject
    cdef list _classes


cdef class Test(Operator):
    cdef object _condition


cdef class Assign(Operator):
    cdef object _value
    cdef int _slot


cdef class Branches(Operator):
    cdef list _heads


cdef class Optionally(Operator):
    cdef Operator _inner
    cdef int _flag


cdef class Raise(Operator):
    cdef int _flag


cdef class Without(Operator):
    cdef Operator _inner


cdef class Found(Operator):
    pass


cdef class EachGraph(Operator):
    cdef int _graph
    cdef int _variable


cdef class IsGraph(Operator):
    cdef int _graph


cdef class Emit(Operator):
    cdef tuple _columns
