"""StartProgress: how far a process has come with what its store has, and how that is said."""

from __future__ import annotations

from overlay.link.stored_rows import INTERESTS, PROFILES, READ, ROWS

_SAID = {
    READ: "{done} rows of its store are read",
    ROWS: "{done} of {total} rows are restored",
    PROFILES: "{done} of {total} profiles are installed",
    INTERESTS: "{done} of {total} interests are in its routing table",
}


class StartProgress:
    """``reached`` by what: (done, of how many)."""

    def __init__(self) -> None:
        self.reached: dict[str, tuple[int, int]] = {}

    def note(self, what: str, done: int, total: int) -> None:
        if what in _SAID:  # a process of a later release may say more
            self.reached[what] = done, total
            if what == ROWS:
                self.reached.pop(READ, None)

    def __str__(self) -> str:
        return ", ".join(
            text.format(done=f"{done:,}", total=f"{total:,}")
            for what, text in _SAID.items()
            for done, total in [self.reached.get(what, (0, 0))]
            if what in self.reached
        )
