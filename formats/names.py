"""Names of elements and attributes."""

from __future__ import annotations

from typing import NamedTuple

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


class QualifiedName(NamedTuple):
    """A name as it stands in a message: what it means (namespace, local) and how it is written.

    ``namespace`` is "" for a name in no namespace, ``prefix`` "" for a name without a prefix.
    """

    prefix: str
    namespace: str
    local: str

    def __str__(self) -> str:
        return f"{self.prefix}:{self.local}" if self.prefix else self.local
