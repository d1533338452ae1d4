"""Disks that do not take a commit: full ones, which are asked again, and failing ones, which are
not."""

from __future__ import annotations

from pathlib import Path

import pytest

from overlay.link.events import Put
from overlay.link.store import Store
from overlay.link.store_head import head_file, read_head
from tests.overlay.link.faulty_disk import faulty_disk, run_with


@pytest.fixture
def disk(tmp_path: Path) -> dict[str, str]:
    return faulty_disk(tmp_path)


FAILING = """
store = Store(path)
store.commit([Put("a", "k", b"1")])
store.commit([Put("a", "k", b"2")])
fault.write_text({fault!r})
try:
    store.commit([Put("a", "k", b"3")])
except StoreError as error:
    print(error)
fault.write_text("")
reading = lambda: store.read("a", "k", "k")
for use in (lambda: store.commit([]), reading, lambda: list(store.rows())):
    try:
        use()
    except StoreError as error:
        print(error)
store.close()
"""


@pytest.mark.parametrize("fault", ["unsynced -wal", "unsynced -head", "unwritten -wal"])
def test_a_file_that_did_not_take_a_commit_is_not_used_again(
    fault: str, disk: dict[str, str], tmp_path: Path
) -> None:
    directory = tmp_path / "node"
    directory.mkdir()
    path = directory / "store.sqlite"
    said = run_with(disk, path, FAILING.format(fault=fault)).splitlines()
    assert len(said) == 4 and len(set(said)) == 1
    assert "has not taken a commit" in said[0] and "the next one makes it anew" in said[0]
    log = path.with_name(f"{path.name}-wal")
    assert log.stat().st_size, "it is not moved into the file, which would be to use both"
    assert read_head(head_file(path))[1]
    files = {file.name: file.stat().st_ino for file in directory.iterdir()}
    with Store(path) as store:
        (value,) = [value for _, _, value in store.rows()]
        assert value in (b"2", b"3"), "the second is known to nobody, but may be there"
        store.commit([Put("a", "k", b"4")])
    assert not read_head(head_file(path))[1]
    new = {file.name: file.stat().st_ino for file in directory.iterdir()}
    assert set(new) == {"store.sqlite", "store.sqlite-head"}
    assert all(files[name] != inode for name, inode in new.items())
    with Store(path) as store:
        assert [value for _, _, value in store.rows()] == [b"4"]


FULL = """
store = Store(path)
store.commit([Put("a", str(i), bytes(5000)) for i in range(9)])
fault.write_text("full -wal")
for _ in range(3):
    try:
        store.commit([Put("a", "1", b"new"), Delete("a", "2")] + [Put("b", "k", bytes(50_000))])
    except DiskFull as error:
        print(error)
print(len(list(store.rows())), len(store.read("a", "1", "2")))
fault.write_text("")
store.commit([Put("a", "1", b"new"), Delete("a", "2"), Put("b", "k", b"1")])
store.commit([Put("b", "l", b"2")])
print(len(list(store.rows())), store.read("a", "1", "2"))
os._exit(0)
"""


def test_a_full_disk_is_asked_again(disk: dict[str, str], tmp_path: Path) -> None:
    """The commit changes nothing, and goes through once there is room."""
    path = tmp_path / "store.sqlite"
    *refused, before, after = run_with(disk, path, FULL).splitlines()
    assert refused == [f"{path}: the disk is full"] * 3
    assert before == "9 2"
    assert after == "10 (('1', b'new'),)"
    with Store(path) as store:
        assert len(list(store.rows())) == 10
        assert store._chain.number == 3


def test_a_store_on_a_full_disk_says_so(disk: dict[str, str], tmp_path: Path) -> None:
    """Nothing is left that is in the way of a new start."""
    path = tmp_path / "store.sqlite"
    script = """
for fault_of in ("-head.new", "-wal", ".sqlite"):
    fault.write_text("full " + fault_of)
    try:
        Store(path).close()
    except DiskFull as error:
        print(error)
fault.write_text("")
with Store(path) as store:
    store.commit([Put("a", "k", b"1")])
"""
    said = run_with(disk, path, script).splitlines()
    assert said == [f"{path}: the disk is full"] * len(said) and len(said) >= 2
    with Store(path) as store:
        assert list(store.rows()) == [("a", "k", b"1")]


def test_a_file_that_is_made_anew_leaves_nothing_behind_where_there_is_no_room(
    disk: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "store.sqlite"
    script = (
        FAILING.format(fault="unsynced -wal")
        + """
fault.write_text("full .new")
try:
    Store(path)
except DiskFull:
    print(sorted(file.name for file in path.parent.glob("*.new")))
fault.write_text("")
Store(path).close()
"""
    )
    assert run_with(disk, path, script).splitlines()[-1] == "[]"
    with Store(path) as store:
        assert store.read("a", "k", "k")
