"""``frames``: what it costs to read and to write a frame of the protocol.

The baseline of reading is the header looked at field by field, as any that is not just what this
release writes; beside it msgpack alone, which checks nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time_ns

import msgpack

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, positive
from benchmarks.report import Report
from benchmarks.samples import median
from overlay.link import frame_codec
from overlay.link.frame import Frame
from overlay.link.frame_codec import LENGTH_BYTES, ExactHeaders, decode, encode
from overlay.link.frames import (
    Ack,
    Deliveries,
    Message,
    Publish,
    Taken,
    packed_numbers,
    packed_slots,
)

FRAMES: tuple[Frame, ...] = (
    Publish("s1-w7d4bz3h", "text", bytes(1000)),
    Message("B2", "s1-w7d4bz3h", 1234, "binary", 1, bytes(1000)),
    Ack(2, "B2", 1234),
    Deliveries("s1-w7d4bz3h", 1234, [1000], packed_slots([7]), packed_numbers([99]), bytes(1000)),
    Taken(packed_slots([7]), packed_numbers([99])),
)
BATCH = 200
_NO_FRAME = ExactHeaders([])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--rounds", metavar="N", type=positive, default=200)


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where the two ways differ."""
    report = Report("frames: reading and writing a frame")
    report.condition("machine", "machine", machine.description())
    for frame in FRAMES:
        place = ("B2", 1234) if frame.sequenced else ("", 0)
        data = encode(frame, *place)[LENGTH_BYTES:]
        header = data[2 : 2 + int.from_bytes(data[:2], "big")]
        with _field_by_field():
            expected = decode(data)
        if decode(data) != expected or expected.frame != frame:
            raise WrongAnswers(f"{frame.type} is read as {decode(data)}")
        ways: dict[str, Callable[[], object]] = {
            "read": lambda data=data: decode(data),  # type: ignore[misc]
            "fields": lambda data=data: decode(data),  # type: ignore[misc]
            "msgpack": lambda header=header: msgpack.unpackb(header),  # type: ignore[misc]
            "write": lambda frame=frame, place=place: encode(frame, *place),  # type: ignore[misc]
        }
        taken = _in_turn(ways, options.rounds)
        name = frame.type
        report.figure(f"{name}_fields_us", f"{name}, field by field", taken["fields"], "us", None)
        base = f"{name}_fields_us"
        report.figure(f"{name}_read_us", f"{name}, read", taken["read"], "us", base)
        report.figure(f"{name}_msgpack_us", f"{name}, msgpack", taken["msgpack"], "us", base)
        report.figure(f"{name}_write_us", f"{name}, written", taken["write"], "us", None)
    report.remark("processor time, the median of batches of 200 in turn")
    return report


@contextmanager
def _field_by_field() -> Iterator[None]:
    usual = frame_codec._exact
    frame_codec._exact = _NO_FRAME
    try:
        yield
    finally:
        frame_codec._exact = usual


def _in_turn(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Microseconds of each, the median."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            if name == "fields":
                with _field_by_field():
                    samples[name].append(_batch_us(way))
            else:
                samples[name].append(_batch_us(way))
    return {name: median(some) for name, some in samples.items()}


def _batch_us(way: Callable[[], object]) -> float:
    start = thread_time_ns()
    for _ in range(BATCH):
        way()
    return (thread_time_ns() - start) / 1000 / BATCH


FRAMES_BENCHMARK = Benchmark(
    name="frames",
    summary="reading and writing a frame of the protocol",
    add_options=add_options,
    quick=("--rounds", "20"),
    run=run,
)
