"""Sources are updated and removed under messages, while profiles move, trees are rebuilt, links
break and processes die: what was accepted reaches everybody once, and of a source that is gone
nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from overlay.link.events import Flow
from overlay.link.frames import Response
from tests.simulation.seeds import batch, seeds
from tests.simulation.sim_clients import SourceClient
from tests.simulation.test_exactly_once import change_something, random_message
from tests.simulation.test_moves import TEXTS, MovingAndChanging

SEEDS = seeds(9, first=7)
RUNS_PER_TEST = 9

# Each has words that the other has not.
SCHEMAS = (
    b"<!ELEMENT m (part*)> <!ELEMENT part (#PCDATA)> <!ATTLIST m a (0 | 1) '0' b CDATA #IMPLIED>",
    b"<!ELEMENT m ANY> <!ELEMENT part ANY> <!ATTLIST part c (0 | 1 | 2) #IMPLIED a CDATA #IMPLIED>",
    b"",
)


class ChangingSources(MovingAndChanging):
    """``updates`` and ``removals``: what was asked, by the request."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.updates: list[str] = []
        self.removals: dict[str, str] = {}

    @property
    def living(self) -> list[SourceClient]:
        gone = self.removals.values()
        return [source for name, source in self.sources.items() if name not in gone]

    def update(self, source: SourceClient) -> None:
        schema = self.random.choice(SCHEMAS)
        name = f"{SCHEMAS.index(schema)}.dtd" if schema else ""
        validate = self.random.choice(("off", "report")) if schema else "off"
        said = {"schema_name": name, "schema": schema, "validate": validate, "rate": 2.0}
        self.updates.append(self.registrar.ask("source.update", source=source.source, **said))

    def remove(self, source: SourceClient) -> None:
        request = self.registrar.ask("source.remove", source=source.source)
        self.removals[request] = source.source

    def answers(self) -> Iterator[Response | None]:
        for request in (*self.updates, *self.removals):
            yield self.registrar.answer(request)

    def settle(self) -> None:
        self.net.faulty = False
        self.wait(lambda: all(self.answers()), "an update or a removal is not answered")
        super().settle()
        # Of what came too late nobody is told, and it is in no archive.
        archived = {(message.source, message.number) for message in self.net.archived}
        self.published = [
            message
            for message in self.published
            if (message.source, message.number) in archived
            or not self.may_be_lost(message.source, message.number)
        ]

    def missing(self) -> list[tuple[str, str, int]]:
        return [each for each in super().missing() if not self.may_be_lost(*each[1:])]

    def may_be_lost(self, source: str, number: int) -> bool:
        """A message that its root broker has not accepted when the source was removed."""
        client = self.sources[source]
        accepted = client.links.acknowledged(f"broker/{client.root}", Flow.MESSAGE, source)
        return source in self.removals.values() and number > accepted

    def left_of_sources(self) -> list[str]:
        faults = []
        for peer, node in self.net.nodes.items():
            if not peer.startswith(("broker/", "registration/")):
                continue
            for space, key in node.disk:
                if space == "source-gone":
                    continue
                faults += [
                    f"{peer}: {space} {key}"
                    for source in self.removals.values()
                    if source in key.replace("|", "/").split("/") or key.startswith(f"{source}|")
                ]
        return faults


def run(seed: int) -> ChangingSources:
    scenario = ChangingSources(seed, brokers=2 + seed % 5, texts=list(TEXTS))
    random = scenario.random
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([1.0, 3.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(random.randint(2, 6)):
        scenario.add_profile(random.choice(TEXTS))
    for _ in range(2):
        scenario.register_source()
    for _ in range(random.randint(30, 60)):
        action = random.random()
        living = scenario.living
        if action < 0.6 and living:
            scenario.publish(random.choice(living), random_message(scenario))
        elif action < 0.66 and len(living) < 4:
            scenario.register_source()
        elif action < 0.76 and living:
            scenario.update(random.choice(living))
        elif action < 0.82 and living:
            scenario.remove(random.choice(living))
        elif action < 0.87:
            scenario.apply_plan()
        elif action < 0.92:
            scenario.change_shape() if random.random() < 0.7 else scenario.change_link()
        else:
            change_something(scenario)
        scenario.net.run_until(lambda: False, random.uniform(0, 0.3))
    scenario.settle()
    return scenario


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_sources_change_and_go_and_what_they_published_arrives_once(first: int) -> None:
    updates = removals = moved = 0
    for seed in (these := batch(SEEDS, first, RUNS_PER_TEST)):
        scenario = run(seed)
        answers = list(scenario.answers())
        wrong = [answer for answer in answers if answer is None or not answer.ok]
        # Of a source whose removal was asked for before, an update may come too late.
        codes = {None if answer is None else answer.result["code"] for answer in wrong}
        assert codes <= {"unknown-source", "removed"}, seed
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        assert not scenario.unexplained(), f"seed {seed}"
        assert not scenario.misplaced(), f"seed {seed}"
        assert not scenario.left_over(), f"seed {seed}"
        assert not scenario.left_of_sources(), f"seed {seed}"
        for broker in scenario.topology.broker_ids:
            core = scenario._core(broker)
            assert set(core.control.sources) == {s.source for s in scenario.living}, f"seed {seed}"
            said = core.statistics().data
            assert not said.abandoned and not said.given_back, f"seed {seed}: {said}"
        for source in scenario.living:
            shown = scenario.ask(scenario.registrar, "source.show", source=source.source)
            versions = {
                scenario._core(broker).control.sources[source.source].version
                for broker in scenario.topology.broker_ids
            }
            assert versions == {shown["version"]}, f"seed {seed}: {source.source}"
        updates += len(scenario.updates)
        removals += len(scenario.removals)
        moved += scenario.moved()
    assert min(updates, removals) >= len(these) and moved
