"""What is asked about one profile and one message, where that takes too long among other things.

Whoever serves many gives a profile a slice of time; what is not done by then is done by a process
of its own (late_questions.py), from the beginning, within the whole of EvaluationLimits.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from formats.helper_process import HelperProcess
from formats.limits import MessageLimits
from yfilter.errors import MatchLimitExceeded


@dataclass(frozen=True, slots=True)
class EvaluateProfile:
    """Does the profile of a text match a message, and what are the results?  ``message``: in the
    binary form, with its ``pieces``, ``accepted`` as of its stream; at most ``seconds`` of
    processor time."""

    text: str
    message: bytes
    pieces: bytes
    limits: MessageLimits
    seconds: float
    accepted: int | None


@dataclass(frozen=True, slots=True)
class ProfileEvaluated:
    """``results`` of a ``media_type``, "": XML; none where the message does not match.
    ``exceeded``: the limit, (code, reason), that left it without, or with the first alone;
    ``seconds`` of processor time were spent."""

    results: tuple[bytes, ...]
    exceeded: tuple[str, str] | None
    seconds: float
    media_type: str = ""

    @property
    def limit(self) -> MatchLimitExceeded | None:
        return None if self.exceeded is None else MatchLimitExceeded(*self.exceeded)


def pack_answer(answer: ProfileEvaluated) -> bytes:
    """For a pipe: plain values only, as whoever evaluates is not trusted."""
    packed: bytes = msgpack.packb(
        (list(answer.results), answer.exceeded, answer.seconds, answer.media_type)
    )
    return packed


def unpack_answer(data: bytes) -> ProfileEvaluated:
    """ValueError for what is no answer."""
    match msgpack.unpackb(data):
        case [[*results], None | [str(), str()] as limit, float(seconds), str(media_type)] if all(
            isinstance(one, bytes) for one in results
        ):
            exceeded = None if limit is None else (limit[0], limit[1])
            return ProfileEvaluated(tuple(results), exceeded, seconds, media_type)
    raise ValueError("no answer about a profile")


class LateWorker:
    """One question at a time; ``close`` may be called by another thread."""

    def __init__(self) -> None:
        self._process = HelperProcess("yfilter.late_process")

    def ask(self, question: EvaluateProfile) -> ProfileEvaluated:
        """The answer; blocks until then.  ``too-much-time`` where the process has died of it."""
        try:
            pipe = self._process.start()
            pipe.send(question)
            return unpack_answer(pipe.recv_bytes())
        except (EOFError, OSError, ValueError):
            self._process.end()
            died = "the process that evaluates what takes long has died of it"
            return ProfileEvaluated((), ("too-much-time", died), question.seconds)

    def close(self) -> None:
        """End the process; whoever waits for an answer gets one."""
        self._process.close()
