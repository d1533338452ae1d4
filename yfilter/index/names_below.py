# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""NamesBelow: which symbols the children of an element have, and all elements below it.

Most nested paths that are looked for are not there, and most of those because a name is not: its
first at a child, or its last anywhere below.  That is asked here, before anything else of a twig is
touched, two bits in the cache; and a twig of one step is answered by them::

    [head/title]   children: head   below: title
    [//p]          below: p

For each element 256 bits of children and as many of all below, a bit for a symbol; where there are
more symbols some share a bit, so that a yes is not sure.  Made when a message is first asked about.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

if cython.compiled:
    from cython.cimports.yfilter.index.message_view import MessageView
    from cython.cimports.yfilter.index.symbols import SymbolTable
else:
    from yfilter.index.message_view import MessageView
    from yfilter.index.symbols import SymbolTable

if not cython.compiled:
    ANSWER_NO, ANSWER_YES, ANSWER_PERHAPS = range(3)

    NAMES_BELOW, NAMES_WIDTH = 4, 8

    NEED_FIRST_WORD, NEED_FIRST_BIT, NEED_LAST_WORD, NEED_LAST_BIT = 0, 3, 9, 12
    NEED_WORDS, NEED_BITS, NEED_NO_MORE = 7, 63, 1 << 18

_SYMBOLS = 256


class NamesBelow:
    """``begin`` a message; ``answer`` what is known of a path with such ``needs``."""

    def __init__(self, view: MessageView, symbols: SymbolTable) -> None:
        self._view = view
        self._symbols = symbols
        self._bits = array("Q", bytes(64))
        self._is_made = False
        self.is_sure = False

    def begin(self) -> None:
        self._is_made = False

    def answer(self, needs: cython.int, element: cython.int) -> cython.int:
        """Whether a path is found below an element: ANSWER_NO, ANSWER_YES or ANSWER_PERHAPS."""
        at: cython.longlong = element
        found: cython.ulonglong
        if not self._is_made:
            self._make()
        at = NAMES_WIDTH * at
        found = self._bits[at + ((needs >> NEED_FIRST_WORD) & NEED_WORDS)] >> (
            (needs >> NEED_FIRST_BIT) & NEED_BITS
        )
        found &= self._bits[at + ((needs >> NEED_LAST_WORD) & NEED_WORDS)] >> (
            (needs >> NEED_LAST_BIT) & NEED_BITS
        )
        if not found & 1:
            return ANSWER_NO
        return ANSWER_YES if self.is_sure and needs & NEED_NO_MORE else ANSWER_PERHAPS

    def _make(self) -> cython.int:
        view: MessageView = self._view
        symbols: SymbolTable = self._symbols
        bits: cython.ulonglong[::1]
        element: cython.int
        label: cython.int
        i: cython.int
        child: cython.longlong
        parent: cython.longlong
        if NAMES_WIDTH * view.elements > len(self._bits):
            self._bits = array("Q", bytes(2 * 8 * NAMES_WIDTH * view.elements))
        bits = self._bits
        for i in range(NAMES_WIDTH * view.elements):
            bits[i] = 0
        for element in range(view.elements - 1, 0, -1):
            child = element
            child = NAMES_WIDTH * child
            parent = view.parent[element]
            parent = NAMES_WIDTH * parent
            label = view.label[view.name[element]]
            _set(bits, parent, 0)
            _set(bits, parent, symbols.exact[label])
            _set(bits, parent, symbols.in_namespace[label])
            _set(bits, parent, symbols.any_namespace[label])
            for i in range(NAMES_BELOW, NAMES_WIDTH):
                bits[parent + i] |= bits[child + i]
        self.is_sure = len(symbols.only_label) <= _SYMBOLS
        self._is_made = True
        return 0


def needs_of(
    first: cython.int, first_descends: cython.bint, last: cython.int, steps: cython.int
) -> cython.int:
    """What a path of names asks for: the symbols of its first and last step, 0 for any name."""
    first_word: cython.int = (first & 255) >> 6
    last_word: cython.int = NAMES_BELOW + ((last & 255) >> 6)
    asked: cython.int
    if first_descends:
        first_word += NAMES_BELOW
    asked = first_word << NEED_FIRST_WORD | (first & 63) << NEED_FIRST_BIT
    asked |= last_word << NEED_LAST_WORD | (last & 63) << NEED_LAST_BIT
    return asked | NEED_NO_MORE if steps == 1 else asked


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _set(bits: cython.ulonglong[::1], place: cython.longlong, symbol: cython.int) -> cython.int:
    """A symbol of a child, which is below as well."""
    one: cython.ulonglong = 1
    bits[place + ((symbol & 255) >> 6)] |= one << (symbol & 63)
    bits[place + NAMES_BELOW + ((symbol & 255) >> 6)] |= one << (symbol & 63)
    return 0
