"""``onyx source register | list | show | update | remove | publish | resume | train``: be a data
source."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import trio

from formats import FORMS
from onyx.cli import source_publish, source_train
from onyx.cli.asking import (
    Told,
    add_command,
    add_commands,
    add_settings,
    ask,
    cells,
    columns_of,
    headings,
    settings_said,
    tell,
)
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import counted, print_json, say_unread, table
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.data_source import DataSource
from onyx.errors import UsageError
from onyx.registration_client import RegistrationClient
from overlay.answers import SourceGone, SourceInfo
from overlay.settings import USUAL_SOURCE, SourceSettings
from overlay.verbs import SourceList, SourceRemove, SourceShow

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


CHANGES_EXAMPLES = """\
  onyx source show weather                       by its id, or its name
  onyx source update weather --schema weather-2.xsd --validate reject
  onyx source update s7 --no-schema --rate 20
  onyx source remove weather
"""

VALIDATE_HELP = (
    "messages against the schema: off (not looked for), report (counted, passed on) or reject "
    "(refused with line and reason)"
)


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "source",
        details=NETWORK_HELP,
        examples=REGISTER_EXAMPLES
        + LIST_EXAMPLES
        + CHANGES_EXAMPLES
        + source_publish.PUBLISH_EXAMPLES
        + source_publish.RESUME_EXAMPLES
        + source_train.EXAMPLES,
    )
    _add_register(subverbs)
    listing = add_verb(
        subverbs, "list", "list all data sources", examples=LIST_EXAMPLES, run=run_list
    )
    add_client_arguments(listing)
    _add_changes(subverbs)
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
    add_settings(parser, SourceSettings, USUAL_SOURCE)
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


def run_register(arguments: argparse.Namespace) -> None:
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


def run_list(arguments: argparse.Namespace) -> None:
    sources = ask(arguments, SourceList()).sources
    if arguments.json:
        for source in sources:
            print_json(source.shown())
    elif not sources:
        print("no sources", file=sys.stderr)
    else:
        columns = columns_of(SourceSettings)
        heading = ["ID", "NAME", "ROOT BROKER", "ADDRESS", *headings(columns), "SCHEMA", "READY"]
        rows = [
            (
                *(each.id, each.name, each.root, each.address, *cells(each, columns)),
                *(each.schema_name or "-", state_of(each)),
            )
            for each in sources
        ]
        print(table(heading, rows))


async def _register(arguments: argparse.Namespace) -> DataSource:
    return await DataSource.register(
        registration_address(arguments),
        name=arguments.name,
        schema=arguments.schema,
        validate=arguments.validate,
        compression=dict(arguments.compression),
        base=arguments.base,
        key=arguments.key,
        ensure=arguments.ensure,
        **settings_said(arguments, SourceSettings),
    )


def _form_and_file(text: str) -> tuple[str, Path]:
    """ "FORM=FILE", for argparse."""
    form, equals, file = text.partition("=")
    if form not in FORMS or not equals or not file:
        expected = f"FORM=FILE with one of the forms {', '.join(FORMS)}"
        raise argparse.ArgumentTypeError(f'"{text}" is not {expected}')
    return form, Path(file)


# -------------------------------------------------------------------------------------------------
# What becomes of a source that is there.


def _add_changes(subverbs: Subparsers) -> None:
    add_command(subverbs, SourceShow, Told(_sentences), examples=CHANGES_EXAMPLES)
    _add_update(subverbs)
    remove = add_verb(
        subverbs,
        "remove",
        "remove data sources",
        details="What was accepted of a source is still delivered; nothing more is accepted, and\n"
        "no broker knows it any more. Its archive stays where it is. Returns when its root\n"
        "broker has let go of it; where that is away, it is removed as soon as it is back.\n"
        "Only its owner, or an operator, may do so.",
        examples=CHANGES_EXAMPLES,
        run=run_remove,
    )
    remove.add_argument("sources", metavar="SOURCE", nargs="+", help="its id or its name")
    add_client_arguments(remove)


def _add_update(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "update",
        "change what is said of a data source",
        details="What is not given stays as it is. Returns when every broker has it. Messages\n"
        "that were accepted before are what they were. With another schema the profiles\n"
        "are held against it, and those are named that can match no message of any source\n"
        "any more. It keeps its root broker. Only its owner, or an operator, may do so.",
        examples=CHANGES_EXAMPLES,
        run=run_update,
    )
    parser.add_argument("source", metavar="SOURCE", help="its id or its name")
    add_settings(parser, SourceSettings)
    schema = parser.add_mutually_exclusive_group()
    schema.add_argument("--schema", metavar="PATH", type=Path, help="of the messages from now on")
    schema.add_argument(
        "--no-schema",
        action="store_true",
        help="they have none, and are not validated, from now on",
    )
    parser.add_argument(
        "--validate", metavar="MODE", choices=("off", "report", "reject"), help=VALIDATE_HELP
    )
    add_client_arguments(parser)


def _sentences(source: SourceInfo) -> str:
    columns = columns_of(SourceSettings)
    schema = f"{source.schema_name} ({source.schema_kind}, {source.validation})"
    facts = {
        "id": source.id,
        "name": source.name,
        "version": source.version,
        "owner": source.owner,
        "root broker": f"{source.root} at {source.address}",
        **dict(zip(columns, cells(source, columns), strict=True)),
        "expects": f"{source.rate:g} messages a second of {source.size:,} bytes",
        "schema": schema if source.schema_name else "",
        **{f"not read {n}": each for n, each in enumerate(source.schema_unread, 1)},
        "compression": ", ".join(source.compression),
        "base": source.base,
        "ready": state_of(source),
    }
    return "\n".join(f"{name + ':':<14}{value or '-'}" for name, value in facts.items())


def run_update(arguments: argparse.Namespace) -> None:
    settings = settings_said(arguments, SourceSettings)
    if not (settings or arguments.schema or arguments.validate or arguments.no_schema):
        raise UsageError("nothing to change; give --schema, --validate, --rate, --size, ...")

    async def update() -> SourceInfo:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await registration.update_source(
                arguments.source,
                schema=arguments.schema,
                without_schema=arguments.no_schema,
                validate=arguments.validate,
                **settings,
            )

    updated = trio.run(update)
    if arguments.schema is not None:
        say_unread(arguments.schema, updated.schema_unread)
    report_changes(updated, as_json=arguments.json)


def run_remove(arguments: argparse.Namespace) -> None:
    told = Told(lambda gone: f"{gone.id} is removed", line=_removed)
    for source in arguments.sources:
        tell(arguments, ask(arguments, SourceRemove(source=source)), told)


def _removed(gone: SourceGone) -> dict[str, object]:
    return {"event": "removed", **gone.shown()}


def report_changes(source: SourceInfo, *, as_json: bool) -> None:
    """What an update has changed; what it takes from profiles goes to standard error."""
    if as_json:
        print_json(source.shown())
        return
    changed = ", ".join(source.changed) or "nothing"
    print(f"{source.id} is in version {source.version}, changed: {changed}")
    for profile, texts in source.warnings.items():
        print(f"onyx: warning: {profile}: {'; '.join(texts)}", file=sys.stderr)
    if source.warned:
        warned = f"{counted(source.warned, 'profile')} of {source.looked_at:,} looked at"
        print(f"onyx: {warned} match no message any more, or need what none has", file=sys.stderr)


def state_of(source: SourceInfo) -> str:
    if source.removed:
        return "being removed"
    return "yes" if source.ready else "not yet"
