"""``onyx plan make | show | place``: which profiles belong together, and where.

The verbs that need a network, and ``diff``, are in plan.py and plan.py.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module, util
from math import isinf
from pathlib import Path

import trio

from formats.errors import about
from formats.schema import Schema, what_is_unread
from onyx.charts import Curve, columns_svg, curves_svg
from onyx.cli.asking import Told, add_commands, ask, network, tell
from onyx.cli.network_option import add_client_arguments
from onyx.cli.plan_files import ASSIGNMENT_FILE, PLAN_FILE, load_plan, read_plan_text
from onyx.cli.spark_options import SMALL_HELP, SPARK_HELP, add_spark_arguments, open_spark
from onyx.cli.values import print_json, read_text, say, say_unread, table
from onyx.cli.verb import Subparsers, add_arguments, add_noun, add_verb, not_negative
from onyx.data_directory import write_atomically
from onyx.errors import (
    EXIT_BUSY,
    EXIT_DATA,
    EXIT_OK,
    UsageError,
    UserError,
    file_errors,
)
from onyx.registration_client import NetworkClient, RegistrationClient
from onyx.schema_path import load_schema
from overlay import verbs
from overlay.answers import Drift, PlanProgress, PlanUsed
from overlay.statistics import BrokerStatistics
from overlay.topology import load_topology
from registration.planning.drift import Measured, reasons_for_another
from registration.planning.plan import Placer, Plan, Rule
from registration.planning.plan_file import from_json, plan_id, to_json
from registration.planning.planner import (
    PARTITIONS,
    PARTITIONS_A_BROKER,
    PlanOptions,
)
from registration.spark.input_files import FORMATS, are_small
from registration.spark.plan_job import SAMPLES_MAX, PlanJob, PlanResult, run_plan_job
from registration.spark.population import RefusedProfile
from registration.spark.profile_lines import KEYS_HELP

# -------------------------------------------------------------------------------------------------
# ``onyx plan apply | auto | pause | resume | abort``: profiles move to where a plan has them.


LOOK_SECONDS = 0.5

APPLY_DETAILS = """\
Puts PLAN in force (without PLAN: takes the one that is) and moves the profiles that are
elsewhere to the brokers that it names, while messages flow: nobody misses a result or
gets one twice, and subscribers follow by themselves. Profiles that insist on a broker
near their user stay.

The registration service does it, --rate moves a second and --at-once at a time. This
command only watches: when it is interrupted, or the service or a broker is restarted,
the moves go on where they were. Asked again it watches again; a new --rate or --at-once
is in force at once. At the end it says what has come of it; the exit code is 75 when
profiles had to stay where they are."""

AUTO_DETAILS = """\
By itself it does so wherever Spark is installed and a network has several brokers and
enough profiles ([planning] of its file), unless somebody has put a plan in force, or out
of force, with onyx plan use: then it leaves that alone until it is asked by this command.
onyx plan status says what it does, and why."""

APPLY_EXAMPLES = """\
  onyx plan apply plan --dry-run --topology network.toml
  onyx plan apply plan --rate 20 --topology network.toml
  onyx plan apply --detach --topology network.toml
"""


def add_apply_verbs(subverbs: Subparsers) -> None:
    takes = {
        "plan [PLAN]": "a directory of onyx plan make (default: the plan in force)",
        "--dry-run": "only say what would move",
        "--rate N": "moves that begin in a second (default: 50)",
        "--at-once N": "moves that are under way (default: 16)",
        "--detach": "do not wait until all have moved",
    }
    apply = add_verb(
        *(subverbs, "apply", "move profiles to where a plan has them, live", run_apply, takes),
        details=APPLY_DETAILS,
        examples=APPLY_EXAMPLES,
        kinds={"rate": not_negative},
    )
    add_client_arguments(apply)
    auto = add_verb(
        *(subverbs, "auto", "have the registration service plan by itself, or not", run_auto),
        {"--off": "make no plans until it is asked again"},
        details=AUTO_DETAILS,
        examples="  onyx plan auto --topology network.toml\n  onyx plan auto --off",
    )
    add_client_arguments(auto)
    told = Told(said)
    steering = dict.fromkeys((verbs.PlanPause, verbs.PlanResume, verbs.PlanAbort), told)
    add_commands(subverbs, "plan", told=steering)


def said(progress: PlanProgress) -> str:
    """How far it is, in a line."""
    parts = [f"{progress.moved:,} moved", f"{progress.under_way:,} under way"]
    if progress.state == "running":
        parts.append(f"{progress.looked_at:,} of {progress.profiles:,} profiles looked at")
    parts += [f"{count:,} wait: {reason}" for reason, count in sorted(progress.put_off.items())]
    return f"{progress.state}, {', '.join(parts)}"


# --- apply ------------------------------------------------------------------------------------


async def run_apply(arguments: argparse.Namespace) -> int:
    text = b""
    if arguments.plan is not None:
        text = read_plan_text(arguments.plan)
        load_plan(arguments.plan)  # what is wrong with it is better said here
    if arguments.dry_run:
        drift = await ask(arguments, verbs.PlanCensus(plan=text))
        return _print_drift_of_plan(drift, as_json=arguments.json)
    return _print_outcome(await _apply(arguments, text), arguments)


async def _apply(arguments: argparse.Namespace, text: bytes) -> PlanProgress:
    """Begin, and watch until it is over, or until the watcher has had enough."""
    async with network(arguments) as registration:
        if text:
            await registration.use_plan(text)
        progress = await registration.apply_plan(rate=arguments.rate, at_once=arguments.at_once)
        if arguments.detach:
            return progress
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            before = ""
            while not progress.is_over:
                if said(progress) != before:
                    before = said(progress)
                    print(f"plan: {before}", file=sys.stderr)
                with trio.move_on_after(LOOK_SECONDS):
                    await anext(signals)
                    return await registration.plan_progress()
                progress = await registration.plan_progress()
        return progress


async def run_auto(arguments: argparse.Namespace) -> None:
    auto = await ask(arguments, verbs.PlanAuto(on=not arguments.off))
    tell(arguments, auto, Told(lambda auto: "\n".join(auto.says)))


def _print_drift_of_plan(drift: Drift, *, as_json: bool) -> int:
    if as_json:
        pairs = [{"from": old, "to": new, "profiles": count} for old, new, count in drift.moves]
        print_json({"profiles": drift.profiles, "would_move": drift.misplaced, "moves": pairs})
        return EXIT_OK
    print(f"{drift.misplaced:,} of {drift.profiles:,} profiles would move")
    if drift.moves:
        print(table(("FROM", "TO", "PROFILES"), drift.moves))
    return EXIT_OK


def _print_outcome(progress: PlanProgress, arguments: argparse.Namespace) -> int:
    stay = sum(progress.put_off.values())
    if arguments.json:
        print_json(progress.shown())
    elif not progress.is_over:
        print(f"plan {progress.plan}: {said(progress)}")
        print("the registration service goes on with it; see onyx plan status")
    else:
        print(f"plan {progress.plan} is {_ENDS[progress.state]}: {progress.moved:,} profiles moved")
        brokers = sorted(progress.came.keys() | progress.left.keys())
        if brokers:
            rows = [(b, progress.came.get(b, 0), progress.left.get(b, 0)) for b in brokers]
            print(table(("BROKER", "CAME", "LEFT"), rows))
        for reason, count in sorted(progress.put_off.items()):
            print(f"{count:,} stay where they are: {reason}")
    is_good = progress.state == "done" and not stay
    return EXIT_OK if is_good or not progress.is_over else EXIT_BUSY


_ENDS = {"done": "applied", "aborted": "aborted", "never": "not applied"}


# -------------------------------------------------------------------------------------------------
# The report on a plan: one HTML page with its pictures in it, for people who decide on it.


_RULES_SHOWN = 50

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 "Inter", "Segoe UI", "Helvetica Neue", Arial, sans-serif;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.25rem 0.6rem; border-bottom: 1px solid #8884; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-size: 0.85rem; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
.warning { border-left: 4px solid #c2410c; padding-left: 0.8rem; }
"""


def load_svg(plan: Plan) -> str:
    """The load of each partition."""
    return columns_svg("Load of each partition", "partition", "profiles", plan.facts.loads)


def coverage_svg(plan: Plan) -> str:
    """How much of the population the first patterns of the plan place."""
    placed = 0.0
    points = [(0.0, 0.0)]
    for number, rule in enumerate(sorted(plan.rules, key=lambda rule: -rule.load), 1):
        placed += rule.load
        points.append((float(number), 100 * placed / plan.facts.load))
    return curves_svg(
        "Coverage by the number of patterns",
        "patterns, the largest first",
        "profiles placed (%)",
        [Curve("coverage", points)],
    )


def plan_report(
    plan: Plan, refused: Sequence[RefusedProfile] = (), messages_refused: int = 0
) -> str:
    """The page."""
    facts = plan.facts
    basis = (
        f"measured on {facts.samples:,} sampled messages"
        if facts.samples
        else "estimated without messages, from the schemas"
    )
    rows = [
        ("profiles (by load)", f"{facts.load:,.0f}"),
        ("partitions", f"{plan.partitions:,}"),
        ("patterns", f"{len(plan.rules):,}"),
        ("coverage", f"{facts.coverage:.2%}"),
        ("largest partition over the mean", f"{facts.imbalance:.3f}"),
        ("partitions that a message visits", f"{facts.matched_share:.2%}, {basis}"),
    ]
    if plan.brokers:
        rows.append(("topology", plan.topology))
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>Plan {plan_id(plan)}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>Plan <code>{plan_id(plan)}</code></h1>",
        _table(("", ""), rows, numbers=()),
        *_warnings(plan, refused, messages_refused),
        "<h2>Coverage</h2>",
        coverage_svg(plan),
        "<h2>Load</h2>",
        load_svg(plan),
        "<h2>Patterns</h2>",
        *_patterns(plan),
        *_brokers(plan),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _patterns(plan: Plan) -> Iterator[str]:
    shown = plan.rules[:_RULES_SHOWN]
    heading = (
        "pattern",
        "profiles",
        "at most in a message",
        "values in a message",
        "partitions",
        "single values",
    )
    yield _table(heading, [_pattern_row(rule) for rule in shown], numbers=range(1, 6))
    if len(plan.rules) > len(shown):
        yield f"<p>… and {len(plan.rules) - len(shown):,} more, all in plan.json.</p>"


def _pattern_row(rule: Rule) -> tuple[str, ...]:
    return (
        rule.pattern,
        f"{rule.load:,.0f}",
        "no bound" if isinf(rule.at_most) else f"{rule.at_most:g}",
        f"{rule.expected:.2f}",
        f"{rule.spread:,}",
        f"{len(rule.values):,}",
    )


def _brokers(plan: Plan) -> Iterator[str]:
    if not plan.brokers:
        return
    counts = Counter(plan.brokers)
    loads: Counter[str] = Counter()
    for broker, load in zip(plan.brokers, plan.facts.loads, strict=True):
        loads[broker] += round(load)
    yield "<h2>Brokers</h2>"
    yield _table(
        ("broker", "partitions", "profiles"),
        [(broker, f"{counts[broker]:,}", f"{loads[broker]:,}") for broker in sorted(counts)],
        numbers=(1, 2),
    )


def _warnings(
    plan: Plan, refused: Sequence[RefusedProfile], messages_refused: int
) -> Iterator[str]:
    if plan.facts.refused:
        yield f'<p class="warning">{plan.facts.refused:,} texts are no profiles and were left out.'
        yield f"{'The first' if plan.facts.refused > len(refused) else 'They'}:</p>"
        rows = [(entry.profile, entry.reason) for entry in refused]
        yield _table(("profile", "reason"), rows, numbers=())
    if messages_refused:
        yield f'<p class="warning">{messages_refused:,} sampled messages could not be read.</p>'


def _table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] | range
) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "".join(
            f'<{tag} class="number">{escape(cell)}</{tag}>'
            if place in numbers
            else f"<{tag}>{escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )

    head = f"<tr>{line('th', heading)}</tr>" if any(heading) else ""
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table>{head}{body}</table>"


# -------------------------------------------------------------------------------------------------
# ``onyx plan use | status | diff``: a plan and the network that it is for, or another plan.
#
# What moves profiles is in plan.py.


NO_PLAN = "there is no plan in force; see onyx plan use --help"

USE_DETAILS = """\
The registration service places every new profile at the broker that the plan names,
except one that insists on its user's location (onyx profile add --near). Profiles that
are there stay where they are; onyx plan apply moves them. The plan survives a restart;
--none puts it out of force."""

STATUS_DETAILS = """\
Compares what the plan in force promised with the network as it is: how much of the
population its patterns cover, how even the partitions are, how many profiles are not
where it would have them, at what share of the partitions and of the brokers a message
matches, as the brokers count it. Says when a new plan pays, how far a plan is that is
being applied, and why the registration service makes plans by itself, or does not."""

DIFF_DETAILS = """\
Compares the rules of two plans, and, when both have their assignment beside them, says
how many profiles would move and between which brokers. With one PLAN: that with the one
in force in a network, and what onyx plan apply would move there."""


def add_network_verbs(subverbs: Subparsers) -> None:
    use = add_verb(
        *(subverbs, "use", "place new profiles by a plan", run_use),
        details=USE_DETAILS,
        examples="  onyx plan use plan --topology network.toml\n  onyx plan use --none",
    )
    which = {"plan [PLAN]": "as onyx plan make has written it", "--none": "place them by location"}
    add_arguments(use.add_mutually_exclusive_group(required=True), which)
    status = add_verb(
        *(subverbs, "status", "say how far a network has drifted from its plan", run_status),
        details=STATUS_DETAILS,
        examples="  onyx plan status --topology network.toml",
    )
    diff = add_verb(
        *(subverbs, "diff", "compare two plans", run_diff),
        {"old [OLD]": "default: the plan in force", "new NEW": None},
        details=DIFF_DETAILS,
        examples="  onyx plan diff plan-may plan-june\n"
        "  onyx plan diff plan-june --topology network.toml",
    )
    for parser in (use, status, diff):
        add_client_arguments(parser)


# --- use --------------------------------------------------------------------------------------


async def run_use(arguments: argparse.Namespace) -> None:
    text = b"" if arguments.none else read_plan_text(arguments.plan)
    if text:
        load_plan(arguments.plan)  # what is wrong with it is better said here
    tell(arguments, await ask(arguments, verbs.PlanUse(plan=text)), Told(_used))


def _used(answer: PlanUsed) -> str:
    plan = answer.plan
    return f"new profiles are placed by plan {plan}" if plan else "there is no plan any more"


# --- status -----------------------------------------------------------------------------------


async def run_status(arguments: argparse.Namespace) -> None:
    async with network(arguments) as registration:
        plan = await _plan_in_force(registration)
        measured = None if plan is None else (plan, *await _measure(registration))
        progress, auto = await registration.plan_progress(), await registration.auto_plan()
    if arguments.json:
        applied = {"state": progress.state, "moved": progress.moved}
        facts = _drift_facts(*measured) if measured else {"plan": ""}
        print_json({**facts, "applied": applied, "auto": auto.shown()})
        return
    if measured:
        _print_drift(*measured)
    else:
        print(NO_PLAN)
    if not progress.is_over:
        print(f"being applied: {said(progress)}")
    for line in auto.says:
        print(line)


def _print_drift(plan: Plan, drift: Drift, measured: Measured) -> None:
    facts = plan.facts
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
    reasons = reasons_for_another(plan, drift, measured)
    for reason in reasons:
        print(f"a new plan pays: {reason}")
    if not reasons:
        print("the plan is good")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


async def _measure(registration: RegistrationClient) -> tuple[Drift, Measured]:
    drift = await registration.census()
    messages, matched_share = await registration.matched_share()
    brokers = await registration.brokers()
    published = matched = 0
    for address in brokers.values():
        async with NetworkClient(address) as client:
            data = (await client.statistics(BrokerStatistics)).data
            published += data.published
            matched += data.matched_here
    share = matched / published / len(brokers) if published else None
    return drift, Measured(share, messages, matched_share)


async def _plan_in_force(registration: RegistrationClient) -> Plan | None:
    text = await registration.plan()
    return from_json(text, "the plan in force") if text else None


def _drift_facts(plan: Plan, drift: Drift, measured: Measured) -> dict[str, object]:
    return {
        "plan": plan_id(plan),
        "profiles": drift.profiles,
        "misplaced": drift.misplaced,
        "near": drift.near,
        "coverage": round(drift.coverage, 6),
        "planned_coverage": round(plan.facts.coverage, 6),
        "largest_over_mean": round(drift.imbalance, 4),
        "planned_largest_over_mean": round(plan.facts.imbalance, 4),
        "messages": round(measured.messages),
        "matched_share": measured.matched_share,
        "predicted_matched_share": plan.facts.matched_share,
        "brokers_share": measured.brokers_share,
        "predicted_brokers_share": plan.facts.brokers_share,
        "new_plan_pays": reasons_for_another(plan, drift, measured),
    }


# --- diff -------------------------------------------------------------------------------------


async def run_diff(arguments: argparse.Namespace) -> None:
    new = load_plan(arguments.new)
    moves: Counter[tuple[str, str]] | None
    if arguments.old is None:
        old, moves = await _compare_with_network(arguments)
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
        return
    for key, value in facts.items():
        if key != "moves":
            print(f"{key.replace('_', ' '):<20} {_shown(value)}")
    if moves is None:
        print("profiles that move   unknown: not both plans have their assignment beside them")
    else:
        rows = [(a, b, n) for (a, b), n in moves.most_common() if a != b][:20]
        if rows:
            print(table(("FROM", "TO", "PROFILES"), rows))


async def _compare_with_network(
    arguments: argparse.Namespace,
) -> tuple[Plan, Counter[tuple[str, str]]]:
    """The plan in force, and where the profiles of the network would go by the new one."""
    async with network(arguments) as registration:
        old = await _plan_in_force(registration)
        if old is None:
            raise UsageError(NO_PLAN)
        drift = await registration.census(read_plan_text(arguments.new))
    moves = Counter({(a, b): count for a, b, count in drift.moves})
    moves["", ""] = drift.profiles - moves.total()  # at home
    return old, moves


def _moves(old: Path, new: Path) -> Counter[tuple[str, str]] | None:
    """How many profiles of both assignments have which (old, new) broker, or partition if the
    plans have no brokers; None if one is missing."""
    files = [path / ASSIGNMENT_FILE for path in (old, new)]
    if not all(file.exists() for file in files):
        return None
    if util.find_spec("pyarrow") is None:
        say("to see what moves: pip install 'onyx-dissemination[spark]'")
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


MAKE_EXAMPLES = """\
  onyx plan make profiles.txt --partitions 200 --out plan
  onyx plan make catalog.jsonl --topology network.toml --schema nitf.dtd --archive news/ --out plan
  onyx plan make catalog.jsonl --topology network.toml --keep plan --out plan-june
  onyx plan make hdfs:///profiles.parquet --master yarn --conf spark.executor.instances=20 \\
      --assignment hdfs:///plan/assignment.parquet --out plan
"""

OTHER_EXAMPLES = """\
  onyx plan show plan
  onyx plan place plan storms.xq
  onyx plan use plan --topology network.toml
  onyx plan apply plan --topology network.toml
  onyx plan status --topology network.toml
  onyx plan diff plan-may plan-june
"""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "plan",
        details="Profiles that a message hardly ever matches together are put into different\n"
        "partitions, so that it need not visit all brokers (the paper's PEP, section 4.4).",
        examples=MAKE_EXAMPLES + OTHER_EXAMPLES,
    )
    _add_make(subverbs)
    plan = "a directory that onyx plan make has written"
    add_verb(
        *(subverbs, "show", "sum up a plan", run_show),
        {"plan PLAN": plan, "--json": "print one JSON object"},
        examples="  onyx plan show plan",
    )
    add_verb(
        *(subverbs, "place", "say where a plan places profiles", run_place),
        {
            "plan PLAN": None,
            "files FILE|-...": "the text of a profile",
            "--json": "print an object a profile",
        },
        examples="  onyx plan place plan storms.xq\n  echo '//item' | onyx plan place plan -",
    )
    add_network_verbs(subverbs)
    add_apply_verbs(subverbs)


def _add_make(subverbs: Subparsers) -> None:
    takes = {
        "profiles PROFILES...": "text with a profile a line, .xq, .rq, .jsonl, or Parquet",
        f"--format {{{','.join(FORMATS)}}} =": "default: by the suffix",
        "--out DIR!": None,
        "--assignment PATH": "where the Parquet goes (default: into DIR)",
        "--partitions K": f"how many at most (default: {PARTITIONS_A_BROKER} a broker of the "
        f"topology, without one {PARTITIONS})",
        "--topology FILE": "gives the partitions to its brokers",
        "--schema FILE...": "the schema of a source",
        "--archive DIR|PARQUET|onyx://HOST:PORT...": "an archive, XML files or Parquet to count "
        "patterns in",
        f"--samples N = {SAMPLES_MAX}": "messages of the archive that are looked at (default: "
        f"{SAMPLES_MAX})",
        "--weights PARQUET =": "loads of profiles, from onyx backtest",
        "--keep PLAN": "the plan in force, of which the new one keeps as much as it can",
        "--json": "print one JSON object, and progress on standard error",
    }
    parser = add_verb(
        *(subverbs, "make", "make a plan of a population of profiles", run_make, takes),
        details="Writes into the directory of --out: plan.json (the rules), assignment.parquet\n"
        "(profile, partition, pattern, broker), report.html, and its pictures as SVG.\n"
        "Texts that are no profiles are left out, counted and listed.\n\n"
        f"{KEYS_HELP}\n\n{SMALL_HELP}\n{SPARK_HELP}",
        examples=MAKE_EXAMPLES,
    )
    add_spark_arguments(parser)


def run_make(arguments: argparse.Namespace) -> None:
    topology = load_topology(arguments.topology) if arguments.topology else None
    job = PlanJob(
        profiles=tuple(arguments.profiles),
        kind=arguments.format,
        options=PlanOptions(
            arguments.partitions, topology, load_plan(arguments.keep) if arguments.keep else None
        ),
        weights=arguments.weights,
        schemas=tuple(_read_schema(path) for path in arguments.schema),
        archive=tuple(arguments.archive),
        samples=arguments.samples,
        assignment=arguments.assignment or str(arguments.out / ASSIGNMENT_FILE),
    )
    with file_errors(arguments.out, "made"):
        arguments.out.mkdir(parents=True, exist_ok=True)
    profiles, archive = (*arguments.profiles, *filter(None, [arguments.weights])), job.archive
    is_small = are_small(profiles, archive) and "://" not in job.assignment
    with open_spark(arguments, "plan", is_small=is_small) as (session, told):
        try:
            result = run_plan_job(session, job, told)
        except ValueError as error:
            raise UserError(f"{', '.join(arguments.profiles)}: {error}", EXIT_DATA) from None
    _write(arguments.out, result)
    for entry in result.refused:
        say(f"profile {entry.profile} left out: {entry.reason}")
    _print_plan(result.plan, as_json=arguments.json)


def run_show(arguments: argparse.Namespace) -> None:
    _print_plan(load_plan(arguments.plan), as_json=arguments.json)


def run_place(arguments: argparse.Namespace) -> None:
    placer = Placer(load_plan(arguments.plan))
    rows = []
    for name in arguments.files:
        with about(name):
            placement = placer.place(read_text(name).strip())
        broker = placer.plan.brokers[placement.partition] if placer.plan.brokers else None
        rows.append((name, placement.partition, broker, placement.pattern))
    if arguments.json:
        for row in rows:
            print_json(dict(zip(("file", "partition", "broker", "pattern"), row, strict=True)))
    else:
        print(table(("file", "partition", "broker", "pattern"), rows))


def plan_facts(plan: Plan) -> dict[str, object]:
    """A plan in figures."""
    return {
        "plan": plan_id(plan),
        "partitions": plan.partitions,
        "patterns": len(plan.rules),
        "load": plan.facts.load,
        "refused": plan.facts.refused,
        "coverage": round(plan.facts.coverage, 6),
        "largest_over_mean": round(plan.facts.imbalance, 4),
        "matched_share": plan.facts.matched_share,
        "brokers_share": plan.facts.brokers_share,
        "samples": plan.facts.samples,
        "topology": plan.topology,
        "partitions_by_broker": dict(sorted(Counter(plan.brokers).items())),
    }


def _print_plan(plan: Plan, as_json: bool) -> None:
    if as_json:
        print_json(plan_facts(plan))
        return
    facts = plan.facts
    print(f"plan {plan_id(plan)}: {facts.load:,.0f} profiles in {plan.partitions:,} partitions")
    print(f"  coverage         {facts.coverage:8.2%}  by {len(plan.rules):,} patterns")
    print(f"  largest / mean   {facts.imbalance:8.3f}")
    basis = (
        f"on {facts.samples:,} messages" if facts.samples else "estimated, no messages were given"
    )
    print(f"  matched share    {facts.matched_share:8.2%}  {basis}")
    if facts.refused:
        print(f"  left out         {facts.refused:8,}  texts that are no profiles")
    rows = [
        (
            rule.pattern,
            round(rule.load),
            "no bound" if isinf(rule.at_most) else f"{rule.at_most:g}",
            round(rule.expected, 2),
            rule.spread,
        )
        for rule in plan.rules[:20]
    ]
    print(table(("pattern", "profiles", "at most", "in a message", "partitions"), rows))
    if plan.brokers:
        print(table(("broker", "partitions"), sorted(Counter(plan.brokers).items())))


def _read_schema(path: Path) -> Schema:
    with about(str(path)):
        schema = load_schema(path)
        say_unread(path, what_is_unread(schema))
        return schema


def _write(directory: Path, result: PlanResult) -> None:
    plan = result.plan
    files = {
        "report.html": plan_report(plan, result.refused, result.messages_refused),
        "coverage.svg": coverage_svg(plan),
        "load.svg": load_svg(plan),
        PLAN_FILE: to_json(plan),  # last: a plan is there when all of it is
    }
    for name, text in files.items():
        write_atomically(directory / name, text.encode())
