"""Fragments that compute nothing: rows against those that were written, without a Spark session."""

from __future__ import annotations

import datetime
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import flight
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from registration.queries.providers import Column, CycleProvider, Relation
from registration.queries.query_plan import Fragment, Receive, Scan
from registration.queries.stopped import QueryStopped
from registration.spark.parquet_rows import BATCH_BYTES
from registration.spark.passing_job import PassingJob
from registration.spark.receive_source import Peer, Stream
from tests.hanging import SAFETY_SECONDS

SITE = CycleProvider("urn:a", "A")
ROWS = pa.table({"id": list(range(5_000)), "v": [f"v{n % 7}" for n in range(5_000)]})
COLUMNS = (Column("id", "bigint"), Column("v", "string"))
SQL = "SELECT v AS w, id AS n FROM s"


class Sender(flight.FlightServerBase):  # type: ignore[misc]
    """Gives ROWS for the ticket ``rows``; for any other 500 of them, then it waits or fails."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.gone = threading.Event()

    def do_get(self, context: Any, ticket: Any) -> Any:
        def batches() -> Iterator[pa.RecordBatch]:
            if ticket.ticket == b"rows":
                yield from ROWS.to_batches(max_chunksize=500)
                return
            yield ROWS.to_batches(max_chunksize=500)[0]
            if ticket.ticket == b"fails":
                raise flight.FlightServerError(QueryStopped("failed", "no more", "urn:b").marked())
            while not context.is_cancelled():
                self.gone.wait(0.01)
            self.gone.set()

        return flight.GeneratorStream(ROWS.schema, batches())


@pytest.fixture
def sender() -> Iterator[Sender]:
    with Sender() as server:
        threading.Thread(target=server.serve, daemon=True).start()
        with closing(flight.connect(f"grpc://127.0.0.1:{server.port}")) as client:
            client.wait_for_available(30)  # gRPC remembers that a port of before has refused it
        yield server


@pytest.fixture
def files(tmp_path: Path) -> Relation:
    """Three files of two row groups each, and two names that no relation has."""
    for number in range(3):
        part = ROWS.slice(number * 2_000, 2_000)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=1_000)
    for name in ("_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("")
    return Relation("urn:r", "A.R", "urn:p", ("urn:a",), "parquet", str(tmp_path), COLUMNS)


def scanning(read: Relation, sql: str = SQL, **limits: Any) -> PassingJob | None:
    scans = (Scan("s", read, ("id", "v"), **limits),)
    return PassingJob.of(Fragment(1, SITE, scans, (), (), sql), {})


def receiving(sender: Sender, *tickets: bytes) -> PassingJob:
    peer = Peer("urn:b", f"127.0.0.1:{sender.port}")
    columns = tuple((each.name, each.type) for each in COLUMNS)
    views = tuple(Receive(f"r{n}", n, columns) for n in range(len(tickets)))
    sql = " UNION ALL ".join(f"SELECT id AS n FROM {each.view}" for each in views)
    streams = {n: Stream(peer, ticket) for n, ticket in enumerate(tickets)}
    found = PassingJob.of(Fragment(9, SITE, (), views, (), sql), streams)
    assert found is not None
    return found


def table(work: PassingJob) -> pa.Table:
    return pa.Table.from_batches(list(work.batches()), work.schema)


def test_a_reader_ends_while_its_sender_has_not_answered() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cancels: list[Callable[[], None]] = []
        is_open = threading.Event()

        def opened(cancel: Callable[[], None]) -> None:
            cancels.append(cancel)
            is_open.set()

        stream = Stream(Peer("urn:b", f"127.0.0.1:{silent.getsockname()[1]}"), b"rows")
        found: list[list[Any]] = []
        reading = threading.Thread(target=lambda: found.append([*stream.batches(opened)]))
        reading.start()
        is_open.wait()
        for cancel in cancels:
            cancel()
        reading.join()
        assert found == [[]]


def test_files_are_passed_on_and_measured(files: Relation) -> None:
    work = scanning(files)
    assert work is not None
    before = work.measured()
    assert (before.rows, before.share, before.bytes_read) == (0, 0.0, 0)
    assert table(work).equals(ROWS.select(["v", "id"]).rename_columns(["w", "n"]))
    measured = work.measured()
    chunks = [
        pq.read_metadata(path).row_group(group).column(at).total_compressed_size
        for path in sorted(Path(files.location).glob("*.parquet"))
        for group in range(pq.read_metadata(path).num_row_groups)
        for at in range(2)
    ]
    assert (measured.rows, measured.share, measured.bytes_read) == (5_000, 1.0, sum(chunks))
    (scanned,) = measured.scans
    assert (scanned.rows, scanned.left) == (5_000, 0)


def test_a_scan_ends_at_its_share_with_whole_row_groups(files: Relation) -> None:
    work = scanning(files, share=0.5)
    assert work is not None
    found = table(work)["n"].to_pylist()
    (scanned,) = work.measured().scans
    size = sum(path.stat().st_size for path in Path(files.location).glob("*.parquet"))
    assert found == list(range(len(found))) and len(found) % 1_000 == 0 and 0 < len(found) < 5_000
    assert scanned.bytes <= size / 2 and scanned.left > 0 and scanned.rows is None
    none = scanning(files, most_bytes=1)
    assert none is not None and table(none).num_rows == 0


@pytest.mark.parametrize("is_once", [False, True])
def test_batches_are_about_as_large_as_a_message_should_be(tmp_path: Path, is_once: bool) -> None:
    """``is_once``: the file has each text once, so that its bytes do not say those of rows."""
    many = pa.table({"id": range(6_000), "v": ["x" * 5_000] * 6_000})
    options: dict[str, Any] = {"use_dictionary": is_once, "compression": "none"}
    pq.write_table(many, tmp_path / "one.parquet", **options)
    location = str(tmp_path / "one.parquet")
    work = scanning(Relation("urn:r", "A.R", "urn:p", (), "parquet", location, COLUMNS))
    assert work is not None
    sizes = [batch.nbytes for batch in work.batches()]
    assert all(size < 2 * BATCH_BYTES for size in sizes) and len(sizes) < 12


OTHERWISE: dict[str, dict[str, Any]] = {
    "another format": {"format": "csv"},
    "options": {"options": (("mergeSchema", "true"),)},
    "a wrapper": {"wrapper": "urn:f"},
    "another type": {"columns": (Column("id", "int"), Column("v", "string"))},
    "a column that is not there": {"columns": (Column("id", "bigint"), Column("w", "string"))},
    "nothing there": {"location": "/nowhere/at/all"},
    "elsewhere": {"location": "s3://bucket/rows"},
    "a pattern": {"location": "/tmp/*.parquet"},
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_spark_reads_what_it_may_read_otherwise(files: Relation, case: str) -> None:
    assert scanning(replace(files, **OTHERWISE[case])) is None


def test_spark_reads_folders_with_columns_in_their_names(files: Relation) -> None:
    (Path(files.location) / "day=1").mkdir()
    assert scanning(files) is None


def test_spark_reads_files_that_are_none(files: Relation) -> None:
    (Path(files.location) / "4.parquet").write_bytes(b"no Parquet")
    assert scanning(files) is None


@pytest.mark.parametrize("written_by", ["arrow", "spark"])
def test_dates_of_files_that_spark_wrote_are_of_its_calendars(
    tmp_path: Path, written_by: str
) -> None:
    days = pa.table({"id": pa.array([datetime.date(1500, 1, 1)], pa.date32())})
    if written_by == "spark":
        days = days.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(days, tmp_path / "days.parquet")
    read = Relation(
        "urn:r", "A.R", "urn:p", (), "parquet", str(tmp_path), (Column("id", "date"),)
    )  # fmt: skip
    scan = Scan("s", read, ("id",))
    found = PassingJob.of(Fragment(1, SITE, (scan,), (), (), "SELECT id FROM s"), {})
    assert (found is not None) == (written_by == "arrow")


NESTED = {
    "a": types.ArrayType(types.StructType([types.StructField("name", types.BinaryType())])),
    "m": types.MapType(types.StringType(), types.ArrayType(types.ShortType())),
    "t": types.TimestampType(),
    "n": types.TimestampNTZType(),
    "d": types.DecimalType(12, 3),
}


def test_types_of_results_are_those_that_spark_gives() -> None:
    said = to_arrow_schema(
        types.StructType([types.StructField(*each) for each in NESTED.items()]), timezone="UTC"
    )
    columns = tuple((name, type_.simpleString()) for name, type_ in NESTED.items())
    sql = "SELECT a, m, t, n, d FROM r"
    fragment = Fragment(1, SITE, (), (Receive("r", 0, columns),), (), sql)
    work = PassingJob.of(fragment, {0: Stream(Peer("urn:b", "127.0.0.1:1"), b"")})
    assert work is not None
    assert [str(each) for each in work.schema] == [str(each) for each in said]


def test_streams_are_passed_on_side_by_side(sender: Sender) -> None:
    work = receiving(sender, b"rows", b"rows")
    found = table(work)["n"].to_pylist()
    assert sorted(found) == sorted([*range(5_000)] * 2)
    assert (work.measured().rows, work.measured().share) == (10_000, 1.0)
    assert table(receiving(sender, b"rows"))["n"].to_pylist() == [*range(5_000)]


def test_an_error_elsewhere_is_told_as_it_was_there(sender: Sender) -> None:
    with pytest.raises(QueryStopped, match="no more") as caught:
        table(receiving(sender, b"rows", b"fails"))
    assert (caught.value.code, caught.value.provider) == ("failed", "urn:b")


@pytest.mark.parametrize("how", ["cancelled", "gone", "closed"])
def test_a_stream_that_is_silent_is_left_at_once(sender: Sender, how: str) -> None:
    before = set(threading.enumerate())
    work = receiving(sender, b"waits")
    gone = threading.Event()
    batches = work.batches(gone.is_set)
    assert next(batches).num_rows == 500 and work.is_at_work
    if how == "closed":
        batches.close()
    else:
        (work.cancel if how == "cancelled" else gone.set)()
        with pytest.raises(QueryStopped, match="cancelled"):
            next(batches)
    assert work.measured().share == 1.0
    assert sender.gone.wait(SAFETY_SECONDS), "the sender went on"
    assert {one for one in threading.enumerate() if "pump" in one.name} <= before


def test_a_peer_that_is_not_there_is_named() -> None:
    views = (Receive("r", 0, (("id", "bigint"),)),)
    fragment = Fragment(1, SITE, (), views, (), "SELECT id FROM r")
    work = PassingJob.of(fragment, {0: Stream(Peer("urn:away", "127.0.0.1:1"), b"")})
    assert work is not None
    with pytest.raises(QueryStopped) as caught:
        table(work)
    assert (caught.value.code, caught.value.provider) == ("provider-away", "urn:away")
