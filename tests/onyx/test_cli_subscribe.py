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


@pytest.mark.parametrize("arguments", [[], ["p1", "--user", "ann"]])
def test_profiles_are_named_or_a_user_is(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["subscribe", *arguments]) == 2
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
