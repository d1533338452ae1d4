"""How a property's IRI is written as the name of an element.

It is split before its longest ending that is an NCName: ``http://purl.org/dc/terms/title`` is
``title`` in the namespace ``http://purl.org/dc/terms/``.  One that has no such ending, whose parts
are longer than those of a name may be, or whose namespace XML has reserved, has no name: its
element is OTHER_PROPERTY, with the IRI in an attribute.
"""

from __future__ import annotations

from formats.characters import colonless_ending
from formats.limits import DEFAULT_LIMITS
from formats.name_faults import XMLNS_NAMESPACE

_KEPT_MAX = 8_192
_known: dict[bytes, tuple[str, str] | None] = {}


def known_property_name(iri: bytes) -> tuple[str, str] | None:
    """As ``property_name``, which is asked once for what many messages have."""
    if iri not in _known:
        if len(_known) >= _KEPT_MAX:
            _known.clear()
        _known[iri] = property_name(iri.decode())
    return _known[iri]


def property_name(iri: str) -> tuple[str, str] | None:
    """Namespace and local name of a property's element, or None if it has no name.

    It is the same in every network, whatever its limits, since profiles are written with it.
    """
    start = colonless_ending(iri)
    namespace, local = iri[:start], iri[start:]
    if (
        not local
        or not namespace
        or namespace == XMLNS_NAMESPACE
        or len(local.encode()) > DEFAULT_LIMITS.name_bytes_max
        or len(namespace.encode()) > DEFAULT_LIMITS.namespace_bytes_max
    ):
        return None
    return namespace, local
