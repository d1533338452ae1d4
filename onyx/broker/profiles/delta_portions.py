"""Deltas in pieces that fit into a frame, and the keys under which what they say is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from overlay.link.portions import portions


def delta_portions(
    added: Iterable[str], removed: Iterable[str]
) -> Iterator[tuple[list[str], list[str]]]:
    """(added, removed) of each frame; additions first, so that nothing is ever missing."""
    come, go = list(added), list(removed)
    for place in portions(come):
        yield come[place], []
    for place in portions(go):
        yield [], go[place]


def row_key(branch: str, link: str, text: str) -> str:
    """Of what a link says about one of its branches; of what this broker says, with link ""."""
    digest = sha256(text.encode()).hexdigest()[:32]
    return f"{branch}|{link}|{digest}"
