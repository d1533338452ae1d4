"""A broker whose disk gives back less than it has taken, or something else, under traffic.

::

    python -m tests.survival.lying_disks --seed 7

The broker is stopped, its files are damaged, and it starts again.  Its source and its user must be
told ``store-lost``, each by what it is waiting for, and get nothing altered.  Then the good files
are put back, and everything that was accepted must have come, once and in order.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from random import Random

import trio

from onyx import DataSource, User
from onyx.broker.deliveries.late_spaces import BODY_SPACE
from onyx.broker.profiles.hosted_profiles import HOSTED
from onyx.data_source import Pipeline
from onyx.errors import RequestFailed
from overlay.link.lost_stores import STORE_LOST
from overlay.link.store import reading
from tests.hanging import SAFETY_SECONDS
from tests.survival.ledger import Ledger, Wanted, index_in, message
from tests.survival.separate_nodes import HERE, SeparateNodes

BROKER = "B1"
STORE, LOG, HEAD = "store.sqlite", "store.sqlite-wal", "store.sqlite-head"
# Of a log as SQLite has them: its header ends with the salt that each of its frames repeats; frames
# with another salt are left from before the log was last moved into the store.
HEADER_BYTES, FRAME_BYTES, PAGE_BYTES, SALT = 32, 24, 4096, slice(16, 24)
WANTED = Wanted(None)
SOME = 40  # messages before and behind the older copy
VISIBLE_BYTES = 48  # of a row that are in one place of a file
PAUSE_SECONDS = 0.005  # from message to message

Damage = Callable[[Path, Path, Random], None]
"""(the broker's files, an older copy of them, chance) -> damaged."""


def set_back(node: Path, older: Path, chance: Random) -> None:
    """The store as it was, but not its head."""
    copy_store(older, node, without=HEAD)


def set_back_with_head(node: Path, older: Path, chance: Random) -> None:
    copy_store(older, node)


def empty(node: Path, older: Path, chance: Random) -> None:
    for file in node.glob(f"{STORE}*"):
        if file.name != HEAD:
            file.unlink()


def flip_log(node: Path, older: Path, chance: Random) -> None:
    """One bit of the first half of the log, which is committed; none of it is moved into the store
    then."""
    data, step = (node / LOG).read_bytes(), FRAME_BYTES + PAGE_BYTES
    salts = (data[at + 8 : at + 16] for at in range(HEADER_BYTES, len(data), step))
    frames = sum(1 for _ in takewhile(data[SALT].__eq__, salts))
    assert frames > 1, "nothing is in the log"
    _flip(node / LOG, HEADER_BYTES + chance.randrange(frames // 2 * step), chance)


def flip_first(node: Path, chance: Random) -> bool:
    """One bit of what is first in the log; False where nothing is."""
    log = node / LOG
    header = HEADER_BYTES + FRAME_BYTES
    if not log.exists() or log.stat().st_size <= header:
        return False
    _flip(log, header + chance.randrange(PAGE_BYTES), chance)
    return True


def flip_profile(node: Path, older: Path, chance: Random) -> None:
    """One bit of a profile, in the store itself."""
    _flip_rows(node / STORE, HOSTED.space, chance)


def flip_message(node: Path, older: Path, chance: Random) -> None:
    """One bit of each message that waits for the user, in the store itself."""
    _flip_rows(node / STORE, BODY_SPACE, chance)


DAMAGES: Sequence[tuple[Damage, int]] = (
    (set_back, signal.SIGKILL),
    (set_back_with_head, signal.SIGKILL),
    (empty, signal.SIGKILL),
    (flip_log, signal.SIGKILL),
    (flip_profile, signal.SIGTERM),  # which moves the log into the store
    (flip_message, signal.SIGTERM),
)


@dataclass(slots=True)
class Told:
    """Seconds until the source and the user were told so, from when the process with damaged files
    could be reached; where what is damaged is looked at when the user comes, from then.
    ``starting``: from when it was started to then."""

    damage: str
    source: float
    user: float
    starting: float


@dataclass
class LyingDisks:
    """One network, one damage after the other; ``told`` is what came of each."""

    directory: Path
    seed: int
    damages: Sequence[tuple[Damage, int]] = DAMAGES
    say: Callable[[str], None] = lambda line: None
    told: list[Told] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)

    async def run(self) -> Ledger:
        """What was accepted and what came; AssertionError where somebody was not told."""
        self._chance = Random(self.seed)
        self._positions: dict[str, int] = {}
        self._index = 0
        self._go_on, self._quiet = trio.Event(), trio.Event()  # of the publisher
        self._go_on.set()
        with SeparateNodes(self.directory, 1) as self.nodes:
            self._node = self.nodes.data / "nodes" / BROKER
            self.nodes.start(self.nodes.node_ids, HERE)
            await self.nodes.wait_ready()
            async with User(self.nodes.registration, "ann") as user:
                profile = await user.add_profile(WANTED.text + "[@i >= 0]")
            self._profile = profile.id
            self._source = (await DataSource.register(self.nodes.registration)).id
            self.ledger.add_profile(self._profile, WANTED)
            self.ledger.add_source(self._source)
            for damage, number in self.damages:
                with trio.fail_after(SAFETY_SECONDS):
                    await self._meet(damage, number)
                self.say(str(self.told[-1]))
            with trio.fail_after(SAFETY_SECONDS):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._take)
                    while not self.ledger.is_complete():
                        await trio.sleep(0.01)
                    nursery.cancel_scope.cancel()
        return self.ledger

    async def _meet(self, damage: Damage, number: int) -> None:
        older, good = self.directory / "older", self.directory / "good"
        is_away = damage is flip_message  # the user, until the broker runs again
        source_told = user_told = 0.0
        async with trio.open_nursery() as nursery:

            async def publish() -> None:
                nonlocal source_told
                await self._publish()
                source_told = trio.current_time()

            async def take() -> None:
                nonlocal user_told
                await self._take()
                user_told = trio.current_time()

            if not is_away:
                nursery.start_soon(take)
            nursery.start_soon(publish)
            await self._some(is_away)
            self.nodes.signal(BROKER, signal.SIGSTOP)
            copy_store(self._node, older)
            self.nodes.signal(BROKER, signal.SIGCONT)
            await self._some(is_away)
            if is_away:  # what is accepted by the damaged process is not in the good files
                self._go_on = trio.Event()
                await self._quiet.wait()
            self.nodes.stop(BROKER, number)
            copy_store(self._node, good)
            damage(self._node, older, self._chance)
            started = trio.current_time()
            self.nodes.start([BROKER], HERE)
            await self._until_reachable()
            began = trio.current_time()
            if is_away:  # what waits for a user is looked at when they come
                await self.nodes.wait_ready_again(BROKER)
                began = trio.current_time()
                await take()
                self._go_on.set()
        seconds = (source_told - began, user_told - began, began - started)
        self.told.append(Told(damage.__name__, *seconds))
        self.nodes.stop(BROKER, signal.SIGKILL)
        copy_store(good, self._node)
        self.nodes.start([BROKER], HERE)
        await self.nodes.wait_ready_again(BROKER)

    async def _until_reachable(self) -> None:
        while True:
            with suppress(OSError):
                async with await trio.open_tcp_stream("127.0.0.1", self.nodes.at[BROKER].listen):
                    return
            await trio.sleep(0.01)

    async def _some(self, is_away: bool) -> None:
        """Until SOME messages more are accepted, and taken, if somebody is there."""
        accepted = self.ledger.accepted[self._source]
        most = len(accepted) + SOME
        while len(accepted) < most:
            await trio.sleep(0.01)
        if not is_away:
            await self._until_taken(most)

    async def _until_taken(self, count: int) -> None:
        while self.ledger.deliveries < count:
            await trio.sleep(0.01)

    async def _publish(self) -> None:
        """Until told ``store-lost``."""
        accepted = self.ledger.accepted[self._source]
        pending: list[int] = []
        try:
            async with DataSource(self.nodes.registration, self._source) as source:
                pipeline = Pipeline(source)
                while True:
                    pending.append(self._index)
                    self._index += 1
                    for outcome in await pipeline.send(_text(pending[-1])):
                        assert outcome.accepted, outcome
                        accepted.append(pending.pop(0))
                    await trio.sleep(PAUSE_SECONDS)
                    if not self._go_on.is_set():
                        accepted.extend(pending)
                        assert all(each.accepted for each in await pipeline.finish())
                        pending.clear()
                        self._quiet.set()
                        await self._go_on.wait()
        except RequestFailed as error:
            assert error.code == STORE_LOST, error
            self.ledger.uncertain[self._source].update(pending)

    async def _take(self) -> None:
        """Likewise; what is done with is known over the runs."""
        try:
            async with User(self.nodes.registration, "ann") as user:
                results = user.results(self._profile, positions=lambda p: self._positions.get(p, 0))
                async for delivery in results:
                    (text,) = delivery.results
                    assert text == _text(index_in(text)), text
                    self.ledger.take(delivery.profile, delivery.source, text)
                    self._positions[delivery.profile] = delivery.position
        except RequestFailed as error:
            assert error.code == STORE_LOST, error


def _text(index: int) -> bytes:
    """A message that is long however it is packed, so that its result is a row of its own, which
    nobody reads at a start."""
    filling = Random(index).randbytes(600).hex().encode()
    return message(index, 0).replace(b"></m>", b">" + filling + b"</m>")


def copy_store(source: Path, target: Path, without: str = "") -> None:
    """The files of a store, in the place of those that are there."""
    target.mkdir(exist_ok=True)
    for file in target.glob(f"{STORE}*"):
        if file.name != without:
            file.unlink()
    for file in source.glob(f"{STORE}*"):
        if file.name != without and not file.name.endswith("-shm"):
            shutil.copy(file, target)


def _flip_rows(store: Path, space: str, chance: Random) -> None:
    """One bit of each row of a space, also where pages that are no longer used still have it."""
    with closing(reading(store)) as connection:
        found = connection.execute("SELECT value FROM checked_rows WHERE space = ?", (space,))
        values = [value for (value,) in found]
    assert values, f"nothing is in space {space}"
    data = store.read_bytes()
    for value in values:
        at = data.index(value[:VISIBLE_BYTES])
        while at >= 0:
            _flip(store, at, chance)
            at = data.find(value[:VISIBLE_BYTES], at + 1)


def _flip(file: Path, at: int, chance: Random) -> None:
    with file.open("r+b") as stream:
        stream.seek(at)
        (byte,) = stream.read(1)
        stream.seek(at)
        stream.write(bytes([byte ^ 1 << chance.randrange(3)]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survival.lying_disks")
    parser.add_argument("--seed", type=int, default=1, help="of the bits (default: 1)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        disks = LyingDisks(Path(directory), given.seed, say=print)
        verdict = trio.run(disks.run).verdict()
    print(verdict)
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
