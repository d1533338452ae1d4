"""How quickly a rule set is imported: what each process does with it, in one that is fresh.

``onyx profile import`` compiles the file, the registration service checks the profiles, and the
host broker parses and installs them.  The time is that of the processor, added up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from onyx.rule_sets import folder_reader
from yfilter import Matcher, parse_profile
from yfilter.matcher import check_profile
from yfilter.schematron import RuleSet, compile_schematron


class Imported(NamedTuple):
    """Seconds: compiling, trying, placing."""

    compiled: float
    tried: float
    placed: float


def import_seconds(schema: Path, folder: Path, rules: RuleSet) -> Imported:
    """Of the rule set in a file, which includes files below a folder, and was compiled once."""
    texts = [rule.text for rule in rules.profiles]
    return Imported(
        _in_another_process(partial(_compile, schema, folder)),
        _in_another_process(partial(_check, texts)),
        _in_another_process(partial(_place, texts)),
    )


def _in_another_process(work: Callable[[], object]) -> float:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_timed, work).result()


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _compile(schema: Path, folder: Path) -> None:
    read = folder_reader(schema.parent, folder)
    compile_schematron(schema.read_bytes(), file=schema.name, read=read)


def _check(texts: Sequence[str]) -> None:
    for text in texts:
        check_profile(text)


def _place(texts: Sequence[str]) -> None:
    matcher = Matcher()
    for text in texts:
        matcher.add(parse_profile(text))
