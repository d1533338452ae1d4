"""WireNames: the head of a binary form, which says what the name numbers of a message mean.

A head is read once for all messages that have the same (WireModel remembers it): its bindings and
names are checked here, so that reading a message's structure is only looking them up.  What depends
on where a name stands (whether its prefix means its namespace there) is the reader's.

Bindings are (prefix, namespace) pairs: number 0 is neither, 1 the prefix ``xml``, from 2 on they
are the head's.  Name numbers begin with the dictionary's, which say only (namespace, local): their
prefix is that of the first binding to the namespace.
"""

from __future__ import annotations

from array import array
from typing import NoReturn

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.errors import DecodeError
from formats.known_names import KnownName
from formats.limits import MessageLimits
from formats.name_faults import binding_fault, name_fault
from formats.name_table import NameTable
from formats.names import XML_NAMESPACE, QualifiedName
from formats.wire_words import WireWords

NO_BINDING, XML_BINDING = 0, 1
UNRESOLVED = -1


class WireNames:
    """What one head says.

    names      [name] QualifiedName, None where it was not needed yet
    binding    [name] its binding, UNRESOLVED likewise
    meaning    [name] the same for names of the same namespace and local name
    size       [name] bytes as it stands in a text
    is_xmlns   [name] no attribute may be called so
    prefix     [binding] the number of its prefix; 0 is no prefix
    """

    def __init__(self, words: WireWords, head: bytes, offset: int, limits: MessageLimits) -> None:
        self._head = head
        self._at = 0
        self._offset = offset
        self._words = words
        self.limits = limits
        self._read_bindings()
        self._read_names()
        if self._at != len(head):
            self._refuse("bad-structure", "the head should end here")

    def resolve(self, number: cython.int) -> cython.bint:
        """Makes a name of the dictionary usable; False if no binding leads to its namespace."""
        namespace, local = self._words.names[number]
        binding = self._first_binding.get(namespace, UNRESOLVED)
        if binding < 0:
            return False
        prefix = self.bindings[binding][0]
        found = self._words.known_names.of(prefix, namespace, self.limits).get(local)
        if found is None:
            found = self._check(QualifiedName(prefix, namespace, local))
        self._set(number, binding, number, found)
        return True

    def _set(
        self,
        number: cython.int,
        binding: cython.int,
        meaning: cython.int,
        known: KnownName,
    ) -> None:
        name, _, size, is_xmlns = known
        self.names[number] = name
        self.binding[number] = binding
        self.meaning[number] = meaning
        self.size[number] = size
        self.is_xmlns[number] = is_xmlns

    def _check(self, name: QualifiedName) -> KnownName:
        """What is to be known of a name that was not seen before."""
        fault = name_fault(name, self.limits.name_bytes_max, self.limits.namespace_bytes_max)
        if fault is not None:
            raise DecodeError(*fault, self._offset + self._at)
        remembered = self._words.known_names
        return remembered.learn(remembered.of(name.prefix, name.namespace, self.limits), name)

    def _read_bindings(self) -> None:
        count = self._number()
        if count > len(self._head):
            self._refuse("bad-count", f"{count} bindings in a head of {len(self._head)} bytes")
        self.bindings = [("", ""), ("xml", XML_NAMESPACE)]
        for _ in range(count):
            binding = (self._word(), self._word())
            limits = self.limits
            fault = binding_fault(*binding, limits.name_bytes_max, limits.namespace_bytes_max)
            if fault is not None:
                self._refuse(fault[0], fault[1])
            if binding in self.bindings[:2]:
                self._refuse("bad-namespace", "this binding needs no number")
            self.bindings.append(binding)
        if len(set(self.bindings)) < len(self.bindings):
            self._refuse("bad-namespace", "a binding stands twice")
        prefixes: dict[str, int] = {"": 0}
        self.prefix = array(
            "i", [prefixes.setdefault(prefix, len(prefixes)) for prefix, _ in self.bindings]
        )
        self.prefix_count = len(prefixes)
        self.binding_count = len(self.bindings)
        self._first_binding: dict[str, int] = {}
        for number, (_, namespace) in enumerate(self.bindings):
            self._first_binding.setdefault(namespace, number)

    def _read_names(self) -> None:
        number: cython.int
        binding: cython.int
        first: cython.int
        known: cython.int = self._words.name_count
        own = self._number()
        if own > len(self._head):
            self._refuse("bad-count", f"{own} names in a head of {len(self._head)} bytes")
        limits = self.limits
        if own > limits.names_max:
            reason = f"{own} names, at most {limits.names_max} are allowed"
            self._refuse("too-many-names", reason)
        self.count = known + own
        self.names: list[QualifiedName | None] = [None] * self.count
        # One more, since a view of nothing is not to be had.
        self.binding = array("i", [UNRESOLVED]) * (self.count + 1)
        self.meaning = array("i", bytes(4 * (self.count + 1)))
        self.size = array("i", bytes(4 * (self.count + 1)))
        self.is_xmlns = bytearray(self.count + 1)
        start: cython.Py_ssize_t = self._at
        table = self._words.name_table
        try:
            if table is not None and self._find_names(table):
                return
        except UnicodeDecodeError:
            self._at = start
        remembered = self._words.known_names
        named = [remembered.of(*pair, limits) for pair in self.bindings]
        meanings: dict[tuple[str, str], int] = {}
        for number in range(known, self.count):
            binding = self._number()
            if binding >= len(named):
                self._refuse("bad-structure", f"no binding {binding}")
            local = self._word()
            found = named[binding].get(local)
            if found is None:
                prefix, namespace = self.bindings[binding]
                found = self._check(QualifiedName(prefix, namespace, local))
            meaning = found[1]
            first = self._words.name_numbers.get(meaning, UNRESOLVED) if known else UNRESOLVED
            if first == UNRESOLVED:
                first = meanings.setdefault(meaning, number)
            elif self._first_binding[meaning[0]] == binding:
                self._refuse("bad-name", f"name {found[0]} is the dictionary's")
            self._set(number, binding, first, found)
        # Names of different meanings are different.
        if len(meanings) < own and len(set(self.names[known:])) < own:
            self._refuse("bad-name", "a name has two numbers")

    def _find_names(self, table: NameTable) -> cython.bint:
        """The own names by their bytes; False if something has to be looked at as text."""
        data: cython.p_const_uchar = self._head
        name_max: cython.Py_ssize_t = self.limits.name_bytes_max
        start: cython.Py_ssize_t = self._at
        at: cython.Py_ssize_t
        number: cython.int
        binding: cython.int
        size: cython.int
        used: cython.int
        bindings: cython.int[::1]
        table.begin(len(self._head))
        numbers = [table.bind(prefix.encode(), uri.encode()) for prefix, uri in self.bindings]
        numbers[XML_BINDING] = XML_BINDING
        bindings = array("i", numbers)
        for number in range(self.count):
            binding = self._number()
            size = self._number()
            at = self._at
            if binding >= len(bindings) or bindings[binding] < 0 or size & 1:
                break
            size = size >> 1
            if not 0 < size <= name_max or at + size > len(self._head):
                break
            self._at = at + size
            used = table.used
            if table.find(data, at, self._at, at - 1, bindings[binding], 0) != number:
                break
            name = table.last_name()
            if table.used > used and self._is_wrong(name):
                table.spoil()
                break
            self.names[number] = name
            self.binding[number] = binding
            self.meaning[number] = table.first_of_meaning(number)
            self.is_xmlns[number] = size == 5 and data[at] == ord("x") and str(name) == "xmlns"
            self.size[number] = size
            if name.prefix:
                self.size[number] += len(name.prefix.encode()) + 1
        else:
            return True
        self._at = start
        return False

    def _is_wrong(self, name: QualifiedName) -> bool:
        limits = self.limits
        return name_fault(name, limits.name_bytes_max, limits.namespace_bytes_max) is not None

    def _word(self) -> str:
        """A string: literal, or the dictionary's."""
        start: cython.Py_ssize_t
        end: cython.Py_ssize_t
        value: cython.int = self._number()
        number: cython.Py_ssize_t = value >> 1
        if value & 1:
            if number >= len(self._words.strings):
                self._refuse("bad-structure", f"the dictionary has no string {number}")
            word: str = self._words.strings[number]
            return word
        start = self._at
        end = start + number
        if end > len(self._head):
            self._refuse("truncated", f"a string of {number} bytes ends behind the head")
        self._at = end
        try:
            return self._head[start:end].decode()
        except UnicodeDecodeError:
            self._at = start
            self._refuse("bad-string", "a string is not UTF-8")

    def _number(self) -> cython.int:
        """A varint."""
        byte: cython.longlong
        shift: cython.int = 0
        value: cython.longlong = 0
        while True:
            if self._at >= len(self._head):
                self._refuse("truncated", "the head ends inside a number")
            byte = self._head[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 35:
                self._refuse("bad-number", "a number of more than five bytes")
        if value > 0x7FFFFFFF or (byte == 0 and shift > 7):
            self._refuse("bad-number", f"{value} is too large or not in its shortest form")
        return value

    def _refuse(self, code: str, reason: str) -> NoReturn:
        raise DecodeError(code, reason, self._offset + self._at)
