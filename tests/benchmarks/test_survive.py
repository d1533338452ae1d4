"""``python -m benchmarks survive`` runs, and has the keys that are promised."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.survive.benchmark import SURVIVE

PROMISED = {
    *("lost", "doubled", "disordered", "takeover_p99_s", "detected_s", "others_p99_ratio"),
    *("publisher_crash_doubles", "upgrade_p99_s"),
}


def test_the_quick_version_measures_what_it_can(capsys: pytest.CaptureFixture[str]) -> None:
    assert SURVIVE.quick is not None
    assert main(["survive", *SURVIVE.quick, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found.keys() >= PROMISED
    for key in ("lost", "doubled", "disordered", "publisher_crash_doubles"):
        assert found[key] == 0, key
    assert found["acknowledged"] and found["rebuild_s"] > 0
    assert found["takeover_p99_s"] is None, "it takes a server that need not be there"
