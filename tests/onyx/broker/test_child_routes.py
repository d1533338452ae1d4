"""What a child is presumed to want that has not said it."""

from __future__ import annotations

import pytest

from onyx.broker.profiles.query_plane import EVERYTHING
from overlay.link.frames import Message, Publish, RoutingDelta, TreeReady
from tests.onyx.broker.test_broker_core import Setting

DOCUMENT, GRAPH = "text", "text/turtle"
TEXTS = {DOCUMENT: b"<m/>", GRAPH: b'<urn:s> <urn:p> "1" .'}


class Presuming(Setting):
    """B4, the root broker of s1, whose child B5 has been away since before s1 was there."""

    def __init__(self) -> None:
        super().__init__()
        self.announce(root="B4", ready=False)
        branch = self.core.control.branch_of("B5", "B4")
        for _ in range(2):  # it may be found to be away again
            self.core.query.routes.presume(branch)
        for child in self.core.control.children("B4"):
            if child != "B5":
                self.brokers[child].send("B4", TreeReady(root="B4", source="s1"))
        self.core.control.go_on_without("s1", "B5")

    def crossing(self) -> list[str]:
        """Of a document and a graph, what goes to B5."""
        source = self.beside.peer("source", "s1")
        came = []
        for form, text in TEXTS.items():
            source.send("s1", Publish("s1", form, text))
            came += [form] * len(self.brokers["B5"].take(Message))
        source.disconnect()
        return came


@pytest.mark.parametrize("restarted", [False, True])
def test_it_is_sent_documents_and_graphs(restarted: bool) -> None:
    setting = Presuming()
    if restarted:
        setting.restart()
    assert setting.crossing() == [DOCUMENT, GRAPH]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("said", [[], EVERYTHING[:1], EVERYTHING[1:], list(EVERYTHING)])
def test_then_it_is_sent_what_it_has_said(said: list[str], restarted: bool) -> None:
    setting = Presuming()
    b5 = setting.brokers["B5"]
    b5.send("B4", RoutingDelta("B4", list(said), []))
    if restarted:
        setting.restart()
    b5.send("B4", TreeReady(root="B4", source="s1"))
    wanted = dict(zip(EVERYTHING, TEXTS, strict=True))
    assert setting.crossing() == [wanted[one] for one in said]
    assert not setting.core.query.routes.presumed
