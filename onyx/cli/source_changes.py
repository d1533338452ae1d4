"""``onyx source show | update | remove``: what becomes of a source that is there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import trio

from onyx.cli.asking import Told, add_command, ask, tell
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import LOCATION_HELP, counted, location, not_negative, print_json, say_unread
from onyx.cli.verb import Subparsers, add_verb
from onyx.errors import EXIT_OK, UsageError
from onyx.registration_client import RegistrationClient
from overlay.answers import SourceGone, SourceInfo
from overlay.verbs import SourceRemove, SourceShow

EXAMPLES = """\
  onyx source show weather                       by its id, or its name
  onyx source update weather --schema weather-2.xsd --validate reject
  onyx source update s7 --no-schema --rate 20
  onyx source remove weather
"""

VALIDATE_HELP = (
    "messages against the schema: off (not looked for), report (counted, passed on) or reject "
    "(refused with line and reason)"
)


def add_parser(subverbs: Subparsers) -> None:
    """All three."""
    add_command(subverbs, SourceShow, Told(_sentences), examples=EXAMPLES)
    _add_update(subverbs)
    remove = add_verb(
        subverbs,
        "remove",
        "remove data sources",
        details="What was accepted of a source is still delivered; nothing more is accepted, and\n"
        "no broker knows it any more. Its archive stays where it is. Returns when its root\n"
        "broker has let go of it; where that is away, it is removed as soon as it is back.\n"
        "Only its owner, or an operator, may do so.",
        examples=EXAMPLES,
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
        examples=EXAMPLES,
        run=run_update,
    )
    parser.add_argument("source", metavar="SOURCE", help="its id or its name")
    parser.add_argument("--location", metavar="LAT,LON", type=location, help=LOCATION_HELP)
    parser.add_argument("--rate", metavar="R", type=not_negative, help="messages a second")
    parser.add_argument("--size", metavar="BYTES", type=not_negative, help="of a message")
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
    schema = f"{source.schema_name} ({source.schema_kind}, {source.validation})"
    facts = {
        "id": source.id,
        "name": source.name,
        "version": source.version,
        "owner": source.owner or "-",
        "root broker": f"{source.root} at {source.address}",
        "location": place_of(source),
        "expects": f"{source.rate:g} messages a second of {source.size:,} bytes",
        "schema": schema if source.schema_name else "-",
        **{f"not read {n}": each for n, each in enumerate(source.schema_unread, 1)},
        "compression": ", ".join(source.compression) or "-",
        "base": source.base or "-",
        "ready": state_of(source),
    }
    return "\n".join(f"{name + ':':<14}{value}" for name, value in facts.items())


def run_update(arguments: argparse.Namespace) -> int:
    said = ("location", "rate", "size", "schema", "validate")
    if all(getattr(arguments, name) is None for name in said) and not arguments.no_schema:
        raise UsageError("nothing to change; give --schema, --validate, --rate, --size, ...")

    async def update() -> SourceInfo:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await registration.update_source(
                arguments.source,
                location=arguments.location,
                rate=arguments.rate,
                size=None if arguments.size is None else int(arguments.size),
                schema=arguments.schema,
                without_schema=arguments.no_schema,
                validate=arguments.validate,
            )

    updated = trio.run(update)
    if arguments.schema is not None:
        say_unread(arguments.schema, updated.schema_unread)
    report_changes(updated, as_json=arguments.json)
    return EXIT_OK


def run_remove(arguments: argparse.Namespace) -> int:
    told = Told(lambda gone: f"{gone.id} is removed", line=_removed)
    for source in arguments.sources:
        tell(arguments, ask(arguments, SourceRemove(source=source)), told)
    return EXIT_OK


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


def place_of(source: SourceInfo) -> str:
    return "{:g},{:g}".format(*source.location) if source.location else "-"
