"""LiveRequests: users who wait at a host broker until a version of a profile is live.

A wait may have a deadline.  Who has waited in vain is told which brokers have not got the change
yet; it goes on its way all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

from onyx.broker.profiles.live_wait import LiveVersion, LiveWaits
from overlay.link.frames import Request
from overlay.link.request_server import RequestRefused, Result, number_argument

Answer = Callable[[int, str, Result], None]

TIMEOUT_SECONDS_MAX = 86_400.0


@dataclass(frozen=True, slots=True)
class _Waiting:
    """``result`` is what is answered, but for whether it is live."""

    connection: int
    request: str
    result: Result
    profile: str
    version: int
    deadline: float


class LiveRequests:
    """Requests with ``wait``, and perhaps ``timeout`` in seconds."""

    def __init__(self, waits: LiveWaits, answer: Answer) -> None:
        self._waits = waits
        self._answer = answer
        self._waiting: dict[tuple[str, int], list[_Waiting]] = {}  # by profile and version
        self._next_deadline = inf  # no later than any deadline

    def tick(self, now: float) -> None:
        """Time goes on: answer those who have waited long enough."""
        if now < self._next_deadline:
            return
        every = [waiting for some in self._waiting.values() for waiting in some]
        self._keep(lambda waiting: waiting.deadline > now)
        self._next_deadline = min((w.deadline for w in every if w.deadline > now), default=inf)
        for waiting in every:
            if waiting.deadline <= now:
                missing = sorted(self._waits.missing(waiting.profile, waiting.version))
                result = {**waiting.result, "live": not missing, "missing": missing}
                self._answer(waiting.connection, waiting.request, result)

    def wait(
        self, connection: int, request: Request, result: Result, live: LiveVersion, now: float
    ) -> Result | None:
        """The answer to a request about a version if it can be given at once; else it comes when
        the version is live, or the time is over."""
        profile, version = live.profile, live.version
        deadline = now + _timeout(request)
        is_live = not self._waits.missing(profile, version)
        if is_live or not request.arguments.get("wait"):
            return {**result, "live": is_live}
        waiting = _Waiting(connection, request.request, result, profile, version, deadline)
        self._waiting.setdefault((profile, version), []).append(waiting)
        self._next_deadline = min(self._next_deadline, deadline)
        return None

    def answer_live(self, live: LiveVersion) -> None:
        """A version of a profile is live: tell those who wait."""
        for waiting in self._waiting.pop((live.profile, live.version), ()):
            result = {**waiting.result, "live": True}
            self._answer(waiting.connection, waiting.request, result)

    def forget(self, connection: int) -> None:
        """A connection is gone; nobody waits on it any more."""
        self._keep(lambda waiting: waiting.connection != connection)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _keep(self, condition: Callable[[_Waiting], bool]) -> None:
        kept = {key: list(filter(condition, some)) for key, some in self._waiting.items()}
        self._waiting = {key: some for key, some in kept.items() if some}


def _timeout(request: Request) -> float:
    if "timeout" not in request.arguments:
        return inf
    timeout = number_argument(request, "timeout", inf)
    if not isfinite(timeout) or timeout > TIMEOUT_SECONDS_MAX:
        raise RequestRefused(
            "bad-argument",
            f"{request.verb}: 'timeout' is at most {TIMEOUT_SECONDS_MAX:.0f} seconds",
        )
    return timeout
