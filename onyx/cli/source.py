"""``onyx source register | list | show | update | remove | publish | resume | train``: be a data
source."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import trio

from formats import FORMS
from onyx.cli import source_changes, source_publish, source_train
from onyx.cli.asking import add_commands, ask
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import LOCATION_HELP, location, not_negative, print_json, say_unread, table
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.data_source import DataSource
from onyx.errors import EXIT_OK
from overlay.verbs import SourceList

REGISTER_EXAMPLES = """\
  onyx source register --name weather --location 41.88,-87.63
  onyx source register --name orders --rate 50 --size 4000 --schema orders.dtd --validate reject
  onyx source register --name quotes --compression text=quotes.zdict
  onyx source register --name buses --schema siri/xsd#siri.xsd --validate report
  onyx source register --name orders --schema orders-2.dtd --ensure   from a script, each time
"""

LIST_EXAMPLES = """\
  onyx source list --topology topologies/figure4.toml
"""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "source",
        details=NETWORK_HELP,
        examples=REGISTER_EXAMPLES
        + LIST_EXAMPLES
        + source_changes.EXAMPLES
        + source_publish.PUBLISH_EXAMPLES
        + source_publish.RESUME_EXAMPLES
        + source_train.EXAMPLES,
    )
    _add_register(subverbs)
    listing = add_verb(
        subverbs, "list", "list all data sources", examples=LIST_EXAMPLES, run=run_list
    )
    add_client_arguments(listing)
    source_changes.add_parser(subverbs)
    source_publish.add_parser(subverbs)
    source_train.add_parser(subverbs)
    add_commands(subverbs, "source")


def _add_register(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "register",
        "register a data source and print its id",
        details="The registration service chooses the source's root broker by its location and\n"
        "the volume it expects. Returns when every broker knows the source.\n\n"
        "With --ensure, a source of yours with this name is there afterwards as it is said\n"
        "here: made, as it was, or updated ('onyx source update'). What cannot be changed,\n"
        "--compression and --base, is an error then (exit code 65).",
        examples=REGISTER_EXAMPLES,
        run=run_register,
    )
    add = parser.add_argument
    add("--name", metavar="N", default="", help="a name for people")
    add("--location", metavar="LAT,LON", type=location, help=LOCATION_HELP)
    add("--rate", metavar="R", type=not_negative, default=1.0, help="messages a second (default 1)")
    add(
        "--size",
        metavar="BYTES",
        type=not_negative,
        default=1024,
        help="of a message, on average (default 1024)",
    )
    add(
        "--schema",
        metavar="PATH",
        type=Path,
        help="DTD, XML Schema or RELAX NG of the messages: a file; where they are several, a "
        "folder, zip file or OASIS catalog, with the main one behind # (cda.zip#cda/CDA.xsd)",
    )
    add(
        "--validate",
        metavar="MODE",
        choices=("off", "report", "reject"),
        default="off",
        help="messages against the schema: off (not looked for, default), report (counted, passed "
        "on) or reject (refused with line and reason)",
    )
    add(
        "--compression",
        metavar="FORM=FILE",
        type=_form_and_file,
        action="append",
        default=[],
        help="a zstd dictionary for messages in a form (text, binary or dictionary), as made by "
        "'onyx source train' or, for text, by 'zstd --train'; without one the root broker trains "
        "its own on the messages that come",
    )
    add(
        "--base",
        metavar="IRI",
        default="",
        help="what relative IRIs in its graphs are relative to, where they do not say it",
    )
    add(
        "--key",
        metavar="KEY",
        default="",
        help="a name of yours for it: while it is there, to register it again is to find it",
    )
    add(
        "--ensure",
        action="store_true",
        help="if there is one of this --name already, change it to what is said here",
    )
    add_client_arguments(parser)


def run_register(arguments: argparse.Namespace) -> int:
    """Print the id of a new source, alone on standard output, so that a script can take it."""
    source = trio.run(_register, arguments)
    say_unread(arguments.schema, source.info.schema_unread)
    if arguments.json:
        print_json(source.info.shown())
    else:
        print(source.id)
        if source.info.changed:
            print(
                f"onyx: {source.id} was there; changed: {', '.join(source.info.changed)}",
                file=sys.stderr,
            )
        print(
            f"onyx: source {source.id} ({source.info.name}) publishes at its root broker "
            f"{source.root}, {source.address}",
            file=sys.stderr,
        )
    return EXIT_OK


def run_list(arguments: argparse.Namespace) -> int:
    sources = ask(arguments, SourceList()).sources
    if arguments.json:
        for source in sources:
            print_json(source.shown())
    elif not sources:
        print("no sources", file=sys.stderr)
    else:
        heading = ("ID", "NAME", "ROOT BROKER", "ADDRESS", "LOCATION", "SCHEMA", "READY")
        rows = [
            (
                source.id,
                source.name,
                source.root,
                source.address,
                source_changes.place_of(source),
                source.schema_name or "-",
                source_changes.state_of(source),
            )
            for source in sources
        ]
        print(table(heading, rows))
    return EXIT_OK


async def _register(arguments: argparse.Namespace) -> DataSource:
    return await DataSource.register(
        registration_address(arguments),
        name=arguments.name,
        location=arguments.location,
        rate=arguments.rate,
        size=int(arguments.size),
        schema=arguments.schema,
        validate=arguments.validate,
        compression=dict(arguments.compression),
        base=arguments.base,
        key=arguments.key,
        ensure=arguments.ensure,
    )


def _form_and_file(text: str) -> tuple[str, Path]:
    """ "FORM=FILE", for argparse."""
    form, equals, file = text.partition("=")
    if form not in FORMS or not equals or not file:
        expected = f"FORM=FILE with one of the forms {', '.join(FORMS)}"
        raise argparse.ArgumentTypeError(f'"{text}" is not {expected}')
    return form, Path(file)
