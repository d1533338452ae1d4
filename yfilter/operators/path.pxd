# The C types of path.py, and the names of its numbers.
from yfilter.operators.operator cimport Operator
from yfilter.operators.scratch cimport *
from yfilter.operators.value_tests cimport ValueTest

cpdef enum:
    # Fields of a step.
    STEP_CODE = 0
    STEP_NAME = 1
    STEP_POSITIONAL = 2
    STEP_SEVERAL = 3
    STEP_WIDTH = 4

    # Codes of steps: what they lead to.
    CHILD = 0
    BELOW = 1
    SELF_AND_BELOW = 2
    ATTRIBUTE = 3
    ATTRIBUTES_BELOW = 4
    TEXT = 5
    TEXTS_BELOW = 6
    FILTER = 7
    PARENT = 8
    SELF_AXIS = 9
    PARENT_AXIS = 10
    BELOW_OR_SELF = 11
    ANCESTOR = 12
    ANCESTOR_OR_SELF = 13
    FOLLOWING_SIBLING = 14
    PRECEDING_SIBLING = 15

    # Where a path starts.
    FROM_CONTEXT = 0
    FROM_MESSAGE = 1
    FROM_VARIABLE = 2
    FROM_NODES = 3


cdef class Variable:
    cdef public long long node


cdef class Position(Operator):
    cdef int _relation
    cdef double _number
    cdef bint _from_last
    cdef bint accepts(self, long long position, long long size) noexcept


cdef class Nodes(Operator):
    cdef Scratch scratch
    cdef int collect(self, long long node) except -1


cdef class Union(Nodes):
    cdef list _parts


cdef class Selected(Nodes):
    cdef Nodes _source
    cdef tuple _predicates


cdef class Each(Nodes):
    cdef Nodes _left
    cdef Nodes _right


cdef class Path(Nodes):
    cdef int _origin
    cdef Nodes _source
    cdef Variable _variable
    cdef int _count
    cdef int[::1] _steps
    cdef list _predicates
    cdef readonly bint is_constant
    cdef int _message
    cdef int _searched
    cdef object _values

    cdef long long start(self, long long node) noexcept
    cdef bint some(self, long long node, ValueTest test) except -1
    cdef long long first_node(self, long long node) except -2
    cdef int count(self, long long node) except -1
    cdef object value_set(self, long long node)
    cdef bint _leads(self, int at, long long node, ValueTest test) except -1
    cdef int _step(self, int at, long long node) except -1
    cdef int _push_elements(self, int code, int symbol, long long node) except -1
    cdef int _push_contents(self, int code, int attribute, long long node) except -1
    cdef int _push_others(self, int code, int symbol, long long node) except -1
    cdef long long _parent(self, long long node) except -2
