"""Replay: what a profile gets of archived messages, in a process of the trials."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from formats.errors import DecodeError, MessageRefused
from registration.spark.archived_message import read_archived
from yfilter import Matcher, MatchLimitExceeded

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
        message = read_archived(record["name"], record["message"].encode(), None)
        results: list[bytes] = []
        is_given_up = False
        try:
            for each in self._matcher.deliver(message):
                results += each.results
                is_given_up |= each.exceeded is not None
        except MatchLimitExceeded:
            is_given_up = True
        return results, is_given_up
