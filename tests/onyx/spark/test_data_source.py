"""``format("onyx")``: archives as frames, of messages or of results, skipping what is not asked."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

import onyx.spark
from onyx.spark.data_source import Window, _Asked
from onyx.spark.filtering import SparkMisused
from onyx.spark.result_rows import RowSchema, check_columns
from overlay.archive_file import SUFFIX, ArchivedMessage, Span
from tests.overlay.test_archive_file import SECOND, file_of

MESSAGES = [
    ArchivedMessage(source, n, n * SECOND, "", f'<m c="{c}"><t>{n}.5</t></m>'.encode())
    for source, c in (("s1", "Oslo"), ("s2", "Rom"))
    for n in range(1, 31)
]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources in a file of today, and one in a file of an earlier release."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / f"onyx-B1-1{SUFFIX}").write_bytes(file_of(MESSAGES))
    old = ArchivedMessage("s3", 1, SECOND, "", b"<old/>")
    (folder / "onyx-B1-0.jsonl.gz").write_bytes(gzip.compress(old.line()))
    (folder / ".onyx-B1-2.part").write_bytes(b"x")
    return folder


@pytest.fixture
def read(spark: Any, archive: Path) -> Any:
    return spark.read.format("onyx").option("archive", str(archive))


def test_all_messages_of_an_archive_are_rows(read: Any) -> None:
    frame = read.load()
    assert frame.columns == ["source", "number", "time", "media_type", "message"]
    found = {(row.source, row.number): row.message for row in frame.collect()}
    wanted = {(one.source, one.number): one.message.decode() for one in MESSAGES}
    assert found == {**wanted, ("s3", 1): "<old/>"}


def test_what_an_archive_has_is_filtered_with_all_its_columns(read: Any) -> None:
    frame = onyx.spark.filter(read.load(), {"ann": "/m[@c = 'Rom'][t = 7.5]"})
    assert frame.columns == ["source", "number", "time", "media_type", "profiles", "error"]
    (row,) = (row for row in frame.collect() if row.profiles)
    assert (row.source, row.number, row.media_type, row.profiles) == ("s2", 7, "", ["ann"])


def test_a_query_fails_on_damaged_messages_unless_it_may_go_on(spark: Any, tmp_path: Path) -> None:
    whole = file_of(MESSAGES)
    path = tmp_path / f"onyx-B1-1{SUFFIX}"
    path.write_bytes(whole[:20] + bytes([whole[20] ^ 255]) + whole[21:])
    read = spark.read.format("onyx").option("archive", str(tmp_path))
    with pytest.raises(PySparkException, match=f"{path.name}: 10 messages at byte 0 are damaged"):
        read.load().count()
    assert read.option("failOnDataLoss", "false").load().count() == len(MESSAGES) - 10


def test_options_choose_sources_and_times_and_filters_of_spark_the_rest(read: Any) -> None:
    frame = read.option("source", "s2, s3").option("since", "1970-01-01T00:00:20Z").load()
    assert frame.where("number = 25").count() == 1
    found = {(row.source, row.number) for row in frame.collect()}
    assert found == {("s2", number) for number in range(20, 31)}, "a frame that was filtered once"


def test_members_without_such_messages_are_passed_over() -> None:
    member = {"s1": Span(10, 0, 1, 10, 1 * SECOND, 10 * SECOND)}
    for options, may in (
        ({}, True),
        ({"source": "s1"}, True),
        ({"source": "s2"}, False),
        ({"source": "s2,s1", "since": "1970-01-01T00:00:10Z"}, True),
        ({"since": "1970-01-01T00:00:11Z"}, False),
        ({"until": "1970-01-01T00:00:01Z"}, False),
    ):
        assert Window.of(options).may_hold(member) == may, options


def test_a_profile_gives_rows_of_results(read: Any) -> None:
    text = "for $m in /m[@c = 'Rom'] return <hit city='{$m/@c}'>{$m/t}</hit>"
    frame = read.option("profile", text).load()
    rows = {row.number: row for row in frame.collect()}
    assert (len(rows), rows[3].source, rows[3].profile, rows[3].ordinal) == (30, "s2", "profile", 0)
    assert rows[3].result == '<hit city="Rom"><t>3.5</t></hit>'
    columns = "city string, t double, n int"
    typed = read.option("profile", text).option("columns", columns).load()
    row = typed.where("number = 3").first()
    assert (row.city, row.t, row.n) == ("Rom", 3.5, None)


def test_profiles_of_a_file_are_named_by_their_lines(read: Any, tmp_path: Path) -> None:
    file = tmp_path / "p.txt"
    file.write_text("/m[@c = 'Oslo']\n\n/m[t > 29]\n")
    frame = read.option("profiles", str(file)).load()
    assert Counter(row.profile for row in frame.collect()) == {"p.txt:1": 30, "p.txt:3": 4}


def test_spark_finds_the_format_by_itself_and_bad_options_are_told(
    spark: Any, archive: Path
) -> None:
    assert spark.newSession().read.format("onyx").load(str(archive)).columns[0] == "source"
    here = {"archive": str(archive)}
    for options, said in (
        ({"archiv": "x"}, "no option archiv; there are archive"),
        ({}, "option archive is missing, the folder that brokers archive into, or registration"),
        ({"archive": "a", "registration": "b"}, "archive and registration: expected one"),
        ({"archive": "a", "credentials": "b"}, "credentials is for a network: option registration"),
        ({"registration": "here", "source": "s1"}, "registration: 'here'"),
        ({"registration": "127.0.0.1:1", "sample": "0"}, "sample: '0' is no number of messages"),
        ({"archive": "/no/such"}, "there is no such file or directory"),
        ({**here, "columns": "a int"}, "option profile or profiles is missing"),
        ({**here, "profile": "/m["}, "profile profile: line 1, column"),
        ({**here, "profile": "/m", "profiles": "b"}, "profile and profiles: expected one"),
        ({**here, "profile": "/m", "columns": "a in"}, "columns: 'a in'; expected"),
        ({**here, "since": "noon"}, "since: 'noon' is no time"),
    ):
        with pytest.raises(SparkMisused, match=said):
            _Asked.of(options)
    with pytest.raises(Exception, match="SparkMisused: no option archiv; there are") as told:
        spark.read.format("onyx").option("archiv", "x").load()
    assert "\tat " not in str(told.value), "no stack of the JVM"


@pytest.mark.parametrize("names", [["source"], ["source", "number"]])
def test_rows_that_do_not_fit_a_given_schema_are_told(names: list[str]) -> None:
    schema = RowSchema(StructType([StructField(name, IntegerType()) for name in names]))
    with pytest.raises(SparkMisused, match=r"leave out schema\(\): rows do not fit it: "):
        schema.batch([["s1"], [1]])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"archive": "p.xq"}, r"p.xq: none of .msgpack.zst, .jsonl.gz, as brokers write them"),
        ({"archive": "."}, r"none of .msgpack.zst, .jsonl.gz, as brokers write them"),
        ({"profiles": "latin.txt"}, "latin.txt: byte 9 is no UTF-8"),
        ({"profiles": "p.xq"}, r"profile p.xq: line 2, column 8: .*\n +return \[\n +\^$"),
        (
            {"since": "2026-11-22", "until": "2026-11-21"},
            "2026-11-22 is not before until 2026-11-21",
        ),
    ],
)
def test_files_and_times_that_do_not_fit_are_told(
    options: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "p.xq").write_text("for $m in /m\nreturn [")
    (tmp_path / "latin.txt").write_bytes(b"/m[. = '\xe9']")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SparkMisused, match=said):
        _Asked.of({"archive": "none", **options})


@pytest.mark.parametrize(
    "columns", ["", "city string, t double", "a DECIMAL(10, 2),`b c` timestamp"]
)
def test_columns_are_of_types_that_a_text_says(columns: str) -> None:
    check_columns(columns, ["source"])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("city strin, t double", "'city strin, t double'; expected as 'city string, t double'"),
        ("a int, x array<string>", "'x array<string>'; expected"),
        ("a int,", "'a int,'; expected"),
        ("a int b int", "'a int b int'; expected"),
        ("Source string", "a row has a column Source already"),
        ("a int, `a` int", "a row has a column a already"),
        ("a decimal(39, 2)", r"'a decimal\(39, 2\)'; a decimal has 1 to 38 digits"),
        ("a decimal(5, 9), b int", r"'a decimal\(5, 9\)'; a decimal has 1 to 38 digits"),
    ],
)
def test_other_columns_are_refused_by_their_text(columns: str, said: str) -> None:
    with pytest.raises(SparkMisused, match=f"columns: {said}"):
        check_columns(columns, ["source"])


@pytest.mark.parametrize(
    ("texts", "kind", "found"),
    [
        (["1", "x", None, "4"], "int", [1, None, None, 4]),
        (
            ["2026-11-21T17:30:00Z", ""],
            "timestamp",
            [datetime(2026, 11, 21, 17, 30, tzinfo=UTC), None],
        ),
        (["true", "1", "maybe"], "boolean", [True, True, None]),
    ],
)
def test_a_cell_that_says_no_such_value_is_null(
    texts: list[str | None], kind: str, found: list[object]
) -> None:
    kinds = {"int": IntegerType(), "timestamp": TimestampType(), "boolean": BooleanType()}
    schema = StructType([StructField("a", kinds[kind])])
    results = [None if text is None else f"<r a='{text}'/>".encode() for text in texts]
    rows = RowSchema(schema, named=True)
    assert rows.batch(rows.of_results(results)).column("a").to_pylist() == found


def test_results_that_are_no_utf_8_are_still_there() -> None:
    schema = StructType([StructField("time", TimestampType()), StructField("result", StringType())])
    batch = RowSchema(schema).batch([[0, 1_000_001], [b"<a/>", b"<\xe4/>"]])
    assert batch.column("result").to_pylist() == ["<a/>", "<\ufffd/>"]
    assert batch.column("time").to_pylist()[1] == datetime(1970, 1, 1, 0, 0, 1, 1, UTC)
