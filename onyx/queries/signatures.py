"""Signed query plans and tickets, by which cycle providers know for whom they work (seed 001, 2.4).

A query plan goes to its cycle providers as one text that the user's certificate has signed.  It is
good for five minutes, and once: a provider takes no plan a second time, and none that was signed
before its process began.  A ticket asks for the rows of a fragment, and is signed by who receives
them.  Without a signature a plan is of nobody, ``anonymous``.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from secrets import token_hex
from time import time
from typing import TypeVar

import msgspec

from onyx.errors import NotAuthenticated
from onyx.identity.signing import Signature, SignatureCheck, Signer
from onyx.queries.secrets import SealedSecret
from overlay.link.principal import Principal
from registration.queries.providers import CycleProvider
from registration.queries.query_plan import Fragment
from registration.queries.refusals import QueryRefused

GOOD_SECONDS = 300.0
SKEW_SECONDS = 30.0
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Order:
    """A query plan on its way to its cycle providers.

    ``asker``: URI of the asking cycle provider.  ``user``: a name, which counts where nothing is
    signed.  ``certified``: functions with a good validation report alone.  ``id``: 32 characters
    that nobody guesses; ``issued``: seconds of the epoch.  ``secrets``: each for its cycle provider
    alone."""

    fragments: tuple[Fragment, ...]
    asker: str
    user: str = ""
    certified: bool = False
    id: str = field(default_factory=lambda: token_hex(16))
    issued: float = field(default_factory=time)
    secrets: tuple[SealedSecret, ...] = ()

    def receiver(self, number: int) -> CycleProvider | None:
        """Where the rows of a fragment go; None: they are the result."""
        for fragment in self.fragments:
            if any(each.fragment == number for each in fragment.receives):
                return fragment.site
        return None


class _Sealed(msgspec.Struct, frozen=True):
    text: bytes
    signature: Signature | None


# Made once: msgspec ends the process where two threads ask it for a decoder of one dataclass first.
_SEALED = msgspec.json.Decoder(_Sealed)
_ORDER = msgspec.json.Decoder(Order)
_ADDRESSED = msgspec.json.Decoder(tuple[str, float])

# What is signed begins with what it is.
_PLAN, _TICKET, _QUESTION = b"onyx query plan\n", b"onyx ticket\n", b"onyx queries\n"


def seal(order: Order, signer: Signer | None) -> bytes:
    """The text of a query plan with its signature; ``signer`` None: of nobody."""
    return _seal(_PLAN, order, signer)


def ticket(query: str, number: int, signer: Signer | None) -> bytes:
    """For the rows of a fragment of a query."""
    return _seal(_TICKET, (query, number), signer)


def question(site: str, signer: Signer | None) -> bytes:
    """To a cycle provider, by its URI: which queries are at work there; good for five minutes."""
    return _seal(_QUESTION, (site, time()), signer)


def _seal(kind: bytes, said: object, signer: Signer | None) -> bytes:
    text = msgspec.json.encode(said)
    return msgspec.json.encode(_Sealed(text, None if signer is None else signer.sign(kind + text)))


class Gate:
    """Which query plans and tickets one cycle provider takes."""

    def __init__(self, check: SignatureCheck | None) -> None:
        """``check`` None: without TLS and signatures, for this machine alone."""
        self._check = check
        self._begun = time()
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}

    def order(self, sealed: bytes) -> tuple[Order, Principal | None]:
        """A query plan and whose it is.  QueryRefused ``bad-signature``."""
        found = _decoded(sealed, _SEALED)
        order = _decoded(found.text, _ORDER)
        principal = self._signed(_PLAN, found)
        now = _good("query plan", order.issued)
        if order.issued < self._begun:
            raise _bad("the query plan was signed before this cycle provider began")
        with self._lock:
            ended = now - GOOD_SECONDS - SKEW_SECONDS
            self._seen = {each: at for each, at in self._seen.items() if at > ended}
            if order.id in self._seen:
                raise _bad("the query plan was sent a second time")
            self._seen[order.id] = order.issued
        return order, principal

    def ticket(self, sealed: bytes) -> tuple[str, int, Principal | None]:
        """Query, fragment, and who wants its rows.  QueryRefused ``bad-signature``."""
        found = _decoded(sealed, _SEALED)
        query, number = _decoded(found.text, _ADDRESSED)
        return query, int(number), self._signed(_TICKET, found)

    def question(self, sealed: bytes, site: str) -> Principal | None:
        """The principal that asks the cycle provider of this URI.  QueryRefused
        ``bad-signature``."""
        found = _decoded(sealed, _SEALED)
        to, issued = _decoded(found.text, _ADDRESSED)
        _good("question", issued)
        if to != site:
            raise _bad(f"the question is to {to}")
        return self._signed(_QUESTION, found)

    def _signed(self, kind: bytes, found: _Sealed) -> Principal | None:
        if self._check is None or found.signature is None:
            return None
        try:
            return self._check.principal(kind + found.text, found.signature)
        except NotAuthenticated as error:
            raise _bad(error.reason) from None


def _good(kind: str, issued: float) -> float:
    """The time; QueryRefused where a text was signed too long before it, or is of the future."""
    now = time()
    if not now - GOOD_SECONDS <= issued <= now + SKEW_SECONDS:
        raise _bad(f"the {kind} was signed {now - issued:,.0f} s ago, 300 are allowed")
    return now


def _decoded(text: bytes, decoder: msgspec.json.Decoder[R]) -> R:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _bad(f"no query plan: {error}") from None


def _bad(reason: str) -> QueryRefused:
    return QueryRefused("bad-signature", reason)
