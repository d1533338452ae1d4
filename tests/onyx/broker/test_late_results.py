"""A profile that takes more than a slice of a message is evaluated later, and never in front of
others: its host broker, B4, keeps the message for it, and asks a process of its own."""

from __future__ import annotations

from collections import Counter

from overlay.link.events import AskEvaluation, Evaluated, TimePassed
from overlay.link.frames import Delivery, Missed, Response
from tests.beside import Peer
from tests.onyx.broker.hosting import hosting, publish
from tests.onyx.broker.test_broker_core import Setting
from tests.yfilter.hostile_profiles import MESSAGE
from yfilter.late_evaluation import evaluate_profile

HEAVY = "for $a in /a return <r>{count(for $x in 1 to 5000 return $x)}</r>"
HEAVY_CONDITION = "/a[count(for $x in 1 to 5000 return $x) > 7]"
HEAVY_FOR_NOTHING = HEAVY_CONDITION.replace("> 7", "< 7")
PLAIN = "/a[v = 7]"


class Steady:
    """A clock of processor time: between two looks 0.4 ms pass."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.looks * 4e-4


def published(*profiles: str) -> tuple[Setting, Peer]:
    return hosting(Steady(), *profiles)


def test_a_heavy_profile_gets_its_results_from_the_process() -> None:
    setting, source = published(HEAVY, HEAVY_CONDITION, PLAIN)
    takers = [setting.beside.subscriber(f"p{number}") for number in range(3)]
    publish(source, MESSAGE, b"<a/>", MESSAGE)
    assert [(one.number, one.results()) for one in takers[0].all(Delivery)] == [
        (number, [b"<r>5000</r>"]) for number in (1, 2, 3)
    ]
    assert [(one.number, one.results()) for one in takers[1].all(Delivery)] == [
        (1, [MESSAGE]),
        (2, [b"<a/>"]),
        (3, [MESSAGE]),
    ]
    assert [one.number for one in takers[2].all(Delivery)] == [1, 3]
    assert setting.beside.evaluations == 6


def test_what_does_not_match_after_all_gives_nothing() -> None:
    setting, source = published(HEAVY_FOR_NOTHING)
    taker = setting.beside.subscriber("p0")
    publish(source, MESSAGE, MESSAGE)
    assert taker.all(Delivery) == []
    assert [(one.through, one.lost) for one in taker.all(Missed)] == [(1, 0), (2, 0)]


def test_others_have_their_results_before_the_process_is_asked() -> None:
    setting, source = published(HEAVY_CONDITION, PLAIN)
    setting.beside.subscriber("p0")
    other = setting.beside.subscriber("p1")
    asked: list[AskEvaluation] = []
    setting.beside.evaluations_asked = asked
    publish(source, MESSAGE, MESSAGE, MESSAGE)
    assert [one.number for one in other.all(Delivery)] == [1, 2, 3]
    assert len(asked) == 1  # of a connection one at a time


def test_nothing_is_evaluated_for_who_is_away() -> None:
    setting, source = published(HEAVY, HEAVY_CONDITION)
    publish(source, MESSAGE, MESSAGE)
    assert setting.beside.evaluations == 0
    (first, second) = setting.beside.subscriber("p0").all(Delivery)
    assert (first.results(), second.number) == ([b"<r>5000</r>"], 2)
    assert setting.beside.evaluations == 2


def test_a_text_that_is_its_own_result_is_kept_as_that_for_who_is_away() -> None:
    setting, source = published("/a", "/a/v")
    publish(source, MESSAGE, MESSAGE)
    made = setting.core.data.counted.results_made
    (first, second) = setting.beside.subscriber("p0").all(Delivery)
    assert [first.results(), second.results()] == [[MESSAGE], [MESSAGE]]
    assert setting.core.data.counted.results_made == made


def test_a_page_is_answered_when_its_first_delivery_has_been_evaluated() -> None:
    setting, source = published(HEAVY)
    publish(source, MESSAGE, MESSAGE)
    user, gone = (setting.beside.peer("client", name) for name in ("ann", "bob"))
    asked: list[AskEvaluation] = []
    setting.beside.evaluations_asked = asked
    page = {"profile": "p0", "after": 0, "through": 2}
    assert user.ask("profile.waiting", **page) is None
    gone.ask("profile.waiting", **page)
    gone.disconnect()
    assert len(asked) == 1
    found = evaluate_profile(asked[0].question, setting.beside.processor)
    setting.beside.evaluations_asked = None
    setting.beside.tell(Evaluated(asked[0].key, found))
    (response,) = user.all(Response)
    assert response.ok
    first = response.result["deliveries"][0]
    assert (first[2], first[4]) == (1, b"<r>5000</r>")


def test_a_page_of_a_profile_that_has_gone_is_refused_in_the_end() -> None:
    setting, source = published(HEAVY)
    publish(source, MESSAGE)
    user = setting.beside.peer("client", "ann")
    setting.beside.evaluations_asked = []
    assert user.ask("profile.waiting", profile="p0", after=0, through=1) is None
    removed = user.ask("profile.remove", profile="p0")
    assert removed is not None
    assert removed.ok
    setting.beside.tell(TimePassed())
    (response,) = (one for one in user.all(Response) if not one.ok)
    assert response.result["code"] == "unknown-profile"


def test_what_was_asked_is_asked_again_after_a_restart_and_arrives_once() -> None:
    setting, source = published(HEAVY_CONDITION, HEAVY_FOR_NOTHING)
    for number in range(2):
        setting.beside.subscriber(f"p{number}")
    asked: list[AskEvaluation] = []
    setting.beside.evaluations_asked = asked
    publish(source, MESSAGE)
    assert len(asked) == 2
    source.disconnect()
    setting.restart()
    setting.beside.evaluations_asked = None
    (delivery,) = setting.beside.subscriber("p0").all(Delivery)
    assert (delivery.number, delivery.results()) == (1, [MESSAGE])
    assert setting.beside.subscriber("p1").all(Delivery) == []


def test_equal_profiles_are_evaluated_once_for_a_connection_of_both() -> None:
    setting, source = published(HEAVY, HEAVY)
    takers = [setting.beside.subscriber(f"p{number}") for number in range(2)]
    publish(source, MESSAGE)
    assert all(taker.all(Delivery)[0].results() == [b"<r>5000</r>"] for taker in takers)
    assert setting.beside.evaluations == 1


def test_a_connection_whose_slice_is_over_goes_on_behind_a_late_answer() -> None:
    """Nothing is awaited any more; what was answered before is still at hand."""
    others = [f"for $a in /a return <r{n}>{{count(1 to 50)}}</r{n}>" for n in range(40)]
    setting, source = published(HEAVY, *others)
    for _ in range(3):
        publish(source, MESSAGE)
    taker = setting.beside.subscriber("p0", also=[f"p{n + 1}" for n in range(40)])
    count = Counter(delivery.profile for delivery in taker.all(Delivery))
    assert count == {f"p{n}": 3 for n in range(41)}


def test_a_profile_that_was_updated_meanwhile_gets_what_it_said_then() -> None:
    setting, source = published(HEAVY)
    publish(source, MESSAGE)
    client = setting.beside.peer("client", "c")
    client.ask("profile.update", profile="p0", text="/a[nothing]")
    setting.place("/a[nothing]", profile="p0", version=2)
    (delivery,) = setting.beside.subscriber("p0").all(Delivery)
    assert delivery.results() == [b"<r>5000</r>"]
