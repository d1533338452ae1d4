"""ProcessorClock: seconds of processor time of a thread, cheap enough to be asked all the time."""

from __future__ import annotations

from time import perf_counter, thread_time

READ_SECONDS = 0.0005


class ProcessorClock:
    """Called, it tells the seconds; it never goes back, and is at most READ_SECONDS ahead.

    PERF: to read a thread's processor time is a system call of 2 us; the time that passes is read
    in 0.05.  So that is asked, and the other only when READ_SECONDS have passed.
    """

    __slots__ = ("_read", "_read_at", "_told")

    def __init__(self) -> None:
        self._read, self._read_at = thread_time(), perf_counter()
        self._told = self._read

    def __call__(self) -> float:
        passed = perf_counter() - self._read_at
        if passed >= READ_SECONDS:
            self._read, self._read_at = thread_time(), perf_counter()
            passed = 0.0
        self._told = max(self._told, self._read + passed)
        return self._told
