cdef class Sorter:
    cdef int[::1] _places
    cdef int[::1] _spare

    cdef int sort(self, int[::1] column, int count) except -1
    cdef int _pass(self, int[::1] source, int[::1] into, int count, int shift) noexcept


cdef int sort_by(double[::1] keys, int[::1] values, int count) noexcept
cdef int place_of(int[::1] column, int first, int count, int value) noexcept
