"""Folders stay within their budgets of lines, and no more of them import each other in a knot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import budgets
from tests.budgets import Budgets, above, below, knots_now, lines_now, lowered, new_knots
from tests.modules import MODULES, name_of, named_in_cython


def test_no_folder_is_above_its_budget() -> None:
    wrong = [*above(lines_now(), Budgets.committed().lines)]
    assert not wrong, (
        "take lines out; a new folder gets a budget by `python -m tests.budgets`; where code has "
        "moved from another folder, move so many lines of budget in tests/budgets.toml by hand"
    )


def test_no_budget_is_left_high() -> None:
    assert not [*below(lines_now(), Budgets.committed().lines)], "python -m tests.budgets"


def test_knots_of_folders_only_come_undone() -> None:
    known, found = Budgets.committed().knots, knots_now()
    assert not new_knots(found, known), "a folder must not import a folder that imports it"
    assert found == known, "python -m tests.budgets"


def test_budgets_only_fall() -> None:
    before = {"a": 100, "b": 50, "gone": 30}
    assert lowered({"a": 90, "b": 60, "new": 35}, before) == {"a": 90, "b": 50, "new": 35}
    assert lowered({"a": 100, "b": 60, "new": 35}, before) == {"a": 100, "b": 50}
    assert [*above({"a": 101, "new": 1}, {"a": 100})] == [
        "a: 101 lines, 1 above its budget",
        "new: 1 lines, and no budget",
    ]
    assert [*below({"a": 78, "b": 950}, {"a": 100, "b": 1000, "gone": 1})] == [
        "b: 950 lines, 50 below its budget",
        "gone: is gone",
    ]


def test_a_part_of_a_knot_is_no_new_one() -> None:
    known = [["a", "b", "c"]]
    assert new_knots([["a", "c"]], known) == []
    assert new_knots([["a", "d"]], known) == [["a", "d"]]


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "budgets.toml"
    monkeypatch.setattr(budgets, "FILE", file)
    for made in (Budgets({"formats": 1, "formats/graph": 22}, [["a", "b/c"]]), Budgets({}, [])):
        file.write_text(made.written(), encoding="utf-8")
        assert Budgets.committed() == made


def test_imports_of_cython_are_seen() -> None:
    text = """# cython: language_level=3
'''An example:

    from formats import decode
'''
from formats.columns cimport Words, Cuts as Other  # from x import y
from formats.columns import (
    scan,  # of bytes
    Scanner as S,
)
cimport cython
import os.path, sys
cdef int important = 1
    from yfilter.errors import ProfileRefused
"""
    assert named_in_cython(text) == [
        ("formats.columns", "Words"),
        ("formats.columns", "Cuts"),
        ("formats.columns", "scan"),
        ("formats.columns", "Scanner"),
        ("cython", ""),
        ("os.path", ""),
        ("sys", ""),
        ("yfilter.errors", "ProfileRefused"),
    ]


def test_a_module_is_named_by_its_file() -> None:
    assert name_of(Path("yfilter/index/automaton.pyx")) == "yfilter.index.automaton"
    assert name_of(Path("yfilter/index/__init__.py")) == "yfilter.index"
    assert MODULES["tests.modules"] == Path("tests/modules.py")
