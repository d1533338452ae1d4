"""PlanningOptions: whether the registration service plans by itself (``[planning]``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from overlay.toml_table import TomlTable, table_lines


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """When the registration service makes a plan by itself, and how fast profiles move by it.

    auto              None: where Spark is installed; True: it must be
    master            of Spark; "": the packaged one, on all cores of the registration service's
                      machine
    at_profiles       with fewer there is no first plan
    drift             share of the profiles that must have changed since the plan was looked at
                      last, before it is looked at again
    moves_per_second  that begin
    settle_s          for which there must be a reason, without many changes meanwhile
    between_s         between two plans, at least
    """

    auto: bool | None = None
    master: str = ""
    at_profiles: int = 1_000
    drift: float = 0.2
    moves_per_second: float = 10.0
    settle_s: float = 60.0
    between_s: float = 3_600.0


def read_planning(top: TomlTable) -> PlanningOptions:
    """``[planning]`` of a topology file; TopologyError for what is wrong in it."""
    table = top.table("planning", [field.name for field in fields(PlanningOptions)])
    default = PlanningOptions()
    return PlanningOptions(
        auto=table.flag("auto") if "auto" in table else None,
        master=table.text("master") if "master" in table else "",
        at_profiles=table.integer("at_profiles", 1, 1_000_000_000, default.at_profiles),
        drift=table.number("drift", 0.001, 100, default.drift),
        moves_per_second=table.number("moves_per_second", 0.01, 10_000, default.moves_per_second),
        settle_s=table.number("settle_s", 0, 86_400, default.settle_s),
        between_s=table.number("between_s", 0, 31_536_000, default.between_s),
    )


def planning_to_toml(options: PlanningOptions) -> Iterator[str]:
    """The lines of ``[planning]``, every value written out; none for the usual options."""
    if options != PlanningOptions():
        yield from table_lines("planning", options)
