"""Known networks: where the clients of an account find their credentials, by an address alone.

Who starts a network notes for each address of its processes where the operator's credentials are,
in a folder of the account's own (``onyx/networks`` in ``$XDG_STATE_HOME``, else in
``~/.local/state``)::

    networks/127.0.0.1:7200      "/home/ann/.local/state/onyx/figure4/identity/operator.pem"
    networks/127.0.0.1:7300      "" : that network runs --insecure

A note is a hint: whoever answers at an address must have a certificate of the authority that stands
in the file, so a note of a network that is gone does no harm to the next one there, or by it.  Who
has no note says ONYX_CREDENTIALS=FILE.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from urllib.parse import quote

from onyx.data_directory import write_atomically
from onyx.errors import NotAuthenticated
from overlay.link.credentials import Credentials, CredentialsError
from overlay.nodes import Address
from overlay.state_directory import KNOWN_NETWORKS, state_directory

VARIABLE = "ONYX_CREDENTIALS"
INSECURE = "insecure"
"""Said in place of a file: a network without TLS, on this machine."""
ASKS_NOBODY = "this network runs --insecure: it asks nobody who they are"
WILDCARDS = ("0.0.0.0", "::")

_used: ContextVar[Path | Credentials | None] = ContextVar("credentials", default=None)

HELP = f"""\
Who runs the network says onyx cert issue user/NAME --out FILE; then say
{VARIABLE}=FILE. Whoever started the network needs no such file."""


def folder() -> Path:
    """Of the account; RuntimeError when it has no home."""
    return state_directory() / KNOWN_NETWORKS


def note(addresses: Iterable[Address], credentials: Path | None) -> None:
    """Where the credentials for these addresses are; None: they are without TLS.

    UnwritableOutput, OSError or RuntimeError when the account has no place for that.
    """
    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in _file_names(addresses):
        text = "" if credentials is None else str(credentials)
        write_atomically(place / name, text.encode(), mode=0o600)


def forget(addresses: Iterable[Address], credentials: Path | None) -> None:
    """The notes of a network that has stopped, as far as they are still its own."""
    for name in _file_names(addresses):
        with suppress(OSError, RuntimeError):
            path = folder() / name
            if _read(path) == ("" if credentials is None else str(credentials)):
                path.unlink(missing_ok=True)


@contextmanager
def use_credentials(shown: Path | Credentials | None) -> Iterator[None]:
    """Whoever connects in this block, or in a task that is started in it, shows these credentials,
    or those in a file; None: as ever."""
    token = _used.set(shown)
    try:
        yield
    finally:
        _used.reset(token)


def credentials_for(host: str, port: int) -> Credentials | None:
    """Those that are used, that the environment names, or that are noted for an address; None where
    it is without TLS.

    NotAuthenticated when there are none, or none that can be used.
    """
    used = _used.get()
    if isinstance(used, Credentials):
        return used
    path = str(used or os.environ.get(VARIABLE, "")) or _noted(host, port)
    where = Address(host, port)
    if path is None:
        raise NotAuthenticated(f"no credentials are known for {where}.\n{HELP}")
    if path in ("", INSECURE):
        if not is_loopback(host):
            raise NotAuthenticated(f"{where} is not on this machine: without TLS it may be anybody")
        return None
    try:
        return _loaded(Path(path))
    except CredentialsError as error:
        raise NotAuthenticated(f"{error}.\n{HELP}") from None


def identity_of(host: str, port: int) -> Path | None:
    """The folder of the authority whose network an account has started at an address, if it has."""
    path = _noted(host, port)
    return Path(path).parent if path else None


@cache
def _loaded(path: Path) -> Credentials:
    """They read their file again when it has changed."""
    return Credentials(path)


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return all(ipaddress.ip_address(ip).is_loopback for ip in _resolved(host))
    except OSError:
        return False


def _noted(host: str, port: int) -> str | None:
    """What is noted for an address, by the name that was said or by what it stands for."""
    with suppress(OSError, RuntimeError):
        return _read(folder() / _file_name(Address(host, port)))
    with suppress(OSError):
        for name in (*_resolved(host), *WILDCARDS):
            with suppress(OSError, RuntimeError):
                return _read(folder() / _file_name(Address(name, port)))
    return None


def _resolved(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(where[0]).partition("%")[0] for *_, where in found]


def _file_name(address: Address) -> str:
    return quote(str(address), safe="[]:")


def _file_names(addresses: Iterable[Address]) -> set[str]:
    """By the names that were given, and by what they stand for."""
    found = set()
    for host, port in addresses:
        names = [host]
        with suppress(OSError):
            names += _resolved(host)
        found |= {_file_name(Address(name, port)) for name in names}
    return found


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
