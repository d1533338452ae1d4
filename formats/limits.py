"""What one message may cost: every bound of the parser and the decoders in one place.

The policy is always the same: a message beyond a bound is refused with the code given here and
nothing of it is processed; the connection that brought it stays open.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct, structs

INTEGER_MAX = 2**31 - 1
Count: TypeAlias = Annotated[int, Meta(ge=1, le=INTEGER_MAX)]
"""What an operator may set, where nothing else is said."""


class MessageLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds for one message; sizes in bytes of UTF-8."""

    bytes_max: Count = 4 * 1024 * 1024
    """wire size (`too-large`)"""
    depth_max: Count = 256
    """nesting of elements; also of entities in entities (`too-deep`)"""
    elements_max: Count = 500_000
    """elements in the message (`too-many-elements`)"""
    attributes_max: Count = 1_024
    """attributes, namespace declarations included, on one element (`too-many-attributes`)"""
    attributes_total_max: Count = 2_000_000
    """the same in the whole message (`too-many-attributes`)"""
    default_attributes_max: Count = 10_000
    """attributes and namespace declarations of the message that a DTD gives by default, so that
    they are nowhere written (`too-many-attributes`)"""
    entity_marks_max: Count = 4_000
    """`<` that the message has of internal entities, as often as these are referred to
    (`entity-expansion`)"""
    odd_elements_max: Count = 10_000
    """elements of a message whose DOCTYPE declares types or defaults of attributes, or entities
    with markup, or that is otherwise not for the fast reader (`too-many-elements`)"""
    names_max: Count = 2_500
    """distinct names in the message (`too-many-names`)"""
    name_bytes_max: Count = 1_024
    """one prefix or local name (`name-too-long`)"""
    namespace_bytes_max: Count = 1_024
    """one namespace name (`namespace-too-long`)"""
    doctype_bytes_max: Count = 32 * 1024
    """the DOCTYPE declaration with its internal subset (`doctype-too-large`)"""
    expansion_max: Count = 16 * 1024 * 1024
    """text, attribute values, comments and processing instructions, names and namespaces as often
    as they stand in the message, after expansion of internal entities (`entity-expansion`)"""

    def of(self, size: int) -> MessageLimits:
        """The limits of a message that is published in so many bytes, in any form: it may become
        no more than a text of SPARSE_BYTES, or than eight times as long, could be."""
        room = max(SPARSE_BYTES, 8 * size)
        if room >= self.expansion_max:
            return self
        return structs.replace(
            self,
            bytes_max=min(self.bytes_max, room),
            elements_max=min(self.elements_max, max(room // 16, 1)),
            attributes_total_max=min(self.attributes_total_max, max(room // 16, 1)),
            expansion_max=min(self.expansion_max, room),
        )


SPARSE_BYTES = 256 * 1024
DEFAULT_LIMITS = MessageLimits()
