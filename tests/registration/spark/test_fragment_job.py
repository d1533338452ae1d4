"""Fragments of query plans on Spark: rows against pyarrow's, streams that come from elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyarrow import flight

from registration.queries.providers import Column, CycleProvider, Relation, Secret
from registration.queries.query_plan import Figures, Fragment, Receive, Scan
from registration.queries.stopped import QueryStopped, stopped_in
from registration.spark.fragment_job import FragmentJob, query_session
from registration.spark.receive_source import Peer, Stream
from registration.spark.session import Session

SITE = CycleProvider("urn:a", "A")
ROWS = pa.table({"id": list(range(5_000)), "v": [f"v{n % 7}" for n in range(5_000)]})
COLUMNS = (Column("id", "bigint"), Column("v", "string"))


@pytest.fixture(scope="module")
def spark(query_spark: Session) -> Session:
    return query_spark


class Sender(flight.FlightServerBase):  # type: ignore[misc]
    """Gives the rows for the ticket ``rows``; fails in the middle for any other."""

    def do_get(self, context: Any, ticket: Any) -> Any:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from ROWS.to_batches(max_chunksize=500)
            if ticket.ticket != b"rows":
                raise flight.FlightServerError(QueryStopped("failed", "no more", "urn:b").marked())

        return flight.GeneratorStream(ROWS.schema, batches())


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Sender("grpc://127.0.0.1:0") as server:
        threading.Thread(target=server.serve, daemon=True).start()
        yield Peer("urn:b", f"127.0.0.1:{server.port}")


def relation(path: Path, kind: str = "parquet") -> Relation:
    return Relation("urn:r", "A.R", "urn:p", ("urn:a",), kind, str(path), COLUMNS)


@pytest.fixture
def files(tmp_path: Path) -> Relation:
    """Three files, so that three tasks send."""
    for number in range(3):
        pq.write_table(ROWS.slice(number * 2_000, 2_000), tmp_path / f"{number}.parquet")
    return relation(tmp_path)


def job(spark: Session, sql: str, read: Relation, columns: tuple[str, ...] = ()) -> FragmentJob:
    scans = (Scan("r", read, columns),)
    return FragmentJob(query_session(spark), Fragment(1, SITE, scans, (), (), sql), {})


def receiving(spark: Session, sql: str, peer: Peer, ticket: bytes = b"rows") -> FragmentJob:
    columns = tuple((column.name, column.type) for column in COLUMNS)
    fragment = Fragment(0, SITE, (), (Receive("x", 1, columns),), (), sql)
    return FragmentJob(query_session(spark), fragment, {1: Stream(peer, ticket)})


def table(work: FragmentJob) -> pa.Table:
    return pa.Table.from_batches(list(work.batches()), work.schema)


def test_rows_of_a_fragment_are_those_of_its_files_and_are_measured(
    spark: Session, files: Relation
) -> None:
    work = job(spark, "SELECT id, v FROM r WHERE id >= 100", files, ("id", "v"))
    assert table(work).sort_by("id").equals(ROWS.slice(100).cast(work.schema))
    measured = work.measured()
    footers = [pq.read_metadata(path) for path in Path(files.location).iterdir()]
    columns = [said.row_group(0).column(at) for said in footers for at in range(2)]
    size = sum(column.total_compressed_size for column in columns)
    assert (measured.rows, measured.bytes_read, measured.share) == (4_900, size, 1.0)
    assert measured.bytes_sent > 4_900 * 8 and 0 < measured.first_row_s <= measured.seconds


def test_rows_keep_the_order_of_the_fragment(spark: Session, files: Relation) -> None:
    found = table(job(spark, "SELECT id FROM r ORDER BY id DESC", files))["id"].to_pylist()
    assert found == list(range(4_999, -1, -1))


def test_a_fragment_without_rows_has_its_columns(spark: Session, files: Relation) -> None:
    found = table(job(spark, "SELECT id, v FROM r WHERE id < 0", files))
    assert (found.num_rows, found.schema.names) == (0, ["id", "v"])


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_texts_are_read_by_the_columns_of_the_catalog(
    spark: Session, tmp_path: Path, kind: str
) -> None:
    if kind == "csv":
        unnamed = pyarrow.csv.WriteOptions(include_header=False)
        pyarrow.csv.write_csv(ROWS, tmp_path / "rows.csv", unnamed)
    else:
        lines = (f'{{"v": "{row["v"]}", "id": {row["id"]}}}\n' for row in ROWS.to_pylist())
        (tmp_path / "rows.json").write_text("".join(lines))
    found = table(job(spark, "SELECT v, count(*) AS n FROM r GROUP BY v", relation(tmp_path, kind)))
    wanted = ROWS.group_by("v").aggregate([([], "count_all")]).to_pylist()
    assert dict(zip(*found.to_pydict().values(), strict=True)) == {
        row["v"]: row["count_all"] for row in wanted
    }


def test_a_secret_is_an_option_of_the_reader_and_in_no_text(spark: Session, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1;a\n2;b\n")
    read = replace(relation(tmp_path, "csv"), options=(("sep", Secret(";")),))
    assert table(job(spark, "SELECT id, v FROM r", read)).to_pydict() == {
        "id": [1, 2], "v": ["a", "b"],
    }  # fmt: skip
    secret = Secret("hunter2")
    read = replace(read, options=(("encoding", secret), ("nullValue", secret)))
    with pytest.raises(QueryStopped) as stopped:
        table(job(spark, "SELECT id, v FROM r", read))
    assert "***" in stopped.value.reason, "Spark says the encoding that it does not know"
    assert secret not in f"{stopped.value} {stopped.value.marked()}"
    read = replace(read, options=(("nullValue", secret),))
    plan = job(spark, "SELECT id, v FROM r", read)._frame._jdf.queryExecution().toString()
    assert secret not in plan


@pytest.fixture
def warehouse(spark: Session, tmp_path: Path) -> Relation:
    """A table of Apache Derby, with types of databases and names in capitals, which only ann may
    read."""
    java = spark._jvm.java
    java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    spark._jvm.org.apache.derby.jdbc.EmbeddedDriver()
    url = f"jdbc:derby:memory:{tmp_path.name}"
    connection = java.sql.DriverManager.getConnection(f"{url};create=true;user=ann;password=x")
    statement = connection.createStatement()
    statement.execute("CREATE TABLE ORDERS (ID BIGINT, V VARCHAR(9), PRICE DECIMAL(8,2), D DATE)")
    statement.execute(
        "INSERT INTO ORDERS VALUES (1, 'a', 1.50, '2026-01-01'), (2, NULL, 2.25, NULL),"
        " (3, 'c', NULL, '1999-12-31')"
    )
    for name, value in (
        ("derby.user.ann", "hunter2"),
        ("derby.authentication.provider", "BUILTIN"),
        ("derby.connection.requireAuthentication", "true"),
        ("derby.database.propertiesOnly", "true"),
    ):
        statement.execute(f"CALL SYSCS_UTIL.SYSCS_SET_DATABASE_PROPERTY('{name}', '{value}')")
    connection.close()
    java_error = import_module("py4j.protocol").Py4JJavaError
    with pytest.raises(java_error, match="shutdown"):  # properties count from the next start on
        java.sql.DriverManager.getConnection(f"{url};shutdown=true;user=ann;password=hunter2")
    columns = (*COLUMNS, Column("price", "decimal(8,2)"), Column("d", "date"))
    options = (("dbtable", "ORDERS"), ("user", Secret("ann")), ("password", Secret("hunter2")))
    return replace(
        relation(Path(), "jdbc"), location=url, columns=columns, options=options, rows=3, bytes=90
    )


def test_a_database_is_read_by_its_driver_with_secrets(spark: Session, warehouse: Relation) -> None:
    sql = (
        "SELECT CAST(`id` AS BIGINT) AS id, v, CAST(price AS DECIMAL(8,2)) AS price, d "
        "FROM r WHERE id < 3 ORDER BY id"
    )
    found = table(job(spark, sql, warehouse, ("id", "v", "price", "d")))
    assert found.to_pylist() == [
        {"id": 1, "v": "a", "price": Decimal("1.50"), "d": date(2026, 1, 1)},
        {"id": 2, "v": None, "price": Decimal("2.25"), "d": None},
    ]
    half = Scan("r", warehouse, ("id",), share=0.5, estimate=Figures(rows=3, bytes_read=90))
    fragment = Fragment(1, SITE, (half,), (), (), "SELECT id FROM r")
    work = FragmentJob(query_session(spark), fragment, {})
    assert table(work).num_rows == 1
    assert (work.measured().scans[0].bytes, work.measured().scans[0].left) == (45, 45)


def test_a_database_that_refuses_is_told_without_the_secret(
    spark: Session, warehouse: Relation
) -> None:
    wrong = Secret("correct horse")
    options = (("dbtable", "ORDERS"), ("user", Secret("ann")), ("password", wrong))
    for read in (replace(warehouse, options=options), replace(warehouse, location="jdbc:none:x")):
        with pytest.raises(QueryStopped) as stopped:
            table(job(spark, "SELECT id FROM r", read))
        assert stopped.value.code == "failed" and stopped.value.provider == SITE.uri
        assert wrong not in f"{stopped.value} {stopped.value.marked()}"
        print(stopped.value.reason)


def test_files_are_paths_with_contents(spark: Session, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"\x00\xff")
    (found,) = table(job(spark, "SELECT * FROM r", relation(tmp_path, "files"))).to_pylist()
    assert found["path"].endswith("/one") and found["content"] == b"\x00\xff"


def test_what_another_sends_is_a_view(spark: Session, peer: Peer) -> None:
    found = table(receiving(spark, "SELECT id, v FROM x", peer))
    assert found.sort_by("id").equals(ROWS.cast(found.schema))


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT id FROM x ORDER BY id", 5_000),
        ("SELECT a.id FROM x a JOIN x b ON a.id = b.id + 1", 4_999),
    ],
    ids=["a sample before a sort", "a view twice"],
)
def test_a_stream_is_read_once_where_spark_would_read_it_again(
    spark: Session, sql: str, rows: int
) -> None:
    asked = []

    class Counting(Sender):
        def do_get(self, context: Any, ticket: Any) -> Any:
            asked.append(ticket.ticket)
            return super().do_get(context, ticket)

    with Counting("grpc://127.0.0.1:0") as server:
        threading.Thread(target=server.serve, daemon=True).start()
        found = table(receiving(spark, sql, Peer("urn:b", f"127.0.0.1:{server.port}")))
    assert (found.num_rows, asked) == (rows, [b"rows"])


def test_an_error_elsewhere_is_told_as_it_was_there(spark: Session, peer: Peer) -> None:
    with pytest.raises(QueryStopped, match="no more") as caught:
        table(receiving(spark, "SELECT count(*) FROM x", peer, b"fails"))
    assert (caught.value.code, caught.value.provider) == ("failed", "urn:b")


def test_a_peer_that_is_not_there_is_named(spark: Session) -> None:
    with pytest.raises(QueryStopped) as caught:
        table(receiving(spark, "SELECT id FROM x", Peer("urn:away", "127.0.0.1:1")))
    assert (caught.value.code, caught.value.provider) == ("provider-away", "urn:away")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM text.`/etc/passwd`", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT reflect('java.lang.System', 'getProperty', 'user.home')", "METHOD_NOT_ALLOWED"),
        ("SELECT 1 / (id - 4999) AS n FROM r", "DIVIDE_BY_ZERO"),
    ],
)
def test_a_refusal_of_spark_is_one_line(
    spark: Session, files: Relation, sql: str, said: str
) -> None:
    with pytest.raises(QueryStopped, match=said) as caught:
        table(job(spark, sql, files))
    assert caught.value.provider == SITE.uri and "\n" not in caught.value.reason


def test_a_cancelled_fragment_ends_soon_and_leaves_no_thread(
    spark: Session, files: Relation
) -> None:
    before = set(threading.enumerate())
    work = job(spark, "SELECT a.id FROM r a JOIN r b ON a.v <> b.v", files)
    batches = work.batches()
    next(batches)
    work.cancel()
    with pytest.raises(QueryStopped, match="cancelled"):
        list(batches)
    tracker = spark.sparkContext.statusTracker()
    while tracker.getActiveJobsIds():  # it hears of the end a little later
        sleep(0.01)
    ends = [tracker.getJobInfo(number).status for number in tracker.getJobIdsForGroup(work._group)]
    assert "FAILED" in ends, f"the jobs of the fragment went on to their ends: {ends}"
    assert {one for one in threading.enumerate() if "Thread-" in one.name} <= before


MANY = "SELECT id, repeat(v, 50) AS v FROM r LATERAL VIEW explode(sequence(1, 100)) x AS n"
"""Of three tasks, each with more batches than all buffers between it and a taker have."""


def test_tasks_whose_rows_nobody_takes_leave_slots_to_others(
    spark: Session, files: Relation
) -> None:
    held = [job(spark, MANY, files) for _ in range(2)]  # six tasks for four slots
    begun = [each.batches() for each in held]
    first = [next(each).num_rows for each in begun]
    assert table(job(spark, "SELECT id FROM r", files)).num_rows == 5_000
    rows = [sum(batch.num_rows for batch in each) for each in begun]
    assert [one + more for one, more in zip(first, rows, strict=True)] == [500_000, 500_000]


def test_rows_that_go_to_another_machine_and_come_back_end(spark: Session, files: Relation) -> None:
    """A sends two streams to B, which joins them and sends to A; all share four slots."""
    jobs: dict[bytes, FragmentJob] = {}

    class Serving(flight.FlightServerBase):  # type: ignore[misc]
        def do_get(self, context: Any, ticket: Any) -> Any:
            work = jobs[ticket.ticket]
            return flight.GeneratorStream(work.schema, work.batches())

    with Serving("grpc://127.0.0.1:0") as server:
        threading.Thread(target=server.serve, daemon=True).start()
        here = Peer("urn:here", f"127.0.0.1:{server.port}")
        jobs[b"one"], jobs[b"two"] = job(spark, MANY, files), job(spark, MANY, files)
        columns = (("id", "bigint"), ("v", "string"))
        views = (Receive("x", 1, columns), Receive("y", 2, columns))
        both = Fragment(3, SITE, (), views, (), "SELECT x.id, x.v FROM x UNION ALL SELECT * FROM y")
        streams = {1: Stream(here, b"one"), 2: Stream(here, b"two")}
        jobs[b"both"] = FragmentJob(query_session(spark), both, streams)
        found = table(receiving(spark, "SELECT count(*) AS n, sum(id) AS s FROM x", here, b"both"))
    assert found.to_pylist() == [{"n": 1_000_000, "s": 200 * sum(range(5_000))}]


def test_a_marker_is_found_in_any_text_that_was_wrapped_around_it() -> None:
    said = QueryStopped("provider-away", 'it said: "no".', "urn:b")
    found = stopped_in(f"Job aborted: {said.marked()} at line 7 {said.marked()}")
    assert found is not None
    assert (found.code, found.reason, found.provider) == (said.code, said.reason, said.provider)
    assert stopped_in("Job aborted. onyx-stopped{}.") is None
