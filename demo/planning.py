"""The demo's plan: computed on the spot, by the command that anyone would use.

``onyx plan make`` runs as a process of its own, with Spark inside it, while the network starts.  It
needs no Java on the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import trio

from demo.scenario import Scenario
from formats.media_types import suffix_of
from overlay.topology import Topology, to_toml
from registration.planning.plan import Placer, Plan
from registration.planning.plan_file import PlanError, from_json

PARTITIONS_A_BROKER = 2
PLANNING_SECONDS = 600.0


class PlanningFailure(Exception):
    """There is no plan; the text says why."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """``text`` is what the registration service is given; ``partition_of`` each profile, in the
    scenario's order."""

    plan: Plan
    text: bytes
    partition_of: tuple[int, ...]


async def make_demo_plan(scenario: Scenario, topology: Topology, directory: Path) -> DemoPlan:
    """The plan for a scenario's profiles, from its own messages; PlanningFailure."""
    _write_inputs(scenario, topology, directory)
    command = [
        *(sys.executable, "-m", "onyx", "plan", "make", str(directory / "profiles.jsonl")),
        *("--topology", str(directory / "topology.toml")),
        *("--archive", str(directory / "messages")),
        *("--partitions", str(PARTITIONS_A_BROKER * len(topology.brokers))),
        *("--out", str(directory / "plan")),
    ]
    with trio.move_on_after(PLANNING_SECONDS) as patience:
        ran = await trio.run_process(
            command, check=False, stdout=subprocess.DEVNULL, capture_stderr=True
        )
    if patience.cancelled_caught:
        raise PlanningFailure(f"not done after {PLANNING_SECONDS:g} s")
    if ran.returncode != 0:
        lines = ran.stderr.decode(errors="replace").strip().splitlines()
        raise PlanningFailure(lines[-1] if lines else f"exit code {ran.returncode}")
    text = (directory / "plan" / "plan.json").read_bytes()
    try:
        plan = from_json(text)
    except PlanError as error:
        raise PlanningFailure(str(error)) from None
    placer = Placer(plan)
    partitions = tuple(placer.place(profile.text).partition for profile in scenario.profiles)
    return DemoPlan(plan, text, partitions)


def _write_inputs(scenario: Scenario, topology: Topology, directory: Path) -> None:
    messages = directory / "messages"
    messages.mkdir(parents=True)
    (directory / "topology.toml").write_text(to_toml(topology), encoding="utf-8")
    with (directory / "profiles.jsonl").open("w", encoding="utf-8") as stream:
        for number, profile in enumerate(scenario.profiles):
            stream.write(json.dumps({"profile": str(number), "text": profile.text}) + "\n")
    for number, message in enumerate(scenario.messages):
        name = f"{number}{suffix_of(message.media_type)}"
        (messages / name).write_bytes(message.data)
