"""GiveBacks: what becomes of a good message that a broker has no means to read.

Every broker has what it takes before the first message comes, except one of another release.  Even
that loses no message::

    parent ──Message──> child      which cannot read it: unknown dictionary or format
    parent <─Undecoded─ child      as it came
    parent ──MessageAgain──> child the same once more, in the binary form, and
                                   all others of that source without any dictionary

until the parent is started anew.  Such messages may arrive behind later ones.  What the parent
cannot read either comes back as it went: given up the second time.  So each comes once more, and a
tree does not end at a broker before all of them have (shape/tree_versions.py); which these are is
durable.
"""

from __future__ import annotations

from msgspec.structs import replace

from formats import DecodeError, FormatError, MessageRefused, WireFormat
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.codebook import Codebook, wire_format_of
from onyx.broker.packing.parcel import Parcel
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.events import Flow
from overlay.link.frames import Message, MessageAgain, Undecoded
from overlay.link.row_log import numbered_key
from overlay.link.tables import Row, Table

_NO_MEANS = frozenset({"unknown-dictionary", "unknown-format"})


class _GivenBackRow(Row, frozen=True):
    root: str
    source: str
    number: int


GIVEN_BACK = Table("given-back", _GivenBackRow)


class GiveBacks:
    """Messages given back, to the parent and by the children."""

    def __init__(self, context: CoreContext, control: ControlPlane, codebook: Codebook) -> None:
        self._control = control
        self._links = context.links
        self._codebook = codebook
        self.counted = codebook.counted
        self.lacking: set[tuple[str, str]] = set()  # (child, source): it has no dictionaries of it
        self._awaited = StoredMap(context.rows, GIVEN_BACK)

    def give_back(self, frame: Message, refusal: FormatError) -> bool:
        """Return a message that cannot be read to the parent; False when it is just bad."""
        parent = self._control.giver(frame.root)
        if refusal.code not in _NO_MEANS or parent is None:
            return False
        self.counted.given_back += 1
        row = _GivenBackRow(frame.root, frame.source, frame.number)
        self._awaited[_row_key(frame)] = row
        self._links.send(f"broker/{parent}", frame.root, frame.carried_by(Undecoded))
        return True

    def comes_again(self, frame: Message) -> bool:
        """A message arrives: whether it was given back, and is awaited no longer."""
        return bool(self._awaited) and self._awaited.pop(_row_key(frame)) is not None

    def awaits(self, tree: str) -> bool:
        """Whether something that was given back has still to come down a tree."""
        return any(row.root == tree for row in self._awaited.values())

    def end_tree(self, tree: str) -> None:
        """Nothing comes down a tree any more."""
        for key in [key for key, row in self._awaited.items() if row.root == tree]:
            del self._awaited[key]

    def handle_undecoded(self, frame: Undecoded, child: str) -> bool:
        """A child could not read a message that this broker sent: once more, without a dictionary.

        False for what this broker cannot read either, which was damaged on the way, and for what
        it cannot have sent: that goes back as it came, so that the child gives up.
        """
        payload = self._in_binary(frame)
        again = frame.carried_by(MessageAgain)
        if payload is not None:
            self.counted.sent_again += 1
            self.lacking.add((child, frame.source))
            again = replace(again, format=WireFormat.BINARY.value, payload=payload)
        peer = f"broker/{child}"
        self._links.send(peer, frame.root, again)
        # It has no place in the order of messages, so who gets it twice does not know.
        self._links.journal(peer).leave_gap(Flow.MESSAGE, frame.root)
        return payload is not None

    def _in_binary(self, frame: Undecoded) -> bytes | None:
        """None when it cannot be read here."""
        if frame.source not in self._control.sources:
            return None
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
            return self._codebook.encode(frame.source, WireFormat.BINARY, parcel.stream)
        except (MessageRefused, DecodeError):
            return None


def _row_key(frame: Message) -> str:
    return numbered_key(f"{frame.root}|{frame.source}", frame.number)
