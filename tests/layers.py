"""The fast layer of the tests (``pytest --fast``, ``make fast``): about a minute, no processes.

A test is *slow* where it stands in a slow place, uses a fixture that runs something, or is one of
``slow_tests.txt``; it has the marker ``slow`` then.  Of a test with seeds the fast layer takes the
first, a whole run SEEDS; the simulation says itself how many.  A test of the fast layer that starts
a process fails, by the audit events of CPython, which multiprocessing does not send when it spawns.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FIXTURES = {
    *("figure4", "gateway_network", "issuer", "network", "two_brokers"),
    *("postgres", "saxon", "saxon_results", "spark"),
}
# What runs processes, Spark, browsers or simulations; with "/" behind it a folder.
PLACES = (
    "tests/benchmarks/",
    "tests/demo/",
    "tests/fuzz/",
    "tests/onyx/gateway/",
    "tests/registration/spark/",
    "tests/security/",
    "tests/simulation/",
    "tests/survival/",
)
# Single files and tests.
SINGLE = {
    line
    for line in Path(__file__).with_name("slow_tests.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
SEED_NAMES = ("seed", "first")
FAST_SEEDS = 1  # of each test
SEEDS = 2  # the same, in a whole run; all in a campaign
OWN_SEEDS = "tests/simulation/"  # which says itself how many

# Of CPython's audit events, those of a process that begins.
_STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
_STARTS.add("subprocess.Popen")


def is_slow_place(path: str) -> bool:
    """Whether all tests below ``path``, relative to the project, are slow."""
    return path in SINGLE or f"{path}/".startswith(PLACES)


def is_slow(item: pytest.Item) -> bool:
    test, _, params = item.nodeid.partition("[")
    uses = {*getattr(item, "fixturenames", ()), params.removesuffix("]")}
    return test in SINGLE or is_slow_place(test.partition("::")[0]) or not FIXTURES.isdisjoint(uses)


class Seeds:
    """Which of the tests that differ in their seeds only are among the first ``count``."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._seen: Counter[tuple[object, ...]] = Counter()

    def takes(self, item: pytest.Item) -> bool:
        """Asked once for each test, in their order."""
        params = getattr(getattr(item, "callspec", None), "params", {})
        if not any(name in params for name in SEED_NAMES):
            return True
        others = [f"{name}={value!r}" for name, value in params.items() if name not in SEED_NAMES]
        test = item.nodeid.partition("[")[0], *others
        self._seen[test] += 1
        return self._seen[test] <= self._count


class _Guard:
    """A hook cannot be taken out, so it is put in once and asks whether it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.is_there = False

    def __call__(self, event: str, _: object) -> None:
        if self.is_on and event in _STARTS:
            pytest.fail(f"a test of the fast layer starts a process ({event}): tests/layers.py")


_GUARD = _Guard()


@contextmanager
def no_processes() -> Iterator[None]:
    """Whoever starts one fails here, whatever exceptions they catch."""
    if not _GUARD.is_there:
        sys.addaudithook(_GUARD)
        _GUARD.is_there = True
    before, _GUARD.is_on = _GUARD.is_on, True
    try:
        yield
    finally:
        _GUARD.is_on = before
