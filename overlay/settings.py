"""The settings of a source and of a profile: the record of each has its fields, with their bounds
and help, once.

The request that says them, the row and the frame that keep them, and the answer that shows them
inherit the fields::

    class ProfileEntry(ProfileSettings, Row, frozen=True):
        profile: str

A new setting has a default, for rows and peers of before.  ``extra`` of its ``Meta``: the
``metavar`` and the ``help`` that the command line has in place of the description, and whether a
``column`` of a list shows it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, StructMeta, UnsetType
from msgspec.structs import fields

from overlay.link.frame_fields import Name

Degrees: TypeAlias = tuple[
    Annotated[float, Meta(ge=-90, le=90)], Annotated[float, Meta(ge=-180, le=180)]
]
"""(latitude, longitude)."""
Validation: TypeAlias = Literal["off", "report", "reject"]
"""Of messages by the schema of their source."""


class _Inheriting(StructMeta):
    """msgspec lets no record inherit fields of two others; so a record that inherits settings and
    something else is made with their fields as its own, and is no instance of the settings."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any
    ) -> Any:
        others = tuple(base for base in bases if len(bases) == 1 or not issubclass(base, Settings))
        if others != bases:
            (kind,) = {*bases}.difference(others)
            is_bounded = all(getattr(other, "bounded", True) for other in others)
            hints = dict(namespace["__annotations__"])
            names = list(hints)
            place = names.index("HERE") if "HERE" in names else len(names)
            names[place:place] = kind.__struct_fields__  # type: ignore[attr-defined]
            hints |= get_type_hints(kind, include_extras=is_bounded)
            namespace |= {each.name: each.default for each in fields(kind) if not each.required}
            namespace |= namespace.get("USUAL", {})
            names.sort(key=lambda name: not _is_needed(namespace.get(name, NODEFAULT)))
            namespace["__annotations__"] = {name: hints[name] for name in names}
        return super().__new__(cls, name, others, namespace, **config)


def _is_needed(value: Any) -> bool:
    """Whether a field to which this is assigned has no default."""
    given = getattr(value, "default", value), getattr(value, "default_factory", NODEFAULT)
    return all(each is NODEFAULT for each in given)


class Settings(Struct, metaclass=_Inheriting, frozen=True, kw_only=True):
    """``HERE: ClassVar[None]`` in a record is the place of the settings that it inherits; by
    default they are its last fields.  Fields without a default come first in any case; ``USUAL``
    of the record has defaults for settings without one."""


class SourceSettings(Settings, frozen=True, kw_only=True):
    """What a source says of itself, and can say otherwise later."""

    location: Annotated[
        Degrees | None, Meta(description="[latitude, longitude]", extra={"column": True})
    ]
    rate: Annotated[
        float,
        Meta(
            ge=0,
            le=1e15,
            description="messages a second that it expects",
            extra={"metavar": "R", "help": "messages a second"},
        ),
    ]
    size: Annotated[
        int,
        Meta(
            ge=0,
            le=10**15,
            description="bytes of a message",
            extra={"metavar": "BYTES", "help": "of a message, on average"},
        ),
    ]


USUAL_SOURCE = SourceSettings(location=None, rate=1.0, size=1024)


class SourceTold(SourceSettings, frozen=True, kw_only=True):
    """And the schema of its messages."""

    schema_name: Name
    schema_kind: Name


class ProfileSettings(Settings, frozen=True, kw_only=True):
    """What the user says of a profile beside its text."""

    near: Annotated[
        bool,
        Meta(
            description="it insists on a host broker near its location, whatever plan there is",
            extra={
                "help": "host it near --location, even where a plan (onyx plan) would have it "
                "elsewhere"
            },
        ),
    ] = False


def settings_of(record: object, kind: type[Struct]) -> dict[str, Any]:
    """The fields of ``kind`` that a record has and that are not left out, by name."""
    found = {}
    for name in kind.__struct_fields__:  # PERF: for each profile that is listed
        if (value := getattr(record, name, UNSET)) is not UNSET:
            found[name] = value
    return found


def may_be_unset(kind: type[Settings], base: type[Struct], **namespace: Any) -> Any:
    """A record with these settings, each of which may be left out."""
    hints = get_type_hints(kind, include_extras=True)
    return msgspec.defstruct(
        kind.__name__,
        [(name, hints[name] | UnsetType, UNSET) for name in kind.__struct_fields__],
        bases=(base,),
        namespace=namespace,
        frozen=True,
        kw_only=True,
    )
