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
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.names import XML_NAMESPACE, QualifiedName

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
        self.begin()

    def begin(self) -> None:
        """A new message: its names count from 0."""
        # Half of the table is always left for the names that a message brings.
        if (
            self.worn
            or 2 * self._used > NAMES_MAX
            or 2 * self._raw_size > RAW_MAX
            or 2 * len(self._declarations) > BINDINGS_MAX
        ):
            self._empty()
        self._message += 1
        self._message_names: list[QualifiedName] = []

    def message_names(self) -> list[QualifiedName]:
        """The names of the present message."""
        return self._message_names

    def message_size(self) -> cython.Py_ssize_t:
        """How many names the present message has so far."""
        return len(self._message_names)

    def hash_seed(self) -> cython.uint:
        """What the caller starts a name's hash with: FNV-1a over its bytes."""
        return self._seed

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
        hashed: cython.uint,
        binding: cython.int,
    ) -> cython.int:
        """The number in the present message of the name ``data[at:end]``, or UNKNOWN.

        ``colon`` is the place of its colon, or ``at - 1``; ``hashed`` its hash by hash_seed.
        """
        name: cython.int
        _probe: cython.int
        slot: cython.uint = (hashed ^ cython.cast(cython.uint, binding * 0x9E5)) & self._mask
        for _probe in range(PROBES_MAX):
            name = self._slots[slot]
            if name < 0:
                return self._learn(slot, data, at, end, colon, hashed, binding)
            if (
                self._hashes[name] == hashed
                and self._bindings[name] == binding
                and self._is(name, data, at, end)
            ):
                return self._number(name)
            slot = (slot + 1) & self._mask
        self.worn = True
        return UNKNOWN

    def is_repeated(self, number: cython.int, tag: cython.longlong) -> cython.bint:
        """Whether this was asked for a name of the same meaning and the same start tag before.

        ``tag`` never repeats in the life of the table.
        """
        meaning: cython.int = self._meaning[self._global[number]]
        if self._attribute_tag[meaning] == tag:
            return True
        self._attribute_tag[meaning] = tag
        return False

    def _number(self, name: cython.int) -> cython.int:
        number: cython.int
        if self._local_message[name] != self._message:
            number = len(self._message_names)
            self._local_message[name] = self._message
            self._local[name] = number
            self._global[number] = name
            self._message_names.append(self._names[name])
        return self._local[name]

    def _is(
        self,
        name: cython.int,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.bint:
        i: cython.Py_ssize_t
        raw_at: cython.Py_ssize_t = self._raw_at[name]
        if self._raw_length[name] != end - at:
            return False
        for i in range(end - at):
            if self._raw[raw_at + i] != data[at + i]:
                return False
        return True

    def _learn(
        self,
        slot: cython.uint,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        colon: cython.Py_ssize_t,
        hashed: cython.uint,
        binding: cython.int,
    ) -> cython.int:
        i: cython.Py_ssize_t
        name: cython.int = self._used
        if name == NAMES_MAX or self._raw_size + end - at > RAW_MAX:
            self.worn = True
            return UNKNOWN
        prefix = data[at:colon].decode() if colon >= at else ""
        namespace = self._declarations[binding][1]
        local = data[colon + 1 : end].decode()
        self._names.append(QualifiedName(prefix, namespace, local))
        self._meaning[name] = self._meanings.setdefault((namespace, local), name)
        self._hashes[name] = hashed
        self._bindings[name] = binding
        self._raw_at[name] = self._raw_size
        self._raw_length[name] = end - at
        for i in range(end - at):
            self._raw[self._raw_size + i] = data[at + i]
        self._raw_size += end - at
        self._slots[slot] = name
        self._used += 1
        return self._number(name)

    def _empty(self) -> None:
        self.worn = False
        self._used = 0
        self._raw_size = 0
        self._mask = 2 * NAMES_MAX - 1
        self._slots = array("i", [-1]) * (2 * NAMES_MAX)
        self._hashes = array("I", bytes(4 * NAMES_MAX))
        self._bindings = array("i", bytes(4 * NAMES_MAX))
        self._raw_at = array("i", bytes(4 * NAMES_MAX))
        self._raw_length = array("i", bytes(4 * NAMES_MAX))
        self._raw = bytearray(RAW_MAX)
        self._local = array("i", bytes(4 * NAMES_MAX))
        self._local_message = array("q", bytes(8 * NAMES_MAX))
        self._global = array("i", bytes(4 * NAMES_MAX))
        self._meaning = array("i", bytes(4 * NAMES_MAX))
        self._attribute_tag = array("q", bytes(8 * NAMES_MAX))
        self._names: list[QualifiedName] = []
        self._meanings: dict[tuple[str, str], int] = {}
        self._declarations: list[tuple[str, str]] = [("", ""), ("xml", XML_NAMESPACE)]
        self._binding_ids: dict[tuple[bytes, bytes], int] = {}
