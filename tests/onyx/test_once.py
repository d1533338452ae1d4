"""Results that end: those that wait, each once, whatever of it turns out to be nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
import trio
import trio.testing

from onyx.blocking import User as BlockingUser
from onyx.errors import UsageError
from onyx.registration_client import RegistrationClient
from onyx.results import Results
from overlay.answers import Position, ProfileInfo
from overlay.link.client_connection import ClientConnection, ClientLimits
from overlay.link.frames import Deliveries, Missed, packed_numbers, packed_slots
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.onyx.test_cli_network import Shell, shell, write

__all__ = ["shell"]

HERE = Address("127.0.0.1", 1)


class Broker(ClientConnection):
    """The host of a profile, which says what a test says."""

    def __init__(self) -> None:
        super().__init__((HERE,), "subscriber", "c1", (), ClientLimits())

    async def call(self, verb: str, arguments: Any, *, request: str = "") -> Mapping[str, object]:
        return {}

    def give(self, *numbers: int) -> None:
        for number in numbers:
            place = packed_slots([1]), packed_numbers([number])
            self._take_delivery(0, Deliveries("s1", number, [1], *place, b"x"))

    def pass_over(self, through: int, lost: int = 0) -> None:
        self._take_delivery(0, Missed(1, through, lost))


class Registration:
    async def profile(self, name: str) -> ProfileInfo:
        return ProfileInfo(name, "ann", "B1", str(HERE), 1, live=True)


@pytest.mark.parametrize(
    ("before", "gone", "given", "passed_over", "more", "expected"),
    [
        (0, 0, [1, 2, 3], 0, [], [1, 2, 3]),
        (0, 0, [1, 2, 3], 0, [4, 5], [1, 2, 3]),
        (0, 0, [1, 2], 3, [], [1, 2]),
        (2, 2, [3], 0, [], [3]),
        (0, 0, [], 3, [], []),
        (0, 3, [], 0, [], []),
        (3, 3, [], 0, [4], []),
    ],
)
async def test_it_ends_behind_what_has_waited(
    before: int, gone: int, given: list[int], passed_over: int, more: list[int], expected: list[int]
) -> None:
    """Deliveries that are passed over are known of while the reader waits for them already."""
    broker = Broker()

    async def connect_to(address: str) -> ClientConnection:
        return broker

    async def ends(profile: str) -> Mapping[str, Position]:
        return {profile: Position(profile, gone, 3, 0)}

    registration = cast("RegistrationClient", Registration())
    results = Results(
        *(registration, ["p1"], connect_to, lambda *task: None),
        positions=lambda profile: before,
        ends=ends,
    )
    found: list[int] = []

    async def read() -> None:
        found.extend([delivery.position async for delivery in results])

    with trio.fail_after(SAFETY_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            broker.give(*given)
            await trio.testing.wait_all_tasks_blocked()
            if passed_over:
                broker.pass_over(passed_over)
            broker.give(*more)
    assert found == expected


def test_what_waits_is_taken_and_what_comes_later_waits(
    shell: Shell, registration: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "once")
    assert shell.run("subscribe", "--once") == 65
    assert "user 'once' has no profiles" in shell.err
    (source,) = shell.lines("source", "register")
    profiles = [
        *shell.lines("profile", "add", write(tmp_path / "p.xq", f"//once[@of = '{source}']")),
        *shell.lines("profile", "add", write(tmp_path / "q.xq", f"//once[@of = '{source}']/no")),
    ]
    message = f'<once of="{source}"/>'
    sent = ("source", "publish", source, write(tmp_path / "m.xml", message))

    def wait(count: int) -> None:
        with BlockingUser(registration) as user:
            while user.positions(profiles[0])[profiles[0]].last < count:
                pass

    shell.lines(*sent)
    wait(1)
    assert shell.lines("subscribe", "--once") == [message]
    assert shell.lines("subscribe", "--once") == []
    shell.lines(*sent)
    wait(2)
    with BlockingUser(registration, "once") as user:
        with pytest.raises(UsageError, match="leave out one of both"):
            user.results(profiles[0], once=True, share=True)
        assert [each.results for each in user.results(once=True)] == [[message.encode()]]
        assert list(user.results(*profiles, once=True)) == []
    shell.lines("profile", "remove", *profiles)
