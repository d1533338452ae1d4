"""Profiles and messages for a measurement, made and read; and the loop of lxml XPath objects."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import lxml.etree
import msgpack
import pytest

from benchmarks.benchmark import BenchmarkError
from benchmarks.matching.inputs import make_lots, make_profiles, read_lots, read_profiles
from benchmarks.matching.job import MESSAGES, PROFILES, MatchJob
from benchmarks.matching.oracle import compare, take_sample


def lines(folder: Path) -> list[str]:
    return (folder / PROFILES).read_text(encoding="utf-8").splitlines()


def test_the_three_lots_have_no_message_in_common(tmp_path: Path) -> None:
    lots = make_lots(1, warm=4, measured=3, changing=2, size=600)
    assert (len(lots.warm), len(lots.measured), len(lots.changing)) == (4, 3, 2)
    assert len({*lots.warm, *lots.measured, *lots.changing}) == 9
    lots.write(tmp_path)
    read = msgpack.unpackb((tmp_path / MESSAGES).read_bytes())
    assert read["measured"] == lots.measured


def test_files_are_divided_into_lots(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.xml").write_text(f"<a n='{number}'/>")
    (tmp_path / "notes.txt").write_text("no message")
    lots = read_lots(tmp_path, seed=1, warm=100, measured=5, changing=100)
    assert (len(lots.warm), len(lots.measured)) == (10, 5)
    assert len({*lots.warm, *lots.measured}) == 15
    assert lots.changing == lots.measured
    assert read_lots(tmp_path, 1, 100, 5, 100) == lots
    assert read_lots(tmp_path, 1, 4, 100, 2).changing == lots.measured[:2]
    assert len(read_lots(tmp_path, 1, 4, 100, 2).measured) == 10


def test_too_few_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_text("<a/>")
    with pytest.raises(BenchmarkError, match="1 XML files; at least 10"):
        read_lots(tmp_path, 1, 1, 1, 1)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_profiles_file_may_be_compressed(tmp_path: Path, compressed: bool) -> None:
    source = tmp_path / ("in.txt.gz" if compressed else "in.txt")
    text = b"/a\n/b\n//c[@d = 1]\n"
    source.write_bytes(gzip.compress(text) if compressed else text)
    assert read_profiles(source, tmp_path, number=2, extra=0) == 2
    assert lines(tmp_path) == ["/a", "/b"]
    assert read_profiles(source, tmp_path, number=2, extra=5) == 2
    assert lines(tmp_path) == ["/a", "/b", "//c[@d = 1]"]
    assert read_profiles(source, tmp_path, number=9, extra=5) == 3


def test_an_empty_profiles_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("")
    with pytest.raises(BenchmarkError, match="is empty"):
        read_profiles(tmp_path / "in.txt", tmp_path, 1, 1)


def test_as_many_generated_profiles_match_as_asked_for(tmp_path: Path) -> None:
    make_profiles(tmp_path, seed=1, number=3_000, extra=10, matching_percent=1.0)
    profiles = lines(tmp_path)
    assert len(set(profiles)) == 3_010
    paths = [lxml.etree.XPath(f"boolean({path})") for path in profiles[:3_000]]
    trees = [lxml.etree.fromstring(m) for m in make_lots(1, 0, 20, 0, 10_000).measured]
    percent = 100 * sum(path(tree) for path in paths for tree in trees) / 3_000 / 20
    assert 0.5 < percent < 1.5  # without being asked for: 4


def test_more_matches_than_there_can_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"50 % cannot be reached"):
        make_profiles(tmp_path, 1, 50, 0, 50)


def test_registrations_are_each_profile_once_or_zipf() -> None:
    assert list(MatchJob(number=4).registrations()) == [0, 1, 2, 3]
    zipf = MatchJob(number=50, subscribers=5_000)
    counts = Counter(zipf.registrations())
    assert counts.total() == 5_000
    assert set(counts) <= set(range(50))
    assert counts[0] > 2 * counts[10] > 2 * counts[49] > 0
    assert list(zipf.registrations()) == list(zipf.registrations())


def test_the_oracle_counts_what_the_engine_missed_and_what_it_made_up() -> None:
    profiles = [(0, "/a"), (1, "/b"), (2, "/a/b"), (3, "for $x in /a return $x")]
    sample = take_sample(profiles)
    assert sample.not_xpath == 1
    messages = [b"<a><b/></a>", b"<b/>"]
    good = compare(sample, messages, [[0, 2, 3], [1]])
    assert (good.disagreements, good.compared) == (0, 6)
    assert good.us_per_profile is not None
    assert good.us_per_profile > 0
    assert compare(sample, messages, [[0], [1]]).disagreements == 1
    assert compare(sample, messages, [[0, 1, 2], [1]]).disagreements == 1
    assert compare(sample, messages, [[1], [0]]).disagreements == 5


def test_nothing_checked_is_no_number() -> None:
    answer = compare(take_sample([(0, "/a")]), [], [])
    assert answer.us_per_profile is None
