# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""QueryWriter: a draft becomes a query, the path to it in the trie and what is left to verify.

The path of a query in the trie holds the symbols on it and the atom of its access predicate, once
for the query; see residual_rows.py for what is left.  What a residual names, symbols, attributes,
atoms, numbers and other records, is held by its record, once, however many queries have that
record; a residual of one equality has no record and holds it for its query.  So whatever the draft
holds is given to the query, or given up where that is there already.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from yfilter.index.atoms import number_key
from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.access_path import AccessPath
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.draft import Draft
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.residual_parts import ResidualParts
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie
    from cython.cimports.yfilter.index.twigs import Twigs
    from cython.cimports.yfilter.operators.operator_table import OperatorTable
else:
    from yfilter.index.access_path import AccessPath
    from yfilter.index.atoms import ATOM_BITS, AtomTable
    from yfilter.index.draft import (
        CONDITION_A,
        CONDITION_CHECK_A,
        CONDITION_CHECK_B,
        CONDITION_KIND,
        CONDITION_NEXT,
        CONDITION_VALUE,
        CONDITION_WIDTH,
        STEP_CONDITION,
        STEP_DESCENDANT,
        STEP_NEXT,
        STEP_SYMBOL,
        STEP_WIDTH,
        Draft,
    )
    from yfilter.index.record_pool import POOLED_USERS, RecordPool
    from yfilter.index.residual_parts import ResidualParts
    from yfilter.index.residual_rows import (
        CHECK_ANYWHERE,
        CHECK_ATOM,
        CHECK_DIFFERS,
        CHECK_EXISTS,
        CHECK_NESTED,
        CHECK_TWIG,
        CHECK_VERIFIED,
        CODE_ABSOLUTE,
        CODE_DEPTH,
        CODE_SHIFT,
        CODE_TWIG,
        MODE_BELOW,
        MODE_FIXED,
        MODE_ON_PATH,
        POSITION_ABSOLUTE,
        POSITION_SHIFT,
        RECORD_ROWS,
        REQUIRED_ATOM,
        REQUIRED_SHIFT,
    )
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import (
        EDGE_ATOM,
        EDGE_ATTRIBUTE,
        EDGE_KIND,
        EDGE_NAME,
        EDGE_SHIFT,
        QUERY_NODE,
        QUERY_NUMBER,
        QUERY_RESIDUAL,
        QUERY_WIDTH,
        Trie,
    )
    from yfilter.index.twigs import Twigs
    from yfilter.operators.operator_table import OperatorTable

if not cython.compiled:
    LEFT_CONDITION, LEFT_POSITION, LEFT_WIDTH = range(3)
    NOTED_ORDER, NOTED_POSITION, NOTED_KIND, NOTED_A, NOTED_B, NOTED_WIDTH = range(6)


class QueryWriter:
    """``write`` the query of the draft; ``erase`` undoes it.

    A query may be found in several ways (``write_other``): the others have rows of their own, which
    stand for it.
    """

    def __init__(
        self,
        draft: Draft,
        symbols: SymbolTable,
        atoms: AtomTable,
        records: RecordPool,
        trie: Trie,
        twigs: Twigs,
        operators: OperatorTable,
    ) -> None:
        self._draft = draft
        self._path = AccessPath(draft, atoms)
        self._symbols = symbols
        self._atoms = atoms
        self._records = records
        self._trie = trie
        self._twigs = twigs
        self._operators = operators
        self._parts = ResidualParts(symbols, atoms, records, twigs, operators)
        self._others: dict[int, list[int]] = {}
        self._order = array("i", (2, 2, 2, 2, 2, 0, 1, 3, 5, 6, 4, 7))  # of a kind: cheapest first
        self._left = ints(LEFT_WIDTH * 16)
        self._checks = ints(NOTED_WIDTH * 16)
        self._numbers = ints(64)  # of the record that is being written
        self._length = 0

    def write(self, root: cython.int) -> cython.int:
        """A query below a root of the trie; its number, from 1."""
        node: cython.int
        number: cython.int = 0
        path: AccessPath = self._path
        path.choose()
        node = self._write_path(root)
        if (
            path.access
            and self._draft.conditions[CONDITION_WIDTH * path.access + CONDITION_KIND] < CHECK_ATOM
        ):
            number = self._draft.conditions[CONDITION_WIDTH * path.access + CONDITION_CHECK_B]
        return self._trie.add_query(node, self._write_residual(), number)

    def write_other(self, root: cython.int, query: cython.int) -> cython.int:
        """What is in the draft now is another way in which a query is found."""
        other: cython.int = self.write(root)
        self._trie.set_alias(other, query)
        self._others.setdefault(query, []).append(other)
        return other

    def erase(self, query: cython.int) -> cython.int:
        """Take a query out; its memory is used again."""
        for other in self._others.pop(query, ()):
            self.erase(other)
        return self._erase(query)

    def _erase(self, query: cython.int) -> cython.int:
        trie: Trie = self._trie
        node: cython.int = trie.queries[QUERY_WIDTH * query + QUERY_NODE]
        residual: cython.int = trie.queries[QUERY_WIDTH * query + QUERY_RESIDUAL]
        number: cython.int = trie.queries[QUERY_WIDTH * query + QUERY_NUMBER]
        edges = trie.edges_to(node)
        edge: cython.int
        trie.remove_query(query)
        for edge in edges:
            if edge & EDGE_KIND == EDGE_ATOM:
                if self._atoms.is_range(edge >> EDGE_SHIFT):
                    self._atoms.release_number(number)
                self._parts.release_atom(edge >> EDGE_SHIFT)
            elif edge & EDGE_KIND == EDGE_NAME:
                self._symbols.release(edge >> EDGE_SHIFT)
        if residual > 0:
            self._parts.release_check(
                CHECK_TWIG if residual & CODE_TWIG else CHECK_ATOM, residual >> CODE_SHIFT, 0
            )
        elif residual < 0:
            self._parts.release_record(-residual)
        return 0

    def _write_path(self, node: cython.int) -> cython.int:
        """The node behind the spine and its access predicate."""
        trie: Trie = self._trie
        path: AccessPath = self._path
        rows: cython.int[::1] = self._draft.steps
        at: cython.int
        symbol: cython.int
        for at in range(path.length):
            if rows[STEP_WIDTH * path.spine[at] + STEP_DESCENDANT]:
                node = trie.loop_of(node)
            symbol = rows[STEP_WIDTH * path.spine[at] + STEP_SYMBOL]
            node = trie.extend(node, symbol << EDGE_SHIFT)
            if at == path.at:
                node = self._write_access(node)
        return node

    def _write_access(self, node: cython.int) -> cython.int:
        row: cython.int = CONDITION_WIDTH * self._path.access
        attribute: cython.int = self._draft.conditions[row + CONDITION_A]
        kind: cython.int = self._draft.conditions[row + CONDITION_KIND]
        self._settle(self._path.access)
        atom: cython.int = self._draft.conditions[row + CONDITION_CHECK_A]
        if kind < CHECK_ATOM:
            atom = self._atoms.acquire_range(attribute, kind)
        node = self._trie.extend(node, attribute << EDGE_SHIFT | EDGE_ATTRIBUTE)
        return self._trie.extend(node, atom << EDGE_SHIFT | EDGE_ATOM)

    def _write_residual(self) -> cython.int:
        """What is left to verify."""
        path: AccessPath = self._path
        i: cython.int
        count: cython.int = self._collect_left()
        on_path: cython.bint = False
        required: cython.int = 0
        for i in range(count):
            self._settle(self._left[LEFT_WIDTH * i + LEFT_CONDITION])
            on_path |= self._left[LEFT_WIDTH * i + LEFT_POSITION] < 0
        if count == 0:
            return 0
        if count == 1 and self._quick():
            return self._quick()
        for i in range(count):
            required = _rarer(
                required, self._required_by(self._left[LEFT_WIDTH * i + LEFT_CONDITION])
            )
        if not on_path:
            return -self._write_fixed(count, required)
        # The record holds the spine and the access predicate, too.
        for i in range(path.length):
            self._symbols.retain(self._draft.steps[STEP_WIDTH * path.spine[i] + STEP_SYMBOL])
        if path.access:
            self._symbols.retain_attribute(
                self._draft.conditions[CONDITION_WIDTH * path.access + CONDITION_A]
            )
            self._settle(path.access)
        return -self._write_way(MODE_ON_PATH, path.spine[0], required)

    def _collect_left(self) -> cython.int:
        """How many conditions of the spine are left, in ``_left``; repeated ones are dropped."""
        draft: Draft = self._draft
        path: AccessPath = self._path
        at: cython.int
        condition: cython.int
        following: cython.int
        before: cython.int
        count: cython.int = 0
        for at in range(path.length):
            condition = draft.steps[STEP_WIDTH * path.spine[at] + STEP_CONDITION]
            before = 0
            while condition:
                following = draft.conditions[CONDITION_WIDTH * condition + CONDITION_NEXT]
                if at == path.at and condition != path.access and self._is_access(condition):
                    self._symbols.release_attribute(
                        draft.conditions[CONDITION_WIDTH * condition + CONDITION_A]
                    )
                    if before:
                        draft.conditions[CONDITION_WIDTH * before + CONDITION_NEXT] = following
                    else:
                        draft.steps[STEP_WIDTH * path.spine[at] + STEP_CONDITION] = following
                else:
                    before = condition
                    if condition != path.access:
                        if LEFT_WIDTH * count == len(self._left):
                            self._left = grown(self._left, 2 * LEFT_WIDTH * count)
                        self._left[LEFT_WIDTH * count + LEFT_CONDITION] = condition
                        self._left[LEFT_WIDTH * count + LEFT_POSITION] = path.position_of(at)
                        if (
                            draft.conditions[CONDITION_WIDTH * condition + CONDITION_KIND]
                            == CHECK_ANYWHERE
                        ):
                            self._left[LEFT_WIDTH * count + LEFT_POSITION] = (
                                POSITION_ABSOLUTE  # the root
                            )
                        count += 1
                condition = following
        return count

    def _is_access(self, condition: cython.int) -> cython.bint:
        """Whether a condition is equal to the access predicate."""
        rows: cython.int[::1] = self._draft.conditions
        one: cython.int = CONDITION_WIDTH * condition
        other: cython.int = CONDITION_WIDTH * self._path.access
        if (
            rows[one + CONDITION_KIND] != rows[other + CONDITION_KIND]
            or rows[one + CONDITION_A] != rows[other + CONDITION_A]
        ):
            return False
        values = self._draft.values
        equal: cython.bint = (
            values[rows[one + CONDITION_VALUE]] == values[rows[other + CONDITION_VALUE]]
        )
        return equal

    def _settle(self, condition: cython.int) -> cython.int:
        """Make the check of a condition, which holds what the draft held."""
        draft: Draft = self._draft
        row: cython.int = CONDITION_WIDTH * condition
        kind: cython.int = draft.conditions[row + CONDITION_KIND]
        a: cython.int = draft.conditions[row + CONDITION_A]
        b: cython.int = 0
        if kind in (CHECK_NESTED, CHECK_ANYWHERE):
            is_twig: cython.bint = self._settle_way(a) and kind == CHECK_NESTED
            a = self._write_way(MODE_BELOW, a, 0)
            if is_twig:
                kind = CHECK_TWIG
                a = self._twigs.acquire(a)
        elif kind == CHECK_ATOM:
            a = self._atoms.acquire(a, self._octets(row))
        elif kind == CHECK_DIFFERS:
            # The constant is kept as an equality of its attribute, which is held for it as well.
            b = self._atoms.acquire(a, self._octets(row))
            self._symbols.retain_attribute(a)
        elif kind == CHECK_VERIFIED:
            a = self._operators.acquire(draft.values[draft.conditions[row + CONDITION_VALUE]])
        elif kind != CHECK_EXISTS:
            self._atoms.cover(a)
            b = self._atoms.acquire_number(
                float(draft.values[draft.conditions[row + CONDITION_VALUE]])
            )
        draft.conditions[row + CONDITION_KIND] = kind
        draft.conditions[row + CONDITION_CHECK_A] = a
        draft.conditions[row + CONDITION_CHECK_B] = b
        return 0

    def _settle_way(self, step: cython.int) -> cython.bint:
        """Settle the conditions of a way down; whether it has none."""
        draft: Draft = self._draft
        condition: cython.int
        is_plain: cython.bint = True
        while step:
            condition = draft.steps[STEP_WIDTH * step + STEP_CONDITION]
            while condition:
                is_plain = False
                self._settle(condition)
                condition = draft.conditions[CONDITION_WIDTH * condition + CONDITION_NEXT]
            step = draft.steps[STEP_WIDTH * step + STEP_NEXT]
        return is_plain

    def _octets(self, row: cython.int) -> bytes:
        """The value of an equality, as the atom has it."""
        value = self._draft.values[self._draft.conditions[row + CONDITION_VALUE]]
        if isinstance(value, bytes):
            return value  # the key of a text test
        return value.encode() if isinstance(value, str) else number_key(float(value))

    def _required_by(self, condition: cython.int) -> cython.int:
        """Something that the message has to contain for a condition to hold: see residual_rows.py.

        Of several things the newest comparison, else the newest name.
        """
        draft: Draft = self._draft
        row: cython.int = CONDITION_WIDTH * condition
        step: cython.int
        found: cython.int = 0
        if draft.conditions[row + CONDITION_KIND] == CHECK_ATOM:
            return draft.conditions[row + CONDITION_CHECK_A] << REQUIRED_SHIFT | REQUIRED_ATOM
        if (
            draft.conditions[row + CONDITION_KIND] < CHECK_NESTED
            or draft.conditions[row + CONDITION_KIND] == CHECK_VERIFIED
        ):
            return 0
        step = draft.conditions[row + CONDITION_A]
        while step:
            found = _rarer(found, draft.steps[STEP_WIDTH * step + STEP_SYMBOL] << REQUIRED_SHIFT)
            condition = draft.steps[STEP_WIDTH * step + STEP_CONDITION]
            while condition:
                found = _rarer(found, self._required_by(condition))
                condition = draft.conditions[CONDITION_WIDTH * condition + CONDITION_NEXT]
            step = draft.steps[STEP_WIDTH * step + STEP_NEXT]
        return found

    def _quick(self) -> cython.int:
        """What is left as one condition without a record, 0 if it needs one."""
        row: cython.int = CONDITION_WIDTH * self._left[LEFT_CONDITION]
        position: cython.int = self._left[LEFT_POSITION]
        depth: cython.int = position >> POSITION_SHIFT
        kind: cython.int = self._draft.conditions[row + CONDITION_KIND]
        number: cython.int = self._draft.conditions[row + CONDITION_CHECK_A]
        if kind not in (CHECK_TWIG, CHECK_ATOM) or number >> ATOM_BITS:
            return 0
        if position < 0 or depth > CODE_DEPTH:
            return 0
        if kind == CHECK_TWIG:
            depth |= CODE_TWIG
        if position & POSITION_ABSOLUTE:
            depth |= CODE_ABSOLUTE
        return number << CODE_SHIFT | depth

    def _write_fixed(self, count: cython.int, required: cython.int) -> cython.int:
        """The record of the conditions left, at elements of known depth."""
        i: cython.int
        j: cython.int
        for i in range(count):
            self._note_check(
                i,
                self._left[LEFT_WIDTH * i + LEFT_POSITION],
                self._left[LEFT_WIDTH * i + LEFT_CONDITION],
            )
        count = self._ordered_checks(count)
        self._begin_record(MODE_FIXED, required, count)
        for i in range(count):
            for j in range(NOTED_POSITION, NOTED_WIDTH):
                self._put(self._checks[NOTED_WIDTH * i + j])
        return self._record()

    def _write_way(self, mode: cython.int, first: cython.int, required: cython.int) -> cython.int:
        """The record of a way down whose conditions are settled."""
        draft: Draft = self._draft
        step: cython.int = first
        condition: cython.int
        count: cython.int = 0
        i: cython.int
        _i: cython.int
        j: cython.int
        at: cython.int = 0
        while step:
            count += 1
            step = draft.steps[STEP_WIDTH * step + STEP_NEXT]
        self._begin_record(mode, required, count)
        for _i in range(count):
            self._put(0)
        step = first
        while step:
            self._numbers[RECORD_ROWS + at] = self._length
            at += 1
            count = 0
            condition = draft.steps[STEP_WIDTH * step + STEP_CONDITION]
            while condition:
                self._note_check(count, 0, condition)
                count += 1
                condition = draft.conditions[CONDITION_WIDTH * condition + CONDITION_NEXT]
            count = self._ordered_checks(count)
            self._put(draft.steps[STEP_WIDTH * step + STEP_DESCENDANT])
            self._put(draft.steps[STEP_WIDTH * step + STEP_SYMBOL])
            self._put(count)
            for i in range(count):
                for j in range(NOTED_KIND, NOTED_WIDTH):
                    self._put(self._checks[NOTED_WIDTH * i + j])
            step = draft.steps[STEP_WIDTH * step + STEP_NEXT]
        return self._record()

    def _begin_record(
        self, mode: cython.int, required: cython.int, count: cython.int
    ) -> cython.int:
        self._length = 0
        self._put(mode)
        self._put(required)
        self._put(count)
        return 0

    def _put(self, number: cython.int) -> cython.int:
        if self._length == len(self._numbers):
            self._numbers = grown(self._numbers, 2 * self._length)
        self._numbers[self._length] = number
        self._length += 1
        return 0

    def _record(self) -> cython.int:
        """The record of the numbers put, which holds what they name."""
        record: cython.int = self._records.acquire(self._numbers, self._length)
        if self._records.words[record + POOLED_USERS] > 1:
            self._parts.release_parts(record)  # the record has them already
        return record

    def _note_check(
        self, place: cython.int, position: cython.int, condition: cython.int
    ) -> cython.int:
        row: cython.int = CONDITION_WIDTH * condition
        kind: cython.int = self._draft.conditions[row + CONDITION_KIND]
        at: cython.int = NOTED_WIDTH * place
        if at == len(self._checks):
            self._checks = grown(self._checks, 2 * at)
        self._checks[at + NOTED_ORDER] = self._order[kind]
        self._checks[at + NOTED_POSITION] = position
        self._checks[at + NOTED_KIND] = kind
        self._checks[at + NOTED_A] = self._draft.conditions[row + CONDITION_CHECK_A]
        self._checks[at + NOTED_B] = self._draft.conditions[row + CONDITION_CHECK_B]
        return 0

    def _ordered_checks(self, count: cython.int) -> cython.int:
        """Order so many checks, the cheapest first, and leave out what is there twice; how many
        there are then."""
        checks: cython.int[::1] = self._checks
        i: cython.int
        j: cython.int
        k: cython.int
        kept: cython.int = 0
        for i in range(1, count):
            j = i
            while j > 0 and _compared(checks, NOTED_WIDTH * (j - 1), NOTED_WIDTH * j) > 0:
                for k in range(NOTED_WIDTH * j, NOTED_WIDTH * j + NOTED_WIDTH):
                    checks[k - NOTED_WIDTH], checks[k] = checks[k], checks[k - NOTED_WIDTH]
                j -= 1
        for i in range(count):
            j = NOTED_WIDTH * i
            if kept and _compared(checks, NOTED_WIDTH * (kept - 1), j) == 0:
                self._parts.release_check(
                    checks[j + NOTED_KIND], checks[j + NOTED_A], checks[j + NOTED_B]
                )
                continue
            for k in range(NOTED_WIDTH):
                checks[NOTED_WIDTH * kept + k] = checks[j + k]
            kept += 1
        return kept


@cython.cfunc
@cython.exceptval(check=False)
def _compared(checks: cython.int[::1], one: cython.int, other: cython.int) -> cython.int:
    """Below, above or 0 as a row is before or after another one, or is equal to it."""
    i: cython.int
    for i in range(NOTED_WIDTH):
        if checks[one + i] != checks[other + i]:
            return -1 if checks[one + i] < checks[other + i] else 1
    return 0


@cython.cfunc
@cython.exceptval(check=False)
def _rarer(one: cython.int, other: cython.int) -> cython.int:
    """Of two things required the better one: a comparison rather than a name."""
    if one & REQUIRED_ATOM != other & REQUIRED_ATOM:
        return one if one & REQUIRED_ATOM else other
    return max(one, other)
