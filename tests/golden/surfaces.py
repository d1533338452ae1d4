"""help.txt and openapi.json: the command line and the API of the gateway."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from unittest import mock

from onyx.cli.main import build_parser
from onyx.cli.verb import VERBS
from tests.golden.golden_file import as_json

WIDTH = 100
MADE_ON = ((3, 11), (3, 12))
"""Where argparse breaks lines alike."""


def help_of_verbs() -> str:
    with mock.patch.dict("os.environ", {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}):
        texts = [f"$ {each.prog} --help\n{each.format_help()}" for each in _parsers()]
    return "\n".join(texts)


def says_the_same(committed: str, made: str) -> bool:
    """By words where argparse breaks lines in other places and indents otherwise."""
    if sys.version_info[:2] in MADE_ON:
        return committed == made
    return committed.split() == made.split()


def _parsers() -> Iterator[argparse.ArgumentParser]:
    """The command and all verbs, each ahead of its own."""
    waiting = [build_parser(VERBS)]
    while waiting:
        parser = waiting.pop(0)
        yield parser
        verbs: dict[str, argparse.ArgumentParser] = {}
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                verbs |= action.choices
        waiting[:0] = verbs.values()


def openapi_document() -> str:
    """Without the release, which is another with each."""
    from onyx.gateway.api import OPERATIONS, openapi  # noqa: PLC0415 - needs the gateway

    document = openapi(OPERATIONS)
    document["info"]["version"] = "VERSION"
    return as_json(document)


def lacks_the_gateway() -> str:
    try:
        import onyx.gateway.api  # noqa: F401, PLC0415
    except ImportError as error:
        return f"the extra gateway is not installed: {error}"
    return ""
