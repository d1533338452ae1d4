"""Structured fuzzing of every decoder: ``python -m tests.fuzz.decoders --inputs N --seed S``.

Each input starts from a valid payload, or from nothing, and is damaged in one of the ways below;
what is compressed is damaged inside and repacked, or damaged outside.  Whatever comes in, a decoder
gives a stream that satisfies every invariant or refuses with a code; nothing else may come out, no
input may take more than ``SECONDS_MAX`` of processor time, and the process may not grow by more
than ``GROWTH_MAX`` bytes.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from formats import (
    DecodeError,
    MessageLimits,
    MessageRefused,
    WireFormat,
    compress,
    decode,
    encode,
    make_dictionary,
    only,
    parse_text,
    to_text,
)
from formats.grammar import Grammar
from formats.wire import write_number
from tests.formats.support import assert_invariants

DICTIONARY = make_dictionary(
    ["p", "urn:one"],
    ["default", "v" * 200, "é"],
    Grammar(
        names=(("", "a"), ("", "item"), ("urn:one", "a"), ("urn:d", "b"), ("", "x"), ("", "b")),
        attributes=((4,), (5,), (), (), (), ()),
        first=(1, 1, 1, 0, 0, 1),
        following=(0, 7, 0, 11, 0, 0),
        root=6,
    ),
)
LIMITS = MessageLimits(bytes_max=64 * 1024, expansion_max=256 * 1024)
BINARY_VERSION = 2  # the second byte of a binary form
SECONDS_MAX = 10.0
GROWTH_MAX = 64 * 1024 * 1024
DOCUMENTS = (
    b"<a/>",
    b'<a x="1">hi</a>',
    b"<a>t<b/>u</a>",
    b'<p:a xmlns:p="urn:one" p:x="1"><b xmlns="urn:d"/></p:a>',
    b'<!--c--><p:a xmlns:p="urn:one" xmlns="urn:d" p:x="default" y="&#233;">t<b>\xc3\xa9</b></p:a>',
    b'<a>u<b>default</b><?pi data?><item xmlns="" z=""> </item></a><!--e-->',
    b'<!DOCTYPE a [<!ENTITY e "x&#38;#38;y"><!ATTLIST a k CDATA "d">]><a>&e;<![CDATA[<]]></a>',
    b"<a>" + b'<item b="default">v</item>' * 30 + b"</a>",
)
HOSTILE_NUMBERS = (
    b"\x00", b"\x04", b"\x05", b"\x06",
    b"\x01", b"\x7f", b"\x80\x01", b"\xff\x7f", b"\xff\xff\x03", b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f", b"\xff" * 8, b"\x80" * 5 + b"\x00", b"\x02\xff\xff",
    b"\x04\xff\xff\xff\x7f",
)  # fmt: skip


def damage(chance: random.Random, payload: bytes) -> bytes:
    """One to four faults."""
    data = bytearray(payload)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data) + 1)
        kind = chance.randrange(8)
        if kind == 0:
            del data[place:]
        elif kind == 1 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 2 and place < len(data):
            data[place] = chance.choice((0, 1, 2, 4, 0x3C, 0x7F, 0x80, 0xFF))
        elif kind == 3:
            data[place:place] = chance.randbytes(chance.randint(1, 8))
        elif kind == 4:
            number = chance.choice(HOSTILE_NUMBERS)
            data[place : place + len(number)] = number
        elif kind == 5:
            other = chance.randrange(len(data) + 1)
            data[place:place] = data[other : other + chance.randint(1, 40)]
        elif kind == 6:
            del data[place : place + chance.randint(1, 8)]
        elif place < len(data):
            data[place] = (data[place] + chance.choice((-1, 1))) % 256
    return bytes(data[: 2 * LIMITS.bytes_max])


def make_input(chance: random.Random, wire_format: WireFormat, intact: list[bytes]) -> bytes:
    """``intact``: valid payloads of the format's form."""
    if chance.random() < 0.02:
        return chance.randbytes(chance.randrange(100))
    form = chance.choice(intact)
    damaged = damage
    if wire_format.form is not WireFormat.TEXT and chance.random() < 0.7:
        damaged = damage_within
    if not wire_format.compression:
        return damaged(chance, form)
    if chance.random() < 0.7:
        return compress(damaged(chance, form), wire_format.compression)
    return damage(chance, compress(form, wire_format.compression))


def damage_within(chance: random.Random, payload: bytes) -> bytes:
    """Faults in one or two parts of a binary form, whose sizes then say what they are: what is
    behind the first checks is reached."""
    start = 2 if payload[1] == BINARY_VERSION else 6
    head_size, at = _number(payload, start)
    head, at = payload[at : at + head_size], at + head_size
    sizes = []
    for _ in range(4):
        size, at = _number(payload, at)
        sizes.append(size)
    parts = [head]
    for size in sizes:
        parts.append(payload[at : at + size])
        at += size
    parts.append(payload[at:])
    for _ in range(chance.randint(1, 2)):
        number = chance.randrange(len(parts))
        parts[number] = damage(chance, parts[number])
    lengths = [write_number(len(part)) for part in parts[:5]]
    data = payload[:start] + lengths[0] + parts[0] + b"".join(lengths[1:]) + b"".join(parts[1:])
    return data[: 2 * LIMITS.bytes_max]


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] >= 0x80:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


def fuzz(seed: int, inputs: int, formats: Sequence[WireFormat] = tuple(WireFormat)) -> Counter[str]:
    """What came of so many inputs: by format, how many were read, and how many codes."""
    chance = random.Random(seed)
    held = peak_bytes()
    streams = [parse_text(document) for document in DOCUMENTS]
    intact = {
        form: [encode(stream, form, DICTIONARY) for stream in streams]
        for form in {wire_format.form for wire_format in WireFormat}
    }
    intact[WireFormat.TEXT] += DOCUMENTS
    outcome: Counter[str] = Counter()
    for number in range(inputs):
        wire_format = formats[number % len(formats)]
        data = make_input(chance, wire_format, intact[wire_format.form])
        begun = time.thread_time()
        try:
            stream = decode(data, wire_format, LIMITS, only(DICTIONARY))
        except (DecodeError, MessageRefused) as refusal:
            assert refusal.code and refusal.reason
            outcome[f"{wire_format} {refusal.code}"] += 1
        except BaseException:
            print(f"seed {seed}, input {number}, {wire_format}: {data.hex()}")
            raise
        else:
            outcome[f"{wire_format} read"] += 1
            if number % 16 < 4:
                try:
                    assert_invariants(stream)
                    if wire_format.form is not WireFormat.TEXT:
                        parse_text(to_text(stream))
                except MessageRefused as refusal:
                    # Limits count text differently; names of the fifth edition are not text.
                    assert refusal.code in {"too-large", "malformed", "entity-expansion"}
                except AssertionError:
                    print(f"seed {seed}, input {number}, {wire_format}: {data.hex()}")
                    raise
        assert time.thread_time() - begun < SECONDS_MAX, f"seed {seed}, input {number}"
        if number % 1024 == 0:
            assert peak_bytes() - held < GROWTH_MAX, f"seed {seed}, before input {number}"
    assert peak_bytes() - held < GROWTH_MAX, f"seed {seed}"
    return outcome


def peak_bytes() -> int:
    """The most that this process has held in memory so far, or since ``peak_from_now``."""
    if sys.platform != "linux":
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    found = re.search(rb"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_bytes())
    assert found is not None
    return 1024 * int(found[1])


def peak_from_now() -> int:
    """What it holds now, from where Linux counts its peak on; elsewhere the peak so far."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--formats",
        nargs="+",
        type=WireFormat,
        default=tuple(WireFormat),
        metavar="FORMAT",
        help="wire formats, such as binary or dictionary+zstd (default: all)",
    )
    options = parser.parse_args()
    outcome = fuzz(options.seed, options.inputs, options.formats)
    for what, count in sorted(outcome.items()):
        print(f"{count:>10,}  {what}")
    print(f"{outcome.total():>10,}  inputs, seed {options.seed}")


if __name__ == "__main__":
    main()
