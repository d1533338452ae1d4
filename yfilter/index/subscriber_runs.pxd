# The C types of subscriber_runs.py, and the names of its numbers.
cpdef enum:
    # The first number of a run: count << RUN_SHIFT | bits of its block.
    RUN_BITS = 31
    RUN_SHIFT = 5

cdef int _LINE
cdef int _BITS_MIN

cdef class SubscriberRuns:
    cdef int[::1] _first
    cdef int[::1] _runs
    cdef int _used
    cdef dict _free
    cdef int[::1] _places

    cpdef int add(self, int query, int registration) except -1
    cpdef int remove(self, int query, int registration) except -1
    cpdef list of(self, int query)
    cpdef object collect(self, int[::1] queries, int count)
    cdef int _moved(self, int place) except -1
    cdef int _take(self, int bits) except -1
    cdef int _give_up(self, int place, int bits) except -1
