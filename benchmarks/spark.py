"""``spark``: the engine in a pipeline of Spark, beside the engine alone and beside lxml in a UDF.

Processor time of the JVM and of Python's workers together, of a second run of each job: the first
builds the engines.  The engine alone runs in this process on the same messages.  Parts:

=======  =========================================================================================
filter   ``onyx.spark.filter`` of messages in Parquet against all profiles, the places of those that
         match written to nowhere; and what a loop of XPath objects in a UDF would take
scan     one profile over an archive, ``format("onyx")`` with ``profile``
archive  an archive written, beside gzip and JSON, the form of earlier releases
stream   deliveries of a network of one broker, read into Parquet by many micro-batches, of which
         the first, with the start of the query, is not counted; and of one message at a time until
         it is in a micro-batch
cluster  two executors with a Python each: how many run compiled code
=======  =========================================================================================
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from typing import Any

import lxml.etree
import trio

import onyx.spark
from benchmarks.benchmark import Benchmark, WrongAnswers, positive
from benchmarks.network.onyx_network import onyx_network
from benchmarks.parts import Part, add_part_option, run_parts
from benchmarks.placement.scaling import descendants, stat_of
from benchmarks.report import Report
from benchmarks.samples import median
from benchmarks.workload import ProfileMaker, make_messages, make_schema
from formats import build_info
from onyx.blocking import DataSource, User
from onyx.spark.filtering import Engine, Population
from overlay.archive_file import SUFFIX, ArchivedMessage, Summing, member_of, packed

_SEED = 1
_DISTINCT = 2_000  # messages; more of them repeat these
_ALONE = 1_000  # messages of the engine alone
_FILES = 4
_MEMBER = 250  # messages
_LOOPED, _LOOPED_MESSAGES = 500, 20
_SINGLE, _COMES_SECONDS = 20, 120.0
_BATCHES, _POLL_SECONDS = 10, 0.05
_SCANNED = "/*[@*]"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--messages", metavar="N", type=positive, default=100_000)
    parser.add_argument("--profiles", metavar="N", type=positive, default=100_000)
    parser.add_argument("--deliveries", metavar="N", type=positive, default=50_000)
    parser.add_argument("--size", metavar="BYTES", type=positive, default=4_000, help="a message")
    add_part_option(parser, PARTS)


def run(options: argparse.Namespace) -> Report:
    """Measures; WrongAnswers where Spark finds other matches than the engine."""
    title = f"spark: {options.messages:,} messages, {options.profiles:,} profiles"
    return run_parts(title, PARTS, PROMISED, options)


def _messages(options: argparse.Namespace) -> list[bytes]:
    some = make_messages(make_schema(_SEED), _SEED, _DISTINCT, options.size)
    return [some[place % len(some)] for place in range(options.messages)]


# -------------------------------------------------------------------------------------------------
# Processor time of what this process has started: of JVMs, and of all others.


def _used() -> tuple[float, float]:
    jvm = others = 0
    for process in descendants()[1:]:
        fields = stat_of(process)
        if fields:
            ticks = sum(map(int, fields[11:15]))  # with those that have ended
            is_java = Path(f"/proc/{process}/comm").read_text().strip() == "java"
            jvm, others = jvm + ticks * is_java, others + ticks * (not is_java)
    tick = os.sysconf("SC_CLK_TCK")
    return jvm / tick, others / tick


def _timed(job: Callable[[], object], messages: int) -> tuple[float, float]:
    """Microseconds a message of a second run: of the JVM, of its workers."""
    job()
    before = _used()
    job()
    jvm, workers = (after - began for began, after in zip(before, _used(), strict=True))
    return jvm / messages * 1e6, workers / messages * 1e6


def _written(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


# -------------------------------------------------------------------------------------------------
# Parts


def _filter(report: Report, options: argparse.Namespace) -> None:
    messages = _messages(options)
    maker = ProfileMaker(make_schema(_SEED), _SEED)
    texts = dict(enumerate(islice(maker.distinct(), options.profiles)))
    profiles = {str(number): text for number, text in texts.items()}
    matcher = Engine(Population(tuple(profiles), tuple(profiles.values()))).matcher
    alone = messages[:_ALONE]
    for message in alone:  # the workers have seen all messages in their first run
        matcher.matched_numbers(message)
    began = time.process_time()
    found = sum(len(matcher.matched_numbers(message)) for message in alone)
    engine = (time.process_time() - began) / len(alone) * 1e6
    loop = _loop_us(list(profiles.values()), alone)
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    with TemporaryDirectory(prefix="onyx-bench-") as name, _session() as spark:
        for place in range(_FILES):
            table = arrow.table({"message": [one.decode() for one in messages[place::_FILES]]})
            parquet.write_table(table, Path(name) / f"{place}.parquet", row_group_size=5_000)
        frame = onyx.spark.filter(spark.read.parquet(name), profiles, numbers=True)
        few = spark.createDataFrame([(one.decode(),) for one in alone], "message string")
        matched = onyx.spark.filter(few, profiles, numbers=True).selectExpr("sum(size(profiles))")
        if matched.first()[0] != found:
            raise WrongAnswers(f"Spark finds {matched.first()[0]} matches, the engine {found}")
        jvm, workers = _timed(lambda: _written(frame), len(messages))
    report.figure("engine_us", "engine alone, a message", engine, "us")
    report.figure("filter_jvm_us", "filter, JVM", jvm, "us", "engine_us")
    report.figure("filter_worker_us", "filter, workers", workers, "us", "engine_us")
    report.figure("filter_matches", "matches a message", found / len(alone))
    report.figure("filter_over_engine", "engine / filter", engine / (jvm + workers))
    report.figure("filter_worker_over_engine", "engine / workers of filter", engine / workers)
    report.figure("filter_over_lxml_udf", "loop of XPaths / filter", loop / (jvm + workers))


def _loop_us(texts: list[str], messages: list[bytes]) -> float:
    """Microseconds of a message in a loop of all profiles, by some of both."""
    some = texts[:: max(1, len(texts) // _LOOPED)]
    paths = [lxml.etree.XPath(f"boolean({text})") for text in some]
    trees = [lxml.etree.fromstring(message) for message in messages[:_LOOPED_MESSAGES]]
    began = time.process_time()
    for tree in trees:
        for path in paths:
            path(tree)
    return (time.process_time() - began) / len(trees) * len(texts) / len(some) * 1e6


def _scan(report: Report, options: argparse.Namespace) -> None:
    messages = _messages(options)
    matcher = Engine(Population(("p",), (_SCANNED,))).matcher
    alone = messages[:_ALONE]
    began = time.process_time()
    found = sum(bool(list(matcher.deliver(message))) for message in alone)
    engine = (time.process_time() - began) / len(alone) * 1e6
    with TemporaryDirectory(prefix="onyx-bench-") as name, _session() as spark:
        for place in range(_FILES):
            _write_archive(Path(name) / f"onyx-B1-{place}{SUFFIX}", _rows(messages[place::_FILES]))
        frame = spark.read.format("onyx").option("profile", _SCANNED).load(name)
        if not found and frame.count():
            raise WrongAnswers("Spark finds results, the engine none")
        jvm, workers = _timed(lambda: _written(frame), len(messages))
    report.figure("scan_engine_us", "one profile, engine alone", engine, "us")
    report.figure("scan_us", "one profile over an archive", jvm + workers, "us", "scan_engine_us")
    report.figure("scan_over_engine", "engine / scan", engine / (jvm + workers))


def _rows(messages: list[bytes]) -> list[ArchivedMessage]:
    at = 1_764_000_000_000_000
    return [
        ArchivedMessage("s1-bench", number, at + number, "", message)
        for number, message in enumerate(messages, 1)
    ]


def _write_archive(path: Path, rows: list[ArchivedMessage]) -> None:
    summing, members = Summing(), []
    for first in range(0, len(rows), _MEMBER):
        some = [packed(row) for row in rows[first : first + _MEMBER]]
        members.append(member_of(some))
        summing.add(len(members[-1]), some)
    path.write_bytes(b"".join([*members, summing.frame()]))


def _archive(report: Report, options: argparse.Namespace) -> None:
    rows = _rows(_messages(options)[:_DISTINCT])
    with TemporaryDirectory(prefix="onyx-bench-") as name:
        path, old = Path(name) / f"onyx{SUFFIX}", Path(name) / "old"
        began = time.process_time()
        _write_archive(path, rows)
        done = time.process_time()
        lines = [row.line() for row in rows]
        members = (b"".join(lines[at : at + _MEMBER]) for at in range(0, len(lines), _MEMBER))
        old.write_bytes(b"".join(gzip.compress(member, 6) for member in members))
        ended = time.process_time()
        bytes_ratio = path.stat().st_size / old.stat().st_size
    new_us, old_us = (done - began) / len(rows) * 1e6, (ended - done) / len(rows) * 1e6
    report.figure("archive_gzip_us", "archive, gzip and JSON, a message", old_us, "us")
    report.figure("archive_us", "archive", new_us, "us", "archive_gzip_us")
    report.figure("archive_write_ratio", "archive / gzip and JSON", new_us / old_us)
    report.figure("archive_bytes_ratio", "bytes / those of gzip", bytes_ratio)


def _stream(report: Report, options: argparse.Namespace) -> None:
    async def streamed(folder: Path, spark: Any) -> None:
        async with onyx_network(folder / "network") as network:
            measure = partial(_read_stream, report, options.deliveries, folder, spark)
            await trio.to_thread.run_sync(measure, network.registration)

    with TemporaryDirectory(prefix="onyx-bench-") as name, _session() as spark:
        trio.run(streamed, Path(name), spark)


def _read_stream(report: Report, number: int, folder: Path, spark: Any, registration: str) -> None:
    with User(registration, "benchmark") as user:
        profile = user.add_profile("/reading").id
    options = {"registration": registration, "profile": profile}
    stream = partial(_loaded, spark.readStream.format("onyx").options(**options))
    with DataSource.register(registration, name="benchmark") as source:
        through = max(one.number for one in source.publish_all(map(_reading, range(number))))
        with User(registration, "benchmark") as user:
            while user.positions(profile)[profile].last < through:
                time.sleep(_POLL_SECONDS)
        limited = stream(maxDeliveriesPerTrigger=-(-number // _BATCHES))
        rows = limited.writeStream.format("parquet").option("path", f"{folder}/rows")
        rows = rows.option("checkpointLocation", f"{folder}/1").trigger(availableNow=True)
        query = rows.start()
        while not query.recentProgress and not query.awaitTermination(_POLL_SECONDS):
            pass
        before = _used()
        query.awaitTermination()
        jvm, others = (after - began for began, after in zip(before, _used(), strict=True))
        batches = [one for one in query.recentProgress if one["numInputRows"]][1:]
        read = sum(one["numInputRows"] for one in batches)
        took = sum(one["durationMs"]["triggerExecution"] for one in batches) / 1e3
        found = [row.number for row in spark.read.parquet(f"{folder}/rows").collect()]
        seen: Queue[tuple[int, float]] = Queue()

        def note(batch: Any, _: int) -> None:
            for row in batch.select("number").collect():
                seen.put((row.number, time.perf_counter()))

        query = stream().writeStream.foreachBatch(note).trigger(processingTime="0 seconds")
        query = query.option("checkpointLocation", f"{folder}/2").start()
        late = []
        for place in range(_SINGLE + 1):
            began = time.perf_counter()
            published = source.publish(_reading(place)).number
            while (came := seen.get(timeout=_COMES_SECONDS))[0] != published:
                pass
            late.append(1e3 * (came[1] - began))
        query.stop()
    report.figure("stream_deliveries_s", "deliveries a second", read / took)
    report.figure("stream_jvm_us", "JVM, a delivery", jvm / read * 1e6, "us")
    report.figure("stream_python_us", "readers and brokers, a delivery", others / read * 1e6, "us")
    report.figure("stream_latency_ms", "published until in a batch", median(late[1:]), "ms")
    report.figure("lost", "deliveries that did not come", through - len(set(found)))
    report.figure("doubled", "deliveries that came twice", len(found) - len(set(found)))


def _loaded(reader: Any, **options: object) -> Any:
    return reader.options(**options).load()


def _reading(number: int) -> bytes:
    return b"<reading n='%d'/>" % number


def _cluster(report: Report, options: argparse.Namespace) -> None:
    with TemporaryDirectory(prefix="onyx-bench-") as name, _in_folder(Path(name)):
        least = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": least,
            "spark.executor.extraJavaOptions": least,
        }
        with onyx.spark.session("local-cluster[2,1,1024]", settings) as spark:
            frame = spark.range(0, 8, 1, 8).mapInArrow(_telling(), "worker long, build string")
            builds = {row.worker: row.build for row in frame.collect()}
    compiled = sum(build == "compiled" for build in builds.values())
    report.figure("cluster_workers", "workers of a cluster", len(builds))
    report.figure("cluster_compiled", "share that runs compiled code", compiled / len(builds))


def _telling() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A job that tells the build of its worker; it goes there by value."""
    info = build_info

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        arrow = import_module("pyarrow")
        for batch in batches:
            said = [[os.getpid()] * len(batch), [info()] * len(batch)]
            yield arrow.RecordBatch.from_arrays(
                [arrow.array(column) for column in said], ["worker", "build"]
            )

    return run


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Executors of ``local-cluster`` work below SPARK_HOME, which is there for so long."""
    home = spark_home(folder)
    before = dict(os.environ)
    os.environ.update(SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def spark_home(folder: Path) -> Path:
    """The installed Spark, in a folder of its own."""
    home = folder / "spark"
    home.mkdir()
    for entry in Path(str(import_module("pyspark").__file__)).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return home


@contextmanager
def _session() -> Iterator[Any]:
    with onyx.spark.session("local[2]") as spark:
        yield spark


PARTS: dict[str, Part] = {
    "filter": _filter,
    "scan": _scan,
    "archive": _archive,
    "stream": _stream,
    "cluster": _cluster,
}
PROMISED = (
    *("filter_over_engine", "filter_worker_over_engine", "filter_over_lxml_udf"),
    *("scan_over_engine", "archive_write_ratio", "archive_bytes_ratio", "cluster_compiled"),
    *("stream_deliveries_s", "stream_latency_ms", "lost", "doubled"),
)
SPARK = Benchmark(
    "spark",
    "profiles over DataFrames and archives on Spark",
    add_options,
    (
        *("--messages", "400", "--profiles", "200"),
        *("--part", "filter", "scan", "archive"),
    ),
    run,
)
