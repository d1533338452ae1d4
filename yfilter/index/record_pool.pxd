# The C types of record_pool.py, and the names of its numbers.
cpdef enum:
    # Fields before a record.
    POOLED_LENGTH = -2
    POOLED_USERS = -1
    POOLED_BEFORE = 2

cdef class RecordPool:
    cdef public int[::1] words
    cdef int[::1] _slots
    cdef int _used
    cdef int _count
    cdef dict _free
    cdef long long _free_words
    cdef long long _first_seed

    cdef int acquire(self, int[::1] numbers, int length) except -1
    cpdef bint release(self, int record) except -1
    cdef int _allocate(self, int length) except -1
    cdef int _rehash(self, int capacity) except -1
    cdef unsigned long long _hash_of(self, int record) noexcept
