"""Every command prints with --json what it has promised, and the promise is in the documents."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from onyx.cli.json_lines import LINES, decode_line, schema
from onyx.cli.main import build_parser
from onyx.cli.verb import COMMON, VERBS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cli-json-schema.json"
SENTENCE_MAX = 90


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


def test_a_help_has_examples_first_and_a_sentence_an_option() -> None:
    top = build_parser(VERBS)
    helps = {f"onyx {name}": parser for name, parser in commands()}
    for name, parser in {"onyx": top, **helps}.items():
        text = parser.format_help()
        examples, options = text.find("\nexamples:\n"), text.find("\noptions:\n")
        assert examples < options or options < 0, name
        for action in parser._actions:
            says = action.help or ""
            assert not re.search(r"; |\. ", says) and len(says) <= SENTENCE_MAX, (name, says)
    for own in ("up", "source register", "profile add", "subscribe", "status"):
        assert f"\nexamples:\n  onyx {own} " in helps[f"onyx {own}"].format_help()


def test_the_help_of_onyx_alone_explains_what_most_commands_take() -> None:
    assert [
        says for says in COMMON.values() if str(says) not in build_parser(()).format_help()
    ] == []
    for name, parser in commands():
        text = " ".join(parser.format_help().split())
        assert [says for says in COMMON.values() if str(says) in text] == [], name
