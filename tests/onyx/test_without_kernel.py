"""Where no compiled module can be imported everything works, slowly, and says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.onyx.networks import SAFETY_SECONDS, check_it_serves, small_topology_text

ROOT = Path(__file__).resolve().parents[2]
REFUSING = ROOT / "tests" / "without_kernel"
ENGINE = """
import formats, sys
from yfilter import Matcher, ProfileMatch
matcher = Matcher()
matcher.add('/nitf[head/pubdata/@edition.area = "SF"]', "ann")
matcher.add('for $h in //hedline return <news>{$h/text()}</news>', "bob")
matcher.add('PREFIX : <urn:x:> SELECT ?o { ?s :p ?o }', "cid")
message = b'<nitf><head><pubdata edition.area="SF"/></head><hedline>Calm</hedline></nitf>'
for match in matcher.match(message):
    print(match.profile_id, match.results()[0].decode())
graph = formats.read_graph(b'<urn:x:a> <urn:x:p> "1" .', formats.GraphSyntax.TURTLE)
print(matcher.matched_ids(graph), formats.build_info())
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
    return {**os.environ, "ONYX_REFERENCE": "1", "PYTHONPATH": paths}


def run(*arguments: str) -> str:
    """The output of a Python process that has no compiled modules."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SAFETY_SECONDS,
        check=False,
    ).stdout


def test_the_engine_matches_documents_and_graphs() -> None:
    assert run("-c", ENGINE).splitlines() == [
        'ann <nitf><head><pubdata edition.area="SF"/></head><hedline>Calm</hedline></nitf>',
        "bob <news>Calm</news>",
        "['cid'] reference (ONYX_REFERENCE is set)",
    ]


def test_every_module_of_the_program_can_be_imported() -> None:
    assert run("-c", EVERYTHING) == "all\n"


def test_the_version_says_which_engine_runs() -> None:
    assert run("-m", "onyx", "--version").rstrip().endswith("reference (ONYX_REFERENCE is set)")


@pytest.fixture
def slow_network(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Three brokers without compiled modules, with a link of each form: the address of its
    registration service, and its log."""
    file, log = tmp_path / "small.toml", tmp_path / "log"
    file.write_text(small_topology_text(tmp_path / "data"), encoding="utf-8")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "onyx", "up", str(file), "--json"],
            env=environment(),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text(encoding="utf-8")
            yield json.loads(line)["registration"], log
        finally:
            process.terminate()
            process.communicate(timeout=SAFETY_SECONDS)


async def test_a_network_delivers_and_warns_loudly(slow_network: tuple[str, Path]) -> None:
    registration, log = slow_network
    await check_it_serves(registration)
    told = log.read_text(encoding="utf-8")
    for node in ("B1", "B2", "B3"):
        assert f"{node} warning onyx.process: SLOW: the compiled modules are not used" in told
    found = run("-m", "onyx", "doctor", "--registration", registration, "--json")
    assert "runs the slow reference (ONYX_REFERENCE is set)" in found
