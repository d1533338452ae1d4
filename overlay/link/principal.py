"""Principal: who is at the other end of a connection, as their certificate says.

::

    onyx://figure4/broker/B1         broker, registration   a process of the network
    onyx://figure4/user/ann          user, source           who uses it
    onyx://figure4/provider/A        provider               a cycle provider of queries
    onyx://figure4/operator/root     operator               who runs it

A hello says who a peer is; the principal of its connection decides whether that may be said::

    principal        hello
    broker/B1        broker/B1, client/(anything)
    registration/R1  registration/R1, client/(anything)
    user/ann         client/(anything), subscriber/(anything)@ann, source/(anything)
    source/s1        client/(anything), source/(anything)
    provider/A       client/(anything)
    operator/root    client, subscriber or source/(anything)
    nobody           none

Which sources they may be the table of access decides (overlay/access.py), which brokers have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from types import MappingProxyType
from urllib.parse import quote, unquote, urlsplit

from overlay.link.validity import Certificate

PROCESS_ROLES = frozenset({"broker", "registration"})
SERVER_ROLES = PROCESS_ROLES | {"provider"}
"""They are connected to by others, so their certificates are of servers as well."""
SCHEME = "onyx"
NAME_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Principal:
    """``role`` is a key of ``MAY_SAY``, ``name`` printable text without "|" and "/".

    ValueError for another.  Where a connection has none (None) the node runs without TLS.
    ``token``: the id of the network's token that has been shown for it, "" for anything else;
    ``until``: the second of the calendar at which a token ends.  Of nobody: ``why``, what has been
    shown instead of a certificate or token that is good, and the ``code`` of the refusal.
    ``certificate``: the one that was shown, None for a token.
    """

    role: str
    name: str
    token: str = field(default="", compare=False)
    until: float = field(default=inf, compare=False)
    why: str = field(default="no certificate", compare=False)
    code: str = field(default="not-authenticated", compare=False)
    certificate: Certificate | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.role not in MAY_SAY:
            raise ValueError(f"role {self.role!r}; expected one of {sorted(MAY_SAY)}")
        if not is_name(self.name):
            raise ValueError(
                f"name {self.name!r}; expected 1 to {NAME_CHARACTERS_MAX} printable characters "
                "without '|' and '/'"
            )

    def __str__(self) -> str:
        return f"{self.role}/{self.name}"

    @property
    def is_process(self) -> bool:
        """Of the network: a broker, a registration service."""
        return self.role in PROCESS_ROLES

    def may_say(self, role: str, peer: str) -> bool:
        """Whether a hello of this role and id is true of whoever this is."""
        rule = MAY_SAY[self.role].get(role)
        return rule is not None and rule(self.name, peer)

    def id_for(self, role: str, run: str) -> str:
        """What to call itself in a hello of a role; ``run`` is new for each process."""
        return f"{run}@{self.name}" if (self.role, role) == ("user", "subscriber") else run

    def uri(self, network: str) -> str:
        """As it stands in a certificate of the network."""
        return f"{SCHEME}://{quote(network, safe='')}/{self.role}/{quote(self.name, safe='')}"

    def host_name(self, network: str) -> str:
        """The name of a host in a certificate, for peers that check one, as gRPC does; names are
        digests where they are no labels of DNS, which knows no capitals."""
        return f"{_label(self.name)}.{self.role}.{_label(network)}.onyx"

    @staticmethod
    def parse(text: str) -> Principal:
        """ "user/ann"; ValueError."""
        role, slash, name = text.partition("/")
        if not slash:
            raise ValueError(f"{text!r} is no principal; expected ROLE/NAME, as user/ann")
        return Principal(role, name)

    @staticmethod
    def of_uri(uri: str, network: str) -> Principal:
        """ValueError for a URI that is none of a principal, or of another network."""
        parts = urlsplit(uri)
        path = parts.path.split("/")
        if parts.scheme != SCHEME or len(path) != 3 or parts.query or parts.fragment:
            raise ValueError(f"{uri!r}; expected {SCHEME}://NETWORK/ROLE/NAME")
        if unquote(parts.netloc) != network:
            raise ValueError(f"{uri!r} is of another network; expected {network!r}")
        return Principal(path[1], unquote(path[2]))


def is_name(text: str) -> bool:
    """Whether a principal can be called so."""
    return 0 < len(text) <= NAME_CHARACTERS_MAX and not any(
        c in "|/" or not c.isprintable() for c in text
    )


def _label(name: str) -> str:
    if re.fullmatch("[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", name):
        return name
    return f"x{sha256(name.encode()).hexdigest()[:40]}x"


def _own(name: str, peer: str) -> bool:
    return peer == name


def _own_run(name: str, peer: str) -> bool:
    """One user may take results in several processes: each has a name of its own in front."""
    return peer.partition("@")[2] == name


def _any(name: str, peer: str) -> bool:
    return True


MAY_SAY: Mapping[str, Mapping[str, Callable[[str, str], bool]]] = MappingProxyType(
    {
        "broker": {"broker": _own, "client": _any},
        "registration": {"registration": _own, "client": _any},
        "user": {"client": _any, "subscriber": _own_run, "source": _any},
        "source": {"client": _any, "source": _any},
        "provider": {"client": _any},
        "operator": {"client": _any, "subscriber": _any, "source": _any},
        "nobody": {},
    }
)
"""By role of the principal and role of the hello: whether its id is right."""

NOBODY = Principal("nobody", "nobody")
"""A connection with TLS whose other end has not said who it is."""


def nobody(token: str) -> Principal:
    """The holder of a token, where none are given out."""
    return NOBODY
