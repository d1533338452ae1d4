"""Bypasses: what waits for a broker that is lost, or gone round, goes on to those behind it.

On the trees of before, the next broker above such a one takes its place::

    B1 ─Message─> B2 ✗ ─ ─ ─> B3        B1 keeps on disk what B2 has not acknowledged or not passed
     └──── tunnel, or link ────^        on (shape_parts.py), and what is still to come down the
                                        tree; B3 gets all of that from B1

B3 has had some of it from B2, and passes over what it has by its numbers (last_numbers.py).  From
B2, which may come back, it takes nothing more on that tree: all of it comes from B1.

The channel to the lost broker stays as it is, and is read as it grows, by the window; its last
frame is ``TreeEnded``.  How far it has been read is durable, for each broker that gets it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.delta_portions import row_key
from overlay.link.channels import SendingChannel
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.events import Flow, RowsRead
from overlay.link.frame import Frame
from overlay.link.frames import (
    DictionaryTrained,
    Message,
    SourceChanged,
    SourceGone,
    TaxonomiesInForce,
    TreeEnded,
    WatershedReached,
)
from overlay.link.part import Hearer, Part, hears
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.routing.broadcast_tree import BroadcastTree

PASSED_ON = (
    *(Message, SourceChanged, SourceGone),
    *(DictionaryTrained, TaxonomiesInForce, WatershedReached, TreeEnded),
)


class _CopiedRow(Row, frozen=True):
    """Up to which number of the channel to ``lost`` on a tree a broker has been sent all."""

    tree: str
    lost: str
    to: str
    through: int


COPIED = Table("bypass", _CopiedRow)


class Bypasses(Part):
    """Of this broker's children that are lost or gone round."""

    def __init__(self, context: CoreContext, control: ControlPlane) -> None:
        self._shapes = control.shapes
        self._links = context.links
        # waiting for a broker on a tree, before more is read for it
        self._backlog_bytes_max = context.limits.link_backlog_bytes_max
        self._copied = StoredMap(context.rows, COPIED)
        self._reading: tuple[str, str, str] | None = None  # tree, lost child, first row

    def restore(self, rows: StoredRows) -> None:
        self.flush_soon()

    def flush(self) -> None:
        """Go on, as long as a broker is lost and that is not settled."""
        if not self._shapes.below_lost:
            return
        self.flush_soon()
        if self._reading is not None:
            return
        for tree, lost, channel in self._channels():
            through = self._through(tree, lost, channel)
            if through < channel.last and not self._is_full(tree, lost):
                asked = self._links.journal(f"broker/{lost}").read_again(channel, through + 1)
                self._reading = tree, lost, asked.first
                self.ask_shell(asked)
                return

    def events(self) -> Iterable[Hearer]:
        yield hears(RowsRead, self._handle_read)

    def _handle_read(self, event: RowsRead) -> bool:
        """What was asked for; False if somebody else has asked."""
        if self._reading is None or self._reading[2] != event.first:
            return False
        tree, lost, _ = self._reading
        self._reading = None
        self.flush_soon()
        if lost in self._shapes.below_lost.get(tree, {}):
            shape = self._shapes.tree(tree)
            for sequence, frame in self._links.journal(f"broker/{lost}").frames(event):
                self._copy(shape, tree, lost, sequence, frame)
        return True

    def are_done(self) -> bool:
        """Whether all that waits for lost brokers is on its way."""
        return all(
            self._through(tree, lost, channel) == channel.last
            for tree, lost, channel in self._channels()
        )

    def forget(self, trees: Collection[str]) -> None:
        """They have ended everywhere."""
        for key in [key for key, row in self._copied.items() if row.tree in trees]:
            del self._copied[key]

    # --- helpers --------------------------------------------------------------------------

    def _channels(self) -> Iterator[tuple[str, str, SendingChannel]]:
        """(tree, lost child, channel) where somebody is behind it."""
        for tree, children in self._shapes.below_lost.items():
            for lost, below in children.items():
                channel = self._links.sending(f"broker/{lost}", Flow.MESSAGE, tree)
                if below and channel is not None:
                    yield tree, lost, channel

    def _through(self, tree: str, lost: str, channel: SendingChannel) -> int:
        below = self._shapes.below_lost[tree][lost]
        return max(channel.deleted, min(self._copied_to(tree, lost, to) for to in below))

    def _copied_to(self, tree: str, lost: str, to: str) -> int:
        row = self._copied.get(row_key(tree, lost, to))
        return 0 if row is None else row.through

    def _is_full(self, tree: str, lost: str) -> bool:
        return any(
            self._links.backlog_bytes(f"broker/{to}", Flow.MESSAGE, tree) > self._backlog_bytes_max
            for to in self._shapes.below_lost[tree][lost]
        )

    def _copy(
        self, shape: BroadcastTree, tree: str, lost: str, sequence: int, frame: Frame
    ) -> None:
        if isinstance(frame, Message):  # as the lost broker would have passed it on
            frame = replace(frame, hops=frame.hops + 1)
        host = getattr(frame, "host", None)
        for to in self._shapes.below_lost[tree][lost]:
            if sequence <= self._copied_to(tree, lost, to):
                continue
            if isinstance(frame, PASSED_ON) and (host is None or to in shape.path(host)):
                self._links.send(f"broker/{to}", tree, frame)
            self._copied[row_key(tree, lost, to)] = _CopiedRow(tree, lost, to, sequence)
