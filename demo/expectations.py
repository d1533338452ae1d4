"""Expectations: every profile on every message, each on its own, by the oracle.

Profiles x messages are many evaluations, so they run in processes of their own while the network
runs.  What comes back are fingerprints; the results themselves are evaluated again where a fault
is to be shown.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from multiprocessing import get_context

from lxml import etree

from demo.acceptance import independent_refusal
from demo.graph_oracle import (
    SPARQL_RESULTS,
    canonical_graph_result,
    expected_graph_results,
    is_graph_profile,
    is_graph_type,
)
from demo.oracle import canonical, expected_results
from formats.limits import DEFAULT_LIMITS
from formats.media_types import XML

_CHUNK = 4
_PROGRESS_SECONDS = 2.0
_WORKERS_MAX = 4


@dataclass(frozen=True, slots=True)
class Expectation:
    """What should become of one message.

    ``refusal``: what lxml, or pyoxigraph, has against it; ``results``: for each profile (by its
    place in the list of profiles) the fingerprints of its results, where there are any;
    ``unknown``: why the oracle cannot say that, "" if it can.
    """

    refusal: str | None
    results: dict[int, tuple[bytes, ...]]
    unknown: str = ""


class Expectations:
    """The evaluations under way."""

    def __init__(self, futures: Sequence[Future[list[Expectation]]]) -> None:
        self._futures = futures

    def wait(self, progress: Callable[[str], None]) -> list[Expectation]:
        """One for each message, in order; ``progress`` is told now and then how far it is."""
        while wait(self._futures, timeout=_PROGRESS_SECONDS).not_done:
            done = sum(future.done() for future in self._futures)
            progress(f"evaluating profiles one by one: {done / len(self._futures):.0%}")
        return [expectation for future in self._futures for expectation in future.result()]


@contextmanager
def start_expecting(
    profiles: Sequence[str], messages: Sequence[tuple[bytes, str]]
) -> Iterator[Expectations]:
    """Evaluate in the background, messages with their media types; at the end of the block no
    process is left."""
    executor = ProcessPoolExecutor(
        min(_WORKERS_MAX, os.cpu_count() or 1),
        # Not forked: the parent may already have threads.
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(list(profiles),),
    )
    try:
        chunks = [messages[first : first + _CHUNK] for first in range(0, len(messages), _CHUNK)]
        yield Expectations([executor.submit(_expect_chunk, list(chunk)) for chunk in chunks])
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def expect(profiles: Sequence[str], message: bytes, media_type: str = XML) -> Expectation:
    """What should become of one message."""
    if len(message) > DEFAULT_LIMITS.bytes_max:
        return Expectation(None, {}, f"it has {len(message)} bytes")
    refusal = independent_refusal(message, media_type)
    results: dict[int, tuple[bytes, ...]] = {}
    if refusal is not None:
        return Expectation(refusal, results)
    for place, profile in enumerate(profiles):
        try:
            found = _expected(profile, message, media_type)
            if found:
                results[place] = tuple(fingerprint(result) for result in found)
        except Exception as error:  # whatever it is, the run is then not good
            return Expectation(None, {}, f"{type(error).__name__}: {error}; profile: {profile}")
    return Expectation(None, results)


def _expected(profile: str, message: bytes, media_type: str) -> list[bytes]:
    if is_graph_profile(profile):
        return expected_graph_results(profile, message, media_type)
    return [] if is_graph_type(media_type) else expected_results(profile, message)


@lru_cache(maxsize=1024)  # many profiles deliver the message as it is
def fingerprint(result: bytes) -> bytes:
    """The same for results that are equal as canonical XML, as solutions or as graphs.

    What is none of them has a fingerprint that no expected result has.
    """
    is_solutions = result[:1] == b"{" or SPARQL_RESULTS in result[:500]
    try:
        if not is_solutions:
            return sha256(canonical(result)).digest()
    except (etree.XMLSyntaxError, ValueError):
        pass
    found = canonical_graph_result(result)
    if found is None:
        return b"neither XML nor a graph: " + sha256(result).digest()
    return sha256(found).digest()


_profiles: list[str] = []  # of a worker process


def _start_worker(profiles: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    _profiles[:] = profiles


def _expect_chunk(messages: list[tuple[bytes, str]]) -> list[Expectation]:
    return [expect(_profiles, *message) for message in messages]
