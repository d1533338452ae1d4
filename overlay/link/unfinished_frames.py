"""UnfinishedFrames: bytes of frames that clients have begun to send, or that have to wait before
they can be handled, bounded for all together."""

from __future__ import annotations

from collections.abc import Iterator


class UnfinishedFrames:
    """By connection; those of other processes of the network are few, and not counted."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self.of: dict[int, int] = {}

    def note(self, connection: int, size: int) -> Iterator[tuple[int, int]]:
        """So much is here of a connection's frames.  The connections that are to be closed, those
        with the most first, and how many bytes each has."""
        self.forget(connection)
        self._bytes += size
        if size:
            self.of[connection] = size
        while self._bytes > self._bytes_max:
            longest = max(self.of, key=lambda other: self.of[other])
            yield longest, self.of[longest]
            self.forget(longest)

    def forget(self, connection: int) -> None:
        """It has none, or is gone."""
        self._bytes -= self.of.pop(connection, 0)
