"""Rows that are published: each once, whatever is killed, repeated or in another order.

The oracle is a user of the network, who takes what was published.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from onyx.blocking import DataSource, RegistrationClient, User
from onyx.errors import EXIT_DATA, RequestFailed
from onyx.identity.known_networks import use_credentials
from onyx.queries.published_rows import PublishedRows
from onyx.spark import publishing
from onyx.spark.filtering import SparkMisused
from onyx.spark.network import Network
from onyx.spark.publishing import Publishing, Row, Staged, _Stage
from overlay import verbs
from overlay.link.principal import Principal
from tests.onyx.networks import RunningProcess, small_topology_text
from tests.onyx.test_stranger import authority_of, issued

SEED = 39


class Watched:
    """A source, of whoever has the ``credentials``, and what a user gets of it."""

    def __init__(self, registration: str, credentials: Path | None = None) -> None:
        self.registration = registration
        with use_credentials(credentials):
            self.source = DataSource.register(registration).id
        self._user = User(registration, "watcher")
        self._user.__enter__()
        self._profile = self._user.add_profile("/m|/last")
        self._results = self._user.results(self._profile.id)

    def options(self, **others: str) -> dict[str, str]:
        return {"registration": self.registration, "source": self.source, **others}

    def next(self) -> str:
        while (delivery := next(self._results)).source != self.source:
            pass
        return delivery.results[0].decode()

    def rest(self) -> Counter[str]:
        """The texts that have come since, each with how often it came."""
        self.end()
        return self.take()

    def end(self) -> None:
        with DataSource(self.registration, self.source) as source:
            assert source.publish(b"<last/>").accepted

    def take(self, most: int | None = None) -> Counter[str]:
        return Counter(islice(iter(self.next, "<last/>"), most))

    def close(self) -> None:
        self._user.remove_profile(self._profile.id)
        self._user.__exit__(None, None, None)


@pytest.fixture
def watched(registration: str) -> Iterator[Watched]:
    found = Watched(registration)
    yield found
    found.close()


def written(frame: Any, options: dict[str, str]) -> None:
    frame.write.format("onyx").options(**options).mode("append").save()


class Stream:
    """Files of messages that a query publishes, one a batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self.folder = folder / "in"
        self.checkpoint = folder / "checkpoint"
        self.folder.mkdir()

    def add(self, texts: list[str]) -> None:
        number = len(list(self.folder.iterdir()))
        lines = "\n".join(json.dumps({"message": text}) for text in texts)
        (self.folder / f"{number}.json").write_text(lines)

    def run(self, options: dict[str, str], checkpoint: Path | None = None) -> None:
        reader = self._spark.readStream.schema("message string").option("maxFilesPerTrigger", 1)
        writer = reader.json(str(self.folder)).repartition(3).writeStream.format("onyx")
        where = {"checkpointLocation": str(checkpoint or self.checkpoint)}
        writer.options(**options, **where).trigger(availableNow=True).start().awaitTermination()


def test_rows_of_a_frame_are_published_with_keys_types_and_headers(
    spark: Any, watched: Watched
) -> None:
    rows = [
        ("<m>1</m>", "one", None, {"a": "b"}),
        ("<m>2</m>", None, "application/xml", None),
        ("<m>1</m>", "one", None, None),
    ]
    schema = "message string, key string, media_type string, headers map<string,string>"
    frame = spark.createDataFrame(rows, schema)
    written(frame, watched.options())
    assert watched.rest() == {"<m>1</m>": 1, "<m>2</m>": 1}
    written(frame, watched.options())
    assert watched.rest() == {"<m>2</m>": 1}, "a row without a key is published again"
    written(spark.createDataFrame([(b"<m>3</m>",)], "message binary"), watched.options())
    assert watched.rest() == {"<m>3</m>": 1}


def test_a_stream_publishes_each_row_once_when_its_batches_are_repeated_in_another_order(
    spark: Any, watched: Watched, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path)
    batches = [[f"<m>{n // 2}</m>" for n in range(40)], ["<m>0</m>", "<m>a</m>"]]
    for texts in batches:
        stream.add(texts)
    stream.run(watched.options())
    wanted = Counter(text for texts in batches for text in texts)
    assert watched.rest() == wanted, "equal rows of a batch, and of two batches, are rows each"
    # The driver died before it noted the last batch; then its rows come in another order.
    (stream.checkpoint / "commits" / "1").unlink()
    (stream.checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    (stream.folder / "1.json").write_text(
        "\n".join(json.dumps({"message": text}) for text in reversed(batches[1]))
    )
    stream.add(["<m>new</m>"])
    staging = tmp_path / "staging"
    staging.mkdir()
    stream.run(watched.options(staging=str(staging)))
    assert watched.rest() == {"<m>new</m>": 1}
    assert not list(staging.iterdir())
    stream.run(watched.options(), tmp_path / "another")
    assert watched.rest() == wanted + Counter(["<m>new</m>"]), "a checkpoint is a query of its own"


def test_each_row_of_foreach_batch_is_published_once(
    spark: Any, watched: Watched, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path)
    stream.add([f"<m>{n}</m>" for n in range(5)])
    calls = []

    def twice(frame: Any, number: int) -> None:
        calls.append(number)
        written(frame, watched.options())
        written(frame, watched.options())

    reader = spark.readStream.schema("message string").json(str(stream.folder))
    query = reader.writeStream.foreachBatch(twice).trigger(availableNow=True).start()
    query.awaitTermination()
    assert calls == [0]
    assert watched.rest() == Counter(f"<m>{n}</m>" for n in range(5))


def test_refused_messages_end_the_query_or_are_dead_letters(spark: Any, watched: Watched) -> None:
    texts = ["<m>1</m>", "<m>\n<m", "<m>3</m>", None]
    frame = spark.createDataFrame(
        [(t, f"k{n}") for n, t in enumerate(texts)], "message string, key string"
    ).coalesce(1)
    with pytest.raises(
        Exception, match=r"partition 0, row 2, key k1: line 2, column \d+: .*\[\S+\]"
    ):
        written(frame, watched.options())
    written(frame, watched.options(mode="dropmalformed"))
    assert watched.rest() == {"<m>1</m>": 1, "<m>3</m>": 1}
    with pytest.raises(Exception, match=r"partition 0, row 1, key k3: line 1.*\[\S+\]"):
        written(frame.where("key = 'k3'"), watched.options())


def test_bad_input_is_told_in_a_sentence_before_a_task_runs(
    spark: Any, watched: Watched, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([("<m/>", 1)], "message string, key int")
    good = watched.options()
    message = frame.select("message")
    wrong: list[tuple[Any, dict[str, str], str]] = [
        (frame, good, "column key is int; expected string"),
        (frame.selectExpr("message as text"), good, "no column message; there are text"),
        (frame.selectExpr("message", "1 as n"), good, "column n is not published; select some of"),
        (frame.select("message", "message"), good, "a column is there twice: message, message"),
        (message, {**good, "keys": "1"}, "no option keys; there are registration, credentials"),
        (message, {**good, "mode": "PERMISSIVE"}, "expected DROPMALFORMED or FAILFAST"),
        (message, {**good, "publishKeysMax": "x"}, "publishKeysMax: 'x' is no number"),
        (message, {**good, "staging": "/no/such"}, "staging /no/such: there is no such directory"),
        (message, {**good, "credentials": "/no/such"}, "credentials /no/such: there is no such"),
        (message, {"source": "s1"}, "option registration is missing: HOST:PORT"),
        (message, {"registration": watched.registration}, "option source is missing"),
        (message, {**good, "source": "nobody"}, "nobody"),
    ]
    for given, options, said in wrong:
        with pytest.raises((SparkMisused, RequestFailed), match=re.escape(said)):
            Publishing(options, given.schema, overwrite=False, is_stream=False)
    with pytest.raises(SparkMisused, match="what was published stays"):
        Publishing(good, message.schema, overwrite=True, is_stream=True)
    with pytest.raises(Exception, match="no option keys") as raised:
        written(message, {**good, "keys": "1"})
    assert "Traceback" not in str(raised.value)
    assert "\tat " not in str(raised.value), "no stack of the JVM"
    stream = Stream(spark, tmp_path)
    stream.add(["<m/>", "<m/>"])
    with pytest.raises(Exception, match="batch 0 has 2 rows, more than the 1 publish keys"):
        stream.run({**good, "publishKeysMax": "1"})
    assert watched.rest() == {}


def test_a_partition_is_staged_in_blocks_and_holds_so_much_in_a_commit_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "BLOCK_BYTES", 100)
    rows = [Row(b"<m>%d</m>" % n, "", "application/xml", {"n": str(n)}, b"d") for n in range(50)]
    for file in ("", str(tmp_path / "staged")):
        staged = Staged("q", "1", file=file)
        with _Stage(staged, "partition 3") as stage:
            for row in rows:
                stage.add(row)
        assert list(staged.read()) == rows
        assert (staged.rows, bool(staged.blocks)) == (50, not file)
    monkeypatch.setattr(publishing, "CARRIED_BYTES_MAX", 100)
    with (
        pytest.raises(SparkMisused, match="partition 3 has more than"),
        _Stage(Staged("q", "1"), "partition 3") as stage,
    ):
        for row in rows:
            stage.add(row)


# -- faults


@pytest.fixture
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProcess]:
    """A network whose brokers are killed, and started again, and give nobody much."""
    directory = tmp_path_factory.mktemp("frail")
    file = directory / "small.toml"
    limits = "[limits]\nprincipal_messages_s_max = 3\n"
    file.write_text(small_topology_text(directory / "data", 2) + limits, encoding="utf-8")
    running = RunningProcess.start(file)
    yield running
    running.stop()


def test_what_is_over_a_quota_is_published_later_by_credentials_that_are_said(
    frail: RunningProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_PAUSE_SECONDS", 0.2)
    file = issued(authority_of(frail), Principal.parse("source/spark"), tmp_path)
    watched = Watched(frail.registration, file)
    schema = StructType().add("message", "string")
    options = watched.options(credentials=str(file), mode="DROPMALFORMED")
    writer = Publishing(options, schema, overwrite=False, is_stream=True)
    staged = Staged("query", "0")
    with _Stage(staged, "partition 0") as stage:
        for n in range(8):
            stage.add(Row(b"<m>%d</m>" % n, "", "application/xml", {}, b"%d" % n))
    for _ in range(2):
        writer.commit([staged, None], 0)
    assert watched.rest() == Counter(f"<m>{n}</m>" for n in range(8))
    watched.close()


COMMIT = """
import json, random, sys
import pyarrow
from pyspark.sql.types import StructType
from onyx.spark.publishing import Publishing, Staged, _Stage, rows_of
options, texts, seed = json.loads(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
schema = StructType().add("message", "string")
writer = Publishing(options, schema, overwrite=False, is_stream=True)
random.Random(seed).shuffle(texts)
parts = [Staged("query", "0") for _ in range(3)]
for number, part in enumerate(parts):
    batch = pyarrow.RecordBatch.from_arrays([pyarrow.array(texts[number::3])], ["message"])
    with _Stage(part, "a partition") as stage:
        for row in rows_of(batch, keyed=False):
            stage.add(row)
print("staged", flush=True)
writer.commit(parts, 0)
"""


def test_a_commit_is_killed_again_and_again_and_each_row_is_published_once(
    frail: RunningProcess,
) -> None:
    """Without Spark: what the driver does is killed at any moment, and repeated with the rows in
    another order and other partitions; the root broker is killed once."""
    chosen = random.Random(SEED)
    print("seed", SEED)
    watched = Watched(frail.registration)
    texts = [f"<m>{n // 2} {'x' * 60}</m>" for n in range(1_000)]
    kills = 4
    for attempt in range(kills + 1):
        words = [json.dumps(watched.options()), json.dumps(texts), str(attempt)]
        process = subprocess.Popen(
            [sys.executable, "-c", COMMIT, *words], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "staged\n"
        if attempt < kills:
            with suppress(subprocess.TimeoutExpired):
                process.wait(chosen.random())
            process.kill()
        if attempt == 1:
            os.kill(frail.up["pids"]["B1"], signal.SIGKILL)
        process.communicate()
    assert process.returncode == 0
    assert watched.rest() == Counter(texts)
    watched.close()


DRIVER = """
import json, sys
import onyx.spark
folder, checkpoint, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
settings = {"spark.driver.memory": "500m", "spark.sql.shuffle.partitions": "2"}
with onyx.spark.session("local[2]", settings) as spark:
    read = spark.readStream.schema("message string").option("maxFilesPerTrigger", 1).json(folder)
    writer = read.repartition(2).writeStream.format("onyx").options(**options)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
"""


class Driver:
    """A driver in a process group of its own; what is ``watched`` ends when it does."""

    def __init__(self, stream: Stream, watched: Watched) -> None:
        words = [str(stream.folder), str(stream.checkpoint), json.dumps(watched.options())]
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *words],
            start_new_session=True,
            stderr=subprocess.PIPE,
            text=True,
        )

        self._is_killed, self._said = False, ""
        self._follower = Thread(target=self._follow, args=(watched,))
        self._follower.start()

    def _follow(self, watched: Watched) -> None:
        _, self._said = self.process.communicate()
        if not self._is_killed:
            watched.end()

    def kill(self) -> None:
        self._is_killed = True
        os.killpg(self.process.pid, signal.SIGKILL)
        self._follower.join()

    def wait(self) -> None:
        self._follower.join()
        assert self.process.returncode == 0, self._said


@pytest.mark.skipif("ONYX_KILLS" not in os.environ, reason="minutes: by hand, make campaign")
def test_drivers_and_brokers_are_killed_and_each_row_is_published_once(
    frail: RunningProcess, tmp_path: Path
) -> None:
    """The driver dies while its first batch is published, and another one goes on, with the rows in
    another order; its root broker dies while the second batch is published."""
    shuffled = random.Random(SEED)
    print("seed", SEED)
    watched = Watched(frail.registration)
    stream = Stream(None, tmp_path)
    batches = [[f"<m>{b} {n // 2} {'x' * 900}</m>" for n in range(4_000)] for b in range(2)]
    for texts in batches:
        stream.add(texts)
    driver = Driver(stream, watched)
    found = watched.take(50)
    driver.kill()
    assert not (stream.checkpoint / "commits" / "0").exists()
    for number, texts in enumerate(batches):
        shuffled.shuffle(texts)
        lines = "\n".join(json.dumps({"message": text}) for text in texts)
        (stream.folder / f"{number}.json").write_text(lines)
    driver = Driver(stream, watched)
    found += watched.take(4_500)
    os.kill(frail.up["pids"]["B1"], signal.SIGKILL)
    driver.wait()
    found += watched.take()
    assert found == Counter(text for texts in batches for text in texts)
    watched.close()


def test_dropped_messages_are_dead_letters_of_the_broker(spark: Any, watched: Watched) -> None:
    written(
        spark.createDataFrame([("<m><",)], "message string"), watched.options(mode="DROPMALFORMED")
    )
    with RegistrationClient(watched.registration) as client:
        letters = client.ask(verbs.DeadList())
    assert letters


def test_a_query_publishes_its_rows_once_and_names_refused_ones(
    watched: Watched, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("1,<m>1</m>\n2,<m>2\n3,<m>1</m>\n")
    (tmp_path / "market.ttl").write_text(
        "@prefix q: <urn:onyx:query:1#> . @prefix : <http://example.org/#> .\n"
        ':A a q:DataProvider ; q:name "A" .\n'
        ':R a q:Relation ; q:name "R" ; q:provider :A ; q:readAt <urn:onyx:query:client> ;\n'
        f'    q:format "csv" ; q:location "{tmp_path}/rows.csv" ; q:rows 3 ;\n'
        '    q:schema "id INT, message STRING" .\n'
    )
    sql = "SELECT message FROM A.R"
    command = ["query", sql, "--catalog", str(tmp_path / "market.ttl"), "--json"]
    where = ["--publish", watched.source, "--registration", watched.registration]
    done = subprocess.run(
        [sys.executable, "-m", "onyx", *command, *where],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == EXIT_DATA, done.stderr
    refused, last = (json.loads(line) for line in done.stdout.splitlines())
    assert (refused["where"], refused["line"]) == ("row 2", 1)
    assert last["published"] == {"accepted": 2, "refused": 1, "known": 0}
    again = pa.RecordBatch.from_pydict({"message": ["<m>1</m>", "<m>3</m>", "<m>1</m>"]})
    with PublishedRows(Network(watched.registration), watched.source, sql, pytest.fail) as rows:
        rows.write(again)
    assert rows.counts == {"accepted": 1, "refused": 0, "known": 2}
    assert watched.rest() == {"<m>1</m>": 2, "<m>3</m>": 1}


def test_a_source_that_refuses_is_told_also_by_a_connection_that_has_ended(
    registration: str,
) -> None:
    connection = publishing.Connection(Network(registration), "nobody")
    wait([connection._life])
    with pytest.raises(RequestFailed, match="there is no source 'nobody'"):
        connection.publish(publishing.Publisher(lambda refused: None), ())
