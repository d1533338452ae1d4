"""NamespaceScope: which prefix is bound to what at a place in a message.

A stack of declarations, innermost last, each with the element that made it; a prefix is a piece
of the message's own bytes, the default namespace one of length 0, a binding a number of NameTable.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.name_table import NO_NAMESPACE, UNKNOWN, XML_BINDING

SCOPE_MAX = 64  # declarations in scope at a time


class NamespaceScope:
    """At most SCOPE_MAX declarations, so that a look-up may try one after the other."""

    def __init__(self) -> None:
        self.size = 0
        self._element = array("i", bytes(4 * SCOPE_MAX))
        self._prefix_at = array("i", bytes(4 * SCOPE_MAX))
        self._prefix_end = array("i", bytes(4 * SCOPE_MAX))
        self._binding = array("i", bytes(4 * SCOPE_MAX))

    def clear(self) -> None:
        self.size = 0

    def declare(
        self,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        element: cython.int,
        binding: cython.int,
    ) -> cython.bint:
        """Bind the prefix ``data[at:end]``; False if that element has bound it, or it is full."""
        scope: cython.int = self.size
        if scope == SCOPE_MAX:
            return False
        while scope > 0 and self._element[scope - 1] == element:
            scope -= 1
            if self._is(scope, data, at, end):
                return False
        self._element[self.size] = element
        self._prefix_at[self.size] = at
        self._prefix_end[self.size] = end
        self._binding[self.size] = binding
        self.size += 1
        return True

    def close(self, element: cython.int) -> None:
        """The declarations of an element are over."""
        while self.size > 0 and self._element[self.size - 1] == element:
            self.size -= 1

    def binding_of(
        self, data: cython.p_const_uchar, at: cython.Py_ssize_t, colon: cython.Py_ssize_t
    ) -> cython.int:
        """The binding of the prefix ``data[at:colon]`` (of the default if that is empty)."""
        scope: cython.int = self.size
        end: cython.Py_ssize_t = colon if colon > at else at
        while scope > 0:
            scope -= 1
            if self._is(scope, data, at, end):
                return self._binding[scope]
        if end == at:
            return NO_NAMESPACE
        return XML_BINDING if data[at:end] == b"xml" else UNKNOWN

    def _is(
        self,
        scope: cython.int,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.bint:
        """Whether the prefix of a declaration is ``data[at:end]``."""
        i: cython.Py_ssize_t
        known: cython.Py_ssize_t = self._prefix_at[scope]
        if self._prefix_end[scope] - known != end - at:
            return False
        for i in range(end - at):
            if data[known + i] != data[at + i]:
                return False
        return True
