"""A driver that ends at any step, and brokers that die: each delivery is in the sink once.

The steps are Spark's (MicroBatchExecution): it keeps the end of a batch before the batch runs, and
that it ran afterwards; a batch that is not known to have run runs again, with the same end.  Here a
function takes them, with the reader of Spark and a network of real processes, so that hundreds of
ends cost what one session of Spark does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import types

from onyx.blocking import DataSource, User
from onyx.errors import NotAuthenticated, RequestFailed
from onyx.spark.results_stream import Offset, ResultsReader, StreamAsked
from tests.onyx.networks import RunningProcess, small_topology_text

KILLS = int(os.environ.get("ONYX_KILLS", "2"))
ENDS = 40 if "ONYX_KILLS" in os.environ else 12  # of the drivers of a seed
SEED = int(os.environ.get("ONYX_KILLS_SEED", "1"))
Row = tuple[Any, ...]
SCHEMA = types.StructType(
    [
        types.StructField("profile", types.StringType()),
        types.StructField("position", types.LongType()),
        types.StructField("source", types.StringType()),
        types.StructField("number", types.LongType()),
        types.StructField("ordinal", types.IntegerType()),
        *(
            types.StructField(name, types.StringType())
            for name in ("result", "media_type", "limit")
        ),
    ]
)


class Killed(Exception):
    """The driver ends here."""


@dataclass
class Checkpoint:
    """The files of a query: the ends of its batches, which of them ran, and what is in the
    sink of each.  ``different``: batches that were another when they ran again."""

    ends: list[Offset] = field(default_factory=list)
    ran: set[int] = field(default_factory=set)
    sink: dict[int, list[Row]] = field(default_factory=dict)
    different: list[int] = field(default_factory=list)
    again: int = 0


@dataclass
class Driver:
    """One run of a query; ``step`` raises Killed now and then."""

    kept: Checkpoint
    asked: StreamAsked
    random: Random
    kills: Counter[str]
    share: float  # of the steps at which it ends
    disturb: Callable[[], None] = lambda: None  # while a batch is read

    def run(self) -> None:
        """Until there is no more."""
        reader = ResultsReader(self.asked, SCHEMA)
        try:
            reader.prepareForTriggerAvailableNow()
            self._finish_last(reader)
            while self._one_more(reader):
                pass
        finally:
            reader.stop()

    def _step(self, name: str) -> None:
        if self.random.random() < self.share:
            self.kills[name] += 1
            raise Killed(name)

    def _start_of(self, reader: ResultsReader, batch: int) -> Offset:
        return self.kept.ends[batch - 1] if batch else reader.initialOffset()

    def _finish_last(self, reader: ResultsReader) -> None:
        last = len(self.kept.ends) - 1
        if last >= 0 and last not in self.kept.ran:
            self._batch(reader, last, self._start_of(reader, last))

    def _one_more(self, reader: ResultsReader) -> bool:
        batch = len(self.kept.ends)
        start = self._start_of(reader, batch)
        self._step("begin")
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if batch and end == start:
            return False
        self._step("plan")
        self.kept.ends.append(end)
        self._step("written")
        if batch:
            reader.commit(start)
            self._step("released")
        self._batch(reader, batch, start)
        return True

    def _batch(self, reader: ResultsReader, batch: int, start: Offset) -> None:
        parts = reader.partitions(start, self.kept.ends[batch])
        self._step("partitions")
        rows: list[Row] = []
        for part in parts:
            self.disturb()
            executor = ResultsReader(self.asked, SCHEMA)
            for some in executor.read(part):
                rows += map(tuple, zip(*some.to_pydict().values(), strict=True))
                self._step("reading")
        rows.sort()
        if batch in self.kept.sink:
            self.kept.again += 1
            self.kept.different += [batch] * (rows != self.kept.sink[batch])
        self.kept.sink[batch] = rows
        self._step("sink")
        self.kept.ran.add(batch)
        self._step("ran")


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("kills")
    file = directory / "small.toml"
    file.write_text(small_topology_text(directory / "data", 2), encoding="utf-8")
    running = RunningProcess.start(file)
    yield running
    running.stop()


def test_a_worker_shows_the_credentials_or_the_token_that_it_has(
    brokers: RunningProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Path(brokers.up["topology"]).parent / "identity" / "operator.pem"
    file = tmp_path / "tom.token"
    command = [sys.executable, "-m", "onyx", "token", "issue", "user/tom", "--out", str(file)]
    subprocess.run([*command, "--registration", brokers.registration], check=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # where nothing is noted
    given = {"registration": brokers.registration, "profile": "p1"}
    with pytest.raises(NotAuthenticated), StreamAsked.of(given).network.connected():
        pass
    given["credentials"] = str(operator)
    with StreamAsked.of(given).network.connected() as user:
        mine = user.add_profile("/of-the-operator").id
        assert user.positions(mine)[mine].last == 0
    monkeypatch.setenv("TOMS", file.read_text().split("token ")[1].split()[0])
    with StreamAsked.of({**given, "token": "TOMS"}).network.connected() as tom:
        assert tom.add_profile("/of-tom").user == "tom"
        with pytest.raises(RequestFailed, match="not-authorised"):
            tom.positions(mine)


@pytest.mark.parametrize("begins", ["earliest", "latest"])
@pytest.mark.parametrize("seed", range(SEED, SEED + KILLS // 2))
def test_each_delivery_is_once_in_the_sink_wherever_the_driver_ends(
    brokers: RunningProcess, seed: int, begins: str
) -> None:
    random = Random(seed)
    source = DataSource.register(brokers.registration)
    kept, kills = Checkpoint(), Counter[str]()
    with User(brokers.registration) as user, source:
        name = source.id
        profiles = [user.add_profile(f"/m[@of = '{name}'][@n mod {k} = 0]").id for k in (1, 2, 3)]
        sent = 0

        def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                sent += 1
                source.publish(f'<m of="{name}" n="{sent}"/>'.encode())

        send(20)
        asked = StreamAsked.of(
            {
                "registration": brokers.registration,
                "profile": ",".join(profiles),
                "maxDeliveriesPerTrigger": "15",
                "startingPositions": begins,
            }
        )
        skipped = 20 if begins == "latest" else 0
        if skipped:
            Driver(kept, asked, random, kills, 0.0).run()
            assert kept.sink == {0: []}

        def kill_a_broker() -> None:
            """In the midst of a batch, at times; it is there again when the batch is read."""
            if random.random() < 0.1:
                kills["broker"] += 1
                brokers.kill(f"B{random.randint(1, 2)}")

        while sum(kills.values()) < ENDS:
            send(random.randint(0, 12))
            try:
                Driver(kept, asked, random, kills, 0.15, kill_a_broker).run()
            except Killed:
                if random.random() < 0.2 and kept.ran:
                    kept.ran.discard(max(kept.ran))  # an entry of the log of commits is removed
        Driver(kept, asked, random, kills, 0.0).run()
        last = user.positions(*profiles)
    rows = [row for batch in kept.sink.values() for row in batch]
    wanted = {
        (profile, n)
        for profile, k in zip(profiles, (1, 2, 3), strict=True)
        for n in range(skipped + 1, sent + 1)
        if n % k == 0
    }
    found = Counter((row[0], row[3]) for row in rows)
    assert found == Counter(wanted), f"seed {seed}: lost or doubled"
    assert not kept.different, f"seed {seed}"
    assert all(at.gone > 0 for at in last.values())
    assert len(kills) >= ENDS // 6, kills
    assert kept.again
