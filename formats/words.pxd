# Words: eight bytes at a time, the first of them lowest, for runs of bytes in extensions.
#
# Reading and writing a word needs eight bytes of room, whatever they are.

cdef extern from *:
    """
    #include <string.h>

    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define ONYX_LOWEST_FIRST(word) __builtin_bswap64(word)
    #else
    #define ONYX_LOWEST_FIRST(word) (word)
    #endif

    static inline unsigned long long onyx_word_at(const unsigned char *data)
    {
        unsigned long long word;
        memcpy(&word, data, 8);
        return ONYX_LOWEST_FIRST(word);
    }

    static inline unsigned long long onyx_half_at(const unsigned char *data)
    {
        return data[0] | data[1] << 8 | data[2] << 16 | (unsigned long long)data[3] << 24;
    }

    static inline void onyx_put_word(unsigned char *data, unsigned long long word)
    {
        word = ONYX_LOWEST_FIRST(word);
        memcpy(data, &word, 8);
    }
    """
    unsigned long long onyx_word_at(const unsigned char* data) noexcept nogil
    unsigned long long onyx_half_at(const unsigned char* data) noexcept nogil
    void onyx_put_word(unsigned char* data, unsigned long long word) noexcept nogil
    void* memcpy(void *target, const void *source, size_t size) noexcept nogil

# The word at a place.
cdef inline unsigned long long word_at(const unsigned char* data, Py_ssize_t at) noexcept nogil:
    return onyx_word_at(data + at)

# Set the word at a place.
cdef inline void put_word(
    unsigned char* data, Py_ssize_t at, unsigned long long word
) noexcept nogil:
    onyx_put_word(data + at, word)

# The word of up to eight bytes, where not all eight may be read; zeros behind.
cdef inline unsigned long long part_of_word(
    const unsigned char* data, Py_ssize_t at, Py_ssize_t size
) noexcept nogil:
    cdef unsigned long long word = 0
    if size >= 8:
        return onyx_word_at(data + at)
    if size >= 4:
        return onyx_half_at(data + at) | onyx_half_at(data + at + size - 4) << (8 * size - 32)
    if size >= 1:
        word = data[at]
    if size >= 2:
        word |= <unsigned long long>data[at + 1] << 8
    if size >= 3:
        word |= <unsigned long long>data[at + 2] << 16
    return word

# The word with zeros behind its first bytes, of which there are 1 to 8.
cdef inline unsigned long long first_bytes(unsigned long long word, Py_ssize_t size) noexcept nogil:
    return word << (64 - 8 * size) >> (64 - 8 * size)

cdef inline unsigned long long _zeros(unsigned long long word) noexcept nogil:
    # The lowest bit set is right; those above may be of a borrow.
    return (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL

# The places where a word has a mark, ``<``, ``&`` or a control character, for ``bytes_below``;
# or 0.  Marks behind the first one may be wrong.
cdef inline unsigned long long marks_in(unsigned long long word, unsigned char mark) noexcept nogil:
    cdef unsigned long long each = 0x0101010101010101ULL
    return (
        _zeros(word ^ each * mark)
        | _zeros(word ^ each * c'<')
        | _zeros(word ^ each * c'&')
        | ((word - each * 0x20) & ~word & 0x8080808080808080ULL)
    )

# As ``marks_in``, of the bytes that are escaped in text: ``&``, ``<``, ``>``, carriage returns.
cdef inline unsigned long long marks_in_text(unsigned long long word) noexcept nogil:
    cdef unsigned long long each = 0x0101010101010101ULL
    return (
        _zeros(word ^ each * c'&')
        | _zeros(word ^ each * c'<')
        | _zeros(word ^ each * c'>')
        | _zeros(word ^ each * c'\r')
    )

# The number of bytes before the first mark, of which there is one.
cdef inline Py_ssize_t bytes_below(unsigned long long marks) noexcept nogil:
    cdef unsigned long long each = 0x0101010101010101ULL
    return <Py_ssize_t>((((marks - 1) & ~marks) >> 7 & each) * each >> 56)

# Whether all bytes are below 0x80.
cdef inline bint is_ascii(const unsigned char* data, Py_ssize_t size) noexcept nogil:
    # Many bytes at a time, since nothing is decided before the end.
    cdef unsigned char seen = 0
    cdef Py_ssize_t i
    for i in range(size):
        seen |= data[i]
    return seen < 0x80

# Set the bytes at a place to some of ``source``; the two do not overlap.
cdef inline void copy_run(
    unsigned char* target, Py_ssize_t at, const unsigned char* source, Py_ssize_t first,
    Py_ssize_t size
) noexcept nogil:
    memcpy(target + at, source + first, size)
