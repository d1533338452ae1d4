"""How many examples tests of hypothesis take, always the same: CI a quarter of the usual ones, but
not under LEAST, a campaign all (``ONYX_EXAMPLES=1``)."""

from __future__ import annotations

import os
from fractions import Fraction
from math import ceil

from hypothesis import HealthCheck, settings

SHARE = Fraction(os.environ.get("ONYX_EXAMPLES", "1/4"))
LEAST = 20


def examples(usual: int) -> settings:
    """Decorates a test that takes ``usual`` examples."""
    return settings(
        max_examples=max(min(usual, LEAST), ceil(usual * SHARE)),
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
