"""A short run of the fuzzer; ``python -m tests.fuzz.decoders`` does long ones."""

from __future__ import annotations

import pytest

from formats import WireFormat
from tests.fuzz.decoders import fuzz


@pytest.mark.parametrize("seed", range(2))
def test_decoders_refuse_or_read(seed: int) -> None:
    outcome = fuzz(seed, 9_000)
    for wire_format in WireFormat:
        read = outcome[f"{wire_format} read"]
        assert 0 < read < 900, wire_format  # damage is neither harmless nor always fatal
