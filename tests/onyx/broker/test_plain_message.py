"""The way of a plain message through a warm broker core is short, and only gets shorter.

One profile whose user is there, one link, one message of 60 bytes: from the source's frame to the
actions that store and send.  The functions of the project and their calls are counted; the compiled
engine counts for nothing, whether it is compiled or not.  The time that the way takes is measured
by ``benchmarks operate`` (``core_plain_us``).
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType

from formats import CompressionDictionary
from onyx.broker.broker_core import BrokerCore
from overlay.link.events import (
    Action,
    BatchHandled,
    CalledAgain,
    DataReceived,
    Event,
    Put,
    SendData,
    singly,
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

FUNCTIONS_MAX, CALLS_MAX = 205, 308  # four of them, of readings and element stream, were compiled
"""The last counts; they are lowered with the way, and never raised."""

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


class Watched:
    """A core that is watched while it deals with a message, but not with the answers to it."""

    def __init__(self, core: BrokerCore, watch: AbstractContextManager[object]) -> None:
        self.core = core
        self.connection = 0  # of the source, when the next message is to be watched
        self.watch = watch  # entered for each event of the message
        self.actions: list[Action] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        is_watched = self.connection and (
            isinstance(event, BatchHandled | CalledAgain)
            or (isinstance(event, DataReceived) and event.connection == self.connection)
        )
        if not is_watched:
            return self.core.handle(event, now)
        with self.watch:
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

    def watched(self, watch: AbstractContextManager[object], messages: int = 1) -> Watched:
        """The core while it deals with so many messages more, which ``watch`` sees."""
        watched = Watched(self.core, watch)
        self.beside.core = watched
        watched.connection = self.source.number
        for _ in range(messages):
            self.publish()
        self.beside.core = watched.core
        return watched


def test_a_plain_message_takes_few_calls() -> None:
    walk = Walk()
    walked = Warm().watched(walk)
    sent = [
        decode(a.data[LENGTH_BYTES:]).frame
        for a in singly(walked.actions)
        if isinstance(a, SendData)
    ]
    assert {type(frame) for frame in sent} == {Message, Deliveries, Ack}
    assert {"outbox", "inbox", "delivery"} <= {
        action.space for action in walked.actions if isinstance(action, Put)
    }
    files, calls = walk.files, walk.calls
    way = "\n".join(f"{count:5} {file}" for file, count in files.most_common())
    found = f"{len(calls)} functions, {calls.total()} calls:\n{way}"
    assert len(calls) <= FUNCTIONS_MAX, found
    assert calls.total() <= CALLS_MAX, found
