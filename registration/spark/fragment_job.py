"""A fragment of a query plan at work in a Spark session (seed 001, 2.1 step 4).

Its scans and the streams that it receives are views of the session, its functions are functions of
the session, and Spark executes its SQL over these.  *Send*: each task writes its rows as Arrow
batches to a socket of this process, which hands them out while later rows are made; a task waits
while so many batches are waiting.  Rows of an ordered fragment keep their order.
"""

from __future__ import annotations

import logging
import queue
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from registration.queries.query_plan import Fragment, Receive, Scan
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped, stopped_in
from registration.spark.archive_files import files_of
from registration.spark.function_runner import (
    Work,
    scalar_function,
    table_function,
)
from registration.spark.receive_source import FORMAT, ReceiveSource, Stream
from registration.spark.session import Session

if TYPE_CHECKING:
    from io import BufferedReader

Batch: TypeAlias = Any
Frame: TypeAlias = Any

BATCHES_WAITING_MAX = 8
_LOOK_SECONDS = 0.1
_BUFFER_BYTES = 1 << 20
_PARTITION = 4  # bytes in front of the stream of a task: the number of its partition

# Of the session that executes fragments; nothing but views and functions has a name there.
STATIC_SETTINGS = {"spark.sql.reflect.allowList": "none", "spark.scheduler.mode": "FAIR"}
_SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.sql.broadcastTimeout": "86400",
}

# Formats of relations, and by each the options that a query may give as arguments.
ARGUMENTS = {"archive": frozenset({"profile", "columns", "source", "since", "until"})}


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a fragment so far: ``rows`` and ``bytes_sent`` as Arrow, ``bytes_read`` of the files
    of its scans, ``seconds`` since its start and ``first_row_s`` from there to the first batch;
    ``share``: of its tasks that are done, from 0 to 1."""

    number: int
    rows: int = 0
    bytes_sent: int = 0
    bytes_read: int = 0
    first_row_s: float = 0.0
    seconds: float = 0.0
    share: float = 0.0


class FragmentJob:
    """One fragment; ``batches`` executes it, once.

    ``schema``: its columns as an Arrow schema."""

    def __init__(
        self,
        session: Session,
        fragment: Fragment,
        streams: Mapping[int, Stream],
        works: Mapping[str, Work] = MappingProxyType({}),
    ) -> None:
        """``session``: the one of the query, as of ``query_session``.  ``streams``: by the number
        of the fragment that sends.  ``works``: the fragment's functions by their names in its SQL.
        QueryStopped for what Spark refuses."""
        self._session, self._context = session, session.sparkContext
        self.fragment = fragment
        self._group = f"onyx-query-{uuid4().hex}"
        self._rows = self._bytes = self._bytes_scanned = 0
        self._begun = self._first = self._ended = 0.0
        self._is_cancelled = threading.Event()
        self._frames: list[Frame] = []
        wrappers = {work.function.uri: work for work in works.values()}
        try:
            for name, work in works.items():
                _plug(session, name, work)
            for scan in fragment.scans:
                found = open_scan(session, scan, wrappers.get(scan.relation.wrapper or ""))
                found.createOrReplaceTempView(scan.view)
                self._bytes_scanned += bytes_of(found, scan)
            received = [self._receive(each, streams) for each in fragment.receives]
            frame = session.sql(fragment.sql)
            if received and _reads_twice(frame, len(received)):
                # A stream is sent once: the frames that are read again are kept here.
                self._frames = [each.persist() for each in received]
                frame = session.sql(fragment.sql)
        except QueryRefused:
            raise
        except Exception as error:
            raise self._stopped(error) from None
        self._frame = frame
        types = import_module("pyspark.sql.pandas.types")
        self.schema = types.to_arrow_schema(frame.schema, timezone="UTC")

    def _receive(self, receive: Receive, streams: Mapping[int, Stream]) -> Frame:
        reader = self._session.read.format(FORMAT).schema(_ddl(receive.columns))
        frame = reader.options(**streams[receive.fragment].options()).load()
        frame.createOrReplaceTempView(receive.view)
        return frame

    def measured(self) -> Measured:
        now = self._ended or monotonic()
        share = (1.0 if self._ended else self._share()) if self._begun else 0.0
        return Measured(
            self.fragment.number,
            self._rows,
            self._bytes,
            round(self._bytes_scanned * share),
            self._first - self._begun if self._first else 0.0,
            now - self._begun if self._begun else 0.0,
            share,
        )

    def cancel(self) -> None:
        """End it within a second; ``batches`` raises QueryStopped ``cancelled``."""
        self._is_cancelled.set()

    def batches(self, is_gone: Callable[[], bool] = bool) -> Iterator[Batch]:
        """Its rows, with ``schema``, as Spark makes them, until ``is_gone`` is true of who takes
        them; nothing of it runs on when this ends or is closed.  QueryStopped."""
        self._begun = monotonic()
        with tempfile.TemporaryDirectory(prefix="onyx-send-") as folder:
            send = _Sending(Path(folder) / "s", is_ordered=_is_ordered(self._frame))
            thread = threading.Thread(target=self._run, args=(send,), daemon=True)
            thread.start()
            try:
                for batch in self._taken(send, is_gone):
                    self._first = self._first or monotonic()
                    self._rows += batch.num_rows
                    self._bytes += batch.nbytes
                    yield self._named(batch)
            finally:
                self._ended = monotonic()
                if thread.is_alive():
                    self._context.cancelJobGroup(self._group)
                send.close()
                thread.join()
                for frame in self._frames:
                    frame.unpersist()

    def _named(self, batch: Batch) -> Batch:
        columns = [c.cast(f.type) for c, f in zip(batch.columns, self.schema, strict=True)]
        return import_module("pyarrow").RecordBatch.from_arrays(columns, schema=self.schema)

    def _taken(self, send: _Sending, is_gone: Callable[[], bool]) -> Iterator[Batch]:
        while True:
            if self._is_cancelled.is_set() or is_gone():
                raise QueryStopped("cancelled", "the query was cancelled")
            try:
                found = send.waiting.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if found is None:
                return
            if isinstance(found, Exception):
                raise self._stopped(found) from None
            yield found

    def _run(self, send: _Sending) -> None:
        """In a thread: the job, whose tasks send their rows."""
        try:
            self._context.setJobGroup(self._group, "fragment", interruptOnCancel=True)
            # mapInArrow takes a name with a dot for a field of a struct.
            frame = self._frame.toDF(*(f"c{at}" for at in range(len(self.schema))))
            sent = frame.mapInArrow(_sender(str(send.path)), "rows bigint").collect()
            send.end(sum(row[0] for row in sent))
        except Exception as error:
            send.fail(error)

    def _share(self) -> float:
        """Of the tasks that are done."""
        tracker = self._context.statusTracker()
        done = tasks = 0
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for number in () if info is None else info.stageIds:
                stage = tracker.getStageInfo(number)
                if stage is not None:
                    tasks += stage.numTasks
                    done += stage.numCompletedTasks
        return done / tasks if tasks else 0.0

    def _stopped(self, error: Exception) -> QueryStopped:
        if isinstance(error, QueryStopped):
            return error
        found = stopped_in(str(error))
        return found or QueryStopped("failed", _reason(error), self.fragment.site.uri)


def query_session(session: Session) -> Session:
    """A session for one query beside others: views and functions are its own."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # says errors again
    own = session.newSession()
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    own.dataSource.register(ReceiveSource)
    return own


def open_scan(session: Session, scan: Scan, wrapper: Work | None = None) -> Frame:
    """The columns of a relation that a scan reads, of its files by ``wrapper``."""
    relation = scan.relation
    reader = session.read.options(**options_of(scan))
    columns = _ddl((column.name, column.type) for column in relation.columns)
    match relation.format:
        case "parquet":
            frame = reader.parquet(relation.location)
        case "csv" | "json":
            frame = reader.schema(columns).format(relation.format).load(relation.location)
        case "jdbc":
            frame = reader.format("jdbc").option("url", relation.location).load()
        case "archive":
            frame = reader.format("onyx").load()
        case "files":
            files = reader.format("binaryFile").option("recursiveFileLookup", "true")
            frame = files.load(relation.location).select("path", "content")
            if wrapper is not None:
                frame = frame.mapInArrow(table_function(wrapper), _ddl(wrapper.function.outputs))
        case other:
            raise QueryStopped("failed", f"{relation.name}: no format {other}", relation.uri)
    return frame.select(*(f"`{name}`" for name in scan.columns)) if scan.columns else frame


def options_of(scan: Scan) -> dict[str, str]:
    """Those of the catalog and the arguments of the query that its format takes, which are others:
    a source that the catalog names stays the one.  An archive is read in its folder where that
    is here, else by the brokers of its network.  QueryStopped."""
    relation = scan.relation
    options = dict(relation.options)
    taken = ARGUMENTS.get(relation.format, frozenset()) - options.keys()
    wrong = sorted({name for name, _ in scan.arguments} - taken)
    if wrong:
        raise QueryStopped("failed", f"{relation.name} takes no argument {wrong[0]}", relation.uri)
    is_here = bool(relation.location) and Path(relation.location).exists()
    if relation.format == "archive" and (is_here or not options.get("registration")):
        options.pop("registration", None)
        options["archive"] = relation.location
    return options | dict(scan.arguments)


def _plug(session: Session, name: str, work: Work) -> None:
    """Make a scalar function known to the session."""
    if work.function.kind == "scalar":
        functions = import_module("pyspark.sql.functions")
        kind = functions.ArrowUDFType.SCALAR_ITER
        made = functions.arrow_udf(scalar_function(work), work.function.outputs[0][1], kind)
        session.udf.register(name, made)


def _ddl(columns: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


def bytes_of(frame: Frame, scan: Scan) -> int:
    """Of the files of a scan; of what has none, as its catalog says."""
    names = [unquote(urlsplit(name).path) for name in frame.inputFiles()]
    if scan.relation.format == "archive":
        names = [str(path) for path in files_of(Path(scan.relation.location))]
    sizes = [Path(name).stat().st_size for name in names if Path(name).exists()]
    return sum(sizes) if sizes else round(scan.relation.bytes or 0)


class _Sending:
    """The end at which rows of tasks come; ``waiting`` has batches, at last None or an error."""

    def __init__(self, path: Path, *, is_ordered: bool) -> None:
        self.path = path
        self.waiting: queue.Queue[Batch | Exception | None] = queue.Queue(BATCHES_WAITING_MAX)
        self._is_ordered = is_ordered
        self._is_closed = threading.Event()
        self._change = threading.Condition()
        self._over: set[int] = set()  # partitions
        self._rows = 0
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(128)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def end(self, rows: int) -> None:
        """All tasks are done; QueryStopped where fewer rows have come than they have sent."""
        for thread in self._threads:
            thread.join()
        if self._rows != rows and not self._is_closed.is_set():
            raise QueryStopped("failed", f"{rows:,} rows were sent, {self._rows:,} came")
        self._put(None)

    def fail(self, error: Exception) -> None:
        self._put(error)

    def close(self) -> None:
        """No task is waited for any more."""
        self._is_closed.set()
        with self._change:
            self._change.notify_all()
            for each in (self._listener, *self._open):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
        self._listener.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self._is_closed.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._change:
                self._open.add(connection)
            thread = threading.Thread(target=self._take, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _take(self, connection: socket.socket) -> None:
        """The stream of one task, whose failure is the job's."""
        arrow = import_module("pyarrow")
        made = connection.makefile("rb", buffering=_BUFFER_BYTES)
        with connection, cast("BufferedReader", made) as stream:
            try:
                partition = int.from_bytes(stream.read(_PARTITION))
                if stream.peek(1):
                    for batch in arrow.ipc.open_stream(stream):
                        if not self._is_turn(partition) or not self._put(batch):
                            return
                        with self._change:
                            self._rows += batch.num_rows
            except (OSError, arrow.ArrowException):
                return
            finally:
                with self._change:
                    self._open.discard(connection)
                    self._over.add(partition)
                    self._change.notify_all()

    def _is_turn(self, partition: int) -> bool:
        """Waits until all rows of earlier partitions have come, where rows have an order."""
        if not self._is_ordered:
            return True
        with self._change:
            self._change.wait_for(
                lambda: self._is_closed.is_set() or self._over.issuperset(range(partition))
            )
        return not self._is_closed.is_set()

    def _put(self, found: Batch | Exception | None) -> bool:
        while not self._is_closed.is_set():
            try:
                self.waiting.put(found, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False


def _sender(path: str) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """For the workers: rows go to the socket, and how many there were is what Spark gets."""

    def send(batches: Iterator[Batch]) -> Iterator[Batch]:
        import socket as sockets  # noqa: PLC0415 - this runs in a worker

        import pyarrow as arrow  # noqa: PLC0415
        from pyspark import TaskContext  # noqa: PLC0415

        task = TaskContext.get()
        rows = 0
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as connection:
            connection.connect(path)
            with connection.makefile("wb", buffering=_BUFFER_BYTES) as stream:
                stream.write((task.partitionId() if task else 0).to_bytes(_PARTITION))
                writer = None
                for batch in batches:
                    writer = writer or arrow.ipc.new_stream(stream, batch.schema)
                    writer.write_batch(batch)
                    stream.flush()
                    rows += batch.num_rows
                if writer is not None:
                    writer.close()
        yield arrow.record_batch([arrow.array([rows], arrow.int64())], ["rows"])

    return send


def _reads_twice(frame: Frame, received: int) -> bool:
    """Whether Spark would read a stream again: for a sample before it sorts, or for a view that the
    SQL names twice."""
    plan = str(frame._jdf.queryExecution().executedPlan())
    return "rangepartitioning" in plan or plan.count(f"BatchScan {FORMAT}") > received


def _is_ordered(frame: Frame) -> bool:
    return not frame._jdf.queryExecution().executedPlan().outputOrdering().isEmpty()


def _reason(error: Exception) -> str:
    """The line of Spark's text that says most: the last of a Python trace, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    trace = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (trace or lines or [type(error).__name__])[0]
