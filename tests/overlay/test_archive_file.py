"""Files of an archive tell what they hold, and damage costs what is damaged, no more."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import msgspec
import pytest
import zstandard

from overlay import archive_file
from overlay.archive_file import (
    SAMPLED_MAX,
    UNSAMPLED_MAX,
    ArchivedMessage,
    Gap,
    Summary,
    Summing,
    member_of,
    packed,
    rank_of,
    rows_of,
    rows_of_file,
    summary_of,
    time_said,
    whole_members,
)

SECOND = 1_000_000


def message(number: int, source: str = "s1") -> ArchivedMessage:
    return ArchivedMessage(source, number, number * SECOND, "", b"<m n='%d'>\xc3\xa4</m>" % number)


def file_of(rows: list[ArchivedMessage], a_member: int = 10) -> bytes:
    """The bytes of a finished file, of so many messages a member."""
    written, summing = b"", Summing()
    for start in range(0, len(rows), a_member):
        some = [packed(row) for row in rows[start : start + a_member]]
        member = member_of(some)
        summing.add(len(member), some)
        written += member
    return written + summing.frame()


def summary_in(data: bytes) -> Summary:
    found = summary_of(io.BytesIO(data))
    assert found is not None
    return found


def test_a_file_says_by_source_and_member_what_it_holds() -> None:
    rows = [message(n, "s1" if n <= 15 else "s2") for n in range(1, 26)]
    summary = summary_in(file_of(rows))
    assert summary.messages == 25
    (first, second) = summary.sources().values()
    assert (first.messages, first.first, first.last, first.until) == (15, 1, 15, 15 * SECOND)
    assert (second.messages, second.first, second.since) == (10, 16, 16 * SECOND)
    assert [sorted(member.sources) for member in summary.members] == [["s1"], ["s1", "s2"], ["s2"]]
    assert summary.sample == [], "a small file is as quickly read"


def test_some_members_are_read_alone(tmp_path: Path) -> None:
    rows = [message(n) for n in range(1, 31)]
    path = tmp_path / "a"
    path.write_bytes(file_of(rows))
    assert list(rows_of_file(path)) == rows
    _, second, third = summary_in(path.read_bytes()).members
    assert list(rows_of_file(path, [third, second])) == rows[20:] + rows[10:20]


def test_any_tool_for_zstd_unpacks_the_rows() -> None:
    rows = [message(n) for n in range(5)]
    reader = zstandard.ZstdDecompressor().stream_reader(
        io.BytesIO(file_of(rows)), read_across_frames=True
    )
    assert msgspec.msgpack.decode(reader.read(), type=list[ArchivedMessage]) == rows


def test_the_sample_has_the_lowest_ranks_of_all_messages() -> None:
    rows = [message(n) for n in range(UNSAMPLED_MAX + 1)]
    ranked = sorted((rank_of(row.source, row.number), row) for row in rows)
    assert summary_in(file_of(rows, 500)).sample == ranked[:SAMPLED_MAX]


def test_a_sample_of_large_messages_has_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_file, "SAMPLE_BYTES_MAX", 2_000)
    rows = [message(n) for n in range(UNSAMPLED_MAX + 1)]
    ranked = sorted((rank_of(row.source, row.number), row) for row in rows)
    sample = summary_in(file_of(rows, 500)).sample
    assert 1 < len(sample) < 100
    assert sample == ranked[: len(sample)], "each message is as likely as any other"


@pytest.mark.parametrize("seed", range(20))
def test_damage_costs_the_members_behind_it(seed: int) -> None:
    drawn = random.Random(seed)
    rows = [message(n) for n in range(1, 51)]
    data = bytearray(file_of(rows))
    members = summary_in(bytes(data)).members
    place = drawn.randrange(len(data))
    if drawn.random() < 0.5:
        data[place] ^= drawn.randrange(1, 256)
    else:
        del data[place:]
    file = io.BytesIO(bytes(data))
    found = [row for member in whole_members(file) for row in rows_of(member.data)]
    assert found == rows[: len(found)]
    whole = [member for member in members if member.start + member.length <= place]
    assert len(found) >= 10 * len(whole)
    summary = summary_of(io.BytesIO(bytes(data)))
    assert summary is None or summary.members == members


@pytest.mark.parametrize("seed", range(30))
def test_a_reader_is_told_of_each_message_that_it_does_not_get(seed: int, tmp_path: Path) -> None:
    drawn = random.Random(seed)
    rows = [message(n) for n in range(1, 51)]
    data = bytearray(file_of(rows))
    place = drawn.randrange(len(data))
    if drawn.random() < 0.5:
        data[place] ^= drawn.randrange(1, 256)
    else:
        del data[place:]
    path = tmp_path / "a"
    path.write_bytes(data)
    gaps: list[Gap] = []
    found = list(rows_of_file(path, note=gaps.append))
    assert set(rows) >= set(found)
    assert len(gaps) == 1, "a byte of a frame is in its sum, or it is the summary's"
    (gap,) = gaps
    if gap.messages is not None:
        assert (gap.messages, len(found)) == (10, 40)
        assert str(gap) == f"a: 10 messages at byte {gap.start:,} are damaged"
    else:
        assert str(gap) == f"a: cut off or damaged behind byte {gap.start:,}, with its summary"


def test_lines_that_are_cut_off_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    lines = b"".join(message(n).line() for n in range(2_000))
    path.write_bytes(gzip.compress(lines)[:-100])
    gaps: list[Gap] = []
    assert 0 < len(list(rows_of_file(path, note=gaps.append))) < 2_000
    assert [gap.messages for gap in gaps] == [None]


def test_a_file_without_a_summary_or_of_something_else_has_none() -> None:
    for data in (b"", b"x" * 100, member_of([packed(message(1))]), b"\0" * 92 + b"\xff\0\0\0OnyA"):
        assert summary_of(io.BytesIO(data)) is None
    assert rows_of(b"\xc1") == rows_of(msgspec.msgpack.encode([["s1"]])) == []


def test_a_time_of_a_user_is_utc_where_it_does_not_say() -> None:
    assert time_said("1970-01-02") == time_said("1970-01-02T01:00+01:00") == 86_400
    assert time_said("1900-01-01T00:00Z") == 0
    with pytest.raises(ValueError, match="'noon' is no time; expected a time as 2026-11-21T17:30Z"):
        time_said("noon")
