"""``onyx bench``: how fast a network is, and whether it was faster."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import trio

from onyx.bench import Measure, Sizes, checked_baseline, regressions, run_bench
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import not_negative, positive, print_json, read_text, table
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.data_directory import write_atomically
from onyx.errors import EXIT_OK, UnreadableInput
from onyx.release import version

EXIT_SLOWER = 1
HEADING = ("MEASURE", "COUNT", "P50 MS", "P99 MS", "P99.9 MS", "PER S")

DETAILS = f"""\
Publishes messages of its own to a source of its own, and takes them by profiles of its own:
until a message is accepted (publish), is delivered to one profile (deliver) and to many
(fan_out), many messages under way at once (stream), and until a new profile is live at
every broker (churn). Nobody else's profile is asked for but those that want everything.
Source and profiles are removed at the end, and when it is interrupted.

--save FILE writes what was measured; --baseline FILE compares with it.

Exit code 1: something is slower than in the baseline by more than --tolerance.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx bench --topology topologies/figure4.toml
  onyx bench --save before.json
  onyx bench --baseline before.json --tolerance 0.3
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = add_verb(
        subparsers,
        "bench",
        "measure how fast a network is",
        details=DETAILS,
        examples=EXAMPLES,
    )
    usual = Sizes()
    for name, what in (
        ("messages", "for each measure"),
        ("bytes", "of a message, about"),
        ("profiles", "that get the same message in fan_out"),
        ("changes", "profiles that are added and removed"),
    ):
        value = getattr(usual, name)
        text = f"{what} (default: {value})"
        parser.add_argument(f"--{name}", metavar="N", type=positive, default=value, help=text)
    parser.add_argument("--save", metavar="FILE", type=Path, help="write a baseline")
    parser.add_argument("--baseline", metavar="FILE", help="compare with this one")
    parser.add_argument(
        "--tolerance",
        metavar="SHARE",
        type=not_negative,
        default=0.5,
        help="how much slower is as fast (default: 0.5, as networks are noisy)",
    )
    set_run(parser, run)
    add_client_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    baseline = None if arguments.baseline is None else _baseline(arguments.baseline)
    sizes = Sizes(arguments.messages, arguments.bytes, arguments.profiles, arguments.changes)
    found = trio.run(run_bench, registration_address(arguments), sizes)
    if arguments.json:
        for measure in found:
            print_json(asdict(measure))
    else:
        print(table(HEADING, [tuple(asdict(measure).values()) for measure in found]))
    if arguments.save is not None:
        save(arguments.save, found, sizes)
    slower = [] if baseline is None else regressions(found, baseline, arguments.tolerance)
    for line in slower:
        print(f"onyx: slower: {line}", file=sys.stderr)
    return EXIT_SLOWER if slower else EXIT_OK


def save(path: Path, found: Sequence[Measure], sizes: Sizes) -> None:
    """UnwritableOutput."""
    measures = {
        measure.name: {k: v for k, v in asdict(measure).items() if k != "name"} for measure in found
    }
    said = {"release": version(), "sizes": asdict(sizes), "measures": measures}
    write_atomically(path, (json.dumps(said, indent=1) + "\n").encode())


def _baseline(name: str) -> dict[str, dict[str, float]]:
    try:
        return checked_baseline(json.loads(read_text(name)), name)
    except ValueError as error:
        raise UnreadableInput(f"{name} is no JSON: {error}") from None
