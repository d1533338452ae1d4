"""``python -m benchmarks graph`` on few messages: it measures what it says; no time is asserted."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.graph.catalogue import Catalogue
from benchmarks.graph.paper_figure import PaperFigure


def test_reading_is_measured_over_pyoxigraph(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "--part", "reading", "--messages", "2", "--rounds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    for name in ("root", "n_triples", "json_ld", "rdf_xml", "hop"):
        assert found[f"{name}_over_p"] == pytest.approx(
            found[f"{name}_us"] / found["p_us"], rel=0.01
        )


def test_results_are_measured_by_solution(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--part", "results", "--messages", "2", "--rounds", "1", "--json"]
    assert main(["graph", *options]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    for name in ("message_graph", "candidate", "first_result", "further_solution"):
        assert isinstance(found[f"{name}_us"], float)


def test_the_graph_of_rdf_xml_is_measured_over_its_parsing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = ("--part", "rdf_xml", "--messages", "2", "--rounds", "1")
    assert main(["graph", *few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    for name in ("rdf_xml", "rdf_xml_feed"):
        measured = found[f"{name}_graph_us"] / found[f"{name}_parse_us"]
        assert found[f"{name}_over_parse"] == pytest.approx(measured, rel=0.01)


def test_profiles_are_read_by_shape_and_alone(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--part", "profiles", "--messages", "3", "--rounds", "1", "--json"]
    assert main(["graph", *options]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    for name in ("profile", "paths", "profile_alone", "paths_alone"):
        assert isinstance(found[f"{name}_us"], float)


def test_messages_are_as_large_as_they_are_said_to_be() -> None:
    catalogue = Catalogue(1)
    messages = [catalogue.message(number) for number in range(200)]
    assert 78 < sum(map(len, messages)) / len(messages) < 84
    assert messages[7] == Catalogue(1).message(7) != Catalogue(2).message(7)


def test_a_network_is_measured_over_a_loop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.graph.network.PROFILES", 300)
    assert main(["graph", "--part", "network", "--messages", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    over = found["loop_us"] / found["network_us"]
    assert found["network_over_loop"] == pytest.approx(over, rel=0.01)
    assert found["network_deliveries"] > 0


def test_all_that_is_promised_comes_in_one_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Merging is measured in test_graph_figures.py; here its figures are to come out.
    merged = PaperFigure("C9e", "", "", "", "", {}, {"useless_pairs_percent": 1.0})
    monkeypatch.setattr("benchmarks.graph.crowds.merging", lambda sizes: [merged])
    parts = ["reading", "matching", "classes", "crowd", "merging", "crossings"]
    few = ["--messages", "2", "--rounds", "1", "--matched", "1000", "--crowd", "20", "40"]
    options = [
        "--part",
        *parts,
        *few,
        "--merged-scale",
        "0.005",
        "--hosted",
        "10",
        "--classed",
        "50",
    ]
    assert main(["graph", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    measured = (
        *("root_over_p", "range_growth", "range_growth_xml", "add_ms", "remove_ms"),
        *("bytes_per_profile", "useless_pairs_percent", "crossings_over_optimum_budget"),
        *("all_in_1k_p", "ask_loop_ratio_1k", "classes_over_without", "all_classes_over_without"),
    )
    for name in measured:
        assert isinstance(found[name], float | int), name
    for name in ("all_in_10k_p", "all_in_100k_p", "all_in_1m_p", "ask_loop_ratio_100k"):
        assert found[name] is None
