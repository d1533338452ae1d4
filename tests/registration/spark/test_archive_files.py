"""Archives of brokers as frames: counted and sampled by their summaries, read by some tasks."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from overlay.archive_file import SUFFIX, UNSAMPLED_MAX, Gap, files_of, rank_of, rows_of_file
from registration.spark import archive_files
from registration.spark.archive_files import ArchiveFiles
from registration.spark.backtest_job import BacktestJob, run_backtest
from registration.spark.inputs import read_messages, read_sample
from tests.overlay.test_archive_file import file_of, message

MANY = UNSAMPLED_MAX + 1


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """Two large files, and one that is being written."""
    for number, source in enumerate(("s1", "s2")):
        rows = [message(n, source) for n in range(MANY)]
        (tmp_path / f"onyx-B1-{number}{SUFFIX}").write_bytes(file_of(rows, 500))
    (tmp_path / ".onyx-B1-3.part").write_bytes(b"")
    return tmp_path


def test_summaries_count_and_sample_without_a_message_being_read(news: Path) -> None:
    archives = ArchiveFiles.of(files_of(news))
    assert archives.messages == 2 * MANY
    ranked = sorted((rank_of(s, n), s, n) for s in ("s1", "s2") for n in range(MANY))
    chosen = archives.sample(300)
    assert chosen is not None
    assert [(row.source, row.number) for row in chosen] == [one[1:] for one in ranked[:300]]
    assert archives.sample(1_000) is None, "two summaries have 512"
    assert len(archives.sample(1_000, 1) or []) > 256
    assert archives.read_sample(300) == chosen
    twice = ArchiveFiles.of(2 * files_of(news)).sample(4)
    assert twice is not None
    assert [row.name for row in twice[::2]] == [row.name for row in chosen[:2]]


def test_all_messages_come_once_from_several_tasks(
    news: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_files, "_SLICE_BYTES", 10_000)
    lines = b"".join(message(n, "s3").line() for n in range(3))
    (news / "onyx-B1-0.jsonl.gz").write_bytes(gzip.compress(lines))
    frame = read_messages(spark, [str(news)])
    found = sorted((row.name, bytes(row.message), row.accepted) for row in frame.collect())
    wanted = [message(n, source) for source in ("s1", "s2") for n in range(MANY)]
    wanted += [message(n, "s3") for n in range(3)]
    assert found == sorted((row.name, row.message, row.time) for row in wanted)
    assert frame.rdd.getNumPartitions() > 4


def test_a_damaged_summary_costs_the_counts_and_no_message(news: Path) -> None:
    first, second = files_of(news)
    second.unlink()
    first.write_bytes(first.read_bytes()[:-1])
    archives = ArchiveFiles.of([first])
    assert archives.messages == 0
    assert archives.sample(10) is None
    assert archives.slices() == [(str(first), None)]
    assert len(list(rows_of_file(first))) == MANY


def test_a_backtest_tells_of_the_messages_that_are_damaged(
    news: Path, spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = files_of(news)
    data = bytearray(first.read_bytes())
    data[20] ^= 255
    first.write_bytes(data)
    second.write_bytes(second.read_bytes()[:-1])
    result = run_backtest(spark, BacktestJob({"p": "/m"}, (str(news),)))
    assert result.messages == result.records["p"].matches == 2 * MANY - 500
    in_first, in_second = result.gaps
    assert in_first == Gap(first.name, 0, 500)
    assert (in_second.file, in_second.messages) == (second.name, None)
    assert [str(gap) for gap in result.gaps] == caplog.messages


def test_samples_are_bounded_whatever_the_summaries_have(news: Path, spark: Any) -> None:
    assert read_sample(spark, [str(news)], 100).count() == 100
    assert 500 < read_sample(spark, [str(news)], 1_000).count() <= 1_000
