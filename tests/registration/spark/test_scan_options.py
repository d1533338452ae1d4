"""The options with which a relation is read: of the catalog, and of the query."""

from __future__ import annotations

from pathlib import Path

import pytest

from registration.queries.providers import Relation
from registration.queries.query_plan import Scan
from registration.queries.stopped import QueryStopped
from registration.spark.scans import options_of

OPTIONS = (("source", "s1"), ("registration", "127.0.0.1:7"))


def scan(location: str, *arguments: tuple[str, str]) -> Scan:
    wire = Relation("w", "archive.wire", "a", ("c",), "archive", location, (), options=OPTIONS)
    return Scan("v", wire, (), arguments)


def test_an_archive_is_read_in_its_folder_or_by_its_brokers(tmp_path: Path) -> None:
    assert options_of(scan(str(tmp_path))) == {"source": "s1", "archive": str(tmp_path)}
    for away in ("", str(tmp_path / "elsewhere")):
        assert options_of(scan(away)) == dict(OPTIONS)


def test_a_query_gives_the_options_that_the_catalog_leaves_open(tmp_path: Path) -> None:
    assert options_of(scan(str(tmp_path), ("profile", "/m")))["profile"] == "/m"
    with pytest.raises(QueryStopped, match="takes no argument source"):
        options_of(scan(str(tmp_path), ("source", "s2")))
