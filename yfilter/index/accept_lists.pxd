# The C types of accept_lists.py, and the names of its numbers.
from yfilter.index.atoms cimport AtomTable
from yfilter.index.record_pool cimport RecordPool
from yfilter.index.residual_rows cimport *
from yfilter.index.second_access cimport *
from yfilter.index.sorting cimport sort_by
from yfilter.index.trie cimport *

cpdef enum:
    # Fields of a list; from LIST_QUERIES on the queries.
    LIST_EPOCH = 0
    LIST_SURE = 1
    LIST_QUICK = 2
    LIST_SLOW = 3
    LIST_GROUPS = 4
    LIST_SECONDS = 5
    LIST_QUERIES = 6

    # Other fields of a ranged list, of which LIST_SLOW is RANGED.
    LIST_RANGED = 1
    LIST_BOUNDS = 2
    RANGED = -1

    # Fields of a group; from GROUP_QUERIES on its queries.
    GROUP_POSITION = 0
    GROUP_COUNT = 1
    GROUP_EPOCH = 2
    GROUP_ELEMENT = 3
    GROUP_QUERIES = 4

    # Fields of a second; from SECOND_QUERIES on its queries.
    SECOND_POSITION = 0
    SECOND_SYMBOL = 1
    SECOND_ATTRIBUTE = 2
    SECOND_OPERATOR = 3
    SECOND_COUNT = 4
    SECOND_BOUNDS = 5
    SECOND_ALIKE = 6
    SECOND_QUERIES = 7

    # Fields of a query in a list; in a group it has a twig for the residual.
    LISTED_QUERY = 0
    LISTED_RESIDUAL = 1
    LISTED_TWIG = 1
    LISTED_REQUIRED = 2
    QUICK_WIDTH = 2
    SLOW_WIDTH = 3
    GROUPED_WIDTH = 2

    # Sections of a list while it is laid out; from SECTION_GROUPS to SECTION_SECONDS one a position.
    SECTION_SURE = 0
    SECTION_QUICK = 1
    SECTION_SLOW = 2
    SECTION_GROUPS = 3
    SECTION_SECONDS = 67
    SECTIONS = 68


cdef class AcceptLists:
    cdef Trie trie
    cdef AtomTable atoms
    cdef RecordPool records
    cdef readonly int[::1] lists
    cdef readonly double[::1] bounds
    cdef int _lists_used
    cdef int _bounds_used
    cdef int[::1] _next
    cdef double[::1] _numbers
    cdef int[::1] _queries
    cdef SecondAccess _second

    cdef int make(self, int[::1] members, int first, int count) except -1
    cdef int make_range(self, int[::1] members, int first, int count) except -1
    cdef int copy(self, AcceptLists older, int source) except -1
    cdef long long used_bytes(self) noexcept
    cdef int _gather(self, int[::1] members, int first, int count) except -1
    cdef int _cover(self, int room) except -1
    cdef int _lay_out(self) except -1
    cdef int _divide(self, int found) except -1
    cdef int _write_seconds(self) except -1
    cdef int _write_row(self, int at, int query) except -1
    cdef int _keep_bounds(self, double[::1] numbers, int first, int count) except -1
    cdef int _write(self, int query, int residual) except -1
    cdef int _reserve(self, int count) except -1
