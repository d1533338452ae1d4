"""Files of many profiles: one a line, or a JSON object a line.

========  ====================================================================
``.jsonl``  an object a line, as ``onyx profile export`` writes: ``text`` and, where they are there,
            ``user``, ``location`` and ``near``; ``profile`` is the id where profiles are changed
``--lines`` the text of a profile a line, or an id a line, or, where profiles are changed, an id and
            the text behind it; empty lines are passed over
========  ====================================================================

What is wrong is found before anything is asked of the network, and told with its line.
"""

from __future__ import annotations

import json
import re
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from onyx.cli.values import counted, location, read_text
from onyx.client_values import Location
from onyx.errors import EXIT_DATA, UserError
from yfilter.errors import ProfileRefused, at_place
from yfilter.matcher import check_profile

_ID = re.compile("p[0-9]+(-[a-z2-7]+)?")

PROGRESS_SECONDS = 0.5  # on a terminal; elsewhere ten times as long


class Line(NamedTuple):
    """What a line of a file says, the ``number``-th."""

    number: int
    profile: str = ""
    text: str = ""
    user: str | None = None
    location: Location | None = None
    near: bool = False


class BadLines(UserError):
    """A file has lines that cannot be used."""

    exit_code = EXIT_DATA


def is_of_many(name: str, lines: bool) -> bool:
    """Whether a file holds a profile a line."""
    return lines or name.endswith(".jsonl")


def read_profiles(name: str, skip_bad: bool) -> list[Line]:
    """The profiles that a file asks for, each with a text that is one; see ``_usable``."""
    is_json = name.endswith(".jsonl")
    return _usable(name, partial(_objects if is_json else _lines, name, "text"), _check, skip_bad)


def read_changes(name: str, skip_bad: bool) -> list[Line]:
    """The same with ids, of profiles that are to have these texts."""
    is_json = name.endswith(".jsonl")
    read = partial(_objects, name, "profile", "text") if is_json else partial(_changes, name)
    return _usable(name, read, _check, skip_bad)


def read_ids(name: str, skip_bad: bool) -> list[Line]:
    """The profiles that a file names."""
    is_json = name.endswith(".jsonl")
    read = partial(_objects if is_json else _lines, name, "profile")
    return _usable(name, read, lambda line: None, skip_bad)


class Progress:
    """Says on standard error how far it is, now and then, and in the end."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._on_terminal = sys.stderr.isatty()
        self._next = self._begun + self._pause

    def add(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._pause
            self._say(now, "\r" if self._on_terminal else "\n")

    def end(self) -> None:
        self._say(time.monotonic(), "\n")

    @property
    def _pause(self) -> float:
        return PROGRESS_SECONDS if self._on_terminal else 10 * PROGRESS_SECONDS

    def _say(self, now: float, end: str) -> None:
        rate = self._done / max(now - self._begun, 1e-6)
        text = f"onyx: {self._done:,} of {counted(self._total, 'profile')} {self._what}"
        print(f"{text}, {rate:,.0f} a second", end=end, file=sys.stderr, flush=True)


def _usable(
    name: str,
    read: Callable[[], Iterable[Line | str]],
    check: Callable[[Line], str | None],
    skip_bad: bool,
) -> list[Line]:
    """The lines in which nothing is wrong, after the others were told on standard error; BadLines
    if there are others, unless ``skip_bad``."""
    good: list[Line] = []
    bad = 0
    for line in read():
        wrong = line if isinstance(line, str) else check(line)
        if wrong is not None:
            bad += 1
            print(f"onyx: {name}: {wrong}", file=sys.stderr)
        elif isinstance(line, Line):
            good.append(line)
    if bad and not skip_bad:
        raise BadLines(
            f"{name}: {counted(bad, 'line')} cannot be used, so nothing was done "
            "(--skip-bad: leave them out)"
        )
    return good


def _check(line: Line) -> str | None:
    try:
        check_profile(line.text)
    except ProfileRefused as refusal:
        if refusal.line > 1:
            return f"line {line.number}: in its text, {refusal}"
        return at_place(
            *(line.number, refusal.column, refusal.source_line),
            *(refusal.reason, refusal.expected, refusal.code),
        )
    return None


def _lines(name: str, field: str) -> Iterator[Line]:
    for number, text in _numbered(name):
        yield Line(number, **{field: text.rstrip()})  # type: ignore[arg-type]


def _changes(name: str) -> Iterator[Line | str]:
    for number, line in _numbered(name):
        words = line.split(None, 1)
        if _ID.fullmatch(words[0]) and len(words) > 1:
            yield Line(number, words[0], words[1].rstrip())
        else:
            yield (
                f"line {number}: this is {line.strip()[:40]!r}; expected the id of a profile and, "
                "behind a space, its new text: p7 //item"
            )


def _objects(name: str, *needed: str) -> Iterator[Line | str]:
    for number, text in _numbered(name):
        try:
            found = json.loads(text)
        except ValueError as error:
            yield f"line {number}: this is no JSON: {error}"
            continue
        yield _line_of(number, found, needed)


def _line_of(number: int, found: object, needed: Sequence[str]) -> Line | str:
    if not isinstance(found, dict):
        return f"line {number}: expected an object, as onyx profile export writes"
    for field in (*needed, *({"user", "profile"} & found.keys())):
        if not isinstance(found.get(field), str):
            return f"line {number}: {field!r} is {found.get(field)!r}; expected a string"
    place = found.get("location")
    try:
        where = None if place is None else location(f"{place[0]},{place[1]}")
    except (ArgumentTypeError, LookupError, TypeError):
        return f"line {number}: 'location' is {place!r}; expected [latitude, longitude]"
    return Line(
        number,
        found.get("profile", ""),
        found.get("text", ""),
        found.get("user"),
        where,
        found.get("near") is True,
    )


def _numbered(name: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers."""
    for number, line in enumerate(read_text(name).split("\n"), 1):
        if line.strip():
            yield number, line
