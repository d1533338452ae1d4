"""*Send*: rows of the tasks of a fragment on their way to the process that takes them.

Each task writes Arrow batches to a socket of this process, which hands them out while later rows
are made; a task waits while so many batches are waiting.  A waiting task keeps its slot of Spark.
Another fragment that has no slot may be just the one that the taker waits for, for ever: so batches
go to a file, and tasks end, while a stage of Spark has tasks and not one of them is at work.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from registration.queries.stopped import QueryStopped

if TYPE_CHECKING:
    from io import BufferedReader

Batch: TypeAlias = Any
Item: TypeAlias = "Batch | Exception | None"

BATCHES_WAITING_MAX = 8
LOOK_SECONDS = 0.1
_BUFFER_BYTES = 1 << 20
_PARTITION = 4  # bytes in front of the stream of a task: the number of its partition
_LENGTH = 8  # bytes in front of a batch in a file


class Waiting:
    """Batches in their order, the later ones in a file where tasks may not wait."""

    def __init__(self, file: Path, is_starving: Callable[[], bool]) -> None:
        """``is_starving``: whether waiting tasks keep others from work."""
        self._file, self._is_starving = file, is_starving
        self._change = threading.Condition()
        self._items: deque[Item] = deque()
        self._is_closed = False
        self._written = self._read = 0  # bytes of the file
        self._schema: Any = None

    def put(self, found: Item) -> bool:
        """False where nobody takes anything any more.  Waits while there is no room."""
        is_batch = found is not None and not isinstance(found, Exception)
        while True:
            with self._change:
                if self._is_closed:
                    return False
                is_full = len(self._items) >= BATCHES_WAITING_MAX
                if not is_full and self._read == self._written:
                    self._items.append(found)
                    self._change.notify_all()
                    return True
                if is_batch and self._read < self._written:
                    self._write(found)
                    return True
                self._change.wait(LOOK_SECONDS)
                if not is_batch or len(self._items) < BATCHES_WAITING_MAX:
                    continue
            if self._is_starving():
                with self._change:
                    self._write(found)
                return True

    def take(self, timeout: float) -> Item:
        """The next one; TimeoutError where there is none for so many seconds."""
        with self._change:
            end = monotonic() + timeout
            while not self._items and self._read == self._written:
                if not self._change.wait(end - monotonic()):
                    raise TimeoutError
            found = self._items.popleft() if self._items else self._next()
            self._change.notify_all()
            return found

    def close(self) -> None:
        with self._change:
            self._is_closed = True
            self._change.notify_all()

    def _write(self, batch: Batch) -> None:
        self._schema = batch.schema
        data = batch.serialize()
        with self._file.open("ab") as file:
            file.write(len(data).to_bytes(_LENGTH))
            file.write(data)
            self._written = file.tell()
        self._change.notify_all()

    def _next(self) -> Batch:
        with self._file.open("rb") as file:
            file.seek(self._read)
            data = file.read(int.from_bytes(file.read(_LENGTH)))
            self._read = file.tell()
        if self._read == self._written:
            self._file.unlink()
            self._read = self._written = 0
        arrow = import_module("pyarrow")
        return arrow.ipc.read_record_batch(arrow.py_buffer(data), self._schema)


class Sending:
    """The end at which rows of tasks come; ``waiting`` has batches, at last None or an error."""

    def __init__(
        self, folder: Path, is_starving: Callable[[], bool] = bool, *, is_ordered: bool
    ) -> None:
        """``folder``: empty, for a socket and a file of batches."""
        self.path = folder / "s"
        self.waiting = Waiting(folder / "batches", is_starving)
        self._is_ordered = is_ordered
        self._is_closed = threading.Event()
        self._change = threading.Condition()
        self._over: set[int] = set()  # partitions
        self._rows = 0
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen(128)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def end(self, rows: int) -> None:
        """All tasks are done; QueryStopped where fewer rows have come than they have sent."""
        for thread in self._threads:
            thread.join()
        if self._rows != rows and not self._is_closed.is_set():
            raise QueryStopped("failed", f"{rows:,} rows were sent, {self._rows:,} came")
        self.waiting.put(None)

    def fail(self, error: Exception) -> None:
        self.waiting.put(error)

    def close(self) -> None:
        """No task is waited for any more."""
        self._is_closed.set()
        self.waiting.close()
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
                        if not self._is_turn(partition) or not self.waiting.put(batch):
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


def sender(path: str) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
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
