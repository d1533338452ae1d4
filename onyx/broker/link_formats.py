"""LinkFormats: how a message is written on each link, in this direction (section 4.3.2).

The topology says what a link speaks; a message is in that format unless its source or the
neighbour lacks what it takes::

    the link's format ── no words of a schema ──────────> binary in place of dictionary
                      ── the neighbour lost its disk ───> the same, without any dictionary
                      ── not in the neighbour's hello ──> binary, not compressed
"""

from __future__ import annotations

from collections import Counter

from formats import WireFormat
from onyx.broker.codebook import Codebook, takes_words
from onyx.broker.control_plane import ControlPlane
from onyx.broker.give_backs import GiveBacks
from onyx.broker.parcel import Packing
from overlay.link.link_layer import LinkLayer


class LinkFormats:
    """The format for each child link and source."""

    def __init__(
        self, control: ControlPlane, links: LinkLayer, codebook: Codebook, give_backs: GiveBacks
    ) -> None:
        self._control = control
        self._links = links
        self._codebook = codebook
        self._give_backs = give_backs
        self._counters: Counter[str] = Counter()

    def packing_for(self, child: str, source: str) -> Packing:
        """A child that is away has not said what it reads; it gets the link's format, and would
        give back what it could not read."""
        link = self._control.topology.link(self._control.identity, child)
        wanted = link.format
        trained = not self._give_backs.lacks(child, source)
        if takes_words(wanted) and not (trained and self._codebook.has_words(source)):
            wanted = wanted.without_dictionary
        listed = self._links.peer_formats(f"broker/{child}")
        if listed and wanted.value not in listed:
            self._counters["unlisted_format"] += 1
            return Packing(WireFormat.BINARY)
        return Packing(wanted, link.level, trained)

    def statistics(self) -> dict[str, object]:
        return dict(self._counters)
