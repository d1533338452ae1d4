"""``format("onyx")``, written: the rows of a batch or a stream are published as a source.

docs/spark.md tells the options; those of the network count at the driver alone.

::

    rows --write, executors--> staged --commit messages or files--> commit, the driver --> root

The driver publishes, when it knows that a batch is whole: ``write`` only stages.  Staged
rows are compressed and travel in the commit messages, which need no folder that all machines see;
a partition has room for CARRIED_BYTES_MAX there, all partitions for ``spark.driver.maxResultSize``.
With ``staging`` they are in files, of which the driver reads a block at a time.

Spark commits a batch again where it has not noted that the batch was committed.  So each row of a
stream has a publish key: its own, or one of the query's id, the batch, a digest of the row, and how
many equal rows of the batch came before it.  A repeated batch has the same rows, in whatever order
and partitions, so it has the same keys.  Another checkpoint is another query with another id.
``df.write`` outside of a query is never repeated by Spark: rows without a key go without one there.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import msgspec
import zstandard

from formats.media_types import XML
from onyx.blocking import PORTALS, RegistrationClient
from onyx.data_source import DataSource
from onyx.errors import UserError
from onyx.spark.at_worker import AtWorker
from onyx.spark.filtering import MODES, RowRefused, SparkMisused
from onyx.spark.network import OPTIONS as OF_NETWORK
from onyx.spark.network import Network, given_of
from onyx.spark.told import told_alone
from overlay.limits import Limits
from overlay.verbs import SourceShow
from registration.spark.contract import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from onyx.client_values import Outcome, Publication

Batch: TypeAlias = Any

OPTIONS = (*OF_NETWORK, "source", "mode", "staging", "publishKeysMax")
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "message": ("string", "binary"),
    "key": ("string",),
    "media_type": ("string",),
    "headers": ("map<string,string>",),
}
CARRIED_BYTES_MAX = 16 * 1024 * 1024
"""Of the staged rows of a partition, compressed, in its commit message."""
BLOCK_BYTES = 1024 * 1024
"""Of messages, not compressed, that are staged and read together."""
PATIENCE_SECONDS = 120.0
"""How long a root broker may be away, or refuse a message for now, until the query ends."""
LATER = frozenset({"over-quota", "disk-full"})
"""Codes of refusals that are no fault of the message: it is published again."""
_PAUSE_SECONDS = 1.0
_ROW_BYTES = 64  # about, beside the message

log = logging.getLogger("onyx.spark")


class Row(msgspec.Struct, array_like=True, frozen=True):
    """A staged row; its message has no bytes for null, which the broker refuses.  ``digest`` of all
    of it, b"" for one with a key or outside of a query."""

    message: bytes
    key: str
    media_type: str
    headers: dict[str, str]
    digest: bytes


_rows = msgspec.msgpack.Decoder(list[Row])
_encoder = msgspec.msgpack.Encoder()


@dataclass
class Staged(WriterCommitMessage):
    """Staged rows of a partition: blocks, or a file of them.  ``query`` and ``batch``: "" outside
    of a query."""

    query: str
    batch: str
    rows: int = 0
    blocks: list[bytes] = field(default_factory=list)
    file: str = ""

    def read(self) -> Iterator[Row]:
        """A block at a time."""
        for block in _blocks_of(Path(self.file)) if self.file else self.blocks:
            yield from _rows.decode(zstandard.decompress(block))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options, checked.  SparkMisused."""

    network: Network
    source: str
    mode: str
    staging: str
    keys_max: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Asked:
        given = given_of(options, OPTIONS)
        network = Network.of(given)
        if not given.get("source"):
            raise SparkMisused("option source is missing: its id or name")
        mode = given.get("mode", "FAILFAST").upper()
        if mode not in MODES[1:]:
            raise SparkMisused(f"mode {mode!r}; expected {' or '.join(MODES[1:])}")
        most = given.get("publishkeysmax", str(Limits().publish_keys_max))
        if not most.isdecimal():
            raise SparkMisused(f"publishKeysMax: {most!r} is no number")
        staging = given.get("staging", "")
        if staging and not Path(staging).is_dir():
            raise SparkMisused(f"staging {staging}: there is no such directory")
        staging = str(Path(staging).absolute()) if staging else ""
        return cls(network, given["source"], mode, staging, int(most))


class Publishing(AtWorker, DataSourceStreamArrowWriter, DataSourceArrowWriter):
    """The writer of Spark's contract, of a batch and of a stream.

    The constructor raises SparkMisused for an option, a column or a type, and the network's refusal
    for a source that is not there, before any task runs.
    """

    def __init__(
        self, options: Mapping[str, str], schema: Any, *, overwrite: bool, is_stream: bool
    ) -> None:
        with told_alone():
            if overwrite:
                raise SparkMisused("what was published stays: write by mode append")
            _check_columns(schema)
            asked = self._asked = _Asked.of(options)
            self._run = "" if is_stream else uuid.uuid4().hex
            check_source(asked.network, asked.source)

    def write(self, iterator: Iterator[Batch]) -> Staged:
        task = import_module("pyspark").TaskContext.get()
        query, batch = map(
            task.getLocalProperty, ("sql.streaming.queryId", "streaming.sql.batchId")
        )
        staged = Staged(query or "", (batch or "") if query else "")
        if self._asked.staging:
            folder = Path(self._asked.staging) / f"onyx-{self._run or f'{query}-{batch}'}"
            folder.mkdir(parents=True, exist_ok=True)
            staged.file = str(folder / uuid.uuid4().hex)
        with told_alone(), _Stage(staged, f"partition {task.partitionId()}") as stage:
            for given in iterator:
                for row in rows_of(given, keyed=not query):
                    stage.add(row)
        return staged

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int = -1) -> None:
        """Publishes; at once for a batch that was committed before."""
        parts = [one for one in messages if isinstance(one, Staged)]
        rows, most = sum(one.rows for one in parts), self._asked.keys_max
        with told_alone():
            if rows and parts[0].query and rows > most:
                raise SparkMisused(
                    f"batch {batch_id} has {rows:,} rows, more than the {most:,} publish keys that "
                    "a root broker remembers, so it could be published twice: read less at a time, "
                    "or say option publishKeysMax as publish_keys_max of the broker"
                )
            if rows:
                _publish(self._asked, parts)
        _clean(parts)

    def abort(self, messages: list[WriterCommitMessage | None], batch_id: int = -1) -> None:
        _clean([one for one in messages if isinstance(one, Staged)])


def _clean(parts: Sequence[Staged]) -> None:
    """These files are of no use any more; another attempt may be at work in the same folder."""
    files = [Path(part.file) for part in parts if part.file]
    for file in files:
        file.unlink(missing_ok=True)
    for folder in {file.parent for file in files}:
        with suppress(OSError):
            folder.rmdir()


def _check_columns(schema: Any) -> None:
    kinds = {one.name: one.dataType.simpleString() for one in schema.fields}
    if len(kinds) < len(schema.fields):
        raise SparkMisused(f"a column is there twice: {', '.join(one.name for one in schema)}")
    if "message" not in kinds:
        raise SparkMisused(f"no column message; there are {', '.join(kinds)}")
    for name, kind in kinds.items():
        if name not in COLUMNS:
            raise SparkMisused(
                f"column {name} is not published; select some of {', '.join(COLUMNS)}"
            )
        if kind not in COLUMNS[name]:
            raise SparkMisused(f"column {name} is {kind}; expected {' or '.join(COLUMNS[name])}")


@cache
def check_source(network: Network, source: str) -> None:
    """Once in a process; NotAuthenticated, NetworkUnreachable, RequestFailed."""
    with network.shown(), RegistrationClient(network.registration) as client:
        client.ask(SourceShow(source=source))


# -- staging, in the executors


def rows_of(batch: Batch, *, keyed: bool) -> Iterator[Row]:
    """The rows of a batch of Arrow; with ``keyed`` none needs a digest."""
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    none = [None] * batch.num_rows
    cells = (columns.get(name, none) for name in COLUMNS)
    for message, key, media_type, headers in zip(*cells, strict=True):
        data = message.encode() if isinstance(message, str) else message or b""
        said = sorted((name, text or "") for name, text in headers or ())
        row = Row(data, key or "", media_type or XML, dict(said), b"")
        if not (keyed or key):
            found = sha256(_encoder.encode(row)).digest()[:16]
            row = msgspec.structs.replace(row, digest=found)
        yield row


class _Stage:
    """Rows of a partition on their way into blocks."""

    def __init__(self, staged: Staged, place: str) -> None:
        self._staged, self._place = staged, place
        self._waiting: list[Row] = []
        self._bytes = self._carried = 0
        self._file: Any = None

    def __enter__(self) -> _Stage:
        if self._staged.file:
            self._file = Path(self._staged.file).open("xb")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._pack()
        if self._file is not None:
            self._file.close()

    def add(self, row: Row) -> None:
        self._staged.rows += 1
        self._waiting.append(row)
        self._bytes += len(row.message) + _ROW_BYTES
        if self._bytes >= BLOCK_BYTES:
            self._pack()

    def _pack(self) -> None:
        block = zstandard.compress(_encoder.encode(self._waiting))
        self._waiting, self._bytes = [], 0
        if self._file is not None:
            self._file.write(len(block).to_bytes(4, "big") + block)
            return
        self._carried += len(block)
        if self._carried > CARRIED_BYTES_MAX:
            raise SparkMisused(
                f"{self._place} has more than {CARRIED_BYTES_MAX >> 20} MiB of messages, "
                "compressed, in one batch: read less at a time, repartition, or say option staging"
            )
        self._staged.blocks.append(block)


def _blocks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while size := file.read(4):
            yield file.read(int.from_bytes(size, "big"))


# -- publishing, in the driver


def _publish(asked: _Asked, parts: Sequence[Staged]) -> None:
    """By the connection that this process keeps for a query, which may have ended; its rows have
    keys, so they can be published again."""
    by = asked.network, asked.source
    is_kept = bool(parts[0].query) and _is_worker()
    connection = _kept.pop(by, None) if is_kept else None
    if connection is not None:
        with suppress(UserError):
            _publish_by(connection, asked, parts)
            _kept[by] = connection
            return
    connection = Connection(*by)
    _publish_by(connection, asked, parts)
    if is_kept:
        _kept[by] = connection
    else:
        connection.close()


def _publish_by(connection: Connection, asked: _Asked, parts: Sequence[Staged]) -> None:
    def refuse(refused: RowRefused) -> None:
        if asked.mode == "FAILFAST":
            raise refused

    publisher = Publisher(refuse)
    rows = chain.from_iterable(
        publisher.keyed(part.read(), f"{part.query}/{part.batch}", f"partition {number}, row")
        for number, part in enumerate(parts)
    )
    connection.publish(publisher, rows)
    if refused := publisher.counts["refused"]:
        log.warning("%s: %d messages were refused", asked.source, refused)


def _is_worker() -> bool:
    """Whether this process is one of those that Spark keeps for its queries, and ends without
    waiting for threads."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == "pyspark.daemon"


Placed: TypeAlias = "tuple[str, Publication]"
"""A row as it is published, with its place."""
Job: TypeAlias = "tuple[Publisher, Iterable[Placed], Future[None]]"


class Connection:
    """A source at its root broker in a task of its own, until the first failure."""

    def __init__(self, network: Network, source: str) -> None:
        self._network, self._source = network, source
        self._given, self._taken = anyio.create_memory_object_stream[Job](1)
        self._portal = PORTALS.__enter__()
        self._life = self._portal.start_task_soon(self._live)

    async def _live(self) -> None:
        with self._taken, self._network.shown():
            where = self._network.registration
            async with DataSource(
                where, self._source, patience_seconds=PATIENCE_SECONDS
            ) as connected:
                async for publisher, rows, done in self._taken:
                    await publisher.publish(connected, rows)
                    done.set_result(None)

    def publish(self, publisher: Publisher, rows: Iterable[Placed]) -> None:
        """RowRefused, or the network's refusal; it is of no use any more then."""
        done = Future[None]()
        with suppress(anyio.BrokenResourceError):  # it has ended
            self._portal.call(self._given.send_nowait, (publisher, rows, done))
        wait([done, self._life], return_when=FIRST_COMPLETED)
        if not done.done():
            self.close()

    def close(self) -> None:
        """Raises the failure with which it has ended."""
        try:
            self._portal.call(self._given.close)
            self._life.result()
        finally:
            PORTALS.__exit__(None, None, None)


_kept: dict[tuple[Network, str], Connection] = {}


class Publisher:
    """Publishes rows, up to some hundred ahead of their outcomes.

    ``refuse`` is called for each row that is refused; what it raises ends the publishing.
    ``counts``: rows that were accepted, refused, and known by their keys."""

    def __init__(self, refuse: Callable[[RowRefused], None]) -> None:
        self._refuse = refuse
        self.counts = Counter(accepted=0, refused=0, known=0)
        self._seen: dict[bytes, int] = {}  # how many rows there were of a digest
        self._open: deque[Placed] = deque()
        self._later: list[Placed] = []
        self._give_up_at: float | None = None

    def keyed(
        self, rows: Iterable[Row], query: str, place: str, first: int = 1
    ) -> Iterator[Placed]:
        """Rows with a digest have a key by that, by ``query``, and by how many equal rows this
        publisher was given before; ``place``: words before their numbers, from ``first``."""
        for number, row in enumerate(rows, first):
            where, key = f"{place} {number}", row.key
            if row.digest:
                count = self._seen[row.digest] = self._seen.get(row.digest, 0) + 1
                key = f"{query}/{row.digest.hex()}/{count}"
            elif key:
                where += f", key {key}"
            yield where, (row.message, row.media_type, key, row.headers or None)

    async def publish(self, source: DataSource, rows: Iterable[Placed]) -> None:
        """RowRefused, or the network's refusal; rows that were published by then are known by their
        keys when they come again."""
        while True:
            async with aclosing(source.publish_all(self._fed(rows))) as outcomes:
                async for outcome in outcomes:
                    self._take(outcome)
            if not self._later:
                break
            rows = ()

    async def _fed(self, rows: Iterable[Placed]) -> AsyncIterator[Publication]:
        """Messages for ``publish_all``; between them, after a pause, those for later."""
        for row in chain(rows, (None,)):
            given = [] if row is None else [row]
            if self._later:
                await anyio.sleep(_PAUSE_SECONDS)
                given, self._later = self._later + given, []
            for one in given:
                self._open.append(one)
                yield one[1]

    def _take(self, outcome: Outcome) -> None:
        place, publication = self._open.popleft()
        if outcome.accepted:
            self._give_up_at = None
            self.counts["known" if outcome.is_known else "accepted"] += 1
        elif outcome.code in LATER:
            now = anyio.current_time()
            self._give_up_at = self._give_up_at or now + PATIENCE_SECONDS
            if now > self._give_up_at:
                raise _refused(place, outcome)
            self._later.append((place, publication))
        else:
            self.counts["refused"] += 1
            self._refuse(_refused(place, outcome))


def _refused(place: str, outcome: Outcome) -> RowRefused:
    return RowRefused(msgspec.structs.replace(outcome.fault, where=place))
