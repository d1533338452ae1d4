cdef class AtomTable:
    cdef public int[::1] atoms
    cdef public unsigned char[::1] octets
    cdef public const unsigned char[::1] values
    cdef public int[::1] length_max
    cdef public int[::1] equalities
    cdef public int[::1] number_equalities
    cdef public int[::1] ranges
    cdef public int[::1] range_counts
    cdef public double[::1] numbers
    cdef int[::1] _slots
    cdef int _bound
    cdef int _count
    cdef int _octets_used
    cdef int _octets_free
    cdef list _free_atoms
    cdef dict _free_octets
    cdef dict _number_of
    cdef list _number_users
    cdef list _free_numbers
    cdef unsigned long long _seed

    cdef int _touched
    cdef double[::1] _double
    cdef const unsigned char[::1] _key
    cdef const unsigned char[::1] _kept

    cdef int find(self, int attribute, int first, int last, unsigned int hashed) noexcept
    cdef int find_number(self, int attribute, double number) except -1
    cdef int prepare(
        self, int[::1] attributes, const int[::1] offsets, int count, unsigned int[::1] hashes
    ) noexcept
    cdef unsigned int hash_of(self, int attribute, int first, int last) noexcept
    cpdef int acquire(self, int attribute, bytes value) except -1
    cpdef int acquire_range(self, int attribute, int operator) except -1
    cpdef int release(self, int atom) except -1
    cdef int _new_atom(self) except -1
    cdef int _rehash(self, int capacity) except -1
    cdef int _unlink(self, int atom) except -1
