# The C types of int_cache.py, and the names of its numbers.
cpdef enum:
    # Fields of a slot.
    SLOT_KEY = 0
    SLOT_VALUE = 1
    SLOT_WIDTH = 2

    # No value; one that is to be looked for once more; the first of those that ``retire`` puts.
    ABSENT = -1
    SOUGHT = -2
    RETIRED = -3

cdef class IntCache:
    cdef readonly long long[::1] _slots
    cdef long long[::1] _before
    cdef int _count
    cdef readonly int _shift
    cdef int _before_shift
    cdef int _shift_min
    cdef readonly unsigned long long _mask
    cdef unsigned long long _before_mask

    cdef inline int get(self, long long key) noexcept
    cdef int get_all(self, long long[::1] keys, int[::1] values, int count) noexcept
    cdef inline int recall(self, long long key) noexcept
    cdef int retire(self, long long key) except -1
    cdef int put(self, long long key, int value) except -1
    cdef int cover(self, int count) except -1
    cdef int _grow(self) except -1
    cpdef long long size_bytes(self)


cdef int former(int value) noexcept
