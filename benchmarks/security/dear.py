"""The dearest messages, and the processor time of the turn in which a broker's core takes one."""

from __future__ import annotations

import time
from random import Random

from benchmarks.report import Report
from overlay.link.frames import Publish
from tests.beside import Peer
from tests.onyx.broker.hosting import hosting
from tests.security.dear_messages import MEMBERS, SIZE_MAX, SYNTAXES, search

SEED = 1
TIMES = 3  # of each message that is reported, the quickest counts
PROFILES = (
    "//a",
    "/r[b]/c",
    "//*[@a = '1']",
    "//item[price > 5]",
    "for $x in /r/b[1] return <r>{$x}</r>",
    "SELECT ?s WHERE { ?s <u:p> ?o }",
)


def measure_turns(rounds: int, report: Report) -> None:
    """``rounds`` of the search in each syntax."""
    turns = {name: _quickest(*member) for name, member in MEMBERS.items()}
    for name in SYNTAXES:
        _, shape = search(name, Random(SEED), rounds, SIZE_MAX, _milliseconds)
        turns[f"{name}: found"] = _quickest(shape.syntax.format, shape.message(SIZE_MAX))
    worst = max(turns, key=turns.__getitem__)
    label = f"the dearest turn for a message of {SIZE_MAX // 1024} KiB, of {len(turns)}"
    report.figure("worst_turn_ms", label, turns[worst], "ms")
    report.detail("turns", turns)
    report.remark(f"the dearest is: {worst}")


def _quickest(form: str, payload: bytes) -> float:
    return min(_milliseconds(form, payload) for _ in range(TIMES))


def _milliseconds(form: str, payload: bytes) -> float:
    source = _source()
    began = time.process_time()
    source.send("s1", Publish(source="s1", format=form, payload=payload))
    return 1000 * (time.process_time() - began)


def _source() -> Peer:
    """At a core to which nothing has come, so that no source is kept out."""
    return hosting(float, *PROFILES)[1]
