"""Watersheds: where the root brokers are in the sequences of their sources.

A host broker sends a marker up each tree that is in use; the root answers with the last number of
each of its sources, behind all messages up to those.  Channels are in order, so when the answer has
come, so has every such message::

    host ──WatershedMarker──> B4 ──WatershedMarker──> B1 (root)       on the query flow
    host <──WatershedReached── B4 <──WatershedReached── B1            on the message flow

What is begun with one event shares one marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onyx.broker.control_plane import ControlPlane
from overlay.link.events import Flow
from overlay.link.link_layer import LinkLayer
from overlay.link.move_frames import WatershedMarker, WatershedReached
from overlay.link.row_log import RowLog, read_record

WATERSHED_SPACE = "watershed"


@dataclass(slots=True)
class Watershed:
    """``numbers`` by source, of the roots that have answered; ``waiting``: those that have not.

    A source that is not in ``numbers``, of a root that has answered or whose tree was not in use
    when the marker left, has its watershed before its first message.
    """

    marker: int
    waiting: set[str]
    numbers: dict[str, int]

    @property
    def is_known(self) -> bool:
        return not self.waiting


class Watersheds:
    """The watersheds that one broker has asked for, by name; durable."""

    def __init__(self, control: ControlPlane, links: LinkLayer, rows: RowLog) -> None:
        self._control = control
        self._links = links
        self._rows = rows
        self._watersheds: dict[str, Watershed] = {}
        self._unmarked: list[str] = []

    def __getitem__(self, name: str) -> Watershed:
        return self._watersheds[name]

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        for space, key, value in rows:
            if space == WATERSHED_SPACE:
                record = read_record(value)
                self._watersheds[key] = Watershed(
                    record["marker"], set(record["waiting"]), record["numbers"]
                )

    def begin(self, name: str, marker: int, roots: Iterable[str]) -> None:
        """Ask the roots of the trees in use; ``marker`` is a number that this broker uses for
        nothing else."""
        above = {root for root in roots if self._control.parent(root) is not None}
        self._watersheds[name] = Watershed(marker, above, dict(self._accepted_here()))
        self._unmarked.append(name)

    def flush(self) -> list[str]:
        """Send the markers; the names of the watersheds that are known without."""
        begun = [self._watersheds[name] for name in self._unmarked]
        marker = min((watershed.marker for watershed in begun), default=0)
        for root in sorted({root for watershed in begun for root in watershed.waiting}):
            frame = WatershedMarker(root=root, host=self._control.identity, marker=marker)
            self._links.send(f"broker/{self._control.parent(root)}", root, frame)
        for watershed in begun:
            watershed.marker = marker
        names, self._unmarked = self._unmarked, []
        for name in names:
            self._store(name)
        return [name for name in names if self._watersheds[name].is_known]

    def handle_marker(self, frame: WatershedMarker) -> None:
        """Pass it on towards the root; there, answer."""
        parent = self._control.parent(frame.root)
        if parent is not None:
            self._links.send(f"broker/{parent}", frame.root, frame)
            return
        numbers = list(self._accepted_here())
        self._send_down(WatershedReached(frame.root, frame.host, frame.marker, numbers))

    def handle_reached(self, frame: WatershedReached) -> list[str]:
        """Pass it on towards the host; there, the names of the watersheds that are known now."""
        if frame.host != self._control.identity:
            self._send_down(frame)
            return []
        known = []
        for name, watershed in self._watersheds.items():
            if watershed.marker == frame.marker and frame.root in watershed.waiting:
                watershed.waiting.remove(frame.root)
                watershed.numbers.update(frame.numbers)
                self._store(name)
                if watershed.is_known:
                    known.append(name)
        return known

    def drop(self, name: str) -> None:
        """A watershed is not needed any more."""
        del self._watersheds[name]
        self._rows.delete(WATERSHED_SPACE, name)

    def _accepted_here(self) -> Iterator[tuple[str, int]]:
        """The sources of this root broker, with the last number that it has dealt with."""
        for source, entry in self._control.sources.items():
            if entry.root == self._control.identity:
                receiving = self._links.journal(f"source/{source}").receiving
                channel = receiving.get((Flow.MESSAGE, source))
                yield source, 0 if channel is None else channel.last

    def _send_down(self, frame: WatershedReached) -> None:
        hop = self._control.hop_towards(frame.root, frame.host)
        self._links.send(f"broker/{hop}", frame.root, frame)

    def _store(self, name: str) -> None:
        watershed = self._watersheds[name]
        record = {
            "marker": watershed.marker,
            "waiting": sorted(watershed.waiting),
            "numbers": watershed.numbers,
        }
        self._rows.put(WATERSHED_SPACE, name, record)
