"""Functions of function providers at work: each in a sandboxed process beside its Spark worker.

::

    with FunctionRunner(Work(function, archive)) as runner:
        for batch in runner.run(batches): ...

A runner watches the process against the cost model of the function (seed 001, 2.4): processor
time, memory and bytes of output may be three times as much, with a grace for small batches; then
the process is killed.  Batches cross as Arrow IPC on two pipes; see ``sandbox_process.py``.

In a worker of Spark a process is kept for its function, and started once (0.5 s).
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import json
import os
import resource
import select
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa

from registration.queries.providers import Function
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped
from registration.spark import sandbox_process as process
from registration.spark.arrow_types import arrow_schema
from registration.spark.sandbox import missing

FACTOR = 3
"""So many times its cost model a function may take."""

GRACE_SECONDS = 1.0
GRACE_BYTES = 1 << 20
PATIENCE_SECONDS = 60.0
"""Longest time without a frame, in which a function may wait but need no processor."""

START_SECONDS = 60.0
ARCHIVE_BYTES_MAX = 8 << 20
_FRAME_BYTES_MAX = 1 << 30
_TICK_SECONDS = 0.05
_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031
_BEGIN = (
    "import sys, json; sys.path[:0] = json.loads(sys.argv[1]); "
    "from registration.spark.sandbox_process import main; main()"
)


@dataclass(frozen=True, slots=True)
class Work:
    """A function with the bytes of its zip and the name of its entry, ``module:name``.

    ``weak``: run even where the machine cannot enforce the whole sandbox."""

    function: Function
    archive: bytes
    entry: str
    weak: bool = False

    @property
    def key(self) -> str:
        """Equal for work that one process can serve."""
        model = repr((self.function, self.entry, self.weak))
        return hashlib.sha256(self.archive + model.encode()).hexdigest()


class Used(NamedTuple):
    """The use of a function so far: rows and bytes both ways, seconds of processor, and
    megabytes at most on top of those of the idle process."""

    rows: float
    rows_made: float
    bytes_made: float
    seconds: float
    megabytes: float


class FunctionRunner:
    """A context manager.  Invariant: after an exception the process is gone."""

    def __init__(self, work: Work) -> None:
        """QueryRefused ``no-resources`` where the machine cannot enforce the sandbox and the work
        is not ``weak``; QueryStopped where the function cannot be imported."""
        lacking = missing()
        if lacking and not work.weak:
            reason = f"this machine cannot enforce the sandbox of functions: {', '.join(lacking)}"
            hint = "the provider may allow it: onyx provider serve --allow-weak-sandbox"
            raise QueryRefused("no-resources", reason, work.function.uri, hint=hint)
        self._function = function = work.function
        self._rows = self._rows_made = self._bytes = 0.0
        self._began, self._idle = 0.0, 0
        self._given = arrow_schema(function.inputs)
        self._made = arrow_schema(function.outputs)
        self._file = _kept(work.archive)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BEGIN, json.dumps([p for p in sys.path if p])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={}, cwd="/", close_fds=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        for end in (self._in, self._out):
            os.set_blocking(end, False)
            with suppress(OSError):
                fcntl.fcntl(end, _SET_PIPE_SIZE, _PIPE_BYTES)
        try:
            self._start(work)
        except BaseException:
            self.close()
            raise

    def _start(self, work: Work) -> None:
        folders, path = readable_folders()
        setup = {
            "folders": [*folders, self._file],
            "path": [self._file, *path],
            "entry": work.entry,
            "kind": self._function.kind,
            "given": self._given.serialize().to_pybytes().hex(),
            "made": self._made.serialize().to_pybytes().hex(),
        }
        self._allowed = self._seconds() + START_SECONDS
        self._say(process.SETUP, json.dumps(setup).encode())
        self._expect(process.READY)
        self._bound_memory()
        self._say(process.GO)
        self._expect(process.READY)
        self._allowed = self._began = self._seconds()

    def _bound_memory(self) -> None:
        if sys.platform == "linux":
            pages, resident = Path(f"/proc/{self._process.pid}/statm").read_text().split()[:2]
            self._idle = int(resident) * resource.getpagesize()
            more = int(FACTOR * self._function.megabytes * (1 << 20)) + 64 * GRACE_BYTES
            limit = int(pages) * resource.getpagesize() + more
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (limit, limit))

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function's batches; for a scalar one each as long as the batch it is made of."""
        given, rows = iter(batches), 0
        self._say(process.RUN)
        try:
            while True:
                kind, payload = self._hear()
                if kind == process.WANT:
                    batch = next(given, None)
                    if batch is None:
                        self._say(process.END)
                        continue
                    rows = batch.num_rows
                    self._allow(rows)
                    columns = [
                        c.cast(f.type) for c, f in zip(batch.columns, self._given, strict=True)
                    ]
                    sent = pa.RecordBatch.from_arrays(columns, schema=self._given)
                    self._say(process.BATCH, sent.serialize())
                elif kind == process.RESULT:
                    yield self._checked(payload, rows)
                elif kind == process.DONE:
                    return
                else:
                    raise self._failed("it answered out of turn")
        except BaseException:
            self.close()
            raise

    def used(self) -> Used:
        """Since the start; memory is 0 where the system does not tell it, as behind its end."""
        megabytes = 0.0
        if sys.platform == "linux":
            status = Path(f"/proc/{self._process.pid}/status").read_text()
            said = status.partition("VmHWM:")[2].split()  # nothing of a process that has ended
            megabytes = max(0, (int(said[0]) << 10) - self._idle) / (1 << 20) if said else 0.0
        seconds = self._seconds() - self._began
        return Used(self._rows, self._rows_made, self._bytes, seconds, megabytes)

    def _allow(self, rows: int) -> None:
        self._rows += rows
        self._allowed = (
            self._began + GRACE_SECONDS + FACTOR * self._rows * self._function.seconds_per_row
        )

    def _checked(self, payload: bytearray, rows: int) -> pa.RecordBatch:
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(payload), self._made)
            batch.validate(full=True)
        except (pa.ArrowException, OSError, EOFError) as error:
            raise self._failed(f"it gave no rows of its signature: {error}") from None
        if self._function.kind == "scalar" and batch.num_rows != rows:
            raise self._failed(f"{batch.num_rows} values came back for {rows} rows")
        self._bytes += len(payload)
        self._rows_made += batch.num_rows
        width = self._function.bytes_per_row
        if width is not None:
            bound = FACTOR * self._rows * self._function.rows_per_row * width + GRACE_BYTES
            if self._bytes > bound:
                reason = f"it made {self._bytes:,.0f} bytes, {bound:,.0f} are allowed"
                raise self._over(reason)
        return batch

    def _seconds(self) -> float:
        """Processor time of the process."""
        if sys.platform != "linux":
            return 0.0
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def _say(self, kind: bytes, payload: Any = b"") -> None:
        data = memoryview(payload).cast("B")
        for part in (memoryview(process.HEAD.pack(kind, len(data))), data):
            view = part
            while len(view):
                self._wait(self._in, select.POLLOUT)
                try:
                    view = view[os.write(self._in, view) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return  # its last frame says why

    def _hear(self) -> tuple[bytes, bytearray]:
        kind, length = process.HEAD.unpack(self._exactly(process.HEAD.size))
        if length > _FRAME_BYTES_MAX:
            raise self._over(f"it gave {length:,} bytes at once")
        payload = self._exactly(length)
        if kind == process.FAILED:
            said = json.loads(payload)
            message = " ".join(str(said["message"]).split())
            raise self._failed(f"{message} ({said['place']})" if said["place"] else message)
        return kind, payload

    def _expect(self, kind: bytes) -> None:
        if self._hear()[0] != kind:
            raise self._failed("it answered out of turn")

    def _exactly(self, length: int) -> bytearray:
        data = bytearray(length)
        view, filled = memoryview(data), 0
        while filled < length:
            self._wait(self._out, select.POLLIN)
            try:
                count = os.readv(self._out, [view[filled:]])
            except BlockingIOError:
                continue
            if count == 0:
                self._process.wait()
                raise self._failed(f"its process ended with {self._process.returncode}")
            filled += count
        return data

    def _wait(self, end: int, event: int) -> None:
        """Until the pipe is ready; QueryStopped once the function has used up what it may."""
        poll = select.poll()
        poll.register(end, event)
        last = time.monotonic() + PATIENCE_SECONDS
        while not poll.poll(_TICK_SECONDS * 1000):
            if self._process.poll() is None and self._seconds() > self._allowed:
                used, allowed = self._seconds() - self._began, self._allowed - self._began
                raise self._over(f"it took {used:.1f} s of processor, {allowed:.1f} s are allowed")
            if time.monotonic() > last:
                raise self._over(f"nothing came for {PATIENCE_SECONDS:g} s")

    def _over(self, reason: str) -> QueryStopped:
        return self._stopped("function-over-cost", reason)

    def _failed(self, reason: str) -> QueryStopped:
        return self._stopped("function-failed", reason)

    def _stopped(self, code: str, reason: str) -> QueryStopped:
        return QueryStopped(code, f"{self._function.name}: {reason}", self._function.uri)

    def close(self) -> None:
        """Kill the process and wait for its end."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        self._process.wait()
        Path(self._file).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def readable_folders() -> tuple[list[str], list[str]]:
    """Folders and files that a sandboxed interpreter reads, and its ``sys.path``."""
    paths = sysconfig.get_paths()
    path = [paths["stdlib"], f"{paths['stdlib']}/lib-dynload"]
    path += [str(Path(pa.__file__).parents[1])]
    libraries = [f"{sys.base_prefix}/lib", "/usr/lib", "/usr/local/lib", "/lib", "/lib64"]
    single = ["/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo"]
    there = dict.fromkeys(p for p in (*path, *libraries, *single) if Path(p).exists())
    return list(there), path


def _kept(archive: bytes) -> str:
    handle, name = tempfile.mkstemp(suffix=".zip")
    with os.fdopen(handle, "wb") as file:
        file.write(archive)
    return name


_RUNNERS: dict[str, FunctionRunner] = {}


def _runner(work: Work) -> FunctionRunner:
    """The runner of this worker process, started by its first batch."""
    if not _RUNNERS:
        atexit.register(_close_all)
    if work.key not in _RUNNERS:
        _RUNNERS[work.key] = FunctionRunner(work)
    return _RUNNERS[work.key]


def _close_all() -> None:
    while _RUNNERS:
        _RUNNERS.popitem()[1].close()


def _run_kept(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """RuntimeError with a text that ``stopped_in`` reads, since Spark passes on texts alone."""
    key = work.key
    try:
        yield from _runner(work).run(batches)
    except BaseException as error:
        _RUNNERS.pop(key, None)
        if isinstance(error, QueryStopped):
            raise RuntimeError(error.marked()) from None
        raise


def scalar_function(work: Work) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For ``arrow_udf``, which reads from the annotations that iterators come: arrays of the inputs
    to arrays of the result."""
    names = [name for name, _ in work.function.inputs]

    def columns(given: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        for arrays in given:
            parts = arrays if isinstance(arrays, tuple) else (arrays,)
            yield pa.RecordBatch.from_arrays(list(parts), names=names)

    def apply(given: Iterator[Any]) -> Iterator[Any]:
        for batch in _run_kept(work, columns(given)):
            yield batch.column(0)

    apply.__annotations__ = dict.fromkeys(("given", "return"), Iterator[pa.Array])
    return apply


def table_function(work: Work) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For ``DataFrame.mapInArrow``: batches of the inputs to batches of the outputs."""

    def apply(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _run_kept(work, given)

    return apply
