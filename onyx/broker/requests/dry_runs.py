"""DryRuns: what a broker would do with a message, were it to come; nothing is sent or counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from formats import trained_version
from onyx.broker.messages.data_plane import urgent_of
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.codebook import is_media_type, wire_format_of
from onyx.broker.packing.parcel import Parcel
from onyx.broker.packing.parts import PackingParts
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.link.frames import Message
from yfilter.matches import Match


@dataclass(frozen=True, slots=True)
class DryRun:
    """``sizes``: for each link that would be taken, ``format`` and ``bytes`` of the message as it
    would be sent, ``bytes_whole`` without its ``transformation``."""

    parcel: Parcel
    decisions: list[Match]
    sizes: Mapping[str, Mapping[str, object]]


class DryRuns:
    """It has a codebook of its own, whose counts are of no message's way."""

    def __init__(self, control: ControlPlane, query: QueryPlane, packing: PackingParts) -> None:
        self._control = control
        self._matcher = query.matcher
        self._transformation = query.transformation
        self._formats = packing.formats
        self._codebook = packing.aside
        self.published = self._codebook.of_published()

    def run(self, frame: Message) -> DryRun:
        """What would be done with a message, were it to come; nothing is sent or counted.

        Raises MessageRefused, DecodeError and MatchLimitExceeded.
        """
        parcel = self._open(frame)
        found = self._matcher.match(parcel.readings, root=parcel.root)
        decisions = list(self._transformation.taking_part(parcel, found, Counter()))
        links, left = urgent_of(decisions)
        sizes: dict[str, dict[str, object]] = {}
        for link, cut in self._transformation.cuts(parcel, links, left).items():
            packing = self._formats.packing_for(cut.parcel, link)
            sizes[link] = {
                "format": packing.wire_format.value,
                "bytes": len(cut.parcel.packed(packing)) + len(cut.parcel.pieces),
                "bytes_whole": len(parcel.packed(packing)),
                "transformation": self._control.shapes.link(
                    self._control.identity, link
                ).transformation.value,
            }
        return DryRun(parcel, decisions, sizes)

    def carried(self, frame: Message, child: str) -> Message:
        """The message as a child would get it, to the byte: but unpacked if that takes a trained
        dictionary, which the child has when it comes down the tree with the message, and may lack
        when it is asked now.  Raises as ``run``."""
        parcel = self._open(frame)
        urgent, _ = self._matcher.match_in_stages(parcel.readings, root=parcel.root)
        cut = self._transformation.cuts(parcel, [child], urgent_of(urgent)[1])[child]
        packing = self._formats.packing_for(cut.parcel, child)
        form, payload = packing.wire_format, cut.parcel.packed(packing)
        if trained_version(payload, form.compression):
            form = form.form
            payload = cut.parcel.in_form(form)
        return replace(
            frame,
            format=form.value,
            payload=payload,
            reflects=cut.reflects,
            pieces=cut.parcel.pieces,
        )

    def _open(self, frame: Message) -> Parcel:
        if not frame.hops and is_media_type(frame.format):
            what = frame.root, frame.source, frame.number, frame.format, frame.payload
            return Parcel.of_graph(self.published, *what)
        form = wire_format_of(frame.format)
        codebook = self._codebook if frame.hops else self.published
        return Parcel(
            *(codebook, frame.root, frame.source, frame.number, frame.hops, form),
            *(frame.payload, frame.reflects, frame.pieces),
        )
