"""The registration service plans by itself: when, when not, and what it says about that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from overlay.link.core_context import Surroundings
from overlay.link.events import AskDesk, DeskAnswered, TimePassed
from overlay.link.frames import (
    PartitionsMatched,
    PlaceProfiles,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    StandBy,
)
from overlay.link.request_server import Result
from overlay.planning import PlanningOptions
from overlay.topology import Topology, parse_topology
from registration.auto_planning import RETRY
from registration.plan_questions import PlanFailed, PlanMade, PlanWanted
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Plan
from registration.planning.plan_file import plan_id, to_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from registration.registration_core import RegistrationCore
from tests.registration.test_plan_application import obey
from tests.registration.test_registration_core import DTD, Setting, refused

OPTIONS = PlanningOptions(
    at_profiles=8, drift=0.3, settle_s=10, between_s=1_000, moves_per_second=5
)
TOPOLOGY = parse_topology(
    'name = "three"\n[registration]\nid = "R"\nlisten = "r:1"\n'
    + "".join(f'[[broker]]\nid = "B{n}"\nlisten = "b{n}:1"\n' for n in (1, 2, 3))
    + '[[link]]\nends = ["B1", "B2"]\n[[link]]\nends = ["B2", "B3"]\n',
    "three",
)
READER = NeedReader()


def made_of(texts: Sequence[str], topology: Topology, brokers: Iterable[str] = ()) -> Plan:
    population = LocalPopulation(ProfileNeeds(READER.read(text)) for text in texts)
    plan = make_plan(population, PlanOptions(topology=topology))
    where = list(brokers)
    if where:
        plan = replace(plan, brokers=tuple(where[n % len(where)] for n in range(plan.partitions)))
    return plan


class Planning(Setting):
    """A service that can plan; time is that of the core and of the calendar."""

    def __init__(self, options: PlanningOptions = OPTIONS, lacks: str = "") -> None:
        self.lacks = lacks
        self._next = 0
        super().__init__(structs.replace(TOPOLOGY, planning=options))

    def _new_core(self, instance: str, rows: Iterable[tuple[str, str, bytes]]) -> RegistrationCore:
        core = (self.topology, self.identity, instance, rows)
        return RegistrationCore(
            *core, around=Surroundings(wall=lambda: self.wall), no_planner=self.lacks
        )

    def ask(self, verb: str, **arguments: object) -> Result:
        answer = self.client.ask(verb, **arguments)
        assert answer is not None and answer.ok, answer
        return dict(answer.result)

    @property
    def status(self) -> Result:
        return self.ask("plan.auto")

    def with_options(self, **options: object) -> Topology:
        """The network's file with other ``[planning]``."""
        return structs.replace(self.topology, planning=structs.replace(OPTIONS, **options))  # type: ignore[arg-type]

    def add(self, count: int, path: str = "m") -> None:
        """Profiles that all brokers have, live."""
        for _ in range(count):
            self._next += 1
            self.client.ask("profile.add", text=f'/{path}[@v = "{self._next}"]')
        for broker in self.brokers.values():
            for frame in broker.take(PlaceProfiles):
                names = [profile for profile, _, _ in frame.profiles]
                broker.send("registration", ProfilesPlaced(names))
                broker.send("registration", ProfilesLive([(name, 1) for name in names]))

    def change(self, profile: str) -> None:
        """Its text, but not what it asks for."""
        entry = self.core.catalog.profiles[profile]
        frame = ProfilesChanged([(profile, entry.version + 1, f"{entry.text} ")])
        self.brokers[entry.host].send("registration", frame)

    def wait(self, seconds: float) -> None:
        """Of the core's clock at most as long as connections may be silent."""
        self.beside.now += min(seconds, OPTIONS.settle_s)
        self.wall += seconds
        self.beside.tell(TimePassed())

    def settle(self) -> None:
        self.wait(1)
        self.wait(OPTIONS.settle_s)

    def asked(self) -> AskDesk | None:
        """The one question since the last."""
        found, self.beside.desk_asked = self.beside.desk_asked, []
        assert len(found) < 2
        return found[0] if found else None

    def answer(self, asked: AskDesk, brokers: Iterable[str] = ()) -> Plan:
        question = asked.question
        assert isinstance(question, PlanWanted)
        texts = [entry.text for entry in question.profiles]
        plan = made_of(texts, question.topology, brokers)
        plan = replace(plan, facts=replace(plan.facts, matched_share=0.1))
        self.beside.tell(DeskAnswered(asked.key, PlanMade(to_json(plan).encode(), 3.0)))
        return plan

    def with_plan(self) -> Plan:
        """All profiles are at home by a plan that the service has made."""
        self.add(8)
        self.settle()
        asked = self.asked()
        assert asked is not None
        plan = self.answer(asked)
        self.finish()
        return plan

    def finish(self) -> None:
        """All move that are to."""
        while self.ask("plan.progress")["state"] != "done":
            self.wait(1)
            while any(map(obey, self.brokers.values())):
                pass


@pytest.fixture
def network() -> Planning:
    return Planning()


def test_at_a_threshold_a_plan_is_made_used_and_applied(network: Planning) -> None:
    network.add(7)
    network.settle()
    assert network.asked() is None
    assert network.status["why"] == "there are 7 profiles, fewer than 8"
    network.add(1)
    network.wait(1)
    assert network.asked() is None and "in case more changes" in network.status["why"]
    network.wait(10)
    asked = network.asked()
    assert asked is not None and network.status["state"] == "planning"
    plan = network.answer(asked, ["B3"])
    assert network.ask("plan.show")["plan"] == plan_id(plan)
    progress = network.ask("plan.progress")
    assert (progress["state"], progress["rate"], progress["plan"]) == ("running", 5, plan_id(plan))
    network.wait(1)
    assert network.brokers["B3"].all(StandBy)
    network.add(1)
    assert list(network.core.catalog.profiles.values())[-1].host == "B3", "placed by it at once"
    status = network.status
    assert (status["plan"], status["reason"], status["seconds"]) == (
        *(plan_id(plan), "there was no plan"),
        3.0,
    )
    assert "are moving" in status["why"]
    assert "1970-01-01T00:00:22Z" in status["says"][-1]


def test_a_catalog_that_is_being_filled_is_waited_for(network: Planning) -> None:
    network.add(8)
    for _ in range(5):
        network.wait(9)
        network.add(4)
    assert network.asked() is None
    network.settle()
    assert network.asked() is not None


def test_what_has_changed_is_counted_over_restarts_and_compared(network: Planning) -> None:
    """The plan in force is good, then it is not."""
    plan = network.with_plan()
    network.wait(1_000)
    assert "no more than 2" in network.status["why"]
    network.change("p1")
    network.wait(1)
    network.restart()
    network.change("p2")
    network.settle()
    assert network.asked() is None and network.status["changed"] == 2
    network.change("p3")
    network.settle()
    status = network.status
    assert (network.asked(), status["changed"], status["plan"]) == (None, 0, plan_id(plan))
    assert "3 profiles have changed" in status["says"][-1] and "stays" in status["says"][-1]
    network.add(9, "other")  # nothing that the plan knows
    network.settle()
    assert network.status["why"].startswith("the next plan may be made in 9")
    network.wait(1_000)
    network.settle()
    asked = network.asked()
    assert asked is not None and "the patterns cover" in network.status["says"][0]
    network.answer(asked)
    assert network.status["plan"] != plan_id(plan)


def test_new_schemas_and_other_brokers_are_reasons(network: Planning) -> None:
    network.with_plan()
    network.wait(1_000)
    schema = {"schema_name": "news.dtd", "schema": DTD}
    network.client.ask("source.register", name="news", **schema)
    network.settle()
    asked = network.asked()
    assert asked is not None and isinstance(asked.question, PlanWanted)
    assert [each.data for each in asked.question.schemas] == [DTD]
    assert network.status["says"][0].endswith("the schemas of the sources have changed")
    network.answer(asked)
    network.finish()
    network.wait(1_001)
    network.client.ask("source.register", name="news again", **schema)
    network.settle()
    assert network.asked() is None, "it is the same schema"
    network.ask("broker.drain", broker="B3")
    network.settle()
    asked = network.asked()
    assert asked is not None, network.status
    assert "B3 has left" in network.status["says"][0]
    plan = network.answer(asked)
    assert "B3" not in plan.brokers


def test_more_matches_than_predicted_are_a_reason_once(network: Planning) -> None:
    plan = network.with_plan()
    partitions = [(partition, 150) for partition in range(plan.partitions)]

    def report() -> None:
        frame = PartitionsMatched(plan=plan_id(plan), accepted=150, matched=partitions)
        network.brokers["B1"].send("registration", frame)

    report()
    network.wait(1_000)
    network.settle()
    asked = network.asked()
    assert asked is not None and "a message matches in 100.0%" in network.status["says"][0]
    assert isinstance(asked.question, PlanWanted)
    assert (asked.question.messages, asked.question.matched) == (150, partitions)
    again = PlanMade(to_json(plan).encode(), 1.0)
    network.beside.tell(DeskAnswered(asked.key, again))
    report()
    network.wait(1_000)
    network.settle()
    assert network.asked() is None, "the plan cannot do better"


def test_a_failure_is_said_and_tried_again_later_and_later(network: Planning) -> None:
    network.add(8)
    network.settle()
    for failures in (1, 2, 3):
        asked = network.asked()
        assert asked is not None
        network.beside.tell(DeskAnswered(asked.key, PlanFailed("no Java")))
        says = network.status["says"][1]
        assert says.startswith(f"planning has failed {failures} times") and "no Java" in says
        network.wait(RETRY.first * 2 ** (failures - 1) - 2)
        network.wait(1)
        assert "the next plan may be made in 1 s" in network.status["why"]
        network.settle()
    asked = network.asked()
    assert asked is not None
    network.beside.tell(DeskAnswered(asked.key, PlanMade(b"{}", 1.0)))
    assert "this is no plan" in network.status["failure"]


def test_an_operators_plan_stays_until_it_is_taken_over(network: Planning) -> None:
    network.add(8)
    network.settle()
    asked = network.asked()
    assert asked is not None
    texts = [entry.text for entry in network.core.catalog.profiles.values()]
    own = made_of(texts, TOPOLOGY, ["B1"])
    network.ask("plan.use", plan=to_json(own).encode())
    network.answer(asked)
    assert network.ask("plan.show")["plan"] == plan_id(own), "the answer came too late"
    network.add(20, "other")
    network.wait(2_000)
    network.restart()
    network.settle()
    assert network.asked() is None
    assert not network.status["is_on"] and plan_id(own) in network.status["why"]
    assert network.ask("plan.auto", on=True)["is_on"]
    network.add(20, "other")
    network.settle()
    assert network.asked() is not None
    network.ask("plan.use", plan=b"")
    network.settle()
    assert network.asked() is None and "out of force" in network.status["why"]
    network.ask("plan.auto", on=True)
    network.settle()
    assert network.asked() is not None


def test_it_is_switched_off_and_on(network: Planning) -> None:
    network.add(8)
    assert not network.ask("plan.auto", on=False)["is_on"]
    network.restart()
    network.settle()
    assert network.asked() is None and "switched it off" in network.status["why"]
    network.ask("plan.auto", on=True)
    network.settle()
    assert network.asked() is not None
    assert refused(network.client.ask("plan.auto", on="yes")) == "bad-argument"


@pytest.mark.parametrize(
    ("options", "lacks", "why"),
    [
        (structs.replace(OPTIONS, auto=False), "", "[planning] has auto = false"),
        (OPTIONS, "pyspark is not installed", "pyspark is not installed"),
    ],
)
def test_it_is_said_why_it_is_never_done(options: PlanningOptions, lacks: str, why: str) -> None:
    network = Planning(options, lacks)
    network.add(8)
    network.settle()
    assert network.asked() is None
    assert (network.status["is_on"], network.status["why"]) == (False, why)
    assert network.status["says"] == [f"no plan is made automatically: {why}"]


def test_moves_that_are_paused_are_waited_for(network: Planning) -> None:
    network.add(8)
    network.settle()
    asked = network.asked()
    assert asked is not None
    network.answer(asked, ["B3"])
    network.ask("plan.pause")
    network.add(20, "other")
    network.wait(1_000)
    network.settle()
    assert network.asked() is None and "paused" in network.status["why"]
    network.ask("plan.abort")
    network.settle()
    assert network.asked() is not None


def test_who_takes_over_while_a_plan_is_made_has_nothing_half_done_and_plans_again() -> None:
    """A standby is a new core of the rows that the one before has committed."""
    network = Planning()
    network.add(8)
    network.settle()
    asked = network.asked()
    assert asked is not None and network.status["state"] == "planning"
    network.restart()
    assert (network.status["state"], network.status["plan"]) == ("waiting", "")
    network.beside.tell(DeskAnswered(asked.key, PlanMade(b"of nobody", 1.0)))
    assert network.status["failures"] == 0, "an answer to a question that it has not put"
    assert network.ask("plan.show")["plan"] == ""
    network.settle()
    again = network.asked()
    assert again is not None
    plan = network.answer(again, ["B3"])
    network.restart()  # the plan is used, and hardly any profile has moved
    network.settle()
    assert network.asked() is None, "the same plan is not made twice"
    assert network.status["plan"] == plan_id(plan) == network.ask("plan.show")["plan"]
    network.finish()
    assert {entry.host for entry in network.core.catalog.profiles.values()} == {"B3"}


def test_its_settings_change_while_it_runs(network: Planning) -> None:
    network.add(4)
    network.settle()
    assert network.asked() is None
    taken, left = network.core.settings.take_file(network.with_options(at_profiles=4, master="m"))
    assert (sorted(taken), left) == (["planning.at_profiles", "planning.master"], [])
    network.settle()
    asked = network.asked()
    assert asked is not None and isinstance(asked.question, PlanWanted)
    assert asked.question.topology.planning.master == "m"
    network.core.settings.take_file(network.with_options(auto=False))
    assert network.status["state"] == "waiting"
    network.answer(asked)
    assert network.status["why"] == "[planning] has auto = false"
    assert network.ask("plan.show")["plan"] == "", "the answer came too late"
    network.topology = network.with_options(at_profiles=3)
    network.restart()
    network.settle()
    assert network.asked() is not None, "a new start has what the file says by then"


def test_what_it_does_is_counted(network: Planning) -> None:
    def figures() -> list[object]:
        planning = network.core.statistics().planning
        return [planning.made, planning.failed, *planning.states.values()]

    network.add(8)
    network.settle()
    asked = network.asked()
    assert asked is not None and figures() == [0, 0, 0, 0, 1]
    network.beside.tell(DeskAnswered(asked.key, PlanFailed("no Java")))
    assert figures() == [0, 1, 1, 0, 0]
    network.wait(RETRY.first)
    network.settle()
    asked = network.asked()
    assert asked is not None
    network.answer(asked)
    assert figures() == [1, 1, 1, 0, 0]
