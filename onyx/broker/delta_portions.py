"""Deltas in pieces that fit into a frame, and the keys under which what they say is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

# A delta is sent in frames of about so much.
PORTION_BYTES = 256 * 1024
PORTION_TEXTS = 1024


def portions(added: Iterable[str], removed: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """(added, removed) of each frame; additions first, so that nothing is ever missing."""
    for portion in _in_portions(added):
        yield portion, []
    for portion in _in_portions(removed):
        yield [], portion


def row_key(branch: str, link: str, text: str) -> str:
    """Of what a link says about one of its branches; of what this broker says, with link ""."""
    digest = sha256(text.encode()).hexdigest()[:32]
    return f"{branch}|{link}|{digest}"


def _in_portions(texts: Iterable[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    size = 0
    for text in texts:
        portion.append(text)
        size += len(text.encode())
        if size >= PORTION_BYTES or len(portion) >= PORTION_TEXTS:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
