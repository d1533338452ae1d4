# The C types of atoms.py, and the names of its numbers.
cimport cython

cpdef enum:
    # Fields of an atom.
    ATOM_ATTRIBUTE = 0
    ATOM_HASH = 1
    ATOM_PLACE = 2
    ATOM_LENGTH = 3
    ATOM_USERS = 4
    ATOM_FIRST_EDGE = 5
    ATOM_EDGES = 6
    ATOM_SEEN = 7
    ATOM_WIDTH = 8

    # Other code counts on atoms fitting into as many bits.
    ATOM_BITS = 24

    # Operators of ranges; 0 is that of equalities.
    LESS = 1
    AT_MOST = 2
    GREATER = 3
    AT_LEAST = 4
    RANGES = 4

    # What the keys of text tests, and of equalities with numbers, begin with: no text does.
    TEXT_TEST = 0xFE
    NUMBER_KEY = 0xFF

    # Kinds of text tests.
    CONTAINS = 1
    STARTS_WITH = 2
    ENDS_WITH = 3
    MATCHES = 4


@cython.final
cdef class AtomTable:
    cdef public int[::1] atoms
    cdef public unsigned char[::1] octets
    cdef public int[::1] length_max
    cdef public int[::1] equalities
    cdef public int[::1] number_equalities
    cdef public int[::1] tests
    cdef public object text_tests
    cdef public int[::1] ranges
    cdef public int[::1] range_counts
    cdef public double[::1] numbers
    cdef long long[::1] _slots
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
    cdef bytearray _key_bytes
    cdef const unsigned char* _key
    cdef int[::1] _which
    cdef unsigned int[::1] _slot
    cdef unsigned int[::1] _hash

    cdef int find_all(
        self, const unsigned char* values, int[::1] attributes, const int[::1] offsets, int count,
        int[::1] found
    ) except -1
    cdef int find(
        self, int attribute, const unsigned char* values, int first, int last
    ) noexcept
    cdef int find_number(self, int attribute, double number) noexcept
    cdef int _find_from(
        self, unsigned int slot, int attribute, const unsigned char* values, int first, int last,
        unsigned int hashed
    ) noexcept
    cpdef int acquire(self, int attribute, bytes value) except -1
    cpdef int acquire_range(self, int attribute, int operator) except -1
    cpdef int release(self, int atom) except -1
    cpdef int acquire_number(self, double value) except -1
    cpdef int release_number(self, int number) except -1
    cpdef int cover(self, int attribute) except -1
    cpdef int constants(self, int attribute) except -1
    cpdef bint is_range(self, int atom) except -1
    cdef int _place_for(self, int length) except -1
    cdef int _new_atom(self) except -1
    cdef int _rehash(self, int capacity) except -1
    cdef int _unlink(self, int atom) except -1
