"""A real network under faults, and what came of every acknowledged message.

::

    python -m tests.survival.chaos --seconds 600 --seed 7

Each node is a process of its own behind proxies; processes are killed, paused and started again,
connections cut, held up, heard one way only and refused, certificates over, revoked and renewed
(without ``--insecure`` all connections are TLS), disks full or failing at a write or a
sync, bits of their logs flipped, power cut, so that files are what was synced of them, and clocks
moved, in an order that the seed gives.  A broker that hosts nothing, between the others, is lost
with its disk for good, and comes back as a new one.  With ``--standbys`` the rows are in PostgreSQL
with a synchronous replica, each node has a standby, and the server crashes, or is lost with its
disk, so that the replica goes on and gets another one.

Then the faults stop, and everything that was accepted must have come to each profile that wants it,
once and in order.  Exit code 0: so it is; 1: it is not.  The last line is the verdict as JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path

import trio

from onyx import DataSource, User
from onyx.data_source import Pipeline
from onyx.errors import EXIT_BUSY, EXIT_STORE, NetworkUnreachable, RequestFailed, UserError
from overlay.link.lost_stores import STORE_LOST
from tests.survival.ledger import Ledger, Verdict, Wanted, message
from tests.survival.lying_disks import copy_store, flip_first
from tests.survival.machine import cut_power, machines
from tests.survival.proxy import Proxy, Weather
from tests.survival.replicas import Replicated, replicated_postgres
from tests.survival.separate_nodes import HERE, REGISTRATION, SeparateNodes

SPARE = "B5"  # which only passes on, as messages go through it first
BROKERS = 5
LINKS = [
    *(("B1", SPARE), ("B2", SPARE), ("B3", SPARE), ("B4", SPARE)),
    *(("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B4", "B1")),
]
NEAR = 4  # of these links, the quickest
# A slow machine has millions wait: nothing of that may go.
LIMITS = """
[limits]
link_down_after_s = 6
delivery_backlog_bytes_max = 68719476736
[limits.link]
keepalive_seconds = 3
"""
SOURCES = (0.0, 10.0, 20.0)  # latitudes: at B1, B2 and B3
PROFILES = [
    *((latitude, Wanted(None)) for latitude in (0.0, 10.0, 20.0, 30.0)),
    *((10.0 * (group % 4), Wanted(group)) for group in range(12)),
]
BURST = 20  # messages of a source that are published without a pause
OVER_DAYS = -0.001  # of a certificate
UNTIMELY_SECONDS = [1.0, 4.0, 8.0]  # in which certificates or clocks are wrong
READ_SECONDS = 1.5  # in which a process has read its credentials again
CLOCK_SECONDS = 3 * 86_400  # by which a clock is wrong at most
FOUND_SECONDS = 150.0  # in which a process that starts has found what is wrong with its log
RECOVERY_SECONDS = 3.0  # in which nothing else is done to a machine whose disk has failed
BETWEEN = 100  # messages that are accepted between two faults
STANDSTILL_SECONDS = 15.0  # if they are, in that time
UNEXPECTED_MAX = 20  # processes that end by themselves: one that cannot start is no chaos
GONE_SECONDS = 60.0  # in which a broker that is lost is out of the network, or in it again, or
PATIENCE_SECONDS = 1_800.0  # where millions of messages wait
LEASE_SECONDS = 2
SERVER = "postgres"
CALM_SECONDS = 60.0  # behind the faults, without anything of what is still on its way


@dataclass
class Chaos:
    """One run, of so many ``seconds`` and until so many ``messages`` are accepted; ``rate``:
    messages a second of all sources together, in the mean."""

    seconds: float
    seed: int
    rate: float
    directory: Path
    messages: int = 0
    say: Callable[[str], None] = print
    only: Sequence[str] = ()  # faults; none: all
    is_secure: bool = True
    server: Replicated | None = None  # that has the rows of all nodes, which have standbys then
    ledger: Ledger = field(default_factory=Ledger)
    faults: Counter[str] = field(default_factory=Counter)
    ended_for_disks: Counter[str] = field(default_factory=Counter)  # nodes, as they have to
    flips_found: int = 0
    told_of_stores: int = 0  # how often the user was told that a broker's files are not its own
    told_lost: int = 0  # deliveries that a broker has dropped for a limit, and said so
    unexpected: list[str] = field(default_factory=list)

    async def run(self) -> Verdict:
        self._chance = random.Random(self.seed)
        self._over = trio.Event()  # the faults
        self._down: set[str] = set()  # nodes that are killed or paused on purpose
        self._failing: set[str] = set()  # of these, whose disk fails: they may end
        nodes = [REGISTRATION, *(f"B{number + 1}" for number in range(BROKERS))]
        self.machines = {} if self.server else machines(self.directory, nodes)
        server = self.server
        self.nodes = SeparateNodes(
            *(self.directory, BROKERS, LINKS, LIMITS, NEAR),
            is_proxied=True,
            is_secure=self.is_secure,
            name=server.new_schema().replace("/", "-") if server else "chaos",
            stores=f'url = "{server.url}"\nlease_s = {LEASE_SECONDS}' if server else "",
            environments={node: machine.environment for node, machine in self.machines.items()},
        )
        with self.nodes:
            async with trio.open_nursery() as nursery:
                self.proxies = {node: await self._proxies(nursery, node) for node in self.nodes.at}
                self.nodes.start(self.nodes.node_ids, HERE)
                await self.nodes.wait_ready()
                nursery.start_soon(self._watch)
                nursery.start_soon(self._report)
                verdict = await self._use(nursery)
                nursery.cancel_scope.cancel()
        return verdict

    async def _proxies(self, nursery: trio.Nursery, node: str) -> list[Proxy]:
        at, through = self.nodes.at[node], self.nodes.through[node]
        proxies = [Proxy(*ports) for ports in zip(through, at, strict=True)]
        for proxy in proxies:
            await nursery.start(proxy.run)
        return proxies

    async def _use(self, nursery: trio.Nursery) -> Verdict:
        where = self.nodes.registration
        async with User(where, "ann") as user:
            added = [
                (await user.add_profile(wanted.text, location=(latitude, 0.0)), wanted)
                for latitude, wanted in PROFILES
            ]
            for profile, wanted in added:
                self.ledger.add_profile(profile.id, wanted)
            nursery.start_soon(self._take, [profile.id for profile, _ in added])
            async with trio.open_nursery() as publishing:
                for latitude in SOURCES:
                    source = await DataSource.register(where, location=(latitude, 0.0))
                    self.ledger.add_source(source.info.id)
                    publishing.start_soon(self._publish, source)
                await self._do_harm()
                self._over.set()
                self.say("the faults are over")
            with trio.move_on_after(CALM_SECONDS) as calm:
                while not self.ledger.is_complete():
                    before = self.ledger.deliveries
                    await trio.sleep(0.3)
                    if self.ledger.deliveries > before:
                        calm.deadline = trio.current_time() + CALM_SECONDS
            return self.ledger.verdict()

    async def _publish(self, source: DataSource) -> None:
        """Without a pause between messages but what the rate asks for."""
        identity, index = source.info.id, 0
        accepted, uncertain = self.ledger.accepted[identity], self.ledger.uncertain[identity]
        while not self._over.is_set():
            pending: list[int] = []
            try:
                async with DataSource(self.nodes.registration, identity) as opened:
                    pipeline = Pipeline(opened)
                    while not self._over.is_set():
                        pending.append(index)
                        index += 1
                        outcomes = await pipeline.send(message(index - 1, index * 7 % 600))
                        accepted.extend(pending[: len(outcomes)])
                        del pending[: len(outcomes)]
                        if index % BURST == 0:
                            await trio.sleep(BURST * len(SOURCES) / self.rate)
                    await pipeline.finish()
                    accepted.extend(pending)
            except (UserError, RequestFailed, OSError) as error:
                self.say(f"{identity}: {error}")
                uncertain.update(pending)
                await trio.sleep(0.5)

    async def _take(self, profiles: list[str]) -> None:
        """As one user, who comes again whenever they are told that a broker's files are wrong."""
        positions: dict[str, int] = {}
        while True:
            try:
                async with User(self.nodes.registration, "ann") as user:
                    results = user.results(*profiles, positions=lambda p: positions.get(p, 0))
                    async for delivery in results:
                        for text in delivery.results:
                            self.ledger.take(delivery.profile, delivery.source, text)
                        positions[delivery.profile] = delivery.position
                        if results.lost > self.told_lost:
                            self.told_lost = results.lost
                            self.say(f"a broker has dropped: {results.lost_by_profile()}")
            except RequestFailed as error:
                assert error.code == STORE_LOST, error
                self.told_of_stores += 1
                await trio.sleep(0.5)
            except NetworkUnreachable as error:  # who comes does not wait for a broker for long
                self.say(f"ann: {error}")

    @property
    def _accepted(self) -> int:
        return sum(map(len, self.ledger.accepted.values()))

    async def _watch(self) -> None:
        """Start again what has ended by itself, and note it."""
        while True:
            for node, code in self.nodes.fallen().items():
                if code in self._may_end(node):
                    self.ended_for_disks[node] += 1
                elif node in self._down:
                    continue
                else:
                    self.unexpected.append(f"{node} ended with {code}")
                    self.say(self.unexpected[-1])
                    assert len(self.unexpected) < UNEXPECTED_MAX, self.unexpected
                self.nodes.start([node], HERE)
            await trio.sleep(0.3)

    def _may_end(self, node: str) -> tuple[int, ...]:
        """Exit codes that say what is so."""
        if self.server:  # its server was away, or its standby has taken its place
            return EXIT_STORE, EXIT_BUSY
        return (EXIT_STORE,) if node in self._failing else ()

    async def _report(self) -> None:
        while True:
            await trio.sleep(10)
            accepted, delivered = self._accepted, self.ledger.deliveries
            self.say(f"{accepted} accepted, {delivered} delivered, {dict(self.faults)}")

    # --- faults -----------------------------------------------------------------------------

    async def _do_harm(self) -> None:
        faults: dict[Callable[[], object], int] = {
            self._kill: 30,
            self._pause: 15,
            self._cut: 20,
            self._hole: 10,
            self._one_way: 6,
            self._refuse: 6,
            self._kill_all: 3,
        }
        if self.server:
            faults |= {self._crash_server: 6, self._lose_server: 6}
        else:
            faults |= {self._lose_broker: 5}
        if self.is_secure:
            faults |= {self._end_certificate: 8, self._revoke_certificate: 6, self._renew: 6}
        if self.machines:
            faults |= {
                self._fill_disk: 8,
                self._break_disk: 8,
                self._cut_power: 12,
                self._cut_all_power: 3,
                self._set_clock: 8,
                self._flip_bit: 8,
            }
        if self.only:
            faults = {
                fault: weight
                for fault, weight in faults.items()
                if fault.__name__.strip("_") in self.only
            }
        async with trio.open_nursery() as nursery:
            self._harm = nursery
            until = trio.current_time() + self.seconds
            while trio.current_time() < until or self._accepted < self.messages:
                await trio.sleep(self._chance.expovariate(1 / 2.5))
                with trio.move_on_after(STANDSTILL_SECONDS):
                    await self._go_on(BETWEEN)
                (fault,) = self._chance.choices(list(faults), list(faults.values()))
                self.faults[fault.__name__.strip("_")] += 1
                fault()

    async def _go_on(self, count: int) -> None:
        """Until so many messages more are accepted: a slow machine takes fewer faults a minute."""
        most = self._accepted + count
        while self._accepted < most:
            await trio.sleep(0.1)

    def _node(self) -> str:
        """One that nothing is done to now; the registration service seldom."""
        free = [node for node in self.nodes.at if node not in self._down]
        weights = [1 if node.startswith(REGISTRATION) else 3 for node in free]
        return self._chance.choices(free, weights)[0] if free else ""

    def _proxy(self) -> Proxy:
        return self._chance.choice(self.proxies[self._chance.choice(self.nodes.node_ids)])

    def _kill(self) -> None:
        node = self._node()
        if node:
            self._kill_for(node, self._chance.choice([0.0, 0.2, 1.0, 4.0]))

    def _kill_all(self) -> None:
        for node in self.nodes.node_ids:
            if node not in self._down:
                self._kill_for(node, self._chance.choice([0.0, 1.0, 2.0]))

    def _kill_for(self, node: str, seconds: float, *, with_power: bool = False) -> None:
        self._down.add(node)

        async def kill() -> None:
            if node in self.nodes.processes:
                self.nodes.stop(node, signal.SIGKILL)
            if with_power:
                cut_power(self.nodes.data / "nodes" / node, self._chance)
            await trio.sleep(seconds)
            self.nodes.start([node], HERE)
            self._down.discard(node)

        self._harm.start_soon(kill)

    def _pause(self) -> None:
        node, seconds = self._node(), self._chance.choice([0.5, 2.0, 5.0, 12.0])
        if not node:
            return
        self._down.add(node)

        async def pause() -> None:
            self.nodes.signal(node, signal.SIGSTOP)
            await trio.sleep(seconds)
            self.nodes.signal(node, signal.SIGCONT)
            self._down.discard(node)

        self._harm.start_soon(pause)

    def _cut_power(self) -> None:
        node = self._node()
        if node:
            self._kill_for(node, self._chance.choice([0.0, 1.0]), with_power=True)

    def _cut_all_power(self) -> None:
        for node in self.nodes.node_ids:
            if node not in self._down:
                self._kill_for(node, self._chance.choice([0.0, 1.0]), with_power=True)

    def _fill_disk(self) -> None:
        self._fail_disk(["full"], [1.0, 4.0])

    def _break_disk(self) -> None:
        self._fail_disk(["unwritten", "unsynced"], [0.5, 2.0])

    def _fail_disk(self, words: Sequence[str], seconds: Sequence[float]) -> None:
        """Whoever ends for it is started again."""
        node, word, most = self._node(), self._chance.choice(words), self._chance.choice(seconds)
        if not node:
            return
        self._down.add(node)
        self._failing.add(node)

        async def fail() -> None:
            self.machines[node].fail(word)
            await trio.sleep(most)
            self.machines[node].fail("")
            await trio.sleep(RECOVERY_SECONDS)
            self._failing.discard(node)
            self._down.discard(node)

        self._harm.start_soon(fail)

    def _flip_bit(self) -> None:
        """Of the first that is in a broker's log.  Once it has found that, the good files are put
        back; if all of the log is in the store as well nothing is lost by it, and it goes on."""
        node = self._node()
        if not node or node == REGISTRATION:
            return
        self._down.add(node)
        self._failing.add(node)
        files, good = self.nodes.data / "nodes" / node, self.directory / f"good-{node}"

        async def flip() -> None:
            if node in self.nodes.processes:
                self.nodes.stop(node, signal.SIGKILL)
            copy_store(files, good)
            is_flipped = flip_first(files, self._chance)
            ended = self.ended_for_disks[node]
            self.nodes.start([node], HERE)
            with trio.move_on_after(FOUND_SECONDS if is_flipped else 0):
                while self.ended_for_disks[node] == ended:
                    await trio.sleep(0.1)
            if self.ended_for_disks[node] > ended:
                if node in self.nodes.processes:
                    self.nodes.stop(node, signal.SIGKILL)
                copy_store(good, files)
                self.nodes.start([node], HERE)
                self.flips_found += 1
            await trio.sleep(RECOVERY_SECONDS)
            self._failing.discard(node)
            self._down.discard(node)

        self._harm.start_soon(flip)

    def _lose_broker(self) -> None:
        """For good; it comes back with an empty disk."""
        if SPARE in self._down:
            return
        self._down.add(SPARE)

        async def lose() -> None:
            if SPARE in self.nodes.processes:
                self.nodes.stop(SPARE, signal.SIGKILL)
            shutil.rmtree(self.nodes.data / "nodes" / SPARE)
            await self._say_until_it_is_so("broker", "lost", SPARE)
            await trio.sleep(self._chance.choice([0.0, 3.0]))
            self.nodes.start([SPARE], HERE)
            await self._say_until_it_is_so("topology", "apply", str(self.nodes.file(REGISTRATION)))
            self._down.discard(SPARE)

        self._harm.start_soon(lose)

    async def _say_until_it_is_so(self, *command: str) -> None:
        """As an operator, who says it again as long as nobody is there to hear it, or much is still
        on its way on the trees of before."""
        where = ["--registration", self.nodes.registration, "--timeout", str(GONE_SECONDS)]
        said = [sys.executable, "-m", "onyx", *command, *where]
        with trio.fail_after(PATIENCE_SECONDS):
            while True:
                done = await trio.run_process(
                    said, capture_stdout=True, capture_stderr=True, check=False, cwd=HERE
                )
                if done.returncode == 0:
                    return
                self.say(f"{' '.join(command)}: {done.stderr.decode().strip()[-300:]}")
                await trio.sleep(1.0)

    def _crash_server(self) -> None:
        self._do_to_server(lambda server: server.crash())

    def _lose_server(self) -> None:
        """With its disk; its replica goes on, and gets another one later."""

        def lose(server: Replicated) -> None:
            server.lose_primary()
            server.promote()
            server.add_replica()

        self._do_to_server(lose)

    def _do_to_server(self, what: Callable[[Replicated], None]) -> None:
        server = self.server
        if server is None or SERVER in self._down:
            return
        self._down.add(SERVER)

        async def do() -> None:
            await trio.to_thread.run_sync(what, server)
            await trio.sleep(RECOVERY_SECONDS)
            self._down.discard(SERVER)

        self._harm.start_soon(do)

    def _set_clock(self) -> None:
        """Of a machine.  It stays so where nobody looks at the calendar, else nobody would speak
        with it any more."""
        node, seconds = self._node(), self._chance.choice(UNTIMELY_SECONDS)
        if not node:
            return
        machine = self.machines[node]
        machine.set_clock(self._chance.randint(-CLOCK_SECONDS, CLOCK_SECONDS))
        if self.is_secure:
            self._mend_later(node, seconds, lambda: machine.set_clock(0))

    def _end_certificate(self) -> None:
        """Of a node, which shows it as soon as its connections are cut."""
        node, seconds = self._node(), self._chance.choice(UNTIMELY_SECONDS)
        if node:
            self.nodes.certify(node, OVER_DAYS)
            self._mend_later(node, seconds, lambda: self.nodes.certify(node))

    def _revoke_certificate(self) -> None:
        node, seconds = self._node(), self._chance.choice(UNTIMELY_SECONDS)
        if node:
            self.nodes.revoke(node)
            self._mend_later(node, seconds, lambda: self.nodes.certify(node))

    def _renew(self) -> None:
        if node := self._node():
            self.nodes.certify(node)
            self._mend_later(node, 0.0, lambda: None)

    def _mend_later(self, node: str, seconds: float, mend: Callable[[], None]) -> None:
        """Its connections are cut once it has read its files again, and nothing else is done to it
        until it is well."""
        self._down.add(node)

        async def wait() -> None:
            await trio.sleep(READ_SECONDS)
            for proxy in self.proxies[node]:
                self._harm.start_soon(proxy.cut)
            await trio.sleep(seconds)
            mend()
            await trio.sleep(READ_SECONDS)
            self._down.discard(node)

        self._harm.start_soon(wait)

    def _cut(self) -> None:
        self._harm.start_soon(self._proxy().cut)

    def _hole(self) -> None:
        self._storm(Weather.HOLE, self._chance.choice([1.0, 4.0, 14.0]))

    def _one_way(self) -> None:
        kind = self._chance.choice([Weather.DEAF, Weather.MUTE])
        self._storm(kind, self._chance.choice([2.0, 12.0]))

    def _refuse(self) -> None:
        proxy = self._proxy()
        self._harm.start_soon(proxy.cut)
        self._storm(Weather.REFUSING, self._chance.choice([3.0, 15.0]), proxy)

    def _storm(self, weather: Weather, seconds: float, where: Proxy | None = None) -> None:
        proxy = where or self._proxy()

        async def storm() -> None:
            proxy.become(weather)
            await trio.sleep(seconds)
            proxy.become(Weather.FAIR)

        self._harm.start_soon(storm)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survival.chaos")
    parser.add_argument("--seconds", type=float, default=60.0, help="of faults (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (default: 1)")
    parser.add_argument(
        "--messages", type=int, default=0, help="go on until so many are accepted (default: 0)"
    )
    parser.add_argument("--rate", type=float, default=500.0, help="messages a second (500)")
    parser.add_argument("--only", metavar="FAULT", nargs="*", default=(), help="of these faults")
    parser.add_argument(
        "--standbys", action="store_true", help="of nodes with standbys, and rows in PostgreSQL"
    )
    parser.add_argument("--insecure", action="store_true", help="without TLS")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="stores and logs stay there")
    given = parser.parse_args(arguments)
    with (
        nullcontext(given.keep) if given.keep else tempfile.TemporaryDirectory() as directory,
        replicated_postgres() if given.standbys else nullcontext() as server,
    ):
        Path(directory).mkdir(parents=True, exist_ok=True)
        chaos = Chaos(
            *(given.seconds, given.seed, given.rate, Path(directory), given.messages),
            only=given.only,
            is_secure=not given.insecure,
            server=server,
        )
        verdict = trio.run(chaos.run)
        if not verdict.is_good or chaos.unexpected:
            for log in sorted(Path(directory).glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}")
    print(
        json.dumps(
            {
                **asdict(verdict),
                "faults": chaos.faults,
                "unexpected": chaos.unexpected,
                "told_lost": chaos.told_lost,
                "ended_for_disks": chaos.ended_for_disks.total(),
                "flips_found": chaos.flips_found,
                "told_of_stores": chaos.told_of_stores,
            }
        )
    )
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
