# The hash of a value of an attribute, by words of eight bytes.
from formats.words cimport part_of_word, word_at

# 32 bits for ``values[first:last]``; the last two words of a long value may overlap.
cdef inline unsigned int value_hash(
    unsigned long long seed, int attribute, const unsigned char* values, int first, int last
) noexcept nogil:
    cdef unsigned long long prime = 0x9E3779B97F4A7C15ULL
    cdef unsigned long long mixed = seed + <unsigned long long>attribute * 0x9E3779B1ULL
    mixed += <unsigned long long>(last - first) << 48
    while last - first > 8:
        mixed = (mixed ^ word_at(values, first)) * prime
        mixed ^= mixed >> 32
        first += 8
        if last - first < 8:
            first = last - 8
    mixed ^= part_of_word(values, first, last - first)
    mixed *= prime
    mixed ^= mixed >> 32
    return <unsigned int>(mixed * prime >> 32)
