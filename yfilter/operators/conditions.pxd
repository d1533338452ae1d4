from yfilter.operators.operator cimport Operator
from yfilter.operators.path cimport Path, Variable
from yfilter.operators.scratch cimport Scratch
from yfilter.operators.value_tests cimport ValueTest


cdef class Condition(Operator):
    pass


cdef class Constant(Operator):
    cdef list _items
    cdef bint _truth


cdef class Not(Condition):
    cdef Operator _operand


cdef class Both(Condition):
    cdef list _parts
    cdef bint _wanted


cdef class ValueCondition(Condition):
    cdef Scratch _scratch
    cdef Path _path
    cdef ValueTest _test


cdef class SomeValue(ValueCondition):
    cpdef object key(self)


cdef class FirstValue(ValueCondition):
    pass


cdef class OnlyValue(ValueCondition):
    pass


cdef class Exists(Condition):
    cdef Operator _operand


cdef class CountIs(Condition):
    cdef Path _path
    cdef int _relation
    cdef double _number


cdef class PathJoin(Condition):
    cdef Path _left
    cdef Path _right
    cdef int _relation


cdef class Ranging(Condition):
    cdef Scratch _scratch
    cdef bint _every
    cdef Variable _variable
    cdef Path _path
    cdef Operator _condition
