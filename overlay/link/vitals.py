"""Vitals: how a process is, as its shell measures it and its core says; they outlive the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overlay.archive import ArchiveOptions
from overlay.limits import Limits
from overlay.link.credentials import Credentials
from overlay.link.histogram import Histogram
from overlay.link.row_store import NodeStore
from overlay.link.turns import Turns
from overlay.nodes import Address


def _unheard(limits: Limits, options: ArchiveOptions) -> None:
    """Before there is a core, which is made with those of now."""


class Vitals:
    """``turns`` in processor time; ``commits``, and ``answers``, which are from the moment that
    events were taken up until what they told others left, and ``hops``, until messages left ahead
    of that, in time that passed.  ``statistics``: of
    the core that is there now.  ``hindrance``: why the process is not ready yet; "" when it is;
    ``take_settings``: tells it those of its topology that have changed; ``about``: what else it
    says of itself; ``admin``: where whoever asks is told all that, None: nowhere."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.commits = Histogram()
        self.answers = Histogram()
        self.hops = Histogram()
        self.statistics: Callable[[], Mapping[str, object]] = dict
        self.take_settings: Callable[[Limits, ArchiveOptions], None] = _unheard
        self.hindrance = "it starts"
        self.about: Callable[[], Mapping[str, object]] = dict
        self.admin: Address | None = None

    def of_node(
        self, store: NodeStore, credentials: Credentials | None
    ) -> Callable[[], Mapping[str, object]]:
        """What a core that has this store says of its shell."""
        return lambda: {
            **self.about(),
            **self.turns.statistics(),
            "admin": None if self.admin is None else str(self.admin),
            "tls": credentials and credentials.statistics(),
            "store": store.statistics(),
        }
