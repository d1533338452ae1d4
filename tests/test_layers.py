"""The fast layer of the tests: what is in it, and that it starts no process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.layers import SINGLE, Seeds, is_slow, is_slow_place, no_processes

ROOT = Path(__file__).parents[1]
STARTS: dict[str, Callable[[], object]] = {
    "Popen": lambda: subprocess.Popen([sys.executable, "-c", ""]),
    "fork": os.fork,
    "posix_spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "system": lambda: os.system("true"),
}


@pytest.mark.parametrize("start", STARTS)
def test_a_process_fails_the_test_that_starts_it(start: str) -> None:
    expected = pytest.raises(pytest.fail.Exception, match="starts a process")
    with no_processes(), expected, suppress(Exception):
        STARTS[start]()


def test_places_are_slow_with_all_below_them() -> None:
    assert is_slow_place("tests/survival")
    assert is_slow_place("tests/survival/test_chaos.py")
    assert not is_slow_place("tests/survival_of_names.py")
    assert not is_slow_place("tests")


def test_what_is_named_is_there() -> None:
    for name in SINGLE:
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"def {test.rpartition('::')[2]}(" in text or "runTest" in test, name


def _item(nodeid: str, *fixtures: str, **params: object) -> Any:
    return SimpleNamespace(
        nodeid=nodeid, fixturenames=fixtures, callspec=SimpleNamespace(params=params)
    )


def test_whoever_uses_what_runs_is_slow() -> None:
    assert is_slow(_item("tests/yfilter/test_x.py::test_a", "network"))
    assert not is_slow(_item("tests/yfilter/test_x.py::test_a", "tmp_path"))


def test_the_first_seeds_are_taken_of_each_case() -> None:
    seeds = Seeds(2)
    test = "tests/test_x.py::test_a"
    items = [_item(f"{test}[{a}-{n}]", a=a, seed=n) for a in "xy" for n in range(5)]
    taken = [item.nodeid for item in items if seeds.takes(item)]
    assert taken == [f"{test}[{a}-{n}]" for a in "xy" for n in range(2)]
    assert all(seeds.takes(_item(f"{test}[{a}]", a=a)) for a in "pqr")
