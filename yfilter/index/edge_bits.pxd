# The C of edge_bits.py, compiled into the modules that use it.

cdef inline int edge_bit(int edge) noexcept nogil:
    return 1 << ((<unsigned long long>edge * 0x9E3779B1ULL >> 8 & 0xFFFFFF) % 31)

cdef inline int name_bit(int edge) noexcept nogil:
    return edge_bit(edge) if edge else ~0x7FFFFFFF
