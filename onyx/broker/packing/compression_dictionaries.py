"""CompressionDictionaries: what every broker needs to pack and unpack the messages of a source.

A dictionary serves one source in one form (text, binary, dictionary).  It comes in one of two ways.

*Given* when the source is registered: it is in the source's entry, every broker has it before the
source may publish, and it is never replaced.

*Trained* at the source's root broker, on messages that came, for the forms that links of its tree
compress with zstd; and announced down that tree::

    root ──DictionaryTrained──> children ──> ... ──> leaves      on the message flow
    root <──DictionaryHeld───── children <── ... <── leaves      on the query flow

**Why a link may use a version at once.**  The announcement is on the very channel on which the
messages of that tree come, and a channel is in order, without loss, and committed at the receiver
together with its number.  So whoever has sent the announcement may pack the next message with it:
the peer has the version before it sees the message, whatever breaks in between.  A broker passes
an announcement on to all its children before it uses it for any of them.

**Why old versions may go.**  Messages still under way on a channel are ahead of the next
announcement, so nobody receives an old version after a new one.  Only a message that a child gives
back (``Undecoded``, on the query flow) may take an older one.  ``DictionaryHeld`` is on the same
channel behind all of these: when every child has said it, all older versions are forgotten.  The
root trains anew only when the whole tree has said it, so that there are at most two at a time.

A broker that does not know a version gives back what it cannot read, and is sent that
source's messages without any dictionary from then on (give_backs.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from formats import (
    FORMS,
    Compression,
    CompressionDictionary,
    CompressionDictionaryLookup,
    FormatError,
    WireFormat,
    train,
)
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.format_choice import CANDIDATES
from overlay import statistics
from overlay.limits import Limits, TrainingLimits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import DictionaryHeld, DictionaryTrained
from overlay.link.part import Part, Taker, takes
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.nodes import AUTO
from overlay.statistics import BrokerStatistics
from overlay.tree_name import root_of
from registration.catalog import SourceEntry

# -------------------------------------------------------------------------------------------------
# MessageSamples: which messages of one source are kept, in one form, to train a dictionary on.
#
# ::
#
#     sampling ── enough messages or bytes ──> training ──> pausing for so many messages ──┐
#        ^──────────────────────────────────────────────────────────────────────────────────┘
#
# Messages that come one after the other are taken, from the first on: a source is served early, and
# what it says now is what the next dictionary is for.  Lost at a restart: sampling begins anew.


class MessageSamples:
    """Samples of one source in one form, within the limits."""

    __slots__ = ("_bytes", "_samples", "limits", "pause")

    def __init__(self, limits: TrainingLimits) -> None:
        self.limits = limits
        self._samples: list[bytes] = []
        self._bytes = 0
        self.pause = 0  # messages to let pass; whoever does so counts

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, form: bytes) -> bool:
        """A message; True when there are enough to train on."""
        if len(form) <= self.limits.sample_bytes_max:
            self._samples.append(form)
            self._bytes += len(form)
        return (
            len(self._samples) >= self.limits.samples
            or self._bytes >= self.limits.samples_bytes_max
        )

    def take(self) -> list[bytes]:
        """All samples, which are kept no longer; the pause begins."""
        samples, self._samples = self._samples, []
        self._bytes = 0
        self.pause = self.limits.retrain_messages
        return samples


# -------------------------------------------------------------------------------------------------


VERSIONS_MAX = 4  # of one source and form; what a parent that keeps to the rules never reaches


@dataclass(slots=True)
class _Version:
    """A trained dictionary, and the children that have not said yet that they hold it."""

    number: int
    dictionary: CompressionDictionary
    awaited: set[str]


class _VersionRow(Row, frozen=True):
    source: str
    form: WireFormat
    number: int
    awaited: set[str]
    data: bytes


VERSIONS = Table("compression-dictionary", _VersionRow)


class CompressionDictionaries(Part):
    """The dictionaries of all sources at one broker; trained ones are durable."""

    def __init__(self, context: CoreContext, control: ControlPlane) -> None:
        self._control = control
        self._links = context.links
        self._rows = context.rows
        self._limits = control.topology.limits.training
        self._given: dict[tuple[str, WireFormat], CompressionDictionary] = {}
        self._trained: dict[tuple[str, WireFormat], list[_Version]] = {}  # oldest first
        self._samples: dict[tuple[str, WireFormat], MessageSamples] = {}
        self._sampled: set[tuple[str, WireFormat]] = set()  # of which some are kept
        self._enough: dict[tuple[str, WireFormat], None] = {}  # of which there are enough
        self._forms: dict[str, list[WireFormat]] = {}  # by own tree
        self.counted = statistics.Compression()

    def take_limits(self, limits: Limits) -> None:
        self._limits = limits.training
        for samples in self._samples.values():
            samples.limits = self._limits

    def frames(self) -> Iterable[Taker]:
        yield takes(DictionaryTrained, "parent", self._handle_trained)
        yield takes(DictionaryHeld, "child", self._handle_held)

    def restore(self, rows: StoredRows) -> None:
        """The control plane must have been restored before."""
        for entry in self._control.sources.values():
            self.adopt_given(entry)
        for _, row in rows.take(VERSIONS):
            version = _Version(row.number, CompressionDictionary(row.data), row.awaited)
            self._trained.setdefault((row.source, row.form), []).append(version)
        for versions in self._trained.values():
            versions.sort(key=lambda version: version.number)

    def newest(self, source: str, form: WireFormat) -> CompressionDictionary | None:
        """What messages are packed with."""
        given = self._given.get((source, form))
        if given is not None:
            return given
        trained = self._trained.get((source, form))
        return trained[-1].dictionary if trained else None

    def lookup(self, source: str) -> CompressionDictionaryLookup:
        """What messages of a source may have been packed with, in whatever form."""

        def find(version: int) -> CompressionDictionary | None:
            for form in FORMS:
                given = self._given.get((source, form))
                if given is not None and given.version == version:
                    return given
                for trained in self._trained.get((source, form), ()):
                    if trained.dictionary.version == version:
                        return trained.dictionary
            return None

        return find

    def adopt_given(self, entry: SourceEntry) -> None:
        """A source has come with dictionaries of its own; a bad one is counted and not used."""
        for form, data in entry.compression.items():
            try:
                self._given[entry.source, WireFormat(form)] = CompressionDictionary(data)
            except (FormatError, ValueError):
                self.counted.bad_dictionaries += 1

    def forget_source(self, source: str) -> None:
        """It is gone, and no message takes its dictionaries any more."""
        for (name, form), versions in self._trained.items():
            for version in versions if name == source else ():
                self._forget(source, form, version)
        for form in FORMS:
            key = source, form
            self._sampled.discard(key)
            for known in (self._given, self._trained, self._samples, self._enough):
                known.pop(key, None)

    # --- at the root ----------------------------------------------------------------------

    def wanted(self, source: str) -> list[WireFormat]:
        """A message of a source whose root broker this is; the forms of it to be sampled."""
        if not self._limits.dictionary_bytes_max:
            return []
        words = self._control.dictionary_of(source) is not None
        tree = self._control.current_tree
        if tree not in self._forms:
            self._forms = {tree: _compressed_forms(self._control)}
        forms = dict.fromkeys(f if words else f.without_dictionary for f in self._forms[tree])
        return [
            form
            for form in forms
            if (source, form) not in self._given and self._is_sample((source, form))
        ]

    def sample(self, source: str, form: WireFormat, data: bytes) -> None:
        """One that was wanted."""
        samples = self._samples[source, form]
        enough = samples.add(data)
        if len(samples):
            self._sampled.add((source, form))
        if enough:
            self._enough[source, form] = None
            self.work_soon()

    def work(self) -> None:
        """Train one dictionary of which there are enough samples, and announce it if it is worth
        it: some 10 ms, so to be called when nothing waits to leave."""
        if not self._enough:  # its source is gone
            return
        source, form = key = next(iter(self._enough))
        del self._enough[key]
        if self._enough:
            self.work_soon()
        self._sampled.discard(key)
        self.counted.trainings += 1
        samples = self._samples[key].take()
        outcome = train(samples, self._limits.dictionary_bytes_max, self.newest(source, form))
        if outcome.dictionary is None:
            return
        self._take(self._control.current_tree, source, form, outcome.dictionary)

    def _is_sample(self, key: tuple[str, WireFormat]) -> bool:
        """Whether a message is to be a sample: it is its turn, the version before is held by
        all, and not too many sources are sampled."""
        samples = self._samples.get(key)
        if samples is None:
            samples = self._samples[key] = MessageSamples(self._limits)
        if key in self._enough or any(version.awaited for version in self._trained.get(key, ())):
            return False
        if key not in self._sampled and len(self._sampled) >= self._limits.sources_max:
            return False
        if samples.pause:
            samples.pause -= 1
            return False
        return True

    # --- on the tree ----------------------------------------------------------------------

    def _handle_trained(self, frame: DictionaryTrained, arrival: Arrival) -> None:
        """The parent has a new version."""
        try:
            form, dictionary = WireFormat(frame.form), CompressionDictionary(frame.payload)
        except (FormatError, ValueError):
            self.counted.bad_dictionaries += 1
            return
        entry = self._control.sources.get(frame.source)
        if entry is None or entry.root != root_of(frame.root) or form not in FORMS:
            # The entry went with the disk: nothing is packed or unpacked for it here.
            self._report(frame.root, frame.source, frame.form, dictionary.version)
            return
        known = self._trained.get((frame.source, form), ())
        if any(version.dictionary.version == dictionary.version for version in known):
            # The parent on a new tree has it from a child that has joined.
            self._report(frame.root, frame.source, frame.form, dictionary.version)
            return
        self._take(frame.root, frame.source, form, dictionary)

    def _handle_held(self, frame: DictionaryHeld, arrival: Arrival) -> None:
        """A child and all below it have a version."""
        child = arrival.sender
        try:
            form = WireFormat(frame.form)
        except ValueError:
            return
        for version in self._trained.get((frame.source, form), ()):
            if version.dictionary.version == frame.version and child in version.awaited:
                version.awaited.remove(child)
                self._put(frame.source, form, version)
                if not version.awaited:
                    self._settle(frame.root, frame.source, form, version)
                return

    def end_tree(self, tree: str, left: Sequence[str]) -> None:
        """No message comes on a tree any more, and nobody answers on it; ``left`` are the trees of
        the same root broker that are open.

        Whoever was on it has had what was announced on it.  Children on the others that were not
        have joined since, and are told before the first message.
        """
        members = self._control.tree(tree).parent
        for (source, form), versions in self._trained.items():
            entry = self._control.sources.get(source)
            if entry is None or entry.root != root_of(tree):
                continue
            for version in versions:
                version.awaited.clear()
            newest = versions[-1]
            for other in left:
                joined = [c for c in self._control.children(other) if c not in members]
                newest.awaited.update(joined)
                self._announce(other, source, form, newest.dictionary, joined)
            for version in versions:
                self._put(source, form, version)

    def report(self, said: BrokerStatistics) -> None:
        self.counted.given = {
            f"{source} {form}": f"{dictionary.version:08x}"
            for (source, form), dictionary in self._given.items()
        }
        self.counted.trained = {
            f"{source} {form}": [f"{v.dictionary.version:08x}" for v in versions]
            for (source, form), versions in self._trained.items()
        }
        said.compression = self.counted

    def _take(
        self, root: str, source: str, form: WireFormat, dictionary: CompressionDictionary
    ) -> None:
        """A new version is in force here and, behind the announcement, at every child."""
        versions = self._trained.setdefault((source, form), [])
        number = versions[-1].number + 1 if versions else 1
        children = self._control.children(root)
        version = _Version(number, dictionary, set(children))
        versions.append(version)
        self._put(source, form, version)
        self._announce(root, source, form, dictionary, children)
        while len(versions) > VERSIONS_MAX:
            self._forget(source, form, versions.pop(0))
        if not children:
            self._settle(root, source, form, version)

    def _announce(
        self,
        root: str,
        source: str,
        form: WireFormat,
        dictionary: CompressionDictionary,
        children: Iterable[str],
    ) -> None:
        frame = DictionaryTrained(
            root=root, source=source, form=form.value, payload=dictionary.data
        )
        for child in children:
            self._links.send(f"broker/{child}", root, frame)

    def _settle(self, root: str, source: str, form: WireFormat, version: _Version) -> None:
        """Everybody below has a version: what is older is needed no longer."""
        versions = self._trained[source, form]
        while versions[0] is not version:
            self._forget(source, form, versions.pop(0))
        self._report(root, source, form.value, version.dictionary.version)

    def _report(self, root: str, source: str, form: str, version: int) -> None:
        parent = self._control.parent(root)
        if parent is not None:
            held = DictionaryHeld(root=root, source=source, form=form, version=version)
            self._links.send(f"broker/{parent}", root, held)

    def _put(self, source: str, form: WireFormat, version: _Version) -> None:
        row = _VersionRow(source, form, version.number, version.awaited, version.dictionary.data)
        VERSIONS.put(self._rows, _row_key(source, form, version), row)

    def _forget(self, source: str, form: WireFormat, version: _Version) -> None:
        VERSIONS.delete(self._rows, _row_key(source, form, version))


def _row_key(source: str, form: WireFormat, version: _Version) -> str:
    return f"{source}|{form}|{version.number}"


def _compressed_forms(control: ControlPlane) -> list[WireFormat]:
    """The forms that links on the tree of this broker compress with zstd, or may choose to."""
    tree = control.tree(control.current_tree)
    formats = {
        control.shapes.link(parent, child).format
        for parent, children in tree.children.items()
        for child in children
    }
    zstd = {
        wire.form
        for named in formats
        for wire in (CANDIDATES if named == AUTO else (WireFormat(named),))
        if wire.compression is Compression.ZSTD
    }
    return [form for form in FORMS if form in zstd]
