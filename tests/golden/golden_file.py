"""A golden file: how it is made, and how the committed text is compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from pathlib import Path

FOLDER = Path(__file__).parent
DIFFERENCES_MAX = 60  # lines of them that a test shows


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """``make`` gives the text of the file; ``lacks`` says why it cannot be made here, "" if it can;
    ``agree`` tells whether a committed text says the same as one made here."""

    name: str
    make: Callable[[], str]
    lacks: Callable[[], str] = lambda: ""
    agree: Callable[[str, str], bool] = str.__eq__

    @property
    def path(self) -> Path:
        return FOLDER / self.name

    def committed(self) -> str:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""

    def write(self) -> bool:
        """Whether the file is another than before."""
        made, before = self.make(), self.committed()
        if self.agree(before, made):
            return False
        self.path.write_text(made, encoding="utf-8")
        return True

    def differences(self) -> str:
        """The first lines of a diff from the committed file; "" if there is none."""
        made, before = self.make(), self.committed()
        if self.agree(before, made):
            return ""
        lines = unified_diff(before.splitlines(), made.splitlines(), self.name, "now", lineterm="")
        return "\n".join(islice(lines, DIFFERENCES_MAX))


def as_json(value: object) -> str:
    """Text of which a diff names what has changed: one line for each value."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
