"""The way of a plain message through a warm broker core is short, and only gets shorter.

One profile whose user is there, one link, one message of 60 bytes: from the source's frame to what
is stored and sent.  Counted are the files of the project that it runs through; the compiled engine
counts for nothing, whether it is compiled or not.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from formats import CompressionDictionary, is_compiled
from onyx.broker.broker_core import BrokerCore
from overlay.link.events import (
    Action,
    BatchHandled,
    CalledAgain,
    DataReceived,
    Event,
    Put,
    SendData,
)
from overlay.link.frame_codec import LENGTH_BYTES, decode
from overlay.link.frames import (
    Ack,
    Deliveries,
    DictionaryHeld,
    DictionaryTrained,
    Message,
    Publish,
)
from tests.onyx.broker.test_broker_core import Setting, delta

FILES_MAX, FUNCTIONS_MAX, CALLS_MAX = (37, 201, 302) if is_compiled() else (40, 228, 360)
"""What was last counted; to be lowered with it, and never raised.  What is not compiled calls some
Python that compiled code has within itself."""

ROOT = Path(__file__).parents[3]
PROJECT = ("formats", "yfilter", "overlay", "registration", "onyx")
MESSAGE = b"<nitf><sf>abc</sf><body>" + 22 * b"x" + b"</body></nitf>"
WARM = 300  # messages ahead of the one that is counted


class Walk:
    """The functions of the project that are called while it is ``on``."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()  # file, function

    def __enter__(self) -> Walk:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    @property
    def files(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (file, _), count in self.calls.items():
            found[file] += count
        return found

    def _note(self, frame: FrameType, what: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if what != "call" or not path.is_relative_to(ROOT):
            return
        file = path.relative_to(ROOT)
        if file.parts[0] in PROJECT and not path.with_suffix(".pxd").exists():
            self.calls[str(file), frame.f_code.co_qualname] += 1


class Walked:
    """A core that is watched while it deals with a message, but not with the answers to it."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.connection = 0  # of the source, when the next message is to be counted
        self.walk = Walk()
        self.actions: list[Action] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        counted = self.connection and (
            isinstance(event, BatchHandled | CalledAgain)
            or (isinstance(event, DataReceived) and event.connection == self.connection)
        )
        if not counted:
            return self.core.handle(event, now)
        with self.walk:
            actions = self.core.handle(event, now)
        self.actions += actions
        return actions


class Warm(Setting):
    """B4 is the root broker of s1; B5 and a user here want its messages."""

    def __init__(self) -> None:
        super().__init__()
        self.announce(root="B4")
        self.children_ready(root="B4")
        self.brokers["B5"].send("B4", delta("/nitf/sf", root="B4"))
        self.place("/nitf/sf")
        self.beside.subscriber("p1")
        self.source = self.beside.peer("source", "s1")
        for _ in range(WARM):
            self.publish()
            for child in self.brokers.values():
                for trained in child.take(DictionaryTrained):
                    version = CompressionDictionary(trained.payload).version
                    child.send("B4", DictionaryHeld("B4", "s1", trained.form, version))

    def publish(self) -> None:
        self.source.send("s1", Publish(source="s1", format="text", payload=MESSAGE))

    def walk(self) -> Walked:
        walked = Walked(self.core)
        self.beside.core = walked
        walked.connection = self.source.number
        self.publish()
        return walked


def test_a_plain_message_runs_through_few_files() -> None:
    walked = Warm().walk()
    sent = [decode(a.data[LENGTH_BYTES:]).frame for a in walked.actions if isinstance(a, SendData)]
    assert {type(frame) for frame in sent} == {Message, Deliveries, Ack}
    assert {"outbox", "inbox", "delivery"} <= {
        action.space for action in walked.actions if isinstance(action, Put)
    }
    files, calls = walked.walk.files, walked.walk.calls
    way = "\n".join(f"{count:5} {file}" for file, count in files.most_common())
    found = f"{len(files)} files, {len(calls)} functions, {calls.total()} calls:\n{way}"
    assert len(files) <= FILES_MAX, found
    assert len(calls) <= FUNCTIONS_MAX, found
    assert calls.total() <= CALLS_MAX, found
