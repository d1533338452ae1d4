"""The whole programs of docs/spark.md run as they are shown, in a folder with what they read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from onyx.blocking import DataSource
from overlay.archive_file import SUFFIX
from registration.planning.plan_file import from_json
from tests.overlay.test_archive_file import file_of, message

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = re.findall(
    r"```python\n(import .*?)```", (ROOT / "docs" / "spark.md").read_text(), re.DOTALL
)


def run(program: str, folder: Path) -> str:
    words = [sys.executable, "-c", program]
    ended = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_archives_are_filtered_rows_published_and_plans_made(
    registration: str, tmp_path: Path
) -> None:
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
        run(program.replace("127.0.0.1:7200", registration), tmp_path)
    assert from_json((tmp_path / "plan.json").read_bytes()).facts.load == 40
    with source:
        outcomes = source.publish_all((b"<report/>", "application/xml", f"k{n}") for n in range(3))
        assert all(outcome.is_known for outcome in outcomes), "the rows were published"
