"""``python -m benchmarks match``: one message against many profiles.

The unit, U, is ``lxml.etree.fromstring`` on the same message in the same run.  What is timed is the
whole way of a message through the engine: parsed into the element stream, matched, the ids
of all matching profiles collected; for messages the engine has not seen before, after warm-up.

Two workloads: generated profiles and messages (the default; see benchmarks/workload), or a file
with one path a line and a directory of XML files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import fields
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, WrongAnswers, count, positive
from benchmarks.matching.inputs import Lots, make_lots, make_profiles, read_lots, read_profiles
from benchmarks.matching.job import PROFILES, MatchJob, Timings, run_job
from benchmarks.matching.oracle import compare, take_sample
from benchmarks.matching.yfilter import YFilterTimings, run_yfilter
from benchmarks.report import Report
from benchmarks.samples import mean, median, percentile
from yfilter import MatchLimits

_CHECKED = 20  # messages on which the engine is held against lxml


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    workload = parser.add_argument_group("workload")
    workload.add_argument(
        "--number", metavar="N", type=positive, default=10_000, help="profiles (default: 10,000)"
    )
    workload.add_argument(
        "--profiles", metavar="FILE", type=Path, help="one path a line, .gz too; else generated"
    )
    workload.add_argument(
        "--messages", metavar="DIR", type=Path, help="XML files; half of them only warm up"
    )
    workload.add_argument(
        "--selectivity",
        metavar="PERCENT",
        type=float,
        help="generated profiles of which so many percent match a message",
    )
    workload.add_argument(
        "--subscribers",
        metavar="N",
        type=count,
        default=0,
        help="so many registrations, Zipf over the profiles; else each profile once",
    )
    workload.add_argument(
        "--size", metavar="BYTES", type=positive, default=10_000, help="of a generated message"
    )
    workload.add_argument("--seed", metavar="N", type=count, default=1)
    run = parser.add_argument_group("what is run")
    run.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="time passed, or time computed: for a machine that does other work too",
    )
    run.add_argument(
        "--limit",
        metavar="NAME=N",
        type=_limit,
        action="append",
        default=[],
        help="a field of MatchLimits, to see what a tighter bound costs; may be repeated",
    )
    run.add_argument("--warmup", metavar="N", type=positive, default=1_000, help="messages")
    run.add_argument("--measured", metavar="N", type=positive, default=1_000, help="messages")
    run.add_argument(
        "--changes", metavar="N", type=positive, default=1_000, help="profiles removed and added"
    )
    run.add_argument(
        "--changing", metavar="N", type=positive, default=200, help="messages between changes"
    )
    run.add_argument(
        "--sample",
        metavar="N",
        type=positive,
        default=300,
        help="profiles of the lxml loop, which also checks the answers",
    )
    run.add_argument(
        "--scaling",
        metavar=("FROM", "TO"),
        type=positive,
        nargs=2,
        help="also measure from so many to so many profiles with --matches fixed",
    )
    run.add_argument("--matches", metavar="N", type=positive, default=100, help="for --scaling")
    run.add_argument(
        "--yfilter", metavar="DIR", type=Path, help="a YFilter 1.0 release to compare with"
    )


def run(options: argparse.Namespace) -> Report:
    """Measures as the options say."""
    if options.profiles and options.selectivity is not None:
        raise BenchmarkError("--selectivity is for generated profiles, not for --profiles")
    if options.yfilter and not options.profiles:
        raise BenchmarkError("--yfilter needs --profiles: it does not read the generated ones")
    if bool(options.profiles) != bool(options.messages):
        raise BenchmarkError("--profiles and --messages go together")
    with tempfile.TemporaryDirectory(prefix="onyx-match-") as name:
        folder = Path(name)
        lots, number = _prepare(options, folder)
        job = MatchJob(
            number=number,
            subscribers=options.subscribers,
            warmup=options.warmup,
            changes=options.changes,
            checked=_CHECKED,
            seed=options.seed,
            cpu_clock=options.clock == "cpu",
            limits=dict(options.limit),
        )
        _progress(f"{number:,} profiles: building and measuring")
        timings = run_job(job, folder)
        report = Report("match")
        _tell_conditions(report, options, job, lots, timings)
        _tell_message_times(report, timings)
        _tell_building(report, timings)
        _tell_changes(report, timings, seen=bool(options.messages))
        _compare_with_lxml(report, options, job, lots, timings, folder)
        if options.yfilter:
            _progress("YFilter 1.0")
            _tell_yfilter(report, run_yfilter(options.yfilter, job, lots, folder), timings)
    if options.scaling:
        _tell_scaling(report, options)
    return report


def _prepare(options: argparse.Namespace, folder: Path) -> tuple[Lots, int]:
    """Profiles and messages into the folder; the messages, and the number of profiles there."""
    counts = (options.warmup, options.measured, options.changing)
    if options.profiles:
        lots = read_lots(options.messages, options.seed, *counts)
        number = read_profiles(options.profiles, folder, options.number, options.changes)
    else:
        _progress(f"{options.number:,} profiles and {sum(counts):,} messages: making them")
        lots = make_lots(options.seed, *counts, options.size)
        number = options.number
        make_profiles(folder, options.seed, number, options.changes, options.selectivity)
    lots.write(folder)
    return lots, number


def _tell_conditions(
    report: Report, options: argparse.Namespace, job: MatchJob, lots: Lots, timings: Timings
) -> None:
    generated = f"generated, seed {options.seed}"
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", timings.build)
    report.condition("clock", "clock", options.clock)
    for name, value in options.limit:
        report.condition(name, name, value)
    report.condition("number", "profiles", job.number)
    report.condition("registrations", "registrations", timings.registered)
    source = options.profiles.name if options.profiles else generated
    report.condition("profiles", "profiles from", source)
    source = options.messages.name if options.messages else generated
    report.condition("messages", "messages from", source)
    report.condition("message_bytes", "bytes a message", round(mean(timings.message_bytes)))
    report.condition("warmup", "messages before", job.warmup)
    report.condition("measured", "messages measured", len(lots.measured))


def _tell_message_times(report: Report, timings: Timings) -> None:
    unit = "lxml_parse_us"
    report.figure("matches", "matches a message", mean(timings.matches))
    report.figure(
        "matching_percent",
        "of the registrations",
        100 * mean(timings.matches) / timings.registered,
        "%",
    )
    report.figure(unit, "lxml parses (U)", mean(timings.lxml_parse), "us")
    report.figure("parse_us", "parsing into the stream", mean(timings.parse), "us", unit)
    report.figure("all_in_us", "all-in, mean", mean(timings.all_in), "us", unit)
    report.figure("all_in_median_us", "all-in, median", median(timings.all_in), "us", unit)
    report.figure("all_in_p99_us", "all-in, 99th percentile", _p99(timings.all_in), "us", unit)
    report.figure("all_in_max_us", "all-in, worst", max(timings.all_in), "us", "all_in_median_us")
    report.figure("seen_us", "messages seen before", mean(timings.again), "us", "all_in_us")
    report.figure("binary_us", "arrived in binary", mean(timings.binary), "us", "seen_us")
    cold = f"the first {len(timings.cold)} after the start"
    report.figure("cold_us", cold, mean(timings.cold), "us", "all_in_us")


def _tell_building(report: Report, timings: Timings) -> None:
    seconds = 1e-6
    grown = timings.resident_built - timings.resident_before
    report.figure(
        "parse_profiles_s", "parsing the profiles", timings.parse_profiles_us * seconds, "s"
    )
    report.figure("install_s", "installing them", timings.install_us * seconds, "s")
    build = (timings.parse_profiles_us + timings.install_us) * seconds
    report.figure("build_s", "both", build, "s")
    report.figure("bytes_per_profile", "memory a profile", grown / timings.registered, "bytes")
    megabytes = (timings.resident_warm - timings.resident_built) / 1e6
    report.figure("grown_by_messages_mb", "memory grown by messages", megabytes, "MB")
    for key, value in timings.statistics.items():
        if key.endswith("bytes"):
            report.figure(f"engine_{key}", f"the engine says: {key}", value, "bytes")
    report.detail("statistics", timings.statistics)
    report.remark(
        "memory: what a fresh process holds more after the build, profile texts not counted; at "
        "1,000 profiles mostly noise"
    )


def _tell_changes(report: Report, timings: Timings, seen: bool) -> None:
    """``seen``: the messages between the changes are measured ones again."""
    report.figure("add_us", "adding one, median", median(timings.add), "us")
    report.figure("add_p99_us", "adding one, 99th percentile", _p99(timings.add), "us", "add_us")
    report.figure("parse_profile_us", "parsing its text before", median(timings.parse_added), "us")
    report.figure("remove_us", "removing one, median", median(timings.remove), "us")
    report.figure(
        "remove_p99_us", "removing one, 99th percentile", _p99(timings.remove), "us", "remove_us"
    )
    against = "seen_us" if seen else "all_in_us"
    between = mean(timings.between_changes)
    report.figure("changing_us", "all-in between changes", between, "us", against)


def _compare_with_lxml(
    report: Report,
    options: argparse.Namespace,
    job: MatchJob,
    lots: Lots,
    timings: Timings,
    folder: Path,
) -> None:
    """The loop of XPath objects, extrapolated; raises WrongAnswers where the engine differs."""
    _progress("lxml XPath objects")
    registered = sorted(set(job.registrations()))
    random = Random(f"sample {options.seed}")
    chosen = set(random.sample(registered, min(options.sample, len(registered))))
    with (folder / PROFILES).open(encoding="utf-8") as lines:
        numbered = enumerate(line.rstrip("\n") for line in islice(lines, job.number))
        sample = take_sample([(i, text) for i, text in numbered if i in chosen])
    answer = compare(sample, lots.measured, timings.checked, job.clock())
    if answer.disagreements:
        raise WrongAnswers(
            f"the engine and lxml disagree on {answer.disagreements} of {answer.compared} pairs "
            "of a profile and a message"
        )
    loop = None
    if answer.us_per_profile is not None:
        loop = mean(timings.lxml_parse) + answer.us_per_profile * len(registered)
    report.figure("lxml_xpath_us", "a loop of lxml XPath objects", loop, "us", "all_in_us")
    report.figure("checked", "answers as lxml gives them", answer.compared)
    report.remark(
        f"the loop of XPath objects is extrapolated from {len(sample.paths)} profiles on "
        f"{len(timings.checked)} messages"
        + (f"; {sample.not_xpath} are not XPath 1.0" if sample.not_xpath else "")
    )


def _tell_yfilter(report: Report, yfilter: YFilterTimings, timings: Timings) -> None:
    report.figure(
        "yfilter_us", "YFilter 1.0, filtering alone", mean(yfilter.filter), "us", "all_in_us"
    )
    differs = sum(a != b for a, b in zip(yfilter.matches, timings.matches, strict=True))
    report.figure("yfilter_differs", "messages with other matches", differs)
    report.figure("yfilter_build_s", "YFilter 1.0, building", yfilter.build_us / 1e6, "s")
    report.remark("YFilter 1.0: the quickest of three times for each message, which is parsed")


def _tell_scaling(report: Report, options: argparse.Namespace) -> None:
    """Two engines, one many times the size of the other, of which as many profiles match."""
    first = ""
    for number in options.scaling:
        scaled = argparse.Namespace(**vars(options))
        scaled.number, scaled.subscribers, scaled.profiles = number, 0, None
        scaled.selectivity = 100 * options.matches / number
        with tempfile.TemporaryDirectory(prefix="onyx-match-") as name:
            _prepare(scaled, Path(name))
            job = MatchJob(
                number,
                warmup=options.warmup,
                changes=1,
                checked=0,
                seed=options.seed,
                cpu_clock=options.clock == "cpu",
                limits=dict(options.limit),
            )
            _progress(f"{number:,} profiles, {options.matches} matches: measuring")
            timings = run_job(job, Path(name))
        key = f"scaling_{number}_us"
        label = f"{number:,} profiles, {mean(timings.matches):.0f} match"
        report.figure(key, label, mean(timings.all_in), "us", first or None)
        report.figure(f"scaling_{number}_matches", "of which match", mean(timings.matches))
        first = first or key


def _limit(text: str) -> tuple[str, int]:
    """``name=value`` of a field of MatchLimits that is a number."""
    name, _, value = text.partition("=")
    numbers = {known.name for known in fields(MatchLimits) if known.type in (int, "int")}
    if name not in numbers:
        raise argparse.ArgumentTypeError(
            f"{name!r} is not a limit; expected one of {', '.join(sorted(numbers))}"
        )
    return name, positive(value)


def _p99(samples: list[float]) -> float:
    return percentile(samples, 99)


def _progress(text: str) -> None:
    """To the person who waits."""
    if sys.stderr.isatty():
        print(f"match: {text} ...", file=sys.stderr)


MATCH = Benchmark(
    name="match",
    summary="one message against many profiles: parse, match, ids collected",
    add_options=add_options,
    quick=(
        *("--number", "1000", "--warmup", "100", "--measured", "100"),
        *("--changes", "50", "--changing", "20", "--sample", "100"),
    ),
    run=run,
)
