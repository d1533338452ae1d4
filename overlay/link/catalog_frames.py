"""Frames of the catalog flow: what data sources there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overlay.link.errors import ProtocolError
from overlay.link.frame import CatalogFrame, on_the_wire
from overlay.link.frame_fields import Bound, GivenDictionaries, Name

VALIDATIONS = frozenset({"off", "report", "reject"})


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceAnnounced(CatalogFrame):
    """A data source exists; ``payload`` is its schema, ``validation`` what is done about messages
    against it ("off", "report", "reject"), ``compression`` the compression dictionaries that were
    given with it (form, dictionary), ``rate`` messages a second, ``size`` bytes a message as the
    source expects them, ``location`` wherever places are coordinates."""

    type: ClassVar[str] = "source-announced"

    source: Name
    name: Name
    root: Name
    location: Annotated[list[float], Bound(8)] | None
    rate: float
    size: int
    schema_name: Name
    schema_kind: Name
    validation: Name
    compression: GivenDictionaries
    payload: bytes = b""

    def check(self) -> None:
        if self.validation not in VALIDATIONS:
            raise ProtocolError(
                "bad-field",
                f"validation {self.validation!r}; expected one of {sorted(VALIDATIONS)}",
            )


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceReady(CatalogFrame):
    """The whole tree knows ``source``; it may publish."""

    type: ClassVar[str] = "source-ready"

    source: Name
