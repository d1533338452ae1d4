"""KnownNames: the names that were in order before, so that a head is read by looking them up.

A source's messages have the same names again and again, though seldom the same set of them.  What
is remembered is bounded, whatever is sent: at most some 10 MB; beyond that all is forgotten.
"""

from __future__ import annotations

from formats.limits import MessageLimits
from formats.names import QualifiedName

# The name, its (namespace, local), its bytes in a text, and whether no attribute may be called so.
KnownName = tuple[QualifiedName, tuple[str, str], int, bool]

_REMEMBERED_MAX = 4_096  # names, and bindings
_REMEMBERED_LENGTH = 600


class KnownNames:
    """``of`` a binding gives its names by local name; ``learn`` adds one that was checked."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str, int, int], dict[str, KnownName]] = {}
        self._count = 0

    def of(self, prefix: str, namespace: str, limits: MessageLimits) -> dict[str, KnownName]:
        """The names of a binding that was checked, in order under these limits."""
        if len(prefix) + len(namespace) > _REMEMBERED_LENGTH:
            return {}
        key = (prefix, namespace, limits.name_bytes_max, limits.namespace_bytes_max)
        names = self._of.get(key)
        if names is None:
            self._make_room()
            names = self._of[key] = {}
        return names

    def learn(self, names: dict[str, KnownName], name: QualifiedName) -> KnownName:
        """A name that is in order, for the names of its binding."""
        is_xmlns = not name.prefix and name.local == "xmlns"
        known = (name, (name.namespace, name.local), len(str(name).encode()), is_xmlns)
        if len(name.local) <= _REMEMBERED_LENGTH:
            self._make_room()
            names[name.local] = known
        return known

    def _make_room(self) -> None:
        if self._count >= _REMEMBERED_MAX:
            self._of.clear()
            self._count = 0
        self._count += 1
