"""Silences: faults at which no connection ends, and nothing comes all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.sim_network import SimNetwork, SimNode

PAUSE_SECONDS = (0.5, 12.0)


@dataclass
class Silences:
    """Of a network, while it is faulty: processes stand still and go on, connections carry one way
    only until somebody gives them up.  ``seen`` counts them by kind."""

    net: SimNetwork
    every: float  # seconds between two, about
    role: str = ""  # only of processes of this role, not of those that may crash
    seen: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        if not self.net.faulty:
            return
        random = self.net.random
        nodes = self.net.nodes
        peers = [peer for peer in self.net.may_crash if peer in nodes]
        if self.role:
            peers = [peer for peer in nodes if peer.startswith(f"{self.role}/")]
        if peers:
            self._begin(nodes[random.choice(peers)])
        self.net.after(random.expovariate(1 / self.every), self.begin)

    def _begin(self, node: SimNode) -> None:
        random = self.net.random
        if random.random() < 0.5:
            self.seen["pause"] += self.net.pause(node, random.uniform(*PAUSE_SECONDS))
        else:
            self.seen["one way"] += self.net.deafen(node)
