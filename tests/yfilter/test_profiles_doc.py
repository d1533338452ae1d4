"""docs/profiles.md says what is so: its examples, tables and bounds are checked here."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from demo.oracle import canonical
from formats.text import parse_text
from tests.yfilter.evaluated import select
from yfilter.compiled_deciders import render
from yfilter.errors import ProfileRefused
from yfilter.language.functions import FUNCTIONS
from yfilter.language.matching_path import matching_path
from yfilter.language.query_parser import parse_profile
from yfilter.language.words import WORD_TESTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "profiles.md").read_text(encoding="utf-8")
_BLOCKS = [
    (kind, body.removesuffix("\n"))
    for kind, body in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
]
MESSAGE = next(body for kind, body in _BLOCKS if kind == "xml").encode()
EXAMPLES = [(body, *following) for (kind, body), following in pairwise(_BLOCKS) if kind == "xquery"]


def _table(heading: str) -> list[list[str]]:
    """The rows below a heading, without the head of the table."""
    section = PAGE.split(f" {heading}\n", 1)[1]
    lines = section[section.index("| --- |") :].split("\n\n")[0].splitlines()[1:]
    return [
        [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
    ]


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 34


@pytest.mark.parametrize(("text", "kind", "expected"), EXAMPLES)
def test_examples(text: str, kind: str, expected: str) -> None:
    if kind == "text" and expected.startswith("line "):
        with pytest.raises(ProfileRefused) as caught:
            parse_profile(text)
        assert str(caught.value) == expected
        return
    profile = parse_profile(text)
    stream = parse_text(MESSAGE)
    stream.accepted = 1_795_903_200_123_456
    bindings = [node.number for node in select(matching_path(profile), stream)]
    results = [canonical(result) for result in render(profile, stream, bindings)]
    if kind == "xml":
        documents = expected.split("\n\n")
    else:
        documents = {"nothing": [], "the message": [MESSAGE.decode()]}[expected]
    assert results == [canonical(document.encode()) for document in documents]


@pytest.mark.parametrize(("text", "code", "instead"), _table("What is not in the language"))
def test_what_is_not_in_the_language(text: str, code: str, instead: str) -> None:
    with pytest.raises(ProfileRefused) as caught:
        parse_profile(text.strip("`"))
    assert caught.value.code == code.strip("`")
    for alternative in re.findall(r"`((?:/|for )[^`]*)`", instead):
        parse_profile(alternative)


def test_the_functions_are_the_functions() -> None:
    written = [re.match(r"`([a-zA-Z0-9:-]+)\(", row[0]) for row in _table("Functions")]
    assert {match[1] for match in written if match} == set(FUNCTIONS) - set(WORD_TESTS)


def test_the_codes_are_the_codes() -> None:
    package = Path(__file__).resolve().parents[2] / "yfilter" / "language"
    used = set()
    for name in ("lexer", "parser"):
        for file in package.glob(f"*_{name}.py"):
            source = file.read_text(encoding="utf-8")
            used |= set(re.findall(r'(?:refusal|ProfileRefused)\(\s*"([a-z-]+)"', source))
    used |= {"unsupported"}
    assert {row[0].strip("`") for row in _table("Refusals")} == used
