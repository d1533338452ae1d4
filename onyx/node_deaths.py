"""The deaths of a process that left no exception: at what, and whether that is to blame.

::

    work     what is worked on (overlay/link/work_mark.py) | the same of the death before
    fault    what compiled code did last, if it ended the process (faulthandler)

Blamed is what the main thread was at when it had a fault (SIGSEGV, SIGABRT, ...), and what two
deaths in a row were at, by whatever (SIGKILL): one may be an operator's, or the kernel's that has
chosen this process, and everything has to be some frame's bad luck.  Where it is not certain which
of some frames it was, the next life handles one at a time.  Deaths of an idle process, and those of
the whole machine, are of no account: what is mapped need not have reached the disk.
"""

from __future__ import annotations

import faulthandler
import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onyx.errors import UnwritableOutput
from overlay.link.work_mark import AT, IDLE, MARK, WorkMark, read_mark

_PAGE = 2 * MARK.size


class ProcessDied(Exception):
    """How."""


@dataclass(frozen=True, slots=True)
class Death:
    """``at`` which input; ``blame``: how it died of that, "" where that is not known; ``is_vague``:
    it may have been another that had come with it."""

    at: str
    blame: str
    is_vague: bool


@contextmanager
def watched_deaths(directory: Path) -> Iterator[tuple[WorkMark, Death | None]]:
    """The mark of this process while it lives, and how the one before it in this directory died;
    None: of nothing that it was at.  UnwritableOutput."""
    try:
        with (
            (directory / "work").open("a+b") as work,
            (directory / "fault").open("a+") as fault,
        ):
            work.truncate(_PAGE)
            with mmap.mmap(work.fileno(), _PAGE) as memory:
                fault.seek(0)
                death = _take_death(memory, fault.read())
                fault.truncate(0)
                is_ours = not faulthandler.is_enabled()
                if is_ours:
                    fault.write(f"{_thread()}\n")
                    fault.flush()
                    faulthandler.enable(fault)
                try:
                    yield memory, death
                finally:  # in order, so that it leaves nothing
                    if is_ours:
                        faulthandler.disable()
                    (directory / "work").unlink(missing_ok=True)
                    (directory / "fault").unlink(missing_ok=True)
    except OSError as error:
        raise UnwritableOutput(f"{directory}: cannot be written: {error.strerror}") from None


def _take_death(memory: mmap.mmap, fault: str) -> Death | None:
    """What the mark says, which becomes that of the death before."""
    state, at = read_mark(memory[: MARK.size])
    _, before = read_mark(memory[MARK.size : _PAGE])
    memory[:_PAGE] = bytes(_PAGE)
    if state == IDLE:
        return None
    blame = ""
    if state == AT:
        thread, _, told = fault.partition("\n")
        if f"Current thread {thread} " in told:
            blame = told
        elif at == before:
            blame = "the process died at it twice in a row, without a word"
    if not blame:
        MARK.pack_into(memory, MARK.size, state, at.encode())
    return Death(at, blame, is_vague=not blame and (state != AT or bool(before)))


def _thread() -> str:
    """This one, as faulthandler says it."""
    return f"{threading.get_ident():#018x}"
