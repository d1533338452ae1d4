"""Accounts of processor time, one a name, which fill up steadily to what may be spent at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

BURST_SECONDS = 10.0  # for so long what may be spent in a second may be saved
ACCOUNTS_MAX = 4096


class Account:
    """``spent`` seconds, as of ``at``."""

    __slots__ = ("at", "spent")

    def __init__(self, at: float) -> None:
        self.at = at
        self.spent = 0.0


A = TypeVar("A", bound=Account)


class Accounts(Generic[A]):
    """By name, the last one that was asked for at the end; ``per_second``: seconds of processor
    time that each gets."""

    def __init__(self, make: Callable[[float], A], per_second: float) -> None:
        self.per_second = per_second
        self.by_name: dict[str, A] = {}
        self._make = make

    @property
    def most(self) -> float:
        return BURST_SECONDS * self.per_second

    def of(self, name: str, now: float) -> A:
        """The account as of now; a new one takes the place of the one asked for longest ago."""
        account = self.by_name.pop(name, None) or self._make(now)
        account.spent, account.at = self._left(account, now), now
        if len(self.by_name) >= ACCOUNTS_MAX:
            del self.by_name[next(iter(self.by_name))]
        self.by_name[name] = account
        return account

    def spent(self, name: str, now: float) -> float:
        """The same without a new account; 0.0 for none."""
        account = self.by_name.get(name)
        return 0.0 if account is None else self._left(account, now)

    def _left(self, account: A, now: float) -> float:
        return max(0.0, account.spent - (now - account.at) * self.per_second)
