"""``onyx source register | list | show | update | remove | publish | resume | train | ask``: be a
data source, or ask one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from formats import FORMS
from onyx.cli import source_publish, source_train
from onyx.cli.asking import (
    Told,
    add_command,
    add_commands,
    ask,
    cells,
    columns_of,
    network,
    settings_said,
    tell,
)
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import counted, print_json, read_input, say, say_unread, tell_of
from onyx.cli.verb import Subparsers, add_arguments, add_noun, add_verb
from onyx.data_source import DataSource
from onyx.errors import UsageError
from overlay.answers import SourceAnswer, SourceGone, SourceInfo
from overlay.settings import USUAL_SOURCE, SourceSettings
from overlay.verbs import (
    ASK_SECONDS,
    QUESTION_BYTES_MAX,
    SourceAsk,
    SourceList,
    SourceRegister,
    SourceRemove,
    SourceShow,
    SourceUpdate,
)

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

ASK_EXAMPLES = """\
  echo '{"last": 10}' | onyx source ask weather
"""
ASK_DETAILS = """\
Sends a file to the program that publishes as the source, and prints its answer
as it is. What may be asked is up to that program. While none is connected as the
source, it is tried again. It takes the role subscribe about the source, with
--writes the role publish (onyx access)."""
REGISTER_DETAILS = """\
The registration service chooses the source's root broker by its location and
the volume it expects. Prints its id when every broker knows the source.

With --ensure, a source of yours with this name is there afterwards as it is said
here: made, as it was, or updated ('onyx source update'). What cannot be changed,
--compression and --base, is an error then (exit code 65)."""
UPDATE_DETAILS = """\
What is not given stays as it is. Returns when every broker has it. Messages
that were accepted before are what they were. With another schema the profiles
are held against it, and those are named that can match no message of any source
any more. It keeps its root broker. Only its owner, or an operator, may do so."""
REMOVE_DETAILS = """\
What was accepted of a source is still delivered; nothing more is accepted, and
no broker knows it any more. Its archive stays where it is. Returns when its root
broker has let go of it; where that is away, it is removed as soon as it is back.
Only its owner, or an operator, may do so."""

REGISTERED = {
    "--name NAME =": "a name for people",
    "--schema PATH": "DTD, XML Schema or RELAX NG (of several files: ZIP#MAIN)",
    "--validate MODE{off,report,reject} = off": "take, count or refuse messages that are not "
    "valid (default: off)",
    "--compression FORM=FILE...": "a zstd dictionary for messages of this form (onyx source train)",
}
SCHEMA = {
    "--schema PATH": "of the messages from now on",
    "--no-schema": "they have none, and are not validated, from now on",
}
VALIDATE_HELP = "take, count or refuse messages that are not valid"


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "source",
        examples=REGISTER_EXAMPLES
        + LIST_EXAMPLES
        + CHANGES_EXAMPLES
        + source_publish.PUBLISH_EXAMPLES
        + source_publish.RESUME_EXAMPLES
        + source_train.EXAMPLES
        + ASK_EXAMPLES,
    )
    keyed = {
        "--base IRI =": "what relative IRIs in its graphs are relative to, where they do not say "
        "it",
        "--key KEY =": "a name of yours for it: while it is there, to register it again is to find "
        "it",
        "--ensure": "if there is one of this --name already, change it to what is said here",
    }
    add_command(
        *(subverbs, SourceRegister),
        run=run_register,
        takes=REGISTERED | keyed,
        but=("schema_name",),
        details=REGISTER_DETAILS,
        examples=REGISTER_EXAMPLES,
        kinds={"schema": Path, "compression": _form_and_file},
        usual=USUAL_SOURCE,
    )
    said = columns_of(SourceSettings)
    listed = ("id", "name", "root", "address", *said, "schema_name", "ready")
    add_command(subverbs, SourceList, Told(columns=listed), examples=LIST_EXAMPLES)
    add_command(subverbs, SourceShow, Told(_sentences), examples=CHANGES_EXAMPLES)
    update = add_command(
        *(subverbs, SourceUpdate),
        run=run_update,
        takes={"--validate MODE{off,report,reject}": VALIDATE_HELP},
        but=("schema_name",),
        details=UPDATE_DETAILS,
        examples=CHANGES_EXAMPLES,
    )
    schema = update.add_mutually_exclusive_group()
    add_arguments(schema, SCHEMA, {"schema": Path})
    remove = add_verb(
        *(subverbs, "remove", "remove data sources", run_remove),
        {"sources SOURCE...": "its id or its name"},
        details=REMOVE_DETAILS,
        examples=CHANGES_EXAMPLES,
    )
    add_client_arguments(remove)
    source_publish.add_parser(subverbs)
    source_train.add_parser(subverbs)
    _add_ask(subverbs)
    add_commands(subverbs, "source")


async def run_register(arguments: argparse.Namespace) -> None:
    """Print the id of a new source, alone on standard output, so that a script can take it."""
    source = await DataSource.register(
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
    say_unread(arguments.schema, source.info.schema_unread)
    tell_of(arguments, source.info.shown(), source.id)
    if not arguments.json:
        if source.info.changed:
            say(f"{source.id} was there; changed: {', '.join(source.info.changed)}")
        where = f"publishes at its root broker {source.root}, {source.address}"
        say(f"source {source.id} ({source.info.name}) {where}")


def _form_and_file(text: str) -> tuple[str, Path]:
    """ "FORM=FILE", for argparse."""
    form, equals, file = text.partition("=")
    if form not in FORMS or not equals or not file:
        expected = f"FORM=FILE with one of the forms {', '.join(FORMS)}"
        raise argparse.ArgumentTypeError(f'"{text}" is not {expected}')
    return form, Path(file)


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


async def run_update(arguments: argparse.Namespace) -> None:
    settings = settings_said(arguments, SourceSettings)
    if not (settings or arguments.schema or arguments.validate or arguments.no_schema):
        raise UsageError("nothing to change; give --schema, --validate, --rate, --size, ...")
    async with network(arguments) as registration:
        updated = await registration.update_source(
            arguments.source,
            schema=arguments.schema,
            without_schema=arguments.no_schema,
            validate=arguments.validate,
            **settings,
        )
    if arguments.schema is not None:
        say_unread(arguments.schema, updated.schema_unread)
    _tell_changes(arguments, updated)


async def run_remove(arguments: argparse.Namespace) -> None:
    told = Told(lambda gone: f"{gone.id} is removed", line=_removed)
    for source in arguments.sources:
        tell(arguments, await ask(arguments, SourceRemove(source=source)), told)


def _removed(gone: SourceGone) -> dict[str, object]:
    return {"event": "removed", **gone.shown()}


def _tell_changes(arguments: argparse.Namespace, source: SourceInfo) -> None:
    """What an update has changed; what it takes from profiles goes to standard error."""
    changed = ", ".join(source.changed) or "nothing"
    text = f"{source.id} is in version {source.version}, changed: {changed}"
    tell_of(arguments, source.shown(), text)
    if arguments.json:
        return
    for profile, texts in source.warnings.items():
        say(f"warning: {profile}: {'; '.join(texts)}")
    if source.warned:
        warned = f"{counted(source.warned, 'profile')} of {source.looked_at:,} looked at"
        say(f"{warned} match no message any more, or need what none has")


def state_of(source: SourceInfo) -> str:
    if source.removed:
        return "being removed"
    return "yes" if source.ready else "not yet"


# -------------------------------------------------------------------------------------------------
# Questions to a source.


def _add_ask(subverbs: Subparsers) -> None:
    add_command(
        *(subverbs, SourceAsk),
        run=run_ask,
        takes={
            "file [FILE] = -": "the question (default: standard input)",
            "--writes": "the source may change something",
            f"--timeout SECONDS = {ASK_SECONDS:g}": "wait so long for the answer (default "
            f"{ASK_SECONDS:g})",
        },
        but=("body",),
        details=ASK_DETAILS,
        examples=ASK_EXAMPLES,
        kinds={"file": str},
    )


async def run_ask(arguments: argparse.Namespace) -> None:
    body = read_input(arguments.file, QUESTION_BYTES_MAX)
    async with network(arguments) as registration:
        found = await registration.ask_source(
            arguments.source, body, arguments.writes, timeout=arguments.timeout
        )
    if arguments.json:
        print_json(SourceAnswer(found).shown())
    else:
        sys.stdout.buffer.write(found)
        sys.stdout.flush()
