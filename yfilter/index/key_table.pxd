# The C types of key_table.py, and the names of its numbers.
cpdef enum:
    # Fields of a key.
    KEY_PLACE = 0
    KEY_LENGTH = 1
    KEY_WIDTH = 2

    # Rooms are multiples of so many octets.
    ROOM_OCTETS = 4

cdef class KeyTable:
    cdef unsigned char[::1] _octets
    cdef int[::1] _rows
    cdef int[::1] _slots
    cdef int _count
    cdef int _used
    cdef dict _free
    cdef long long _free_octets

    cpdef int find(self, bytes key) except -1
    cpdef int insert(self, bytes key, int number) except -1
    cpdef int remove(self, int number) except -1
    cpdef bytes key(self, int number)
    cdef int _place_for(self, int room) except -1
    cdef int _enter(self, int number, long long hashed) except -1
    cdef int _rehash(self, int capacity) except -1
