# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""KeyTable: very many short keys under numbers that the caller gives, found both ways.

The octets of all keys stand in one column, rooms a multiple of ROOM_OCTETS.  A row for each number
says where, PLACE in such multiples, and LENGTH, -1 for no key; an open-addressing table of numbers
finds a key's.  A key costs its octets and 14 to 20 bytes.

The table's order depends on Python's hash of bytes, which is another in every process.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints, octets

if not cython.compiled:
    KEY_PLACE, KEY_LENGTH, KEY_WIDTH = range(3)
    ROOM_OCTETS = 4


class KeyTable:
    """``insert`` a key that is not there under a number from 1 that has none; ``remove`` it."""

    def __init__(self) -> None:
        self._octets = octets(1024)
        self._rows = ints(KEY_WIDTH * 16)
        self._slots = ints(64)
        self._count = 0
        self._used = 0
        self._free: dict[int, list[int]] = {}
        self._free_octets = 0

    def find(self, key: bytes) -> cython.int:
        """The number of a key, 0 if it is not there."""
        mask: cython.longlong = len(self._slots) - 1
        slot: cython.longlong = hash(key)
        number: cython.int
        place: cython.longlong
        length: cython.int = len(key)
        i: cython.int
        wanted: cython.p_const_uchar = key
        slot = slot & mask
        number = self._slots[slot]
        while number != 0:
            if self._rows[KEY_WIDTH * number + KEY_LENGTH] == length:
                place = self._rows[KEY_WIDTH * number + KEY_PLACE]
                place = ROOM_OCTETS * place
                i = 0
                while i < length and self._octets[place + i] == wanted[i]:
                    i += 1
                if i == length:
                    return number
            slot = (slot + 1) & mask
            number = self._slots[slot]
        return 0

    def insert(self, key: bytes, number: cython.int) -> cython.int:
        """A new key under a new number."""
        place: cython.longlong
        length: cython.int = len(key)
        i: cython.int
        wanted: cython.p_const_uchar = key
        if 3 * (self._count + 1) > 2 * len(self._slots):
            self._rehash(2 * len(self._slots))
        if KEY_WIDTH * number + 1 >= len(self._rows):
            self._rows = grown(self._rows, KEY_WIDTH * (number + number // 4 + 8))
        place = self._place_for((length + ROOM_OCTETS - 1) // ROOM_OCTETS)
        self._rows[KEY_WIDTH * number + KEY_PLACE] = place
        self._rows[KEY_WIDTH * number + KEY_LENGTH] = length
        place = ROOM_OCTETS * place
        for i in range(length):
            self._octets[place + i] = wanted[i]
        self._count += 1
        self._enter(number, hash(key))
        return 0

    def remove(self, number: cython.int) -> cython.int:
        """Take the key of a number out, and close the hole."""
        mask: cython.longlong = len(self._slots) - 1
        hole: cython.longlong = hash(self.key(number))
        slot: cython.longlong
        home: cython.longlong
        room: cython.int = (
            self._rows[KEY_WIDTH * number + KEY_LENGTH] + ROOM_OCTETS - 1
        ) // ROOM_OCTETS
        hole = hole & mask
        while self._slots[hole] != number:
            hole = (hole + 1) & mask
        slot = (hole + 1) & mask
        while self._slots[slot] != 0:
            home = hash(self.key(self._slots[slot]))
            home = home & mask
            if ((slot - home) & mask) >= ((slot - hole) & mask):
                self._slots[hole] = self._slots[slot]
                hole = slot
            slot = (slot + 1) & mask
        self._slots[hole] = 0
        self._free.setdefault(room, []).append(self._rows[KEY_WIDTH * number + KEY_PLACE])
        self._free_octets += ROOM_OCTETS * room
        self._rows[KEY_WIDTH * number + KEY_LENGTH] = -1
        self._count -= 1
        return 0

    def key(self, number: cython.int) -> bytes:
        """The key of a number that has one."""
        place: cython.longlong = self._rows[KEY_WIDTH * number + KEY_PLACE]
        length: cython.int = self._rows[KEY_WIDTH * number + KEY_LENGTH]
        place = ROOM_OCTETS * place
        if cython.compiled:
            return cython.address(self._octets[place])[:length]
        else:  # noqa: RET505 - which is not compiled
            return bytes(self._octets[place : place + length])

    def __len__(self) -> int:
        return self._count

    def size_bytes(self) -> int:
        return len(self._octets) + 4 * (len(self._rows) + len(self._slots))

    def used_bytes(self) -> int:
        return ROOM_OCTETS * self._used - self._free_octets + 14 * self._count

    def _place_for(self, room: cython.int) -> cython.int:
        place: cython.int
        free = self._free.get(room)
        if free:
            self._free_octets -= ROOM_OCTETS * room
            place = free.pop()
            if not free:
                del self._free[room]
            return place
        place = self._used
        self._used = place + room
        if ROOM_OCTETS * self._used > len(self._octets):
            self._octets = grown(self._octets, ROOM_OCTETS * (self._used + self._used // 4))
        return place

    def _enter(self, number: cython.int, hashed: cython.longlong) -> cython.int:
        mask: cython.longlong = len(self._slots) - 1
        slot: cython.longlong = hashed & mask
        while self._slots[slot] != 0:
            slot = (slot + 1) & mask
        self._slots[slot] = number
        return 0

    def _rehash(self, capacity: cython.int) -> cython.int:
        i: cython.int
        old = self._slots
        new = ints(capacity)
        self._slots = new
        for i in range(len(old)):
            if old[i] != 0:
                self._enter(old[i], hash(self.key(old[i])))
        return 0
