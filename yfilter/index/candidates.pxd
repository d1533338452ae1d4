cimport cython
from yfilter.index.accept_lists cimport *
from yfilter.index.names_below cimport *
from yfilter.index.offers cimport Offers
from yfilter.index.residual_rows cimport *
from yfilter.index.twigs cimport Twigs
from yfilter.index.subscriber_runs cimport SubscriberRuns
from yfilter.index.trie cimport Trie


@cython.final
cdef class Candidates(Offers):
    cdef Trie trie
    cdef Twigs _twigs
    cdef public int[::1] found
    cdef public int count
    cdef public dict unsure
    cdef public long long candidates
    cdef public long long visits
    cdef public long long passed_over
    cdef int _epoch
    cdef object _groups
    cdef int _stamp
    cdef int[::1] _group_of
    cdef int[::1] _verdict
    cdef unsigned long long[::1] _marks
    cdef int _waiting
    cdef int[::1] _query
    cdef int[::1] _record
    cdef int[::1] _where
    cdef public long long[::1] costs
    cdef bint is_spent

    cpdef int begin(self, int epoch, long long visits_max, object groups) except -1
    cpdef list take_costs(self, long long least)
    cpdef forget(self, int query)
    cpdef int end(self) except -1
    cpdef object registrations(self, SubscriberRuns runs)
    cdef int _take_groups(self, int at, int end, int element) except -1
    cdef int _take_group(self, int at, int end, int row, int ancestor) except -1
    cdef int _wait(self, int query, int record, int element) except -1
    cdef int _verify(self) except -1
    cdef bint _is_found(self, int query) noexcept
    cdef int _find(self, int query) noexcept
    cdef int _cover_found(self, int more) except -1
