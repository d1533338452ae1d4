"""Benchmarks of several parts, each of which adds its figures to one report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from benchmarks import machine
from benchmarks.report import Report
from formats.kernel import build_info

Part: TypeAlias = Callable[[Report, argparse.Namespace], None]


def add_part_option(parser: argparse.ArgumentParser, parts: Iterable[str]) -> None:
    parser.add_argument(
        "--part", choices=parts, nargs="+", default=list(parts), help="(default: all)"
    )


def run_parts(
    title: str, parts: Mapping[str, Part], promised: Iterable[str], options: argparse.Namespace
) -> Report:
    """What the chosen parts have measured.  ``promised``: keys that are always there, without a
    value where they were not measured."""
    report = Report(title)
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    for part in options.part:
        parts[part](report, options)
    for key in promised:
        if report.value(key) is None:
            report.figure(key, f"{key}: not measured", None)
    return report
