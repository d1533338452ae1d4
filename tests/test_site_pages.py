"""The documents as a site: what is made of code and of other documents, and where links lead."""

from __future__ import annotations

import importlib.util
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from onyx.cli.verb import VERBS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_lead_to_pages_of_the_site(site: ModuleType) -> None:
    pages = site.documents() | site.pages()
    broken = [
        (name, target)
        for name, text in pages.items()
        for target in re.findall(
            r"\]\(([^)#\s]+)", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)
        )
        if "://" not in target
        for there in [posixpath.normpath(posixpath.join(posixpath.dirname(name), target))]
        if there not in pages and not (ROOT / "docs" / there).is_file()
    ]
    assert broken == []


def test_every_table_has_a_heading(site: ModuleType) -> None:
    """A blank line in a table ends it: what comes behind is shown as text."""
    pages = site.documents() | site.pages()
    headless = r"(?<=\n\n)\|[^\n]*\n(?!\|[-:| ]+\|)"
    found = [(name, line) for name, text in pages.items() for line in re.findall(headless, text)]
    assert found == []


def test_the_reference_has_every_verb_and_every_name(site: ModuleType) -> None:
    commands = site.command_reference()
    assert [verb for verb in VERBS if f"\n## onyx {verb}\n" not in commands] == []
    assert "\n### onyx profile why-not\n" in commands
    python = site.python_reference()
    assert "\n### onyx.User.add_profile\n" in python
    assert "timeout_seconds: 'float | None' = None" in python


def test_every_document_is_in_the_navigation(site: ModuleType) -> None:
    listed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    there = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    notes = {name for name in there if name.startswith("notes/")}
    assert listed == (there - notes) | set(site.pages())


@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="needs zensical")
def test_the_site_is_built_without_a_warning(site: ModuleType, tmp_path: Path) -> None:
    site.write_site(tmp_path / "build" / "docs")
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text())
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", tmp_path / "mkdocs.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "build" / "site" / "reference" / "cli.html").is_file()
