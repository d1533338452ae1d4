# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Operator: a compiled expression; what every kind of them can be asked about a context node.

An operator is made once for a profile, or for all that share it, and asked on message after
message.  What it answers is what ``MessageEvaluator`` answers for its expression; whoever has no
quicker way says only what its ``value`` is.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Iterable

from yfilter.language.evaluator import effective_boolean
from yfilter.language.nodes import Atom, DynamicError, Value


class Operator:
    """``is_costly``: its answer for a node is worth remembering.  ``uses_context``: it depends on
    the context node.  ``free``: the variables bound around it that it depends on."""

    is_costly: bool
    uses_context: bool
    free: frozenset[object]

    def __init__(self, parts: Iterable[Operator] = ()) -> None:
        parts = tuple(parts)
        self.is_costly = any(part.is_costly for part in parts)
        self.uses_context = any(part.uses_context for part in parts)
        self.free = frozenset().union(*(part.free for part in parts))

    def value(self, node: cython.longlong) -> Value:
        """The items of the expression, as the interpreter knows them; DynamicError."""
        raise NotImplementedError

    def items(self, node: cython.longlong) -> list[Atom]:
        """The atomic values of the items.  By default there are no nodes among these."""
        return self.value(node)[:]  # type: ignore[return-value]

    def holds(self, node: cython.longlong) -> cython.bint:
        """The effective boolean value; DynamicError."""
        answer: cython.bint = effective_boolean(self.value(node))
        return answer

    def atom(self, node: cython.longlong) -> Atom | None:
        """The one atomic value of an operand, None for nothing; DynamicError for several."""
        items = self.items(node)
        if len(items) > 1:
            raise DynamicError("XPTY0004", "several items where one is wanted")
        return items[0] if items else None

    def first_atom(self, node: cython.longlong) -> Atom | None:
        """The atomic value of the first item, None for nothing."""
        items = self.items(node)
        return items[0] if items else None
