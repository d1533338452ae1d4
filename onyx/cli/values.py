"""Arguments and output that several verbs share."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import cast

from onyx.drawing import columns
from onyx.errors import UnreadableInput, UsageError, file_errors
from overlay.plain_text import plain
from overlay.unfit import did_you_mean, quote

STANDARD_INPUT = "-"

NAMED_MAX = 8  # of a list that may be long

LOCATION_HELP = "in degrees, north and east positive, as -33.9,18.4"


def say_unread(path: object, unread: Sequence[str]) -> None:
    """What a schema refers to that is not there, on standard error."""
    for each in unread:
        say(f"{path}: {each}")
    if unread:
        is_outside = any(" ../" in each for each in unread)
        hint = (
            "give the folder that holds all of it, and behind # the main document"
            if is_outside
            else "what is not there may be anything, and messages cannot be validated"
        )
        say(f"{path}: {hint}")


def check_known(
    word: str, known: Iterable[str], option: str = "", what: str = "broker there"
) -> str:
    """A name that is there; UsageError, with the nearest, where it is not."""
    if word not in known:
        said = f"{option} {quote(word)}".lstrip()
        raise UsageError(f"{said} is no {what}{did_you_mean(word, known)}")
    return word


def read_input(name: str, bytes_max: int | None = None) -> bytes:
    """A file, or standard input for "-"; at most ``bytes_max`` + 1 bytes of it are read.

    UnreadableInput when it cannot be read.
    """
    count = -1 if bytes_max is None else bytes_max + 1
    with file_errors(name, "read"):
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read(count)
        with Path(name).open("rb") as stream:
            return stream.read(count)


MEDIA_TYPE = {
    "--media-type TYPE =": "of the messages, as text/turtle (default: by the name of the file, "
    "else XML)"
}
BASE = {
    "--base IRI =": "what relative IRIs of a graph are relative to (onyx source register --base)"
}


def read_text(name: str) -> str:
    """The same as UTF-8 text."""
    try:
        return read_input(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"{name} is not UTF-8 (byte {error.start})") from None


def check_once(names: Sequence[str]) -> None:
    """Standard input can be read only once."""
    if names.count(STANDARD_INPUT) > 1:
        raise UsageError('"-" (standard input) may be given only once')


def expand(inputs: list[str], glob: str = "*") -> Iterator[str]:
    """Directories become the files below them that match, in sorted order, without hidden ones.

    Everything is looked for before the first message is published.
    """
    for name in inputs:
        path = Path(name)
        if name == STANDARD_INPUT:
            yield name
        elif path.is_dir():
            files = sorted(entry for entry in path.rglob(glob) if _is_shown(entry, path))
            if not files:
                what = "no files in it" if glob == "*" else f"no file named {glob} in it"
                raise UnreadableInput(f"{name} has {what}")
            yield from (str(entry) for entry in files)
        elif path.exists():
            yield name
        else:
            raise UnreadableInput(f"{name} does not exist")


def _is_shown(entry: Path, directory: Path) -> bool:
    """Whether it is a file that is not hidden, nor in a directory that is."""
    parts = entry.relative_to(directory).parts
    return not any(part.startswith(".") for part in parts) and entry.is_file()


def say(text: str) -> None:
    """Something for people beside the output: on standard error."""
    print(f"onyx: {text}", file=sys.stderr, flush=True)


def tell_of(arguments: argparse.Namespace, facts: Mapping[str, object], text: object) -> None:
    """An object with ``--json``, else a text."""
    if arguments.json:
        print_json(facts)
    else:
        print(text, flush=True)


def print_json(facts: Mapping[str, object]) -> None:
    """One object on a line of its own, at once."""
    print(json.dumps(facts, ensure_ascii=False), flush=True)


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns under a heading; numbers to the right, text to the left, None as "-".

    On a terminal by rich, so that long cells are folded; plain lines elsewhere.
    """
    body = [list(row) for row in rows]
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return _rich_table(heading, body)
    cells = [list(heading), *([_cell(value) for value in row] for row in body)]
    return columns(cells, ["<>"[_is_right(body, column)] for column in range(len(heading))])


def _rich_table(heading: Sequence[str], body: list[list[object]]) -> str:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - costs time, and only terminals need it
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column, name in enumerate(heading):
        drawn.add_column(
            name, justify="right" if _is_right(body, column) else "left", overflow="fold"
        )
    for row in body:
        drawn.add_row(*(Text(plain(_cell(value), "")) for value in row))
    console = Console(file=io.StringIO(), force_terminal=True, width=get_terminal_size().columns)
    console.print(drawn)
    return cast("io.StringIO", console.file).getvalue().strip("\n")


def _is_right(body: list[list[object]], column: int) -> bool:
    """Whether a column is of numbers."""
    return bool(body) and all(isinstance(row[column], int | float | None) for row in body)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def counted(count: int, noun: str) -> str:
    """ "1 link", "2 links"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def first_of(names: Sequence[str], count: int) -> str:
    """The first of ``count`` names, and how many more there are."""
    more = count - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def has_terminal() -> bool:
    """Whether this process can be hung up on by one that is closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
