"""``python -m benchmarks graph`` on few messages: it measures what it says; no time is asserted."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.graph.catalogue import Catalogue


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


def test_a_network_is_measured_over_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "--part", "network", "--messages", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    over = found["loop_us"] / found["network_us"]
    assert found["network_over_loop"] == pytest.approx(over, rel=0.01)
    assert found["network_deliveries"] > 0
