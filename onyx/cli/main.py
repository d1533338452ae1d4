"""The command ``onyx``: finds the verb, runs it, and turns errors into messages and exit codes.

To add a verb: write a module in this package with ``add_parser`` (see verb.py) and name it in
``VERBS``.  It is loaded when a command line has it.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import cast

from formats.build import build_info
from onyx.cli.verb import Verb
from onyx.errors import EXIT_CONFIG, EXIT_USAGE, UserError, leaves
from onyx.identity.known_networks import use_credentials
from onyx.release import version
from overlay.topology import TopologyError

# In the order of onyx --help; each is a module of this package.
VERBS = (
    *("up", "source", "profile", "subscribe", "trace", "transform", "status", "dead", "broker"),
    *("plan", "backtest", "archive", "topology", "taxonomy", "access", "token", "audit"),
    *("store", "make-results", "cert"),
)

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE

DESCRIPTION = """\
Onyx brings XML messages from data sources to users, through a network of brokers.
A user registers a profile, a query in XQuery; every message is matched inside the
network against every profile, and each user gets exactly what their profile asks for.
"""

EPILOG = """\
examples:
  onyx topology show topologies/figure4.toml    look at a network before starting it
  onyx up topologies/figure4.toml               start it; then, in another terminal:
  export ONYX_REGISTRATION=127.0.0.1:7200
  onyx source register --name weather           prints the source's id
  onyx profile add storms.xq --wait             prints the profile's id
  onyx source publish SOURCE report.xml
  onyx subscribe PROFILE
  onyx VERB --help                              more about a verb, with examples

exit codes:
  0 done                             74 what a process has on disk cannot be used
  2 wrong usage                      75 in use by somebody else, try later
 65 a message or profile refused     77 the network does not know you
 66 a file cannot be read            78 a topology that cannot be used
 69 the network is unreachable      130 interrupted
 70 a process of the network failed
 73 a file cannot be written
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of the process); the exit code.

    SystemExit only from argparse: wrong usage, ``--help``, ``--version``.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a "?" instead of a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser(words)
    arguments = parser.parse_args(words)
    if not hasattr(arguments, "run"):
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    try:
        with use_credentials(getattr(arguments, "credentials", None)):
            code = int(arguments.run(arguments))
        sys.stdout.flush()
    except BaseException as error:
        expected = _expected_error(error)
        if expected is None:
            raise
        return _report(expected)
    return code


def build_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for a command line: with its verb, or with all."""
    parser = argparse.ArgumentParser(
        prog="onyx",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"onyx {version()}, {build_info()}")
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB")
    for name in _needed(words):
        load_verb(name).add_parser(subparsers)
    return parser


def _needed(words: Sequence[str]) -> Sequence[str]:
    """The verbs that a command line may have to do with."""
    # PERF: loading all of them takes a second.
    if words == ["--version"]:
        return ()
    return words[:1] if words and words[0] in VERBS else VERBS


def load_verb(name: str) -> Verb:
    """The module of a verb."""
    return cast("Verb", import_module(f"onyx.cli.{name.replace('-', '_')}"))


def _expected_error(error: BaseException) -> BaseException | None:
    """The error to report to the user, or None for a fault of the program.

    Trio hands over groups of errors; a group is expected when everything in it is, and then the
    one with something to say counts.
    """
    found = leaves(error)
    telling = (UserError, TopologyError)
    if not all(isinstance(e, (*telling, KeyboardInterrupt, BrokenPipeError)) for e in found):
        return None
    return next((e for e in found if isinstance(e, telling)), found[0])


def _report(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has gone (onyx ... | head).  What is still buffered goes
        # nowhere, or Python would complain about it when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    print(f"onyx: {error}", file=sys.stderr)
    return error.exit_code if isinstance(error, UserError) else EXIT_CONFIG
