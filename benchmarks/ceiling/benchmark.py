"""Benchmark ``ceiling``: how fast the engine's loop would be in plain C.

The engine is built and warmed until it has every state that the measured messages need.  Each of
them is then matched by the compiled engine and by ``replay.c``, which does the same on the same
tables: transitions of all heads, accept lists, marks, ancestors' equalities, verification of
residuals.  Parsing, binding the message and making states are no part of either.  Both must find
the same queries, over as many heads.

A message is matched several times in a row, when all that it needs is in the caches; in turn with
all others, in the order in which the states were made; and in another order.  What the first is
quicker than the others is memory.
"""

from __future__ import annotations

import argparse
import tempfile
from array import array
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from time import perf_counter_ns, thread_time_ns

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, WrongAnswers, count, positive
from benchmarks.ceiling.recording import Recording
from benchmarks.ceiling.replay import Replay, Replayed, compile_replay
from benchmarks.report import Report
from benchmarks.samples import mean
from benchmarks.workload import ProfileMaker, make_messages, make_schema
from formats import ElementStream, parse_text
from formats.kernel import build_info
from yfilter import Matcher, MatchLimits
from yfilter.engine.readings import Reading
from yfilter.engine.targets import Priority
from yfilter.index.automaton import root_of

_AGAIN = 5  # times in a row
_PASSES_MAX = 10  # until no state is made any more
_VISITS_MAX = 100_000_000
_COUNTS = ("found", "heads", "probes", "lists", "candidates", "verified")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--number", metavar="N", type=positive, default=100_000, help="profiles (default: 100,000)"
    )
    parser.add_argument("--warmup", metavar="N", type=count, default=1_000, help="messages before")
    parser.add_argument("--measured", metavar="N", type=positive, default=500, help="messages")
    parser.add_argument("--rounds", metavar="N", type=positive, default=5, help="quickest counts")
    parser.add_argument("--size", metavar="BYTES", type=positive, default=10_000, help="a message")
    parser.add_argument("--seed", metavar="N", type=count, default=1)
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="time passed, or time computed: for a machine that does other work too",
    )


def run(options: argparse.Namespace) -> Report:
    """Measures as the options say."""
    if build_info().partition(" ")[0] != "compiled":
        raise BenchmarkError(f"the compiled build is to be measured; what runs is {build_info()}")
    with tempfile.TemporaryDirectory(prefix="onyx-ceiling-") as name:
        library = compile_replay(Path(name))
        engine = _Engine(options)
        replay = Replay(library, engine.index)
        counts = [_compare(engine, replay, at) for at in range(len(engine.streams))]
        report = Report("ceiling")
        _tell_conditions(report, options)
        report.figure("new_us", "engine, a message not seen before", mean(engine.new), "us")
        in_order = list(range(len(engine.streams)))
        shuffled = Random(f"order {options.seed}").sample(in_order, len(in_order))
        for key, label, order, times in (
            ("again", "again and again", in_order, _AGAIN),
            ("in_turn", "in turn", in_order, 1),
            ("shuffled", "in another order", shuffled, 1),
        ):
            ours, in_c = _quickest(engine, replay, order, times, options.rounds)
            report.figure(f"{key}_c_us", f"C, {label}", in_c, "us")
            report.figure(f"{key}_us", f"engine, {label}", ours, "us", f"{key}_c_us")
    for field in _COUNTS:
        report.figure(field, f"{field}, a message", mean([getattr(c, field) for c in counts]))
    report.remark("C and the engine found the same queries over as many heads in every message")
    report.remark("matching alone: no parse, no binding, no states made (but for the first line)")
    return report


class _Engine:
    """The compiled engine, warm, and its measured messages, parsed and recorded."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.cpu_clock = options.clock == "cpu"
        self._clock = thread_time_ns if self.cpu_clock else perf_counter_ns
        schema = make_schema(options.seed)
        matcher = Matcher(
            MatchLimits(profiles_max=options.number, lazy_bytes_max=2 * 1024 * 1024 * 1024)
        )
        for text in islice(ProfileMaker(schema, options.seed).distinct(), options.number):
            matcher.add(text)
        assert matcher._index is not None
        self.index = matcher._index
        total = options.warmup + options.measured
        messages = make_messages(schema, options.seed, total, options.size)
        for message in messages[: options.warmup]:
            self.match(parse_text(message))
        self.streams = [parse_text(message) for message in messages[options.warmup :]]
        self.new = [self.match(stream) for stream in self.streams]
        self._settle()
        self.recordings = [self._record(stream) for stream in self.streams]

    def match(self, stream: ElementStream) -> float:
        """Microseconds that matching takes, once the message is bound."""
        index = self.index
        index._begin(stream)
        index._twigs.begin()  # even if the message is bound already
        index.visits_last = 0
        start = self._clock()
        index._match(root_of(Priority.PROFILE, Reading.DOCUMENT), _VISITS_MAX)
        return (self._clock() - start) / 1000

    def found(self) -> set[int]:
        """The queries of the message matched last."""
        candidates = self.index._candidates
        return set(memoryview(candidates.found)[: candidates.count])

    def _settle(self) -> None:
        """Match the messages until all their states are in the present tables."""
        states = self.index._run.states
        for _ in range(_PASSES_MAX):
            twigs = self.index._twigs.states
            before = states.computed, twigs.computed, states.used_bytes()
            for stream in self.streams:
                self.match(stream)
            if self.index._run.states is states and before == (
                states.computed,
                twigs.computed,
                states.used_bytes(),
            ):
                return
            states = self.index._run.states
        raise BenchmarkError("the lazy tables do not hold the states of so many messages")

    def _record(self, stream: ElementStream) -> Recording:
        self.index._begin(stream)
        if not self.index._view.only_text:
            raise BenchmarkError("a message has comments or processing instructions")
        return Recording(self.index._view, stream, self.index._symbols)


def _compare(engine: _Engine, replay: Replay, at: int) -> Replayed:
    """What C does for a message; WrongAnswers unless it is what the engine does."""
    heads = engine.index._run.heads
    engine.match(engine.streams[at])
    heads = engine.index._run.heads - heads
    result = replay.run(engine.recordings[at], engine.cpu_clock)
    if result.heads != heads or replay.found(result.found) != engine.found():
        raise WrongAnswers(
            f"message {at}: C finds {result.found} queries over {result.heads} heads, the engine "
            f"{len(engine.found())} over {heads}"
        )
    return result


def _quickest(
    engine: _Engine, replay: Replay, order: Sequence[int], times: int, rounds: int
) -> tuple[float, float]:
    """Microseconds a message of engine and C, means over the messages; the quickest round.

    Of several times in a row the last counts.
    """

    def in_c(at: int) -> float:
        return replay.run(engine.recordings[at], engine.cpu_clock).nanoseconds / 1000

    def ours(at: int) -> float:
        return engine.match(engine.streams[at])

    def once(match: Callable[[int], float]) -> float:
        taken = array("d")
        for at in order:
            for _ in range(times):
                last = match(at)
            taken.append(last)
        return mean(taken)

    pairs = [(once(ours), once(in_c)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def _tell_conditions(report: Report, options: argparse.Namespace) -> None:
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    report.condition("clock", "clock", options.clock)
    report.condition("number", "profiles", options.number)
    report.condition("messages", "messages from", f"generated, seed {options.seed}")
    report.condition("warmup", "messages before", options.warmup)
    report.condition("measured", "messages measured", options.measured)


CEILING = Benchmark(
    name="ceiling",
    summary="the engine's loop against the same loop in plain C, on the same tables",
    add_options=add_options,
    quick=None,  # a C compiler and the compiled build
    run=run,
)
