# The C types of plan_paths.py.
from formats.subtree_writer cimport SubtreeWriter
from yfilter.language.result_plan cimport *

cdef int _NO_NAME, _SEVERAL, _ANY_NAME
cdef long long _FIRST_LOOK, _FIRST_STEP
cdef double _NOT_BEGUN

cdef class PlanPaths:
    cdef readonly object stream
    cdef readonly object limits
    cdef SubtreeWriter _xml
    cdef ResultPlan _plan
    cdef long long _stamp
    cdef object _evaluator
    cdef dict _names
    cdef long long _visits, _tuples, _bytes, _look_at, _step
    cdef double _began, _looked
    cdef Py_ssize_t _settled
    cdef object _node_column, _slot_column
    cdef int[::1] _nodes, _slots
    cdef int _top, _elements
    cdef bytearray _masks

    cdef int _begin(self, ResultPlan plan) except -1
    cdef int _allow(self) except -1
    cdef int _number(self, test) except? -1
    cdef object _mask(self, test)
    cdef int _settle(self) except -1
    cdef int _spend(self) except -1
    cdef int _look(self) except -1
    cdef bint _holds(self, int row) except -1
    cdef int _path(self, int path) except -1
    cdef int _select(self, int axis, int number, int start) except -1
    cdef bint _accepts(self, int number, int name) noexcept
    cdef int _push(self, int node) except -1
    cdef int _filter(self, int step, int first) except -1
    cdef int _sort(self, int first) except -1
