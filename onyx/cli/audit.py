"""``onyx audit list`` and ``verify``: who has changed what, who was refused, and whether the log of
that is whole."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from onyx.cli.asking import Told, add_commands, moment, network
from onyx.cli.network_option import add_client_arguments
from onyx.cli.values import tell_of
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.errors import EXIT_OK, EXIT_STORE, EXIT_UNAVAILABLE, RequestFailed, file_errors
from onyx.network_looks import ask_brokers
from onyx.registration_client import NetworkClient
from overlay import verbs
from overlay.answers import AuditEntry, AuditMark
from overlay.link.audit import faults

DETAILS = """\
One line a change, the oldest first: when, by whom, what; and one for whom a right was
refused, with a count where that was more than once in ten minutes. The registration
service keeps the newest 20,000 changes and 2,000 refusals with its other state, and
writes each to its log as well."""
VERIFY_DETAILS = """\
Each entry has the digest of the one before it, and brokers keep the last ones that they
were told. An entry that was altered or taken out, and a log that was cut at its end or
made anew, is named. With --log also what that file has, the log of the registration
service.

Exit code 74: it is not whole; 69: brokers are away that may know more."""
EXAMPLES = "  onyx audit list\n  onyx audit list --json > audit.jsonl\n  onyx audit verify"
VERIFY_EXAMPLES = "  onyx audit verify\n  onyx audit verify --log registration.log"
_IN_LOG = re.compile(r"\((change|refusal) (\d{1,18}), ([0-9a-f]{64})\)\W*$")


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "audit", details=DETAILS, examples=EXAMPLES)
    add_commands(
        subverbs,
        "audit",
        details=DETAILS,
        examples=EXAMPLES,
        told={verbs.AuditList: Told(columns=("at", "who", "what", "detail"), line=_line)},
    )
    parser = add_verb(
        *(subverbs, "verify", "say whether the audit log is whole", run_verify),
        {"--log FILE": "hold it against this log too"},
        details=VERIFY_DETAILS,
        examples=VERIFY_EXAMPLES,
    )
    add_client_arguments(parser)


def _line(entry: AuditEntry) -> dict[str, object]:
    return {**entry.shown(), "at": moment(entry.at)}


async def run_verify(arguments: argparse.Namespace) -> int:
    told: dict[str, list[AuditMark]] = {}
    if arguments.log:
        path = Path(arguments.log)
        with file_errors(path, "read"), path.open(encoding="utf-8", errors="replace") as lines:
            told[arguments.log] = [*_marks(lines)]
    async with network(arguments) as registration:
        processes = await registration.processes()
        # Marks before entries: an entry that comes meanwhile is no gap.
        found = await ask_brokers(processes.brokers, _ask_marks, but=processes.down)
        entries = await registration.listed(verbs.AuditList())
    told |= {broker: marks for broker, marks in found.items() if marks is not None}
    silent = [broker for broker, marks in found.items() if marks is None]
    wrong = [*faults(entries, told)]
    through = {where: max((m.number for m in marks), default=0) for where, marks in told.items()}
    refusals = sum(entry.refused for entry in entries)
    facts = {
        "whole": not wrong,
        "changes": len(entries) - refusals,
        "refusals": refusals,
        "held_against": through,
        "silent": silent,
        "faults": wrong,
    }
    is_whole = "NOT whole" if wrong else "whole"
    counts = f"{len(entries) - refusals:,} changes, {refusals:,} refusals"
    against = ", ".join(f"{where} (told of {last:,})" for where, last in through.items())
    text = [f"{is_whole}: {counts}; held against {against or 'nothing'}"]
    text += [f"  {each}" for each in wrong] + [f"{broker} does not answer" for broker in silent]
    tell_of(arguments, facts, "\n".join(text))
    return EXIT_STORE if wrong else EXIT_UNAVAILABLE if silent else EXIT_OK


async def _ask_marks(client: NetworkClient) -> list[AuditMark] | None:
    try:
        return (await client.ask(verbs.AuditMarks())).marks
    except RequestFailed as error:
        if error.code != "unknown-verb":  # of a former release
            raise
        return None


def _marks(lines: Iterable[str]) -> Iterable[AuditMark]:
    """What a log says of entries."""
    for line in lines:
        if said := _IN_LOG.search(line):
            yield AuditMark(int(said[2]), said[3], refused=said[1] == "refusal")
