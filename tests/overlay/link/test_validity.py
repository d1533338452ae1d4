"""Certificates in time: a peer's that is over or not good yet is waited for, one's own ends a
program; and ends are told before they come.  Clocks are given, none is waited for."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from onyx.identity.authority import AUTHORITY_DAYS, LEAF_DAYS, Authority
from overlay.link.client_connection import ClientLimits, RemoteError, open_client
from overlay.link.credentials import Credentials, CredentialsFile
from overlay.link.principal import Principal
from overlay.link.validity import DAY, TOLD_DAYS, days_left, ending
from tests.overlay.link.test_node import Network

HANGING_SECONDS = 600.0
PATIENT = ClientLimits(open_seconds=HANGING_SECONDS)
ANN, B = Principal("user", "ann"), Principal("broker", "B")
OVER = -0.001  # days


class Place:
    """B and ann, with clocks that are ``off`` by seconds, and certificates as they are wanted."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority.make(directory / "identity", "net")
        self.off = {B: 0.0, ANN: 0.0}
        self.files = {who: directory / f"{who.name}.pem" for who in self.off}
        self.shown: dict[Principal, Credentials] = {}
        for who in self.off:
            self.issue(who, LEAF_DAYS)
        self.shown |= {
            who: Credentials(file, self.authority.revoked_file, self._clock(who))
            for who, file in self.files.items()
        }
        self.network = Network(directory, {"B": self.shown[B]})

    def issue(self, who: Principal, days: float) -> None:
        self.files[who].write_bytes(self.authority.issue(who, days))
        self.files[who].chmod(0o600)
        self._read()

    def revoke(self, who: Principal) -> None:
        issued = self.authority.issued()
        self.authority.revoke({one.serial for one in issued if one.principal == who})
        self._read()

    def _read(self) -> None:
        """As the processes do once a second."""
        for shown in self.shown.values():
            shown.refresh()

    def _clock(self, who: Principal) -> Callable[[], float]:
        return lambda: time.time() + self.off[who]

    async def echo(self) -> str:
        """What ann is told by B; RemoteError where she is told that there is no point."""
        port = self.network.ports["B"]
        async with open_client(
            "127.0.0.1", port, role="client", identity="c1", limits=PATIENT,
            credentials=self.shown[ANN],
        ) as client:  # fmt: skip
            return str((await client.call("echo", {"text": "x"}))["text"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@dataclass(frozen=True)
class Wait:
    """``wrong``: something; ``said`` to ann meanwhile; ``right``: what ends that."""

    wrong: Callable[[Place], None]
    said: str
    right: Callable[[Place], None]


def clock(who: Principal, days: float) -> Callable[[Place], None]:
    return lambda place: place.off.update({who: days * DAY})


def shows(who: Principal, days: float) -> Callable[[Place], None]:
    return lambda place: place.issue(who, days)


@pytest.mark.parametrize(
    "wait",
    [
        Wait(clock(B, -1), "client/c1 has shown a certificate that is not good", clock(B, 0)),
        Wait(clock(B, 100), "client/c1 has shown a certificate that is over since", clock(B, 0)),
        Wait(clock(ANN, -1), "it has shown a certificate that is not good before", clock(ANN, 0)),
        Wait(clock(ANN, 100), "it has shown a certificate that is over since", clock(ANN, 0)),
        Wait(shows(B, OVER), "it has shown a certificate that is over", shows(B, LEAF_DAYS)),
    ],
    ids=["B-is-late", "B-is-ahead", "ann-is-late", "ann-is-ahead", "B-is-over"],
)
async def test_a_certificate_is_waited_for_and_that_is_said_once(
    place: Place, caplog: pytest.LogCaptureFixture, wait: Wait
) -> None:
    caplog.set_level(logging.WARNING, "onyx.client")
    wait.wrong(place)
    with trio.fail_after(HANGING_SECONDS):
        async with place.network.run("B"), trio.open_nursery() as nursery:
            said: list[str] = []

            async def ask() -> None:
                said.append(await place.echo())

            nursery.start_soon(ask)
            while not told(caplog):
                await trio.sleep(0)
            assert not said
            wait.right(place)
        assert said == ["x"]
    (warning,) = told(caplog)
    assert wait.said in warning


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [record.getMessage() for record in caplog.records if record.name == "onyx.client"]
    return [message for message in messages if message.endswith("; tried again")]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (shows(ANN, OVER), "client/c1 has shown a certificate that is over since"),
        (lambda place: place.revoke(ANN), "client/c1 has shown a certificate that is revoked"),
    ],
    ids=["over", "revoked"],
)
async def test_ones_own_certificate_ends_a_program(
    place: Place, wrong: Callable[[Place], None], why: str
) -> None:
    wrong(place)
    with trio.fail_after(HANGING_SECONDS):
        async with place.network.run("B"):
            with pytest.raises(RemoteError, match=why) as caught:
                await place.echo()
            assert caught.value.code == "not-authenticated"


async def test_a_broker_says_once_that_it_waits_for_another(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "onyx.node")
    place.network.credentials["A"] = issued(place, "A")
    place.issue(B, OVER)
    with trio.fail_after(HANGING_SECONDS):
        async with place.network.run("B"), place.network.run("A", ["B"]) as sender:
            said = "no TLS with broker/B: it has shown a certificate that is over since"
            while said not in caplog.text:
                await trio.sleep(0)
            place.issue(B, LEAF_DAYS)
            while not sender.links.connected("broker/B"):
                await trio.sleep(0)
    assert caplog.text.count(said) == 1


def issued(place: Place, name: str) -> Credentials:
    return Credentials(place.authority.keep(Principal("broker", name)))


# --- ends are told --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (TOLD_DAYS, ""),
        (29.9, "ends in 30 days, 1970-01-30 21:36 Z"),
        (2, "ends in 2 days, 1970-01-03 00:00 Z"),
        (0.5, "ends in 12 hours, 1970-01-01 12:00 Z"),
        (-3, "is over since 1969-12-29 00:00 Z"),
    ],
)
def test_an_end_in_words(days: float, said: str) -> None:
    assert ending(days * DAY, 0.0) == said
    assert days_left(days * DAY, 0.0) == days


def test_ends_are_told_once_a_day_of_the_process_its_authority_and_who_is_there(
    place: Place,
) -> None:
    shown = place.shown[B]
    assert shown.own is not None
    assert shown.ends() == {"own": shown.own.until, "authority": shown.authority_until}
    assert days_left(shown.authority_until, shown.own.until) > AUTHORITY_DAYS - LEAF_DAYS - 1
    assert shown.warnings() == []
    place.off[B] = (LEAF_DAYS - TOLD_DAYS + 1) * DAY
    ann = place.shown[ANN].own
    assert ann is not None
    shown.note_connected([(ANN, ann), (Principal("user", "bob"), ann._replace(until=1e12))])
    assert shown.ending == {"user/ann": ann.until}
    first = shown.warnings()
    assert [text.partition(" ends in ")[0] for text in first] == [
        "the certificate of broker/B", "the certificate of user/ann",
    ]  # fmt: skip
    again: list[str] = []
    for _ in range(24):
        place.off[B] += 3600
        again += shown.warnings()
    assert len(again) == len(first), "once a day"
    place.off[B] = AUTHORITY_DAYS * DAY
    assert any(text.startswith("the network's authority ") for text in shown.warnings())


def test_a_key_that_every_account_can_read_is_told(place: Place) -> None:
    place.files[ANN].chmod(0o640)
    assert place.shown[ANN].warnings() == []
    place.files[B].chmod(0o644)
    (said,) = place.shown[B].warnings()
    assert said.startswith(f"{place.files[B]} can be read by every account")
    assert place.shown[B].statistics().is_open


def test_of_several_authorities_one_that_is_over_vouches_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Authority.make(tmp_path / "new", "net")
    monkeypatch.setattr("onyx.identity.authority.AUTHORITY_DAYS", 1)
    old = Authority.make(tmp_path / "old", "net")
    of_old = CredentialsFile.read(old.keep(ANN))
    both, now = tmp_path / "B.pem", time.time()
    both.write_bytes(new.issue(B) + of_old.certificates[-1].encode())
    shown, ann = Credentials(both, wall=lambda: now), Credentials(old.keep(ANN))
    assert met(ann, shown) == ANN
    now += 2 * DAY
    shown.refresh()
    with pytest.raises(ssl.SSLError, match="self-signed"):
        met(ann, shown)


def met(ann: Credentials, node: Credentials) -> Principal:
    """Ann as a node sees her, who does not look at whom she speaks to."""
    ann._client.verify_mode = ssl.CERT_NONE
    shows, sees = ann.channel(server_side=False), node.channel(server_side=True)
    data = b""
    while not shows.shake(data):
        sees.shake(shows.to_send())
        data = sees.to_send()
    sees.shake(shows.to_send())
    return node.principal_of(sees.certificate())
