"""LinkFormats: how a message is written on each link, in this direction (section 4.3.2).

The topology says what a link speaks, or leaves it to what is measured (``format = "auto"``,
format_choice.py).  A message is in that format unless its source or the neighbour lacks what it
takes::

    the link's format ── no words of a schema ──────────> binary in place of dictionary
                      ── the neighbour gave one back ───> the same, without any dictionary
                      ── not in the neighbour's hello ──> binary, not compressed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from formats import WireFormat
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.codebook import Codebook, takes_words
from onyx.broker.packing.format_choice import CANDIDATES, Cost, FormatChoice
from onyx.broker.packing.give_backs import GiveBacks
from onyx.broker.packing.parcel import Packing, Parcel
from overlay.link.core_context import CoreContext
from overlay.nodes import AUTO, Link
from overlay.statistics import ChosenFormat

# -------------------------------------------------------------------------------------------------
# What a message costs in each format: measured on the message itself, with the broker's clock.
#
# Encoding is what this broker would have to do, which is nothing for the format in which the
# message came; decoding is done here in place of the neighbour, for which the same processor is
# assumed.


def measure_costs(
    parcel: Parcel,
    packings: Iterable[Packing],
    codebook: Codebook,
    clock: Callable[[], float],
) -> dict[WireFormat, Cost]:
    """``clock`` gives seconds of processor time; ``codebook`` is one whose counts nobody reads."""
    costs = {}
    forms: dict[WireFormat, tuple[bytes, float]] = {}  # a form is made once for all its packings
    for packing in packings:
        wire_format, form = packing.wire_format, packing.wire_format.form
        if packing.is_as_it_came(parcel):
            payload, encode_seconds = parcel.payload, 0.0
        else:
            if form not in forms:
                forms[form] = _timed(clock, partial(_form, parcel, form, codebook))
            payload, encode_seconds = forms[form]
            if wire_format.compression:
                pack = partial(codebook.pack, parcel.source, wire_format, payload)
                payload, seconds = _timed(clock, partial(pack, packing.level, packing.trained))
                encode_seconds += seconds
        began = clock()
        codebook.decode(parcel.source, wire_format, payload)
        decode_seconds = clock() - began
        costs[wire_format] = Cost(len(payload), encode_seconds * 1e6, decode_seconds * 1e6)
    return costs


def _form(parcel: Parcel, form: WireFormat, codebook: Codebook) -> bytes:
    if form is parcel.wire_format.form and not parcel.is_cut:
        return codebook.unpack(parcel.source, parcel.wire_format, parcel.payload)
    return codebook.encode(parcel.source, form, parcel.stream)


def _timed(clock: Callable[[], float], make: Callable[[], bytes]) -> tuple[bytes, float]:
    began = clock()
    made = make()
    return made, clock() - began


# -------------------------------------------------------------------------------------------------


class LinkFormats:
    """The format of each message on each child link."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        measuring: Codebook,
        give_backs: GiveBacks,
    ) -> None:
        self._control = control
        self._links = context.links
        self._give_backs = give_backs
        self._clock = context.clock
        self._measuring = measuring
        self._choices: dict[str, FormatChoice] = {}

    def packing_for(self, parcel: Parcel, child: str) -> Packing:
        """A child that is away has not said what it reads; it gets the link's format, and would
        give back what it could not read."""
        link = self._control.shapes.link(self._control.identity, child)
        listed = self._links.peer_formats(f"broker/{child}")
        if link.format == AUTO:
            wanted = self._chosen(parcel, child, link, listed)
        else:
            wanted = WireFormat(link.format)
        packing = self._within_means(wanted, link, child, parcel.source)
        if listed and packing.wire_format.value not in listed:
            self._give_backs.counted.unlisted_format += 1
            return Packing(WireFormat.BINARY)
        return packing

    def format_of(self, child: str) -> str:
        """What messages to a neighbour are in now, if nothing speaks against it."""
        link = self._control.shapes.link(self._control.identity, child)
        choice = self._choices.get(child)
        return str(link.format) if choice is None else choice.chosen.value

    def chosen(self) -> dict[str, ChosenFormat]:
        """Of the links that choose, what and why."""
        neighbours = self._control.shapes.neighbours()  # others are gone
        of_links = ((child, each) for child, each in self._choices.items() if child in neighbours)
        return {child: each.statistics(self._bandwidth(child)[1]) for child, each in of_links}

    def _chosen(self, parcel: Parcel, child: str, link: Link, listed: Sequence[str]) -> WireFormat:
        choice = self._choices.setdefault(child, FormatChoice())
        if choice.is_due():
            packings = {
                wanted: self._within_means(wanted, link, child, parcel.source)
                for wanted in CANDIDATES
                if not listed or wanted.value in listed
            }
            costs = measure_costs(
                parcel, dict.fromkeys(packings.values()), self._measuring, self._clock
            )
            bytes_per_second, _ = self._bandwidth(child)
            of_wanted = {wanted: costs[p.wire_format] for wanted, p in packings.items()}
            choice.measured(of_wanted, bytes_per_second)
        return choice.chosen

    def _within_means(self, wanted: WireFormat, link: Link, child: str, source: str) -> Packing:
        trained = (child, source) not in self._give_backs.lacking
        if takes_words(wanted) and not (trained and self._measuring.has_words(source)):
            wanted = wanted.without_dictionary
        return Packing(wanted, link.level if wanted.compression else None, trained)

    def _bandwidth(self, child: str) -> tuple[float, str]:
        """(bytes a second, how that is known): given in the topology, measured, or assumed."""
        link = self._control.shapes.link(self._control.identity, child)
        expected = link.bandwidth_kbps * 1000 / 8
        if link.bandwidth_given:
            return expected, "given"
        measured = self._links.delivery_rate(f"broker/{child}")
        return (expected, "assumed") if measured is None else (measured, "measured")
