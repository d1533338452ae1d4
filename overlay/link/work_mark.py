"""WorkMark: what a process is at work on, in memory that outlives it.

A core that raises can be asked at what.  A process that ends without a word, by a fault in compiled
code, for want of memory or by SIGKILL, has left it here: a piece of a file, mapped into memory
(onyx/node_process.py).

::

    state (1 byte) | text, padded with zeros

PERF: a core marks each frame with ``MARK.pack_into``, 0.1 us, beside the 0.5 of the text.
"""

from __future__ import annotations

import mmap
from struct import Struct
from typing import TypeAlias

WorkMark: TypeAlias = "bytearray | mmap.mmap"

TEXT_BYTES = 1023
MARK = Struct(f"B{TEXT_BYTES}s")
IDLE = 0
AT = 1  # this is what is worked on
BEHIND = 2  # it, or something that had come with it


def unshared_mark() -> WorkMark:
    """That nobody looks at afterwards."""
    return bytearray(MARK.size)


def read_mark(data: bytes) -> tuple[int, str]:
    """State and text; of one that is half written what can be read."""
    state, text = MARK.unpack(data)
    return state, text.rstrip(b"\0").decode(errors="ignore")


def cut_text(text: str) -> str:
    """As it is read again."""
    return text.encode()[:TEXT_BYTES].rstrip(b"\0").decode(errors="ignore")
