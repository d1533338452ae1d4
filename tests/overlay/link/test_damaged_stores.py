"""Disks that lie: whatever becomes of the files, a store gives what was committed, or says so."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from overlay.link.errors import StoreError, StoreLost
from overlay.link.events import Delete, Put
from overlay.link.store import Store
from overlay.link.store_inspection import inspect
from tests.overlay.link.stored_history import ENDINGS, NAME, History, copy_files, read_all

FLIPS = 40  # of one bit each, for each file of each seed


def killed_in_the_log(directory: Path, seed: int) -> History:
    history = History(directory, seed)
    history.commit(12)
    return history


def killed_after_a_checkpoint(directory: Path, seed: int) -> History:
    history = killed_in_the_log(directory, seed)
    history.store._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    history.commit(5)
    return history


def closed(directory: Path, seed: int) -> History:
    history = killed_in_the_log(directory, seed)
    history.store.close()
    return history


@pytest.fixture
def quick() -> Iterator[Path]:
    """A directory in memory, where that is to be had: thousands of stores are opened there."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


ENDS = (killed_in_the_log, killed_after_a_checkpoint, closed)


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("end", ENDS)
def test_a_flipped_bit_is_found_or_does_no_harm(
    end: Callable[[Path, int], History], seed: int, quick: Path
) -> None:
    history = end(quick / "made", seed)
    good = history.copy(quick / "good")
    history.store.close()
    assert read_all(copy_files(good, quick / "tried"), history.states[-1]) == history.states[-1]
    random = Random(seed)
    found = 0
    for ending in ENDINGS:
        whole = good.with_name(NAME + ending)
        size = whole.stat().st_size if whole.exists() else 0
        for _ in range(FLIPS if size else 0):
            tried = copy_files(good, quick / "tried")
            at, bit = random.randrange(size), random.randrange(8)
            flip(tried.with_name(NAME + ending), at, bit)
            rows = read_all(tried, history.states[-1])
            if isinstance(rows, str):
                found += 1
            else:
                assert rows == history.states[-1], f"bit {bit} of byte {at} of {NAME}{ending}"
    assert found > 8


def test_a_bit_of_the_text_of_its_tables_is_found(quick: Path) -> None:
    """SQLite quotes what it does not understand of it, which may be no text any more."""
    good = closed(quick / "made", 1).copy(quick / "good")
    text = b"CREATE TABLE checked_rows"
    start = good.read_bytes().index(text)
    for at in range(start, start + len(text)):
        tried = copy_files(good, quick / "tried")
        flip(tried, at, 7)
        assert isinstance(read_all(tried, {}), str)
        assert not inspect(tried).is_intact


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("end", ENDS)
def test_a_file_that_is_cut_short_is_found_or_does_no_harm(
    end: Callable[[Path, int], History], seed: int, quick: Path
) -> None:
    history = end(quick / "made", seed)
    good = history.copy(quick / "good")
    history.store.close()
    random = Random(seed)
    for ending in ENDINGS:
        whole = good.with_name(NAME + ending)
        size = whole.stat().st_size if whole.exists() else 0
        for number in range(20 if size else 0):
            tried = copy_files(good, quick / "tried")
            cut = tried.with_name(NAME + ending)
            at = random.randrange(size) if number else 0
            cut.write_bytes(cut.read_bytes()[:at])
            rows = read_all(tried, history.states[-1])
            assert isinstance(rows, str) or rows == history.states[-1], (ending, at)


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_page_of_an_earlier_time_is_found(seed: int, quick: Path) -> None:
    """What a disk that lost a write gives back: right in itself, but old."""
    history = killed_in_the_log(quick / "made", seed)
    history.store.close()
    before = copy_files(history.path, quick / "before").read_bytes()
    history.store = Store(history.path)
    history.commit(3)
    history.store.close()
    after = history.path.read_bytes()
    pages = [at for at in range(0, len(before), 4096) if before[at:][:4096] != after[at:][:4096]]
    assert len(pages) > 1
    found = 0
    for at in pages:
        tried = copy_files(history.path, quick / "tried")
        tried.write_bytes(after[:at] + before[at : at + 4096] + after[at + 4096 :])
        rows = read_all(tried, history.states[-1])
        found += isinstance(rows, str)
        assert isinstance(rows, str) or rows == history.states[-1], at // 4096
    assert found


@pytest.mark.parametrize("lost", [1, 2, 3, 10])
def test_an_older_copy_is_refused_with_both_numbers(lost: int, tmp_path: Path) -> None:
    history = History(tmp_path / "made", 1)
    history.commit(2)
    older = history.copy(tmp_path / "older")
    history.commit(lost)
    history.store.close()
    for ending in ("", "-wal"):
        shutil.copy(older.with_name(NAME + ending), history.path.with_name(NAME + ending))
    files = {file.name: file.read_bytes() for file in history.path.parent.iterdir()}
    for _ in range(2):
        with pytest.raises(StoreLost, match=f"at commit 2, and was at commit {2 + lost}:"):
            Store(history.path)
    left = {file.name: file.read_bytes() for file in history.path.parent.iterdir()}
    left.pop(f"{NAME}-shm", None)
    assert left == files, "what is there is for who looks into it"


def test_a_store_that_is_emptied_removed_or_another_is_refused(tmp_path: Path) -> None:
    history = History(tmp_path / "made", 1)
    history.commit(7)
    history.store.close()
    other = History(tmp_path / "other", 2)
    other.commit(7)
    other.store.close()
    history.path.write_bytes(other.path.read_bytes())
    with pytest.raises(StoreLost, match="at commit 7, but at another of that number"):
        Store(history.path)
    history.path.write_bytes(b"")
    with pytest.raises(StoreLost, match="is empty or of an older format, and was at commit 7"):
        Store(history.path)
    history.path.unlink()
    with pytest.raises(StoreLost, match="is empty or of an older format, and was at commit 7"):
        Store(history.path)
    other.path.with_name(f"{NAME}-head").unlink()
    with pytest.raises(StoreLost, match=f"at commit 7, and {NAME}-head is gone"):
        Store(other.path)


def test_the_log_of_a_file_that_was_emptied_is_left_alone(tmp_path: Path) -> None:
    """SQLite would remove it, and with it all that is left."""
    history = killed_in_the_log(tmp_path / "made", 1)
    emptied = history.copy(tmp_path / "emptied")
    history.store.close()
    log = emptied.with_name(f"{NAME}-wal")
    whole = log.read_bytes()
    emptied.write_bytes(b"")
    with pytest.raises(StoreLost):
        Store(emptied)
    assert whole and log.read_bytes() == whole


def test_both_files_of_an_earlier_time_are_a_store(tmp_path: Path) -> None:
    """That is what a backup is; who has more of it finds that out (lost_stores.py)."""
    history = History(tmp_path / "made", 1)
    history.commit(5)
    older = history.copy(tmp_path / "older")
    history.commit(5)
    history.store.close()
    assert read_all(older, history.states[5]) == history.states[5]


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_power_cut_loses_the_last_marks_of_the_head_only(seed: int, quick: Path) -> None:
    """The head is synced beside the next commit, so that it may be two behind, and no more."""
    random = Random(seed)
    history = History(quick / "made", seed)
    heads = []
    for _ in range(random.randrange(3, 9)):
        history.commit()
        heads.append(history.path.with_name(f"{NAME}-head").read_bytes())
    good = history.copy(quick / "good")
    history.store.close()
    for behind in range(4):
        if behind < len(heads):
            tried = copy_files(good, quick / "tried")
            tried.with_name(f"{NAME}-head").write_bytes(heads[-1 - behind])
            rows = read_all(tried, history.states[-1])
            assert (rows == history.states[-1]) == (behind <= 2), behind


def test_what_is_wrong_is_said_by_space_and_key_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Store(path) as store:
        store.commit([Put("profile", "p1", b"for $x in //a return $x"), Put("profile", "p2", b"2")])
    data = bytearray(path.read_bytes())
    data[data.index(b"//a")] ^= 1
    path.write_bytes(data)
    with Store(path) as store, pytest.raises(StoreError) as failure:
        list(store.rows())
    said = str(failure.value)
    assert f"{path} is damaged: row 'p1' of space 'profile' has another check sum" in said
    assert f"onyx store verify {tmp_path}" in said
    with Store(path) as store:
        assert store.read("profile", "p2", "p2") == (("p2", b"2"),)
        with pytest.raises(StoreError, match="row 'p1'"):
            store.read("profile", "p1", "p9")


def test_a_value_under_another_key_is_found(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Store(path) as store:
        store.commit([Put("profile", "p1", b"1"), Delete("profile", "p0")])
        store._connection.execute("UPDATE checked_rows SET key = 'p2'")
        with pytest.raises(StoreError, match="row 'p2'"):
            store.read("profile", "p2", "p2")


def test_a_row_that_is_left_out_is_missed(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with Store(path) as store:
        store.commit([Put("profile", key, b"1") for key in "abc"])
        store._connection.execute("DROP TRIGGER row_is_gone")
        store._connection.execute("DELETE FROM checked_rows WHERE key = 'b'")
        with pytest.raises(StoreError, match="space 'profile' has 2 rows; expected 3"):
            list(store.load(["profile"]))
        with pytest.raises(StoreError, match="space 'profile' has 2 rows; expected 3"):
            list(store.rows(unread=("profile",)))


def flip(path: Path, at: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))
