"""``onyx subscribe --share``: real processes divide the results of a profile, and one is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from queue import Queue
from threading import Thread

import pytest

from onyx.blocking import DataSource, User
from tests.hanging import SAFETY_SECONDS


class Subscribers:
    """Processes that share a profile; ``numbers`` of the messages that each has printed."""

    def __init__(self, registration: str, profile: str) -> None:
        self.numbers: dict[str, list[int]] = defaultdict(list)
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self._command = [sys.executable, "-m", "onyx", "subscribe", profile, "--share", "--json"]
        self._command += ["--registration", registration]
        self._printed: Queue[tuple[str, int]] = Queue()

    def start(self, name: str) -> None:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self.processes[name] = process
        Thread(target=self._read, args=(name, process), daemon=True).start()

    def wait(self, count: int) -> None:
        """Until so many more are printed."""
        for _ in range(count):
            name, number = self._printed.get(timeout=SAFETY_SECONDS)
            self.numbers[name].append(number)

    def all(self) -> Counter[int]:
        return Counter(number for numbers in self.numbers.values() for number in numbers)

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._printed.put((name, json.loads(line)["number"]))


@pytest.fixture
def subscribers(registration: str) -> Iterator[Subscribers]:
    with User(registration) as user:
        profile = user.add_profile("//shared")
        started = Subscribers(registration, profile.id)
        try:
            yield started
        finally:
            for process in started.processes.values():
                process.kill()
                process.communicate()
            user.remove_profile(profile.id)


def test_what_one_had_that_is_killed_comes_to_the_other(
    registration: str, subscribers: Subscribers
) -> None:
    with DataSource.register(registration) as source:
        for name in ("a", "b"):
            subscribers.start(name)
        while len(subscribers.numbers) < 2:  # until both are there
            assert source.publish(b"<shared/>").accepted
            subscribers.wait(1)
        before = subscribers.all()
        stopped = subscribers.processes["a"]
        stopped.send_signal(signal.SIGSTOP)
        assert all(outcome.accepted for outcome in source.publish_all([b"<shared/>"] * 100))
        # It may have had one on the way to its output, not acknowledged: that comes twice.
        stopped.kill()
        while len(subscribers.all()) < len(before) + 100:
            subscribers.wait(1)
        after = subscribers.all()
        assert set(after) == set(range(1, len(before) + 101))
        assert [number for number in after if after[number] > 1 and number not in before] == []
        assert set(range(len(before) + 1, len(before) + 101)) <= set(subscribers.numbers["b"])
        subscribers.processes["b"].terminate()
        assert subscribers.processes["b"].wait(SAFETY_SECONDS) == 0
