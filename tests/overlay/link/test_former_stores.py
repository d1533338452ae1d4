"""Stores of the format before: read, and from then on of this one."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random

import pytest

from overlay.link.errors import StoreError, StoreLost
from overlay.link.events import Put
from overlay.link.store import Store
from overlay.link.store_format import APPLICATION_ID, FORMAT_VERSION
from overlay.link.store_head import head_file


def former_store(path: Path, rows: list[tuple[str, str, bytes]]) -> None:
    """As the program of version 1 made it, word for word."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute(
        "CREATE TABLE rows (space TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,"
        " PRIMARY KEY (space, key)) WITHOUT ROWID"
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()


def test_a_store_of_version_1_goes_on_as_one_of_version_2(tmp_path: Path) -> None:
    random = Random(1)
    rows = sorted(
        (space, f"k{number:03d}", random.randbytes(random.choice((0, 30, 9000))))
        for space in ("inbox", "outbox", "ä")
        for number in range(200)
    )
    path = tmp_path / "store.sqlite"
    former_store(path, rows)
    with Store(path) as store:
        assert list(store.rows()) == rows
        store.commit([Put("zone", "k", b"1")])
    for _ in range(2):
        with Store(path) as store:
            assert list(store.rows()) == sorted([*rows, ("zone", "k", b"1")])
    version = sqlite3.connect(path).execute("PRAGMA user_version").fetchone()
    assert version == (FORMAT_VERSION,) == (2,)


def test_one_that_comes_back_as_version_1_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    former_store(path, [("a", "k", b"1")])
    former = path.read_bytes()
    with Store(path) as store:
        store.commit([Put("a", "k", b"2")])
    path.write_bytes(former)
    with pytest.raises(StoreLost, match="is empty or of an older format, and was at commit 1"):
        Store(path)


def test_a_kill_before_it_is_done_leaves_the_former_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    former_store(path, [("a", "k", b"1")])
    former = path.read_bytes()
    Store(path).close()
    path.write_bytes(former)  # the head is written first
    assert head_file(path).exists()
    with Store(path) as store:
        assert list(store.rows()) == [("a", "k", b"1")]


def test_one_whose_pages_are_not_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    former_store(path, [("a", f"{number}", bytes(3000)) for number in range(20)])
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(4096) + data[8192:])
    with pytest.raises(StoreError, match="is damaged"):
        Store(path)
    assert path.read_bytes()[:100] == data[:100]


@pytest.mark.parametrize("version", [0, 3])
def test_other_versions_are_refused(version: int, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    former_store(path, [])
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(StoreError, match=f"has store format {version}; this program reads"):
        Store(path)
