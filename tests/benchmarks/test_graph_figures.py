"""``python -m benchmarks graph-figures`` on few subscriptions; no time is asserted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyoxigraph
import pytest

from benchmarks.__main__ import main
from benchmarks.graph.paper_workload import TOPSS, PaperWorkload, n_triples
from yfilter import Matcher


def test_figures_are_measured_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figures = ["G9g", "C9b", "C9e"]
    plots = ["--plots", str(tmp_path)] if _can_draw() else []
    assert main(["graph-figures", "--quick", "--json", "--figure", *figures, *plots]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(figures) <= set(found)
    assert "C9h" not in found, "what is measured beside it and was not asked for"
    part = found["C9b"]["ten edges and a bound"]
    assert found["range_growth"] == pytest.approx(part[-1][1] / part[0][1])
    assert found["C9e"]["of all pairs of publication and entry"][0] == [0, 0], "nothing was merged"
    assert found["useless_pairs_percent"] <= found["useless_of_passing_percent"]
    assert 0 <= found["useless_pairs_percent"] <= 100
    assert len(list(tmp_path.glob("*.png"))) == (2 if plots else 0)


def test_a_share_of_the_subscriptions_matches_each_publication() -> None:
    workload = PaperWorkload(replace(TOPSS, subscriptions=200, matching=0.02, publications=3))
    texts = workload.subscriptions()
    assert len(set(texts)) == 200
    for triples in workload.triples:
        assert len(triples) == 90
        store = pyoxigraph.Store()
        store.load(n_triples(triples).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
        assert sum(bool(store.query(text)) for text in texts) == 4


def test_publications_that_are_alike_are_wanted_by_some_and_others_by_nobody() -> None:
    workload = PaperWorkload(replace(TOPSS, subscriptions=200, matching=0.02, publications=5))
    texts = workload.subscriptions()
    matcher = Matcher()
    for text in texts:
        matcher.add(text)
    alike = [len(matcher.matched_numbers(publication)) for publication in workload.alike(20)]
    assert any(alike) and max(alike) <= 4, "of those that were parts of what it is like"
    assert not any(matcher.matched_numbers(publication) for publication in workload.others(20))


def _can_draw() -> bool:
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        return False
    return True
