"""The command ``onyx``: finds the verb, runs it, and turns errors into messages and exit codes.

To add a noun: put it into ``VERBS`` (verb.py), and write its module in this package with
``add_parser``; commands that only ask come from the table of verbs (``add_commands`` of asking.py).
A module is imported when a command line chooses it, so that no verb costs what others need; what is
imported here every command pays for (``python -m benchmarks operate``).
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NoReturn, cast

from onyx.cli.verb import COMMON, VERBS, Parser, Verb
from onyx.errors import EXIT_OK, EXIT_USAGE, UserError, exit_code_of, leaves

SOUTHERN = re.compile(r"-[0-9.]+,\s*-?[0-9.]+")  # coordinates

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE

DESCRIPTION = """\
Onyx brings XML messages from data sources to users, through a network of brokers.
A user registers a profile, a query in XQuery; every message is matched inside the
network against every profile, and each user gets exactly what their profile asks for.

examples:
  onyx topology show topologies/figure4.toml    look at a network before starting it
  onyx up topologies/figure4.toml               start it; then, in another terminal:
  export ONYX_REGISTRATION=127.0.0.1:7200
  onyx source register --name weather           prints the source's id
  onyx profile add storms.xq --wait             prints the profile's id
  onyx source publish SOURCE report.xml
  onyx subscribe PROFILE
  onyx VERB --help                              more about a verb, with examples
"""

EPILOG = f"""\
options of most verbs:
{"".join(f"  {usage:<26}{says}{chr(10)}" for usage, says in COMMON.items())}
--registration, --topology or --context says which network is meant. You are its operator
if you have started it; others give a file from onyx cert issue as their --credentials,
and without one get exit code 77.

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
    if sys.stdout.isatty() or sys.stderr.isatty():
        from overlay.plain_text import use_plain_streams  # noqa: PLC0415 - of terminals alone

        use_plain_streams()
    words = _with_coordinates(sys.argv[1:] if argv is None else argv)
    parser = build_parser([word for word in words if not word.startswith("-")][:1])
    arguments = parser.parse_args(words)
    if not hasattr(arguments, "run"):
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BaseException as error:
        expected = _expected_error(error)
        if expected is None:
            raise
        return _report(expected)
    return code


def _with_coordinates(words: Sequence[str]) -> list[str]:
    """``--location -33.9,18.4`` as one word: argparse takes the second for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--location" and SOUTHERN.fullmatch(word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def build_parser(chosen: Collection[str]) -> argparse.ArgumentParser:
    """The parser of command lines: ``chosen`` verbs with all that they take, the others by their
    summaries alone."""
    parser: argparse.ArgumentParser = Parser(
        prog="onyx",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_ShowVersion)
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB")
    for name, summary in VERBS.items():
        if name in chosen:
            load_verb(name).add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    return parser


class _ShowVersion(argparse.Action):
    """As argparse's own, but what it says is found out only when somebody asks."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        text = "show the release and which build of the engine runs"
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=text)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from formats.kernel import build_info  # noqa: PLC0415 - only for this
        from onyx.release import version  # noqa: PLC0415 - only for this

        print(f"onyx {version()}, {build_info()}")
        parser.exit()


def load_verb(name: str) -> Verb:
    """The module of a verb."""
    return cast("Verb", import_module(f"onyx.cli.{name.replace('-', '_')}"))


def _run(arguments: argparse.Namespace) -> int:
    path = getattr(arguments, "credentials", None)
    if path is None and hasattr(arguments, "context"):
        from onyx.cli.network_option import context_of  # noqa: PLC0415 - of verbs that have it

        path = context_of(arguments).credentials_file
    if path is None:
        return _run_to_end(arguments)
    from onyx.identity.known_networks import use_credentials  # noqa: PLC0415 - only for this

    with use_credentials(path):
        return _run_to_end(arguments)


def _run_to_end(arguments: argparse.Namespace) -> int:
    done = arguments.run(arguments)
    if hasattr(done, "__await__"):
        import trio  # noqa: PLC0415 - of verbs that ask

        async def wait() -> int | None:
            return cast("int | None", await done)

        done = trio.run(wait)
    return int(done or EXIT_OK)


def _expected_error(error: BaseException) -> Any:
    """The error to report to the user, or None for a fault of the program.

    Trio hands over groups of errors; a group is expected when everything in it is, and then the
    one with something to say counts.
    """
    from formats.errors import Refusal  # noqa: PLC0415 - only when something failed

    found = leaves(error)
    telling = (UserError, Refusal)
    if not all(isinstance(e, (*telling, KeyboardInterrupt, BrokenPipeError)) for e in found):
        return None
    return next((e for e in found if isinstance(e, telling)), found[0])


def _report(error: Any) -> int:
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has gone (onyx ... | head).  What is still buffered goes
        # nowhere, or Python would complain about it when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    print(f"onyx: {error}", file=sys.stderr)
    return exit_code_of(error)
