"""``onyx plan make | show | place``: which profiles belong together, and where.

The verbs that need a network, and ``diff``, are in plan_network.py and plan_apply.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from math import isinf
from pathlib import Path

from formats.errors import SchemaRefused
from formats.schema import Schema, what_is_unread
from onyx.cli.plan_apply import add_apply_verbs
from onyx.cli.plan_files import ASSIGNMENT_FILE, PLAN_FILE, load_plan
from onyx.cli.plan_network import add_network_verbs
from onyx.cli.spark_options import SPARK_HELP, add_spark_arguments, open_spark
from onyx.cli.values import positive, print_json, read_text, say_unread, table
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.errors import EXIT_CANNOT_CREATE, EXIT_DATA, EXIT_NO_INPUT, EXIT_OK, UserError
from onyx.plan_report import coverage_svg, load_svg, plan_report
from onyx.schema_path import load_schema
from overlay.topology import load_topology
from registration.planning.plan import Placer, Plan
from registration.planning.plan_file import plan_id, to_json
from registration.planning.planner import (
    PARTITIONS,
    PARTITIONS_A_BROKER,
    PROFILES_A_PARTITION,
    PlanOptions,
)
from registration.spark.inputs import FORMATS, UnreadableData
from registration.spark.plan_job import SAMPLES_MAX, PlanJob, PlanResult, run_plan_job
from yfilter import ProfileRefused

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
    verb = add_verb(
        subparsers,
        "plan",
        "plan which profiles are placed together",
        details="Profiles that a message hardly ever matches together are put into different\n"
        "partitions, so that it need not visit all brokers (the paper's PEP, section 4.4).",
        examples=MAKE_EXAMPLES + OTHER_EXAMPLES,
    )
    verbs = add_subverbs(verb)
    _add_make(verbs)
    show = add_verb(verbs, "show", "sum up a plan", examples="  onyx plan show plan")
    show.add_argument("plan", metavar="PLAN", help="a directory that onyx plan make has written")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    set_run(show, run_show)
    place = add_verb(
        verbs,
        "place",
        "say where a plan places profiles",
        examples="  onyx plan place plan storms.xq\n  echo '//item' | onyx plan place plan -",
    )
    place.add_argument("plan", metavar="PLAN")
    place.add_argument("files", metavar="FILE|-", nargs="+", help="the text of a profile")
    place.add_argument("--json", action="store_true", help="print an object a profile")
    set_run(place, run_place)
    add_network_verbs(verbs)
    add_apply_verbs(verbs)


def _add_make(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "make",
        "make a plan of a population of profiles",
        details="Writes into the directory of --out: plan.json (the rules), assignment.parquet\n"
        "(profile, partition, pattern, broker), report.html, and its pictures as SVG.\n"
        "Texts that are no profiles are left out, counted and listed.\n\n"
        f"{SPARK_HELP}",
        examples=MAKE_EXAMPLES,
    )
    parser.add_argument(
        "profiles",
        metavar="PROFILES",
        nargs="+",
        help="text with a profile a line, .xq or .rq files, .jsonl as from onyx profile export, or "
        "Parquet with columns profile and text",
    )
    parser.add_argument("--format", choices=FORMATS, default="", help="default: by the suffix")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True)
    parser.add_argument(
        "--assignment", metavar="PATH", help="where the Parquet goes (default: into DIR)"
    )
    parser.add_argument(
        "--partitions",
        metavar="K",
        type=positive,
        help=f"default: {PARTITIONS_A_BROKER} a broker of the topology, without one {PARTITIONS}; "
        f"fewer where they would not have {PROFILES_A_PARTITION} profiles each",
    )
    parser.add_argument(
        "--topology", metavar="FILE", type=Path, help="gives the partitions to its brokers"
    )
    parser.add_argument(
        "--schema",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="of a source: says what can occur at most once in a message; may be repeated",
    )
    parser.add_argument(
        "--archive",
        metavar="DIR|PARQUET",
        action="append",
        default=[],
        help="messages to see how often patterns occur: what brokers have written (onyx up "
        "--archive), XML files, or Parquet with a column message; may be repeated",
    )
    parser.add_argument(
        "--samples",
        metavar="N",
        type=positive,
        default=SAMPLES_MAX,
        help=f"messages of the archive that are looked at (default: {SAMPLES_MAX})",
    )
    parser.add_argument(
        "--weights", metavar="PARQUET", default="", help="loads of profiles, from onyx backtest"
    )
    parser.add_argument(
        "--keep",
        metavar="PLAN",
        help="the plan in force: of it the new one keeps what it can, so that few profiles move",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_spark_arguments(parser)
    set_run(parser, run_make)


def run_make(arguments: argparse.Namespace) -> int:
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
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{arguments.out}: {error.strerror}", EXIT_CANNOT_CREATE) from None
    start = time.monotonic()

    def report(step: str) -> None:
        print(f"plan: {time.monotonic() - start:6.1f} s  {step}", file=sys.stderr)

    with open_spark(arguments, report) as session:
        try:
            result = run_plan_job(session, job, report)
        except UnreadableData as error:
            raise UserError(str(error), EXIT_NO_INPUT) from None
        except ValueError as error:
            raise UserError(f"{', '.join(arguments.profiles)}: {error}", EXIT_DATA) from None
    _write(arguments.out, result)
    for entry in result.refused:
        print(f"onyx: profile {entry.profile} left out: {entry.reason}", file=sys.stderr)
    _print_plan(result.plan, as_json=arguments.json)
    return EXIT_OK


def run_show(arguments: argparse.Namespace) -> int:
    _print_plan(load_plan(arguments.plan), as_json=arguments.json)
    return EXIT_OK


def run_place(arguments: argparse.Namespace) -> int:
    placer = Placer(load_plan(arguments.plan))
    rows = []
    for name in arguments.files:
        try:
            placement = placer.place(read_text(name).strip())
        except ProfileRefused as refused:
            print(f"onyx: {name}: {refused}", file=sys.stderr)
            return EXIT_DATA
        broker = placer.plan.brokers[placement.partition] if placer.plan.brokers else None
        rows.append((name, placement.partition, broker, placement.pattern))
    if arguments.json:
        for row in rows:
            print_json(dict(zip(("file", "partition", "broker", "pattern"), row, strict=True)))
    else:
        print(table(("file", "partition", "broker", "pattern"), rows))
    return EXIT_OK


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
    try:
        schema = load_schema(path)
        say_unread(path, what_is_unread(schema))
        return schema
    except SchemaRefused as refusal:
        raise UserError(f"{path}: {refusal}", EXIT_DATA) from None


def _write(directory: Path, result: PlanResult) -> None:
    plan = result.plan
    files = {
        "report.html": plan_report(plan, result.refused, result.messages_refused),
        "coverage.svg": coverage_svg(plan),
        "load.svg": load_svg(plan),
        PLAN_FILE: to_json(plan),  # last: a plan is there when all of it is
    }
    for name, text in files.items():
        try:
            (directory / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{directory / name}: {error.strerror}", EXIT_CANNOT_CREATE) from None
