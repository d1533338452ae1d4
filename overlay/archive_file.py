"""ArchiveFile: messages that a broker has archived, in a file that tells what it holds.

::

    onyx-B1-20261121T173000Z-00000007.msgpack.zst

    file    = member* summary
    member  = a zstd frame with a checksum: msgpack, an array of rows that were written at once
    row     = [source, number, time, media type, message]              (ArchivedMessage)
    summary = a skippable zstd frame: msgpack (Summary), its length in 4 bytes, "OnyA"

Any zstd tool skips the summary and unpacks the rows.  A reader of the summary counts the messages
of each source, passes over the members without one of them, and has a sample of all messages,
without reading a message.  A file that is still being written has no summary yet.

A message costs a fifth of the time of gzip and JSON, the form of ``.jsonl.gz`` files of earlier
releases, and two thirds of the bytes.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from heapq import heappop, heappush
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard
from msgspec import Struct

SUFFIX = ".msgpack.zst"
OLD_SUFFIX = ".jsonl.gz"
SUFFIXES = (SUFFIX, OLD_SUFFIX)
SAMPLED_MAX = 256
"""Messages of the sample of one file, and of as many files as are read together."""
SAMPLE_BYTES_MAX = 2 * 1024 * 1024
"""Of the messages of a sample; it has fewer of large ones."""
UNSAMPLED_MAX = 8 * SAMPLED_MAX
"""A file of no more messages than this has no sample: it is as quickly read."""

_LEVEL = 3
_GZIP = 31  # zlib's wbits for gzip with its largest window
_PIECE_BYTES = 64 * 1024
_SKIPPABLE = b"\x5f\x2a\x4d\x18"
_MARK = b"OnyA"
_TAIL = 4 + len(_MARK)


class ArchivedMessage(Struct, frozen=True, array_like=True):
    """``time``: of acceptance, in microseconds of the epoch.  ``media_type``: "" for XML and for
    graphs, which are striped.  ``message``: UTF-8."""

    source: str
    number: int
    time: int
    media_type: str
    message: bytes

    @property
    def name(self) -> str:
        return f"{self.source}/{self.number}"

    def line(self) -> bytes:
        """The message as a line of JSON, as ``archive.read`` and ``.jsonl.gz`` files have it."""
        said = {
            "name": self.name,
            "source": self.source,
            "number": self.number,
            "time": datetime.fromtimestamp(self.time / 1e6, UTC).isoformat(timespec="microseconds"),
            "message": self.message.decode("utf-8", "replace"),
        }
        if self.media_type:
            said["media_type"] = self.media_type
        return msgspec.json.encode(said) + b"\n"


class Span(Struct, array_like=True):
    """Messages of one source: how many, their bytes, the first and last number and time."""

    messages: int
    bytes: int
    first: int
    last: int
    since: int
    until: int

    def add(self, other: Span) -> None:
        self.messages += other.messages
        self.bytes += other.bytes
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.since, self.until = min(self.since, other.since), max(self.until, other.until)


class Member(Struct, array_like=True):
    """Where a member starts, its length, and its messages by source."""

    start: int
    length: int
    sources: dict[str, Span]

    @property
    def messages(self) -> int:
        return sum(span.messages for span in self.sources.values())


class Summary(Struct, array_like=True):
    """The members in their order; ``sample``: (rank, message), the lowest ranks of all messages of
    the file (``rank_of``), so that samples of several files are one."""

    members: list[Member]
    sample: list[tuple[int, ArchivedMessage]]

    def sources(self) -> dict[str, Span]:
        """The messages of the file by source."""
        found: dict[str, Span] = {}
        for member in self.members:
            add_spans(found, member.sources)
        return found

    @property
    def messages(self) -> int:
        return sum(member.messages for member in self.members)


_row = msgspec.msgpack.Decoder(ArchivedMessage)
_rows = msgspec.msgpack.Decoder(list[ArchivedMessage])
_summary = msgspec.msgpack.Decoder(Summary)
_encoder = msgspec.msgpack.Encoder()


def add_spans(found: dict[str, Span], others: dict[str, Span]) -> None:
    """Spans by source; ``found`` grows."""
    for source, span in others.items():
        if source in found:
            found[source].add(span)
        else:
            found[source] = msgspec.structs.replace(span)


def rank_of(source: str, number: int) -> int:
    """Below 2**64, the same at every time and as good as random."""
    return int.from_bytes(blake2b(f"{source}/{number}".encode(), digest_size=8).digest(), "big")


# -------------------------------------------------------------------------------------------------
# Writing: members as they come, then the summary.


def packed(row: ArchivedMessage) -> bytes:
    """A row of a member."""
    return _encoder.encode(row)


def member_of(rows: Iterable[bytes]) -> bytes:
    """A member of packed rows."""
    listed = list(rows)
    data = b"".join((b"\xdd", len(listed).to_bytes(4, "big"), *listed))
    return zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(data)


class Summing:
    """The summary of a file that is being written."""

    def __init__(self) -> None:
        self._members: list[Member] = []
        self._sample: list[tuple[int, bytes]] = []  # a heap of -rank, packed row
        self._sampled_bytes = 0
        self._least = -(1 << 64)  # of a sample that has dropped messages, the rank that is too high
        self._messages = 0
        self._end = 0

    def add(self, length: int, rows: Iterable[bytes]) -> None:
        """A member of so many bytes was written."""
        sources: dict[str, Span] = {}
        for data in rows:
            row = _row.decode(data)
            place, time = row.number, row.time
            add_spans(sources, {row.source: Span(1, len(row.message), place, place, time, time)})
            self._messages += 1
            self._offer(-rank_of(row.source, row.number), data)
        self._members.append(Member(self._end, length, sources))
        self._end += length

    def _offer(self, negative: int, row: bytes) -> None:
        if negative <= self._least:
            return
        heappush(self._sample, (negative, row))
        self._sampled_bytes += len(row)
        while len(self._sample) > 1 and (
            len(self._sample) > SAMPLED_MAX or self._sampled_bytes > SAMPLE_BYTES_MAX
        ):
            self._least, dropped = heappop(self._sample)
            self._sampled_bytes -= len(dropped)

    @property
    def members(self) -> list[Member]:
        return list(self._members)

    def frame(self) -> bytes:
        """The end of the file."""
        chosen = sorted(self._sample, reverse=True) if self._messages > UNSAMPLED_MAX else []
        sample = [(-negative, msgspec.Raw(row)) for negative, row in chosen]
        said = _encoder.encode((self._members, sample))
        said = zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(said)
        tail = len(said).to_bytes(4, "little") + _MARK
        return _SKIPPABLE + (len(said) + _TAIL).to_bytes(4, "little") + said + tail


# -------------------------------------------------------------------------------------------------
# Reading: a file of either form, whole or as far as it is written.


def files_of(path: Path) -> list[Path]:
    """The finished files of an archive by their names; ``path`` may be one of them."""
    if not path.is_dir():
        return [path]
    return sorted(file for suffix in SUFFIXES for file in path.glob(f"[!.]*{suffix}"))


def is_archive(path: Path) -> bool:
    """Whether brokers have written finished files there, or this one."""
    return path.name.endswith(SUFFIXES) or (path.is_dir() and bool(files_of(path)))


class Whole(NamedTuple):
    """A member that is whole: where it ends in the file, and its data unpacked."""

    end: int
    data: bytes


def summary_of(file: BinaryIO) -> Summary | None:
    """The summary at the end of a file; None where there is none, or it is damaged."""
    size = file.seek(0, SEEK_END)
    if size < len(_SKIPPABLE) + 4 + _TAIL:
        return None
    file.seek(size - _TAIL)
    tail = file.read(_TAIL)
    start = size - _TAIL - int.from_bytes(tail[:4], "little")
    if tail[4:] != _MARK or start < len(_SKIPPABLE) + 4:
        return None
    file.seek(start)
    try:
        said = zstandard.ZstdDecompressor().decompress(file.read(size - _TAIL - start))
        return _summary.decode(said)
    except (zstandard.ZstdError, msgspec.MsgspecError, MemoryError):
        return None


def whole_members(file: BinaryIO, *, is_old: bool = False) -> Iterator[Whole]:
    """Each whole member from here on, up to the first that is damaged or cut off, or the summary;
    ``is_old``: of a file of JSON lines."""
    while True:
        start = file.tell()
        unpacking = zlib.decompressobj(wbits=_GZIP) if is_old else _unpacking()
        data: list[bytes] = []
        while not unpacking.eof:
            piece = file.read(_PIECE_BYTES)
            if not piece or (not data and not is_old and piece[:4] == _SKIPPABLE):
                return
            try:
                data.append(unpacking.decompress(piece))
            except (zlib.error, zstandard.ZstdError):
                return
        end = file.seek(-len(unpacking.unused_data), 1)
        if end == start:
            return
        yield Whole(end, b"".join(data))


def _unpacking() -> zstandard.ZstdDecompressionObj:
    return zstandard.ZstdDecompressor().decompressobj()


def rows_of(data: bytes) -> list[ArchivedMessage]:
    """The rows of a member; none where it holds something else."""
    try:
        return _rows.decode(data)
    except msgspec.MsgspecError:
        return []


class Gap(NamedTuple):
    """The messages from byte ``start`` of a finished file on cannot be read, so many ``messages``,
    or None: nobody knows how many, since the end of the file is damaged as well, or cut off."""

    file: str
    start: int
    messages: int | None = None

    def __str__(self) -> str:
        if self.messages is None:
            return f"{self.file}: cut off or damaged behind byte {self.start:,}, with its summary"
        return f"{self.file}: {self.messages:,} messages at byte {self.start:,} are damaged"


def unnoted(gap: Gap) -> None:
    """The reader does not ask for gaps."""


def rows_of_file(
    path: Path, members: Iterable[Member] | None = None, note: Callable[[Gap], None] = unnoted
) -> Iterator[ArchivedMessage]:
    """The messages of a finished file of either form, or of some of its members; ``note`` is told
    of those that are damaged, and reading goes on behind them as far as the summary tells where
    that is.  OSError."""
    with path.open("rb") as file:
        if path.name.endswith(OLD_SUFFIX):
            yield from _old_rows(file, note)
            return
        summary = summary_of(file) if members is None else None
        if summary is not None:
            members = summary.members
        if members is None:
            for whole in to_the_damage(file, path.name, 0, note):
                yield from rows_of(whole.data)
            return
        for member in members:
            data = member_at(file, member)
            if data is None:
                note(Gap(path.name, member.start, member.messages))
            else:
                yield from rows_of(data)


def to_the_damage(
    file: BinaryIO, name: str, start: int, note: Callable[[Gap], None], *, is_old: bool = False
) -> Iterator[Whole]:
    """The whole members behind a place in a file that does not tell where its members are; ``note``
    is told of the rest."""
    file.seek(start)
    for whole in whole_members(file, is_old=is_old):
        yield whole
        start = whole.end
    if not is_old or start < file.seek(0, SEEK_END):
        note(Gap(name, start))


def member_at(file: BinaryIO, member: Member) -> bytes | None:
    """The data of a member, None of a damaged one."""
    file.seek(member.start)
    whole = next(whole_members(file), None)
    return None if whole is None or whole.end != member.start + member.length else whole.data


def _old_rows(file: BinaryIO, note: Callable[[Gap], None]) -> Iterator[ArchivedMessage]:
    try:
        with gzip.open(file) as lines:
            for line in lines:
                yield from old_rows_of(line)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        note(Gap(Path(file.name).name, file.tell()))


A_TIME = "a time as 2026-11-21T17:30Z"
"""The form of a time in a question for messages: UTC where no zone is named."""


def time_said(text: str) -> float:
    """Seconds of the epoch, at least 0; ValueError for another text."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; expected {A_TIME}") from None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


class _Line(Struct):
    """A message as a line of JSON."""

    name: str = ""
    time: str = ""
    message: str = ""
    media_type: str | None = ""


_line = msgspec.json.Decoder(_Line)


def old_rows_of(lines: bytes) -> Iterator[ArchivedMessage]:
    """The rows of lines of JSON; none of a line that says something else."""
    for line in lines.splitlines():
        try:
            said = _line.decode(line)
            at = datetime.fromisoformat(said.time)
            source, _, number = said.name.rpartition("/")
            time = round(at.timestamp() * 1e6)
            row = source, int(number), time, said.media_type or "", said.message.encode()
        except (msgspec.MsgspecError, ValueError):
            continue
        yield ArchivedMessage(*row)
