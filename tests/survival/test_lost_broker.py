"""A broker that dies with its disk, for good, under traffic: who is not behind it loses nothing."""

from __future__ import annotations

import shutil
import signal
from itertools import pairwise
from pathlib import Path

import trio

from onyx import DataSource, User
from onyx.cli.main import main
from onyx.data_source import Pipeline
from tests.hanging import SAFETY_SECONDS
from tests.survival.ledger import Ledger, Wanted, index_in, message
from tests.survival.separate_nodes import HERE, SeparateNodes

RING = [("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B4", "B1")]
LOST = "B4"
SOURCES = (0.0, 10.0)  # latitudes: at B1 and B2
SOME = 50  # messages of each source
PAUSE_SECONDS = 0.01


class Traffic:
    """What was accepted of each source, what came to each profile, and of which was said that
    something is missing."""

    def __init__(self, moved: str) -> None:
        """``moved``: a profile of which something may be missing."""
        self.moved = moved
        self.ledger = Ledger()
        self.got: dict[str, dict[str, list[int]]] = {}
        self.told: set[str] = set()
        self.is_over = False

    async def publish(self, source: DataSource) -> None:
        accepted = self.ledger.accepted[source.id]
        async with source:
            pipeline, index = Pipeline(source), 0
            while not self.is_over:
                outcomes = await pipeline.send(message(index, 20))
                index += 1
                assert all(outcome.accepted for outcome in outcomes)
                accepted.extend(range(len(accepted), len(accepted) + len(outcomes)))
                await trio.sleep(PAUSE_SECONDS)
            rest = await pipeline.finish()
            assert all(outcome.accepted for outcome in rest)
            accepted.extend(range(len(accepted), index))

    async def take(self, user: User, profiles: list[str]) -> None:
        async for delivery in user.results(*profiles):
            if delivery.limit:
                assert "host-lost" in str(delivery.limit)
                self.told.add(delivery.profile)
            for text in delivery.results:
                of_source = self.got[delivery.profile].setdefault(delivery.source, [])
                of_source.append(index_in(text))
                if delivery.profile != self.moved:
                    self.ledger.take(delivery.profile, delivery.source, text)

    async def reach(self, profiles: list[str]) -> None:
        """Until each of them has got what is accepted SOME messages from now."""
        most = {source: len(accepted) + SOME for source, accepted in self.ledger.accepted.items()}
        for profile in profiles:
            for source, index in most.items():
                while self.got[profile].get(source, [-1])[-1] < index:
                    await trio.sleep(0.02)


async def test_who_is_not_behind_a_broker_that_is_lost_for_good_loses_nothing(
    tmp_path: Path,
) -> None:
    with SeparateNodes(tmp_path, 4, RING) as nodes, trio.fail_after(SAFETY_SECONDS):
        nodes.start(nodes.node_ids, HERE)
        await nodes.wait_ready()
        async with User(nodes.registration, "ann") as user, trio.open_nursery() as nursery:
            added = [await user.add_profile("/m", location=(10.0 * n, 0.0)) for n in range(4)]
            (moved,) = [each.id for each in added if each.host == LOST]
            traffic = Traffic(moved)
            others = [each.id for each in added if each.host != LOST]
            traffic.got = {each.id: {} for each in added}
            for profile in others:
                traffic.ledger.add_profile(profile, Wanted(None))
            nursery.start_soon(traffic.take, user, [*others, moved])
            async with trio.open_nursery() as publishing:
                for latitude in SOURCES:
                    where = (latitude, 0.0)
                    source = await DataSource.register(nodes.registration, location=where)
                    traffic.ledger.add_source(source.id)
                    publishing.start_soon(traffic.publish, source)
                await traffic.reach([*others, moved])
                nodes.stop(LOST, signal.SIGKILL)
                shutil.rmtree(nodes.data / "nodes" / LOST)
                said = ["broker", "lost", LOST, "--registration", nodes.registration]
                assert await trio.to_thread.run_sync(main, said) == 0
                await traffic.reach([*others, moved])
                traffic.is_over = True
            while not traffic.ledger.is_complete() or any(
                traffic.got[moved][source][-1] < accepted[-1]
                for source, accepted in traffic.ledger.accepted.items()
            ):
                await trio.sleep(0.02)
            nursery.cancel_scope.cancel()
    verdict = traffic.ledger.verdict()
    assert verdict.is_good, verdict
    for taken in traffic.got[moved].values():
        gaps = [after - before for before, after in pairwise(taken) if after != before + 1]
        assert len(gaps) <= 1 and all(gap > 1 for gap in gaps), "in order, with one gap at most"
    assert traffic.told == {moved}, "and it is said"
