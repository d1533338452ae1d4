"""``onyx context add | use | list | remove``: call a network by a name."""

from __future__ import annotations

import argparse
from pathlib import Path

from onyx.cli.contexts import Context, read_contexts, write_contexts
from onyx.cli.network_option import parse_addresses
from onyx.cli.values import print_json, table
from onyx.cli.verb import Subparsers, add_noun, add_verb
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


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "context", details=DETAILS, examples=EXAMPLES)
    add = add_verb(
        subverbs, "add", "add one, or change it", details=DETAILS, examples=EXAMPLES, run=run_add
    )
    add.add_argument("name", metavar="NAME")
    add.add_argument("--registration", metavar="HOST:PORT", required=True)
    add.add_argument("--credentials", metavar="FILE", type=Path, help="from onyx cert issue")
    add.add_argument("--use", action="store_true", help="use it from now on; the first is anyway")
    use = add_verb(
        subverbs, "use", "use one from now on", details=DETAILS, examples=EXAMPLES, run=run_use
    )
    use.add_argument("name", metavar="NAME")
    listing = add_verb(
        subverbs, "list", "list them", details=DETAILS, examples=EXAMPLES, run=run_list
    )
    remove = add_verb(
        subverbs, "remove", "remove one", details=DETAILS, examples=EXAMPLES, run=run_remove
    )
    remove.add_argument("name", metavar="NAME")
    for parser in (add, use, listing, remove):
        parser.add_argument("--json", action="store_true", help="print JSON, one object a line")


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
    if arguments.json:
        print_json({"name": arguments.name, "done": done, "used": is_used})
    else:
        more = ", and in use" if is_used and done == "added" else ""
        print(f"{arguments.name} is {done}{more}")
