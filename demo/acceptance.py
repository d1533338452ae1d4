"""Acceptance: should a broker have taken this message?

What is XML is for lxml to say, and what is a graph for pyoxigraph.  A broker may refuse what is one
only where a named policy says so: it reads nothing outside the message, and every message has
bounds.  It may never accept what is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from demo.graph_oracle import graph_refusal, is_graph_type
from demo.independent_parse import parse
from formats.media_types import XML

# Code of a refusal -> the policy behind it; a message that is XML may be refused for these alone.
POLICIES = {
    "external-entity": "nothing outside the message is ever read",
    "parameter-entity": "parameter entities are not read in messages",
    "undefined-entity": "an entity that only an external DTD could declare is not read",
    "unknown-encoding": "an encoding that is not read",
    "too-large": "bytes of a message are bounded",
    "too-long": "bytes of a frame are bounded",
    "too-deep": "depth of a message is bounded",
    "too-many-elements": "elements of a message are bounded",
    "too-many-attributes": "attributes are bounded",
    "too-many-names": "distinct names are bounded",
    "namespace-too-long": "namespace names are bounded",
    "too-many-entities": "entity declarations are bounded",
    "entity-expansion": "expansion of entities is bounded",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a broker said about a message that it did not take; 0: the place is not known."""

    code: str
    reason: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.reason} [{self.code}]"


def independent_refusal(data: bytes, media_type: str = XML) -> str | None:
    """Why lxml refuses a message, or None when it is well-formed (namespaces included); the same of
    a graph, which pyoxigraph reads."""
    if is_graph_type(media_type):
        return graph_refusal(data, media_type)
    try:
        parse(data)
    except (etree.XMLSyntaxError, ValueError) as error:
        return str(error)
    return None


def disagreement(independent: str | None, refusal: Refusal | None) -> str | None:
    """What is wrong with a broker's decision, or None.

    ``independent`` is what lxml, or pyoxigraph, has against the message, ``refusal`` what the
    broker had.
    """
    if refusal is None:
        return None if independent is None else f"accepted, but the oracle says: {independent}"
    if independent is None and refusal.code not in POLICIES:
        return f"refused ({refusal}), but the oracle takes it and no policy names {refusal.code!r}"
    if not refusal.line and refusal.code == "malformed":
        return f"refused without a place: {refusal}"
    return None
