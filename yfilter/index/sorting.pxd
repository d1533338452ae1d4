cdef int sort(int[::1] column, int count) noexcept
cdef int sort_by(double[::1] keys, int[::1] values, int count) noexcept
