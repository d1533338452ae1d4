"""EntityBudget: what the entity references of a message expand to, known before any is expanded.

A DOCTYPE can declare entities that double at every step ("billion laughs"), and a non-validating
parser may silently drop a reference that it cannot resolve when there is an external DTD.  Both
are settled here, while the DOCTYPE is read and before the first element:

* all references of the message are counted in one pass over its text;
* the size of an entity is computed when it is declared, and  sum(size * references)  is held
  against a bound;
* every reference must lead to declared entities only.

::

    <!DOCTYPE a [<!ENTITY x "12"><!ENTITY y "&x;&x;.">]><a b="&y;">&y;</a>
                          size 2          size 5        2 references: 10 bytes
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NoReturn

from formats.errors import MessageRefused

# The first alternatives are the places where "&name;" is not a reference; what an <!ENTITY>
# holds is looked at when it is declared.  Each also matches unfinished, to the end of the text:
# the search stays linear whatever the text is.
_REFERENCES = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    r"""|<!(?:ENTITY|NOTATION)\s(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^>"'])*+"""
    r"""|&([^#&;<>\s"'][^&;<>\s"']*+);""",
    re.DOTALL,
)
_LINE_END = re.compile("\r\n?|\n")
_PREDEFINED = frozenset({"amp", "lt", "gt", "apos", "quot"})


class EntityBudget:
    """One message's entities; ``text`` runs from the end of the DOCTYPE's head to the end.

    ``line`` and ``column`` (from 1) are where that text starts.  Refusals are MessageRefused with
    the codes ``entity-expansion``, ``too-deep``, ``recursive-entity`` and ``undefined-entity``.
    """

    def __init__(
        self, text: str, line: int, column: int, expansion_max: int, depth_max: int
    ) -> None:
        self._text = text
        self._start = line, column
        self._expansion_max = expansion_max
        self._depth_max = depth_max
        self._first: dict[str, int] = {}  # name -> index of its first reference
        self._counts: Counter[str] = Counter()
        for match in _REFERENCES.finditer(text):
            name = match[1]
            if name is not None and name not in _PREDEFINED:
                self._counts[name] += 1
                self._first.setdefault(name, match.start())
        self._values: dict[str, Counter[str]] = {}  # name -> what its own text refers to
        self._own_sizes: dict[str, int] = {}
        self._waiting_for: dict[str, set[str]] = {}  # declared, not all parts declared yet
        self._needed_by: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}  # fully expanded
        self._levels: dict[str, int] = {}
        self.total = 0  # bytes that all references of entities known so far expand to

    def declare(self, name: str, value: str, line: int, column: int) -> None:
        """An internal entity with its replacement text (character references resolved).

        ``line`` and ``column`` are for a refusal.
        """
        if name in self._values:
            return  # the first declaration counts
        parts = Counter(
            match[1]
            for match in _REFERENCES.finditer(value)
            if match[1] not in {None, *_PREDEFINED}
        )
        self._values[name] = parts
        self._own_sizes[name] = len(value.encode())
        self._waiting_for[name] = {part for part in parts if part not in self._sizes}
        for part in self._waiting_for[name]:
            self._needed_by.setdefault(part, []).append(name)
        self._settle(name, line, column)

    def declare_external(self, name: str, line: int, column: int) -> None:
        """An external or unparsed entity; the parser refuses a reference to it by itself."""
        if name not in self._values:
            self._values[name] = Counter()
            self._own_sizes[name] = 0
            self._waiting_for[name] = set()
            self._settle(name, line, column)

    def close(self) -> None:
        """The DOCTYPE has ended: every reference must have been settled."""
        for name, index in self._first.items():
            if name not in self._sizes:
                self._refuse_unsettled(name, index)

    def _settle(self, name: str, line: int, column: int) -> None:
        """Compute the sizes of an entity and of all that only waited for it."""
        ready = [name]
        while ready:
            current = ready.pop()
            if current in self._sizes or self._waiting_for[current]:
                continue
            parts = self._values[current]
            size = self._own_sizes[current] + sum(
                self._sizes[part] * count for part, count in parts.items()
            )
            self._sizes[current] = size
            self._levels[current] = 1 + max((self._levels[part] for part in parts), default=0)
            self._charge(current, line, column)
            for dependent in self._needed_by.pop(current, ()):
                self._waiting_for[dependent].discard(current)
                ready.append(dependent)

    def _charge(self, name: str, line: int, column: int) -> None:
        count = self._counts[name]
        self.total += self._sizes[name] * count
        if self._sizes[name] > self._expansion_max or self.total > self._expansion_max:
            raise MessageRefused(
                "entity-expansion",
                f"entity &{name}; expands to {self._sizes[name]} bytes and is referenced {count} "
                f"times in the message; at most {self._expansion_max} bytes may come of entities",
                line,
                column,
            )
        if self._levels[name] > self._depth_max:
            raise MessageRefused(
                "too-deep",
                f"entity &{name}; nests entities {self._levels[name]} deep; "
                f"at most {self._depth_max} are allowed",
                line,
                column,
            )

    def _refuse_unsettled(self, name: str, index: int) -> NoReturn:
        line, column = self._position(index)
        seen = set()
        current = name
        while current in self._values:
            if current in seen:
                raise MessageRefused(
                    "recursive-entity", f"entity &{current}; contains itself", line, column
                )
            seen.add(current)
            current = min(self._waiting_for[current])
        raise MessageRefused(
            "undefined-entity", f"entity &{current}; is not declared", line, column
        )

    def _position(self, index: int) -> tuple[int, int]:
        line, column = self._start
        before = _LINE_END.split(self._text[:index])
        if len(before) > 1:
            line, column = line + len(before) - 1, 1
        return line, column + len(before[-1])
