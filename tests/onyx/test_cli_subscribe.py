"""What ``onyx subscribe`` writes of deliveries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onyx.cli.main import main
from onyx.cli.subscribe import _Writer
from onyx.client_values import Delivery

OVER_LIMIT = Delivery("p1", "s1", 7, [], "it takes too long [too-much-time]")


def test_results_beyond_a_limit_are_said_in_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not _Writer(tmp_path, as_json=False, count=2).write(OVER_LIMIT)
    assert list(tmp_path.iterdir()) == []
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "onyx: p1: message 7 of s1 gave no results, as a limit of the broker forbids it: "
        "it takes too long [too-much-time]\n"
    )


def test_first_results_are_written_and_what_is_not_there_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cut_short = Delivery("p1", "s1", 7, [b"<a/>", b"<b/>"], "5 more: too many [result-too-large]")
    _Writer(None, as_json=False, count=2).write(cut_short)
    printed = capsys.readouterr()
    assert printed.out == "<a/>\n<b/>\n"
    assert printed.err == (
        "onyx: p1: message 7 of s1 gave the first 2 of its results, as a limit of the broker "
        "forbids more: 5 more: too many [result-too-large]\n"
    )
    _Writer(None, as_json=True, count=2).write(cut_short)
    line = json.loads(capsys.readouterr().out)
    assert (line["over_limit"], line["limit"]) == (True, cut_short.limit)
    assert line["results"] == ["<a/>", "<b/>"]


def test_profiles_are_named_or_a_user_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subscribe", "p1", "--user", "ann"]) == 2
    assert "name profiles, or a user with --user" in capsys.readouterr().err


def test_results_beyond_a_limit_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    writer = _Writer(None, as_json=True, count=2)
    assert not writer.write(OVER_LIMIT)
    assert writer.write(Delivery("p1", "s1", 8, [b"<x/>"]))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {
            "profile": "p1",
            "source": "s1",
            "number": 7,
            "over_limit": True,
            "limit": "it takes too long [too-much-time]",
            "results": [],
        },
        {"profile": "p1", "source": "s1", "number": 8, "results": ["<x/>"]},
    ]
