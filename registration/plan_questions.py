"""What the registration service asks its planner (planner_desk.py), and what that answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formats.schema import Schema
from overlay.topology import Topology
from registration.catalog import ProfileEntry


@dataclass(frozen=True, slots=True)
class PlanWanted:
    """For the ``profiles`` and brokers of a network; brokers without capacity get none.

    ``schemas`` of its sources, of which some ``have_none``; ``plan``: the text of the one in force
    (b"": none), and of ``messages`` under it, how many ``matched`` in which partition.
    """

    profiles: Sequence[ProfileEntry]
    topology: Topology
    schemas: tuple[Schema, ...] = ()
    have_none: bool = False
    plan: bytes = b""
    messages: float = 0.0
    matched: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True, slots=True)
class PlanMade:
    """``text`` as a plan.json; it took so many ``seconds``."""

    text: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """``reason`` in a line, for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class PlannerTask:
    """What the planning process finds in its directory, beside the profiles: ``topology`` as TOML,
    ``archive`` directories or addresses (spark/inputs.py), and what PlanWanted has."""

    topology: str
    schemas: list[tuple[str, str, bytes]]
    have_none: bool
    archive: list[str]
    plan: bytes
    messages: float
    matched: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """What it leaves there: a plan, or why there is none."""

    plan: bytes = b""
    failure: str = ""


TASK_FILE = "task.msgpack"
PROFILES_FILE = "profiles.jsonl"
RESULT_FILE = "result.msgpack"
