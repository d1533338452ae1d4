"""Rows of scans are estimated by summaries and samples, and known once they were counted."""

from __future__ import annotations

import gzip
from dataclasses import replace as replace_fields
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyoxigraph import RdfFormat, parse

from onyx.queries.learning import Estimates, Observation
from overlay.archive_file import SUFFIX, ArchivedMessage, rank_of
from registration.queries.providers import Column, Relation
from registration.queries.query_plan import Figures, Scan
from registration.spark.archive_files import ArchiveFiles, files_of
from tests.overlay.test_archive_file import file_of, message

MESSAGES = 3_000


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A tenth of s1 has ``hot``, all of s2; a message of s1 has as many items as its last digit."""
    for number, source in enumerate(("s1", "s2")):
        rows = [_with_items(message(n, source), n, source) for n in range(MESSAGES)]
        (tmp_path / f"onyx-B1-{number}{SUFFIX}").write_bytes(file_of(rows, 500))
    return tmp_path


def _with_items(row: ArchivedMessage, n: int, source: str) -> ArchivedMessage:
    items = "".join(f"<i>{k}</i>" for k in range(n % 10))
    hot = "<hot/>" if source == "s2" or rank_of(source, n) % 10 == 7 else ""
    return replace(row, message=f"<m>{items}{hot}</m>".encode())


def _archive(folder: Path, **options: str) -> Relation:
    columns = (Column("message", "string"),)
    where = (("urn:A",), "archive", str(folder), columns)
    return Relation("urn:news", "archive.news", "urn:P", *where, options=tuple(options.items()))


def test_summaries_count_messages_by_source(news: Path) -> None:
    estimates = Estimates()
    assert estimates.rows_of(_archive(news), ()) == 2 * MESSAGES
    assert estimates.rows_of(_archive(news, source="s2"), ()) == MESSAGES
    assert estimates.rows_of(_archive(news), (("source", "s1, s3"),)) == MESSAGES


CASES = {
    "/m[hot]": 1.1 * MESSAGES,
    "for $i in /m/i return $i": 2 * 4.5 * MESSAGES,
    "/m[count(i) = 3]": 0.2 * MESSAGES,
}


@pytest.mark.parametrize("profile", CASES)
def test_a_profile_is_matched_with_the_sample(news: Path, profile: str) -> None:
    found = Estimates().rows_of(_archive(news), (("profile", profile),))
    assert found is not None
    assert max(found / CASES[profile], CASES[profile] / found) < 1.5


def test_rare_matches_have_an_upper_bound_and_strangers_none(news: Path) -> None:
    estimates = Estimates()
    rare = estimates.rows_of(_archive(news), (("profile", "/m[never]"),))
    assert rare is not None
    assert 0 < rare < 0.01 * MESSAGES
    assert estimates.rows_of(_archive(news), (("profile", "/m["),)) is None
    assert estimates.rows_of(_archive(news / "elsewhere"), ()) is None
    (news / "plain").mkdir()
    (news / "plain" / "onyx-B1-0.jsonl.gz").write_bytes(gzip.compress(b""))
    assert estimates.rows_of(_archive(news / "plain"), (("profile", "/m"),)) is None


def test_figures_of_scans_are_kept_as_metadata(news: Path, tmp_path: Path) -> None:
    file = tmp_path / "state" / "learned.ttl"
    table = replace_fields(_archive(news), format="csv")
    arguments = (("profile", '/m[hot = "a\\b"]'), ("columns", "a string"))
    estimate = Figures(rows=20, bytes_read=99, seconds=0.5)
    narrow = Scan("s", table, (), arguments, estimate)
    Estimates(file).note([Observation.of(narrow, 17, 1e6, 2.5)])
    whole = Observation.of(Scan("s", table, ()), 5, 2e6, 1.0)
    Estimates(file).note([whole, Observation.of(narrow, 18, 1e6, 1.5)])
    again = Estimates(file)
    assert again.rows_of(table, arguments) == 18
    assert again.rows_of(table, tuple(reversed(arguments))) == 18
    assert again.rows_of(table, ()) == 5
    assert again.bytes_of(table) == 2e6
    said = {
        (triple.predicate.value.rpartition("#")[2], triple.object.value)
        for triple in parse(file.read_bytes(), format=RdfFormat.TURTLE)
    }
    assert {("found", "1.800000e+01"), ("foundSeconds", "1.500000e+00")} <= said
    assert {("estimated", "2.000000e+01"), ("estimatedBytes", "9.900000e+01")} <= said
    file.write_text("no Turtle")
    assert Estimates(file).rows_of(table, ()) is None


def test_rows_of_an_archive_grow_with_it(news: Path, tmp_path: Path) -> None:
    rare = Scan("s", _archive(news), (), (("profile", "/m[rare]"),))
    size = ArchiveFiles.of(files_of(news)).bytes
    estimates = Estimates(tmp_path / "learned.ttl")
    estimates.note([Observation.of(rare, 40, size / 2, 1.0)])
    assert estimates.rows_of(rare.relation, rare.arguments) == 80
