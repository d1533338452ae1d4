"""HousedSource and HousedUser: what ``onyx.blocking`` and ``onyx.aio`` have in common, clients that
live in a thread (client_thread.py)."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Generic, Self, TypeVar

from onyx import clients, data_source
from onyx.client_thread import ClientThread
from onyx.client_values import Outcome
from onyx.positions import PositionOf, Positions
from onyx.publisher_journal import JOURNAL_BYTES_MAX
from onyx.registration_client import Where
from onyx.results import Results
from overlay.answers import SourceInfo

_Results = TypeVar("_Results")
_Client = TypeVar("_Client", bound=data_source.DataSource | clients.User)


class Housed(Generic[_Client]):
    """A client, and the thread that it lives in for the length of a block."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._thread = ClientThread(client)


class HousedSource(Housed[data_source.DataSource]):
    """The arguments and what is known are those of ``onyx.DataSource``."""

    def __init__(
        self,
        registration: Where,
        source_id: str,
        *,
        journal: Path | str | None = None,
        journal_bytes_max: int = JOURNAL_BYTES_MAX,
    ) -> None:
        super().__init__(
            data_source.DataSource(
                registration, source_id, journal=journal, journal_bytes_max=journal_bytes_max
            )
        )

    @classmethod
    def of(cls, source: data_source.DataSource) -> Self:
        """The same source, housed."""
        made = cls.__new__(cls)
        Housed.__init__(made, source)
        return made

    @property
    def accepted_through(self) -> int:
        """As ``onyx.DataSource.accepted_through``."""
        return self._client.accepted_through

    @property
    def journalled(self) -> int:
        """As ``onyx.DataSource.journalled``."""
        return self._client.journalled

    @property
    def resumed(self) -> list[tuple[str, Outcome]]:
        """As ``onyx.DataSource.resumed``."""
        return self._client.resumed

    @property
    def id(self) -> str:
        return self._client.id

    @property
    def info(self) -> SourceInfo:
        return self._client.info

    @property
    def root(self) -> str:
        return self._client.root

    @property
    def address(self) -> str:
        return self._client.address


class HousedUser(Housed[clients.User], Generic[_Results]):
    """The arguments are those of ``onyx.User``."""

    def __init__(self, registration: Where, name: str = "") -> None:
        self.name = name
        super().__init__(clients.User(registration, name))

    def results(
        self,
        *profile_ids: str,
        share: bool = False,
        ephemeral: bool = False,
        positions: Positions | PositionOf | None = None,
    ) -> _Results:
        """As ``onyx.User.results``: each is acknowledged when the next is asked for.  ``positions``
        are saved in the client's thread."""
        return self._housed(
            self._client.results(
                *profile_ids, share=share, ephemeral=ephemeral, positions=positions
            )
        )

    @abstractmethod
    def _housed(self, results: Results) -> _Results:
        """The same, for whoever waits in another way."""
