"""Ids: what sources and profiles are called; nobody can guess one, and none is given twice.

::

    p17-k3v9q2mx     kind, number in order of registration, and what follows of both by a secret

The secret is the store's.  So a service that begins anew, with an empty store, begins with number 1
again and yet gives other ids; and what is stored of a run of them is two numbers.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable, Mapping
from hashlib import blake2s

from overlay.link.durable import StoredMap, StoredValue
from overlay.link.row_log import RowLog
from overlay.link.tables import Row, Table

SUFFIX_BYTES = 5  # 40 bits, 8 characters


class _LastRow(Row, frozen=True):
    """Of the numbers of one kind."""

    last: int


class _SecretRow(Row, frozen=True):
    """``since``: the numbers of each kind that were given before there was a secret."""

    secret: bytes
    since: Mapping[str, int]


NUMBERS = Table("number", _LastRow)
SECRETS = Table("id-secret", _SecretRow)


class Ids:
    """Those of one registration service; durable."""

    def __init__(self, rows: RowLog, new_secret: Callable[[], bytes]) -> None:
        """``new_secret``: random bytes, at most 32, asked for once in the life of a store; none:
        ids are numbers alone, which can be guessed."""
        self._new_secret = new_secret
        self._secret: StoredValue[_SecretRow | None] = StoredValue(rows, SECRETS, None, "own")
        self._numbers = StoredMap(rows, NUMBERS)

    def go_on_behind(self, numbers: Mapping[str, int]) -> None:
        """Of each kind some numbers were given out, of which this store does not know."""
        for kind, number in numbers.items():
            if number > self._last(kind):
                self._numbers[kind] = _LastRow(number)

    def new(self, kind: str) -> str:
        """A fresh id of a kind, "s" or "p"."""
        return self.name(kind, self.new_numbers(kind, 1))

    def new_numbers(self, kind: str, count: int) -> int:
        """The first of so many fresh ones in a row."""
        if self._secret.now is None:
            since = {each: self._last(each) for each in "sp"}
            self._secret.put(_SecretRow(self._new_secret(), since))
        last = self._last(kind)
        self._numbers[kind] = _LastRow(last + count)
        return last + 1

    def _last(self, kind: str) -> int:
        return self._numbers[kind].last if kind in self._numbers else 0

    def name(self, kind: str, number: int) -> str:
        """The id with a number that was given out."""
        plain = f"{kind}{number}"
        secret = self._secret.now
        if secret is None or not secret.secret or number <= secret.since.get(kind, 0):
            return plain
        digest = blake2s(plain.encode(), digest_size=SUFFIX_BYTES, key=secret.secret).digest()
        return f"{plain}-{b32encode(digest).decode().lower()}"


def number_of(name: str) -> int:
    """The number in an id."""
    return int(name[1:].partition("-")[0])
