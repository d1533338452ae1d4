"""``python -m benchmarks survive`` has the keys that are promised.

What comes of the faults themselves is seen by tests/survival, which the benchmark measures with:
its verdicts are given here, and a catalog is really rebuilt.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest

from benchmarks.__main__ import main
from benchmarks.survive.benchmark import SURVIVE
from tests.survival import killed_ends
from tests.survival.chaos import Chaos
from tests.survival.killed_ends import KilledEnds
from tests.survival.ledger import Verdict

PROMISED = {
    *("lost", "doubled", "disordered", "takeover_p99_s", "detected_s", "others_p99_ratio"),
    *("publisher_crash_doubles", "upgrade_p99_s"),
}


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> tuple[Verdict, killed_ends.Verdict]:
    """Of the chaos and of ends that are killed, without either."""
    chaos, ends = Verdict(100, 300), killed_ends.Verdict(kills=Counter(nothing=1), messages=2_000)

    async def of_chaos(self: Chaos) -> Verdict:
        return chaos

    async def of_ends(self: KilledEnds) -> killed_ends.Verdict:
        return ends

    monkeypatch.setattr(Chaos, "run", of_chaos)
    monkeypatch.setattr(KilledEnds, "run", of_ends)
    return chaos, ends


def measured(capsys: pytest.CaptureFixture[str], *parts: str) -> dict[str, object]:
    assert main(["survive", "--part", *parts, "--profiles", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.usefixtures("verdicts")
def test_the_quick_version_measures_what_it_can(capsys: pytest.CaptureFixture[str]) -> None:
    assert SURVIVE.quick is not None
    parts = "chaos", "publisher", "rebuild"
    assert SURVIVE.quick[:4] == ("--part", *parts)
    found = measured(capsys, *parts)
    assert found.keys() >= PROMISED
    for key in ("lost", "doubled", "disordered", "publisher_crash_doubles"):
        assert found[key] == 0, key
    assert (found["acknowledged"], found["delivered"]) == (100, 300)
    assert isinstance(found["rebuild_s"], float) and found["rebuild_s"] > 0
    assert found["takeover_p99_s"] is None, "it takes a server that need not be there"


def test_what_is_lost_or_doubled_is_no_good_result(
    capsys: pytest.CaptureFixture[str], verdicts: tuple[Verdict, killed_ends.Verdict]
) -> None:
    chaos, ends = verdicts
    chaos.lost = 1
    assert main(["survive", "--part", "chaos", "--json"]) == 1
    assert "lost 1" in capsys.readouterr().err
    ends.doubled["journal"] = 1
    assert main(["survive", "--part", "publisher", "--json"]) == 1
    assert "journal" in capsys.readouterr().err
