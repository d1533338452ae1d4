"""``onyx source register | list | show | update | remove | publish | resume | train``: be a data
source."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import trio

from formats import FORMS
from formats.media_types import media_type_of
from onyx.cli import source_changes, source_train
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import (
    LOCATION_HELP,
    STANDARD_INPUT,
    add_media_type_argument,
    check_once,
    expand,
    location,
    not_negative,
    print_json,
    read_input,
    table,
)
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.client_values import Outcome, SourceInfo
from onyx.data_source import DataSource
from onyx.errors import EXIT_DATA, EXIT_OK, UnreadableInput, UsageError
from onyx.registration_client import PATIENCE_SECONDS, RegistrationClient

REGISTER_EXAMPLES = """\
  onyx source register --name weather --location 41.88,-87.63
  onyx source register --name orders --rate 50 --size 4000 --schema orders.dtd --validate reject
  onyx source register --name quotes --compression text=quotes.zdict
  onyx source register --name orders --schema orders-2.dtd --ensure   from a script, each time
"""

PUBLISH_EXAMPLES = """\
  onyx source publish s1 report.xml
  onyx source publish s1 reports/ more/          every file below, in sorted order
  onyx source publish s1 planet.ttl more.jsonld  graphs, by the names of the files
  onyx source publish s1 reports/ --key-from name  once each, however often this is run
  onyx source publish s1 reports/ --journal s1.journal
  curl -s https://example.org/feed | onyx source publish s1 -
  curl -s https://example.org/data | onyx source publish s1 - --media-type text/turtle
"""

RESUME_EXAMPLES = """\
  onyx source resume s1 s1.journal
"""

LIST_EXAMPLES = """\
  onyx source list --topology topologies/figure4.toml
"""

PROGRESS_SECONDS = 2.0  # a publication that takes longer than this says how far it is
MESSAGE_BYTES_MAX = 64 * 1024 * 1024  # what is read of a file; the network's own limit is lower


def add_parser(subparsers: Subparsers) -> None:
    verb = add_verb(
        subparsers,
        "source",
        "register a data source, publish its messages",
        details=NETWORK_HELP,
        examples=REGISTER_EXAMPLES
        + LIST_EXAMPLES
        + source_changes.EXAMPLES
        + PUBLISH_EXAMPLES
        + RESUME_EXAMPLES
        + source_train.EXAMPLES,
    )
    verbs = add_subverbs(verb)
    _add_register(verbs)
    listing = add_verb(verbs, "list", "list all data sources", examples=LIST_EXAMPLES)
    set_run(listing, run_list)
    add_client_arguments(listing)
    source_changes.add_parser(verbs)
    _add_publish(verbs)
    _add_resume(verbs)
    source_train.add_parser(verbs)


def _add_register(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "register",
        "register a data source and print its id",
        details="The registration service chooses the source's root broker by its location and\n"
        "the volume it expects. Returns when every broker knows the source.\n\n"
        "With --ensure, a source of yours with this name is there afterwards as it is said\n"
        "here: made, as it was, or updated ('onyx source update'). What cannot be changed,\n"
        "--compression and --base, is an error then (exit code 65).",
        examples=REGISTER_EXAMPLES,
    )
    parser.add_argument("--name", metavar="N", default="", help="a name for people")
    parser.add_argument("--location", metavar="LAT,LON", type=location, help=LOCATION_HELP)
    parser.add_argument(
        "--rate", metavar="R", type=not_negative, default=1.0, help="messages a second (default 1)"
    )
    parser.add_argument(
        "--size",
        metavar="BYTES",
        type=not_negative,
        default=1024,
        help="of a message, on average (default 1024)",
    )
    parser.add_argument(
        "--schema", metavar="FILE", type=Path, help="DTD, XML Schema or RELAX NG of the messages"
    )
    parser.add_argument(
        "--validate",
        metavar="MODE",
        choices=("off", "report", "reject"),
        default="off",
        help="messages against the schema: off (not looked for, default), report (counted, passed "
        "on) or reject (refused with line and reason)",
    )
    parser.add_argument(
        "--compression",
        metavar="FORM=FILE",
        type=_form_and_file,
        action="append",
        default=[],
        help="a zstd dictionary for messages in a form (text, binary or dictionary), as made by "
        "'onyx source train' or, for text, by 'zstd --train'; without one the root broker trains "
        "its own on the messages that come",
    )
    parser.add_argument(
        "--base",
        metavar="IRI",
        default="",
        help="what relative IRIs in its graphs are relative to, where they do not say it",
    )
    parser.add_argument(
        "--key",
        metavar="KEY",
        default="",
        help="a name of yours for it: while it is there, to register it again is to find it",
    )
    parser.add_argument(
        "--ensure",
        action="store_true",
        help="if there is one of this --name already, change it to what is said here",
    )
    set_run(parser, run_register)
    add_client_arguments(parser)


def _add_publish(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "publish",
        "publish messages",
        details="Each file is one message: XML, or a graph in Turtle (.ttl), TriG (.trig),\n"
        "N-Triples (.nt), N-Quads (.nq) or JSON-LD (.jsonld). RDF/XML and RSS 1.0 are XML.\n"
        "One that is not well-formed, or beyond a limit, is\n"
        "refused whole and reported as FILE:LINE:COLUMN: reason; the others are published.\n"
        "Returns when the root broker has all of them on disk.\n"
        "Exit code 65 when any was refused.\n\n"
        "With a publish key (--key, --key-from) a message is published once, however often\n"
        "this is run: what the root broker has accepted with the same key from this source, in\n"
        "the last day (publish_key_age_s), is not published again. So run it again when it was\n"
        "cut off.\n\n"
        "With --journal FILE what is read is in FILE until its outcome is known. What a crash\n"
        "has left there the next run with FILE publishes first, each message once, or\n"
        "'onyx source resume'.",
        examples=PUBLISH_EXAMPLES,
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="its id, as printed by register, or its name"
    )
    parser.add_argument(
        "inputs",
        metavar="FILE|DIR|-",
        nargs="+",
        help="a message, a directory of messages, or standard input (one message)",
    )
    add_media_type_argument(parser)
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument("--key", metavar="KEY", default="", help="the publish key of the one message")
    keys.add_argument(
        "--key-from",
        metavar="WHAT",
        choices=("name", "content"),
        help="each message has a publish key: its name, as given here, or what is in it",
    )
    parser.add_argument(
        "--journal", metavar="FILE", type=Path, help="keep messages there; made if it is not there"
    )
    set_run(parser, run_publish)
    add_client_arguments(parser)


def _add_resume(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "resume",
        "publish what a crash has left in a journal",
        details="Each message that 'onyx source publish --journal FILE' was cut off with, once.\n"
        "Exit code 65 when any was refused.",
        examples=RESUME_EXAMPLES,
    )
    parser.add_argument("source", metavar="SOURCE", help="whose journal it is: its id or its name")
    parser.add_argument("journal", metavar="FILE", type=Path, help="the journal")
    set_run(parser, run_publish)
    parser.set_defaults(inputs=[], key="", key_from=None, media_type=None)
    add_client_arguments(parser)


def run_register(arguments: argparse.Namespace) -> int:
    """Print the id of a new source, alone on standard output, so that a script can take it."""
    source = trio.run(_register, arguments)
    if arguments.json:
        print_json(source_changes.source_facts(source.info))
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
    sources = trio.run(_list, arguments)
    if arguments.json:
        for source in sources:
            print_json(source_changes.source_facts(source))
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


def run_publish(arguments: argparse.Namespace) -> int:
    check_once(arguments.inputs)
    names = list(expand(arguments.inputs))
    if not names and not arguments.journal.exists():
        raise UnreadableInput(f"{arguments.journal} does not exist")
    if arguments.key and len(names) != 1:
        raise UsageError(f"--key is of one message, here are {len(names)}; --key-from is for many")
    if arguments.key_from == "name" and STANDARD_INPUT in names:
        raise UsageError("standard input has no name; give --key, or --key-from content")
    counts = trio.run(_publish, arguments, names)
    said = {name: count for name, count in counts.items() if count or name == "accepted"}
    if arguments.json:
        print_json({"event": "done", **counts})
    else:
        each = ", ".join(f"{count} {name}" for name, count in said.items())
        print(f"{counts.total()} published by {arguments.source}: {each}")
    return EXIT_DATA if counts["refused"] else EXIT_OK


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


async def _list(arguments: argparse.Namespace) -> list[SourceInfo]:
    async with RegistrationClient(registration_address(arguments)) as registration:
        return await registration.sources()


async def _publish(arguments: argparse.Namespace, names: list[str]) -> Counter[str]:
    """Publish the named files; how many were accepted, refused, and accepted before."""
    counts = Counter(accepted=0, refused=0, known=0)

    async def messages() -> AsyncIterator[tuple[bytes, str, str]]:
        for name in names:
            data = await trio.to_thread.run_sync(read_input, name, MESSAGE_BYTES_MAX)
            yield data, arguments.media_type or media_type_of(name), _key(arguments, name, data)

    async with DataSource(
        registration_address(arguments),
        arguments.source,
        patience_seconds=PATIENCE_SECONDS,
        journal=arguments.journal,
    ) as source:
        for key, outcome in source.resumed:
            counts[_kind(outcome)] += 1
            _report(f"{arguments.journal} ({key})", outcome, arguments.json)
        progress_at, done = trio.current_time() + PROGRESS_SECONDS, 0
        async with aclosing(source.publish_all(messages())) as outcomes:
            async for outcome in outcomes:
                counts[_kind(outcome)] += 1
                done += 1
                _report(names[done - 1], outcome, arguments.json)
                if trio.current_time() >= progress_at:
                    progress_at = trio.current_time() + PROGRESS_SECONDS
                    print(f"onyx: {done} of {len(names)} published", file=sys.stderr)
    return counts


def _kind(outcome: Outcome) -> str:
    if not outcome.accepted:
        return "refused"
    return "known" if outcome.is_known else "accepted"


def _key(arguments: argparse.Namespace, name: str, data: bytes) -> str:
    """The publish key of a message, "" for none."""
    if arguments.key_from == "content":
        return sha256(data).hexdigest()
    key: str = name if arguments.key_from == "name" else arguments.key
    return key


def _report(name: str, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        print_json({"event": "published", "file": name, **asdict(outcome)})
    elif not outcome.accepted:
        shown = "<stdin>" if name == STANDARD_INPUT else name
        place = f"{outcome.line}:{outcome.column}:" if outcome.line else ""
        print(f"{shown}:{place} {outcome.reason} [{outcome.code}]", file=sys.stderr)


def _form_and_file(text: str) -> tuple[str, Path]:
    """ "FORM=FILE", for argparse."""
    form, equals, file = text.partition("=")
    if form not in FORMS or not equals or not file:
        expected = f"FORM=FILE with one of the forms {', '.join(FORMS)}"
        raise argparse.ArgumentTypeError(f'"{text}" is not {expected}')
    return form, Path(file)
