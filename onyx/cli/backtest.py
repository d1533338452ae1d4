"""``onyx backtest``: what profiles would have got from an archive of messages."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from onyx.cli.plan_files import load_plan
from onyx.cli.spark_options import SMALL_HELP, SPARK_HELP, add_spark_arguments, open_spark
from onyx.cli.values import check_known, print_json, table, tell_of
from onyx.cli.verb import Subparsers, add_verb, not_negative
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_STORE, UsageError, UserError
from overlay.routing.broadcast_tree import broadcast_tree, broadcast_trees
from overlay.topology import load_topology
from registration.spark.backtest_job import (
    PROFILES_MAX,
    SAMPLES,
    BacktestJob,
    BacktestResult,
    ProfileRecord,
    RoutingBefore,
    run_backtest,
    run_population_backtest,
)
from registration.spark.input_files import FORMATS, are_small
from registration.spark.inputs import read_profiles
from registration.spark.profile_lines import KEYS_HELP
from registration.spark.progress import Told, steps_of
from registration.spark.session import Session
from yfilter.graph.graph_query import is_graph_query

PATH_MAX = 1_024  # characters; what is longer is no file
_XQUERY = re.compile(r"\s*(?:[/$<(]|(?:for|let|declare|element)\s)")

DETAILS = f"""\
Replays an archive: what brokers have written (onyx up --archive), XML files, or Parquet
with a column message (name and time are used where they are there). For each profile:
how many messages it matches, what comes out, bytes a day, and the load that it would
put on the network: messages that satisfy its routing query, and with --plan and
--topology those that would come to its host broker for its sake only.

{KEYS_HELP}

With --weights a whole population is replayed and only its loads are written, which
onyx plan make --weights reads: profiles count by what is delivered to them.

{SMALL_HELP}
{SPARK_HELP}"""

EXAMPLES = """\
  onyx backtest storms.xq --archive news/
  onyx backtest 'ASK { ?post <http://purl.org/dc/elements/1.1/subject> "fog" }' --archive feeds/
  onyx backtest profiles.txt --archive news.parquet --plan plan --topology network.toml
  onyx backtest catalog.jsonl --archive news/ --weights weights.parquet
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "profiles PROFILE|FILE...": "a profile, or files as of onyx plan make",
        f"--format {{{','.join(FORMATS)}}} =": "default: by the suffix",
        "--archive DIR|PARQUET|onyx://HOST:PORT...!": "may be repeated",
        f"--results N = {SAMPLES}": "shown of each profile",
        "--messages-per-day N": "for an archive that does not say when its messages were published",
        "--plan PLAN": "where the other profiles are",
        "--topology FILE": "the network of --plan",
        "--root ID": "the root broker of the messages (default: the middle of the network)",
        "--weights PARQUET": "replay a population, and write its loads",
        "--samples N = 1000": "with --weights: messages that are replayed (default: 1000)",
        "--json": "print an object a profile, and progress on standard error",
    }
    parser = add_verb(
        *(subparsers, "backtest", "", run, takes),
        details=DETAILS,
        examples=EXAMPLES,
        kinds={"messages_per_day": not_negative},
    )
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    routing = _routing(arguments)
    given = [] if _is_profile(arguments) else arguments.profiles
    is_small = not arguments.weights and are_small(given, arguments.archive)
    with open_spark(arguments, "backtest", is_small=is_small) as (session, told):
        if arguments.weights:
            return _run_population(session, arguments, told)
        job = BacktestJob(
            *(_profiles(session, arguments), tuple(arguments.archive), arguments.results, routing)
        )
        result = run_backtest(session, job, told)
    _print(result, arguments)
    return EXIT_STORE if result.gaps else EXIT_OK


def _run_population(session: Session, arguments: argparse.Namespace, told: Told) -> int:
    messages, matching, gaps = run_population_backtest(
        session,
        arguments.profiles,
        arguments.format,
        arguments.archive,
        arguments.samples,
        arguments.weights,
        told,
    )
    facts = {"messages": messages, "profiles_matching": matching, "weights": arguments.weights}
    text = f"{matching:,} profiles match some of {messages:,} messages: {arguments.weights}"
    tell_of(arguments, facts, text)
    return EXIT_STORE if gaps else EXIT_OK


def is_profile(given: str) -> bool:
    """Whether it is a profile itself, and no file."""
    is_graphs = is_graph_query(given) and " " in given.strip()
    begins = is_graphs or _XQUERY.match(given) is not None
    return begins and not (len(given) < PATH_MAX and Path(given).exists())


def _is_profile(arguments: argparse.Namespace) -> bool:
    return len(arguments.profiles) == 1 and is_profile(arguments.profiles[0])


def _profiles(session: Session | None, arguments: argparse.Namespace) -> dict[str, str]:
    """id -> text."""
    given = arguments.profiles
    if _is_profile(arguments):
        return {"profile": given[0]}
    with steps_of(session):
        rows = read_profiles(session, given, arguments.format).limit(PROFILES_MAX + 1).collect()
    if len(rows) > PROFILES_MAX:
        raise UsageError(f"more than {PROFILES_MAX:,} profiles: say --weights to replay them all")
    if not rows:
        raise UserError(f"{', '.join(given)}: there are no profiles", EXIT_DATA)
    texts = {name: text for name, text, _ in rows}
    if len(texts) < len(rows):
        (twice, _), *_ = Counter(row[0] for row in rows).most_common(1)
        raise UserError(f"{', '.join(given)}: two profiles are {twice!r}", EXIT_DATA)
    return texts


def _routing(arguments: argparse.Namespace) -> RoutingBefore | None:
    if arguments.plan is None:
        return None
    if arguments.topology is None:
        raise UsageError("--plan needs --topology, to know the way to each broker")
    topology = load_topology(arguments.topology)
    plan = load_plan(arguments.plan)
    if not set(plan.brokers) or set(plan.brokers) - set(topology.broker_ids):
        raise UserError(f"{arguments.plan} is no plan for {topology.name}", EXIT_DATA)
    if arguments.root is None:
        trees = broadcast_trees(topology).values()
        tree = min(trees, key=lambda tree: (max(tree.latency_by_broker_ms.values()), tree.root))
    else:
        root = check_known(arguments.root, topology.broker_ids, "--root")
        tree = broadcast_tree(topology, root)
    return RoutingBefore(plan, tree)


def _print(result: BacktestResult, arguments: argparse.Namespace) -> None:
    per_day = arguments.messages_per_day
    if per_day is None and result.days:
        per_day = result.messages / result.days
    facts = {name: _facts(record, result, per_day) for name, record in result.records.items()}
    if arguments.json:
        for name, record in result.records.items():
            print_json({"id": name, **facts[name], "samples": record.samples})
        return
    print(f"{result.messages:,} messages, {result.refused:,} of them could not be read")
    heading = (
        *("PROFILE", "MATCHES", "RATE", "RESULTS", "BYTES", "BYTES A DAY"),
        *("ROUTED", "HOST", "NEW VISITS", "CROSSINGS"),
    )
    rows = [
        (name, of["matches"], f"{of['match_rate']:.2%}", *(of[column] for column in _COLUMNS))
        for name, of in facts.items()
    ]
    print(table(heading, rows))
    for name, record in result.records.items():
        for message, text in record.samples:
            print(f"\n{name} from {message or 'a message'}:\n{text}")


_COLUMNS = ("results", "bytes", "bytes_a_day", "routed", "host", "new_visits", "crossings")


def _facts(
    record: ProfileRecord, result: BacktestResult, per_day: float | None
) -> dict[str, object]:
    return {
        "messages": result.messages,
        "messages_refused": result.refused,
        "matches": record.matches,
        "match_rate": round(record.matches / result.messages, 6) if result.messages else 0.0,
        "results": record.results,
        "bytes": record.bytes,
        "bytes_a_day": _bytes_a_day(record, result, per_day),
        "routed": record.routed,
        "host": record.host or None,
        "new_visits": record.new_visits if record.host else None,
        "crossings": record.crossings if record.host else None,
    }


def _bytes_a_day(
    record: ProfileRecord, result: BacktestResult, per_day: float | None
) -> int | None:
    if per_day is None or not result.messages:
        return None
    return round(record.bytes / result.messages * per_day)
