"""WireScope: which prefix means what while a binary form is read.

Bindings and prefixes are numbers of the message's WireNames.  A declaration is announced before the
start of its element (``announce``) and in force from there (``open``) to its end (``close``).
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.column_writer import ColumnWriter
from formats.wire_bytes import WireBytes
from formats.wire_names import NO_BINDING, UNRESOLVED, XML_BINDING, WireNames


class WireScope:
    """One message after the other (``begin``); ``announced`` declarations wait for an element.

    ``in_force``: [prefix] the binding that it has now.
    """

    def __init__(self, source: WireBytes) -> None:
        self._source = source
        self._tag = 0
        self._prefixes = 0
        self._undo_prefixes = array("i")
        self._undo_bindings = array("i")
        self._undo_elements = array("i")
        self._grow_undo(16)
        self._grow_prefixes(8)

    def begin(self, names: WireNames, declarations_max: cython.int) -> None:
        """``declarations_max``: of one element."""
        i: cython.int
        self._names = names
        self._declarations_max = declarations_max
        if names.prefix_count > self._prefixes:
            self._grow_prefixes(names.prefix_count)
        for i in range(names.prefix_count):
            self.in_force[i] = UNRESOLVED
        self.in_force[0] = NO_BINDING
        self.in_force[1] = XML_BINDING
        self.undo = 0
        self.announced = 0

    def announce(self, binding: cython.int) -> None:
        if binding >= self._names.binding_count:
            self._source.refuse("bad-structure", f"no binding {binding}")
        if binding == XML_BINDING:
            self._source.refuse("bad-declaration", "prefix xml is always declared")
        if self.announced >= self._declarations_max:
            self._source.refuse("too-many-attributes", "too many declarations on one element")
        if self.announced == 0:
            self._bindings: list[int] = []
        self._bindings.append(binding)
        self.announced += 1

    def open(self, element: cython.int, out: ColumnWriter) -> cython.Py_ssize_t:
        """What was announced is declared on an element; the bytes that it takes."""
        binding: cython.int
        prefix: cython.int
        size: cython.Py_ssize_t = 0
        self._tag += 1
        for binding in self._bindings:
            prefix = self._names.prefix[binding]
            if self._tags[prefix] == self._tag:
                self._source.refuse("bad-declaration", "a prefix declared twice on one element")
            self._tags[prefix] = self._tag
            if self.undo == len(self._undo_prefixes):
                self._grow_undo(2 * self.undo)
            self._undo_prefix[self.undo] = prefix
            self._undo_binding[self.undo] = self.in_force[prefix]
            self._undo_element[self.undo] = element
            self.undo += 1
            self.in_force[prefix] = binding
            declaration = self._names.bindings[binding]
            size += len(declaration[0].encode()) + len(declaration[1].encode())
            out.declare_on(element, declaration)
        self.announced = 0
        return size

    def close(self, element: cython.int) -> None:
        """The end of an element."""
        while self.undo > 0 and self._undo_element[self.undo - 1] == element:
            self.undo -= 1
            self.in_force[self._undo_prefix[self.undo]] = self._undo_binding[self.undo]

    def _grow_undo(self, count: cython.int) -> None:
        self._undo_prefixes = _longer(self._undo_prefixes, count)
        self._undo_bindings = _longer(self._undo_bindings, count)
        self._undo_elements = _longer(self._undo_elements, count)
        self._undo_prefix = self._undo_prefixes
        self._undo_binding = self._undo_bindings
        self._undo_element = self._undo_elements

    def _grow_prefixes(self, count: cython.int) -> None:
        self._prefixes = count
        self.in_force = array("i", bytes(4 * count))
        self._tags = array("q", bytes(8 * count))


def _longer(column: array[int], count: int) -> array[int]:
    longer = array(column.typecode, bytes(count * column.itemsize))
    longer[: len(column)] = column
    return longer
