"""How deep JSON, Turtle and TriG nest, before a reader that calls itself for each level begins."""

from __future__ import annotations

import re
from array import array
from itertools import accumulate

from formats.errors import MessageRefused

# In which brackets are none: each goes on to the end where it is not closed.
JSON_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
TURTLE_TERMS = re.compile(
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+(?:""")?'
    rb"|'''(?:[^'\\]++|\\.|'(?!''))*+(?:''')?"
    rb'|"(?:[^"\\\r\n]++|\\.)*+"?'
    rb"|'(?:[^'\\\r\n]++|\\.)*+'?"
    rb'|<[^<>"{}|^`\\\0- ]*+>|#[^\r\n]*+|\\.',
    re.DOTALL,
)
_BRACKETS = b"[{(]})"
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _BRACKETS)
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\x01\x01\xff\xff\xff")  # as signed numbers


def check_nesting(data: bytes, skipped: re.Pattern[bytes], depth_max: int) -> bytes:
    """Refuse (``too-deep``, with its place) the bracket by which ``data`` nests more than
    ``depth_max`` levels; returns ``data`` without what ``skipped`` matches, in which is none."""
    bare = skipped.sub(b"", data)
    steps = array("b", bare.translate(_STEPS, _NO_BRACKETS))
    if max(accumulate(steps), default=0) > depth_max:
        place = _place_of_depth(skipped.sub(_blank, data), depth_max + 1)
        reason = f"nested more than {depth_max} levels deep"
        raise MessageRefused("too-deep", reason, *place)
    return bare


def _blank(found: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n]", b" ", found[0])


def _place_of_depth(data: bytes, depth: int) -> tuple[int, int]:
    """Line and column of the bracket that first nests so deep."""
    at = -1
    for found in re.finditer(rb"[\[{(\]})]", data):
        depth -= 1 if found[0] in b"[{(" else -1
        if not depth:
            at = found.start()
            break
    return data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at)
