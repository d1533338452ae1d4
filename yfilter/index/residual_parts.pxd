from yfilter.index.atoms cimport *
from yfilter.index.record_pool cimport *
from yfilter.index.residual_rows cimport *
from yfilter.index.symbols cimport SymbolTable
from yfilter.index.twigs cimport Twigs
from yfilter.operators.operator_table cimport OperatorTable


cdef class ResidualParts:
    cdef SymbolTable _symbols
    cdef AtomTable _atoms
    cdef RecordPool _records
    cdef Twigs _twigs
    cdef OperatorTable _operators

    cdef int release_atom(self, int atom) except -1
    cdef int release_record(self, int record) except -1
    cdef int release_parts(self, int record) except -1
    cdef int release_check(self, int kind, int a, int b) except -1
    cdef bint _is_plain(self, int record) except -1
