"""``setup.py``, on a project of two small modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYX = """
from formats.shared cimport twice

def four(list cells):
    return twice(2) + cells[INDEX]
"""
FILES = {
    "formats/__init__.py": "",
    "formats/hot.pyx": PYX.replace("INDEX", "0"),
    "formats/hot.pxd": "",
    "formats/other.pyx": "def one():\n    return 1\n",
    "formats/shared.pxd": "cdef inline int twice(int value):\n    return 2 * value\n",
    "yfilter/__init__.py": "",
}

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


class Project:
    """A copy of setup.py with modules of its own, a cache and a compiler."""

    def __init__(self, directory: Path, cache: Path, compiler: Path) -> None:
        self.directory = directory
        self._cache = cache
        self._compiler = compiler
        for name, text in FILES.items():
            self.write(name, text)
        shutil.copy(ROOT / "setup.py", directory)
        (directory / "pyproject.toml").write_text(
            '[project]\nname = "tiny"\nversion = "1"\n[tool.setuptools]\npackages = []\n'
        )

    def write(self, name: str, text: str) -> None:
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def build(self, mode: str = "require", **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
            cwd=self.directory,
            env={
                **os.environ,
                "ONYX_COMPILE": mode,
                "ONYX_BUILD_CACHE": str(self._cache),
                "CC": str(self._compiler),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def compiled(self, **variables: str) -> int:
        """How many extensions a build had to compile."""
        done = self.build(**variables)
        assert done.returncode == 0, done.stderr
        before, _, _ = done.stdout.partition(" of them compiled")
        return int(before.rpartition(" ")[2])

    def call(self, expression: str) -> str:
        """What an expression is, or the error that it raises."""
        done = subprocess.run(
            [sys.executable, "-c", f"import formats.hot as hot; print({expression})"],
            cwd=self.directory,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=False,
        )
        return (done.stdout or done.stderr).strip().splitlines()[-1]

    def manifest(self) -> dict[str, object]:
        return json.loads((self.directory / "formats" / "compiled.json").read_bytes())  # type: ignore[no-any-return]

    def extensions(self) -> set[str]:
        return {file.name.partition(".")[0] for file in (self.directory / "formats").glob("*.so")}


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache after the first build, which had to compile both and what they share."""
    directory = tmp_path_factory.mktemp("first")
    compiler = directory / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')  # quick itself, and nobody runs it long
    compiler.chmod(0o755)
    assert Project(directory / "project", directory / "cache", compiler).compiled() == 3
    return directory / "cache"


@pytest.fixture
def project(tmp_path: Path, compiled_once: Path) -> Project:
    """One with a copy of that cache."""
    shutil.copytree(compiled_once, tmp_path / "cache")
    return Project(tmp_path / "project", tmp_path / "cache", compiled_once.with_name("cc"))


def test_the_cache_knows_what_was_compiled(project: Project, tmp_path: Path) -> None:
    assert project.compiled() == 0
    assert project.call("hot.four([3])") == "7"
    manifest = project.manifest()
    modules = {"formats.hot", "formats.other", "formats.compiled_support"}
    assert set(manifest["sources"]) == modules  # type: ignore[call-overload]
    assert (manifest["reason"], manifest["checks"]) == ("", False)

    # One source has changed, and then a header of one.
    project.write("formats/other.pyx", "def one():\n    return 2\n")
    assert project.compiled() == 1
    project.write("formats/shared.pxd", FILES["formats/shared.pxd"].replace("2 *", "3 *"))
    assert project.compiled() == 1
    assert project.call("hot.four([3])") == "9"

    # A damaged entry is none.
    for entry in (tmp_path / "cache" / "formats.hot").iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    assert project.compiled() == 1
    assert project.call("hot.four([3])") == "9"

    # An extension that nothing is compiled to any more would be imported instead of its source.
    (project.directory / "formats" / "other.pyx").unlink()
    project.write("formats/other.py", "")
    assert project.compiled() == 0
    assert project.extensions() == {"hot", "compiled_support"}


def test_a_build_with_checks_is_another_one(project: Project) -> None:
    (project.directory / "formats" / "other.pyx").unlink()
    assert project.compiled(ONYX_COMPILE_CHECKS="1") == 2
    assert project.call("hot.four([])") == "IndexError: list index out of range"
    assert project.manifest()["checks"] is True
    assert project.compiled() == 0
    project.write("formats/hot.pyx", "# cython: boundscheck=False\n" + FILES["formats/hot.pyx"])
    done = project.build(ONYX_COMPILE_CHECKS="1")
    assert done.returncode != 0
    assert "has a directive that setup.py gives" in done.stderr


def test_without_a_cache_builds_are_kept_in_the_project(
    project: Project, compiled_once: Path
) -> None:
    kept = project.directory / "build" / "compiled"
    shutil.copytree(compiled_once, kept)
    (kept / "formats.other").rename(project.directory / "other")
    assert project.compiled(ONYX_BUILD_CACHE="") == 1
    assert project.compiled(ONYX_BUILD_CACHE="") == 0
    assert len(list((kept / "formats.other").iterdir())) == 1


def test_without_a_compiler_it_is_said_and_nothing_is_compiled(project: Project) -> None:
    assert project.compiled() == 0
    lacking = {"CC": "no-such-compiler", "ONYX_BUILD_CACHE": ""}
    assert project.build("require", **lacking).returncode != 0
    done = project.build("auto", **lacking)
    assert done.returncode == 0
    assert "the hot modules are NOT compiled" in done.stderr
    assert "no working C compiler" in done.stderr
    assert project.extensions() == set()
    manifest = project.manifest()
    assert manifest["sources"] == {}
    assert str(manifest["reason"]).startswith("no working C compiler")
    assert project.build("skip").returncode == 0
    assert project.manifest()["reason"] == "ONYX_COMPILE=skip"


def test_what_cython_refuses_leaves_nothing_compiled(project: Project) -> None:
    project.write("formats/other.pyx", "def one(:\n")
    assert project.build("require").returncode != 0
    done = project.build("auto")
    assert done.returncode == 0
    assert "NOT compiled" in done.stderr
    assert project.extensions() == set()
