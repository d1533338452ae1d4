"""Operation: one thing that can be asked of a gateway's API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

from onyx.gateway.call import Call


@dataclass(frozen=True, slots=True)
class Operation:
    """``query``, ``headers`` and ``body`` say of each name what it means, ``required`` which are of
    the body; ``media_type`` of the body, "" for none; ``answers``: by status, what it means."""

    method: str
    path: str
    summary: str
    answer: Callable[[Call], Awaitable[Response]]
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    media_type: str = ""
    answers: Mapping[int, str] = field(default_factory=dict)
