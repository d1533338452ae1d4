"""Rows of scans are estimated by summaries and samples, and known once they were counted."""

from __future__ import annotations

import gzip
from dataclasses import replace as replace_fields
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyoxigraph import RdfFormat, parse

from onyx.queries.learning import Estimates, Observation
from onyx.queries.planning import plan_query
from overlay.archive_file import SUFFIX, ArchivedMessage, files_of, rank_of
from registration.queries.providers import Column, CycleProvider, Market, Relation
from registration.queries.query_plan import Figures, Fragment, Receive, Scan
from registration.spark.archive_files import ArchiveFiles
from tests.overlay.test_archive_file import file_of, message

MESSAGES = 3_000
A, B, C = (CycleProvider(f"urn:{name}", name, port=1) for name in "ABC")
FRAGMENT = Fragment(0, A, (), (), (), "", Figures(seconds=0.5))


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
    Estimates(file).note([Observation.of(FRAGMENT, narrow, 17, 1e6, 2.5)])
    whole = Observation.of(FRAGMENT, Scan("s", table, ()), 5, 2e6, 1.0)
    Estimates(file).note([whole, Observation.of(FRAGMENT, narrow, 18, 1e6, 1.5)])
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
    assert {("foundAt", "urn:A"), ("estimatedSeconds", "5.000000e-01")} <= said
    assert {("estimated", "2.000000e+01"), ("estimatedBytes", "9.900000e+01")} <= said
    file.write_text("no Turtle")
    assert Estimates(file).rows_of(table, ()) is None


def test_rows_of_an_archive_grow_with_it(news: Path, tmp_path: Path) -> None:
    rare = Scan("s", _archive(news), (), (("profile", "/m[rare]"),))
    size = ArchiveFiles.of(files_of(news)).bytes
    estimates = Estimates(tmp_path / "learned.ttl")
    estimates.note([Observation.of(FRAGMENT, rare, 40, size / 2, 1.0)])
    assert estimates.rows_of(rare.relation, rare.arguments) == 80


def _observed(at: CycleProvider, seconds: float, name: str, *receives: Receive) -> Observation:
    fragment = Fragment(0, at, (), receives, (), "", Figures(seconds=2.0 * at.slowness))
    return Observation.of(fragment, Scan("s", _table(name, (at.uri,)), ()), 1_000, 8_000, seconds)


def _table(name: str, read_at: tuple[str, ...]) -> Relation:
    columns = (Column("n", "bigint"),)
    return Relation(f"urn:{name}", f"P.{name}", "urn:P", read_at, "csv", "/t", columns, 1e7, 1e8)


def test_machines_are_as_slow_as_their_runs_together() -> None:
    estimates = Estimates()
    assert estimates.slowness("urn:A") == 1.0
    estimates.note([_observed(A, 5.0, "r"), _observed(A, 11.0, "s"), _observed(B, 4.0, "t")])
    assert (estimates.slowness("urn:A"), estimates.slowness("urn:B")) == (4.0, 2.0)
    assert estimates.slowness("urn:C") == pytest.approx(20 / 6), "as all others"
    estimates.note([_observed(B, 900.0, "u", Receive("v", 1, ()))])
    assert estimates.slowness("urn:B") == 2.0, "a fragment that received rows waited for others"
    slow = replace_fields(B, slowness=2.0)
    estimates.note([_observed(slow, 8.0, "t")])
    assert estimates.slowness("urn:B") == 4.0, "by the model alone, as often as it is corrected"


def test_the_next_plan_reads_where_machines_have_been_faster(tmp_path: Path) -> None:
    file = tmp_path / "learned.ttl"
    table = _table("r", ("urn:A", "urn:B"))
    market = Market({}, {}, {each.uri: each for each in (A, B)}, {table.uri: table}, {})

    def planned() -> tuple[str, float]:
        plan = plan_query("SELECT sum(n) AS n FROM P.r", market, learned=file)
        (scan,) = (node for node in plan.root.walk() if node.operator == "scan")
        return scan.site.name, round(scan.figures.seconds, 6)

    first, seconds = planned()
    slow, fast = (A, B) if first == "A" else (B, A)
    Estimates(file).note([_observed(slow, 20.0, "s"), _observed(fast, 4.0, "t")])
    assert planned() == (fast.name, 2 * seconds)
    Estimates(file).note([_observed(fast, 200.0, "t")])
    assert planned() == (slow.name, 10 * seconds)
