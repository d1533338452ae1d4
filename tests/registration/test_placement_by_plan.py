"""New profiles are placed by the plan in force."""

from __future__ import annotations

from collections import Counter

import pytest

from overlay.link.frames import PlaceProfiles, Response
from overlay.topology import Topology, parse_topology
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer, Plan
from registration.planning.plan_file import plan_id, to_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from tests.registration.test_registration_core import FIGURE4, Setting, refused

TEXTS = [f'/m[f{n % 3}/@v = "{n}"]' for n in range(60)] + [f"//x{n}" for n in range(6)]


def make(topology: Topology | None = FIGURE4) -> Plan:
    reader = NeedReader()
    profiles = [ProfileNeeds(reader.read(text)) for text in TEXTS]
    return make_plan(LocalPopulation(profiles), PlanOptions(24, topology))


@pytest.fixture
def setting() -> Setting:
    return Setting()


def use(setting: Setting, plan: Plan) -> Response:
    answer = setting.client.ask("plan.use", plan=to_json(plan).encode())
    assert answer is not None
    return answer


def hosts(setting: Setting) -> dict[str, str]:
    """text -> host broker of all profiles that were placed."""
    return {
        text: name
        for name, peer in setting.brokers.items()
        for frame in peer.all(PlaceProfiles)
        for _, _, text in frame.profiles
    }


def test_profiles_go_where_the_plan_has_them(setting: Setting) -> None:
    plan = make()
    assert use(setting, plan).result == {"plan": plan_id(plan)}
    for text in TEXTS:
        setting.client.ask("profile.add", text=text, location=[37.77, -122.42])
    placer = Placer(plan)
    placed = hosts(setting)
    near_san_francisco = {placed[text] for text in TEXTS[60:]}
    for text in TEXTS[:60]:
        assert placed[text] == plan.broker_of(placer.place(text).partition)
    assert near_san_francisco <= {plan.broker_of(p) for p in plan.dont_care}
    assert len(near_san_francisco) == 1
    shown = setting.client.ask("plan.show")
    assert shown is not None
    assert shown.result == {
        "plan": plan_id(plan),
        "by_content": 60,
        "dont_care": 6,
        "text": to_json(plan).encode(),
        "measured": {"messages": 0.0, "matched": [], "matched_share": None},
    }


def test_a_profile_can_insist_on_its_location(setting: Setting) -> None:
    setting.client.ask("profile.add", text=TEXTS[0], location=[37.77, -122.42])
    use(setting, make())
    for number, text in enumerate(TEXTS[:20]):
        setting.request(
            f"near-{number}", "profile.add", text=text, location=[37.77, -122.42], near=True
        )
    assert len(set(hosts(setting).values())) == 1
    listed = setting.client.ask("profile.list", texts=True)
    assert listed is not None
    assert [entry["near"] for entry in listed.result["profiles"]] == [False] + [True] * 20
    assert [entry["text"] for entry in listed.result["profiles"]] == [TEXTS[0], *TEXTS[:20]]
    answer = setting.request("last", "profile.add", text="/a", near=True)
    assert refused(answer) == "bad-argument"


def test_the_plan_survives_a_restart_and_can_be_put_out_of_force(setting: Setting) -> None:
    plan = make()
    use(setting, plan)
    setting.restart()
    shown = setting.client.ask("plan.show")
    assert shown is not None
    assert shown.result["plan"] == plan_id(plan)
    assert setting.client.ask("plan.use", plan=b"") is not None
    setting.restart()
    shown = setting.client.ask("plan.show")
    assert shown is not None
    assert (shown.result["plan"], shown.result["text"]) == ("", b"")


def test_a_plan_for_another_network_is_refused(setting: Setting) -> None:
    other = parse_topology(
        'name = "other"\n[registration]\nid = "R"\nlisten = "r:1"\n'
        '[[broker]]\nid = "Z9"\nlisten = "z:1"\n',
        "other",
    )
    for plan in (make(other), make(None)):
        assert refused(use(setting, plan)) == "plan-refused"
    assert refused(setting.client.ask("plan.use", plan=b"{}")) == "plan-refused"
    assert refused(setting.client.ask("plan.use", plan=7)) == "bad-argument"


def test_what_a_full_broker_cannot_take_goes_elsewhere() -> None:
    text = "\n".join(
        ['name = "small"', "[registration]", 'id = "R"', 'listen = "r:1"']
        + [f'[[broker]]\nid = "B{n}"\nlisten = "b{n}:1"\ncapacity = 3' for n in (1, 2)]
        + ['[[link]]\nends = ["B1", "B2"]']
    )
    setting = Setting(parse_topology(text, "small"))
    use(setting, make(setting.topology))
    same = '/m[f0/@v = "0"]'
    for _ in range(6):
        setting.client.ask("profile.add", text=same)
    counts = Counter(
        name for name, peer in setting.brokers.items() for _ in peer.all(PlaceProfiles)
    )
    assert counts == {"B1": 3, "B2": 3}
    assert refused(setting.client.ask("profile.add", text=same)) == "network-full"
    shown = setting.client.ask("plan.show")
    assert shown is not None
    assert shown.result["overflow"] == 3
