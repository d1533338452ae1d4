"""Why a description of a network was refused."""

from __future__ import annotations

from formats.errors import Fault, Refusal


class TopologyError(Refusal, ValueError):
    """A topology file that cannot be used; the first problem found in it.  A record that it is read
    into raises it about a field of its own.

    ``file`` names the file, ``key`` the place in it (``broker[2].listen``, counting from 0; "" for
    the file as a whole), ``reason`` says what is wrong and what was expected.  ``str()`` is one
    line: ``FILE: KEY: reason``.
    """

    kind = "topology-refused"

    def __init__(self, file: str, key: str, reason: str) -> None:
        where = ": ".join(filter(None, (file, key)))
        super().__init__(Fault(reason=reason, where=where))
        self.file, self.key = file, key
