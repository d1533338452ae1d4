"""``onyx plan use | status | diff``: a plan and the network that it is for, or another plan.

What moves profiles is in plan_apply.py.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict, replace
from importlib import import_module, util
from pathlib import Path

import trio

from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.plan_apply import said
from onyx.cli.plan_files import ASSIGNMENT_FILE, load_plan, read_plan_text
from onyx.cli.values import print_json, table
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.client_values import AutoPlan, PlanProgress
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_USAGE, RequestFailed, UserError
from onyx.registration_client import NetworkClient, RegistrationClient
from registration.planning.drift import Drift, Measured
from registration.planning.plan import Plan
from registration.planning.plan_file import PlanError, from_json, plan_id

NO_PLAN = "there is no plan in force; see onyx plan use --help"

USE_DETAILS = f"""\
The registration service places every new profile at the broker that the plan names,
except one that insists on its user's location (onyx profile add --near). Profiles that
are there stay where they are; onyx plan apply moves them. The plan survives a restart;
--none puts it out of force.
{NETWORK_HELP}"""

STATUS_DETAILS = f"""\
Compares what the plan in force promised with the network as it is: how much of the
population its patterns cover, how even the partitions are, how many profiles are not
where it would have them, at what share of the partitions and of the brokers a message
matches, as the brokers count it. Says when a new plan pays, how far a plan is that is
being applied, and why the registration service makes plans by itself, or does not.
{NETWORK_HELP}"""

DIFF_DETAILS = f"""\
Compares the rules of two plans, and, when both have their assignment beside them, says
how many profiles would move and between which brokers. With one PLAN: that with the one
in force in a network, and what onyx plan apply would move there.
{NETWORK_HELP}"""


def add_network_verbs(verbs: Subparsers) -> None:
    use = add_verb(
        verbs,
        "use",
        "place new profiles by a plan",
        details=USE_DETAILS,
        examples="  onyx plan use plan --topology network.toml\n  onyx plan use --none",
    )
    which = use.add_mutually_exclusive_group(required=True)
    which.add_argument("plan", metavar="PLAN", nargs="?", help="as onyx plan make has written it")
    which.add_argument("--none", action="store_true", help="place them by location")
    add_client_arguments(use)
    set_run(use, run_use)
    status = add_verb(
        verbs,
        "status",
        "say how far a network has drifted from its plan",
        details=STATUS_DETAILS,
        examples="  onyx plan status --topology network.toml",
    )
    add_client_arguments(status)
    set_run(status, run_status)
    diff = add_verb(
        verbs,
        "diff",
        "compare two plans",
        details=DIFF_DETAILS,
        examples="  onyx plan diff plan-may plan-june\n"
        "  onyx plan diff plan-june --topology network.toml",
    )
    diff.add_argument("old", metavar="OLD", nargs="?", help="default: the plan in force")
    diff.add_argument("new", metavar="NEW")
    add_client_arguments(diff)
    set_run(diff, run_diff)


# --- use --------------------------------------------------------------------------------------


def run_use(arguments: argparse.Namespace) -> int:
    text = b"" if arguments.none else read_plan_text(arguments.plan)
    if text:
        load_plan(arguments.plan)  # what is wrong with it is better said here

    async def use() -> str:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await registration.use_plan(text)

    try:
        used = trio.run(use)
    except* RequestFailed as group:
        raise UserError(str(group.exceptions[0]), EXIT_DATA) from None
    if arguments.json:
        print_json({"plan": used})
    else:
        print(f"new profiles are placed by plan {used}" if used else "there is no plan any more")
    return EXIT_OK


# --- status -----------------------------------------------------------------------------------


def run_status(arguments: argparse.Namespace) -> int:
    measured, progress, auto = trio.run(_look, arguments)
    if arguments.json:
        applied = {"state": progress.state, "moved": progress.moved}
        facts = _drift_facts(*measured) if measured else {"plan": ""}
        print_json({**facts, "applied": applied, "auto": asdict(auto)})
        return EXIT_OK
    if measured:
        _print_drift(*measured)
    else:
        print(NO_PLAN)
    if not progress.is_over:
        print(f"being applied: {said(progress)}")
    for line in auto.says:
        print(line)
    return EXIT_OK


def _print_drift(plan: Plan, drift: Drift) -> None:
    facts = plan.facts
    measured = drift.measured
    rows = [
        ("profiles", f"{facts.load:,.0f}", f"{drift.profiles:,}"),
        ("coverage", f"{facts.coverage:.2%}", f"{drift.coverage:.2%}"),
        ("largest partition / mean", f"{facts.imbalance:.2f}", f"{drift.imbalance:.2f}"),
        (
            "partitions that a message matches",
            f"{facts.matched_share:.2%}",
            _percent(measured.matched_share),
        ),
        (
            "brokers that a message matches at",
            f"{facts.brokers_share:.2%}",
            _percent(measured.brokers_share),
        ),
        ("not where the plan has them", "-", f"{drift.misplaced:,}"),
        ("near their user instead", "-", f"{drift.near:,}"),
    ]
    print(f"plan {plan_id(plan)} of {plan.topology}")
    print(table(("", "PLAN", "NOW"), rows))
    reasons = drift.reasons(plan)
    for reason in reasons:
        print(f"a new plan pays: {reason}")
    if not reasons:
        print("the plan is good")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


async def _look(
    arguments: argparse.Namespace,
) -> tuple[tuple[Plan, Drift] | None, PlanProgress, AutoPlan]:
    async with RegistrationClient(registration_address(arguments)) as registration:
        plan = await _plan_in_force(registration)
        measured = None if plan is None else (plan, await _measure(registration))
        return measured, await registration.plan_progress(), await registration.auto_plan()


async def _measure(registration: RegistrationClient) -> Drift:
    drift = await registration.census()
    messages, matched_share = await registration.matched_share()
    brokers = await registration.brokers()
    published = matched = 0
    for address in brokers.values():
        async with NetworkClient(address) as client:
            data = (await client.statistics())["data"]
            published += data.get("published", 0)
            matched += data.get("matched_here", 0)
    share = matched / published / len(brokers) if published else None
    return replace(drift, measured=Measured(share, messages, matched_share))


async def _plan_in_force(registration: RegistrationClient) -> Plan | None:
    text = await registration.plan()
    try:
        return from_json(text, "the plan in force") if text else None
    except PlanError as error:
        raise UserError(str(error), EXIT_DATA) from None


def _drift_facts(plan: Plan, drift: Drift) -> dict[str, object]:
    return {
        "plan": plan_id(plan),
        "profiles": drift.profiles,
        "misplaced": drift.misplaced,
        "near": drift.near,
        "coverage": round(drift.coverage, 6),
        "planned_coverage": round(plan.facts.coverage, 6),
        "largest_over_mean": round(drift.imbalance, 4),
        "planned_largest_over_mean": round(plan.facts.imbalance, 4),
        "messages": round(drift.measured.messages),
        "matched_share": drift.measured.matched_share,
        "predicted_matched_share": plan.facts.matched_share,
        "brokers_share": drift.measured.brokers_share,
        "predicted_brokers_share": plan.facts.brokers_share,
        "new_plan_pays": drift.reasons(plan),
    }


# --- diff -------------------------------------------------------------------------------------


def run_diff(arguments: argparse.Namespace) -> int:
    new = load_plan(arguments.new)
    moves: Counter[tuple[str, str]] | None
    if arguments.old is None:
        old, moves = trio.run(_compare_with_network, arguments)
    else:
        old = load_plan(arguments.old)
        moves = _moves(Path(arguments.old), Path(arguments.new))
    before = {rule.pattern: rule for rule in old.rules}
    after = {rule.pattern: rule for rule in new.rules}
    facts: dict[str, object] = {
        "old": plan_id(old),
        "new": plan_id(new),
        "partitions": [old.partitions, new.partitions],
        "patterns_added": sorted(after.keys() - before.keys()),
        "patterns_removed": sorted(before.keys() - after.keys()),
        "matched_share": [old.facts.matched_share, new.facts.matched_share],
        "largest_over_mean": [round(plan.facts.imbalance, 4) for plan in (old, new)],
        "coverage": [round(plan.facts.coverage, 6) for plan in (old, new)],
    }
    if moves is not None:
        facts["profiles_in_both"] = moves.total()
        facts["profiles_that_move"] = sum(n for (a, b), n in moves.items() if a != b)
        facts["moves"] = [
            {"from": a, "to": b, "profiles": n} for (a, b), n in moves.most_common() if a != b
        ]
    if arguments.json:
        print_json(facts)
        return EXIT_OK
    for key, value in facts.items():
        if key != "moves":
            print(f"{key.replace('_', ' '):<20} {_shown(value)}")
    if moves is None:
        print("profiles that move   unknown: not both plans have their assignment beside them")
    else:
        rows = [(a, b, n) for (a, b), n in moves.most_common() if a != b][:20]
        if rows:
            print(table(("FROM", "TO", "PROFILES"), rows))
    return EXIT_OK


async def _compare_with_network(
    arguments: argparse.Namespace,
) -> tuple[Plan, Counter[tuple[str, str]]]:
    """The plan in force, and where the profiles of the network would go by the new one."""
    async with RegistrationClient(registration_address(arguments)) as registration:
        old = await _plan_in_force(registration)
        if old is None:
            raise UserError(NO_PLAN, EXIT_USAGE)
        drift = await registration.census(read_plan_text(arguments.new))
    moves = Counter(drift.moves)
    moves["", ""] = drift.profiles - moves.total()  # at home
    return old, moves


def _moves(old: Path, new: Path) -> Counter[tuple[str, str]] | None:
    """How many profiles of both assignments have which (old, new) broker, or partition if the
    plans have no brokers; None if one is missing."""
    files = [path / ASSIGNMENT_FILE for path in (old, new)]
    if not all(file.exists() for file in files):
        return None
    if util.find_spec("pyarrow") is None:
        print("onyx: to see what moves: pip install 'onyx-dissemination[spark]'", file=sys.stderr)
        return None
    dataset = import_module("pyarrow.dataset")
    columns = ["profile", "broker", "partition"]
    one, other = (dataset.dataset(file, format="parquet").to_table(columns) for file in files)
    joined = one.join(other, "profile", join_type="inner", right_suffix="_new")
    key = "partition" if joined["broker"].null_count else "broker"
    counted = joined.group_by([key, f"{key}_new"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(str(r[key]), str(r[f"{key}_new"])): r["count_all"] for r in counted})


def _shown(value: object) -> str:
    if isinstance(value, list):
        if len(value) == 2 and not isinstance(value[0], str):
            return f"{value[0]} -> {value[1]}"
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
