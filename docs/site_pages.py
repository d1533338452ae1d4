"""The documents' site, as what makes it of Markdown reads it (``mkdocs.yml``, ``make docs``)::

    python docs/site_pages.py build/docs

The front page is README.md, others are the documents beside it; the reference is made of the
command's parsers and of docstrings.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
TOP = {  # documents beside docs/, by what they are called on the site
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "GLOSSARY.md": "glossary.md",
    "SECURITY.md": "security.md",
    "UPGRADING.md": "upgrading.md",
}
_LINK = re.compile(r"(\[[^\]]*\])\(([^)#\s]+)(#[^)\s]*)?\)")
_ANCHOR = re.compile(r"^(#{2,4}) (.*)$", re.MULTILINE)


def write_site(folder: Path) -> None:
    """All that the site is made of: the documents of this folder, and the pages that are made."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        ROOT / "docs", folder, ignore=shutil.ignore_patterns("notes", "*.py", "__pycache__")
    )
    for name, text in documents().items():
        (folder / name).write_text(text)
    for name, text in pages().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def documents() -> dict[str, str]:
    """The documents of this folder, by their names there, without notes."""
    docs = ROOT / "docs"
    return {
        file.relative_to(docs).as_posix(): with_site_links(
            file.read_text(), file.parent.relative_to(ROOT).as_posix()
        )
        for file in docs.rglob("*.md")
        if file.parent.name != "notes"
    }


def pages() -> dict[str, str]:
    """All pages that are made, by their names."""
    made = {there: with_site_links((ROOT / here).read_text(), ".") for here, there in TOP.items()}
    made["reference/cli.md"] = command_reference()
    made["reference/python.md"] = python_reference()
    return made


def with_site_links(markdown: str, folder: str) -> str:
    """Links of a document in ``folder`` as the site has them; to what is not there, only words."""
    here = os.path.relpath(ROOT / folder, ROOT / "docs") if folder != "." else "."

    def site_link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups(default="")
        if "://" in target:
            return found[0]
        path = (ROOT / folder / target).resolve()
        if path.parent == ROOT and path.name in TOP:
            return f"{text}({os.path.relpath(TOP[path.name], here)}{anchor})"
        notes = ROOT / "docs" / "notes"
        if path.is_relative_to(ROOT / "docs") and path.parent != notes and path.is_file():
            return f"{text}({os.path.relpath(path.relative_to(ROOT / 'docs'), here)}{anchor})"
        return text[1:-1]

    return _LINK.sub(site_link, markdown)


def command_reference() -> str:
    """Every verb with its help."""
    from onyx.cli.main import build_parser  # noqa: PLC0415 - not for other pages
    from onyx.cli.verb import VERBS  # noqa: PLC0415

    parser = build_parser(VERBS)
    parts = ["# The command `onyx`", _help(parser)]
    for words, verb in _verbs(parser, ()):
        parts += [f"{'#' * (len(words) + 1)} onyx {' '.join(words)}", _help(verb)]
    return "\n\n".join(parts) + "\n"


def _verbs(
    parser: argparse.ArgumentParser, before: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                yield (*before, name), verb
                yield from _verbs(verb, (*before, name))


def _help(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```"


def python_reference() -> str:
    """Every public name of ``onyx``, of it for asyncio and without async, and of
    ``yfilter.Matcher``, with its docstring."""
    parts = ["# Python"]
    named: list[tuple[str, object]] = []
    for module in map(importlib.import_module, ("onyx", "onyx.aio", "onyx.blocking")):
        parts += [f"**{module.__name__}.** {_prose(module.__doc__)}"]
        named += [(f"{module.__name__}.{name}", noun) for name, noun in _public(module)]
    matcher = importlib.import_module("yfilter").Matcher
    for name, noun in [*named, ("yfilter.Matcher", matcher)]:
        parts += [f"## {name}", _signature(noun), _prose(inspect.getdoc(noun))]
        for method, value in sorted(vars(noun).items()) if inspect.isclass(noun) else []:
            function = inspect.unwrap(getattr(value, "__func__", value))
            if method.startswith("_") or not inspect.isroutine(function):
                continue
            parts += [
                f"### {name}.{method}",
                _signature(function),
                _prose(inspect.getdoc(function)),
            ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _public(module: ModuleType) -> list[tuple[str, object]]:
    """What it exports, or else the classes that it has itself."""
    if hasattr(module, "__all__"):
        return [(name, getattr(module, name)) for name in module.__all__]
    own = inspect.getmembers(module, inspect.isclass)
    return [
        (name, noun)
        for name, noun in own
        if noun.__module__ == module.__name__ and not name.startswith("_")
    ]


def _signature(noun: object) -> str:
    try:
        signature = str(inspect.signature(noun))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    return f"```python\n{getattr(noun, '__name__', '')}{signature}\n```"


def _prose(docstring: str | None) -> str:
    """A docstring as Markdown: ``code`` is `code`, and what follows "::" is indented as it is."""
    return (docstring or "").replace("``", "`").replace("::\n\n    ", "\n\n    ")


if __name__ == "__main__":
    write_site(Path(sys.argv[1]))
