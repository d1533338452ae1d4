"""``onyx context add | use | list | remove``: call a network by a name."""

from __future__ import annotations

import argparse

from onyx.cli.contexts import Context, read_contexts, write_contexts
from onyx.cli.network_option import parse_addresses
from onyx.cli.values import print_json, table, tell_of
from onyx.cli.verb import JSON, Subparsers, add_noun, add_verb
from onyx.errors import UnreadableInput

DETAILS = """\
A context is where a network's registration service is, and who you are there. The one in
use counts where neither --registration, --topology and --context nor ONYX_REGISTRATION
say anything; its credentials, where --credentials and ONYX_CREDENTIALS do not. They are in
$XDG_CONFIG_HOME/onyx/contexts.json (~/.config/onyx)."""

EXAMPLES = """\
  onyx context add prod --registration 10.0.0.1:7200 --credentials ann.pem
  onyx context add here --registration 127.0.0.1:7200 --use
  onyx context use prod
  onyx source list --context here
  onyx context list
  onyx context remove here
"""


ADDED = {
    "--registration HOST:PORT!": None,
    "--credentials FILE": "from onyx cert issue",
    "--use": "use it from now on, as the first one is",
}


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "context", details=DETAILS, examples=EXAMPLES)
    name = {"name NAME": None}
    for verb, summary, run, takes in (
        ("add", "add one, or change it", run_add, name | ADDED),
        ("use", "use one from now on", run_use, name),
        ("list", "list them", run_list, {}),
        ("remove", "remove one", run_remove, name),
    ):
        add_verb(*(subverbs, verb, summary, run, takes | JSON), details=DETAILS, examples=EXAMPLES)


def run_add(arguments: argparse.Namespace) -> None:
    registration = parse_addresses(arguments.registration, "--registration")
    credentials = ""
    if arguments.credentials is not None:
        if not arguments.credentials.exists():
            raise UnreadableInput(f"{arguments.credentials} does not exist")
        credentials = str(arguments.credentials.absolute())
    contexts = read_contexts()
    contexts.by_name[arguments.name] = Context(registration, credentials)
    if arguments.use or not contexts.used:
        contexts.used = arguments.name
    write_contexts(contexts)
    _say(arguments, "added", is_used=contexts.used == arguments.name)


def run_use(arguments: argparse.Namespace) -> None:
    contexts = read_contexts()
    contexts.named(arguments.name)
    contexts.used = arguments.name
    write_contexts(contexts)
    _say(arguments, "used", is_used=True)


def run_remove(arguments: argparse.Namespace) -> None:
    contexts = read_contexts()
    contexts.named(arguments.name)
    del contexts.by_name[arguments.name]
    if contexts.used == arguments.name:
        contexts.used = ""
    write_contexts(contexts)
    _say(arguments, "removed", is_used=False)


def run_list(arguments: argparse.Namespace) -> None:
    contexts = read_contexts()
    rows = [
        (name, context.registration, context.credentials, name == contexts.used)
        for name, context in contexts.by_name.items()
    ]
    if arguments.json:
        names = ("name", "registration", "credentials", "used")
        for row in rows:
            print_json(dict(zip(names, row, strict=True)))
    elif rows:
        shown = [("*" if row[3] else "", *row[:2], row[2] or "-") for row in rows]
        print(table(("", "NAME", "REGISTRATION", "CREDENTIALS"), shown))
    else:
        print("There is no context; onyx context add makes one.")


def _say(arguments: argparse.Namespace, done: str, *, is_used: bool) -> None:
    more = ", and in use" if is_used and done == "added" else ""
    facts = {"name": arguments.name, "done": done, "used": is_used}
    tell_of(arguments, facts, f"{arguments.name} is {done}{more}")
