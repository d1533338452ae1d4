"""The same bytes as the codec's, for any slots and numbers."""

from __future__ import annotations

from random import Random

import pytest

from overlay.link.errors import ProtocolError
from overlay.link.frame_codec import LENGTH_BYTES, ResultsEncoder, decode, encode, read_one
from overlay.link.frames import Deliveries, columns, packed_numbers, packed_slots


@pytest.mark.parametrize("seed", range(10))
def test_it_writes_what_the_codec_writes(seed: int) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    for _ in range(50):
        results = [
            random.randbytes(random.choice((0, 3, 300))) for _ in range(random.randint(0, 40))
        ]
        what = f"source {seed}", random.randint(1, 10**12), list(map(len, results))
        payload = b"".join(results)
        encoder = ResultsEncoder(*what, payload)
        for count in (0, 1, 2, 31, 32, 1000):
            slots = [random.randint(0, 2**32 - 1) for _ in range(count)]
            numbers = [random.randint(1, 10**15) for _ in range(count)]
            columns = packed_slots(slots), packed_numbers(numbers)
            frame = encode(Deliveries(*what, *columns, payload))
            assert encoder.head(slots, numbers) + payload == frame
            if count == 1:
                assert encoder.head_of_one(slots[0], numbers[0]) + payload == frame


def test_it_refuses_what_the_codec_refuses() -> None:
    with pytest.raises(ProtocolError):
        ResultsEncoder("s" * 300, 1, [1], b"x")
    with pytest.raises(ProtocolError):
        ResultsEncoder("s", 1, [2], b"x")


@pytest.mark.parametrize("seed", range(10))
def test_what_is_read_quickly_is_what_the_codec_reads(seed: int) -> None:
    """And nothing is that the codec refuses: of each frame bytes are changed, cut and added."""
    print(f"seed {seed}")
    random = Random(seed)
    quickly = 0
    for _ in range(300):
        results = [random.randbytes(random.choice((0, 3, 300, 70_000))) for _ in range(2)]
        lengths = list(map(len, results))
        encoder = ResultsEncoder("s1", random.randint(1, 10**12), lengths, b"".join(results))
        whole = encoder.head_of_one(
            random.randint(0, 2**32 - 1), random.randint(0, 2 ** random.choice((40, 62)))
        )
        data = bytearray(whole[LENGTH_BYTES:] + encoder.payload)
        for _ in range(random.choice((0, 0, 1, 2))):
            at = random.randrange(min(len(data), 90))
            data[at : at + random.randint(0, 2)] = random.randbytes(random.randint(0, 2))
        around = random.randbytes(random.choice((0, 7)))
        begin = len(around)
        read = read_one(around + bytes(data) + around, begin, begin + len(data))
        if read is not None:
            quickly += 1
            frame, slot, number = read
            assert decode(bytes(data)).frame == frame
            assert list(columns(frame)) == [(slot, number)]
    assert quickly > 50
