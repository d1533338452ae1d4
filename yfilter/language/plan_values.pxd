# The C types of plan_values.py.
from yfilter.language.plan_paths cimport PlanPaths
from yfilter.language.result_plan cimport *

cdef int _RAW

cdef class PlanValues(PlanPaths):
    cdef object _asked(self, foreign)
    cdef object _node(self, int slot, int kind)
    cdef int _put_atom(self, int row, int where) except -1
    cdef _put_first(self, int row, int path, int first, int where)
    cdef int _put_string_of(self, int kind, int node, int where) except -1
    cdef bytes _string_of(self, int kind, int node)
    cdef bytes _string(self, int row)
    cdef bint _some_node(self, int row) except -1
    cdef bint _foreign_truth(self, int row) except -1
    cdef bint _holds(self, int row) except -1

cdef bint _compares(value, int operator, constant) except -1
