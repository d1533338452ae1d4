"""The hash of a value of an attribute, by words of eight bytes.

Compiled, ``value_hash.pxd`` has the same as C, within the module that uses it.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if not cython.compiled:
    from formats.words import part_of_word, word_at

    _MASK = 0xFFFFFFFFFFFFFFFF
    _PRIME = 0x9E3779B97F4A7C15

    def value_hash(seed: int, attribute: int, values: bytes, first: int, last: int) -> int:
        """32 bits for ``values[first:last]``; the last two words of a long one may overlap."""
        mixed = seed + attribute * 0x9E3779B1 + (last - first << 48)
        while last - first > 8:
            mixed = ((mixed ^ word_at(values, first)) * _PRIME) & _MASK
            mixed ^= mixed >> 32
            first += 8
            if last - first < 8:
                first = last - 8
        mixed ^= part_of_word(values, first, last - first)
        mixed = (mixed * _PRIME) & _MASK
        mixed ^= mixed >> 32
        return (mixed * _PRIME & _MASK) >> 32
