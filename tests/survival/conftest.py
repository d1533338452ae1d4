"""Tests of faults that are about starts have processes that start as users start them; in a
campaign all have."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.forked import STARTED


@pytest.fixture(scope="module")
def real_starts(starts: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(subprocess, "Popen", STARTED)
        yield
