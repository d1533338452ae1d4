# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Value tests: what is asked of one string value, on its octets as they stand in the message.

UTF-8 sorts as code points do, so texts are compared without being decoded.  An untyped value
becomes an xs:double where it is compared with a number; one that is no number compares with none.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Iterable

from yfilter.language.budget import MUCH
from yfilter.language.patterns import Pattern
from yfilter.language.query_ast import Operator as Relation

if cython.compiled:
    from cython.cimports.yfilter.index.number_reader import number_in
    from cython.cimports.yfilter.operators.scratch import Scratch
else:
    from yfilter.index.number_reader import number_in
    from yfilter.operators.scratch import Scratch

RELATIONS = {
    Relation.EQ: 0,
    Relation.NE: 1,
    Relation.LT: 2,
    Relation.LE: 3,
    Relation.GT: 4,
    Relation.GE: 5,
}
_KNOWN_MAX = 65_536  # octets of values of which a test remembers whether it accepts them
_KNOWN_SIZE = 64  # octets that a value takes beside its own, about


class ValueTest:
    """``accepts`` the value that the scratch looks at."""

    def accepts(self, scratch: Scratch) -> cython.bint:
        raise NotImplementedError


class EqualTo(ValueTest):
    """Equal to a text; or not, if that is ``wanted``."""

    def __init__(self, text: str, wanted: bool = True) -> None:
        self._octets = text.encode()
        self._length = len(self._octets)
        self._wanted = wanted

    def text(self) -> bytes | None:
        """The text that a value has to be equal to, in octets."""
        return self._octets if self._wanted else None

    def accepts(self, scratch: Scratch) -> cython.bint:
        octets: cython.p_const_uchar = scratch.octets
        own: cython.p_const_uchar = self._octets
        i: cython.int
        if scratch.last - scratch.first != self._length:
            return not self._wanted
        for i in range(self._length):
            if octets[scratch.first + i] != own[i]:
                return not self._wanted
        return self._wanted


class OneOf(ValueTest):
    """Equal to one of many texts, given as octets."""

    def __init__(self, values: Iterable[bytes]) -> None:
        self.values = frozenset(values)

    def accepts(self, scratch: Scratch) -> cython.bint:
        return scratch.octets[scratch.first : scratch.last] in self.values


class Ordered(ValueTest):
    """Before or after a text: ``<``, ``<=``, ``>`` or ``>=``."""

    def __init__(self, relation: Relation, text: str) -> None:
        self._operator = RELATIONS[relation]
        self._octets = text.encode()

    def accepts(self, scratch: Scratch) -> cython.bint:
        value = scratch.octets[scratch.first : scratch.last]
        if self._operator == 2:
            return value < self._octets
        if self._operator == 3:
            return value <= self._octets
        if self._operator == 4:
            return value > self._octets
        return value >= self._octets


class NumberTest(ValueTest):
    """A number that compares so with another one."""

    def __init__(self, relation: Relation, number: float) -> None:
        self._operator = RELATIONS[relation]
        self.number = number

    def accepts(self, scratch: Scratch) -> cython.bint:
        value: cython.double = number_in(scratch.octets, scratch.first, scratch.last)
        if value != value:  # noqa: PLR0124 - NaN, or no number, which compares with none
            if self._operator != 1:
                return False
            return scratch.octets[scratch.first : scratch.last].strip(b" \t\n\r") == b"NaN"
        return compares(value, self._operator, self.number)


class Contains(ValueTest):
    def __init__(self, text: str) -> None:
        self._octets = text.encode()

    def accepts(self, scratch: Scratch) -> cython.bint:
        found: cython.int = scratch.octets.find(self._octets, scratch.first, scratch.last)
        return found >= 0


class StartsWith(ValueTest):
    def __init__(self, text: str) -> None:
        self._octets = text.encode()

    def accepts(self, scratch: Scratch) -> cython.bint:
        return scratch.octets.startswith(self._octets, scratch.first, scratch.last)


class EndsWith(ValueTest):
    def __init__(self, text: str) -> None:
        self._octets = text.encode()

    def accepts(self, scratch: Scratch) -> cython.bint:
        return scratch.octets.endswith(self._octets, scratch.first, scratch.last)


class Matches(ValueTest):
    """A regular expression is found in it; what is known of values is remembered.

    A search is charged before it is begun, as RE2 cannot be interrupted: MatchLimitExceeded.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._known: dict[bytes, bool] = {}
        self._known_size = 0

    def accepts(self, scratch: Scratch) -> cython.bint:
        value = scratch.octets[scratch.first : scratch.last]
        known = self._known.get(value)
        if known is None:
            known = self._found(scratch, value)
            size: cython.longlong = len(value) + _KNOWN_SIZE
            if self._known_size + size > _KNOWN_MAX:
                self._known.clear()
                self._known_size = 0
            if size <= _KNOWN_MAX:
                self._known[value] = known
                self._known_size += size
        answer: cython.bint = known
        return answer

    def _found(self, scratch: Scratch, value: bytes) -> cython.bint:
        found: cython.bint
        cost: cython.longlong = self._pattern.cost(len(value))
        if cost > MUCH:  # whether there is the time for it is for the interpreter's budget to say
            found = self._pattern.search(value.decode(), scratch.evaluator().charge)
        else:
            scratch.visit(cost)
            found = self._pattern.search(value.decode())
        return found


@cython.cfunc
@cython.exceptval(check=False)
def compares(number: cython.double, relation: cython.int, other: cython.double) -> cython.bint:
    """Whether a number compares so with another one; ``relation`` as in RELATIONS."""
    if relation == 0:
        return number == other
    if relation == 1:
        return number != other
    if relation == 2:
        return number < other
    if relation == 3:
        return number <= other
    if relation == 4:
        return number > other
    return number >= other
