"""What a verb of the command line is made of: one module each, added by ``add_parser``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Protocol, TypeAlias

Run: TypeAlias = Callable[[argparse.Namespace], int | None]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


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
    "access": "say who may do what",
    "token": "let clients in without a certificate",
    "audit": "show who has changed who may do what, the network's shape, or a source",
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


class Verb(Protocol):
    """A verb module.  Its parser sets ``run`` (Namespace -> exit code, None where it is done)."""

    def add_parser(self, subparsers: Subparsers, /) -> None: ...


def add_verb(
    subparsers: Subparsers,
    name: str,
    summary: str = "",
    *,
    details: str = "",
    examples: str = "",
    run: Run | None = None,
) -> argparse.ArgumentParser:
    """A parser for a verb (or for a verb of a verb) whose ``--help`` ends with examples.

    ``summary`` is the line in the list of verbs (by default that of ``VERBS``), ``details``
    continues it in the verb's own help; both are shown as they are wrapped here.  ``run``: what
    happens when it is the one that the command line chose.
    """
    summary = summary or VERBS[name]
    parser = subparsers.add_parser(
        name,
        help=summary,
        description="\n\n".join(filter(None, (f"{summary[:1].upper()}{summary[1:]}.", details))),
        epilog=examples and f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if run is not None:
        set_run(parser, run)
    return parser


def set_run(parser: argparse.ArgumentParser, run: Run) -> None:
    parser.set_defaults(run=run)


def add_noun(
    subparsers: Subparsers, name: str, *, details: str = "", examples: str = ""
) -> Subparsers:
    """A verb that has verbs of its own (``onyx topology check``)."""
    verb = add_verb(subparsers, name, details=details, examples=examples)
    return verb.add_subparsers(title="verbs", metavar="VERB", required=True)
