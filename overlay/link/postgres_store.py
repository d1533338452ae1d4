"""PostgresStore: the durable rows of one node in a PostgreSQL server, for those who outgrow a disk.

As store.py, but that another process can go on with the rows when this one, or its machine, is
gone::

    PostgresStore ──take──> its rows     a lease says whose they are, and counts epochs
         commit: one statement           the epoch is asked in it: it fails once that is over

A commit that was sent when the connection broke may be in or not.  It is made again, and as each
has a number that follows the one before, in the same statement, it takes effect once.  How safe a
commit is, is the server's to say: with a synchronous replica it is on two machines.

PERF: a commit is one round trip whatever its size, rows are columns in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from threading import Event, Thread
from typing import Self, TypeAlias, TypeVar

import psycopg
from psycopg import sql

from overlay.link.errors import DiskFull, Fenced, StoreError, StoreUnreachable
from overlay.link.events import Delete, Put
from overlay.link.journal_rows import Unread
from overlay.link.row_store import net_changes
from overlay.statistics import StoreCounts

# -------------------------------------------------------------------------------------------------
# Connections to PostgreSQL, and the tables of a network there.
#
# ::
#
#     nodes    name, epoch, until, number    the lease of each node's rows (postgres_store.py)
#     rows     node, space, key, value       what store.py has in a file
#     format   version
#
# A network has a schema of its own, which its first process makes.


FORMAT_VERSION = 1
CONNECT_SECONDS = 2

PostgresConnection: TypeAlias = psycopg.Connection[tuple[object, ...]]

# A plan never depends on how many rows there were when it was made.
_SETTINGS = """
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET plan_cache_mode = force_generic_plan; SET client_min_messages = warning;
SET default_transaction_isolation = 'read committed';
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'
"""
_TABLES = """
CREATE TABLE IF NOT EXISTS format (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (
    name text PRIMARY KEY, epoch bigint NOT NULL, until timestamptz NOT NULL, number bigint NOT NULL
) WITH (fillfactor = 10);
CREATE TABLE IF NOT EXISTS rows (
    node text COLLATE "C" NOT NULL, space text COLLATE "C" NOT NULL, key bytea NOT NULL,
    value bytea NOT NULL, PRIMARY KEY (node, space, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
"""


def connect(url: str, schema: str, seconds: float) -> PostgresConnection:
    """A connection to whichever server takes changes; lost after so many silent seconds.

    StoreUnreachable says where and why there is none.
    """
    least = str(max(1, round(seconds)))
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=0,
            application_name=f"onyx {schema}",
            target_session_attrs="read-write",
            connect_timeout=str(CONNECT_SECONDS),
            tcp_user_timeout=str(round(seconds * 1000)),
            keepalives_idle=least,
            keepalives_interval="1",
            keepalives_count="2",
        )
    except psycopg.Error as error:
        raise StoreUnreachable(f"{shown(url)} cannot be reached: {_reason(error)}") from None
    try:
        connection.execute(_SETTINGS, prepare=False)
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))
    except psycopg.Error as error:
        connection.close()
        raise StoreUnreachable(f"{shown(url)} cannot be used: {_reason(error)}") from None
    return connection


def prepare(connection: PostgresConnection, schema: str, where: str) -> None:
    """Make the tables if they are not there; StoreError when they are of another version."""
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (schema,))
            found = connection.execute("SELECT to_regnamespace(%s)", (f'"{schema}"',)).fetchone()
            if found == (None,):
                name = sql.Identifier(schema)
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            connection.execute(_TABLES, prepare=False)
            connection.execute(
                "INSERT INTO format SELECT %s WHERE NOT EXISTS (SELECT FROM format)",
                (FORMAT_VERSION,),
            )
            versions = connection.execute("SELECT version FROM format").fetchall()
    except psycopg.Error as error:
        raise StoreError(f"{where} cannot be used: {_reason(error)}") from None
    if versions != [(FORMAT_VERSION,)]:
        found_version = ", ".join(str(version) for (version,) in versions)
        raise StoreError(
            f"{where} has store format {found_version}; this program reads format {FORMAT_VERSION}"
        )


def shown(url: str) -> str:
    """Without the query, in which there may be secrets."""
    return url.partition("?")[0]


def _reason(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Lease: which process has the rows of a node in PostgreSQL, and until when.
#
# ::
#
#     free ── take: epoch + 1 ─> held ── not renewed for ``seconds``, by the server's clock ─> free
#                                 └───── close ────────────────────────────────────────────────^
#
# Renewed by a thread with a connection of its own, four times in ``seconds``.  The holder counts
# from when it asked, the server from when it was asked, so the holder stops first.  Whoever wakes
# up behind that is *fenced*: ``check`` says so, and no commit of an epoch that is over takes
# effect, as each changes the row of the lease in the same statement.


RENEWALS = 4

_TAKE = """
INSERT INTO nodes AS old VALUES (%(node)s, 1, clock_timestamp() + %(seconds)s * interval '1 s', 0)
ON CONFLICT (name) DO UPDATE SET epoch = old.epoch + 1, until = excluded.until, number = 0
    WHERE old.until < clock_timestamp()
RETURNING epoch
"""
_IS_HELD = "SELECT 1 FROM nodes WHERE name = %s AND until >= clock_timestamp()"
_RENEW = """
UPDATE nodes SET until = clock_timestamp() + %s * interval '1 s' WHERE name = %s AND epoch = %s
"""
_FREE = "UPDATE nodes SET until = '-infinity' WHERE name = %s AND epoch = %s"


def seconds_since_boot() -> float:
    """Goes on while the machine sleeps, where the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """Of one node; ``epoch`` is 0 until it is taken."""

    def __init__(
        self,
        node: str,
        seconds: float,
        connect: Callable[[], PostgresConnection],
        clock: Callable[[], float] = seconds_since_boot,
    ) -> None:
        """``connect`` opens a connection, or raises StoreError."""
        self.node = node
        self.seconds = seconds
        self.epoch = 0
        self._connect = connect
        self._clock = clock
        self._until = -inf
        self._why = "it has not been renewed in time"
        self._ended = Event()
        self._thread = Thread(target=self._keep, name=f"lease of {node}", daemon=True)

    def take(self, connection: PostgresConnection) -> bool:
        """Whether it was free; if so it is held from now on.  psycopg.Error."""
        if connection.execute(_IS_HELD, (self.node,)).fetchone():
            return False  # looked at first: to take it would make the holder's commits wait
        began = self._clock()
        asked = {"node": self.node, "seconds": self.seconds}
        taken = connection.execute(_TAKE, asked).fetchone()
        if taken is None:
            return False
        (epoch,) = taken
        assert isinstance(epoch, int)
        self.epoch = epoch
        self._until = began + self.seconds
        self._thread.start()
        return True

    def check(self) -> None:
        """Fenced when it may be another's."""
        if self._clock() >= self._until:
            raise self.fenced()

    def end(self) -> None:
        """It is known to be another's."""
        self._why = "another process has taken them over"
        self._until = -inf
        self._ended.set()

    def fenced(self) -> Fenced:
        return Fenced(
            f"the rows of {self.node} are not this process's any more (epoch {self.epoch}): "
            f"{self._why}"
        )

    def close(self, connection: PostgresConnection) -> None:
        """Free it; idempotent."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._until > -inf:
            self._until = -inf
            with suppress(psycopg.Error):  # it ends by itself
                connection.execute(_FREE, (self.node, self.epoch))

    def _keep(self) -> None:
        """The thread."""
        connection: PostgresConnection | None = None
        while not self._ended.wait(self.seconds / RENEWALS):
            began = self._clock()
            try:
                connection = connection or self._connect()
                asked = self.seconds, self.node, self.epoch
                if connection.execute(_RENEW, asked).rowcount != 1:
                    self.end()
                elif self._until > -inf:
                    self._until = began + self.seconds
            except (psycopg.Error, StoreError):
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()


# -------------------------------------------------------------------------------------------------


PAGE_ROWS = 512
RECONNECT_SECONDS = 0.1

_T = TypeVar("_T")

_COMMIT = """
WITH held AS (
    UPDATE nodes SET number = %(number)s
        WHERE name = %(node)s AND epoch = %(epoch)s AND number = %(number)s - 1 RETURNING 1
), put AS (
    INSERT INTO rows SELECT %(node)s, new.*
        FROM unnest(%(spaces)b::text[], %(keys)b::bytea[], %(values)b::bytea[]) AS new
        WHERE EXISTS (SELECT FROM held)
        ON CONFLICT (node, space, key) DO UPDATE SET value = excluded.value
), gone AS (
    DELETE FROM rows
        USING unnest(%(gone_spaces)b::text[], %(gone_keys)b::bytea[]) AS old(space, key)
        WHERE EXISTS (SELECT FROM held)
        AND node = %(node)s AND rows.space = old.space AND rows.key = old.key
)
SELECT count(*) FROM held
"""
_COMMITTED = "SELECT epoch, number FROM nodes WHERE name = %s"
_RENAME = "UPDATE rows SET node = %s WHERE node = %s RETURNING 1"
_SPACE = "SELECT min(space) FROM rows WHERE node = %s AND space > %s"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_READ = """
SELECT nodes.epoch, key, value FROM nodes
    LEFT JOIN rows ON node = name AND space = %s AND key BETWEEN %s AND %s
    WHERE name = %s ORDER BY key
"""
_PAGE = """
SELECT key, value FROM rows WHERE node = %s AND space = %s AND key >= %s ORDER BY key LIMIT %s
"""
_SIZES = """
SELECT key, length(value) FROM rows
    WHERE node = %s AND space = %s AND key >= %s ORDER BY key LIMIT %s
"""


class PostgresRows:
    """The rows of a node, for any thread, one at a time.  As itself beside the one that commits
    (``PostgresStore.beside``), of which it waits for nothing."""

    def __init__(
        self, where: str, node: str, lease: Lease, connect: Callable[[], PostgresConnection]
    ) -> None:
        self.where = where
        self.disk = None
        self._node = node
        self._lease = lease
        self._open = connect
        self._connection = connect()
        self._is_pinned = False

    def close(self) -> None:
        self._connection.close()

    @property
    def epoch(self) -> int:
        return self._lease.epoch

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within the block all that is read is as of the commit at which it is read first."""
        self._asked(lambda: self._connection.execute(_SNAPSHOT))
        self._is_pinned = True
        try:
            yield
        finally:
            self._is_pinned = False
            with suppress(psycopg.Error):  # it ends with its connection
                self._connection.execute("ROLLBACK")

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        """See RowStore.  Whoever has the rows by now may have changed them: Fenced."""
        asked = space, first.encode(), last.encode(), self._node
        found = self._asked(lambda: self._fetched(_READ, asked))
        if [epoch for epoch, _, _ in found[:1]] != [self.epoch]:
            self._lease.end()
            raise self._lease.fenced()
        return tuple((_key(key), _value(value)) for _, key, value in found if key is not None)

    def rows(
        self, without: Collection[str] = (), unread: Collection[str] = ()
    ) -> Iterator[tuple[str, str, bytes]]:
        """See NodeStore."""
        space = ""
        while space := self._next_space(space):
            if space in unread:
                for key, size in self._pages(_SIZES, space):
                    assert isinstance(size, int)
                    yield space, _key(key), Unread(size)
            elif space not in without:
                yield from self.load((space,))

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """See NodeStore."""
        for space in spaces:
            for key, value in self._pages(_PAGE, space):
                yield space, _key(key), _value(value)

    def _next_space(self, space: str) -> str:
        """ "" behind the last one."""
        ((found,),) = self._asked(lambda: self._fetched(_SPACE, (self._node, space)))
        return str(found or "")

    def _pages(self, query: str, space: str) -> Iterator[tuple[object, ...]]:
        """What a query by page finds of a space."""
        first = b""
        page: list[tuple[object, ...]] = []
        while True:
            asked = self._node, space, first, PAGE_ROWS
            page = self._asked(partial(self._fetched, query, asked))
            yield from page
            if len(page) < PAGE_ROWS:
                return
            first = _value(page[-1][0]) + b"\0"  # the next key that there can be

    def _fetched(self, query: str, asked: tuple[object, ...]) -> list[tuple[object, ...]]:
        return self._connection.cursor(binary=True).execute(query, asked).fetchall()

    def _asked(self, ask: Callable[[], _T]) -> _T:
        """The answer, over another connection where one is lost, while the lease lasts."""
        while True:
            self._lease.check()
            try:
                return ask()
            except psycopg.errors.DiskFull as error:
                raise DiskFull(f"{self.where}: {error}") from None
            except psycopg.Error as error:
                if self._is_pinned or not self._connection.closed:
                    raise StoreError(f"{self.where}: {error}") from error
            self._reconnect()

    def _reconnect(self) -> None:
        while self._connection.closed:
            self._lease.check()
            try:
                self._connection = self._open()
            except StoreUnreachable:
                time.sleep(RECONNECT_SECONDS)


class PostgresStore(PostgresRows):
    """Rows by (space, key).  Any thread may call, one at a time; a context manager that closes."""

    def __init__(self, url: str, schema: str, node: str, lease_seconds: float) -> None:
        """Connect, and make the tables if they are not there; ``take`` before anything else.

        StoreUnreachable if there is no server, StoreError if the tables are of another format.
        """
        where = f"{shown(url)}, {node} in schema {schema}"
        opened = partial(connect, url, schema, lease_seconds)
        super().__init__(where, node, Lease(node, lease_seconds, opened), opened)
        self.counted = StoreCounts()
        try:
            prepare(self._connection, schema, self.where)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def beside(self) -> PostgresRows:
        """Its rows as they are committed, for another thread; to be closed before it."""
        return PostgresRows(self.where, self._node, self._lease, self._open)

    def take(self) -> bool:
        """See NodeStore; StoreUnreachable when the server cannot be asked."""
        try:
            if self._connection.closed:
                self._connection = self._open()
            return self._lease.take(self._connection)
        except psycopg.Error as error:
            self._connection.close()
            raise StoreUnreachable(f"{self.where}: {error}") from None

    def check(self) -> None:
        """See NodeStore."""
        self._lease.check()

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        """See RowStore."""
        rows, gone, puts = net_changes(changes)
        number = self.counted.commits + 1
        asked = {
            "node": self._node,
            "epoch": self.epoch,
            "number": number,
            "spaces": [space for space, _ in rows],
            "keys": [key.encode() for _, key in rows],
            "values": list(rows.values()),
            "gone_spaces": [space for space, _ in gone],
            "gone_keys": [key.encode() for _, key in gone],
        }

        def write() -> None:
            is_in = self._connection.execute(_COMMIT, asked).fetchone() == (1,)
            if not is_in and self._committed() != (self.epoch, number):
                self._lease.end()
                raise self._lease.fenced()

        self._asked(write)
        self.counted.commits = number
        self.counted.puts += puts

    def set_aside(self) -> str:
        """Leave the rows of an earlier time, that nobody has, under another name, and close; where
        they are, "" if there were none."""
        with self:
            earlier = f"{self._node} earlier"
            moved = 0
            if self.take():
                self._fetched("DELETE FROM rows WHERE node = %s RETURNING 1", (earlier,))
                asked = earlier, self._node
                moved = len(self._fetched(_RENAME, asked))
            return f"{self.where} as {earlier}" if moved else ""

    def close(self) -> None:
        """Give the rows free, and close the connections; idempotent."""
        self._lease.close(self._connection)
        self._connection.close()

    def _committed(self) -> tuple[object, ...] | None:
        """Epoch and number of the last commit."""
        return self._connection.execute(_COMMITTED, (self._node,)).fetchone()


def _key(value: object) -> str:
    return _value(value).decode()


def _value(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value
