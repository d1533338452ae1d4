"""Very many regular expressions, searched for in one text at once.

A PatternSet has all that need the same texts, or none (pattern_texts.py): the index asks for those
whose texts it has found.  They stand in blocks, each a set of RE2, which runs over a text once for
all its patterns.  A block is compiled when it is first asked after a change; so changes cost
little.  A call of RE2 costs as much as its search in a short text, so blocks that are full become
one.

::

    add 1..600  -> [1 .. 256] [257 .. 512] [513 .. 600, room]
    add ..5000  -> [1 .. 4096] [4097 .. 4352] ... [4865 .. 5000, room]
    remove 3    -> the first block as before, without 3 in what it finds; a block of which half is
                   gone is compiled anew, and has room
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from yfilter.language.patterns import Re2Pattern, Re2Set, compile_re2, compile_re2_set

BLOCK_PATTERNS_MAX = 256
BLOCKS_MAX = 16  # that are full, before they become one
SINGLES_MAX = 2  # which are looked for one by one


class PatternSet:
    """Numbered patterns of RE2, as ``Pattern.written`` has them.

    Searching takes time linear in the text and in the number of blocks.
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._with_room: list[_Block] = []  # the newest last
        self._block_of: dict[int, _Block] = {}

    def __len__(self) -> int:
        return len(self._block_of)

    def add(self, number: int, pattern: str) -> None:
        """ValueError if there is a pattern with this number."""
        if number in self._block_of:
            raise ValueError(f"there is a pattern {number}")
        if not self._with_room:
            block = _Block()
            self._blocks.append(block)
            self._with_room.append(block)
        block = self._with_room[-1]
        block.add(number, pattern)
        self._block_of[number] = block
        if not block.has_room:
            self._with_room.pop()
            self._join()

    def remove(self, number: int) -> None:
        """KeyError if there is no pattern with this number."""
        block = self._block_of.pop(number)
        had_room = block.has_room
        block.remove(number)
        if block.has_room and not had_room:
            self._with_room.append(block)

    def _join(self) -> None:
        """Make one block of those that are full, if they are many."""
        full = [one for one in self._blocks if not one.has_room and not one.is_joined]
        if len(full) < BLOCKS_MAX:
            return
        joined = _Block(full)
        self._blocks = [joined, *(one for one in self._blocks if one not in full)]
        self._block_of.update(dict.fromkeys(joined.numbers(), joined))

    def find(self, octets: bytes) -> list[int]:
        """The numbers of all patterns found in a text given as UTF-8, in no order."""
        found: list[int] = []
        for block in self._blocks:
            found += block.find(octets)
        return found


class _Block:
    """Up to BLOCK_PATTERNS_MAX patterns, or all of the blocks ``joined`` in it; a removed one takes
    its place until half are gone.

    ``compiled``: how often it was; ``singles``: its patterns one by one, where they are few, or
    RE2's memory does not suffice for all together.
    """

    def __init__(self, joined: Sequence[_Block] = ()) -> None:
        self.compiled = 0
        self.is_joined = bool(joined)
        self.singles: dict[int, Re2Pattern] = {}
        self._patterns: dict[int, str] = {}
        for each in joined:
            self._patterns |= each._patterns
        self._places = len(self._patterns)  # taken, also by removed patterns
        self._set: Re2Set | None = None
        self._numbers: list[int | None] = []  # by what the set finds; empty: to be compiled

    @property
    def has_room(self) -> bool:
        return self._places < BLOCK_PATTERNS_MAX

    def numbers(self) -> Iterable[int]:
        return self._patterns

    def add(self, number: int, pattern: str) -> None:
        self._patterns[number] = pattern
        self._places += 1
        self._numbers = []

    def remove(self, number: int) -> None:
        del self._patterns[number]
        if 2 * len(self._patterns) <= self._places:
            self._places = len(self._patterns)
            self._numbers = []

    def find(self, octets: bytes) -> list[int]:
        if not self._patterns:
            return []
        if not self._numbers:
            self._compile()
        places = None if self._set is None else self._set.Match(octets)
        if places is not None:
            numbers = map(self._numbers.__getitem__, places)
            return [number for number in numbers if number in self._patterns]
        if not self.singles:
            self._set = None
            for number, pattern in self._patterns.items():
                single = compile_re2(pattern)
                assert single is not None  # it is small
                self.singles[number] = single
        return [
            number
            for number, single in self.singles.items()
            if number in self._patterns and single.search(octets)
        ]

    def _compile(self) -> None:
        self.compiled += 1
        self.singles = {}
        self._numbers = [None, *self._patterns]
        few = len(self._patterns) <= SINGLES_MAX
        self._set = None if few else compile_re2_set(self._patterns.values())
