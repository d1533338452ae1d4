"""Sizes: how much the benchmark ``network`` publishes and registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts, unless said otherwise.

    users           to whom the profiles of any scenario are shared out, each with a connection;
                    at most one for each profile
    one_messages    of scenario ``one``; ``latency_rounds`` messages one at a time,
                    ``synced_messages`` while fsyncs are counted
    fan_profiles    of scenario ``fan``, for ``fan_messages``
    wide_users      of scenario ``wide``, for ``wide_messages``; ``idle_users`` for
                    ``idle_seconds``
    client_messages of scenario ``clients``
    path_profiles   of scenario ``paths``, one run each; ``path_messages`` are timed,
                    ``crash_messages`` published while the broker is killed
    message_bytes   about, of a message of ``paths`` and ``away``
    matching        the share of the path profiles that matches a message
    away_profiles   of everything, of scenario ``away``, for ``away_messages``
    waiting_profiles  paths, of scenario ``away-paths``, for ``waiting_messages``
    large_profiles  FLWOR, of scenario ``large``, for ``large_messages`` of ``large_quotes`` each
    registered      profiles of scenario ``registering``, ``at_once`` requests open, after
                    ``registered_in_bulk``
    seed            of generated profiles and messages
    seconds         for whatever is waited for; what has not come by then is missing
    yfilter         a directory with messages and paths of YFilter's release, for ``away-paths``;
                    None: generated ones
    """

    users: int = 1_000
    one_messages: int = 10_000
    latency_rounds: int = 500
    synced_messages: int = 1_000
    fan_profiles: int = 100
    fan_messages: int = 500
    wide_users: int = 300
    wide_messages: int = 60
    idle_users: int = 1_000
    idle_seconds: float = 20.0
    client_messages: int = 4_000
    path_profiles: Sequence[int] = (1_000, 10_000)
    path_messages: int = 200
    crash_messages: int = 60
    message_bytes: int = 10_000
    matching: float = 0.16
    away_profiles: int = 1_000
    away_messages: int = 100
    waiting_profiles: int = 6_103
    waiting_messages: int = 500
    large_profiles: int = 1_000
    large_quotes: int = 20_000
    large_messages: int = 3
    registered: int = 20_000
    registered_in_bulk: int = 80_000
    at_once: int = 400
    seed: int = 1
    seconds: float = 600.0
    yfilter: Path | None = None


QUICK = Sizes(
    users=3,
    one_messages=200,
    latency_rounds=5,
    synced_messages=50,
    fan_profiles=4,
    fan_messages=20,
    wide_users=4,
    wide_messages=20,
    idle_users=4,
    idle_seconds=1.0,
    client_messages=20,
    path_profiles=(12,),
    path_messages=10,
    crash_messages=20,
    message_bytes=2_000,
    away_profiles=6,
    away_messages=10,
    waiting_profiles=12,
    waiting_messages=20,
    large_profiles=4,
    large_quotes=40,
    large_messages=2,
    registered=30,
    registered_in_bulk=100,
    seconds=60.0,
)
