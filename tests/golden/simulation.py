"""simulation.json: frames, deliveries and rows of scenarios of the simulation, each with a seed.

A seed says all: the same frames leave in the same order at the same simulated times, whatever
PYTHONHASHSEED and the machine are.  So a diff here names the frames whose number has changed; where
none has, the digests tell whether their bytes, order or times have (``sent``), the order of
deliveries (``delivered``), or the rows on the disks at the end (``stored``).  Of each space that a
process stores there is a row as an example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from unittest import mock

import msgpack

from overlay.link.events import Delete, Put
from tests.golden.golden_file import as_json
from tests.simulation import (
    test_changing_shapes,
    test_changing_sources,
    test_exactly_once,
    test_graphs,
    test_moves,
    test_policies,
    test_taxonomies,
    test_trained_dictionaries,
    test_transformation,
)
from tests.simulation.scenario import Scenario
from tests.simulation.sim_disk import MemoryDisk
from tests.simulation.sim_network import SimNetwork, SimNode

EXAMPLE_BYTES_MAX = 240  # of a row that is shown whole

RUNS: dict[str, Callable[[], Scenario]] = {
    **{
        f"exactly once, seed {seed}": lambda seed=seed: test_exactly_once.run(seed)  # type: ignore[misc]
        for seed in (1, 2, 3, 4)
    },
    "transformation, seed 1": lambda: test_transformation.run(1),
    "moves, seed 1": lambda: test_moves.run(1),
    "changing shapes, seed 2": lambda: test_changing_shapes.run(2, cut=True),
    "changing sources, seed 1": lambda: test_changing_sources.run(1),
    "graphs, seed 1": lambda: test_graphs.right(1),
    "policies, seed 3": lambda: test_policies.run(3),
    "taxonomies, seed 1": lambda: test_taxonomies.run(1),
    "trained dictionaries, seed 1": lambda: test_trained_dictionaries.run(1),
}

GRAPHS = ("graphs, seed 1", "taxonomies, seed 1")
"""A process learns the shape of a graph query when it meets the second of it, and stores profiles
of a known shape by their values; these are run ahead, so that all shapes are known."""


class Record:
    """The frames that leave processes while it watches, which come in pieces, as over TCP; and the
    least row of each space that processes of each role store."""

    def __init__(self) -> None:
        self.frames: Counter[str] = Counter()
        self.sent = sha256()
        self.rows: dict[str, tuple[str, bytes]] = {}
        self._rest: dict[tuple[str, int], bytes] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        transmit = SimNetwork._transmit

        def noted(net: SimNetwork, node: SimNode, number: int, data: bytes) -> None:
            # Sorted, since a needs-delta tells the needs of a set in any order.
            self.sent.update(f"{net.now:.6f} {node.peer} {number} ".encode() + bytes(sorted(data)))
            self._count((node.peer, number), data)
            transmit(net, node, number, data)

        with (
            mock.patch.object(SimNetwork, "_transmit", noted),
            mock.patch.object(Scenario, "new_disk", lambda _, peer: _WatchedDisk(peer, self.rows)),
        ):
            yield

    def _count(self, connection: tuple[str, int], data: bytes) -> None:
        data = self._rest.pop(connection, b"") + data
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
            header = msgpack.unpackb(data[6 : 6 + int.from_bytes(data[4:6], "big")])
            self.frames[header["t"]] += 1
            data = data[end:]
        if data:
            self._rest[connection] = data


class _WatchedDisk(MemoryDisk):
    def __init__(self, peer: str, rows: dict[str, tuple[str, bytes]]) -> None:
        super().__init__()
        self._role, self._rows = peer.partition("/")[0], rows

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        made = list(changes)
        for change in made:
            if isinstance(change, Put):
                name, row = f"{self._role}/{change.space}", (change.key, change.value)
                self._rows[name] = min(self._rows.get(name, row), row)
        super().commit(made)


def simulation() -> str:
    runs: dict[str, object] = {}
    examples: dict[str, tuple[str, bytes]] = {}
    for name in GRAPHS * 2:
        RUNS[name]()
    for name, run in RUNS.items():
        record = Record()
        # The topology that brokers agree on names the directory of their data.
        with mock.patch.dict("os.environ", {"XDG_STATE_HOME": "/state"}), record.watching():
            scenario = run()
        stored, spaces = sha256(), Counter[str]()
        for peer, node in sorted(scenario.net.nodes.items()):
            for space, key, value in node.disk.open():
                if space != "profile-language":  # a digest of sources, which change
                    stored.update(repr((peer, space, key, value)).encode())
                spaces[space] += 1
        examples = record.rows | examples
        for own in [name for name in examples if name.endswith("/profile-language")]:
            del examples[own]
        got = {
            profile: [*interest.subscriber.got.items()]
            for profile, interest in scenario.interests.items()
        }
        runs[name] = {
            "deliveries": sum(times for each in got.values() for _, times in each),
            "frames": dict(sorted(record.frames.items())),
            "rows": dict(sorted(spaces.items())),
            "cuts": scenario.net.cuts,
            "crashes": scenario.net.crashes,
            "ends_at": round(scenario.net.now, 6),
            "delivered": sha256(repr(got).encode()).hexdigest()[:16],
            "sent": record.sent.hexdigest()[:16],
            "stored": stored.hexdigest()[:16],
        }
    return as_json(
        {"runs": runs, "rows": {name: _row(*examples[name]) for name in sorted(examples)}}
    )


def _row(key: str, value: bytes) -> dict[str, object]:
    """A long value by its digest."""
    if len(value) > EXAMPLE_BYTES_MAX:
        return {"key": key, "bytes": len(value), "sha256": sha256(value).hexdigest()[:16]}
    return {"key": key, "hex": value.hex()}
