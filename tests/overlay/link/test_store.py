"""Stores: rows that are there after a crash, files that are refused.

What every store promises (row_store.py) is asked of both: a file, and a PostgreSQL server.
"""

from __future__ import annotations

import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from overlay.link.errors import StoreError
from overlay.link.events import Delete, Put
from overlay.link.journal_rows import Unread
from overlay.link.postgres_store import PostgresStore
from overlay.link.store import Store
from overlay.link.store_format import FORMAT_VERSION, new_chain
from overlay.link.store_head import head_file, write_head
from tests.postgres import LEASE_SECONDS, Postgres

Open = Callable[[], Store | PostgresStore]


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same store each time, and takes it."""
    if request.param == "sqlite":
        return lambda: Store(tmp_path / "s.db")
    server: Postgres = request.getfixturevalue("postgres")
    schema = server.new_schema()

    def take() -> PostgresStore:
        store = PostgresStore(server.url, schema, "B1", LEASE_SECONDS)
        assert store.take()
        return store

    return take


def test_rows_are_there_after_closing(opened: Open) -> None:
    with opened() as store:
        store.commit([Put("a", "k2", b"2"), Put("a", "k1", b"1"), Put("b", "k1", b"3")])
        store.commit([Put("a", "k1", b"one"), Delete("b", "k1"), Delete("b", "nothing")])
    with opened() as store:
        assert list(store.load(["a", "b"])) == [("a", "k1", b"one"), ("a", "k2", b"2")]
        assert list(store.load(["b"])) == []
        assert list(store.rows()) == [("a", "k1", b"one"), ("a", "k2", b"2")]
        assert store.counted.commits == 0


def test_spaces_can_be_left_out(opened: Open) -> None:
    with opened() as store:
        store.commit([Put(space, key, b"1") for space in ("a", "a-body", "b") for key in "kl"])
        assert [row[:2] for row in store.rows(without=("a-body", "c"))] == [
            (space, key) for space in ("a", "b") for key in "kl"
        ]
        assert len(list(store.rows())) == 6


def test_of_values_that_stay_there_the_size_is_told(opened: Open) -> None:
    with opened() as store:
        store.commit([Put("a", "k", b"1"), Put("b", "k", bytes(100_000))])
        first, (space, key, value) = store.rows(unread=("b",))
        assert first == ("a", "k", b"1")
        assert (space, key, value) == ("b", "k", b"")
        assert isinstance(value, Unread) and value.size == 100_000


def test_another_thread_reads_as_of_one_commit(opened: Open) -> None:
    with opened() as store:
        store.commit([Put("a", "k", b"1")])
        with closing(store.beside()) as beside:
            with beside.snapshot():
                assert beside.read("a", "k", "k") == (("k", b"1"),)
                store.commit([Put("a", "k", b"2"), Put("a", "l", b"2")])
                assert list(beside.load(["a"])) == [("a", "k", b"1")]
            assert beside.read("a", "k", "l") == (("k", b"2"), ("l", b"2"))


def test_changes_happen_in_order(opened: Open) -> None:
    with opened() as store:
        store.commit([Put("a", "k", b"1"), Delete("a", "k"), Put("a", "k", b"2")])
        store.commit([Put("a", "l", b"1"), Delete("a", "l")])
        assert list(store.rows()) == [("a", "k", b"2")]
        assert store.counted.puts == 3


def test_a_commit_of_any_size_is_what_its_changes_make_one_after_the_other(opened: Open) -> None:
    random = Random(5)
    rows: dict[tuple[str, str], bytes] = {}
    with opened() as store:
        for size in (1, 3, 4, 5, 16, 63, 64, 65, 256, 257, 341, 1500):
            changes: list[Put | Delete] = []
            for number in range(size):
                name = random.choice("ab"), str(random.randrange(size))
                if random.random() < 0.6:
                    changes.append(Put(*name, b"%d of %d" % (number, size)))
                    rows[name] = changes[-1].value
                else:
                    changes.append(Delete(*name))
                    rows.pop(name, None)
            store.commit(changes)
            assert {(space, key): value for space, key, value in store.rows()} == rows


def test_all_or_nothing(opened: Open) -> None:
    with opened() as store:
        store.commit([Put("a", "k", b"1")])
        wrong = Put("a", "l", None)  # type: ignore[arg-type]
        with pytest.raises((TypeError, StoreError)):
            store.commit([Put("a", "k", b"2"), wrong])
        assert list(store.rows()) == [("a", "k", b"1")]
        store.commit([Put("a", "k", b"3")])
        assert list(store.rows()) == [("a", "k", b"3")]


def test_keys_are_any_text_in_the_order_of_its_code_points(opened: Open) -> None:
    keys = ["", "\0", "a\0b", "aB", "ab", "é", "\uffff", "\U0001f600"]
    with opened() as store:
        store.commit([Put("a", key, key.encode()) for key in reversed(keys)])
        assert [key for _, key, _ in store.load(["a"])] == keys
        assert [key for key, _ in store.read("a", "a\0b", "é")] == keys[2:6]


def test_rows_beyond_a_page_are_all_read(opened: Open) -> None:
    rows = [("a", f"{number:05}", b"%d" % number) for number in range(1_500)]
    with opened() as store:
        store.commit([*(Put(*row) for row in rows), Put("b", "", b"")])
        assert list(store.rows()) == [*rows, ("b", "", b"")]
        some = store.rows(unread=("a",))
        assert [key for space, key, _ in some if space == "a"] == [key for _, key, _ in rows]


def test_a_process_that_is_killed_loses_nothing_committed(tmp_path: Path) -> None:
    script = """
import os, sys
from overlay.link.events import Put
from overlay.link.store import Store
store = Store(sys.argv[1])
store.commit([Put("a", "k", b"1")])
store._connection.execute("BEGIN IMMEDIATE")
store._connection.execute("INSERT INTO checked_rows VALUES ('a', 'half', 0, x'00')")
os._exit(9)
"""
    path = tmp_path / "s.db"
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, cwd=root)
    assert done.returncode == 9
    with Store(path) as store:
        assert list(store.rows()) == [("a", "k", b"1")]


def test_a_process_that_is_killed_as_it_makes_the_store_leaves_none(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    write_head(head_file(path), new_chain().mark, is_new=True)
    path.write_bytes(bytes(4096))  # SQLite writes a first page, and knows that there was none
    journal = bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", 0, 1, 0, 512, 4096)
    path.with_name("s.db-journal").write_bytes(journal.ljust(512, b"\0"))
    with Store(path) as store:
        assert list(store.rows()) == []


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db"), pytest.raises(StoreError, match="in use"):
        Store(tmp_path / "s.db")
    Store(tmp_path / "s.db").close()


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match=f"format {FORMAT_VERSION + 1}"):
        Store(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, and it is longer than a header" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store(tmp_path / "text")
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE rows (x)")
    connection.close()
    with pytest.raises(StoreError, match="not a store"):
        Store(tmp_path / "other.db")
    with pytest.raises(StoreError, match=r"cannot be used: .*No such file"):
        Store(tmp_path / "no" / "directory")


def test_it_is_synchronous(tmp_path: Path) -> None:
    """A crash of the machine loses nothing either: every commit is flushed."""
    with Store(tmp_path / "s.db") as store:
        value = store._connection.execute("PRAGMA synchronous").fetchone()[0]
        mode = store._connection.execute("PRAGMA journal_mode").fetchone()[0]
        assert (value, mode) == (2, "wal")
