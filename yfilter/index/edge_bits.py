"""Edge bits: of 31 one for each edge of a trie, to tell early where an edge certainly is not.

Compiled, ``edge_bits.pxd`` has the same as C, within the modules that use it.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if not cython.compiled:

    def edge_bit(edge: int) -> int:
        """The bit of an edge."""
        return 1 << ((edge * 0x9E3779B1 >> 8 & 0xFFFFFF) % 31)

    def name_bit(edge: int) -> int:
        """That of a name edge; of ``*`` the one bit more, the sign."""
        return edge_bit(edge) if edge else ~0x7FFFFFFF
