"""What a broker counts of the partitions that it hosts, and when it says so."""

from __future__ import annotations

from overlay.link.events import TimePassed
from overlay.link.frames import PartitionsMatched, PlanInForce, Publish
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer
from registration.planning.plan_file import plan_id, to_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from tests.onyx.broker.test_broker_core import FIGURE4, Setting

TEXTS = [f'/m[@v = "{number}"]' for number in range(40)] + ["//x", "//y"]
READER = NeedReader()
PLAN = make_plan(
    LocalPopulation(ProfileNeeds(READER.read(text)) for text in TEXTS), PlanOptions(18, FIGURE4)
)
PLACER = Placer(PLAN)
HERE = [text for text in TEXTS[:40] if PLAN.broker_of(PLACER.place(text).partition) == "B4"]
AWAY = next(text for text in TEXTS[:40] if text not in HERE)


class Counting(Setting):
    """B4 is the root broker of s1, and knows the plan."""

    def __init__(self) -> None:
        super().__init__()
        self.announce(root="B4")
        self.children_ready(root="B4")
        self.source = self.beside.peer("source", "s1")
        self.tell(PlanInForce(plan=plan_id(PLAN), payload=to_json(PLAN).encode()))

    def tell(self, frame: PlanInForce) -> None:
        self.registration.send("registration", frame)

    def publish(self, *texts: str) -> None:
        """A message that each of these profiles matches."""
        for text in texts:
            value = text.partition('"')[2].partition('"')[0]
            payload = f'<m v="{value}"/>'.encode() if value else f"<m><{text[2:]}/></m>".encode()
            self.source.send("s1", Publish(source="s1", format="text", payload=payload))

    def after(self, seconds: float) -> list[PartitionsMatched]:
        """What is reported so much later."""
        self.beside.now += seconds
        self.beside.tell(TimePassed())
        return self.registration.take(PartitionsMatched)


def partition(text: str) -> int:
    return PLACER.place(text).partition


def test_messages_are_counted_once_for_each_partition_that_they_match() -> None:
    setting = Counting()
    assert len(HERE) > 1
    for number, text in enumerate((*HERE[:2], HERE[0] + " ", AWAY)):
        setting.place(text, f"p{number}")
    setting.publish(HERE[0], HERE[0], HERE[1], AWAY, "//x")
    reports = setting.registration.take(PartitionsMatched) + setting.after(10)
    assert sum(report.accepted for report in reports) == 5
    found: dict[int, int] = {}
    for report in reports:
        assert report.plan == plan_id(PLAN)
        for where, count in report.matched:
            found[where] = found.get(where, 0) + count
    expected: dict[int, int] = {}
    for text, count in ((HERE[0], 2), (HERE[1], 1)):
        expected[partition(text)] = expected.get(partition(text), 0) + count
    assert found == expected


def test_a_report_comes_at_most_every_ten_seconds_and_only_with_news() -> None:
    setting = Counting()
    setting.place(HERE[0])
    assert setting.after(11) == []
    setting.publish(HERE[0])
    assert len(setting.after(1)) == 1
    setting.publish(HERE[0], HERE[0])
    assert setting.after(9) == []
    (report,) = setting.after(1)
    assert (report.accepted, report.matched) == (2, [(partition(HERE[0]), 2)])
    assert setting.after(11) == []


def test_without_a_plan_nothing_is_counted_and_another_plan_begins_anew() -> None:
    setting = Counting()
    setting.place(HERE[0])
    setting.after(1)
    setting.publish(HERE[0])
    setting.after(1)
    setting.publish(HERE[0])
    setting.tell(PlanInForce(plan="", payload=b""))
    setting.publish(HERE[0])
    assert setting.after(11) == []
    setting.tell(PlanInForce(plan="broken", payload=b"no plan"))
    setting.publish(HERE[0])
    assert setting.after(11) == []
    assert setting.core.data._shares.announced() is None


def test_the_plan_survives_a_restart() -> None:
    setting = Counting()
    setting.place(HERE[0])
    setting.after(1)
    setting.source.disconnect()
    setting.restart()
    setting.source.connect()
    setting.publish(HERE[0])
    assert [report.matched for report in setting.after(11)] == [[(partition(HERE[0]), 1)]]


def test_a_changed_profile_counts_where_it_belongs_now() -> None:
    setting = Counting()
    setting.place(HERE[0])
    setting.publish(HERE[0])
    setting.after(11)
    user = setting.beside.peer("client", "u")
    user.ask("profile.update", profile="p1", text=AWAY)
    setting.publish(AWAY)
    assert [report.matched for report in setting.after(11)] == [[]]
