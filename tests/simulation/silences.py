"""Silences: faults at which no connection ends, and nothing comes all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.sim_network import SimNetwork

PAUSE_SECONDS = (0.5, 12.0)


@dataclass
class Silences:
    """Of a network, while it is faulty: processes stand still and go on, connections carry one way
    only until somebody gives them up.  ``seen`` counts them by kind."""

    net: SimNetwork
    every: float  # seconds between two, about
    seen: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        if not self.net.faulty:
            return
        random = self.net.random
        peers = [peer for peer in self.net.may_crash if peer in self.net.nodes]
        node = self.net.nodes[random.choice(peers)]
        if random.random() < 0.5:
            self.seen["pause"] += self.net.pause(node, random.uniform(*PAUSE_SECONDS))
        else:
            self.seen["one way"] += self.net.deafen(node)
        self.net.after(random.expovariate(1 / self.every), self.begin)
