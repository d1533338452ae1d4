"""``operate``: what the program costs whoever runs it, a command line at a time.

The baseline is an interpreter that does nothing, in the same environment.  The two take turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import trio

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, WrongAnswers, positive
from benchmarks.metrics_overhead import measure
from benchmarks.plain_message import plain_message
from benchmarks.report import Report
from benchmarks.restart_cost import restart_cost
from benchmarks.samples import median, percentile
from benchmarks.status_cost import status_cost
from onyx.cli.verb import VERBS
from onyx.release import version

SCRAPED_PROFILES = 1_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--runs", metavar="N", type=positive, default=20, help="of each command")
    parser.add_argument(
        "--subscribers",
        metavar="N",
        type=positive,
        default=100_000,
        help="of the broker that is asked how it is (default 100,000)",
    )
    parser.add_argument(
        "--profiles",
        metavar="N",
        type=positive,
        default=600_000,
        help="of the broker that is killed and started again (default 600,000)",
    )
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=15, help="of messages, with and without"
    )
    parser.add_argument("--messages", metavar="N", type=positive, default=20_000, help="of a round")


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where a command does not say what it is to say."""
    onyx = str(Path(sys.executable).with_name("onyx"))
    if not Path(onyx).exists():
        raise BenchmarkError(f"{onyx} is not there; make setup installs it")
    commands = {
        "python": ([sys.executable, "-c", "print('nothing')"], "nothing"),
        "version": ([onyx, "--version"], f"onyx {version()}"),
        "help": ([onyx, "--help"], "usage: onyx "),
    }
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(options.runs + 1):
        for name, (command, beginning) in commands.items():
            cost = _cpu_seconds(command, beginning)
            if number:  # the first reads files that are not in memory yet
                spent[name].append(cost)
    verbs = {name: _cpu_seconds([onyx, name, "--help"], f"usage: onyx {name} ") for name in VERBS}
    dearest = max(verbs, key=verbs.__getitem__)
    report = Report("operate: what the program costs whoever runs it")
    report.condition("machine", "machine", machine.description())
    report.condition("runs", "runs of each command", options.runs)
    report.figure("python_cpu_s", "an interpreter that does nothing", median(spent["python"]), "s")
    for name in ("version", "help"):
        report.figure(
            f"{name}_cpu_s", f"onyx --{name}", median(spent[name]), "s", against="python_cpu_s"
        )
    report.figure(
        "verb_help_cpu_s", f"onyx {dearest} --help, the dearest", verbs[dearest], "s",
        against="python_cpu_s",
    )  # fmt: skip
    report.detail("verbs_help_cpu_s", verbs)
    status = status_cost(options.subscribers)
    few = status_cost(options.subscribers // 100)
    report.condition("subscribers", "subscribers of the broker", options.subscribers)
    report.figure("summary_bytes_100k", "the answer to onyx status", status.answer_bytes, "bytes")
    report.figure("summary_ms_100k", "processor time of the broker for it", status.cpu_ms, "ms")
    report.figure("summary_ms_1k", "with a hundredth of them", few.cpu_ms, "ms")
    restart = trio.run(restart_cost, options.profiles)
    report.condition("profiles", "profiles of the broker that is started again", options.profiles)
    report.figure(
        "restart_600k_s", "the broker killed, until it is ready again", restart.broker_s, "s"
    )
    report.figure("restart_600k_cpu_s", "its processor time", restart.broker_cpu_s, "s")
    report.figure(
        "restart_registration_600k_s", "the registration service likewise",
        restart.registration_s, "s",
    )  # fmt: skip
    report.detail("restart", {"profiles_added_s": restart.added_s})
    _report_scrapes(report, options)
    _report_plain_message(report)
    report.remark("processor time of the process, user and system; medians; of verbs one run each")
    return report


def _report_scrapes(report: Report, options: argparse.Namespace) -> None:
    overhead = measure(options.rounds, options.messages, SCRAPED_PROFILES)
    report.condition("scrapes", "scrapes of metrics, once a second", overhead.scrapes)
    scraped_us, plain_us = median(overhead.scraped_us), median(overhead.plain_us)
    report.figure("plain_us", "broker, a message, when nobody scrapes", plain_us, "us")
    report.figure("scraped_us", "the same, scraped once a second", scraped_us, "us")
    for key, label, percent in (
        ("metrics_overhead", "what scraping costs, median of the pairs, at most 1.01", 50),
        ("metrics_overhead_p25", "its quartiles", 25),
        ("metrics_overhead_p75", "", 75),
    ):
        report.figure(key, label, percentile(overhead.ratios, percent))
    report.figure("scrape_ms", "one scrape, of a broker that is idle", overhead.scrape_ms, "ms")


def _cpu_seconds(command: Sequence[str], beginning: str) -> float:
    """Of a process that is to end well and to print something that begins so."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not said.startswith(beginning):
        raise WrongAnswers(
            f"{' '.join(command)} ended with {process.returncode} and said {said[:80]!r}, "
            f"expected {beginning!r}"
        )
    return usage.ru_utime + usage.ru_stime


OPERATE = Benchmark(
    name="operate",
    summary="what the program costs whoever runs it",
    add_options=add_options,
    quick=(
        *("--runs", "3", "--subscribers", "1000", "--profiles", "2000"),
        *("--rounds", "1", "--messages", "500"),
    ),
    run=run,
)


def _report_plain_message(report: Report) -> None:
    plain = plain_message()
    report.figure("core_plain_us", "a plain message in a warm core, without I/O", plain.us, "us")
    report.figure("core_plain_calls", "calls of the project's functions for it", plain.calls)
    report.figure("core_plain_functions", "so many functions", plain.functions)
