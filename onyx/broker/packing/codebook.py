"""Codebook: all that it takes at one broker to read and write the messages of its sources.

The words of a source's schema (control_plane.py), what its messages have in common
(compression_dictionaries.py), and the limits of a message, of one that is published others than of
one that a root broker has taken.  Counts what the broker does with messages, so that the statistics
show that it does no more than it must.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from formats import (
    EMPTY_DICTIONARY,
    ONLY_EMPTY,
    DecodeError,
    ElementStream,
    GraphLimits,
    MessageLimits,
    MessageRefused,
    WireFormat,
    compress,
    decode,
    encode,
    unpack,
)
from formats.graph.reader import graph_of_document
from formats.graph.vocabulary import RDF
from formats.publication import read_publication
from formats.schema_questions import ReadMessage
from formats.text import parse_ordinary
from onyx.broker.network.network_parts import NetworkParts
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from overlay.limits import taken_limits
from overlay.statistics import Data


class Codebook:
    """Reads and writes; ``counted``, with what else counts messages: ``decoded``, ``encoded`` forms
    made of an element stream, ``unpacked`` and ``packed`` payloads, ``graphs_derived`` of RDF/XML.
    ``take_seconds`` tells how long it has read, of those that are published, since it was asked.
    """

    def __init__(self, network: NetworkParts, trained: CompressionDictionaries) -> None:
        self._clock: Callable[[], float] = float  # which stands still
        self._seconds, self._is_published = 0.0, False
        # The last text that was asked about, and how long that took.
        self._ordinary: tuple[bytes, ElementStream | None, float] | None = None
        self._control, self._closure = network.control, network.taxonomies.closure
        self._trained = trained
        self.counted = Data()
        self.hold_to(taken_limits(self._control.topology.limits))

    def of_published(self, clock: Callable[[], float]) -> Codebook:
        """The same for messages that no root broker has taken yet, and counted together."""
        other = copy(self)
        other._clock, other._is_published = clock, True
        other.hold_to(self._control.topology.limits.message)
        return other

    def hold_to(self, limits: MessageLimits) -> None:
        """From now on."""
        self._limits, self._graph_limits = limits, GraphLimits(limits)

    def take_seconds(self) -> float:
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def is_ordinary(self, text: bytes) -> bool:
        """Whether it is XML that costs little for its size, RDF/XML not; read, for ``decode``."""
        if self._ordinary is None or self._ordinary[0] is not text:
            begun = self._clock()
            stream = parse_ordinary(text, self._limits)
            self._ordinary = text, stream, self._clock() - begun
        stream = self._ordinary[1]
        return stream is not None and stream.names[stream.element_name[0]].namespace != RDF

    def question(self, tree: str, source: str, format_name: str, payload: bytes) -> ReadMessage:
        """What a process of its own is asked about a message as it was published."""
        closure, base = self._closure(tree), self._base(source)
        return ReadMessage(payload, format_name, self._limits, closure, base)

    def decode(self, source: str, wire_format: WireFormat, payload: bytes) -> ElementStream:
        """MessageRefused or DecodeError; ``unknown-dictionary`` when what it takes is not here."""
        self.counted.decoded += 1
        ordinary, self._ordinary = self._ordinary, None
        if ordinary is not None and ordinary[0] is payload and ordinary[1] is not None:
            self._seconds += ordinary[2]
            return ordinary[1]
        words = self._control.words_of(source) if takes_words(wire_format) else ONLY_EMPTY
        limits, begun = self._limits, self._clock()
        if self._is_published and wire_format is not WireFormat.TEXT:
            limits = limits.of(len(payload))
        try:
            return decode(payload, wire_format, limits, words, self._trained.lookup(source))
        finally:
            self._seconds += self._clock() - begun

    def read_graph(self, tree: str, source: str, media_type: str, payload: bytes) -> ElementStream:
        """A graph as it was published, striped, and closed by the taxonomies of the tree.

        MessageRefused; DecodeError ``unknown-format`` for a media type that is no graph's.
        """
        self.counted.decoded += 1
        closure, base = self._closure(tree), self._base(source)
        begun = self._clock()
        try:
            return read_publication(payload, media_type, self._limits, closure, base)
        finally:
            self._seconds += self._clock() - begun

    def graph_of(
        self,
        tree: str,
        source: str,
        document: ElementStream,
        read: bytes | MessageRefused | None = None,
    ) -> ElementStream:
        """The graph of RDF/XML, striped, and closed by the taxonomies of the tree; MessageRefused
        where it means none, which is counted as ``no_graph``.  ``read``: in binary, or why it means
        none, if another process has read it."""
        self.counted.graphs_derived += 1
        begun = self._clock()
        try:
            if isinstance(read, bytes):
                return self.decode(source, WireFormat.BINARY, read)
            if read is not None:
                raise read
            closure = self._closure(tree)
            return graph_of_document(document, self._graph_limits, self._base(source), closure)
        except MessageRefused:
            self.counted.no_graph += 1
            raise
        finally:
            self._seconds += self._clock() - begun

    def encode(self, source: str, form: WireFormat, stream: ElementStream) -> bytes:
        self.counted.encoded += 1
        known = self._control.dictionary_of(source) if takes_words(form) else None
        return encode(stream, form, known or EMPTY_DICTIONARY)

    def unpack(self, source: str, wire_format: WireFormat, payload: bytes) -> bytes:
        """The payload in ``wire_format.form``; DecodeError as above."""
        if wire_format.compression:
            self.counted.unpacked += 1
        return unpack(payload, wire_format, self._limits, self._trained.lookup(source))

    def pack(
        self, source: str, wire_format: WireFormat, form: bytes, level: int | None, trained: bool
    ) -> bytes:
        """Compress a form; ``trained`` False leaves out the source's compression dictionary."""
        self.counted.packed += 1
        dictionary = self._trained.newest(source, wire_format.form) if trained else None
        return compress(form, wire_format.compression, level, dictionary)

    def _base(self, source: str) -> str:
        """Of the graphs of a source."""
        return self._control.base_of(source)

    def has_words(self, source: str) -> bool:
        """Whether the dictionary form saves anything for this source."""
        return self._control.dictionary_of(source) is not None


def takes_words(wire_format: WireFormat) -> bool:
    """Whether it is a dictionary form."""
    return wire_format.form is WireFormat.DICTIONARY


def is_media_type(name: str) -> bool:
    """Whether the format of a message that is published is that of a graph, no wire format."""
    return "/" in name


def wire_format_of(name: str) -> WireFormat:
    """DecodeError ``unknown-format`` for one of another release."""
    try:
        return WireFormat(name)
    except ValueError:
        raise DecodeError("unknown-format", f"no wire format {name!r}") from None
