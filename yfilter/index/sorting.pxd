cdef int sort(int[::1] column, int count) noexcept
