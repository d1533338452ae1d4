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
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from typing import Any

from formats.errors import FormatError, SchemaRefused
from formats.publication import read_publication
from onyx.gateway.replay import Replay
from yfilter import Matcher, MatchLimitExceeded, MatchLimits, ProfileRefused
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS

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
        if "schema_zip" in question:
            answer = read_bundle(**question)
        else:
            answer = replayed(**question) if "lines" in question else try_profile(**question)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send_bytes(json.dumps(answer).encode())


def try_profile(
    profile: str, message: bytes | None = None, media_type: str = "", base: str = ""
) -> dict[str, Any]:
    """What becomes of a profile, and with a message its results; ``refused`` is "profile" or
    "message", with code, reason, line, column and what was expected."""
    matcher = _new_matcher()
    try:
        read = None if message is None else read_publication(message, media_type, base=base)
        explained = matcher.explain(profile, read)
        found: dict[str, Any] = {**asdict(explained), "text": str(explained)}
        if read is not None and explained.matched:
            matcher.add(profile)
            delivered = [result for each in matcher.deliver(read) for result in each.results]
            found["results_shown"] = list(_shown(delivered))
    except ProfileRefused as refused:
        place = {"line": refused.line, "column": refused.column}
        said = {"code": refused.code, "reason": refused.reason, "expected": refused.expected}
        return {"refused": "profile", **said, **place}
    except FormatError as refused:
        place = {name: getattr(refused, name, 0) for name in ("line", "column")}
        return {"refused": "message", "code": refused.code, "reason": refused.reason, **place}
    except MatchLimitExceeded as exceeded:
        return {"refused": "message", "code": exceeded.code, "reason": exceeded.reason}
    return found


def read_bundle(schema_zip: bytes, main: str) -> dict[str, Any]:
    """``schema_name`` and ``schema``, in base64, of a schema of several documents."""
    # Most trials are of profiles.
    from onyx.schema_path import read_schema_zip  # noqa: PLC0415

    try:
        name, schema = read_schema_zip(schema_zip, main)
    except SchemaRefused as refused:
        place = {"line": refused.line, "column": refused.column}
        said = {"refused": "schema", "code": "schema-refused"}
        return {**said, "reason": f"{refused.reason} [{refused.code}]", **place}
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
