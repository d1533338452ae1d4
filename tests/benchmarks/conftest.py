"""Benchmarks in tests: that they answer is looked at, not how fast they are."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def no_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark collects garbage before it measures: a second each time, among all tests."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
