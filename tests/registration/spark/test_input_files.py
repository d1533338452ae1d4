"""Small files are the same rows in this process as on Spark."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onyx.cli.profile_bulk import BadLines, read_lines
from registration.spark.input_files import SMALL_BYTES, are_small
from registration.spark.inputs import read_messages, read_profiles
from registration.spark.population import RefusedProfile, SmallPopulation
from registration.spark.progress import steps_of
from registration.spark.session import UnreadableData

GRAPH = "<u:a> a <u:b> ."
NAIVE = datetime(2026, 5, 1, 12)


def parquet(file: Path, **columns: Any) -> str:
    pq.write_table(pa.table(columns), file)
    return str(file)


def folder(made: Path, **files: str) -> str:
    for name, text in files.items():
        file = made / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(made)


def archives(to: Path) -> list[str]:
    naive = {
        "message": [b"<a/>", b"", b"<"],
        "time": [NAIVE, None, NAIVE],
        "name": ["x", "y", None],
    }
    return [
        folder(to / "folder", a_xml="<a/>", deep__b_xml="<b/>", c_ttl=GRAPH, _hidden_xml="<h/>"),
        folder(to, only_xml="<one/>") + "/only.xml",
        parquet(to / "texts.parquet", message=["<a/>", None, "<b/>"]),
        parquet(to / "naive.parquet", **naive),
        parquet(to / "zoned.parquet", message=["1"], time=[NAIVE.replace(tzinfo=UTC)]),
        parquet(to / "kinds.parquet", message=["1", "2"], media_type=["", "text/turtle"]),
        parquet(to / "said.parquet", message=["1"], time=["2026-05-01T12:00:00"]),
    ]  # fmt: skip


def test_messages(spark: Any, tmp_path: Path) -> None:
    for path in archives(tmp_path):
        on_spark = [tuple(row) for row in read_messages(spark, [path]).collect()]
        here = read_messages(None, [path]).collect()
        assert sorted(here, key=str) == sorted(on_spark, key=str) and here, path


def test_profiles(spark: Any, tmp_path: Path) -> None:
    packed = tmp_path / "packed.txt.gz"
    packed.write_bytes(gzip.compress(b"//a\n\n  //b \n"))
    for path in (
        folder(tmp_path, lines_txt="//a\n\n  //b\n") + "/lines.txt",
        str(packed),
        folder(tmp_path / "files", a_xq="//a\n", b_xq="//b"),
        folder(tmp_path, l_jsonl='{"text": "//a"}\n{"text": "//b", "near": true}\n') + "/l.jsonl",
        parquet(tmp_path / "p.parquet", profile=[1, 2], text=["//a", "//b"], near=[None, True]),
        parquet(tmp_path / "l.parquet", profile=["1"], text=["//a"], load=[2.5]),
    ):
        on_spark = [tuple(row) for row in read_profiles(spark, [path]).collect()]
        assert sorted(read_profiles(None, [path]).collect()) == sorted(on_spark), path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"text": 1}', "'text' must be a string, not 1"),
        ("{", "this is no JSON: Input data was truncated"),
        ("[]", "expected an object, as onyx profile export writes"),
        ('{"profile": "p1", "text": null}', "'text' is not given"),
        ('{"text": "//a", "near": 7}', "'near' must be true or false, not 7"),
        ('{"text": "//a", "load": -1}', "'load' must be a number of at least 0"),
        ('{"text": "//a", "location": [91, 0]}', "'location'[0] must be a number from -90 to 90"),
        ('{"txt": "//a"}', "there is no 'txt'; did you mean \"text\"?; there are text, profile, "),
    ],
)
def test_a_wrong_line_is_told_alike_by_all_commands(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, why: str
) -> None:
    file = str(tmp_path / "many.jsonl")
    Path(file).write_text('{"text": "//a"}\n' + text)
    with pytest.raises(UnreadableData) as told:
        read_profiles(None, [file])
    assert str(told.value).startswith(f"{file}: line 2: {why}")
    with pytest.raises(BadLines):
        read_lines(file, False, "text")
    assert capsys.readouterr().err == f"onyx: {told.value}\n"
    with pytest.raises(UnreadableData) as on_spark, steps_of(spark):
        read_profiles(spark, [file]).collect()
    assert (
        str(on_spark.value) == f"{file}: the line {text!r}: {told.value.reason.split(': ', 2)[2]}"
    )


def test_all_commands_read_the_same_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    exported = {"profile": "p7", "user": "ada", "host": "B1", "near": False, "text": "//a"}
    text = "\ufeff" + json.dumps(exported) + '\n\n{"text": "//b", "user": null, "load": 2}\r\n'
    file = tmp_path / "many.jsonl.gz"
    file.write_bytes(gzip.compress(text.encode()))
    lines = read_lines(str(file), False, "text")
    assert [(number, line.text) for number, line in lines] == [(1, "//a"), (3, "//b")]
    assert read_profiles(None, [str(file)]).collect() == [("p7", "//a", 1.0), ("2", "//b", 2.0)]
    (changed,) = read_lines(str(file), True, "profile", "text")
    assert changed[1].profile == "p7"
    assert "line 3: 'profile' is not given" in capsys.readouterr().err


def test_what_is_no_profile_is_left_out_and_told(tmp_path: Path) -> None:
    lines = folder(tmp_path, lines_txt='/m[@a = "1"]\n/m[\n') + "/lines.txt"
    population = SmallPopulation(read_profiles(None, [lines]))
    (signature,) = population.signatures()
    count, (refused,) = population.refused(1)
    assert (signature.patterns, count) == (("/m/@a",), 1)
    assert refused == RefusedProfile("1", refused.reason) and "column 4" in refused.reason


def test_what_is_small(tmp_path: Path) -> None:
    large = tmp_path / "large.xml"
    large.write_bytes(bytes(SMALL_BYTES))
    lines = folder(tmp_path, lines_txt="//a") + "/lines.txt"
    assert are_small([lines], [str(large)])
    assert are_small(["no such file"])
    assert not are_small([lines], [str(large), lines])
    assert not are_small([str(large)])
    assert not are_small(["hdfs://there/profiles"]) and not are_small(["*.txt"])
