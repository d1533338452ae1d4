"""The files of an archive: whole or not there, bounded, and what is said of them."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from onyx.broker.archive.message_archive import ArchiveSegments, MessageArchive
from overlay.archive import ArchiveOptions
from overlay.archive_file import (
    SUFFIX,
    ArchivedMessage,
    Summing,
    member_of,
    packed,
    rows_of_file,
    summary_of,
)
from overlay.link.events import ArchiveMessage

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def options(directory: Path, **more: Any) -> ArchiveOptions:
    return ArchiveOptions(directory=directory, free_bytes_min=0, **more)


def message(number: int, text: bytes = b"<m/>") -> ArchiveMessage:
    return ArchiveMessage("s1", number, text, 0)


def names(directory: Path) -> list[str]:
    """What a reader sees: nothing that begins with a dot."""
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))


def numbers(directory: Path) -> list[int]:
    return [row.number for name in names(directory) for row in rows_of_file(directory / name)]


def test_rows_hold_the_messages_and_a_segment_appears_when_it_is_finished(tmp_path: Path) -> None:
    clock = Clock()
    archive = MessageArchive("B1", options(tmp_path / "news", segment_seconds_max=60), clock)
    archive.take(message(1, '<m a="ä\n"/>'.encode()))
    assert archive.statistics().waiting == 1
    archive.write_waiting()
    assert names(tmp_path / "news") == []
    clock.now += 61
    archive.take(message(2))
    archive.write_waiting()
    (name,) = names(tmp_path / "news")
    assert name == f"onyx-B1-20270115T080000Z-00000001{SUFFIX}"
    assert not (tmp_path / "news" / name).stat().st_mode & 0o027, "of its account, and its group"
    first, second = rows_of_file(tmp_path / "news" / name)
    assert json.loads(first.line()) == {
        "name": "s1/1",
        "source": "s1",
        "number": 1,
        "time": "2027-01-15T08:00:00.000000+00:00",
        "message": '<m a="ä\n"/>',
    }
    assert second.number == 2
    statistics = archive.statistics()
    assert (statistics.written, statistics.left_out, statistics.segments) == (2, 0, 1)
    archive.close()


def test_closing_writes_what_waits(tmp_path: Path) -> None:
    archive = MessageArchive("B1", options(tmp_path))
    archive.take(message(1))
    archive.close()
    assert numbers(tmp_path) == [1]


def test_what_a_killed_process_left_is_cut_back_to_whole_members(tmp_path: Path) -> None:
    rows = [packed(ArchivedMessage("s1", number, 0, "", b"<m/>")) for number in (1, 2, 3)]
    members = [member_of([row]) for row in rows]
    unfinished = Summing().frame()[:-3]
    for kept in range(4):
        for damage in (b"", b"\x28\xb5", members[0][:-3], b"\0" * 5000, unfinished):
            directory = tmp_path / f"{kept}-{len(damage)}"
            directory.mkdir()
            part = directory / ".onyx-B1-20270115T080000Z-00000004.part"
            part.write_bytes(b"".join(members[:kept]) + damage)
            other = directory / ".onyx-B1-x-20270115T080000Z-00000004.part"
            other.touch()
            segments = ArchiveSegments("B1", options(directory))
            segments.open()
            assert numbers(directory) == [1, 2, 3][:kept]
            assert not part.exists()
            assert other.exists()  # of another broker, which may be writing it
            if kept:
                with (directory / names(directory)[0]).open("rb") as file:
                    summary = summary_of(file)
                assert summary is not None
                assert summary.sources()["s1"].last == kept
            segments.write(rows[:1], 2e9)
            segments.close()
            assert names(directory)[-1].endswith(f"-0000000{5 if kept else 1}{SUFFIX}")


def test_what_an_earlier_release_left_is_finished_as_a_file_of_its_form(tmp_path: Path) -> None:
    part = tmp_path / ".onyx-B1-20270115T080000Z-00000004.part"
    part.write_bytes(gzip.compress(b"{}\n") + b"\x1f\x8b")
    ArchiveSegments("B1", options(tmp_path)).open()
    assert names(tmp_path) == ["onyx-B1-20270115T080000Z-00000004.jsonl.gz"]
    assert gzip.decompress((tmp_path / names(tmp_path)[0]).read_bytes()) == b"{}\n"


def test_beyond_its_bytes_the_oldest_segments_go(tmp_path: Path) -> None:
    archive = MessageArchive("B1", options(tmp_path, bytes_max=700, segment_bytes_max=1))
    for number in range(1, 21):
        archive.take(message(number))
        archive.write_waiting()
    left = numbers(tmp_path)
    assert left == list(range(21 - len(left), 21))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 700
    statistics = archive.statistics()
    assert len(left) < 20
    assert (statistics.segments, statistics.left_out) == (len(left), 0)


def test_or_nothing_more_is_written(tmp_path: Path) -> None:
    bounds = options(tmp_path, bytes_max=700, segment_bytes_max=1, at_bytes_max="stop")
    archive = MessageArchive("B1", bounds)
    for number in range(1, 21):
        archive.take(message(number))
        archive.write_waiting()
    left = numbers(tmp_path)
    assert left == list(range(1, len(left) + 1))
    assert archive.statistics().left_out == 20 - len(left) > 0
    assert "bytes_max" in str(archive.statistics().problem)


def test_old_segments_go(tmp_path: Path) -> None:
    clock = Clock()
    archive = MessageArchive("B1", options(tmp_path, days_max=2, segment_bytes_max=1), clock)
    for number in range(1, 6):
        archive.take(message(number))
        archive.write_waiting()
        newest = max(tmp_path.glob("*" + SUFFIX))
        os.utime(newest, (clock.now, clock.now))
        clock.now += DAY
    assert numbers(tmp_path) == [3, 4, 5]


def test_a_full_disk_costs_the_archive_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a member is taken back; what waits is tried again, and beyond the bound left out."""
    archive = MessageArchive("B1", options(tmp_path, waiting_bytes_max=1024))
    archive.take(message(1))
    archive.write_waiting()
    write = os.write
    (whole,) = [path.stat().st_size for path in tmp_path.iterdir()]

    def half(file: int, data: bytes) -> int:
        if os.fstat(file).st_size > whole:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, bytes(data)[:1])

    monkeypatch.setattr(os, "write", half)
    for number in range(2, 102):
        archive.take(message(number))
        archive.write_waiting()
    statistics = archive.statistics()
    assert (statistics.written, statistics.problem) == (1, "No space left on device")
    kept = statistics.waiting
    assert statistics.left_out == 100 - kept > 0
    monkeypatch.setattr(os, "write", write)
    archive.close()
    assert numbers(tmp_path) == list(range(1, 2 + kept))
    assert archive.statistics().problem == ""


def test_a_disk_with_less_than_must_stay_free_is_left_alone(tmp_path: Path) -> None:
    archive = MessageArchive("B1", ArchiveOptions(directory=tmp_path, free_bytes_min=2**60))
    archive.take(message(1))
    archive.close()
    assert names(tmp_path) == []
    assert archive.statistics().left_out == 1


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    archive = MessageArchive("B1", options(tmp_path / "file" / "news"))
    archive.take(message(1))
    archive.write_waiting()
    assert archive.statistics().problem == "Not a directory"
    archive.close()
    assert archive.statistics().left_out == 1
