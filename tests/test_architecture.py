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


@cache
def imports(path: Path) -> frozenset[str]:
    """The absolute names of all modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: relative import"
            for alias in node.names:
                member = f"{node.module}.{alias.name}"
                found.add(member if member in MODULES else node.module)
    return frozenset(found)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_one_way(path: Path) -> None:
    layer = LAYERS.index(path.parts[0])
    for module in imports(path):
        top = module.split(".")[0]
        assert top not in ("demo", "benchmarks", "tests"), f"{path} imports {module}"
        if top in LAYERS:
            assert LAYERS.index(top) <= layer, f"{path} imports {module}, which is above it"


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for annotations only and inside functions are imports, too."""
    below = {module: imports(path) & MODULES.keys() for module, path in MODULES.items()}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail("imports lead in a circle: " + " -> ".join(reversed(error.args[1])))


@pytest.mark.parametrize("path", FILES, ids=str)
def test_cores_do_not_touch_the_world(path: Path) -> None:
    if str(path) in SHELLS or path.parts[:2] == ("registration", "spark"):
        return
    if path.parts[0] == "onyx" and "core" not in path.name and "plane" not in path.name:
        return
    touched = WORLD & {module.split(".")[0] for module in imports(path)}
    assert not touched, f"{path} imports {sorted(touched)}"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_files_are_short_and_say_what_they_are_for(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert len(text.splitlines()) <= FILE_LINES_MAX, f"{path} is long: is it one noun?"
    assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


def test_every_file_that_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    words = {word for word in text.replace("`", " ").split() if word.endswith((".py", ".md"))}
    names = {path.name for path in ROOT.rglob("*.py")} | {path.name for path in ROOT.glob("*.md")}
    missing = {word for word in words if Path(word.strip("(),;")).name not in names}
    assert not missing
