"""Results as a stream of Spark: each once over restarts, moves, lost brokers and lost commits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import onyx.spark
from onyx.blocking import DataSource, User
from onyx.spark.filtering import SparkMisused
from onyx.spark.results_stream import ResultsReader, StreamAsked, _limited
from overlay.answers import Position
from registration.spark.session import SparkUnavailable

TEXT = "for $m in /m[@of = '{}'] return (<hit n='{{$m/@n}}'>{{$m/t}}</hit>, <also/>)"
QUERY = "/m[@of = '{}']"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "expected either option profile, with ids, or option query"),
        ({"profile": "p1", "query": "/m", "queryKey": "k"}, "expected either option profile"),
        ({"query": "/m"}, "option queryKey is missing"),
        ({"query": "/m[", "queryKey": "k"}, "profile query: line 1, column 4"),
        ({"profile": "p1", "archiv": "x"}, "no option archiv; there are registration"),
        ({"profile": "p1", "startingPositions": "now"}, "'now'; expected earliest or latest"),
        ({"profile": "p1", "failOnDataLoss": "no"}, "'no'; expected true or false"),
        ({"profile": "p1", "maxDeliveriesPerTrigger": "0"}, "'0' is no number of deliveries"),
        ({"profile": "p1", "columns": "limit int"}, "columns: a row has a column limit already"),
        ({"profile": "p1", "registration": "here"}, "registration: 'here'"),
    ],
)
def test_wrong_options_are_told_in_a_sentence(options: dict[str, str], said: str) -> None:
    with pytest.raises(SparkMisused, match=said):
        StreamAsked.of({"registration": "127.0.0.1:1", **options})


def test_a_spark_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.2")
    asked = StreamAsked.of({"registration": "127.0.0.1:1", "profile": "p1"})
    with pytest.raises(SparkUnavailable, match=r"Spark 4.1.2 is too old: 4.2 or newer is needed"):
        ResultsReader(asked, None)
    with pytest.raises(SparkUnavailable, match="too old"), onyx.spark.session():
        pass
    with pytest.raises(SparkUnavailable, match="too old"):
        onyx.spark.register(None)


def test_credentials_and_tokens_are_read_where_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a token that was given in place of where it is is told to nobody."""
    given = {"registration": "127.0.0.1:1", "profile": "p1"}
    asked = StreamAsked.of({**given, "credentials": str(tmp_path / "no.pem")})
    with (
        pytest.raises(SparkMisused, match=r"no.pem: there is no such file on \S+$"),
        asked.network.connected(),
    ):
        pass
    secret = "s3cr3t" * 5
    with (
        pytest.raises(SparkMisused, match="neither an environment variable nor a file") as told,
        StreamAsked.of({**given, "token": secret}).network.connected(),
    ):
        pass
    assert secret not in str(told.value)
    monkeypatch.setenv("SOME_TOKEN", secret)
    assert secret not in repr(StreamAsked.of({**given, "token": "SOME_TOKEN"}))


@pytest.mark.parametrize(
    ("most", "wanted"),
    [
        (None, {"a": 100, "b": 6, "c": 50}),
        (500, {"a": 100, "b": 6, "c": 50}),
        (20, {"a": 9, "b": 6, "c": 11}),
        (1, {"a": 0, "b": 6, "c": 1}),
    ],
)
def test_the_limit_of_a_batch_is_shared_by_its_profiles(
    most: int | None, wanted: dict[str, int]
) -> None:
    assert _limited({"a": 0, "b": 5, "c": 1}, {"a": 100, "b": 6, "c": 50}, most) == wanted


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (
            Position("p1", 12, 40, 2),
            "profile p1: 2 deliveries through position 12 were thrown away",
        ),
        (Position("p1", 0, 3, 0), "profile p1: 10 were read, its broker has lost its store"),
    ],
)
def test_what_is_lost_fails_the_query_or_is_logged(
    position: Position, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"registration": "127.0.0.1:1", "profile": "p1"}
    with pytest.raises(SparkMisused, match=f"{said}.*; with failOnDataLoss=false the query"):
        ResultsReader(StreamAsked.of(given), None)._check({"p1": 10}, {"p1": position})
    forgiving = StreamAsked.of({**given, "failOnDataLoss": "false"})
    ResultsReader(forgiving, None)._check({"p1": 10}, {"p1": position})
    assert said in caplog.text


class Gone:
    """A user of a profile of whose deliveries some were thrown away."""

    def __init__(self, gone: int, last: int) -> None:
        self.position = Position("p1", gone, last, 2)

    def positions(self, *_: str) -> dict[str, Position]:
        return {"p1": self.position}

    def hosts(self, *profiles: str) -> dict[str, list[str]]:
        return {"broker": list(profiles)} if profiles else {}


def test_offsets_count_what_a_query_has_gone_on_behind() -> None:
    given = {"registration": "127.0.0.1:1", "profile": "p1", "failOnDataLoss": "false"}
    reader = ResultsReader(StreamAsked.of(given), None)
    reader._open = lambda: None  # type: ignore[method-assign]
    reader._user = user = Gone(12, 40)  # type: ignore[assignment]
    assert reader.latestOffset({"p1": 10}, None) == {"p1": 40, "lost p1": 2}
    user.position = Position("p1", 15, 40, 2)  # three more, before the batch is planned
    (part,) = reader.partitions({"p1": 10}, {"p1": 40, "lost p1": 2})
    assert part.ranges == {"p1": (15, 40)}
    user.position = Position("p1", 15, 50, 2)
    offset = reader.latestOffset({"p1": 40, "lost p1": 2}, None)
    assert offset == {"p1": 50, "lost p1": 5}
    assert reader.latestOffset(offset, None) == offset
    user.position = Position("p1", 60, 60, 2)
    assert reader.partitions(offset, {"p1": 60, "lost p1": 5}) == []


class Stream:
    """A query into files, run until there is no more; ``rows`` of all its runs."""

    def __init__(self, spark: Any, folder: Path, **options: str) -> None:
        self._spark, self.folder, self._options = spark, folder, options

    def run(self, **options: str) -> Any:
        frame = self._spark.readStream.format("onyx").options(**self._options, **options).load()
        writer = frame.writeStream.format("json").option("path", str(self.folder / "out"))
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        while True:
            query = writer.trigger(availableNow=True).start()
            try:
                query.awaitTermination()
            except Exception as error:
                # The JVM waits ten seconds for a process of Python, whatever the machine has to do.
                if "failed to connect back" not in str(error):
                    raise
            else:
                return query

    def rows(self) -> list[dict[str, Any]]:
        """By what the sink has committed."""
        frame = self._spark.read.json(str(self.folder / "out"))
        return [row.asDict() for row in frame.orderBy("position", "ordinal").collect()]


@pytest.fixture
def publish(registration: str) -> Callable[[DataSource, int, int], None]:
    def publish(source: DataSource, first: int, behind: int) -> None:
        for n in range(first, behind):
            source.publish(f'<m of="{source.id}" n="{n}"><t>{n}.5</t></m>'.encode())

    return publish


def test_each_delivery_comes_once_over_restarts_and_lost_commits(
    spark: Any, registration: str, tmp_path: Path, publish: Callable[..., None]
) -> None:
    source = DataSource.register(registration)
    with User(registration) as user, source:
        key = f"stream {source.id}"
        profile = user.add_profile(QUERY.format(source.id), key=key).id
        publish(source, 0, 20)
        options = {"registration": registration, "columns": "n int, t double"}
        stream = Stream(spark, tmp_path, **options, query=QUERY.format(source.id), queryKey=key)
        query = stream.run(maxDeliveriesPerTrigger="7")
        ends = [json.loads(one["sources"][0]["endOffset"]) for one in query.recentProgress]
        assert [end[profile] for end in ends[:3]] == [7, 14, 20]
        held = user.positions(profile)[profile]
        assert (held.gone, held.last) == (14, 20), "the last batch is released by the next"
        publish(source, 20, 25)
        (tmp_path / "checkpoint" / "commits" / "2").unlink()
        (tmp_path / "checkpoint" / "commits" / ".2.crc").unlink(missing_ok=True)
        stream.run()
        assert user.positions(profile)[profile].gone == 20
        rows = stream.rows()
    assert [row["position"] for row in rows] == list(range(1, 26))
    assert [(row["n"], row["t"]) for row in rows] == [(n, n + 0.5) for n in range(25)]
    assert {row["source"] for row in rows} == {source.id}


def test_a_row_for_each_result_and_refusals_without_stacks(
    spark: Any, registration: str, tmp_path: Path, publish: Callable[..., None]
) -> None:
    source = DataSource.register(registration)
    with User(registration) as user, source:
        profile = user.add_profile(TEXT.format(source.id)).id
        publish(source, 0, 3)
        Stream(spark, tmp_path / "a", registration=registration, profile=profile).run()
        (one, *_) = rows = Stream(spark, tmp_path / "a").rows()
        assert [(row["position"], row["ordinal"]) for row in rows] == [
            (position, ordinal) for position in (1, 2, 3) for ordinal in (0, 1)
        ]
        assert (one["result"], one["media_type"]) == (
            '<hit n="0"><t>0.5</t></hit>',
            "application/xml",
        )
        given = {"registration": registration, "profile": profile}
        for options, said in (
            ({"profile": "p0"}, "there is no profile p0"),
            ({"credentials": "/no/such.pem"}, "credentials /no/such.pem: there is no such file"),
        ):
            with pytest.raises(Exception, match=said) as told:
                Stream(spark, tmp_path / "b", **{**given, **options}).run()
            assert "Traceback" not in str(told.value)
        with pytest.raises(Exception, match="SparkMisused: expected either") as told:
            Stream(spark, tmp_path / "c", registration=registration).run()
        assert "\tat " not in str(told.value)
