"""What a message costs in each format: measured on the message itself, with the broker's clock.

Encoding is what this broker would have to do, which is nothing for the format in which the
message came; decoding is done here in place of the neighbour, for which the same processor is
assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from formats import WireFormat
from onyx.broker.packing.codebook import Codebook
from onyx.broker.packing.format_choice import Cost
from onyx.broker.packing.parcel import Packing, Parcel


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
