"""Portions: what is too long for one frame, cut into pieces that are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# A frame is to have about so much.
PORTION_BYTES = 256 * 1024
PORTION_TEXTS = 1024


def portions(texts: Sequence[str | None], texts_max: int = PORTION_TEXTS) -> Iterator[slice]:
    """The places of the texts of one frame after the other; None takes no room."""
    start = size = 0
    for place, text in enumerate(texts):
        size += 0 if text is None else len(text.encode())
        if size >= PORTION_BYTES or place - start + 1 >= texts_max:
            yield slice(start, place + 1)
            start, size = place + 1, 0
    if start < len(texts):
        yield slice(start, len(texts))
