"""The broker B4, which hosts some profiles, and a source whose root broker it is."""

from __future__ import annotations

from collections.abc import Callable

from overlay.link.frames import Publish
from tests.beside import Peer
from tests.onyx.broker.test_broker_core import Setting


def hosting(clock: Callable[[], float], *profiles: str) -> tuple[Setting, Peer]:
    """The profiles are p0, p1, ...; ``clock``: of processor time."""
    setting = Setting(clock=clock)
    setting.announce(root="B4")
    for number, text in enumerate(profiles):
        setting.place(text, profile=f"p{number}")
    setting.children_ready(root="B4")
    return setting, setting.beside.peer("source", "s1")


def publish(source: Peer, *texts: bytes) -> None:
    for text in texts:
        source.send("s1", Publish(source="s1", format="text", payload=text))
