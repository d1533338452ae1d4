# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""RecordPool: short sequences of numbers, equal ones kept once.

A record is the place of its first number in ``words``; before it stand its length and the count
of its users, POOLED_LENGTH and POOLED_USERS from there::

    words   … length users | n0 n1 n2 …
                             ^ record

Records are found by an open-addressing table of places, whose keys are the records themselves.
A record without users is free, and is used again for one of its length.  Memory: 8 bytes a
record, 4 a number, and 6 to 12 in the table.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints

if not cython.compiled:
    POOLED_LENGTH, POOLED_USERS, POOLED_BEFORE = -2, -1, 2

# What makes the table's order unknown to those who choose what is stored.
_SEED = hash("yfilter.index.record_pool") & 0xFFFFFFFF


class RecordPool:
    """``acquire`` gives the record of a sequence; ``release`` takes back one use."""

    def __init__(self) -> None:
        self.words = ints(256)
        self._slots = ints(64)
        self._used = POOLED_BEFORE
        self._count = 0
        self._free: dict[int, list[int]] = {}
        self._free_words = 0
        self._first_seed = _SEED

    def acquire(self, numbers: cython.int[::1], length: cython.int) -> cython.int:
        """The record of the first ``length`` numbers of a column, made if there is none; not 0."""
        record: cython.int
        candidate: cython.int
        i: cython.int
        mask: cython.longlong
        slot: cython.ulonglong
        if 3 * (self._count + 1) > 2 * len(self._slots):
            self._rehash(2 * len(self._slots))
        record = self._allocate(length)
        for i in range(length):
            self.words[record + i] = numbers[i]
        mask = len(self._slots) - 1
        slot = self._hash_of(record) & mask
        while self._slots[slot] != 0:
            candidate = self._slots[slot]
            if self.words[candidate + POOLED_LENGTH] == length:
                i = 0
                while i < length and self.words[candidate + i] == self.words[record + i]:
                    i += 1
                if i == length:
                    self.words[candidate + POOLED_USERS] += 1
                    self._free.setdefault(length, []).append(record)
                    self._free_words += length + POOLED_BEFORE
                    return candidate
            slot = (slot + 1) & mask
        self._slots[slot] = record
        self.words[record + POOLED_USERS] = 1
        self._count += 1
        return record

    def release(self, record: cython.int) -> cython.bint:
        """Take back one use; whether it was the last one, so that the record is gone."""
        mask: cython.ulonglong = len(self._slots) - 1
        hole: cython.ulonglong
        slot: cython.ulonglong
        home: cython.ulonglong
        self.words[record + POOLED_USERS] -= 1
        if self.words[record + POOLED_USERS] > 0:
            return False
        hole = self._hash_of(record) & mask
        while self._slots[hole] != record:
            hole = (hole + 1) & mask
        # Close the hole: a later entry of the same run may be moved up to it.
        slot = (hole + 1) & mask
        while self._slots[slot] != 0:
            home = self._hash_of(self._slots[slot]) & mask
            if ((slot - home) & mask) >= ((slot - hole) & mask):
                self._slots[hole] = self._slots[slot]
                hole = slot
            slot = (slot + 1) & mask
        self._slots[hole] = 0
        self._count -= 1
        self._free.setdefault(self.words[record + POOLED_LENGTH], []).append(record)
        self._free_words += self.words[record + POOLED_LENGTH] + POOLED_BEFORE
        return True

    def statistics(self) -> dict[str, int]:
        return {"index_records": self._count}

    def size_bytes(self) -> int:
        return 4 * (len(self.words) + len(self._slots))

    def used_bytes(self) -> int:
        return 4 * (self._used - self._free_words) + 6 * self._count

    def _allocate(self, length: cython.int) -> cython.int:
        record: cython.int
        free = self._free.get(length)
        if free:
            self._free_words -= length + POOLED_BEFORE
            record = free.pop()
            if not free:
                del self._free[length]
            return record
        record = self._used + POOLED_BEFORE
        if record + length >= len(self.words):
            self.words = grown(self.words, (record + length) * 3 // 2)
        self._used = record + length
        self.words[record + POOLED_LENGTH] = length
        return record

    def _rehash(self, capacity: cython.int) -> cython.int:
        i: cython.int
        mask: cython.ulonglong = capacity - 1
        slot: cython.ulonglong
        old = self._slots
        new = ints(capacity)
        self._slots = new
        for i in range(len(old)):
            if old[i] != 0:
                slot = self._hash_of(old[i]) & mask
                while self._slots[slot] != 0:
                    slot = (slot + 1) & mask
                self._slots[slot] = old[i]
        return 0

    def _hash_of(self, record: cython.int) -> cython.ulonglong:
        i: cython.int
        mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
        prime: cython.ulonglong = 0xFF51AFD7ED558CCD
        mixed: cython.ulonglong = self._first_seed
        word: cython.ulonglong
        for i in range(record, record + self.words[record + POOLED_LENGTH]):
            word = self.words[i] & 0x7FFFFFFF
            mixed = ((mixed ^ word) * prime) & mask
            mixed ^= mixed >> 32
        return mixed
