"""What a rebuilt catalog has besides profiles and sources, whom it waits for, and what it says."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from onyx.broker.moves.profile_moves import Standing
from overlay.link.events import Put
from overlay.link.frames import Response
from overlay.network_shape import without_broker
from registration.catalog_rebuild import KEPT_SPACES, marked
from registration.moves import Phase
from registration.planning.plan_file import to_json
from registration.registration_core import RegistrationCore
from tests.simulation.moving import MovingScenario
from tests.simulation.scenario import Scenario, matches
from tests.simulation.seeds import known_seeds
from tests.simulation.sim_disk import MemoryDisk
from tests.simulation.test_leaving_brokers import MESSAGE, LeavingScenario
from tests.simulation.test_moves import TEXTS

TAXONOMY = b"@prefix r: <http://www.w3.org/2000/01/rdf-schema#> . <t:cat> r:subClassOf <t:animal> ."
DIGEST = bytes(range(32))


def lose_store(
    scenario: Scenario, lost: Iterable[str] = (), kept: Iterable[str] = ()
) -> RegistrationCore:
    """All but the rows of some spaces; the core that had it."""
    node = scenario.net.nodes[f"registration/{scenario.topology.registration[0].id}"]
    former = node.core
    assert isinstance(former, RegistrationCore)
    scenario.net.crash(node, 0.5)
    rows = [row for row in node.disk.open() if row[0] in kept]
    node.disk = MemoryDisk()
    node.disk.commit(Put(*row) for row in (*rows, marked(lost)))
    scenario.net.run_until(lambda: node.core is not None, 10.0)
    return former


def core_of(scenario: Scenario) -> RegistrationCore:
    core = scenario.net.nodes[f"registration/{scenario.topology.registration[0].id}"].core
    assert isinstance(core, RegistrationCore)
    return core


def answered(scenario: Scenario, request: str) -> Response | None:
    return scenario.registrar.answer(request)


def test_a_broker_that_is_away_is_waited_for() -> None:
    scenario = Scenario(3, brokers=4)
    scenario.net.faulty = False
    interests = [scenario.add_profile("/m") for _ in range(5)]
    source = scenario.register_source()
    away = interests[0].subscriber.host
    scenario.net.crash(scenario.net.nodes[f"broker/{away}"], 20.0)
    lose_store(scenario)
    scenario.net.run_until(lambda: False, 5.0)
    said = scenario.ask(scenario.registrar, "statistics")["rebuild"]
    assert isinstance(said, dict)
    assert said["awaits"] == [away]
    request = scenario.registrar.ask("profile.list")
    scenario.net.run_until(lambda: False, 5.0)
    assert answered(scenario, request) is None
    scenario.publish(source, b'<m a="1"/>')
    scenario.wait(lambda: answered(scenario, request) is not None, "the list is not given")
    answer = answered(scenario, request)
    assert answer is not None and answer.ok
    listed = answer.result["profiles"]
    assert isinstance(listed, list)
    assert len(listed) == 5
    said = scenario.ask(scenario.registrar, "statistics")["rebuild"]
    assert isinstance(said, dict)
    assert "5 profiles, 1 sources, 0 moves. Not to be had: " in str(said["said"])
    scenario.settle()
    assert not scenario.missing()
    assert not scenario.wrong()


@pytest.mark.parametrize("seed", known_seeds(4))
def test_a_broker_that_is_gone_for_good_is_not(seed: int) -> None:
    scenario = LeavingScenario(seed, brokers=3 + seed % 4)
    net = scenario.net
    net.faulty = False
    lost = scenario.begin()
    net.run_until(lambda: False, 20.0)
    gone = {p for p, each in scenario.interests.items() if each.subscriber.host == lost}
    net.remove(f"broker/{lost}")
    lose_store(scenario, lost=[lost])
    scenario.topology = without_broker(scenario.topology, lost)
    scenario.wait(lambda: core_of(scenario).shapes.newest.version > 0, "it is still waited for")
    scenario.wait(scenario.is_settled, "the change is not settled")
    scenario.wait(lambda: all(s.is_connected for s in scenario.sources.values()), "a source waits")
    assert core_of(scenario).catalog.profiles.keys() == scenario.interests.keys() - gone
    late = len(scenario.published)
    scenario.publish_some(20)
    net.run_until(lambda: False, 30.0)
    after = {(each.source, each.number) for each in scenario.published[late:]}
    missing = scenario.missing()
    assert not [each for each in missing if each[0] not in gone and each[1:] in after]
    assert not scenario.wrong()


@pytest.mark.parametrize("has_older_copy", [False, True])
def test_all_that_brokers_were_told_is_known_again(has_older_copy: bool) -> None:
    scenario = MovingScenario(2, brokers=4, texts=TEXTS)
    scenario.net.faulty = False
    ask, registrar = scenario.ask, scenario.registrar
    policy = {"when_full": "drop-newest", "deliveries_max": 10}
    new = {"text": "/m", "user": "ann", "key": "mine", "policy": policy, "wait": True}
    profile = str(ask(registrar, "profile.add", **new)["profile"])
    removed = scenario.add_profile("/m")
    scenario.remove_profile(removed)
    ask(registrar, "access.grant", principal="user/ann", role="publish", scope="*")
    ask(registrar, "token.issue", principal="user/ann", digest=DIGEST, seconds=100)
    ask(registrar, "taxonomy.put", name="animals", syntax="text/turtle", text=TAXONOMY)
    scenario.apply_plan()
    scenario.net.run_until(lambda: False, 5.0)
    asked = ("access.list", "token.list")
    before = [ask(registrar, verb) for verb in asked]
    former = lose_store(scenario, kept=KEPT_SPACES if has_older_copy else ())
    assert [ask(registrar, verb) for verb in asked] == before
    core = core_of(scenario)
    assert core.catalog.policies.of(profile) == former.catalog.policies.of(profile)
    assert core.statistics().placement.plan == former.statistics().placement.plan
    listed = ask(registrar, "taxonomy.list")
    names = ["animals"] if has_older_copy else ["rebuilt"]
    assert listed["version"] == 1
    assert [(name, found) for name, *_, found in listed["taxonomies"]] == [
        (name, {"classes": 2, "properties": 0, "instances": 0}) for name in names
    ]
    again = str(ask(registrar, "profile.add", **{**new, "user": "ann"})["profile"])
    assert (again == profile) == has_older_copy
    assert removed.profile not in core.catalog.profiles
    if not has_older_copy:
        assert again.startswith("p3-"), "numbers of what is gone are not given again"


@pytest.mark.parametrize("seed", [1, 4, 8])
def test_a_drain_goes_on_when_it_is_asked_for_again(seed: int) -> None:
    """The store is lost as the network changes to the shape without the broker, or before that."""
    scenario = LeavingScenario(seed, brokers=3 + seed % 4)
    scenario.net.faulty = False
    drained = scenario.begin()
    rooted = [source for source in scenario.sources.values() if source.root == drained]
    drain = ("broker.drain", "broker.progress")
    scenario.ask(scenario.registrar, drain[0], broker=drained)
    for _ in range(100):
        shapes = core_of(scenario).shapes
        if not shapes.is_settled and any(shapes.newest.version in each for each in known(scenario)):
            break
        scenario.publish_some(1)
    lose_store(scenario)
    if scenario.ask(scenario.registrar, drain[1], broker=drained)["is_there"]:
        scenario.ask(scenario.registrar, drain[0], broker=drained)
    scenario.see_off(drained, rooted)


def known(scenario: Scenario) -> list[list[int]]:
    """The versions of the shape that each broker knows."""
    shapes = [scenario._core(broker).control.shapes for broker in scenario.topology.broker_ids]
    return [[shape.version for shape in each.in_use] for each in shapes]


def in_flight(scenario: Scenario, phase: Phase) -> bool:
    """Whether a move is in a phase of which one of its hosts has not heard yet."""
    for move in core_of(scenario).moves:
        old, new = scenario._core(move.old).moves, scenario._core(move.new).moves
        standing = new.coming.state(move.profile)
        is_new = {
            Phase.STANDBY: standing is Standing.AWAY,
            Phase.RELEASE: move.profile not in old.leaving,
            Phase.HANDOVER: standing is Standing.STANDING_BY,
            Phase.STAYING: standing is Standing.TAKING,
        }
        if is_new[phase] and move.phase is (phase if phase is not Phase.STAYING else move.phase):
            return True
    return False


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("seed", known_seeds(3))
def test_a_move_goes_on_where_it_was(seed: int, phase: Phase) -> None:
    """A frame between its hosts was taken by the service, and not passed on; ``STAYING``: one of
    what waits for users who are away."""
    scenario = MovingScenario(seed, brokers=3, texts=TEXTS)
    net = scenario.net
    net.faulty = False
    source = scenario.register_source()
    interests = [scenario.add_profile(text) for text in TEXTS if matches(text, MESSAGE)]
    for interest in interests:
        for broker in scenario.topology.broker_ids:
            net.break_link(f"subscriber/{interest.profile}", f"broker/{broker}")

    def publish() -> None:
        for _ in range(3):
            scenario.publish(source, MESSAGE)

    publish()
    net.run_until(lambda: False, 2.0)
    scenario.ask(scenario.registrar, "plan.use", plan=to_json(scenario.random_plan()).encode())
    scenario.registrar.ask("plan.apply", rate=1000, at_once=8)
    assert net.run_until(lambda: in_flight(scenario, phase), 20.0)
    lose_store(scenario)
    publish()
    scenario.wait(lambda: not core_of(scenario)._rebuild.is_under_way, "it is not rebuilt")
    scenario.wait(lambda: not len(core_of(scenario).moves), "a move does not end")
    net.broken.clear()
    scenario.apply_plan()
    scenario.settle()
    assert not scenario.missing()
    assert not scenario.wrong()
    assert not scenario.misplaced()
