from yfilter.operators.operator cimport Operator
from yfilter.operators.path cimport Nodes, Path, Selected, Variable
from yfilter.operators.scratch cimport *


cdef class Interpreted(Operator):
    cdef Scratch _scratch
    cdef object _expression
    cdef dict _variables
    cdef object _run(self, long long node)


cdef class ItemVariable(Operator):
    cdef Scratch _scratch
    cdef public list _items


cdef class NameOf(Operator):
    cdef Scratch _scratch
    cdef Path _path
    cdef object _said
    cdef object _nothing
    cdef int _message
    cdef list _texts


cdef class AtMostOne(Selected):
    pass


cdef class CountOf(Operator):
    cdef Path _path


cdef class Call(Operator):
    cdef Scratch _scratch
    cdef str _name
    cdef list _arguments
    cdef bytes _takes
    cdef bint _may_give_nodes


cdef class TextCall(Operator):
    cdef Scratch _scratch
    cdef object _function
    cdef list _arguments


cdef class Arithmetic(Operator):
    cdef str _name
    cdef Operator _left
    cdef Operator _right


cdef class Negated(Operator):
    cdef Operator _operand


cdef class CastTo(Operator):
    cdef str _type
    cdef bint _optional
    cdef Operator _operand


cdef class Remembered(Operator):
    cdef Scratch _scratch
    cdef Operator _operand
    cdef int _message
    cdef dict _known


cdef class ItemComparison(Operator):
    cdef Scratch _scratch
    cdef bint _has_number
    cdef double _number
    cdef int _compared
    cdef Operator _left
    cdef object _relation
    cdef Operator _right
    cdef bint _is_list
    cdef list _list
    cdef object _texts


cdef class ValueComparison(Operator):
    cdef Operator _left
    cdef object _relation
    cdef Operator _right


cdef class ForEachNode(Operator):
    cdef Nodes _left
    cdef Operator _right
    cdef Scratch _scratch


cdef class Chosen(Operator):
    cdef Operator _condition
    cdef Operator _consequence
    cdef Operator _alternative


cdef class Joined(Operator):
    cdef list _parts


cdef class RangingItems(Operator):
    cdef Scratch _scratch
    cdef bint _every
    cdef ItemVariable _variable
    cdef Operator _source
    cdef Operator _condition


cdef class OncePerMessage(Operator):
    cdef Scratch _scratch
    cdef readonly Operator operand
    cdef int _message
    cdef object _value
    cdef object _atoms
    cdef object _truth
    cdef object _error
    cdef int _look(self) except -1
