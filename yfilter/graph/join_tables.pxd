# The C types of join_tables.py.
cimport cython
from yfilter.graph.join cimport Operator, Run


cdef class RowJoin(Operator):
    cdef tuple _slots
    cdef int each_of(self, rows, Run run) except -1


cdef class EachRow(RowJoin):
    cdef tuple _rows


cdef class Table:
    cdef readonly tuple columns
    cdef Operator _inner
    cdef tuple _hidden
    cdef int _graph
    cdef bint _depends
    cdef object rows(self, Run run)


cdef class JoinTable(RowJoin):
    cdef Table _table


cdef class WithoutTable(Operator):
    cdef Table _table


cdef class Collect(Operator):
    cdef tuple _columns
