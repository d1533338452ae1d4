"""The same bytes as the codec's, for any slots and numbers."""

from __future__ import annotations

from random import Random

import pytest

from overlay.link.errors import ProtocolError
from overlay.link.frame_codec import ResultsEncoder, encode
from overlay.link.frames import Deliveries, packed_numbers, packed_slots


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
            assert encoder.frame(slots, numbers) == encode(Deliveries(*what, *columns, payload))


def test_it_refuses_what_the_codec_refuses() -> None:
    with pytest.raises(ProtocolError):
        ResultsEncoder("s" * 300, 1, [1], b"x")
    with pytest.raises(ProtocolError):
        ResultsEncoder("s", 1, [2], b"x")
