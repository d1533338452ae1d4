# The C types of second_access.py.
cimport cython
from yfilter.index.atoms cimport *
from yfilter.index.record_pool cimport *
from yfilter.index.residual_rows cimport *
from yfilter.index.sorting cimport sort_by
from yfilter.index.trie cimport *

cpdef enum:
    CROWD_MIN = 64  # so many queries that share a comparison are worth a group
    ANY_ELEMENT = -1  # the symbol of a step of any name
    TRAIL_MAX = 12  # records that lead to a comparison
    TEMPLATES_MIN = 1024  # from so many different ones on it counts how many are equal


@cython.final
cdef class SecondAccess:
    cdef readonly int groups
    cdef readonly int[::1] group_of
    cdef readonly int[::1] position
    cdef readonly int[::1] symbol
    cdef readonly int[::1] attribute
    cdef readonly int[::1] operator
    cdef readonly int[::1] template
    cdef readonly int[::1] size
    cdef readonly int[::1] members
    cdef readonly double[::1] numbers
    cdef RecordPool _records
    cdef AtomTable _atoms
    cdef int[::1] _number_of
    cdef int[::1] _template_of
    cdef int[::1] _in_order
    cdef int[::1] _end
    cdef int[::1] _last
    cdef int[::1] _changes
    cdef dict _known
    cdef int _group, _best, _best_number
    cdef bint _is_counting
    cdef int _depth, _best_depth
    cdef int[::1] _records_down
    cdef int[::1] _places_down
    cdef int[::1] _best_records
    cdef int[::1] _best_places
    cdef RecordPool _templates
    cdef int _last_template, _made, _different
    cdef int[::1] _key

    cdef int divide(self, int[::1] queries, int count, int[::1] rows) except -1
    cdef int collect(self, int group) except -1
    cdef int _part_alike(self, int count) except -1
    cdef int _made_template(self) except -1
    cdef int _begin(self, int count) except -1
    cdef int _read(self, int record) except -1
    cdef int _read_way(self, int record, int position, bint is_below) except -1
    cdef int _read_check(self, int place, int position, int symbol) except -1
    cdef int _meet(self, int place, int position, int symbol) except -1
    cdef int _find_group(
        self, int position, int symbol, int attribute, int operator, int template
    ) except -1
    cdef int _grow(self, int room) except -1
