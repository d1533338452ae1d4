"""The process in which profiles are tried; trials.py starts it.

It gives way to others who want the processor.  A question that takes too much time or memory ends
it.  Run as ``python -m onyx.gateway.trial_process DESCRIPTOR``, of a socket; ends when that does.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any

from formats.errors import DecodeError, MessageRefused, Refusal
from formats.publication import read_publication
from onyx.gateway.api_answers import Explained, PartsShown
from registration.spark.archived_message import read_archived
from yfilter import Matcher, MatchLimitExceeded, MatchLimits
from yfilter.language.namespaces import ShortNames
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS
from yfilter.language.query_parser import prefixes_of

# -------------------------------------------------------------------------------------------------
# Replay: what a profile gets of archived messages, in a process of the trials.


SAMPLES = 5  # messages of a page whose results are shown
SAMPLE_BYTES_MAX = 4_000


class Replay:
    """Of one profile, a page after another; ProfileRefused."""

    def __init__(self, profile: str, new_matcher: Callable[[], Matcher]) -> None:
        self.profile = profile
        self._matcher = new_matcher()
        self._matcher.add(profile)

    def page(self, lines: bytes) -> dict[str, Any]:
        """Of lines as an archive has them: how many ``messages``, of these how many ``unread`` and
        ``given_up``, ``matches``, ``results`` and their ``bytes``; the ``last`` time, and some
        results as ``samples``."""
        counts = dict.fromkeys(("messages", "unread", "given_up", "matches", "results", "bytes"), 0)
        samples: list[dict[str, Any]] = []
        first = last = ""
        for line in lines.splitlines():
            record = json.loads(line)
            first, last = first or record["time"], record["time"]
            counts["messages"] += 1
            try:
                results, is_given_up = self._take(record)
            except (MessageRefused, DecodeError):
                counts["unread"] += 1
                continue
            counts["given_up"] += is_given_up
            if not results:
                continue
            counts["matches"] += 1
            counts["results"] += len(results)
            counts["bytes"] += sum(map(len, results))
            if len(samples) < SAMPLES:
                text = b"\n".join(results)[:SAMPLE_BYTES_MAX].decode("utf-8", "replace")
                about = {name: record[name] for name in ("source", "number", "time")}
                samples.append({**about, "results": text})
        return {**counts, "first": first, "last": last, "samples": samples}

    def _take(self, record: dict[str, Any]) -> tuple[list[bytes], bool]:
        what = record["name"], record["message"].encode(), None
        accepted = datetime.fromisoformat(record["time"]).timestamp()
        message = read_archived(*what, round(accepted * 1_000_000))
        results: list[bytes] = []
        is_given_up = False
        try:
            for each in self._matcher.deliver(message):
                results += each.results
                is_given_up |= each.exceeded is not None
        except MatchLimitExceeded:
            is_given_up = True
        return results, is_given_up


MEMORY_BYTES = 1024 * 1024 * 1024
NICENESS = 5
TRIAL_SECONDS = 2.0
LAZY_BYTES = 1024 * 1024  # of the index, which has room for many profiles by itself
RESULTS_MAX = 20  # shown of a message
RESULTS_BYTES_MAX = 256 * 1024


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)
    pipe = Connection(int(sys.argv[1]))
    while True:
        try:
            question: dict[str, Any] = pipe.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, TRIAL_SECONDS)
        try:
            if "schema_zip" in question:
                answer = read_bundle(**question)
            else:
                answer = replayed(**question) if "lines" in question else try_profile(**question)
        except Refusal as refused:
            answer = {"refused": (*refused.said(), refused.fault.facts())}
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send_bytes(json.dumps(answer).encode())


def try_profile(
    profile: str, message: bytes | None = None, media_type: str = "", base: str = ""
) -> dict[str, Any]:
    """What becomes of a profile, and with a message its results; Refusal."""
    matcher = _new_matcher()
    read = None if message is None else read_publication(message, media_type, base=base)
    explained = matcher.explain(profile, read)
    names = ShortNames(prefixes_of(profile))
    shown = explained.renamed(names.short)
    results: tuple[str, ...] = ()
    if read is not None and explained.matched:
        matcher.add(profile)
        results = tuple(_shown([one for each in matcher.deliver(read) for one in each.results]))
    found = Explained(
        **{each.name: getattr(explained, each.name) for each in fields(explained)},
        text=names.whole(str(shown)),
        shown=PartsShown(shown.parts, shown.failure),
        results_shown=results,
    )
    return asdict(found)


def read_bundle(schema_zip: bytes, main: str) -> dict[str, Any]:
    """``schema_name`` and ``schema``, in base64, of a schema of several documents."""
    # Most trials are of profiles.
    from onyx.schema_path import read_schema_zip  # noqa: PLC0415

    name, schema = read_schema_zip(schema_zip, main)
    return {"schema_name": name, "schema": b64encode(schema).decode()}


_replays: list[Replay] = []  # of the profile that was asked for last


def replayed(profile: str, lines: bytes) -> dict[str, Any]:
    """What a profile, which was tried before, gets of a page of an archive."""
    if not _replays or _replays[0].profile != profile:
        _replays[:] = [Replay(profile, _new_matcher)]
    return _replays[0].page(lines)


def _new_matcher() -> Matcher:
    evaluation = replace(DEFAULT_EVALUATION_LIMITS, seconds_max=1.0, clock=time.thread_time)
    return Matcher(MatchLimits(lazy_bytes_max=LAZY_BYTES, evaluation=evaluation))


def _shown(results: list[bytes]) -> Any:
    left = RESULTS_BYTES_MAX
    for result in results[:RESULTS_MAX]:
        yield result[:left].decode("utf-8", "replace")
        left = max(0, left - len(result))


if __name__ == "__main__":
    main()
