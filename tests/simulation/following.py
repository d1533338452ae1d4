"""A scenario in which users find their host brokers, and sources their root brokers, as these
change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.simulation.scenario import Interest, Scenario
from tests.simulation.sim_clients import AskingClient, SourceClient

LOCATE_SECONDS = 0.3


@dataclass
class FollowingScenario(Scenario):
    """Whose broker is not there asks where it is now."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._asked: dict[str, str] = {}
        self._locator = AskingClient("locator", "locator#1", self.limits)
        self.net.add(
            "client/locator",
            lambda rows, instance: self._locator,
            dials=[f"registration/{self.topology.registration[0].id}"],
        )
        self.net.after(LOCATE_SECONDS, self._locate)

    def _locate(self) -> None:
        for interest in self.interests.values():
            is_lost = interest.subscriber.is_lost and not interest.removed
            name = interest.profile
            self._follow("profile", name, is_lost, partial(self._go_to_host, interest))
        for source in self.sources.values():
            name, is_lost = source.source, not source.is_connected
            self._follow("source", name, is_lost, partial(self._go_to_root, source))
        self.net.after(LOCATE_SECONDS, self._locate)

    def _follow(
        self, kind: str, name: str, is_lost: bool, go: Callable[[dict[str, object]], None]
    ) -> None:
        request = self._asked.get(name)
        if request is None:
            if is_lost:
                self._asked[name] = self._locator.ask(f"{kind}.show", **{kind: name})
            return
        answer = self._locator.answer(request)
        if answer is not None:
            del self._asked[name]
            if answer.ok:
                go(dict(answer.result))

    def _go_to_host(self, interest: Interest, shown: dict[str, object]) -> None:
        host = str(shown["host"])
        if host != interest.subscriber.host:
            interest.subscriber.follow(host)
            node = self.net.nodes[f"subscriber/{interest.profile}"]
            self.net.dial_instead(node, f"broker/{host}")

    def _go_to_root(self, source: SourceClient, shown: dict[str, object]) -> None:
        root = str(shown["root"])
        if root != source.root and shown["ready"]:
            source.follow(root)
            self.net.dial_instead(self.net.nodes[f"source/{source.source}"], f"broker/{root}")
