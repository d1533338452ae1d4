"""Tests of faults start their processes as users do, since they are about starts and ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.forked import STARTED


@pytest.fixture(autouse=True, scope="module")
def real_starts(starts: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(subprocess, "Popen", STARTED)
        yield
