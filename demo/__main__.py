"""``python -m demo``: the paper's Figure 4 as six broker processes, every delivery checked.

Exit code 0: every user got exactly what their profiles ask for.  1: something is missing, extra,
twice or wrong, or something was left behind.  2: the demo could not be run at all.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import trio

from demo.cleanup import leftovers
from demo.expectations import start_expecting
from demo.network import DemoNetwork, NetworkFailure
from demo.outcome import Outcome, judge_run
from demo.profile_files import ProfileFileError
from demo.report import Report, to_json
from demo.scenario import Scenario, ScenarioError, built_in_scenario, folder_scenario
from onyx import UserError
from overlay.link.lone_error import lone_error
from overlay.topology import Topology, TopologyError, Transformation, load_topology

TOPOLOGY = Path(__file__).resolve().parent.parent / "topologies" / "figure4.toml"
DEFAULT_SEED = 2004
EXIT_GOOD, EXIT_FAULTS, EXIT_NOT_RUN, EXIT_INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    # Whatever the locale is: the summary has arrows and boxes in it.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    # To be told to end is to be interrupted: everything is taken down in order.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        topology = load_topology(TOPOLOGY)
        if not options.whole_messages:
            topology = topology.transforming(Transformation.PROJECTION)
        scenario = _scenario(options, topology)
        stream = sys.stderr if options.json else sys.stdout
        colour = stream.isatty() and "NO_COLOR" not in os.environ
        report = Report(stream, scenario, quiet=options.quiet, colour=colour)
        outcome = _play(scenario, topology, report, planned=not options.by_location)
    except (ScenarioError, ProfileFileError, TopologyError, NetworkFailure, UserError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_NOT_RUN
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    if options.json:
        print(json.dumps(to_json(outcome), indent=2, ensure_ascii=False))
    else:
        report.summary(outcome)
    return EXIT_GOOD if outcome.good else EXIT_FAULTS


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Six broker processes, four data sources, users with profiles; every "
        "delivery is checked against an independent evaluation of each profile.",
    )
    parser.add_argument(
        "--messages", metavar="DIR", type=Path, help="publish the XML files in DIR instead"
    )
    parser.add_argument(
        "--limit", metavar="N", type=_positive, help="at most N messages of each source"
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=DEFAULT_SEED, help=f"default: {DEFAULT_SEED}"
    )
    parser.add_argument(
        "--by-location",
        action="store_true",
        help="place profiles near their users instead of by a plan",
    )
    parser.add_argument(
        "--whole-messages",
        action="store_true",
        help="cut nothing out of messages that nobody behind a link needs",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not show each message on its way")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _scenario(options: argparse.Namespace, topology: Topology) -> Scenario:
    if options.messages is None:
        return built_in_scenario(options.seed, options.limit)
    cities = [broker.label for broker in topology.brokers]
    return folder_scenario(options.messages, options.seed, cities, options.limit)


def _play(scenario: Scenario, topology: Topology, report: Report, *, planned: bool) -> Outcome:
    """Run the network while the oracle works, and compare."""
    report.step(
        f"Onyx demo: {scenario.title}: {len(scenario.messages)} messages of "
        f"{len(scenario.sources)} sources, {len(scenario.profiles)} profiles"
    )
    profiles = [profile.text for profile in scenario.profiles]
    data = [(message.data, message.media_type) for message in scenario.messages]
    network = DemoNetwork(scenario, topology, report, planned=planned)
    with start_expecting(profiles, data) as expecting:
        with tempfile.TemporaryDirectory(prefix="onyx-demo-") as directory:
            try:
                run = trio.run(network.play, Path(directory) / "data")
            except BaseExceptionGroup as group:
                raise lone_error(group) from None
        report.step("the network is stopped; checking every delivery")
        left = leftovers(network.pids, network.addresses, Path(directory))
        expectations = expecting.wait(report.step)
    return judge_run(scenario, run, expectations, left)


if __name__ == "__main__":
    sys.exit(main())
