"""Readings: what a profile looks at, the document or the graph, and which a message has.

===================  ======================  ===================================================
a message that is    its document            its graph
===================  ======================  ===================================================
XML                  the message             none
RDF/XML              the message             derived from it, when somebody first asks
a striped graph      none                    the message (formats/graph/striped.py)
===================  ======================  ===================================================

A profile is of one reading, and so is a disjunct of its routing query.  The root test decides: a
path that begins with the child ``Q{urn:onyx:graph}g`` of the message is of the graph reading, every
other one of the document reading.  So ``/*`` and ``//x`` never see a striped graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol, TypeAlias

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph.striped import GRAPH, GRAPH_NAMESPACE
from formats.graph.vocabulary import RDF
from formats.limits import MessageLimits
from formats.text import parse_text
from yfilter.language.query_ast import NameTest

GRAPH_ROOT = NameTest(GRAPH_NAMESPACE, GRAPH)
RDF_XML_ROOT = NameTest(RDF, "RDF")


class Reading(IntEnum):
    """Of what a path is."""

    DOCUMENT = 0
    GRAPH = 1


class Step(Protocol):
    """A step of a path, of elements."""

    @property
    def descendant(self) -> bool: ...

    @property
    def test(self) -> NameTest | None: ...


def reading_of(steps: Sequence[Step]) -> Reading:
    """The reading of a path from the message, by its steps."""
    if steps and steps[0].test == GRAPH_ROOT and not steps[0].descendant:
        return Reading.GRAPH
    return Reading.DOCUMENT


Derive: TypeAlias = "Callable[[ElementStream], ElementStream | None]"
"""The striped graph of an RDF/XML document; None where it says none."""


class Readings:
    """One message; its graph is derived at most once."""

    __slots__ = ("_derive", "_graph", "document")

    def __init__(
        self,
        document: ElementStream | None,
        graph: ElementStream | None = None,
        derive: Derive | None = None,
    ) -> None:
        """``derive`` gives the graph of the document, if it is not given."""
        self.document = document
        self._graph = graph
        self._derive = derive

    @property
    def graph(self) -> ElementStream | None:
        """The striped graph."""
        if self._derive is not None and self.document is not None:
            self._graph, self._derive = self._derive(self.document), None
            if self._graph is not None:
                self._graph.accepted = self.document.accepted
        return self._graph

    def accept(self, clock: Callable[[], float]) -> None:
        """It is accepted now, by a clock of seconds of the epoch, if nobody has said when."""
        for stream in (self.document, self._graph):
            if stream is not None and stream.accepted is None:
                stream.accepted = round(clock() * 1_000_000)

    @property
    def carried(self) -> ElementStream:
        """The message as it travels: the document if it has one, else the graph."""
        stream = self.graph if self.document is None else self.document
        assert stream is not None, "a message has a reading"
        return stream

    def of(self, reading: Reading) -> ElementStream | None:
        """The message in one reading."""
        return self.graph if reading else self.document

    def in_(self, reading: Reading) -> ElementStream:
        """The same of a reading that the message is known to have."""
        stream = self.graph if reading else self.document
        assert stream is not None, "a query is found in the reading that it is of"
        return stream


Message: TypeAlias = bytes | ElementStream | Readings
"""As text, which is parsed at once; parsed, with the readings that its root element says; or as
readings, so that all who are asked about it share the graph."""


def graph_meant(document: ElementStream) -> ElementStream | None:
    """The graph of RDF/XML, None where it means none."""
    from formats.graph.reader import graph_of_document  # noqa: PLC0415 - few messages are RDF/XML

    try:
        return graph_of_document(document)
    except MessageRefused:
        return None


def readings_of(stream: ElementStream, derive: Derive = graph_meant) -> Readings:
    """Those of a message, by its root element; ``derive`` as of Readings, for RDF/XML."""
    root = stream.names[stream.element_name[0]]
    namespace = root.namespace
    if namespace == GRAPH_NAMESPACE and root.local == GRAPH:
        return Readings(None, stream)
    if namespace == RDF and root.local == RDF_XML_ROOT.local:
        return Readings(stream, None, derive)
    return Readings(stream)


def read(
    message: Message, limits: MessageLimits, derive: Derive, clock: Callable[[], float]
) -> Readings:
    """Those of a message in any form: text is parsed, and one of which nobody has said when it was
    accepted is accepted now.  MessageRefused."""
    if isinstance(message, bytes):
        message = parse_text(message, limits)
    if isinstance(message, ElementStream):
        message = readings_of(message, derive)
    if message.document is None or message.document.accepted is None:  # PERF: most have one
        message.accept(clock)
    return message
