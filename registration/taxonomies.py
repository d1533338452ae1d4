"""Taxonomies: what operators have registered of classes and properties, for all graphs.

All together are one: what is above a class is what any of them says.  Every change has a number,
the ``version``; each broker is told what all say, and root brokers close messages by it from then
on (onyx/broker/network/taxonomies.py).
"""

from __future__ import annotations

from typing import Any

import msgspec

from formats import Compression, FormatError, compress, decompress
from formats.graph.closure import TaxonomyClosure
from formats.graph.syntaxes import GraphSyntax, by_media_type
from formats.graph.taxonomy import Taxonomy, check_taxonomy, read_taxonomy, union
from overlay import answers, statistics, verbs
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap, StoredValue
from overlay.link.frames import TaxonomiesAnnounced
from overlay.link.part import Part
from overlay.link.request_server import Changed, RequestRefused, Verb, alone
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.statistics import RegistrationStatistics
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY
from yfilter.graph.graph_query import with_classes_above

TAXONOMIES_MAX = 1_000
REBUILT = "rebuilt"  # what the one is called that brokers know
LINES_BYTES_MAX = 256 * 1024 * 1024
PAYLOAD_BYTES_MAX = 4 * 1024 * 1024  # of what brokers are told: all together, compressed


class _TaxonomyRow(Row, frozen=True):
    """Its key is the name; ``lines`` are Taxonomy.to_bytes(), and that and ``text`` compressed."""

    version: int
    syntax: GraphSyntax
    text: bytes
    size: int  # of the text
    lines: bytes


class _VersionRow(Row, frozen=True):
    version: int


TAXONOMIES = Table("taxonomy", _TaxonomyRow)
VERSION = Table("taxonomies-version", _VersionRow)


class Taxonomies(Part):
    """All that are registered; durable."""

    def __init__(self, context: CoreContext) -> None:
        self._brokers = context.topology.broker_ids
        self._links = context.links
        self._of_name = StoredMap(context.rows, TAXONOMIES)
        self._read: dict[str, Taxonomy] = {}
        self._version = StoredValue(context.rows, VERSION, _VersionRow(0))
        self._announced = TaxonomiesAnnounced(0, b"")
        self._closure = TaxonomyClosure(Taxonomy())  # by all together
        self._told: dict[str, int] = {}  # versions, in this run, by broker
        self.verbs = (
            Verb(verbs.TaxonomyPut, alone(self._put)),
            Verb(verbs.TaxonomyList, alone(self._list)),
            Verb(verbs.TaxonomyShow, alone(self._show)),
            Verb(verbs.TaxonomyRemove, alone(self._remove)),
        )

    def restore(self, rows: StoredRows) -> None:
        for name, row in self._of_name.items():
            self._read[name] = Taxonomy.from_bytes(_unpacked(row.lines))
        self._make_announcement(union(self._read.values()))

    def reinstate(self, known: TaxonomiesAnnounced | None) -> None:
        """What brokers know, after the store was lost: if that is not what is here, it is one
        taxonomy, whatever those were that said it."""
        if known is None or known == self._announced:
            return
        self._of_name.clear()
        self._read = {}
        taxonomy = Taxonomy.from_bytes(_unpacked(known.payload) if known.payload else b"")
        if taxonomy:
            text, lines = taxonomy.to_n_triples(), taxonomy.to_bytes()
            syntax = GraphSyntax.N_TRIPLES
            row = _TaxonomyRow(known.version, syntax, _packed(text), len(text), _packed(lines))
            self._of_name[REBUILT], self._read[REBUILT] = row, taxonomy
        self._version.put(_VersionRow(known.version))
        self._make_announcement(taxonomy)

    def said_in(self, text: str) -> str:
        """The text of a profile with the classes above those that it asks for; ProfileRefused."""
        return with_classes_above(text, self._closure.classes_above)

    def use_topology(self, topology: Topology) -> None:
        """Brokers have come or gone."""
        self._brokers = topology.broker_ids

    def tell(self, broker: str) -> None:
        """Tell a broker that is here what it does not know."""
        if self._told.get(broker, 0) < self._version.now.version:
            self._told[broker] = self._version.now.version
            self._links.send(f"broker/{broker}", REGISTRATION_KEY, self._announced)

    def report(self, said: RegistrationStatistics) -> None:
        version = self._version.now.version
        said.taxonomies = statistics.Taxonomies(len(self._of_name), version)

    # --- verbs ----------------------------------------------------------------------------

    def _put(self, asked: verbs.TaxonomyPut) -> answers.TaxonomyPut | Changed:
        name = asked.name
        if not name:
            raise RequestRefused("bad-argument", "a taxonomy has a name")
        syntax = by_media_type(asked.syntax)
        text = asked.text
        if syntax is None:
            known = ", ".join(GraphSyntax)
            raise RequestRefused("bad-argument", f"'syntax' must be one of {known}")
        former = self._of_name.get(name)
        if former is not None and (former.syntax, _unpacked(former.text)) == (syntax, text):
            return answers.TaxonomyPut(**self._facts(name))
        if former is None and len(self._of_name) == TAXONOMIES_MAX:
            raise RequestRefused("too-many", f"there are {TAXONOMIES_MAX} taxonomies already")
        try:
            taxonomy = read_taxonomy(text, syntax)
            all_of_them = union({**self._read, name: taxonomy}.values())
            check_taxonomy(all_of_them)
        except FormatError as error:
            said = msgspec.structs.replace(error.fault, code="", where=name)
            raise RequestRefused(error.code, str(said)) from None
        if len(_packed(all_of_them.to_bytes())) > PAYLOAD_BYTES_MAX:
            raise RequestRefused(
                "too-large", f"compressed, all would be more than {PAYLOAD_BYTES_MAX} bytes"
            )
        self._read[name] = taxonomy
        lines = taxonomy.to_bytes()
        row = _TaxonomyRow(
            self._version.now.version + 1, syntax, _packed(text), len(text), _packed(lines)
        )
        self._of_name[name] = row
        self._changed(all_of_them)
        put = answers.TaxonomyPut(**self._facts(name), changed=True)
        return Changed(f"{name}, {len(text)} bytes", put)

    def _list(self, asked: verbs.TaxonomyList) -> answers.Taxonomies:
        listed = [answers.TaxonomyInfo(**self._facts(name)) for name in sorted(self._of_name)]
        return answers.Taxonomies(listed, self._version.now.version)

    def _show(self, asked: verbs.TaxonomyShow) -> answers.TaxonomyText:
        row = self._known(asked.name)
        text = _unpacked(row.text)
        return answers.TaxonomyText(asked.name, row.version, row.syntax.value, text)

    def _remove(self, asked: verbs.TaxonomyRemove) -> Changed:
        name = asked.name
        self._known(name)
        del self._of_name[name], self._read[name]
        self._changed(union(self._read.values()))
        return Changed(name, answers.TaxonomyGone(name, self._version.now.version))

    # --- helpers --------------------------------------------------------------------------

    def _known(self, name: str) -> _TaxonomyRow:
        if name not in self._of_name:
            raise RequestRefused("unknown-taxonomy", f"there is no taxonomy {name!r}")
        return self._of_name[name]

    def _facts(self, name: str) -> dict[str, Any]:
        row = self._of_name[name]
        facts = {"version": row.version, "syntax": row.syntax.value, "bytes": row.size}
        return {"name": name, **facts, **self._read[name].sizes()}

    def _changed(self, all_of_them: Taxonomy) -> None:
        self._version.put(_VersionRow(self._version.now.version + 1))
        self._make_announcement(all_of_them)
        for broker in self._brokers:
            self.tell(broker)

    def _make_announcement(self, all_of_them: Taxonomy) -> None:
        payload = _packed(all_of_them.to_bytes()) if all_of_them else b""
        self._announced = TaxonomiesAnnounced(version=self._version.now.version, payload=payload)
        self._closure = TaxonomyClosure(all_of_them)


def _packed(data: bytes) -> bytes:
    return compress(data, Compression.ZLIB)


def _unpacked(data: bytes) -> bytes:
    return decompress(data, Compression.ZLIB, LINES_BYTES_MAX)
