"""LateWorker: asks a process of its own about profiles that take long; see late_questions.py."""

from __future__ import annotations

from formats.helper_process import HelperProcess
from yfilter.late_questions import EvaluateProfile, ProfileEvaluated, unpack_answer


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
