"""What a verb of the command line is made of: one module each, added by ``add_parser``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Protocol, TypeAlias

Run: TypeAlias = Callable[[argparse.Namespace], int]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class Verb(Protocol):
    """A verb module.  Its parser sets ``run`` (Namespace -> exit code)."""

    def add_parser(self, subparsers: Subparsers, /) -> None: ...


def add_verb(
    subparsers: Subparsers, name: str, summary: str, *, details: str = "", examples: str = ""
) -> argparse.ArgumentParser:
    """A parser for a verb (or for a verb of a verb) whose ``--help`` ends with examples.

    ``summary`` is the line in the list of verbs, ``details`` continues it in the verb's own help;
    both are shown as they are wrapped here.
    """
    return subparsers.add_parser(
        name,
        help=summary,
        description="\n\n".join(filter(None, (f"{summary[:1].upper()}{summary[1:]}.", details))),
        epilog=examples and f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def set_run(parser: argparse.ArgumentParser, run: Run) -> None:
    """What happens when ``parser`` is the one that the command line chose."""
    parser.set_defaults(run=run)


def add_subverbs(parser: argparse.ArgumentParser) -> Subparsers:
    """For a verb that has verbs of its own (``onyx topology check``)."""
    return parser.add_subparsers(title="verbs", metavar="VERB", required=True)
