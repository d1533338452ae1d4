"""Vitals: how a process is, as its shell measures it and its core says; they outlive the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overlay.link.credentials import Credentials
from overlay.link.histogram import Histogram
from overlay.link.row_store import NodeStore
from overlay.link.turns import Turns
from overlay.nodes import Address
from overlay.topology import Topology


class NotReady(Exception):
    """There is no core yet."""


def _unheard(file: Topology) -> tuple[list[str], list[str]]:
    """Before there is a core."""
    raise NotReady


class Vitals:
    """``turns`` in processor time; ``commits``, and ``answers``, which are from the moment that
    events were taken up until what they told others left, and ``hops``, until messages left ahead
    of that, in time that passed.  ``statistics``: of
    the core that is there now.  ``hindrance``: why the process is not ready yet; "" when it is;
    ``take_file``: tells the core what its file says by now, and what of it is taken and what takes
    a new start (NotReady); ``tell_process`` and ``tell_life`` hear of settings that are in force;
    ``about``: what else it says of itself; ``admin``: where whoever asks is told all
    that, None: nowhere."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.commits = Histogram()
        self.answers = Histogram()
        self.hops = Histogram()
        self.statistics: Callable[[], Mapping[str, object]] = dict
        self.take_file: Callable[[Topology], tuple[list[str], list[str]]] = _unheard
        self.tell_process: Callable[[Topology], None] = lambda topology: None
        self.tell_life: Callable[[Topology], None] = lambda topology: None
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
