"""Commands out of the table of verbs (overlay/verbs.py): arguments and help from the record of a
verb, ``--json`` and the text for people from the record of its answer.

A verb with ``is_command`` needs nothing here.  A command that tells more than the fields of its
answer gives a ``Told``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UnsetType

from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import LOCATION_HELP, print_json, table
from onyx.cli.verb import (
    NO_KINDS,
    NOTHING,
    Kind,
    Run,
    Subparsers,
    Takes,
    add_arguments,
    add_verb,
    field_of,
    location,
)
from onyx.registration_client import RegistrationClient
from overlay import verbs
from overlay.answers import Answer, Listing, Moment
from overlay.settings import Settings
from overlay.unfit import said_of, taken_apart, unfit

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
            add_command(
                subverbs, kind, (told or {}).get(kind, FIELDS), details=details, examples=examples
            )


def add_command(
    subverbs: Subparsers,
    kind: type[verbs.Asked],
    told: Told = FIELDS,
    run: Run | None = None,
    takes: Takes = NOTHING,
    *,
    but: Collection[str] = (),
    details: str = "",
    examples: str = "",
    kinds: Mapping[str, Kind] = NO_KINDS,
    usual: Settings | None = None,
) -> argparse.ArgumentParser:
    """The command of a verb: its arguments are the fields of the record, without bytes and
    ``but`` these, and what it ``takes`` beside them, or in their place.

    ``run``: a function of its own instead of asking and telling the answer; ``asked`` is what the
    command line asks then.  ``usual``: the settings that the help names as defaults.
    """
    noun, _, name = kind.verb.partition(".")
    summary = kind.summary()
    parser = add_verb(
        *(subverbs, name.replace("_", "-") or noun, summary[:1].lower() + summary[1:]),
        run or partial(_run, told),
        details=details,
        examples=examples,
    )
    parser.set_defaults(asks=kind)
    add_fields(parser, kind, {*but, *map(field_of, takes)}, usual)
    add_arguments(parser, takes, kinds)
    add_client_arguments(parser)
    return parser


def asked(arguments: argparse.Namespace, **more: object) -> Any:
    """The request of a command line, with the fields that it has not said itself."""
    said = settings_said(arguments, arguments.asks)
    return arguments.asks(**said | {name: each for name, each in more.items() if each is not None})


def network(arguments: argparse.Namespace) -> RegistrationClient:
    """The registration service of the network that is meant, to be entered."""
    return RegistrationClient(registration_address(arguments))


async def ask(arguments: argparse.Namespace, wanted: verbs.Asks[T]) -> T:
    """The answer of the registration service."""
    async with network(arguments) as registration:
        return await registration.ask(wanted)


async def ask_all(arguments: argparse.Namespace, wanted: verbs.Asked) -> list[Any]:
    """All entries of a list."""
    async with network(arguments) as registration:
        return await registration.listed(wanted)


async def _run(told: Told, arguments: argparse.Namespace) -> None:
    wanted = asked(arguments)
    if issubclass(wanted.answer, Listing):
        tell_all(arguments, await ask_all(arguments, wanted), told)
    else:
        tell(arguments, _completed(await ask(arguments, wanted), wanted), told)


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


def add_fields(
    parser: argparse._ActionsContainer,
    kind: type[msgspec.Struct],
    but: Collection[str] = (),
    usual: Settings | None = None,
) -> None:
    """The fields of a record that a command line can say; ``usual``: those told as defaults."""
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        if field.name not in but and taken_apart(hints[field.name])[0] is not bytes:
            said = getattr(usual, field.name, None)
            _add_argument(parser, field, hints[field.name], said)


def settings_said(arguments: argparse.Namespace, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a record that the command line gives."""
    said = {name: getattr(arguments, name, None) for name in kind.__struct_fields__}
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
    parser: argparse._ActionsContainer,
    field: msgspec.structs.FieldInfo,
    hint: Any,
    usual: object = None,
) -> None:
    """Positional where it has no default, else an option."""
    kind, says = taken_apart(hint)
    said: dict[str, Any] = {"help": says.get("help", says.get("description"))}
    if usual:
        said["help"] += f" (default {_cell(usual)})"
    name = str(says.get("option", field.name.replace("_", "-")))
    if kind is bool:
        may_be_no = UnsetType in get_args(hint)
        action: Any = argparse.BooleanOptionalAction if may_be_no else "store_true"
        parser.add_argument(f"--{name}", action=action, default=None, dest=field.name, **said)
        return
    said["metavar"] = str(says.get("metavar", name.upper()))
    if get_origin(kind) is Literal:
        said["choices"] = get_args(kind)
        if not field.required:
            del said["metavar"]
    elif get_origin(kind) is tuple:
        said |= {"type": location, "metavar": "LAT,LON", "help": LOCATION_HELP}
    elif get_origin(kind) is list:
        said |= {"nargs": "+"}
    elif kind in (int, float):
        said |= {"type": partial(_number, hint), "metavar": says.get("metavar", "N")}
    if field.required:
        parser.add_argument(field.name, **said)
    elif says.get("positional"):
        parser.add_argument(field.name, nargs="?", **said)
    else:
        parser.add_argument(f"--{name}", dest=field.name, **said)


def _number(hint: Any, text: str) -> Any:
    try:
        return msgspec.convert(text, hint, strict=False)
    except msgspec.ValidationError as error:
        reason = said_of(hint, unfit(error, text)).reason
        raise argparse.ArgumentTypeError(reason) from None
