"""Commands out of the table of verbs (overlay/verbs.py): arguments and help from the record of a
verb, ``--json`` and the text for people from the record of its answer.

A verb with ``is_command`` needs nothing here.  A command that tells more than the fields of its
answer gives a ``Told``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import trio

from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import LOCATION_HELP, location, print_json, table
from onyx.cli.verb import Subparsers, add_verb
from onyx.registration_client import RegistrationClient
from overlay import verbs
from overlay.answers import Answer, Listing, Moment
from overlay.settings import Settings
from overlay.toml_table import taken_apart

T = TypeVar("T")
Line = Callable[[Any], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Told:
    """``text`` of an answer for people; ``columns``: the fields of an entry in a table; ``line``:
    an answer or an entry for machines.  By default all fields, as they are."""

    text: Callable[[Any], str] | None = None
    columns: Sequence[str] = ()
    line: Line | None = None


FIELDS = Told()


def add_commands(
    subverbs: Subparsers,
    noun: str,
    *,
    details: str = "",
    examples: str = "",
    told: Mapping[Any, Told] | None = None,
) -> None:
    """All commands ``onyx NOUN VERB`` of the table; ``told`` by verb, of those that tell more."""
    for kind in verbs.TABLE:
        if kind.is_command and kind.verb.partition(".")[0] == noun:
            add_command(subverbs, kind, (told or {}).get(kind, FIELDS), details, examples)


def add_command(
    subverbs: Subparsers,
    kind: type[verbs.Asked],
    told: Told = FIELDS,
    details: str = "",
    examples: str = "",
) -> argparse.ArgumentParser:
    name = kind.verb.partition(".")[2].replace("_", "-")
    summary = kind.summary()
    shown = summary[:1].lower() + summary[1:]
    run = partial(_run, kind, told)
    parser = add_verb(subverbs, name, shown, details=details, examples=examples, run=run)
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        _add_argument(parser, field.name, hints[field.name], is_needed=field.required)
    add_client_arguments(parser)
    return parser


def ask(arguments: argparse.Namespace, asked: verbs.Asks[T]) -> T:
    """The answer of the registration service."""

    async def answer() -> T:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await registration.ask(asked)

    return trio.run(answer)


def ask_all(arguments: argparse.Namespace, asked: verbs.Asked) -> list[Any]:
    """All entries of a list."""

    async def listed() -> list[Any]:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await registration.listed(asked)

    return trio.run(listed)


def _run(kind: type[verbs.Asked], told: Told, arguments: argparse.Namespace) -> None:
    given = {name: getattr(arguments, name) for name in kind.__struct_fields__}
    asked = kind(**{name: value for name, value in given.items() if value is not None})
    if issubclass(kind.answer, Listing):
        tell_all(arguments, ask_all(arguments, asked), told)
    else:
        tell(arguments, _completed(ask(arguments, asked), asked), told)


def _completed(answer: Answer, asked: verbs.Asked) -> Answer:
    """A former release may answer with less: names that it leaves out are those of the request."""
    names = (n for n in asked.__struct_fields__ if getattr(answer, n, None) == "")
    return msgspec.structs.replace(answer, **{name: getattr(asked, name) for name in names})


def tell(arguments: argparse.Namespace, answer: Answer, told: Told = FIELDS) -> None:
    """Print an answer: with ``--json`` as an object, else its text."""
    if arguments.json:
        print_json(_line(answer, told))
    else:
        text = told.text(answer) if told.text is not None else "\n".join(_facts(answer))
        print(text, flush=True)


def tell_all(arguments: argparse.Namespace, entries: Sequence[Any], told: Told = FIELDS) -> None:
    """Print the entries of a list: with ``--json`` an object a line, else a table."""
    if arguments.json:
        for entry in entries:
            print_json(_line(entry, told))
    elif not entries:
        print("There are none.", file=sys.stderr)
    else:
        names = told.columns or entries[0].__struct_fields__
        print(table(headings(names), [cells(each, names) for each in entries]))


def _line(answer: Any, told: Told) -> Mapping[str, object]:
    line: Mapping[str, object] = (told.line or type(answer).shown)(answer)
    return line


def _facts(answer: Answer) -> Iterator[str]:
    names = answer.__struct_fields__
    width = max(map(len, names)) + 2
    for name, cell in zip(names, cells(answer, names), strict=True):
        yield f"{name.replace('_', ' ') + ':':<{width}}{'-' if cell is None else cell}"


def _cell(value: Any, hint: Any = None) -> object:
    """As a table shows it: text, a number, or None for nothing."""
    if hint is Moment:
        return moment(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items()) or None
    if isinstance(value, list):
        return ", ".join(str(_cell(each)) for each in value) or None
    if isinstance(value, tuple):  # parts of one thing, as a place
        between = "," if all(isinstance(part, float) for part in value) else ":"
        return between.join(str(_cell(part)) for part in value) or None
    return None if value == "" else value


def moment(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


# --- arguments out of a record ------------------------------------------------------------------


def add_settings(
    parser: argparse.ArgumentParser, kind: type[Settings], usual: Settings | None = None
) -> None:
    """An option for each setting; ``usual``: those that are told as defaults."""
    hints = get_type_hints(kind, include_extras=True)
    for name in kind.__struct_fields__:
        _add_argument(parser, name, hints[name], usual=getattr(usual, name, None))


def settings_said(arguments: argparse.Namespace, kind: type[Settings]) -> dict[str, Any]:
    """The settings that the options give."""
    said = {name: getattr(arguments, name) for name in kind.__struct_fields__}
    return {name: value for name, value in said.items() if value is not None}


def columns_of(kind: type[Settings]) -> list[str]:
    """The settings that lists show."""
    hints = get_type_hints(kind, include_extras=True)
    return [name for name, hint in hints.items() if taken_apart(hint)[1].get("column")]


def headings(names: Sequence[str]) -> list[str]:
    return [name.replace("_", " ").upper() for name in names]


def cells(record: Answer, names: Sequence[str]) -> tuple[object, ...]:
    hints = get_type_hints(type(record), include_extras=True)
    return tuple(_cell(getattr(record, name), hints[name]) for name in names)


def _add_argument(
    parser: argparse.ArgumentParser,
    field: str,
    hint: Any,
    *,
    is_needed: bool = False,
    usual: object = None,
) -> None:
    """Positional where it is needed, else an option."""
    kind, says = taken_apart(hint)
    said: dict[str, Any] = {"help": says.get("help", says.get("description"))}
    if usual:
        said["help"] += f" (default {_cell(usual)})"
    name = field.replace("_", "-")
    if kind is bool:
        parser.add_argument(f"--{name}", action="store_true", default=None, **said)
        return
    said["metavar"] = says.get("metavar", name.upper())
    if get_origin(kind) is Literal:
        said["choices"] = get_args(kind)
    elif get_origin(kind) is tuple:
        said |= {"type": location, "metavar": "LAT,LON", "help": LOCATION_HELP}
    elif get_origin(kind) is list:
        said |= {"nargs": "+"}
    elif kind in (int, float):
        said["type"] = partial(_number, hint)
    if is_needed:
        parser.add_argument(field, **said)
    elif says.get("positional"):
        parser.add_argument(field, nargs="?", **said)
    else:
        parser.add_argument(f"--{name}", dest=field, **said)


def _number(hint: Any, text: str) -> Any:
    try:
        return msgspec.convert(text, hint, strict=False)
    except msgspec.ValidationError as error:
        why = str(error).replace("`", "")
        raise argparse.ArgumentTypeError(f'"{text}": {why[:1].lower()}{why[1:]}') from None
