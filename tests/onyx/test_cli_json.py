"""Every command prints with --json what it has promised, and the promise is in the documents."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from onyx.cli.json_lines import LINES, decode_line, schema
from onyx.cli.main import build_parser
from onyx.cli.verb import VERBS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cli-json-schema.json"


def subverbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for verb, parser in subverbs(build_parser(VERBS)).items():
        below = subverbs(parser)
        yield from ((f"{verb} {name}", each) for name, each in below.items())
        if not below:
            yield verb, parser


def test_every_command_takes_json_and_says_what_it_prints() -> None:
    found = dict(commands())
    without = [name for name, parser in found.items() if "--json" not in parser.format_help()]
    assert without == []
    assert sorted(found.keys() ^ LINES.keys()) == []


def test_the_document_is_made_of_what_is_promised() -> None:
    assert json.loads(DOCUMENT.read_text()) == schema(), (
        "python -m onyx.cli.json_lines > docs/cli-json-schema.json"
    )


def test_what_was_not_promised_is_seen() -> None:
    decode_line("source remove", '{"event": "removed", "id": "s1"}')
    for line in ('{"event": "removed"}', '{"event": "removed", "id": "s1", "more": 1}', "{} {}"):
        with pytest.raises((msgspec.ValidationError, msgspec.DecodeError)):
            decode_line("source remove", line)
