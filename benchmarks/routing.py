"""``python -m benchmarks routing``: content-driven routing against flooding and the optimum.

Networks of the real routing tables and engines.  The *optimum* sends a message only over links on
the way to a broker with a profile whose routing query holds; without a budget routing is to be
exactly that, with one it may be a little more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, quantiles

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, count, positive
from benchmarks.placement.network import (
    PARTITIONS_A_BROKER,
    make_message,
    make_profile,
    make_topology,
    message_xml,
    values_of,
)
from benchmarks.report import Report
from benchmarks.tables.churn import Churn
from benchmarks.tables.first_forward import first_forward_us
from benchmarks.tables.memory import bytes_a_disjunct
from benchmarks.tables.network import Level, Optimum, TableNetwork, check_reached
from benchmarks.tables.real_churn import real_churn
from formats import parse_text
from overlay.topology import Topology
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer
from registration.planning.planner import Evidence, PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.language.query_parser import parse_profile

UNBOUNDED = 2**60
MIB = 1024 * 1024
CHANGES = 200
CHURN_BROKERS, CHURN_MESSAGES = 15, 20  # messages a second
PLANNED = 20_000  # profiles that a plan is made of
LESSONS = 20  # times that the messages for warming up are shown to those who learn


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--number", metavar="N", type=positive, default=10_000, help="profiles")
    parser.add_argument("--brokers", metavar="N", type=positive, default=15)
    parser.add_argument("--sources", metavar="N", type=positive, default=3, help="root brokers")
    parser.add_argument("--messages", metavar="N", type=positive, default=200)
    parser.add_argument(
        "--placement", choices=("pep", "random"), default="pep", help="of the profiles"
    )
    parser.add_argument("--shape", choices=("mesh", "tree"), default="mesh", help="of the network")
    parser.add_argument(
        "--interests", choices=("news", "uniform"), default="news", help="of the profiles"
    )
    parser.add_argument(
        "--lookup",
        metavar="N",
        type=count,
        default=0,
        help="look-up at a root broker of so many profiles within 64 MB (default: --number)",
    )
    parser.add_argument(
        "--local",
        metavar="N",
        type=count,
        nargs="+",
        default=[0, 10_000],
        help="local profiles for the time to the first forward",
    )
    parser.add_argument(
        "--churn",
        metavar="N",
        type=count,
        default=100,
        help="changes of profiles a second into a network of 15 broker cores in simulated time, "
        "with 3 profiles for each (0: leave out)",
    )
    parser.add_argument(
        "--churn-seconds", metavar="N", type=positive, default=3, help="how long they go on"
    )
    parser.add_argument(
        "--real-churn",
        metavar="N",
        type=count,
        default=0,
        help="the same with 15 broker processes on this machine and so many changes under way at "
        "a time (default: leave out)",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=1)


@dataclass(frozen=True, slots=True)
class World:
    """A network, who hosts what, and what is published; ``warming`` before anything is timed."""

    topology: Topology
    roots: Sequence[str]
    interests: Mapping[str, list[Conjunction]]
    messages: Sequence[bytes]
    warming: Sequence[bytes]


def run(options: argparse.Namespace) -> Report:
    """Measures as the options say."""
    report = Report("routing")
    report.condition("machine", "machine", machine.description())
    report.condition(
        "network",
        "network",
        f"{options.shape} of {options.brokers} brokers, {options.sources} root brokers, "
        f"{options.number:,} profiles ({options.interests}) placed by {options.placement}, "
        f"{options.messages} messages, seed {options.seed}",
    )
    world = _make_world(options, options.number)
    exact, within = tell_crossings(report, world)
    _tell_changes(report, world, exact, within, options)
    lookup = (
        world if options.lookup in (0, options.number) else _make_world(options, options.lookup)
    )
    _tell_lookup(report, lookup, options.lookup or options.number)
    _tell_first_forward(report, options)
    _tell_memory(report, options)
    if options.churn:
        _tell_churn(report, options)
    if options.real_churn:
        _tell_real_churn(report, options)
    return report


def _make_world(options: argparse.Namespace, number: int) -> World:
    """Equal profiles are placed and parsed once; a plan is made of a sample of them."""
    _progress(f"{number:,} profiles")
    random = Random(options.seed)
    topology = make_topology(options.brokers, random, 1 if options.shape == "tree" else 2)
    uniform = options.interests == "uniform"
    texts = [make_profile(random, uniform=uniform) for _ in range(number)]
    news = [make_message(random) for _ in range(2 * options.messages)]
    roots = random.sample(topology.broker_ids, options.sources)
    disjuncts = {text: routing_query(parse_profile(text)) for text in dict.fromkeys(texts)}
    if options.placement == "pep":
        reader = NeedReader()
        planned = texts[:PLANNED]
        population = LocalPopulation(ProfileNeeds(reader.read(text)) for text in planned)
        samples = [(values_of(entry), 1.0) for entry in news[options.messages :]]
        plan_options = PlanOptions(PARTITIONS_A_BROKER * options.brokers, topology)
        plan = make_plan(population, plan_options, Evidence(messages=samples))
        placer = Placer(plan)
        hosted = [(plan.broker_of(placer.place(text).partition), text) for text in disjuncts]
    else:
        hosted = [(random.choice(topology.broker_ids), text) for text in texts]
    interests: dict[str, list[Conjunction]] = {broker: [] for broker in topology.broker_ids}
    for host, text in dict.fromkeys(hosted):
        interests[host].extend(disjuncts[text])
    distinct = {broker: list(dict.fromkeys(own)) for broker, own in interests.items()}
    texts_of = [message_xml(entry) for entry in news]
    half = options.messages
    return World(topology, roots, distinct, texts_of[:half], texts_of[half:])


def tell_crossings(report: Report, world: World) -> tuple[TableNetwork, TableNetwork]:
    """Gives the network without and with a budget, a tenth of the largest exact table."""
    optimum = Optimum(world.interests)
    _progress("exact tables")
    exact = TableNetwork(world.topology, world.roots, world.interests, UNBOUNDED)
    largest = max(map(exact.table_bytes, world.topology.broker_ids))
    report.figure("flooding_crossings", "flooding, links crossed", len(world.topology.brokers) - 1)
    best, crossed, levels = _crossings(world, exact, optimum)
    report.figure("optimum_crossings", "optimum", best, against="flooding_crossings")
    report.figure("exact_crossings", "routing", crossed, against="flooding_crossings")
    _progress("tables within a tenth of it")
    within = TableNetwork(world.topology, world.roots, world.interests, largest // 10)
    _, crossed_guessing, _ = _crossings(world, within, optimum)
    _progress("they learn from what comes for nothing")
    for lesson in range(LESSONS):
        within.learn(lesson, world.roots, world.warming, optimum)
    _, crossed_within, _ = _crossings(world, within, optimum)
    report.figure(
        "estimated_crossings", "within a budget", crossed_guessing, against="flooding_crossings"
    )
    report.figure(
        "budget_crossings", "the same, when learned", crossed_within, against="flooding_crossings"
    )
    report.figure("crossings_over_optimum_exact", "routing / optimum", crossed / best)
    report.figure(
        "crossings_over_optimum_estimated", "in budget / optimum", crossed_guessing / best
    )
    report.figure(
        "crossings_over_optimum_budget", "in budget, learned / optimum", crossed_within / best
    )
    report.figure("revised", "generalisations given up for others", within.sum_of("revised"))
    largest_within = max(map(within.table_bytes, world.topology.broker_ids))
    report.figure("exact_table_bytes", "largest table", largest, "B")
    report.figure(
        "budget_table_bytes", "within a budget", largest_within, "B", against="exact_table_bytes"
    )
    report.figure("generalisations", "generalisations", within.sum_of("generalisations"))
    for depth, level in sorted(levels.items()):
        report.figure(
            f"lookup_us_depth_{depth}",
            f"look-up at depth {depth}",
            fmean(level.lookup_us) if level.lookup_us else None,
            "us",
        )
        report.figure(
            f"table_bytes_depth_{depth}", f"tables at depth {depth}", fmean(level.table_bytes), "B"
        )
    return exact, within


def _crossings(
    world: World, network: TableNetwork, optimum: Optimum
) -> tuple[float, float, Mapping[int, Level]]:
    """(optimum, crossed) links a message, and what it cost by depth."""
    _warm(world, network)
    levels: dict[int, Level] = defaultdict(Level)
    for tree in network.trees.values():
        for broker in tree.breadth_first():
            depth = len(tree.path(broker)) - 1
            levels[depth].table_bytes.append(network.table_bytes(broker))
    best = crossed = 0
    for number, message in enumerate(world.messages):
        root = world.roots[number % len(world.roots)]
        stream = parse_text(message)
        wanted = optimum.brokers(stream)
        reached = network.reached(root, stream, levels)
        check_reached(wanted, reached)
        tree = network.trees[root]
        best += len(set().union({root}, *(tree.path(broker) for broker in wanted))) - 1
        crossed += len(reached) - 1
    return best / len(world.messages), crossed / len(world.messages), levels


def _warm(world: World, network: TableNetwork) -> None:
    for message in world.warming:
        for root in network.trees:
            network.reached(root, parse_text(message), defaultdict(Level))


def _tell_changes(
    report: Report,
    world: World,
    exact: TableNetwork,
    within: TableNetwork,
    options: argparse.Namespace,
) -> None:
    """Profiles replaced by new ones, one after the other: what the whole network does for one."""
    random = Random(options.seed + 1)
    for key, label, network in (
        ("exact", "a change, all brokers", exact),
        ("budget", "the same within a budget", within),
    ):
        _progress(label)
        hosts = [broker for broker, own in world.interests.items() if own]
        left = {broker: list(own) for broker, own in world.interests.items()}
        times, told = [], 0
        for _ in range(CHANGES):
            broker = random.choice(hosts)
            own = left[broker]
            at = random.randrange(len(own))
            (new, *_) = routing_query(parse_profile(make_profile(random)))
            begun = time.thread_time_ns()
            told += network.change(broker, new, own[at])
            times.append((time.thread_time_ns() - begun) / 1000)
            own[at] = new
        against = None if key == "exact" else "change_exact_us"
        report.figure(f"change_{key}_us", label, fmean(times), "us", against)
        report.figure(f"change_{key}_p99_us", f"{label}, p99", quantiles(times, n=100)[98], "us")
        report.figure(f"change_{key}_deltas", f"{label}, deltas over links", told / CHANGES)


def _tell_lookup(report: Report, world: World, number: int) -> None:
    _progress(f"look-up at a root broker, {number:,} profiles within 64 MB")
    network = TableNetwork(world.topology, world.roots[:1], world.interests, 64 * MIB)
    root = world.roots[0]
    _warm(world, network)
    parsing = []
    levels: dict[int, Level] = defaultdict(Level)
    for message in world.messages:
        begun = time.thread_time_ns()
        stream = parse_text(message)
        parsing.append((time.thread_time_ns() - begun) / 1000)
        network.reached(root, stream, levels)
    looking = levels[0].lookup_us
    report.figure("parse_us", "parsing a message", fmean(parsing), "us")
    report.figure(
        "root_lookup_us",
        f"look-up at the root, {number:,} profiles",
        fmean(looking),
        "us",
        "parse_us",
    )
    report.figure("root_table_bytes", "its table", network.table_bytes(root), "B")
    report.figure("root_lookup_over_parse", "look-up / parsing", fmean(looking) / fmean(parsing))


def _tell_first_forward(report: Report, options: argparse.Namespace) -> None:
    random = Random(options.seed + 2)
    routes = ["/nitf", *{make_profile(random): None for _ in range(100)}]
    messages = [message_xml(make_message(random)) for _ in range(50)]
    figures = []
    for number in options.local:
        _progress(f"first forward, {number:,} local profiles")
        local = [make_profile(random) for _ in range(number)]
        first, every = first_forward_us(local, routes, messages)
        figures.append(first)
        report.figure(f"first_forward_us_{number}", f"first forward, {number:,} local", first, "us")
        report.figure(
            f"without_priority_us_{number}",
            f"without priorities, {number:,} local",
            every,
            "us",
            f"first_forward_us_{number}",
        )
    report.figure("first_forward_growth", "first forward, most / fewest", figures[-1] / figures[0])


def _tell_memory(report: Report, options: argparse.Namespace) -> None:
    _progress("memory of a disjunct")
    random = Random(options.seed + 3)
    texts = dict.fromkeys(make_profile(random) for _ in range(min(options.number, 2_000)))
    disjuncts = {one.text for text in texts for one in routing_query(parse_profile(text))}
    for roots in (1, 4):
        against = None if roots == 1 else "disjunct_bytes_1"
        used = bytes_a_disjunct(sorted(disjuncts), roots)
        report.figure(f"disjunct_bytes_{roots}", f"a disjunct, {roots} trees", used, "B", against)


def _tell_churn(report: Report, options: argparse.Namespace) -> None:
    _progress(f"{options.churn:,} changes a second")
    churn = Churn(CHURN_BROKERS, 2, 3 * options.churn, options.seed)
    result = churn.run(options.churn, CHURN_MESSAGES, options.churn_seconds)
    if result.missed or result.false:
        raise WrongAnswers(f"{result.missed} deliveries were missed, {result.false} were false")
    median_ms, p99_ms = result.live_ms
    report.figure("churn_asked", "changes of profiles, asked for a second", options.churn)
    report.figure("churn_live", "live in the same time, a second", result.rate)
    report.figure("churn_live_ms", "a change to live, median", median_ms, "ms")
    report.figure("churn_live_p99_ms", "a change to live, p99", p99_ms, "ms")
    report.figure("churn_delivered", "deliveries meanwhile", result.delivered)
    report.figure("churn_missed", "missed", result.missed)
    report.figure("churn_false", "false", result.false)
    report.figure("churn_busiest", "busiest broker, share of the time", result.busiest)
    report.figure("churn_cpu_ms", "a change, all brokers", result.cpu_ms_a_change, "ms")


def _tell_real_churn(report: Report, options: argparse.Namespace) -> None:
    _progress(f"processes, {options.real_churn:,} changes under way")
    result = real_churn(
        CHURN_BROKERS, options.real_churn, CHURN_MESSAGES, options.churn_seconds, options.seed
    )
    if result.missed or result.false:
        raise WrongAnswers(f"{result.missed} deliveries were missed, {result.false} were false")
    median_ms, p99_ms = result.live_ms
    report.figure("real_churn_live", "processes: changes a second", result.rate)
    report.figure("real_churn_live_ms", "a change to live, median", median_ms, "ms")
    report.figure("real_churn_live_p99_ms", "a change to live, p99", p99_ms, "ms")
    report.figure("real_churn_messages", "messages meanwhile", result.messages)
    report.figure("real_churn_delivered", "deliveries to profiles that stay", result.delivered)
    report.figure("real_churn_missed", "missed", result.missed)
    report.figure("real_churn_false", "false", result.false)


def _progress(text: str) -> None:
    print(f"routing: {text}", file=sys.stderr, flush=True)


ROUTING = Benchmark(
    name="routing",
    summary="link crossings, table sizes and look-ups against flooding and the optimum",
    add_options=add_options,
    quick=("--number", "1000", "--messages", "50", "--local", "0", "1000", "--churn", "20"),
    run=run,
)
