cdef int content_from(const int[::1] content_next, int element) noexcept
cdef int content_to(
    const int[::1] content_next, const int[::1] content_parent, int element, int end
) noexcept
