# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""ResidualParts: what residuals name, and how they give it up.

Symbols, attributes, atoms, numbers, twigs, operators and other records that a record names are held
by it, once, as long as it is there (see residual_rows.py for what a record is).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if cython.compiled:
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.twigs import Twigs
    from cython.cimports.yfilter.operators.operator_table import OperatorTable
else:
    from yfilter.index.atoms import ATOM_ATTRIBUTE, ATOM_WIDTH, AtomTable
    from yfilter.index.record_pool import POOLED_USERS, RecordPool
    from yfilter.index.residual_rows import (
        CHECK_A,
        CHECK_ANYWHERE,
        CHECK_ATOM,
        CHECK_B,
        CHECK_DIFFERS,
        CHECK_EXISTS,
        CHECK_KIND,
        CHECK_NESTED,
        CHECK_TWIG,
        CHECK_VERIFIED,
        CHECK_WIDTH,
        FIXED_CHECK,
        FIXED_WIDTH,
        MODE_FIXED,
        RECORD_COUNT,
        RECORD_MODE,
        RECORD_ROWS,
        WAY_CHECKS,
        WAY_COUNT,
        WAY_SYMBOL,
    )
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.twigs import Twigs
    from yfilter.operators.operator_table import OperatorTable


class ResidualParts:
    """``release_record`` takes back one use of a record, ``release_check`` one of a check."""

    def __init__(
        self,
        symbols: SymbolTable,
        atoms: AtomTable,
        records: RecordPool,
        twigs: Twigs,
        operators: OperatorTable,
    ) -> None:
        self._symbols = symbols
        self._atoms = atoms
        self._records = records
        self._twigs = twigs
        self._operators = operators

    def release_atom(self, atom: cython.int) -> cython.int:
        attribute: cython.int = self._atoms.atoms[ATOM_WIDTH * atom + ATOM_ATTRIBUTE]
        self._atoms.release(atom)
        self._symbols.release_attribute(attribute)
        return 0

    def release_record(self, record: cython.int) -> cython.int:
        if self._records.words[record + POOLED_USERS] == 1:
            self.release_parts(record)
        self._records.release(record)
        return 0

    def release_parts(self, record: cython.int) -> cython.int:
        """What the numbers of a record name has one use less."""
        words: cython.int[::1] = self._records.words
        i: cython.int
        _j: cython.int
        place: cython.int
        count: cython.int
        for i in range(words[record + RECORD_COUNT]):
            if words[record + RECORD_MODE] == MODE_FIXED:
                place = record + RECORD_ROWS + FIXED_WIDTH * i + FIXED_CHECK
                self.release_check(
                    words[place + CHECK_KIND], words[place + CHECK_A], words[place + CHECK_B]
                )
                continue
            place = record + words[record + RECORD_ROWS + i]
            self._symbols.release(words[place + WAY_SYMBOL])
            count = words[place + WAY_COUNT]
            place += WAY_CHECKS
            for _j in range(count):
                self.release_check(
                    words[place + CHECK_KIND], words[place + CHECK_A], words[place + CHECK_B]
                )
                place += CHECK_WIDTH
        return 0

    def _is_plain(self, record: cython.int) -> cython.bint:
        """Whether a way down has no conditions."""
        words: cython.int[::1] = self._records.words
        step: cython.int
        for step in range(words[record + RECORD_COUNT]):
            if words[record + words[record + RECORD_ROWS + step] + WAY_COUNT]:
                return False
        return True

    def release_check(self, kind: cython.int, a: cython.int, b: cython.int) -> cython.int:
        if kind in (CHECK_NESTED, CHECK_ANYWHERE):
            if self._records.words[a + POOLED_USERS] == 1 and self._is_plain(a):
                # It may have been a twig as well, whose other users have gone before.
                self._twigs.remove(self._twigs.acquire(a))
            self.release_record(a)
        elif kind == CHECK_VERIFIED:
            self._operators.release(a)
        elif kind == CHECK_ATOM:
            self.release_atom(a)
        elif kind == CHECK_TWIG:
            record: cython.int = self._twigs.record(a)
            if self._records.words[record + POOLED_USERS] == 1:
                self._twigs.remove(a)
            self.release_record(record)
        else:
            if kind == CHECK_DIFFERS:
                self.release_atom(b)
            elif kind != CHECK_EXISTS:
                self._atoms.release_number(b)
            self._symbols.release_attribute(a)
        return 0
