"""The demo as a person runs it: real processes, real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.hanging import SAFETY_SECONDS

ROOT = Path(__file__).resolve().parents[2]


def run_demo(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "demo", *options],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=SAFETY_SECONDS,
        check=False,
    )


def test_the_demo_with_a_few_messages() -> None:
    finished = run_demo("--limit", "2")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    out = finished.stdout
    assert "106 profiles, until each is live" in out
    assert "the plan: 12 partitions by" in out
    assert "● news 1" in out
    assert "refused [malformed]" in out
    assert "128 MB, the cache ['http://objectglobe.example/providers#pirates']" in out
    assert "0 missing, 0 extra, 0 twice, 0 wrong, 0 out of order" in out
    assert "no process, no port and no temporary file is left" in out
    assert "✓ every user got exactly what their profiles ask for" in out
    assert "\x1b" not in out
    assert finished.stderr == ""


def test_a_folder_of_files_and_json(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    for place in range(6):
        text = f"<list n='{place}'>{'<item><x>7</x></item>' * place}</list>"
        (tmp_path / f"{place}.xml").write_text(text)
    (tmp_path / "deeper" / "wrong.cap").write_text("<a>\n  <b></a>")
    finished = run_demo("--messages", str(tmp_path), "--json", "--quiet", "--by-location")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    values = json.loads(finished.stdout)
    assert values["good"] is True
    assert (values["published"], values["accepted"]) == (7, 6)
    (refused,) = values["refused"]
    assert (refused["message"], refused["line"]) == ("files-a deeper/wrong.cap", 2)
    assert values["right"] == values["deliveries"] > 0
    assert values["crossings_total"] <= values["crossings_of_flooding"] == 30
    assert values["leftovers"] == []
    assert values["plan"] is None


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    finished = run_demo("--messages", str(tmp_path / "none"))
    assert finished.returncode == 2
    assert finished.stderr.startswith("demo: ")
    assert "not a folder" in finished.stderr
