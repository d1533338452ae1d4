"""What ARCHITECTURE.md says of the structure holds in the code."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("formats", "yfilter", "overlay", "registration", "onyx")
FILE_LINES_MAX = 550  # a file may be long where it is one idea told in order
# The only files in which the world is touched; everything else is a core.
SHELLS = {
    "formats/build.py",
    "formats/helper_process.py",
    "formats/schema_process.py",
    "overlay/link/client_connection.py",
    "overlay/link/connections.py",
    "overlay/link/credentials.py",
    "overlay/link/disk_reserve.py",
    "overlay/link/door.py",
    "overlay/link/evaluation_desk.py",
    "overlay/link/event_queue.py",
    "overlay/link/group_commit.py",
    "overlay/link/handshake.py",
    "overlay/link/inbox.py",
    "overlay/link/lease.py",
    "overlay/link/lone_error.py",
    "overlay/link/link_io.py",
    "overlay/link/made_aside.py",
    "overlay/link/node.py",
    "overlay/link/postgres_store.py",
    "overlay/link/processor_clock.py",
    "overlay/link/question.py",
    "overlay/link/schema_desk.py",
    "overlay/link/store.py",
    "overlay/link/store_format.py",
    "overlay/link/store_head.py",
    "overlay/link/store_inspection.py",
    "overlay/link/store_moment.py",
    "overlay/link/store_repair.py",
    "overlay/state_directory.py",
    "overlay/topology.py",
    "registration/service.py",
    "yfilter/late_process.py",
}
WORLD = {"trio", "socket", "time", "random", "os", "subprocess", "threading", "sqlite3", "uuid"}

FILES = [
    path.relative_to(ROOT) for package in LAYERS for path in sorted((ROOT / package).rglob("*.py"))
]
ON_TOP = [
    path.relative_to(ROOT)
    for package in ("demo", "benchmarks", "tests")
    for path in sorted((ROOT / package).rglob("*.py"))
]
MODULES = {
    ".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES + ON_TOP
}


def imports(path: Path) -> frozenset[str]:
    """The absolute names of all modules that a file imports, wherever in it."""
    return read(path)[0]


@cache
def read(path: Path) -> tuple[frozenset[str], str | None]:
    """What a file imports, and its docstring."""
    found = set()
    tree = ast.parse((ROOT / path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: relative import"
            for alias in node.names:
                member = f"{node.module}.{alias.name}"
                found.add(member if member in MODULES else node.module)
    return frozenset(found), ast.get_docstring(tree)


# One test a rule, which names all that break it: 2,200 tests cost seconds to begin and end.
def test_imports_point_one_way() -> None:
    wrong = []
    for path in FILES:
        below = LAYERS[: LAYERS.index(path.parts[0]) + 1]
        above = {*LAYERS, "demo", "benchmarks", "tests"}.difference(below)
        wrong += [f"{path}: {module}" for module in imports(path) if module.split(".")[0] in above]
    assert not wrong


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for annotations only and inside functions are imports, too."""
    below = {module: imports(path) & MODULES.keys() for module, path in MODULES.items()}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail("imports lead in a circle: " + " -> ".join(reversed(error.args[1])))


def _is_core(path: Path) -> bool:
    if str(path) in SHELLS or path.parts[:2] == ("registration", "spark"):
        return False
    return path.parts[0] != "onyx" or "core" in path.name or "plane" in path.name


def test_cores_do_not_touch_the_world() -> None:
    wrong = {}
    for path in filter(_is_core, FILES):
        if touched := WORLD & {module.split(".")[0] for module in imports(path)}:
            wrong[str(path)] = touched
    assert not wrong


def test_files_are_short_and_say_what_they_are_for() -> None:
    long, silent = [], []
    for path in FILES:
        text = (ROOT / path).read_text()
        if len(text.splitlines()) > FILE_LINES_MAX:
            long.append(path)
        if text.strip() and not read(path)[1]:
            silent.append(path)
    assert not long, "is each one noun?"
    assert not silent


def test_every_file_that_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    words = {word for word in text.replace("`", " ").split() if word.endswith((".py", ".md"))}
    names = {path.name for path in ROOT.rglob("*.py")} | {path.name for path in ROOT.glob("*.md")}
    missing = {word for word in words if Path(word.strip("(),;")).name not in names}
    assert not missing
