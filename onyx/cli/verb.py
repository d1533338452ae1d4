"""What a verb of the command line is made of: one module each, added by ``add_parser``."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Takes: TypeAlias = Mapping[str, str | None]
Kind: TypeAlias = Callable[[str], Any]
Run: TypeAlias = Callable[[argparse.Namespace], Awaitable[int | None] | int | None]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

NOTHING: Takes = {}
NO_KINDS: Mapping[str, Kind] = {}

VERBS = {
    "up": "run a network until it is interrupted",
    "source": "register a data source, publish its messages",
    "profile": "add, import, show, check, explain, draw, change or remove profiles",
    "subscribe": "take the results of profiles",
    "trace": "show the way of a message through the network",
    "transform": "show what messages are cut down to on a link",
    "status": "show what the processes of a network do",
    "gateway": "serve the network over HTTP, with pages to look at it",
    "tap": "show what brokers accept, send on and deliver, as it happens",
    "top": "show what a network does, now and again",
    "bench": "measure how fast a network is",
    "doctor": "say what is wrong with a network, and what to do",
    "dead": "show what could not be dealt with, and deal with it",
    "broker": "let a broker leave the network, alive or not",
    "plan": "plan which profiles are placed together",
    "backtest": "try profiles on an archive of messages",
    "archive": "read archives",
    "topology": "check or show a topology file, or make a running network follow it",
    "taxonomy": "say which classes are below which",
    "metadata": "keep metadata, and cache what rules ask of it",
    "query": "ask what many providers have",
    "provider": "check and list catalogs of what providers offer to queries",
    "function": "pack, sign and validate functions for queries",
    "access": "say who may do what",
    "token": "let clients in without a certificate",
    "audit": "show who has changed things of others, who was refused, and whether that is whole",
    "store": "look at, mend and copy what processes have on disk",
    "backup": "copy a whole network into one file, while it runs or not",
    "restore": "make a data directory of a backup",
    "make-results": "before an upgrade, make the results that wait for users",
    "cert": "say who may connect to a network",
    "context": "call a network by a name",
    "completion": "print what completes command lines in a shell",
}
"""In the order of ``onyx --help``: the name of a verb, which is that of a module of this package
(with "_" for "-"), and the summary that its own help begins with, too."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A usage has no options that the help leaves out: with them argparse 3.11 breaks no lines."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any = None) -> None:
        shown = [each for each in actions if each.help is not argparse.SUPPRESS]
        groups = [each for each in groups if {*each._group_actions} & {*shown}]
        super().add_usage(usage, shown, groups, prefix)


class Parser(argparse.ArgumentParser):
    """Its ``--help`` names the options of ``COMMON`` in one line."""

    def format_help(self) -> str:
        hidden = [each for each in self._actions if each.help is argparse.SUPPRESS]
        known = {"--help", *(usage.split()[0] for usage in COMMON)}
        common = ", ".join(o for each in hidden for o in each.option_strings if o in known)
        return super().format_help() + (common and f"\nsee onyx --help: {common}\n")


class Verb(Protocol):
    """A verb module.  Its parser sets ``run`` (Namespace -> exit code, None
    where it is done; or the same to be awaited)."""

    def add_parser(self, subparsers: Subparsers, /) -> None: ...


def add_verb(
    subparsers: Subparsers,
    name: str,
    summary: str = "",
    run: Run | None = None,
    takes: Takes = NOTHING,
    *,
    details: str = "",
    examples: str = "",
    kinds: Mapping[str, Kind] = NO_KINDS,
) -> argparse.ArgumentParser:
    """A parser for a verb (or for a verb of a verb).

    ``summary`` is the line in the list of verbs (by default that of ``VERBS``); its own help has
    the ``examples`` below it, and ``details`` in the end, as they are wrapped here.  ``run``: what
    happens when it is the one that the command line chose.  ``takes``, ``kinds``: its arguments, as
    of ``add_arguments``.
    """
    summary = summary or VERBS[name]
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=f"{summary[:1].upper()}{summary[1:]}."
        + (examples and f"\n\nexamples:\n{examples}"),
        epilog=details,
        formatter_class=HelpFormatter,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    if run is not None:
        parser.set_defaults(run=run)
    add_arguments(parser, takes, kinds)
    return parser


def add_noun(
    subparsers: Subparsers, name: str, *, details: str = "", examples: str = ""
) -> Subparsers:
    """A verb that has verbs of its own (``onyx topology check``)."""
    verb = add_verb(subparsers, name, details=details, examples=examples)
    return verb.add_subparsers(title="verbs", metavar="VERB", required=True)


# --- arguments ----------------------------------------------------------------------------------


def add_arguments(
    parser: argparse._ActionsContainer, takes: Takes, kinds: Mapping[str, Kind] = NO_KINDS
) -> None:
    """Arguments as a usage has them, each with its help.

    ``--dry-run``, ``--rate N``, ``--rate N = 50`` (by default), ``--out FILE!`` (needed), ``--lost
    ID...`` (may be repeated), ``--mode MODE{off,on}`` or ``--mode {off,on}`` (one of these); and
    with a name before the word that the help has for it ``file FILE``, ``plan [PLAN]`` (may be
    missing), ``ids ID...`` (one or more), ``ids ID*`` (any number).

    ``kinds`` of values by name, where the word for it (``KINDS``) does not say it.  The help
    leaves out those of ``COMMON``.
    """
    for usage, says in takes.items():
        shown = argparse.SUPPRESS if says and says == COMMON.get(usage) else says
        name, _, rest = usage.partition(" ")
        word, has_default, default = rest.partition(" =")
        if not word:
            parser.add_argument(name, action="store_true", help=shown)
            continue
        more: dict[str, Any] = {"default": default.strip()} if has_default else {}
        is_option = name.startswith("--")
        if word.endswith("!"):
            word, more["required"] = word[:-1], True
        if word.endswith("..."):
            more |= {"action": "append", "default": []} if is_option else {"nargs": "+"}
        elif word.endswith("*"):
            more["nargs"] = "*"
        elif word.startswith("["):
            more["nargs"] = "?"
        metavar, _, choices = word.strip("[]" if word.startswith("[") else ".*").partition("{")
        if choices:
            more["choices"] = choices.rstrip("}").split(",")
        if metavar:
            more["metavar"] = metavar
        kind = kinds.get(field_of(usage), KINDS.get(metavar, str))
        parser.add_argument(name, type=kind, help=shown, **more)


def field_of(usage: str) -> str:
    return usage.partition(" ")[0].lstrip("-").replace("-", "_")


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is no whole number of at least 1')
    return number


def not_negative(text: str) -> float:
    """A number of at least 0, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e15:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of at least 0')
    return number


def location(text: str) -> tuple[float, float]:
    """ "LAT,LON" in degrees, for argparse."""
    parts = text.split(",")
    try:
        latitude, longitude = (float(part) for part in parts)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'"{text}" is no location, expected LAT,LON in degrees, as 41.88,-87.63'
        ) from None
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise argparse.ArgumentTypeError(
            f'"{text}" is not on earth, expected LAT -90 to 90 and LON -180 to 180'
        )
    return latitude, longitude


def pair(form: str, text: str) -> tuple[str, str]:
    """Two words with a sign between them, as ``form``; a TEXT may be empty.  For argparse."""
    sign = ":" if ":" in form else "="
    one, found, other = text.partition(sign)
    if not (one and found and (other or form.endswith(("TEXT", "VALUE")))):
        raise argparse.ArgumentTypeError(f'"{text}" is not {form}')
    return one, other


JSON = {"--json": "print JSON, one object a line"}
IDENTITY = {"--credentials FILE": "who you are (default: $ONYX_CREDENTIALS, or your account's)"}
NETWORK = {
    "--registration HOST:PORT": "its registration service (default: $ONYX_REGISTRATION)",
    "--topology FILE": "its topology file, while it runs",
    "--context NAME": "its name in onyx context list (default: the one in use)",
}
COMMON: Takes = {**JSON, **IDENTITY, **NETWORK}
"""The options that most commands take; ``onyx --help`` alone explains them."""
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("N", "K", "DAYS"), positive),
    **dict.fromkeys(("S", "SECONDS", "R", "BYTES", "SHARE"), not_negative),
    **dict.fromkeys(("FILE", "DIR", "FOLDER", "NODE", "TOPOLOGY", "OUT.svg"), Path),
    "LAT,LON": location,
    **{word: partial(pair, word) for word in ("FROM:TO", "NAME=FILE", "NAME=TEXT", "KEY=VALUE")},
}
"""By the word that the help has for a value."""
