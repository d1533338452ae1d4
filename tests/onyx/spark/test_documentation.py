"""The whole programs of docs/spark.md run as they are shown, in one session of all of them, with
the paths of a folder for what they read and write."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onyx.spark
from onyx.blocking import DataSource
from overlay.archive_file import SUFFIX
from registration.planning.plan_file import from_json
from tests.overlay.test_archive_file import file_of, message

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = re.findall(
    r"```python\n(import .*?)```", (ROOT / "docs" / "spark.md").read_text(), re.DOTALL
)


NAMES = ("news", "network.toml", "profiles.parquet", "reports", "checkpoint", "plan.json")


def test_archives_are_filtered_rows_published_and_plans_made(
    spark: Any, registration: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onyx.spark, "session", lambda: nullcontext(spark))
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / f"onyx-B1-1{SUFFIX}").write_bytes(file_of([message(1), message(2)]))
    shutil.copy(ROOT / "topologies" / "figure4.toml", tmp_path / "network.toml")
    texts = [f'/m[@n = "{n}"]' for n in range(40)]
    table = pa.table({"profile": [f"p{n}" for n in range(40)], "text": texts})
    pq.write_table(table, tmp_path / "profiles.parquet")
    (tmp_path / "reports").mkdir()
    rows = [{"message": f"<report>{n}</report>", "key": f"k{n}"} for n in range(3)]
    (tmp_path / "reports" / "1.json").write_text("\n".join(map(json.dumps, rows)))
    source = DataSource.register(registration, name="weather")
    for program in PROGRAMS:
        for name in NAMES:
            program = program.replace(f'"{name}"', repr(str(tmp_path / name)))  # noqa: PLW2901
        exec(program.replace("127.0.0.1:7200", registration), {})
    assert from_json((tmp_path / "plan.json").read_bytes()).facts.load == 40
    with source:
        outcomes = source.publish_all((b"<report/>", "application/xml", f"k{n}") for n in range(3))
        assert all(outcome.is_known for outcome in outcomes), "the rows were published"
