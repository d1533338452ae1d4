"""What ARCHITECTURE.md says of the structure holds in the code."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.modules import (
    LAYERS,
    MODULES,
    ON_TOP,
    PRODUCT,
    ROOT,
    SUFFIXES,
    docstring,
    imports,
)

# The only files in which the world is touched; everything else is a core.
SHELLS = {
    "formats/kernel.py",
    "formats/helper_process.py",
    "formats/schema_process.py",
    "overlay/link/client_connection.py",
    "overlay/link/connections.py",
    "overlay/link/credentials.py",
    "overlay/link/disk_reserve.py",
    "overlay/link/door.py",
    "overlay/link/node.py",
    "overlay/link/event_queue.py",
    "overlay/link/group_commit.py",
    "overlay/link/handshake.py",
    "overlay/link/inbox.py",
    "overlay/link/postgres_store.py",
    "overlay/link/lone_error.py",
    "overlay/link/link_io.py",
    "overlay/link/made_aside.py",
    "overlay/link/processor_clock.py",
    "overlay/link/store.py",
    "overlay/link/store_format.py",
    "overlay/link/store_head.py",
    "overlay/link/store_inspection.py",
    "overlay/link/store_moment.py",
    "overlay/link/store_repair.py",
    "overlay/state_directory.py",
    "overlay/topology.py",
    "registration/planner_desk.py",
    "registration/planner_process.py",
    "registration/service.py",
    "yfilter/late_process.py",
}
WORLD = {"trio", "socket", "time", "random", "os", "subprocess", "threading", "sqlite3", "uuid"}

FILES = list(PRODUCT.values())


# One test a rule, which names all that break it: 2,200 tests cost seconds to begin and end.
def test_imports_point_one_way() -> None:
    wrong = []
    for path in FILES:
        below = LAYERS[: LAYERS.index(path.parts[0]) + 1]
        above = {*LAYERS, *ON_TOP}.difference(below)
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


def test_files_say_what_they_are_for() -> None:
    """Empty ones and headers of Cython need not."""
    silent = [path for path in FILES if path.suffix != ".pxd" and not docstring(path)]
    assert not [path for path in silent if (ROOT / path).read_text().strip()]


def test_every_file_that_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    words = {word for word in text.replace("`", " ").split() if word.endswith((*SUFFIXES, ".md"))}
    names = {Path(word.strip("(),;")).name for word in words}
    found = {path.name for path in ROOT.rglob("*") if path.suffix in SUFFIXES}
    assert not names - found - {path.name for path in ROOT.glob("*.md")} - {*SUFFIXES}
