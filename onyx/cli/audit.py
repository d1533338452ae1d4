"""``onyx audit list``: who has changed who may do what, the network's shape, or a source."""

from __future__ import annotations

from onyx.cli.asking import Told, add_commands, moment
from onyx.cli.network_option import NETWORK_HELP
from onyx.cli.verb import Subparsers, add_noun
from overlay import verbs
from overlay.answers import AuditEntry

DETAILS = f"""\
One line a change, the oldest first: when, by whom, what. The registration service keeps
the newest 20,000 with its other state, and writes each to its log as well.
{NETWORK_HELP}"""
EXAMPLES = "  onyx audit list\n  onyx audit list --json > audit.jsonl"


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "audit", details=DETAILS, examples=EXAMPLES)
    add_commands(
        subverbs,
        "audit",
        details=DETAILS,
        examples=EXAMPLES,
        told={verbs.AuditList: Told(columns=("at", "who", "what", "detail"), line=_line)},
    )


def _line(entry: AuditEntry) -> dict[str, object]:
    return {**entry.shown(), "at": moment(entry.at)}
