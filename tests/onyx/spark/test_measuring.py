"""Statistics of relations as Spark measures them, against those counted in Python."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.queries import figure1
from onyx.queries import Catalog
from onyx.queries.functions import read_archive
from onyx.queries.measuring import HEAD, machine_turtle, measured
from registration.queries.providers import CycleProvider

ROWS = 3_000


@pytest.fixture(scope="module")
def catalog_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return figure1.make(tmp_path_factory.mktemp("figure1"), rows=40)


def test_the_relations_of_figure_1_are_measured(
    spark: Any, catalog_file: Path, tmp_path: Path
) -> None:
    market = Catalog.read(catalog_file).market
    zipped = catalog_file.parent / "functions" / "wrap_s.zip"
    said = [HEAD, machine_turtle(market.sites[0])]
    for relation in market.relations.values():
        wrapper = market.functions.get(relation.wrapper or "")
        work = read_archive(zipped.read_bytes()).work(wrapper) if wrapper else None
        found = measured(spark, relation, work)
        assert found.rows == relation.rows
        assert found.bytes == relation.bytes
        assert found.refreshed is not None
        said.append(found.turtle())
    file = tmp_path / "measured.ttl"
    file.write_text("".join(said))
    after = Catalog.read(catalog_file, file).market
    nested = after.relation("B.T")
    assert nested is not None
    assert nested.columns[2].width == figure1.SIDE**2 + len(b"P5 64 64 255\n")
    assert (nested.columns[0].minimum, nested.columns[0].maximum) == ("0", "79")
    assert after.sites[0].memory_megabytes > 100


def test_columns_are_as_counted(spark: Any, tmp_path: Path) -> None:
    random = Random(3)
    rows = [
        {"n": random.choice([None, *range(40)]), "t": random.choice(["", "ß", "long " * 9])}
        for _ in range(ROWS)
    ]
    kinds = pa.schema([("n", pa.int64()), ("t", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, kinds), tmp_path / "x.parquet")
    catalog = tmp_path / "c.ttl"
    catalog.write_text(
        HEAD + '<#A> a q:DataProvider ; q:name "A" . <#R> a q:Relation ; q:name "R" ;'
        ' q:provider <#A> ; q:readAt <urn:onyx:query:client> ; q:format "parquet" ;'
        f' q:location "{tmp_path / "x.parquet"}" ; q:schema "n BIGINT, t STRING" .'
    )
    (relation,) = Catalog.read(catalog).market.relations.values()
    found = measured(spark, relation)
    number, text = found.columns
    assert found.rows == ROWS
    assert text.width == pytest.approx(sum(len(row["t"].encode()) for row in rows) / ROWS)
    numbers = [row["n"] for row in rows if row["n"] is not None]
    assert number.nulls == pytest.approx(1 - len(numbers) / ROWS)
    assert number.distinct == pytest.approx(len({*numbers}), rel=0.05)
    assert (number.minimum, number.maximum, number.width) == ("0", "39", 8)
    assert (text.distinct, text.nulls, text.minimum, text.maximum) == (3, 0, "", "ß")


def test_a_machine_says_its_figures(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("model name : x\ncpu MHz\t\t: 2445.406\n")
    said = machine_turtle(CycleProvider("urn:A", "A"), tmp_path)
    assert "q:cpu 2445" in said
    assert machine_turtle(CycleProvider("urn:A", "A"), tmp_path / "no").count("q:cpu") == 0
