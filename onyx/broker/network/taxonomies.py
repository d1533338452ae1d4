"""Taxonomies: by which graphs are closed at this broker, for each tree that messages come down.

The registration service tells every broker what all taxonomies say together.  A root broker closes
by that from then on what its sources publish, and says so down its tree, where every other broker
derives the graph of an RDF/XML document anew::

    registration ──TaxonomiesAnnounced──> all brokers              on the catalog flow
    root ──TaxonomiesInForce──> children ──> ... ──> leaves        on the message flow

**Why a message means the same everywhere.**  ``TaxonomiesInForce`` is on the very channel on which
the messages of that tree come, which is in order and without loss.  So what is in force on a tree
when a message comes is what was at its root broker when the message left; nothing has to be said
in the message.  What the registration service says counts for a broker's own tree alone.

A tree that takes the place of another is told before its first message (``use_tree``).  What is
the same on many trees is stored, and in memory, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from formats import Compression, FormatError, decompress
from formats.graph.closure import TaxonomyClosure
from formats.graph.taxonomy import Taxonomy
from onyx.broker.network.control_plane import ControlPlane, CurrentTree
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frames import TaxonomiesAnnounced, TaxonomiesInForce, TreeEnded
from overlay.link.part import FrameRefused, Hearer, Part, Taker, hears, takes
from overlay.link.tables import Row, Table
from overlay.statistics import BrokerStatistics
from yfilter.graph.graph_query import with_classes_above

TEXT_BYTES_MAX = 256 * 1024 * 1024  # of all taxonomies together, as lines
_NO_CLOSURE = TaxonomyClosure(Taxonomy())
_ANNOUNCED = ""  # in place of a tree: what the registration service said last


class _ContentRow(Row, frozen=True):
    """Its key is the digest of ``payload``."""

    payload: bytes


class _InForceRow(Row, frozen=True):
    """Its key is the tree; ``digest`` "" is no taxonomy at all."""

    version: int
    digest: str


CONTENTS = Table("taxonomy-content", _ContentRow)
IN_FORCE = Table("taxonomies-in-force", _InForceRow)


class Taxonomies(Part):
    """``closure`` says by what graphs are closed; durable."""

    def __init__(self, context: CoreContext, control: ControlPlane) -> None:
        self._control = control
        self._links = context.links
        self._in_force = StoredMap(context.rows, IN_FORCE)  # by tree
        self._contents = StoredMap(context.rows, CONTENTS)  # by digest
        self._closures: dict[str, TaxonomyClosure] = {}  # by digest, as they are needed

    def frames(self) -> Iterable[Taker]:
        yield takes(TaxonomiesAnnounced, "registration", self._handle_announced)
        yield takes(TaxonomiesInForce, "parent", self._handle_in_force)

    def events(self) -> Iterable[Hearer]:
        yield hears(CurrentTree, lambda current: self.use_tree(current.tree))
        yield hears(TreeEnded, lambda ended: self.end_tree(ended.root))

    def closure(self, tree: str) -> TaxonomyClosure | None:
        """By which the graph of a message is closed that comes down a tree, or is published here
        (``ControlPlane.current_tree``); None: as it is."""
        row = self._in_force.get(tree)
        if row is None or not row.digest:
            return None
        found = self._closures.get(row.digest)
        if found is None:
            taxonomy = _taxonomy(self._contents[row.digest].payload)
            found = self._closures[row.digest] = TaxonomyClosure(taxonomy)
        return found

    def said_in(self, text: str) -> str:
        """The text of a profile with the classes above those that it asks for, by what the
        registration service said last; ProfileRefused."""
        closure = self.closure(_ANNOUNCED) or _NO_CLOSURE
        return with_classes_above(text, closure.classes_above)

    def version(self, tree: str = _ANNOUNCED) -> int:
        """That of the taxonomies in force on a tree, or that the registration service said last;
        0: none were ever."""
        row = self._in_force.get(tree)
        return 0 if row is None else row.version

    def announced(self) -> TaxonomiesAnnounced | None:
        """As the registration service has said it last; None: it has said nothing."""
        row = self._in_force.get(_ANNOUNCED)
        return None if row is None else TaxonomiesAnnounced(row.version, self._payload(row))

    def use_tree(self, tree: str) -> None:
        """What is published here goes down a tree from now on: it is told, unless it was."""
        announced = self._in_force.get(_ANNOUNCED)
        if announced is not None and self.version(tree) < announced.version:
            self._put(tree, announced.version, self._payload(announced))
            self._pass_on(tree)

    def end_tree(self, tree: str) -> None:
        """No message comes down a tree any more."""
        if self._in_force.pop(tree) is not None:
            self._drop_unused()

    def report(self, said: BrokerStatistics) -> None:
        said.taxonomies.version = self.version()

    def _handle_announced(self, frame: TaxonomiesAnnounced, arrival: Arrival) -> None:
        if frame.version <= self.version(_ANNOUNCED):
            return
        self._check(frame.payload)
        self._put(_ANNOUNCED, frame.version, frame.payload)
        if self._control.has_own_tree:
            self.use_tree(self._control.current_tree)
        self.announce(frame)

    def _handle_in_force(self, frame: TaxonomiesInForce, arrival: Arrival) -> None:
        self._check(frame.payload)
        self._put(frame.root, frame.version, frame.payload)
        self._pass_on(frame.root)

    def _check(self, payload: bytes) -> None:
        if sha256(payload).hexdigest() in self._contents:
            return
        try:
            _taxonomy(payload)
        except (FormatError, ValueError) as error:
            raise FrameRefused("bad-field", f"not a taxonomy: {error}") from None

    def _put(self, tree: str, version: int, payload: bytes) -> None:
        digest = sha256(payload).hexdigest() if payload else ""
        if digest and digest not in self._contents:
            self._contents[digest] = _ContentRow(payload)
        self._in_force[tree] = _InForceRow(version, digest)
        self._drop_unused()

    def _payload(self, row: _InForceRow) -> bytes:
        return self._contents[row.digest].payload if row.digest else b""

    def _pass_on(self, tree: str) -> None:
        row = self._in_force[tree]
        frame = TaxonomiesInForce(root=tree, version=row.version, payload=self._payload(row))
        for child in self._control.children(tree):
            self._links.send(f"broker/{child}", tree, frame)

    def _drop_unused(self) -> None:
        used = {row.digest for row in self._in_force.values()}
        for digest in self._contents.keys() - used:
            del self._contents[digest]
            self._closures.pop(digest, None)


def _taxonomy(payload: bytes) -> Taxonomy:
    lines = decompress(payload, Compression.ZLIB, TEXT_BYTES_MAX) if payload else b""
    return Taxonomy.from_bytes(lines)
