"""The dearest messages, and the processor time of a broker's longest turn with each."""

from __future__ import annotations

import time
from random import Random
from typing import Any

from benchmarks.report import Report
from formats.schema_questions import answer
from onyx.broker.broker_core import BrokerCore
from overlay.link.events import Action, AskSchemaWorker, Event, SchemaAnswered
from overlay.link.frames import Publish
from tests.onyx.broker.hosting import hosting
from tests.security.dear_messages import MEMBERS, SIZE_MAX, SYNTAXES, search
from tests.security.large_messages import large_messages

SEED = 1
LARGE_BYTES = 1_000_000
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
    large = {name: _quickest(*each) for name, each in large_messages(LARGE_BYTES).items()}
    label = f"the dearest turn for one of {LARGE_BYTES} bytes, of {len(large)}"
    report.figure("worst_large_turn_ms", label, max(large.values()), "ms")
    report.detail("large_turns", large)


def _quickest(form: str, payload: bytes) -> float:
    return min(_milliseconds(form, payload) for _ in range(TIMES))


def _milliseconds(form: str, payload: bytes) -> float:
    """Of the longest turn; another process may read the message between two."""
    setting, source = hosting(
        time.process_time, *PROFILES
    )  # to which nothing has come, so none is kept out
    asked: list[AskSchemaWorker] = []
    setting.beside.schemas_asked = asked
    core = setting.beside.core = _Timed(setting.core)
    source.send("s1", Publish(source="s1", format=form, payload=payload))
    for each in asked:
        setting.beside.tell(SchemaAnswered(each.key, answer(each.question)))
    return 1000 * core.longest


class _Timed:
    """A core, and the processor time of the ``longest`` turn."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self.longest = 0.0

    def handle(self, event: Event, now: float) -> list[Action]:
        began = time.process_time()
        actions = self._core.handle(event, now)
        self.longest = max(self.longest, time.process_time() - began)
        return actions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)
