"""Why a description of a network was refused."""

from __future__ import annotations


class TopologyError(Exception):
    """A topology file that cannot be used; the first problem found in it.

    ``file`` names the file, ``key`` the place in it (``broker[2].listen``, counting from 0; "" for
    the file as a whole), ``reason`` says what is wrong and what was expected.  ``str()`` is one
    line: ``FILE: KEY: reason``.
    """

    def __init__(self, file: str, key: str, reason: str) -> None:
        super().__init__(file, key, reason)
        self.file = file
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.key, self.reason) if part)
