"""What a broker's archive has of a source, a bounded page at a time; see archive_segments.py.

A page ends behind a member of a segment, named ``NUMBER:OFFSET``; the segment that is being written
is read as far as it is whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from onyx.broker.archive.archive_segments import PART_SUFFIX, SEGMENT_SUFFIX, read_members
from overlay.link.events import ArchiveRead, ReadArchive

FOUND_BYTES_MAX = 512 * 1024  # then a page ends
READ_BYTES_MAX = 8 * 1024 * 1024  # or then, however little there is; compressed
WAITED_SECONDS_MAX = 60.0  # from when a message comes until it is written


class _Segment(NamedTuple):
    number: int
    began: float
    path: Path


def read_page(directory: Path, broker: str, asked: ReadArchive) -> ArchiveRead:
    """OSError.  A segment that goes meanwhile is as one that has gone before."""
    number, offset = _place(asked.after)
    prefix = b'{"name":' + json.dumps(f"{asked.source}/", ensure_ascii=False)[:-1].encode()
    found: list[bytes] = []
    size = read = 0
    for segment in _segments(directory, broker, asked):
        if segment.number < number:
            continue
        start = offset if segment.number == number else 0
        for end, lines in _members(segment.path, start):
            for line in lines.splitlines(keepends=True):
                if line.startswith(prefix) and _is_between(line, asked):
                    found.append(line)
                    size += len(line)
            read += end - start
            start = end
            if size >= FOUND_BYTES_MAX or read >= READ_BYTES_MAX:
                return ArchiveRead(asked.key, b"".join(found), f"{segment.number}:{end}")
    return ArchiveRead(asked.key, b"".join(found), "")


def _place(after: str) -> tuple[int, int]:
    matched = re.fullmatch(r"(\d{1,8}):(\d{1,15})", after, re.ASCII)
    return (int(matched[1]), int(matched[2])) if matched else (0, 0)


def _segments(directory: Path, broker: str, asked: ReadArchive) -> list[_Segment]:
    """Those with messages of the time, the oldest first."""
    suffix = f"(?:{re.escape(SEGMENT_SUFFIX)}|{re.escape(PART_SUFFIX)})"
    name = re.compile(rf"\.?onyx-{re.escape(broker)}-(\d{{8}}T\d{{6}}Z)-(\d{{8}}){suffix}")
    found = {}
    for path in directory.iterdir():
        if matched := name.fullmatch(path.name):
            began = datetime.strptime(matched[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            found[int(matched[2])] = _Segment(int(matched[2]), began.timestamp(), path)
    ordered = [found[number] for number in sorted(found)]
    ends = [segment.began + 1 for segment in ordered[1:]] + [asked.since + 1]
    return [
        segment
        for segment, end in zip(ordered, ends, strict=True)
        if end > asked.since and segment.began < asked.until + WAITED_SECONDS_MAX
    ]


def _open(path: Path) -> BinaryIO | None:
    """It may be finished meanwhile, or gone."""
    finished = path.name.removeprefix(".").removesuffix(PART_SUFFIX) + SEGMENT_SUFFIX
    for name in (path.name, finished):
        with suppress(FileNotFoundError):
            return path.with_name(name).open("rb")
    return None


def _members(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """(where it ends, its lines) of each whole one behind a place."""
    file = _open(path)
    if file is None:
        return
    with file:
        file.seek(start)
        yield from read_members(file)


def _is_between(line: bytes, asked: ReadArchive) -> bool:
    at = datetime.fromisoformat(json.loads(line)["time"]).timestamp()
    return asked.since <= at < asked.until
