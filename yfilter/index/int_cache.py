# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""IntCache: numbers under 64 bit keys, by open addressing; it may forget, but never errs.

Key and value lie side by side, 16 bytes a slot, half of the slots in use at most: one cache line
a look-up.  A table that is full is not rehashed, which would stall one message: it becomes the
one before, an empty one of twice its size takes its place, and what is asked for is carried over
by ``recall``.  What nobody asked for until the next such change is forgotten.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import longs, touch

if not cython.compiled:
    SLOT_KEY, SLOT_VALUE, SLOT_WIDTH = range(3)
    ABSENT, SOUGHT, RETIRED = -1, -2, -3


class IntCache:
    """``get`` looks into the present table only; on ABSENT ask ``recall``.  Keys are above 0."""

    def __init__(self, bits: int, bits_max: int) -> None:
        self._slots = longs(SLOT_WIDTH << bits)
        self._before = longs(SLOT_WIDTH << 1)
        self._count = 0
        self._shift = 64 - bits
        self._before_shift = 63
        self._before_mask = 1
        self._mask = (1 << bits) - 1
        self._shift_min = 64 - bits_max

    def get(self, key: cython.longlong) -> cython.int:
        mask: cython.ulonglong = self._mask
        place: cython.ulonglong = _hash(key) >> self._shift
        found: cython.longlong = self._slots[SLOT_WIDTH * place + SLOT_KEY]
        while found != key:
            if found == 0:
                return ABSENT
            place = (place + 1) & mask
            found = self._slots[SLOT_WIDTH * place + SLOT_KEY]
        value: cython.int = self._slots[SLOT_WIDTH * place + SLOT_VALUE]
        return value

    def get_all(
        self, keys: cython.longlong[::1], values: cython.int[::1], count: cython.int
    ) -> cython.int:
        """``get`` for many keys at once; a key of 0 is passed over, its value left alone."""
        # PERF: no load waits for another but for the few keys that are not in their first slot.
        slots: cython.longlong[::1] = self._slots
        shift: cython.int = self._shift
        place: cython.ulonglong
        found: cython.longlong
        i: cython.int
        for i in range(count):
            if keys[i]:
                place = _hash(keys[i]) >> shift
                found = slots[SLOT_WIDTH * place + SLOT_KEY]
                if found == keys[i]:
                    values[i] = slots[SLOT_WIDTH * place + SLOT_VALUE]
                else:
                    values[i] = SOUGHT
        for i in range(count):
            if values[i] == SOUGHT:
                values[i] = self.get(keys[i])
        return 0

    def recall(self, key: cython.longlong) -> cython.int:
        """The value under a key, also of the table before; carried over to the present one."""
        mask: cython.ulonglong
        place: cython.ulonglong
        value: cython.int
        mask = self._mask
        place = _hash(key) >> self._shift
        while self._slots[SLOT_WIDTH * place + SLOT_KEY] != 0:
            if self._slots[SLOT_WIDTH * place + SLOT_KEY] == key:
                value = self._slots[SLOT_WIDTH * place + SLOT_VALUE]
                return value
            place = (place + 1) & mask
        mask = self._before_mask
        place = _hash(key) >> self._before_shift
        while self._before[SLOT_WIDTH * place + SLOT_KEY] != 0:
            if self._before[SLOT_WIDTH * place + SLOT_KEY] == key:
                value = self._before[SLOT_WIDTH * place + SLOT_VALUE]
                if value >= 0:
                    self.put(key, value)
                return value
            place = (place + 1) & mask
        return ABSENT

    def put(self, key: cython.longlong, value: cython.int) -> cython.int:
        """Set a value; those below 0 are ABSENT and what ``retire`` puts."""
        mask: cython.ulonglong
        place: cython.ulonglong
        mask = self._mask
        if self._count >= mask >> 1:
            self._grow()
            mask = self._mask
        place = _hash(key) >> self._shift
        while (
            self._slots[SLOT_WIDTH * place + SLOT_KEY] != 0
            and self._slots[SLOT_WIDTH * place + SLOT_KEY] != key
        ):
            place = (place + 1) & mask
        if self._slots[SLOT_WIDTH * place + SLOT_KEY] == 0:
            self._count += 1
        self._slots[SLOT_WIDTH * place + SLOT_KEY] = key
        self._slots[SLOT_WIDTH * place + SLOT_VALUE] = value
        return 0

    def retire(self, key: cython.longlong) -> cython.int:
        """Say that a key is absent; what it had is told by ``former``."""
        value: cython.int = self.recall(key)
        if value >= 0:
            self.put(key, RETIRED - value)
        return 0

    def cover(self, count: cython.int) -> cython.int:
        """Make room for so many, as far as the bound goes, while there are none."""
        if self._count:
            return 0
        while self._shift > self._shift_min and count > self._mask >> 1:
            self._shift -= 1
            self._mask = 2 * self._mask + 1
        self._slots = longs(SLOT_WIDTH * (self._mask + 1))
        touch(self._slots, 8 * len(self._slots))
        return 0

    def size_bytes(self) -> cython.longlong:
        return 8 * (len(self._slots) + len(self._before))

    def _grow(self) -> cython.int:
        self._before = self._slots
        self._before_shift = self._shift
        self._before_mask = self._mask
        if self._shift > self._shift_min:
            self._shift -= 1
            self._mask = 2 * self._mask + 1
        self._slots = longs(SLOT_WIDTH * (self._mask + 1))
        self._count = 0
        return 0


def former(value: cython.int) -> cython.int:
    """What a key had before it was retired, given what it is said to have now; or 0."""
    return RETIRED - value if value <= RETIRED else 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _hash(key: cython.longlong) -> cython.ulonglong:
    multiplier: cython.ulonglong = 0x9E3779B97F4A7C15
    mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    mixed: cython.ulonglong = key ^ (key >> 32)
    return (mixed * multiplier) & mask
