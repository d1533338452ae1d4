"""HeldReader: takes a profile held, reads the same again, and releases what it is done with."""

from __future__ import annotations

from typing import TypeAlias

from overlay import verbs
from overlay.link.frames import HELD, Contents, Deliveries, Request
from overlay.link.limits import LinkLimits
from tests.simulation.sim_clients import SubscriberClient

What: TypeAlias = tuple[str, int, bytes]

RELEASED_EVERY = 5  # deliveries; the last two of them are kept


class HeldReader(SubscriberClient):
    """``different``: numbers under which something else came when they were read again."""

    def __init__(self, profile: str, instance: str, limits: LinkLimits) -> None:
        super().__init__(profile, instance, limits)
        self.at: dict[int, What] = {}
        self.different: list[int] = []
        self.again = 0
        self._released = 0
        self._read_from(0)

    def follow(self, host: str) -> None:
        """At another host broker as a process that knows nothing but what it has released."""
        super().follow(host)
        self._read_from(self._released)

    def get(self, frame: Deliveries, number: int, found: Contents) -> None:
        what = frame.source, frame.number, frame.payload
        if number in self.at:
            self.again += 1
            self.different += [number] * (self.at[number] != what)
        else:
            self.at[number] = what
            super().get(frame, number, found)
        connection = self._links.connection_of(f"broker/{self.host}")
        if number % RELEASED_EVERY == 0 and number > 2 and connection is not None:
            self._released = max(self._released, number - 2)
            asked = verbs.ProfilePositions(profiles=[self.profile], released=[self._released])
            request = Request(f"{self.profile}/{number}", asked.verb, asked.arguments())
            self._links.reply(connection, request)

    def _read_from(self, received: int) -> None:
        self._subscription.detach(self._attachment)
        self._attachment = self._subscription.attach(self.profile, received, HELD)
