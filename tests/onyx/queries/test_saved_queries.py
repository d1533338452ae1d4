"""Queries that are saved by a name are relations: of other queries, in files and behind caches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onyx.cli.main import main
from onyx.errors import EXIT_DATA, EXIT_USAGE, UsageError
from onyx.queries import Catalog, QueryRefused
from onyx.queries.saved import save_query
from registration.queries.sql_reader import read_query
from tests.onyx.queries.test_catalog import SMALL, cache_of, said

TEXT = "SELECT id, upper(name) AS \"n\u00e4me\" -- it's\nFROM A.R WHERE name LIKE '\\\\_\"x'"


def test_a_saved_query_is_a_relation_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    market, out = said(tmp_path, SMALL), tmp_path / "mine.ttl"
    query = tmp_path / "q.sql"
    query.write_text(TEXT.replace('"n\u00e4me"', "`n\u00e4me`"))
    catalog = ["--catalog", str(market), "--json"]
    assert main(["query", str(query), *catalog, "--save", "mine.low", "--out", str(out)]) == 0
    last = json.loads(capsys.readouterr().out)
    assert last == {
        "saved": "mine.low", "file": str(out), "columns": ["id int", "n\u00e4me string"],
    }  # fmt: skip
    out.write_text("# by hand\n" + out.read_text())
    both = [*catalog, "--catalog", str(out)]
    assert (
        main(["query", "SELECT id FROM mine.low", *both, "--save", "A.l", "--out", str(out)]) == 0
    )
    found = Catalog.read(market, out).market
    low, lower = found.relation("mine.low"), found.relation("A.l")
    assert low is not None
    assert lower is not None
    assert (low.format, low.location) == ("query", query.read_text())
    assert lower.provider == found.relations[next(iter(found.relations))].provider
    (unit,) = read_query("SELECT id FROM A.l", found).graph.units
    assert unit.block is not None
    assert unit.block.units[0].block is not None
    assert [each.name for each in unit.block.units[0].columns] == ["id"], "no column in vain"
    capsys.readouterr()
    assert main(["query", "SELECT * FROM A.l", *both, "--explain"]) == 0
    assert '"relation": "A.R"' in capsys.readouterr().out
    assert out.read_text().startswith("# by hand\n")


def test_a_query_is_saved_again_in_its_place_and_never_made_of_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog, out = Catalog.read(said(tmp_path, SMALL)), tmp_path / "mine.ttl"
    save_query("A.a", "SELECT id FROM A.R", catalog, out)
    save_query("A.b", "SELECT id FROM A.a", catalog, out)
    (column,) = save_query("A.a", "SELECT id, 1 AS b FROM A.R", catalog, out)[1:]
    assert (column.name, len(out.read_text().splitlines())) == ("b", 2)
    before = out.read_text()
    with pytest.raises(QueryRefused, match=r"A\.a is made of itself: A\.a of A\.b of A\.a"):
        save_query("A.a", "SELECT id FROM A.b", catalog, out)
    with pytest.raises(QueryRefused, match=r"A\.c is made of itself|no relation A\.c"):
        save_query("A.c", "SELECT * FROM A.c", catalog, out)
    with pytest.raises(QueryRefused, match="no column nome"):
        save_query("A.a", "SELECT nome FROM A.R", catalog, out)
    for name, file in (("a", out), ("A.a.b", out), ("A.`", out), ("A.a", tmp_path / "mine.xml")):
        with pytest.raises(UsageError, match=r"expected PROVIDER\.NAME"):
            save_query(name, "SELECT 1", catalog, file)
    assert out.read_text() == before
    market = tmp_path / "market.ttl"
    assert main(["query", "SELECT 1", "--catalog", str(market), "--save", "A.x"]) == EXIT_USAGE
    wrong = ["query", "SELECT 1 +", "--catalog", str(market), "--save", "A.x", "--out", str(out)]
    assert main(wrong) == EXIT_DATA
    assert "[syntax]" in capsys.readouterr().err


def test_a_file_of_saved_queries_names_relations_of_a_cache(tmp_path: Path) -> None:
    with cache_of(tmp_path, SMALL) as cache:
        out = tmp_path / "mine.ttl"
        save_query("mine.low", "SELECT f(id) AS x FROM A.R", Catalog.of(cache), out)
        market = Catalog.of(cache, out).market_for("SELECT x FROM mine.low")
        (unit,) = read_query("SELECT x FROM mine.low", market).graph.units
        assert unit.block is not None
        assert unit.block.units[0].relation == market.relation("A.R")
