"""The values of publishing and taking results; the others are in overlay/answers.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from formats.errors import Fault
from formats.media_types import XML
from onyx.errors import RequestFailed

Publication = (
    bytes
    | tuple[bytes, str]
    | tuple[bytes, str, str]
    | tuple[bytes, str, str, Mapping[str, str] | None]
)
"""A message: the text of an XML document, or what it is with its media type, its publish key, and
its headers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a published message: ``number`` counts the messages of its source from 1.

    When it was refused nobody gets any of it, and ``code`` (for machines), ``reason`` (for
    people), ``line`` and ``column`` (from 1; 0: not known) say why and where.  ``is_known``: it was
    accepted before with the same publish key, as message ``number``.
    """

    number: int
    accepted: bool
    code: str = ""
    reason: str = ""
    line: int = 0
    column: int = 0
    is_known: bool = False

    @classmethod
    def refused(cls, fault: Fault) -> Self:
        """Of one that no frame can carry."""
        return cls(0, False, fault.code, fault.reason, fault.line, fault.column)

    @property
    def fault(self) -> Fault:
        return Fault(self.code, self.reason, line=self.line, column=self.column)

    def check(self) -> Self:
        """Itself; RequestFailed where the message was refused."""
        if not self.accepted:
            raise RequestFailed(self.code, self.reason, self.fault)
        return self


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one message gave for one profile: one text each in ``results``, in the order of the
    message; ``source`` and ``number`` name the message.  ``media_type`` of the results: XML, or
    what a graph profile asks for, as application/sparql-results+json.  ``position`` counts the
    deliveries of the profile, for ``User.results(…, positions=…)``.

    ``is_over_limit``: the message was not evaluated to the end, or its results are larger than a
    message may be, so that only the first are here, or none; ``limit`` says which limit of the host
    broker that was, in a sentence with its code, and how many results more there are.
    """

    profile: str
    source: str
    number: int
    results: list[bytes]
    limit: str = ""
    media_type: str = XML
    position: int = 0

    @property
    def is_over_limit(self) -> bool:
        return not self.results or bool(self.limit)


class Page(NamedTuple):
    """``deliveries`` of a profile that wait, all that there are through the position ``through``;
    ``lost``: how many up to it were thrown away."""

    deliveries: list[Delivery]
    through: int
    lost: int
