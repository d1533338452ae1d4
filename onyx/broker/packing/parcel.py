"""Parcel: one message at one broker, in every form that it is asked for.

It holds the bytes as they came.  The element stream is made when somebody first needs it, and
once; each format is made when a link first wants it, and once; and a link that wants what came
gets the very bytes (section 4.3.2 of the paper: parsed once, re-encoded only where a link wants
another format).  What is left of it for some links (``cut``) is written anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from formats import ElementStream, MessageRefused, WireFormat, trained_version
from formats.schema_questions import MessageRead
from onyx.broker.packing.codebook import Codebook
from overlay.link.message_headers import Headers
from overlay.transformation.reflection import WHOLE
from yfilter.engine.readings import Readings, readings_of
from yfilter.projection.parts import PIECES_BYTES_MAX, pack_pieces, unpack_pieces


class Span(Protocol):
    """What is done with a message, from when to when."""

    def child(self, name: str) -> Span: ...

    def end(self, **attributes: str | int) -> None: ...


class KeptMessage(NamedTuple):
    """A message as it is kept: on the tree of ``root``, in a format that needs no dictionary that
    may be gone when it is read.  ``is_late``: it may not match at all.  ``accepted``: see Message.
    """

    root: str
    format: str
    payload: bytes
    pieces: bytes
    is_late: bool = False
    accepted: int = 0

    def kept(self) -> KeptMessage:
        return self


@dataclass(frozen=True, slots=True)
class Packing:
    """How a message is wanted: ``level`` of the compression (None: default); ``trained`` False
    for a receiver that lacks the source's compression dictionaries."""

    wire_format: WireFormat
    level: int | None = None
    trained: bool = True

    def is_as_it_came(self, parcel: Parcel) -> bool:
        """Whether the payload itself is what is wanted; the level makes no difference to that."""
        return (not parcel.is_cut and self.wire_format is parcel.wire_format) and (
            self.trained or not trained_version(parcel.payload, parcel.wire_format.compression)
        )


class Parcel:
    """The ``number``-th message of ``source`` on the tree of ``root``.

    ``reflects``: by which needs of this broker it has been cut, ``pieces``: what was computed of it
    on the way, ``accepted``, and ``unknown``: its fields of a later release; see Message.
    ``by``: the publisher that has sent it to this broker, a peer, and its number there.
    ``no_graph``: why RDF/XML has no graph, once somebody asked for it.  ``headers``: that it goes
    on with; ``span``: of one that is traced, see message_spans.py.
    """

    __slots__ = (
        "_codebook",
        "_forms",
        "_graph",
        "_packed",
        "_readings",
        "_stream",
        "accepted",
        "by",
        "headers",
        "hops",
        "is_cut",
        "no_graph",
        "number",
        "payload",
        "pieces",
        "reflects",
        "root",
        "source",
        "span",
        "unknown",
        "wire_format",
    )

    def __init__(
        self,
        codebook: Codebook,
        root: str,
        source: str,
        number: int,
        hops: int,
        wire_format: WireFormat,
        payload: bytes,
        reflects: int = WHOLE,
        pieces: bytes = b"",
        accepted: int = 0,
    ) -> None:
        self.root = root
        self.source = source
        self.number = number
        self.hops = hops
        self.wire_format = wire_format
        self.payload = payload
        self.reflects = reflects
        self.pieces = pieces
        self.accepted = accepted
        self.by: tuple[str, int] | None = None
        self.unknown: Mapping[str, object] | None = None
        self.headers: Headers | None = None
        self.span: Span | None = None
        self.is_cut = False  # then it has no payload
        self._codebook = codebook
        self.no_graph: MessageRefused | None = None
        self._graph: bytes | MessageRefused | None = None
        self._stream: ElementStream | None = None
        self._readings: Readings | None = None
        self._forms: dict[WireFormat, bytes] = {}
        self._packed: dict[Packing, bytes] = {}

    @classmethod
    def of_graph(
        cls,
        codebook: Codebook,
        root: str,
        source: str,
        number: int,
        media_type: str,
        payload: bytes,
        accepted: int,
    ) -> Parcel:
        """A graph as it was published, which travels in binary from here on.  MessageRefused;
        DecodeError ``unknown-format``."""
        stream = codebook.read_graph(root, source, media_type, payload)
        binary = codebook.encode(source, WireFormat.BINARY, stream)
        what = WireFormat.BINARY, binary
        parcel = cls(codebook, root, source, number, 0, *what, accepted=accepted)
        stream.accepted = accepted
        parcel._stream = stream
        return parcel

    @classmethod
    def of_read(
        cls,
        codebook: Codebook,
        root: str,
        source: str,
        number: int,
        read: MessageRead,
        accepted: int,
    ) -> Parcel:
        """A message as another process has read it, which travels in binary from here on."""
        what = WireFormat.BINARY, read.payload
        parcel = cls(codebook, root, source, number, 0, *what, accepted=accepted)
        parcel._graph = read.graph
        return parcel

    def cut(self, stream: ElementStream) -> Parcel:
        """What is left of the message."""
        left = Parcel(
            self._codebook,
            self.root,
            self.source,
            self.number,
            self.hops,
            self.wire_format,
            b"",
            self.reflects,
            pack_pieces(stream.pieces),
            self.accepted,
        )
        left.is_cut = True
        left._stream = stream
        return left

    @property
    def stream(self) -> ElementStream:
        """MessageRefused or DecodeError when the payload is bad or cannot be read here."""
        if self._stream is None:
            stream = self._codebook.decode(self.source, self.wire_format, self.payload)
            if self.pieces:
                stream.pieces = unpack_pieces(self.pieces, len(stream), PIECES_BYTES_MAX)
            stream.accepted = self.accepted
            self._stream = stream
        return self._stream

    @property
    def readings(self) -> Readings:
        """What profiles look at; the graph of RDF/XML is derived when somebody first asks.

        Raises as ``stream``.
        """
        if self._readings is None:
            self._readings = readings_of(self.stream, self._derive)
        return self._readings

    def in_form(self, form: WireFormat) -> bytes:
        """Without compression."""
        made = self._forms.get(form)
        if made is None:
            if form is self.wire_format.form and not self.is_cut:
                made = self._codebook.unpack(self.source, self.wire_format, self.payload)
            else:
                made = self._codebook.encode(self.source, form, self.stream)
            self._forms[form] = made
        return made

    def kept(self) -> KeptMessage:
        """To be read at any time: what takes a trained dictionary, which may be gone by then, is
        unpacked."""
        wire_format, payload = self.wire_format, self.payload
        if trained_version(payload, wire_format.compression):
            wire_format = wire_format.form
            payload = self.in_form(wire_format)
        what = wire_format.value, payload, self.pieces
        return KeptMessage(self.root, *what, accepted=self.accepted)

    def _derive(self, document: ElementStream) -> ElementStream | None:
        """The graph of RDF/XML; None where it means none, and is a document for all that."""
        try:
            return self._codebook.graph_of(self.root, self.source, document, self._graph)
        except MessageRefused as refusal:
            self.no_graph = refusal
            return None

    def packed(self, packing: Packing) -> bytes:
        """As a link wants it; the payload itself if it is that already."""
        wire_format = packing.wire_format
        if packing.is_as_it_came(self):
            return self.payload
        if not wire_format.compression:
            return self.in_form(wire_format)
        made = self._packed.get(packing)
        if made is None:
            form = self.in_form(wire_format.form)
            made = self._codebook.pack(
                self.source, wire_format, form, packing.level, packing.trained
            )
            self._packed[packing] = made
        return made
