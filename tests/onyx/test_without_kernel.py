"""Where no compiled module can be imported clients work, and brokers say why they do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology_text

ROOT = Path(__file__).resolve().parents[2]
REFUSING = ROOT / "tests" / "without_kernel"
CLIENT = """
import formats
from yfilter import parse_profile
message = formats.parse_text(b'<nitf><hedline>Calm</hedline></nitf>')
for form in formats.WireFormat:
    packed = formats.encode(message, form)
    assert formats.to_text(formats.decode(packed, form)) == formats.to_text(message), form
graph = formats.read_graph(b'<urn:x:a> <urn:x:p> "1" .', formats.GraphSyntax.TURTLE)
print(parse_profile("/nitf[hedline]"), len(formats.to_text(graph)), formats.build_info())
"""
ENGINE = """
import yfilter
yfilter.Matcher()
"""
EVERYTHING = """
import importlib, pkgutil
for name in ("onyx", "overlay", "registration"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.endswith("__main__") and "spark" not in module.name:
            importlib.import_module(module.name)
print("all")
"""


def environment() -> dict[str, str]:
    paths = os.pathsep.join((str(REFUSING), str(ROOT)))
    return {**os.environ, "ONYX_PLAIN": "1", "PYTHONPATH": paths}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process that has no compiled modules."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SAFETY_SECONDS,
        check=False,
    )


def test_what_clients_do_works() -> None:
    done = run("-c", CLIENT)
    assert done.stdout.endswith("plain (ONYX_PLAIN is set)\n"), done.stderr


def test_every_module_of_the_program_can_be_imported() -> None:
    assert run("-c", EVERYTHING).stdout == "all\n"


def test_the_version_says_that_nothing_is_compiled() -> None:
    assert run("-m", "onyx", "--version").stdout.rstrip().endswith("plain (ONYX_PLAIN is set)")


def test_the_engine_says_how_to_get_it() -> None:
    said = run("-c", ENGINE).stderr
    assert "the engine needs the compiled modules, which are not used here: ONYX_PLAIN is" in said


def test_a_network_ends_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small_topology_text(tmp_path / "data"), encoding="utf-8")
    done = run("-m", "onyx", "up", str(file), "--json")
    assert done.returncode != 0
    assert "the engine needs the compiled modules" in done.stderr
    assert "docs/installing.md" in done.stderr
    assert "Traceback" not in done.stderr
