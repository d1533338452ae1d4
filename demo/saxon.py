"""What Saxon, an independent and complete XQuery processor, makes of a profile.

Nothing of the system is imported here.  One query asks about many messages at once::

    prolog of the profile
    declare variable $onyx-messages external;
    for $msg in $onyx-messages  ->  try { items of the body } catch { error }

A dynamic error stands for its message alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from lxml import etree

from demo.independent_parse import parse

_PROGRAM = Path(__file__).with_name("saxon_process.py")
_MESSAGE = "the message"
_DECLARATION = r"""declare\s+(?:(?:namespace\s+[\w.-]+\s*=|default\s+element\s+namespace|variable\s)
                   (?:"[^"]*"|'[^']*'|[^;"'])*;|function\s.*?\}\s*;)"""
_PROLOG = re.compile(rf"(?:(?:\s|\(:.*?:\))*{_DECLARATION})*", re.VERBOSE | re.DOTALL)


class Form(Enum):
    """What becomes of a value: the message if there is any, a document of each item, or each item
    as a string."""

    PATH = "path"
    ITEMS = "items"
    STRINGS = "strings"


@dataclass(frozen=True, slots=True)
class SaxonError:
    """The query raised an error on the message, or is wrong."""

    code: str
    reason: str


Answer: TypeAlias = list[bytes] | SaxonError


class Saxon:
    """A process that evaluates profiles; a context manager.  Time zone: UTC."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "TZ": "UTC", "PYTHONIOENCODING": "utf-8"},
        )
        self._count = 0

    def __enter__(self) -> Saxon:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def load(self, messages: Sequence[bytes]) -> None:
        """What the profiles are about from now on; ValueError for a text that Saxon refuses."""
        texts = [_as_text(message) for message in messages]
        answer = self._ask({"messages": texts})
        if isinstance(answer, dict):
            raise ValueError(f"Saxon does not read a message: {answer['error']}")
        self._count = len(texts)

    def answers(self, profile: str, form: Form, decisive: str = "") -> list[Answer]:
        """For each message the documents that the profile makes of it, [b""] for the message
        itself; ``decisive`` is an expression that must yield something, if not empty."""
        query = _query(profile, form, decisive)
        answer = self._ask({"query": query})
        if not isinstance(answer, dict):
            return [_answer(part) for part in etree.fromstring(str(answer).encode())]
        # Saxon evaluates late, and then some errors are not caught: one message after the other.
        found: list[Answer] = []
        for index in range(self._count):
            answer = self._ask({"query": query, "only": index})
            if isinstance(answer, dict):
                found.append(SaxonError("uncaught", str(answer["error"])))
            else:
                found += [_answer(part) for part in etree.fromstring(str(answer).encode())]
        return found

    def string_of(self, query: str) -> str:
        """The result of a query without messages; ValueError where it has an error."""
        answer = self._ask({"query": query})
        if isinstance(answer, dict):
            raise ValueError(answer["error"])
        return str(answer)

    def _ask(self, request: dict[str, object]) -> object:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def prolog_and_body(profile: str) -> tuple[str, str]:
    """The declarations, with comments before them, and the rest."""
    match = _PROLOG.match(profile)
    end = match.end() if match else 0
    return profile[:end], profile[end:]


def _query(profile: str, form: Form, decisive: str) -> str:
    prolog, body = prolog_and_body(profile)
    items = f"({body}\n)"
    if form is Form.PATH:
        items = f"(if (exists({items})) then '{_MESSAGE}' else ())"
    elif decisive:
        items = f"(if (exists(({decisive}))) then {items} else ())"
    written = "if ($onyx-item instance of node()) then serialize($onyx-item) else 'atomic'"
    if form is not Form.ITEMS:
        written = "string($onyx-item)"
    # Strings all the way, as what is written already could not be taken back by a catch.
    return (
        f"{prolog}\ndeclare variable $Q{{}}onyx-messages external;\n"
        "element Q{}answers { for $msg in $Q{}onyx-messages return element Q{}answer {\n"
        "for $onyx-text in (try {\n"
        f"for $onyx-item in $msg ! {items} return concat('=', {written})\n"
        "} catch * { concat('!', local-name-from-QName($err:code), ' ', $err:description) })\n"
        "return element Q{}item { $onyx-text } } }"
    )


def _answer(part: etree._Element) -> Answer:
    found = [str(item.text) for item in part]
    if found and found[0].startswith("!"):
        code, _, reason = found[0][1:].partition(" ")
        return SaxonError(code, reason)
    return [b"" if text == f"={_MESSAGE}" else text[1:].encode() for text in found]


def _as_text(message: bytes) -> str:
    """The message as a string, whatever its encoding was."""
    return str(etree.tostring(etree.ElementTree(parse(message)), encoding="unicode"))
