"""Processes whose disk fails when it is told to, by a library that is put before the system's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_PRELUDE = """
import os, sys
from pathlib import Path
from overlay.link.errors import DiskFull, StoreError
from overlay.link.events import Delete, Put
from overlay.link.store import Store
path, fault = Path(sys.argv[1]), Path(os.environ["FAULT"])
"""


def faulty_disk(directory: Path) -> dict[str, str]:
    """The environment of a process with such a disk; it fails as the file ``FAULT`` says."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    library = preloaded(directory, Path(__file__).with_suffix(".c"), compiler)
    fault = directory / "fault"
    fault.write_text("")
    return {**os.environ, "LD_PRELOAD": str(library), "FAULT": str(fault)}


def preloaded(directory: Path, source: Path, compiler: str) -> Path:
    """The library that a C file is."""
    library = directory / f"{source.stem}.so"
    if not library.exists():
        made = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
        subprocess.run(made, check=True)
    return library


def run_with(disk: dict[str, str], store: Path, script: str) -> str:
    """What a script prints that has ``path`` of a store and ``fault``."""
    done = subprocess.run(
        [sys.executable, "-u", "-c", _PRELUDE + script, str(store)],
        env=disk,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
