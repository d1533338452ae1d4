"""What ARCHITECTURE.md says of the structure holds in the code."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path

import pytest
from msgspec import Struct

from formats.limits import MessageLimits
from overlay import statistics, verbs
from overlay.archive import ArchiveOptions
from overlay.gateway import GatewayTable
from overlay.limits import Limits, TrainingLimits
from overlay.link.limits import LinkLimits
from overlay.oidc import OidcOptions
from overlay.planning import PlanningOptions
from overlay.settings import ProfileSettings, SourceSettings
from overlay.stores import StoreOptions
from overlay.topology import AdminOptions
from tests.modules import (
    LAYERS,
    MODULES,
    ON_TOP,
    PRODUCT,
    ROOT,
    SUFFIXES,
    docstring,
    imports,
    source_files,
)

# The only files in which the world is touched; everything else is a core.
SHELLS = {
    "formats/kernel.py",
    "formats/helper_process.py",
    "formats/schema_process.py",
    "overlay/link/client_connection.py",
    "overlay/link/client_stream.py",
    "overlay/link/client_table.py",
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
    "overlay/link/loop.py",
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
    "yfilter/system_clock.py",
}
# Beside the command line: its entry, and the benchmark that measures it.
USES_OF_THE_COMMAND_LINE = {"onyx/__main__.py", "benchmarks/operate.py"}
WORLD = {
    "anyio",
    "trio",
    "socket",
    "time",
    "random",
    "os",
    "subprocess",
    "threading",
    "sqlite3",
    "uuid",
}

FILES = list(PRODUCT.values())
PYTHON = [path for path in FILES if path.suffix == ".py"]

Trees = dict[Path, tuple[ast.AST, ...]]


@pytest.fixture(scope="module")
def trees() -> Trees:
    """All nodes of each Python file of the product and of the demo, by its path."""
    files = [*PYTHON, *source_files("demo")]
    return {path: tuple(ast.walk(ast.parse((ROOT / path).read_text()))) for path in files}


# One test a rule, which names all that break it: 2,200 tests cost seconds to begin and end.
def test_imports_point_one_way() -> None:
    wrong = []
    for path in FILES:
        below = LAYERS[: LAYERS.index(path.parts[0]) + 1]
        above = {*LAYERS, *ON_TOP}.difference(below)
        wrong += [f"{path}: {module}" for module in imports(path) if module.split(".")[0] in above]
    assert not wrong


def test_nothing_but_its_entry_imports_the_command_line() -> None:
    others = [path for path in MODULES.values() if path.parts[:2] != ("onyx", "cli")]
    users = {
        str(path)
        for path in others
        if path.parts[0] != "tests"
        and any(f"{module}.".startswith("onyx.cli.") for module in imports(path))
    }
    assert users == USES_OF_THE_COMMAND_LINE


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


def test_nobody_fills_in_a_callable_of_another_object(trees: Trees) -> None:
    """Such a one is an argument of the constructor; expat has handlers, in words of its own."""
    callables, methods, values = set(), set(), set()
    filled: list[tuple[Path, ast.Attribute, list[ast.expr]]] = []  # of others, and with what
    for path in PYTHON:
        for node in trees[path]:
            places, given = _filled(node)
            for place in places:
                held = place.value if isinstance(place, ast.Subscript) else place
                is_own = isinstance(held, ast.Attribute) and getattr(held.value, "id", "") == "self"
                if isinstance(node, ast.AnnAssign):
                    kinds = {getattr(each, "id", "") for each in ast.walk(node.annotation)}
                    (callables if "Callable" in kinds else values).add(_name(held))
                elif is_own or isinstance(held, ast.Name):
                    values.add(_name(held))
                elif isinstance(held, ast.Attribute):
                    filled.append((path, held, given))
            if isinstance(node, ast.FunctionDef):
                (values if node.decorator_list else methods).add(node.name)
    wrong = [
        f"{path}:{held.lineno} {held.attr}"
        for path, held, given in filled
        if held.attr in callables - values
        or any(
            isinstance(each, ast.Lambda) or _name(each) in methods - values
            for each in given
            if held.attr.islower() and not isinstance(each, ast.Name)
        )
    ]
    assert not wrong


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _filled(node: ast.AST) -> tuple[list[ast.expr], list[ast.expr]]:
    """The places that a statement or a call assigns or adds to, and the values."""
    if isinstance(node, ast.Assign):
        places = [part for each in node.targets for part in getattr(each, "elts", [each])]
        return places, getattr(node.value, "elts", [node.value])
    if isinstance(node, ast.AugAssign):
        return [node.target], getattr(node.value, "elts", [node.value])
    if isinstance(node, ast.AnnAssign):
        return [node.target], []
    if isinstance(node, ast.Call) and _name(node.func) in ("add", "append", "extend", "setdefault"):
        return [node.func.value] if isinstance(node.func, ast.Attribute) else [], node.args
    return [], []


def test_a_verb_is_named_in_its_record_alone(trees: Trees) -> None:
    """Servers, clients, commands and pages ask and answer by the records of overlay/verbs.py."""
    names = {kind.verb for kind in verbs.TABLE}
    assert len(names) > 50
    found = [
        (str(file), node.lineno, node.value)
        for file, nodes in trees.items()
        if file.parts[0] in ("onyx", "overlay", "registration") and file.name != "verbs.py"
        for node in nodes
        if isinstance(node, ast.Constant) and node.value in names and "." in str(node.value)
    ]
    assert found == []


# Names of figures that other answers, rows and lines have too.
SHARED = {
    *("away", "branches", "broker", "bytes", "bytes_saved", "changes", "cut", "data", "down"),
    *("entries", "failed", "format", "last", "links", "measured", "messages", "no_graph", "node"),
    *("needs", "online", "plan"),
    *("profiles", "query", "refused", "registration", "sources", "state", "time", "transformation"),
    "version",
}


def test_nobody_takes_statistics_apart_by_strings(trees: Trees) -> None:
    """Who reads them decodes them into the records of overlay/statistics.py."""
    records = [
        kind
        for kind in vars(statistics).values()
        if isinstance(kind, type) and issubclass(kind, Struct)
    ]
    figures = {name for record in records for name in record.__struct_fields__} - SHARED
    assert figures >= {"published", "mailboxes", "backlog_bytes", "longest_turn_ms"}
    found = [
        (str(file), node.lineno, key)
        for file, nodes in trees.items()
        if file.parts[0] in ("onyx", "demo")
        if file.parts[:2] != ("onyx", "broker")  # whose parts tell them
        for node in nodes
        if (key := _key(node)) in figures
    ]
    assert found == []


def _key(node: ast.AST) -> object:
    """The string by which something is taken out of a mapping."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return getattr(node.slice, "value", None)
    if isinstance(node, ast.Call) and _name(node.func) == "get" and node.args:
        return getattr(node.args[0], "value", None)
    return None


def test_a_setting_is_declared_in_its_record_alone(trees: Trees) -> None:
    """No other class has two fields or more of a table of a topology file, or of what a source or a
    profile is set to."""
    settings = {
        *(Limits, TrainingLimits, LinkLimits, MessageLimits, ArchiveOptions, OidcOptions),
        *(StoreOptions, AdminOptions, GatewayTable, PlanningOptions),
        *(SourceSettings, ProfileSettings),
    }
    tables = {kind.__name__: set(kind.__struct_fields__) for kind in settings}
    assert sum(map(len, tables.values())) > 80
    found = [
        (str(file), node.name, sorted(names & declared))
        for file in PYTHON
        for node in trees[file]
        if isinstance(node, ast.ClassDef)
        for declared in [{ast.unparse(e.target) for e in node.body if isinstance(e, ast.AnnAssign)}]
        for table, names in tables.items()
        if node.name != table and len(names & declared) > 1
    ]
    assert found == []


MEDIA = {  # in an order and with bytes of its own: on the wire, on disk, and to people
    ("SourceAnnounced", "SourceEntry"),
    ("SourceAnnounced", "SourceInfo"),
    ("DeadLetter", "Letter"),
    ("CarriedMessage", "DeferredRow"),
    ("PlanProgress", "_ApplicationRow"),
    ("AutoPlan", "_DecisionRow"),
    ("PlanWanted", "PlannerTask"),
    ("Delivered", "Delivery"),
}


def test_no_record_is_declared_twice(trees: Trees) -> None:
    """No two classes share six fields or more that are most of one of them."""
    declared: dict[str, set[str]] = {}
    for file in PYTHON:
        for node in trees[file]:
            if isinstance(node, ast.ClassDef):
                names = {
                    ast.unparse(each.target)
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.dump(each)
                }
                declared[f"{file}:{node.name}"] = names
    large = {name: fields for name, fields in declared.items() if len(fields) > 5}
    pairs = combinations(sorted(large.items()), 2)
    alike = {
        tuple(sorted(name.partition(":")[2] for name in (one, other)))
        for (one, some), (other, more) in pairs
        if len(some & more) >= max(6, 0.6 * min(len(some), len(more)))
    }
    assert alike == MEDIA
