"""NameTable: from the bytes of a name, as they stand in a message, to its QualifiedName.

The table lives across messages, because they repeat each other's names: a name known from before
costs one hash look-up and no Python object.  What a name means depends on the namespace its
prefix is bound to, so the key is (binding, bytes), where a binding is the number of a (prefix,
namespace) pair, 0 for no namespace, 1 for the prefix ``xml``.

Every message numbers its own names from 0 in the order of their first use, as in ElementStream;
the table remembers for each name its number in the message that used it last.

Bounded whatever strangers send: at most NAMES_MAX names, BINDINGS_MAX bindings, RAW_MAX bytes; a
look-up looks at PROBES_MAX slots at most.  A table beyond a bound is ``worn``: what is not in it
is not found any more (the message goes another way), and the next message begins with an empty one.

::

    slots   [ -1 | 2 | -1 | 0 | 1 ]      open addressing, twice as many slots as names
                   |
    name    2:  binding 3, bytes "p:b"  ->  QualifiedName("p", "urn:p", "b"), meaning 2,
                number 5 in message 17

What is asked of a name is a row of NAME_WIDTH numbers, a cache line::

    FIRST, SECOND     its first 16 bytes
    SHAPE             length << 32 | binding
    RAW               where all its bytes are
    MESSAGE, NUMBER   the message that used it last, its number there
    MEANING           a name
    TAG               of that one: the start tag that had it last as an attribute
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.names import XML_NAMESPACE, QualifiedName

if cython.compiled:
    from cython.cimports.formats.words import first_bytes, part_of_word, word_at
else:
    from formats.words import first_bytes, part_of_word, word_at

if not cython.compiled:
    NAME_FIRST, NAME_SECOND, NAME_SHAPE, NAME_RAW = range(4)
    NAME_MESSAGE, NAME_NUMBER, NAME_MEANING, NAME_TAG, NAME_WIDTH = range(4, 9)

NAMES_MAX = 8_192
BINDINGS_MAX = 4_096
RAW_MAX = 256 * 1024
PROBES_MAX = 32

NO_NAMESPACE = 0
XML_BINDING = 1
UNKNOWN = -1

_RESERVED_NAMESPACES = (XML_NAMESPACE.encode(), b"http://www.w3.org/2000/xmlns/")


class NameTable:
    """Names and namespace bindings met so far; one message at a time (``begin``)."""

    def __init__(self) -> None:
        self._message = 0
        # Python salts its hashes per process, so that nobody can prepare names that collide.
        self._seed = (hash(b"names") | 1) & 0xFFFFFFFF
        self._empty()
        self.begin(0)

    def begin(self, size: cython.Py_ssize_t) -> None:
        """A new message of so many bytes: its names count from 0."""
        self._last_word = size - 16
        # Half of the table is always left for the names that a message brings.
        if (
            self.worn
            or 2 * self.used > NAMES_MAX
            or 2 * self._raw_size > RAW_MAX
            or 2 * len(self._declarations) > BINDINGS_MAX
        ):
            self._empty()
        self._message += 1
        self.message_size = 0
        self._message_names: list[QualifiedName] = []

    def message_names(self) -> list[QualifiedName]:
        """The names of the present message."""
        return self._message_names

    def bind(self, prefix: bytes, namespace: bytes) -> cython.int:
        """The number of a namespace declaration.

        UNKNOWN if the table is worn, or the declaration is forbidden or the xml prefix's own.
        """
        if not namespace:
            return UNKNOWN if prefix else NO_NAMESPACE
        key = (prefix, namespace)
        found = self._binding_ids.get(key)
        if found is not None:
            return found
        if prefix.startswith(b"xml") or namespace in _RESERVED_NAMESPACES:
            return UNKNOWN
        if len(self._declarations) == BINDINGS_MAX:
            self.worn = True
            return UNKNOWN
        self._binding_ids[key] = len(self._declarations)
        self._declarations.append((prefix.decode(), namespace.decode()))
        return len(self._declarations) - 1

    def declaration(self, binding: cython.int) -> tuple[str, str]:
        """The (prefix, namespace) of a binding."""
        return self._declarations[binding]

    def find(
        self,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        colon: cython.Py_ssize_t,
        binding: cython.int,
        tag: cython.longlong,
    ) -> cython.int:
        """The number in the present message of the name ``data[at:end]``, or UNKNOWN.

        ``colon`` is the place of its colon, or ``at - 1``.  For an attribute ``tag`` is a number of
        its start tag, which never repeats in the life of the table; one whose meaning the tag has
        already is UNKNOWN.  For an element it is 0.
        """
        row: cython.Py_ssize_t
        meaning: cython.Py_ssize_t
        name: cython.int
        _probe: cython.int
        first: cython.ulonglong
        second: cython.ulonglong = 0
        shape: cython.ulonglong = end - at
        slot: cython.uint
        if at <= self._last_word:
            first = word_at(data, at)
            if end - at > 8:
                second = first_bytes(word_at(data, at + 8), min(end - at - 8, 8))
            else:
                first = first_bytes(first, end - at)
        else:
            first = part_of_word(data, at, min(end - at, 8))
            if end - at > 8:
                second = part_of_word(data, at + 8, min(end - at - 8, 8))
        shape = shape << 32 | binding
        slot = self._slot(data, at, end, first, second, shape)
        for _probe in range(PROBES_MAX):
            name = self._slots[slot]
            if name < 0:
                name = self._learn(data, at, end, colon, binding)
                if name < 0:
                    return UNKNOWN
                self._slots[slot] = name
                row = NAME_WIDTH * name
                self._rows[row + NAME_FIRST] = first
                self._rows[row + NAME_SECOND] = second
                self._rows[row + NAME_SHAPE] = shape
            row = NAME_WIDTH * name
            if (
                self._rows[row + NAME_FIRST] == first
                and self._rows[row + NAME_SECOND] == second
                and self._rows[row + NAME_SHAPE] == shape
                and (end - at <= 16 or self._is(name, data, at, end))
            ):
                if tag:
                    meaning = NAME_WIDTH * self._rows[row + NAME_MEANING] + NAME_TAG
                    if self._rows[meaning] == tag:
                        return UNKNOWN
                    self._rows[meaning] = tag
                self._last = name
                if self._rows[row + NAME_MESSAGE] != self._message:
                    self._rows[row + NAME_MESSAGE] = self._message
                    self._rows[row + NAME_NUMBER] = self.message_size
                    self.message_size += 1
                    self._message_names.append(self._names[name])
                return self._rows[row + NAME_NUMBER]
            slot = (slot + 1) & self._mask
        self.worn = True
        return UNKNOWN

    def last_name(self) -> QualifiedName:
        """The name that was found last."""
        return self._names[self._last]

    def first_of_meaning(self, number: cython.int) -> cython.int:
        """The first number in the present message with the meaning of the name found last.

        ``number`` is that one's; where names are found with tags, this is not to be asked.
        """
        row: cython.Py_ssize_t = (
            NAME_WIDTH * self._rows[NAME_WIDTH * self._last + NAME_MEANING] + NAME_TAG
        )
        low: cython.ulonglong = 0xFFFFFFFF
        message: cython.ulonglong = self._message & low
        if self._rows[row] >> 32 != message:
            self._rows[row] = message << 32 | number
        return self._rows[row] & low

    def slot_of(self, name: bytes) -> cython.uint:
        """Where the probing for a name in no namespace begins."""
        first: cython.ulonglong = part_of_word(name, 0, min(len(name), 8))
        second: cython.ulonglong = part_of_word(name, 8, max(min(len(name) - 8, 8), 0))
        shape: cython.ulonglong = len(name)
        return self._slot(name, 0, len(name), first, second, shape << 32)

    def _slot(
        self,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        first: cython.ulonglong,
        second: cython.ulonglong,
        shape: cython.ulonglong,
    ) -> cython.uint:
        # Typed, for the compiler takes a literal of more than 31 bits for an object.
        prime: cython.ulonglong = 0x9E3779B97F4A7C15
        mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
        mixed: cython.ulonglong = ((first ^ self._seed) * prime) & mask
        place: cython.Py_ssize_t
        mixed ^= mixed >> 32
        mixed = ((mixed ^ second ^ shape) * prime) & mask
        if end - at > 16:
            for place in range(at + 16, end - 8, 8):
                mixed ^= mixed >> 32
                mixed = ((mixed ^ word_at(data, place)) * prime) & mask
            mixed ^= mixed >> 32
            mixed = ((mixed ^ word_at(data, end - 8)) * prime) & mask
        return (mixed >> 40) & self._mask

    def _is(
        self,
        name: cython.int,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.bint:
        """Whether these are the bytes of a name of the same length."""
        i: cython.Py_ssize_t
        raw_at: cython.Py_ssize_t = self._rows[NAME_WIDTH * name + NAME_RAW]
        for i in range(end - at):
            if self._raw[raw_at + i] != data[at + i]:
                return False
        return True

    def _learn(
        self,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        colon: cython.Py_ssize_t,
        binding: cython.int,
    ) -> cython.int:
        """A new name, or UNKNOWN; the caller sets what it is found by."""
        i: cython.Py_ssize_t
        name: cython.int = self.used
        if name == NAMES_MAX or self._raw_size + end - at > RAW_MAX:
            self.worn = True
            return UNKNOWN
        prefix, namespace = self._declarations[binding]
        local = data[colon + 1 : end].decode()
        self._names.append(QualifiedName(prefix, namespace, local))
        self._rows[NAME_WIDTH * name + NAME_MEANING] = self._meanings.setdefault(
            (namespace, local), name
        )
        self._rows[NAME_WIDTH * name + NAME_RAW] = self._raw_size
        for i in range(end - at):
            self._raw[self._raw_size + i] = data[at + i]
        self._raw_size += end - at
        self.used += 1
        return name

    def spoil(self) -> None:
        """Forget all names with the next message."""
        self.worn = True

    def _empty(self) -> None:
        self.worn = False
        self.used: int = 0
        self._last = 0
        self._raw_size: int = 0
        self._mask: int = 2 * NAMES_MAX - 1
        self._slots: array[int] = array("i", [-1]) * (2 * NAMES_MAX)
        self._rows: array[int] = array("Q", bytes(8 * NAME_WIDTH * NAMES_MAX))
        self._raw = bytearray(RAW_MAX)
        self._names: list[QualifiedName] = []
        self._meanings: dict[tuple[str, str], int] = {}
        self._declarations: list[tuple[str, str]] = [("", ""), ("xml", XML_NAMESPACE)]
        self._binding_ids: dict[tuple[bytes, bytes], int] = {}
