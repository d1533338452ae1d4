"""The files of a plan, as ``onyx plan make`` writes them into one directory."""

from __future__ import annotations

from pathlib import Path

from onyx.cli.values import read_input
from registration.planning.plan import Plan
from registration.planning.plan_file import FILE_BYTES_MAX, from_json

PLAN_FILE = "plan.json"
ASSIGNMENT_FILE = "assignment.parquet"


def read_plan_text(name: str) -> bytes:
    """The rules of a plan, given its directory or the file itself."""
    return read_input(str(_plan_file(name)), FILE_BYTES_MAX)


def load_plan(name: str) -> Plan:
    """The plan in a directory or file; PlanError when it cannot be used."""
    return from_json(read_plan_text(name), str(_plan_file(name)))


def _plan_file(name: str) -> Path:
    path = Path(name)
    return path / PLAN_FILE if path.is_dir() else path
