"""Publishers of one source and a subscriber of a real network that are killed again and again.

What each knows of its runs before is on its own disk; the verdict is counted in the subscriber's
database, where each message of each publisher is to be once.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import trio

from onyx import DataSource, User
from tests.hanging import SAFETY_SECONDS
from tests.survival.killed_subscriber import opened
from tests.survival.separate_nodes import SeparateNodes

ROOT = Path(__file__).resolve().parents[2]
EXACT = ("nothing", "numbers", "journal")
LINES_MAX = 2  # that an end says before it is killed, each for a hundred messages
MESSAGES_A_RUN = 100 * LINES_MAX + 300  # of a publisher at most: the rest is under way
LOOK_SECONDS = 0.5


@dataclass
class Verdict:
    """By how publishers go on: messages that never came, and how often one came too often."""

    lost: Counter[str] = field(default_factory=Counter)
    doubled: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    messages: int = 0


@dataclass
class KilledEnds:
    """Two brokers, a publisher for each of ``kinds``, one subscriber; each is killed ``kills``
    times."""

    kills: int
    seed: int
    directory: Path
    kinds: Sequence[str] = EXACT
    say: Callable[[str], None] = lambda line: None

    @property
    def messages(self) -> int:
        """Of each publisher."""
        return MESSAGES_A_RUN * (self.kills + 1)

    async def run(self) -> Verdict:
        verdict = Verdict(messages=self.messages * len(self.kinds))
        database = str(self.directory / "work.db")
        with SeparateNodes(self.directory, 2) as nodes, closing(opened(database)) as work:
            nodes.start(nodes.node_ids, ROOT)
            await nodes.wait_ready()
            where = nodes.registration
            source = await DataSource.register(where, name="shared")
            async with User(where) as user:
                profile = await user.add_profile("/m")
            async with trio.open_nursery() as nursery:
                what = [where, profile.id, database]
                nursery.start_soon(self._live, "subscriber", "subscriber", what, verdict)
                async with trio.open_nursery() as publishers:
                    for place, kind in enumerate(self.kinds):
                        which = str(place * self.messages), str(self.messages)
                        what = [where, source.id, kind, *which, str(self.directory)]
                        publishers.start_soon(self._live, "publisher", kind, what, verdict)
                await _wait_quiet(work, verdict.messages)
                nursery.cancel_scope.cancel()
            for place, kind in enumerate(self.kinds):
                own = range(place * self.messages, (place + 1) * self.messages)
                came = Counter({n: c for n, c in _counts(work).items() if n in own})
                verdict.lost[kind] = self.messages - len(came)
                verdict.doubled[kind] = came.total() - len(came)
        return verdict

    async def _live(self, module: str, name: str, what: list[str], verdict: Verdict) -> None:
        """Run after run is killed; the last one lives until it is done, or is not needed."""
        random = Random(f"{self.seed} {name}")
        command = [sys.executable, "-m", f"tests.survival.killed_{module}", *what]
        for number in range(self.kills + 1):
            lines = random.randint(1, LINES_MAX) if number < self.kills else None
            process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, cwd=ROOT)
            assert process.stdout is not None
            said = b""
            try:
                while lines is None or said.count(b"\n") < lines:
                    more = await process.stdout.receive_some()
                    said += more
                    if not more:
                        break
            finally:
                with trio.CancelScope(shield=True):
                    process.send_signal(signal.SIGKILL)
                    await process.wait()
                    await process.stdout.aclose()
            if said.endswith(b"done\n"):
                return
            assert said.count(b"\n") >= (lines or 1), f"{name} has failed: {said!r}"
            verdict.kills[name] += 1
            self.say(f"{name} is killed for the {number + 1}. time")


async def _wait_quiet(work: sqlite3.Connection, total: int) -> None:
    """Until all has come, and then a while; or nothing comes any more."""
    before, seen_at = 0, trio.current_time()
    while trio.current_time() < seen_at + SAFETY_SECONDS:
        counts = _counts(work)
        if counts.total() > before:
            before, seen_at = counts.total(), trio.current_time()
        elif len(counts) == total and trio.current_time() > seen_at + 4 * LOOK_SECONDS:
            return
        await trio.sleep(LOOK_SECONDS)


def _counts(work: sqlite3.Connection) -> Counter[int]:
    """How often each message was worked on."""
    return Counter(dict(work.execute("SELECT message, count(*) FROM work GROUP BY message")))
