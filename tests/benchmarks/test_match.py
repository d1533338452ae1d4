"""``python -m benchmarks match`` on tiny sizes: it measures what it says; no time is asserted."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import benchmarks.match
from benchmarks.__main__ import main
from benchmarks.benchmark import BenchmarkError
from benchmarks.matching import yfilter
from benchmarks.matching.inputs import make_lots
from benchmarks.matching.job import PROFILES, MatchJob, Timings, run_job

TINY = (
    *("--number", "40", "--warmup", "3", "--measured", "4", "--size", "800"),
    *("--changes", "3", "--changing", "2", "--sample", "20"),
)
PROMISED = {
    "number",
    "matches",
    "lxml_parse_us",
    "parse_us",
    "all_in_us",
    "all_in_p99_us",
    "bytes_per_profile",
}


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["match", *arguments, "--json"]) == 0
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(values, dict)
    return values


def test_the_object_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    values = measured(capsys, *TINY)
    assert values.keys() >= PROMISED
    assert values["number"] == 40
    assert values["measured"] == 4
    assert values["checked"] == 4 * 20
    for key in PROMISED - {"matches", "bytes_per_profile"}:
        number = values[key]
        assert isinstance(number, int | float)
        assert number > 0
    ratios = values["ratios"]
    assert isinstance(ratios, dict)
    assert ratios["all_in_us"]["to"] == "lxml_parse_us"


def test_subscribers_and_scaling(capsys: pytest.CaptureFixture[str]) -> None:
    values = measured(
        capsys, *TINY, *("--subscribers", "200", "--scaling", "100", "200", "--matches", "2")
    )
    assert values["registrations"] == 200
    ratios = values["ratios"]
    assert isinstance(ratios, dict)
    assert ratios["scaling_200_us"]["to"] == "scaling_100_us"


def test_the_engine_can_be_given_tighter_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert measured(capsys, *TINY, "--limit", "visits_max=100000")["visits_max"] == 100_000
    assert main(["match", *TINY, "--limit", "profiles_max=5"]) == 2
    assert "5 profiles are registered already" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["match", "--limit", "nonsense=5"])
    assert "expected one of lazy_bytes_max, profiles_max" in capsys.readouterr().err


def test_profiles_and_messages_of_ones_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number in range(10):
        (tmp_path / f"{number}.xml").write_text(f"<a n='{number}'><b/></a>")
    profiles = tmp_path / "profiles.txt"
    profiles.write_text("/a/b\n//b\n/a/c\n")
    options = ("--profiles", str(profiles), "--messages", str(tmp_path))
    values = measured(capsys, *options, *TINY)
    assert (values["number"], values["matches"]) == (3, 2)
    assert values["profiles"] == "profiles.txt"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--profiles", "x.txt"), "go together"),
        (("--profiles", "x.txt", "--selectivity", "1"), "generated profiles"),
        (("--yfilter", "."), "needs --profiles"),
        (("--profiles", "no-such.txt", "--messages", "no-such"), "0 XML files"),
    ],
)
def test_what_does_not_go_together_is_told(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], reason: str
) -> None:
    assert main(["match", *options]) == 2
    assert reason in capsys.readouterr().err


def test_wrong_answers_are_not_timed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_one_match_less(job: MatchJob, folder: Path) -> Timings:
        timings = run_job(job, folder)
        next(found for found in timings.checked if found).pop()
        return timings

    monkeypatch.setattr(benchmarks.match, "run_job", with_one_match_less)
    assert main(["match", *TINY, "--sample", "40"]) == 1
    captured = capsys.readouterr()
    assert "disagree on 1 of 160" in captured.err
    assert not captured.out


def folder_with(tmp_path: Path, *profiles: str) -> Path:
    (tmp_path / PROFILES).write_text("".join(profile + "\n" for profile in profiles))
    make_lots(1, 2, 2, 2, 500).write(tmp_path)
    return tmp_path


def test_a_job_has_a_time_for_each_message_and_change(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "/*", "/nothing")
    timings = run_job(MatchJob(number=2, warmup=5, cold=3, changes=2), folder)
    assert timings.build == "compiled"
    assert timings.matches == [1, 1]
    assert timings.checked == [[0], [0]]
    assert (len(timings.cold), len(timings.all_in), len(timings.again)) == (3, 2, 2)
    assert (len(timings.add), len(timings.remove), len(timings.between_changes)) == (2, 2, 2)


def test_a_profile_that_is_refused_is_told(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "/a", "/b[")
    with pytest.raises(BenchmarkError, match=r"refused: line 1, column 4.* /b\["):
        run_job(MatchJob(number=2), folder)


def test_a_directory_without_yfilter_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lots = make_lots(1, 1, 1, 1, 500)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BenchmarkError, match="no 'java'"):
        yfilter.run_yfilter(tmp_path, MatchJob(number=1), lots, tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/false")
    with pytest.raises(BenchmarkError, match=r"no yfilter\.jar"):
        yfilter.run_yfilter(tmp_path, MatchJob(number=1), lots, tmp_path)
    (tmp_path / "yfilter.jar").write_bytes(b"")
    with pytest.raises(BenchmarkError, match="YFilter failed"):
        yfilter.run_yfilter(tmp_path, MatchJob(number=1), lots, tmp_path)


FAKE_JAVA = """#!{python}
import os, sys
profiles, number, warm, measured = sys.argv[4:8]
assert len(open(profiles).readlines()) == 2
print("YFilter reads ...", file=sys.stderr)
print("built", "1500.0", {registered}, sep="\\t")
assert len(os.listdir(warm)) == 3
for row, name in enumerate(sorted(os.listdir(measured)), 1):
    print(name, row * 10.5, row, sep="\\t")
"""


@pytest.mark.parametrize("registered", [2, 1])
def test_yfilter_must_take_all_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: int
) -> None:
    java = tmp_path / "java"
    java.write_text(FAKE_JAVA.format(python=sys.executable, registered=registered))
    java.chmod(0o700)
    (tmp_path / "yfilter.jar").write_bytes(b"")
    (tmp_path / PROFILES).write_text("/a\n/b\n")
    monkeypatch.setattr(shutil, "which", lambda name: str(java))
    job, lots = MatchJob(number=2), make_lots(1, 3, 2, 0, 500)
    if registered < 2:
        with pytest.raises(BenchmarkError, match="took 1 of 2 profiles"):
            yfilter.run_yfilter(tmp_path, job, lots, tmp_path)
        return
    timings = yfilter.run_yfilter(tmp_path, job, lots, tmp_path)
    assert (timings.build_us, timings.filter, timings.matches) == (1500.0, [10.5, 21.0], [1, 2])
