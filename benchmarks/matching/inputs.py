"""Profiles and messages for a MatchJob: made from a seed or read from files, put into a folder.

Messages come in three lots: for warming up, for measuring and for matching between changes of the
profiles.  Generated ones have no message in common; see ``read_lots`` for files.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import IO

import lxml.etree
import msgpack

from benchmarks.benchmark import BenchmarkError
from benchmarks.matching.job import MESSAGES, PROFILES
from benchmarks.workload import ProfileMaker, make_messages, make_schema

_SAMPLE_PROFILES, _SAMPLE_MESSAGES = 2_000, 50


@dataclass(frozen=True, slots=True)
class Lots:
    """Messages by what they are for."""

    warm: Sequence[bytes]
    measured: Sequence[bytes]
    changing: Sequence[bytes]

    def write(self, folder: Path) -> None:
        lots = {"warm": self.warm, "measured": self.measured, "changing": self.changing}
        (folder / MESSAGES).write_bytes(msgpack.packb(lots))


def make_lots(seed: int, warm: int, measured: int, changing: int, size: int) -> Lots:
    """Generated messages of about ``size`` bytes."""
    made = make_messages(make_schema(seed), seed, warm + measured + changing, size)
    return Lots(made[:warm], made[warm : warm + measured], made[warm + measured :])


def read_lots(directory: Path, seed: int, warm: int, measured: int, changing: int) -> Lots:
    """The XML files below a directory in random order: half of them to warm up, half to measure.

    There are too few to spare any, so those matched between changes are measured ones again.
    """
    paths = sorted(directory.rglob("*.xml"))
    if len(paths) < 10:
        raise BenchmarkError(f"{directory} has {len(paths)} XML files; at least 10 are needed")
    Random(f"order {seed}").shuffle(paths)
    messages = [path.read_bytes() for path in paths]
    half = len(paths) // 2
    measuring = messages[half:][:measured]
    return Lots(messages[:half][:warm], measuring, measuring[:changing])


def read_profiles(source: Path, folder: Path, number: int, extra: int) -> int:
    """Copies so many lines of a file, or fewer if it ends; gives how many are for ``number``."""
    copied = 0
    with _open_text(source) as lines, (folder / PROFILES).open("w", encoding="utf-8") as file:
        for line in islice((line.strip() for line in lines), number + extra):
            file.write(line + "\n")
            copied += 1
    if not copied:
        raise BenchmarkError(f"{source} is empty; expected one profile a line")
    return min(copied, number)


def make_profiles(
    folder: Path, seed: int, number: int, extra: int, matching_percent: float | None
) -> None:
    """Writes distinct generated profiles, of which so many percent match a message on average.

    Every profile is ordinary when no percentage is asked for.
    """
    maker = ProfileMaker(make_schema(seed), seed)
    ordinary = 1.0
    if matching_percent is not None:
        ordinary = _ordinary_share(maker, seed, number, matching_percent)
    texts = maker.distinct(ordinary)
    with (folder / PROFILES).open("w", encoding="utf-8") as file:
        file.writelines(text + "\n" for text in islice(texts, number + extra))


def _ordinary_share(maker: ProfileMaker, seed: int, number: int, percent: float) -> float:
    """The share of ordinary profiles at which so many percent match; narrow ones hardly do.

    How many ordinary ones match is found by lxml on a sample, which ends where the profiles end:
    the more there are, the longer and rarer the distinct ones become.
    """
    texts = list(islice(maker.distinct(), number))
    sample = Random(f"sample {seed}").sample(texts, min(_SAMPLE_PROFILES, number))
    paths = [lxml.etree.XPath(f"boolean({text})") for text in sample]
    messages = make_messages(make_schema(seed), seed + 1, _SAMPLE_MESSAGES, 10_000)
    trees = [lxml.etree.fromstring(message) for message in messages]
    hits = sum(bool(path(tree)) for tree in trees for path in paths)
    reachable = 100 * hits / (len(paths) * len(trees))
    if percent > reachable:
        raise BenchmarkError(
            f"{percent} % cannot be reached: of {number} generated profiles {reachable:.2f} % match"
        )
    return percent / reachable


def _open_text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")
