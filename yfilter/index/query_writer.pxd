# The C types of query_writer.py, and the names of its numbers.
from yfilter.index.access_path cimport AccessPath
from yfilter.index.atoms cimport *
from yfilter.index.draft cimport *
from yfilter.index.record_pool cimport *
from yfilter.index.residual_parts cimport ResidualParts
from yfilter.index.residual_rows cimport *
from yfilter.index.symbols cimport SymbolTable
from yfilter.index.trie cimport *
from yfilter.index.twigs cimport Twigs
from yfilter.operators.operator_table cimport OperatorTable

cpdef enum:
    # Fields of a condition that is left.
    LEFT_CONDITION = 0
    LEFT_POSITION = 1
    LEFT_WIDTH = 2

    # Fields of a check while they are put in order.
    NOTED_ORDER = 0
    NOTED_POSITION = 1
    NOTED_KIND = 2
    NOTED_A = 3
    NOTED_B = 4
    NOTED_WIDTH = 5


cdef class QueryWriter:
    cdef Draft _draft
    cdef AccessPath _path
    cdef SymbolTable _symbols
    cdef AtomTable _atoms
    cdef RecordPool _records
    cdef Trie _trie
    cdef Twigs _twigs
    cdef OperatorTable _operators
    cdef ResidualParts _parts
    cdef dict _others
    cdef int[::1] _order
    cdef int[::1] _left
    cdef int[::1] _checks
    cdef int[::1] _numbers
    cdef int _length

    cpdef int write(self, int root) except -1
    cpdef int write_other(self, int root, int query) except -1
    cpdef int erase(self, int query) except -1
    cdef int _erase(self, int query) except -1
    cdef int _write_path(self, int node) except -1
    cdef int _write_access(self, int node) except -1
    cdef int _write_residual(self) except? -1
    cdef int _collect_left(self) except -1
    cdef bint _is_access(self, int condition) except -1
    cdef int _settle(self, int condition) except -1
    cdef bint _settle_way(self, int step) except -1
    cdef bytes _octets(self, int row)
    cdef int _required_by(self, int condition) except -1
    cdef int _quick(self) noexcept
    cdef int _write_fixed(self, int count, int required) except -1
    cdef int _write_way(self, int mode, int first, int required) except -1
    cdef int _begin_record(self, int mode, int required, int count) except -1
    cdef int _put(self, int number) except -1
    cdef int _record(self) except -1
    cdef int _note_check(self, int place, int position, int condition) except -1
    cdef int _ordered_checks(self, int count) except -1
