"""A source whose messages take more processor time than their size explains, at B4."""

from __future__ import annotations

import pytest

from onyx.broker.messages.source_costs import FREE_SECONDS, TOO_COSTLY
from onyx.broker.processor_accounts import BURST_SECONDS
from overlay.limits import Limits
from overlay.link.events import Flow, TimePassed
from overlay.link.frames import ErrorFrame, Refused
from overlay.statistics import Budgets
from tests.beside import Peer
from tests.onyx.broker.hosting import hosting, publish
from tests.onyx.broker.test_broker_core import Setting
from tests.yfilter.test_hostile_profiles import Ticking

GOOD, BAD = b"<a/>", b"<a><b></a>"
SAVED = BURST_SECONDS * Limits().source_processor_ms_s_max / 1000
LOOK = 0.1  # seconds that the reading of each message takes
HALF = int(SAVED / 2 / (LOOK - FREE_SECONDS)) + 1  # messages that cost half of what is saved


@pytest.fixture
def costly() -> tuple[Setting, Peer]:
    """A broker whose clock goes on a tenth of a second while it reads a message."""
    return hosting(Ticking(round(1000 * LOOK)), "//nothing")


def acknowledged(source: Peer) -> int:
    """The highest number that the source has been told is done."""
    return source.links.acknowledged("broker/B4", Flow.MESSAGE, "s1")


def budgets(setting: Setting) -> Budgets:
    return setting.core.statistics().budgets


def wait(setting: Setting, seconds: float) -> None:
    setting.beside.now += seconds
    setting.beside.tell(TimePassed())


@pytest.mark.parametrize("message", [GOOD, BAD], ids=["taken", "refused"])
def test_it_is_slowed_and_then_goes_on(costly: tuple[Setting, Peer], message: bytes) -> None:
    setting, source = costly
    publish(source, *[message] * (HALF - 1))
    assert acknowledged(source) == HALF - 1 and budgets(setting) == Budgets()
    publish(source, message, message)
    assert acknowledged(source) < HALF + 1
    assert budgets(setting).slowed_sources == ["source/s1"]
    wait(setting, BURST_SECONDS)
    assert budgets(setting) == Budgets()
    assert acknowledged(source) == HALF + 1


def test_it_is_kept_out_with_a_code_and_let_in_again(costly: tuple[Setting, Peer]) -> None:
    setting, source = costly
    publish(source, *[BAD] * (2 * HALF))
    assert source.all(ErrorFrame)[-1].code == TOO_COSTLY
    assert budgets(setting).kept_out_sources == ["source/s1"]
    again = setting.beside.peer("source", "s1")
    assert again.all(ErrorFrame)[-1].code == TOO_COSTLY
    wait(setting, BURST_SECONDS)
    third = setting.beside.peer("source", "s1")
    assert not third.all(ErrorFrame) and budgets(setting) == Budgets()


def test_messages_that_take_what_their_size_explains_cost_nothing() -> None:
    setting, source = hosting(Ticking(round(1000 * FREE_SECONDS)), "//nothing")
    publish(source, *[GOOD] * 300)
    assert budgets(setting) == Budgets()
    assert not source.all(Refused) and acknowledged(source) == 300
