"""The terms of a message's graph as values: what a solution binds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from yfilter.graph.query_ast import Iri, LiteralTerm


@dataclass(frozen=True, slots=True)
class BlankNode:
    """``label`` means nothing outside one message, or one constructed graph."""

    label: str


GroundTerm: TypeAlias = Iri | BlankNode | LiteralTerm
