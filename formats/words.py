"""Words: eight bytes at a time, the first of them lowest, for runs of bytes in hot modules.

Compiled, ``words.pxd`` has the same as C, a few instructions each within the module that uses them.
Reading and writing a word needs eight bytes of room, whatever they are.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if not cython.compiled:

    def word_at(data: bytes, at: int) -> int:
        """The word at a place."""
        return int.from_bytes(data[at : at + 8], "little")

    def put_word(data: bytearray, at: int, word: int) -> None:
        """Set the word at a place."""
        data[at : at + 8] = word.to_bytes(8, "little")

    def part_of_word(data: bytes, at: int, size: int) -> int:
        """The word of up to eight bytes, where not all eight may be read; zeros behind."""
        return int.from_bytes(data[at : at + size], "little")

    def first_bytes(word: int, size: int) -> int:
        """The word with zeros behind its first bytes, of which there are 1 to 8."""
        return word & ((1 << 8 * size) - 1)

    def marks_in(word: int, mark: int) -> int:
        """Where a word has a mark, ``<``, ``&`` or a control character, for ``bytes_below``; or 0.

        What is said of bytes behind the first such is not to be trusted.
        """
        found = 0
        for place, byte in enumerate(word.to_bytes(8, "little")):
            if byte in (mark, 0x3C, 0x26) or byte < 0x20:
                found |= 0x80 << 8 * place
        return found

    def marks_in_text(word: int) -> int:
        """As ``marks_in``, of what is escaped in text: ``&``, ``<``, ``>``, carriage returns."""
        found = 0
        for place, byte in enumerate(word.to_bytes(8, "little")):
            if byte in b"&<>\r":
                found |= 0x80 << 8 * place
        return found

    def bytes_below(marks: int) -> int:
        """How many bytes are before the first mark, of which there is one."""
        return ((marks & -marks).bit_length() - 1) // 8

    def is_ascii(data: bytes, _size: int) -> bool:
        """Whether all bytes are below 0x80."""
        return data.isascii()

    def copy_run(
        target: bytearray, at: int, source: bytes | bytearray, first: int, size: int
    ) -> None:
        """Set the bytes at a place to some of ``source``; the two do not overlap."""
        target[at : at + size] = source[first : first + size]
