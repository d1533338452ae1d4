"""A network that the options of ``format("onyx")`` name, and the credentials that are shown there.

Options go to the workers, files and secrets do not: the process that connects reads them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

from onyx.blocking import PORTALS, User
from onyx.errors import UserError
from onyx.identity.known_networks import INSECURE, credentials_for, use_credentials
from onyx.registration_client import NetworkClient, addresses_of
from onyx.spark.filtering import SparkMisused
from overlay.link.credentials import Credentials, CredentialsError, TokenCredentials

OPTIONS = ("registration", "credentials", "token")
_OF_SPARK = "checkpointlocation"

log = logging.getLogger(__name__)


def given_of(options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Options by their names in lower case.  SparkMisused for one that is not ``known``."""
    given = {name.lower(): value.strip() for name, value in options.items()}
    if wrong := sorted(given.keys() - {_OF_SPARK, *map(str.lower, known)}):
        raise SparkMisused(f"no option {', '.join(wrong)}; there are {', '.join(known)}")
    return given


def one_of(given: Mapping[str, str], called: str, *values: str) -> str:
    """The value of an option, the first where none is given.  SparkMisused."""
    text = given.get(called.lower(), values[0]).lower()
    if text not in values:
        raise SparkMisused(f"{called}: {text!r}; expected {' or '.join(values)}")
    return text


def fails_on_loss(given: Mapping[str, str]) -> bool:
    return one_of(given, "failOnDataLoss", "true", "false") == "true"


def tell_lost(lost: str, *, fails: bool) -> None:
    """Deliveries or messages cannot be read any more: SparkMisused, or a line of the log."""
    if fails:
        raise SparkMisused(f"{lost}; with failOnDataLoss=false the query goes on behind them")
    log.warning("%s", lost)


@dataclass(frozen=True, slots=True)
class Network:
    """As the options are; SparkMisused says why something was not answered."""

    registration: str
    credentials: str = ""
    token: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Network:
        """Of options by their names in lower case.  SparkMisused."""
        registration, *others = (given.get(name, "").strip() for name in OPTIONS)
        if not registration:
            raise SparkMisused("option registration is missing: HOST:PORT of the network")
        try:
            addresses_of(registration)
        except ValueError as error:
            raise SparkMisused(f"registration: {error}") from None
        return cls(registration, *others)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """In this block connections show the credentials, as they are on this machine."""
        with use_credentials(self._found()):
            yield

    @contextmanager
    def connected(self) -> Iterator[User]:
        """A user of the network."""
        with self.shown(), User(self.registration) as user:
            yield user

    @contextmanager
    def asking(self, address: str) -> Iterator[Callable[[Any], Any]]:
        """A connection to a process of the network, as a function of verbs."""
        try:
            with (
                self.shown(),
                PORTALS as portal,
                portal.wrap_async_context_manager(NetworkClient(address)) as client,
            ):
                yield lambda asked: portal.call(client.ask, asked)
        except UserError as error:
            said = str(error).splitlines()[0]
            raise SparkMisused(
                f"network {self.registration}, asked from {gethostname()}: {said}"
            ) from None

    def _found(self) -> Path | Credentials | None:
        here = f"on {gethostname()}"
        path = Path(self.credentials) if self.credentials else None
        if path is not None and not path.is_file() and self.credentials != INSECURE:
            raise SparkMisused(f"credentials {path}: there is no such file {here}")
        if not self.token:
            return path
        secret = os.environ.get(self.token, "")
        if not secret and not Path(self.token).is_file():  # the text may be a secret by mistake
            raise SparkMisused(f"token: neither an environment variable nor a file {here}")
        secret = secret or Path(self.token).read_text(encoding="utf-8")
        try:
            base = (
                Credentials(path) if path else credentials_for(*addresses_of(self.registration)[0])
            )
        except CredentialsError as error:
            raise SparkMisused(f"credentials: {error}") from None
        if base is None:
            raise SparkMisused(f"token: the network at {self.registration} is without TLS")
        return TokenCredentials(base, secret.strip())
