"""Headers of frames read by msgspec, where they are just as this release writes them.

What is taken here passes the checks of ``frame_fields`` too, and gives the same values.  Everything
else is left to those, which know what may lack, what a later release has added, and how to
say what is wrong: a key that is there twice among them, as then another one lacks or there are more
keys than fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from overlay.link.frame import Frame
from overlay.link.frame_fields import KEY_BYTES_MAX, SEQUENCE_MAX, exact_type, header_fields

_FIXMAP, _FIXMAP_MOST = 0x80, 15
_PLACE = {
    "k": Annotated[str, msgspec.Meta(max_length=KEY_BYTES_MAX // 4)],
    "n": Annotated[int, msgspec.Meta(ge=1, le=SEQUENCE_MAX)],
}
NOT_EXACT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class ExactHeader:
    """How to take a header of one type of frame: ``first`` is the byte with which a map of just so
    many keys begins, ``values`` takes the fields' values in the order of the dataclass."""

    cls: type[Frame]
    first: int
    is_sequenced: bool
    values: Callable[[Any], tuple[Any, ...]]


class ExactHeaders:
    """``decode`` bytes, and look up in ``kinds`` how to take what comes of it, by its type; it is
    the header only if the bytes begin with ``first``.  Decoding raises ``NOT_EXACT``."""

    def __init__(self, types: Mapping[str, type[Frame]]) -> None:
        self.kinds: dict[type, ExactHeader] = {}
        for name, cls in types.items():
            self._add(name, cls)
        self.decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(_union(self.kinds)).decode

    def _add(self, name: str, cls: type[Frame]) -> None:
        hints = header_fields(cls)
        exact = {field: exact_type(hint) for field, hint in hints.items()}
        if None in exact.values():
            return
        place = _PLACE if cls.sequenced else {}
        struct = msgspec.defstruct(
            cls.__name__,
            [*place.items(), *exact.items()],
            tag_field="t",
            tag=name,
            frozen=True,
            forbid_unknown_fields=True,
            gc=False,
        )
        count = 1 + len(place) + len(exact)
        assert count <= _FIXMAP_MOST
        self.kinds[struct] = ExactHeader(cls, _FIXMAP + count, cls.sequenced, _values(tuple(exact)))


def _union(kinds: Mapping[type, ExactHeader]) -> Any:
    union: Any = None
    for struct in kinds:
        union = struct if union is None else union | struct
    return union


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        one = attrgetter(names[0])
        return lambda read: (one(read),)
    return attrgetter(*names) if names else lambda _: ()
