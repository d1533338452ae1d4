"""GiveBacks: what becomes of a good message that a broker has no means to read.

Every broker has what it takes before the first message comes, except one that lost its disk, or
that is of another release.  Neither loses a message::

    parent ──Message──> child      which cannot read it: unknown dictionary or format
    parent <─Undecoded─ child      as it came
    parent ──Message──> child      the same once more, in the binary form, and
                                   all others of that source without any dictionary

until the parent is started anew.  Such messages may arrive behind later ones.
"""

from __future__ import annotations

from collections import Counter

from formats import DecodeError, FormatError, MessageRefused, WireFormat
from onyx.broker.control_plane import ControlPlane
from onyx.broker.packing.codebook import Codebook, wire_format_of
from onyx.broker.packing.parcel import Parcel
from overlay.link.frames import Message, Undecoded
from overlay.link.link_layer import LinkLayer

_NO_MEANS = frozenset({"unknown-dictionary", "unknown-format"})


class GiveBacks:
    """Messages given back, to the parent and by the children."""

    def __init__(self, control: ControlPlane, links: LinkLayer, codebook: Codebook) -> None:
        self._control = control
        self._links = links
        self._codebook = codebook
        self._counters: Counter[str] = Counter()
        self._lacking: set[tuple[str, str]] = set()  # (child, source)

    def lacks(self, child: str, source: str) -> bool:
        """Whether a child has no dictionaries of a source."""
        return (child, source) in self._lacking

    def give_back(self, frame: Message, refusal: FormatError) -> bool:
        """Return a message that cannot be read to the parent; False when it is just bad."""
        parent = self._control.parent(frame.root)
        if refusal.code not in _NO_MEANS or parent is None:
            return False
        self._counters["given_back"] += 1
        undecoded = Undecoded(
            root=frame.root,
            source=frame.source,
            number=frame.number,
            format=frame.format,
            hops=frame.hops,
            payload=frame.payload,
            reflects=frame.reflects,
            pieces=frame.pieces,
        )
        self._links.send(f"broker/{parent}", frame.root, undecoded)
        return True

    def handle_undecoded(self, frame: Undecoded, child: str) -> bool:
        """A child could not read a message that this broker sent: once more, without a dictionary.

        False for what this broker cannot read either, which was damaged on the way, and for what
        it cannot have sent.
        """
        if frame.source not in self._control.sources:
            return False
        try:
            parcel = Parcel(
                self._codebook,
                frame.root,
                frame.source,
                frame.number,
                frame.hops,
                wire_format_of(frame.format),
                frame.payload,
            )
            payload = self._codebook.encode(frame.source, WireFormat.BINARY, parcel.stream)
        except (MessageRefused, DecodeError):
            return False
        self._counters["sent_again"] += 1
        self._lacking.add((child, frame.source))
        again = Message(
            root=frame.root,
            source=frame.source,
            number=frame.number,
            format=WireFormat.BINARY.value,
            hops=frame.hops,
            payload=payload,
            reflects=frame.reflects,
            pieces=frame.pieces,
        )
        self._links.send(f"broker/{child}", frame.root, again)
        return True

    def statistics(self) -> dict[str, int]:
        return {**self._counters, "without_dictionary": len(self._lacking)}
