"""Benchmark: what every benchmark offers to ``python -m benchmarks``.

A benchmark is one module with one ``Benchmark`` object: its options, a quick version of them for
``make bench``, and a function that runs it and gives a result, most often a ``Report``.  What two
sides of a ratio cost is always measured in the same run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


class BenchmarkError(Exception):
    """The benchmark could not be run: the message says what is missing or wrong."""


class WrongAnswers(BenchmarkError):
    """What was timed did not give the right answers; its times mean nothing."""


class Result(Protocol):
    """What a benchmark found: as a table for people and as one object for programs."""

    @property
    def good(self) -> bool:
        """Whether all that was checked was right; the exit code says so."""

    def to_text(self) -> str: ...

    def to_json(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark.

    name         what it is called on the command line
    summary      one line for the list
    add_options  declares its options; ``--json`` is declared for it
    quick        the arguments of the version that ``make bench`` runs, some seconds long; None for
                 one that needs what cannot be taken for granted
    run          measures; raises BenchmarkError
    """

    name: str
    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    quick: tuple[str, ...] | None
    run: Callable[[argparse.Namespace], Result]


def count(text: str) -> int:
    """The value of an option that counts something: ``100000``, ``100_000`` or ``100,000``."""
    try:
        value = int(text.replace(",", ""))
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; expected one like 100,000")
    return value


def positive(text: str) -> int:
    """The same, at least one."""
    value = count(text)
    if value == 0:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return value


def share(text: str) -> float:
    """The value of an option that is a part of something, or some times it."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; expected one like 0.1")
    return value
