"""What one message may cost: every bound of the parser and the decoders in one place.

The policy is always the same: a message beyond a bound is refused with the code given here and
nothing of it is processed; the connection that brought it stays open.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """Bounds for one message; sizes in bytes of UTF-8.

    bytes_max             wire size (code ``too-large``)
    depth_max             nesting of elements; also of entities in entities (``too-deep``)
    elements_max          elements in the message (``too-many-elements``)
    attributes_max        attributes, namespace declarations included, on one element
                          (``too-many-attributes``)
    attributes_total_max  the same in the whole message; a DTD can give every element attributes
                          that are nowhere written (``too-many-attributes``)
    names_max             distinct names in the message (``too-many-names``)
    name_bytes_max        one prefix or local name (``name-too-long``)
    namespace_bytes_max   one namespace name (``namespace-too-long``)
    doctype_bytes_max     the DOCTYPE declaration with its internal subset (``doctype-too-large``)
    expansion_max         text, attribute values, comments and processing instructions, names and
                          namespaces as often as they stand in the message, after expansion of
                          internal entities (``entity-expansion``)
    """

    bytes_max: int = 4 * 1024 * 1024
    depth_max: int = 256
    elements_max: int = 500_000
    attributes_max: int = 1_024
    attributes_total_max: int = 2_000_000
    names_max: int = 20_000
    name_bytes_max: int = 1_024
    namespace_bytes_max: int = 1_024
    doctype_bytes_max: int = 64 * 1024
    expansion_max: int = 16 * 1024 * 1024


DEFAULT_LIMITS = MessageLimits()
