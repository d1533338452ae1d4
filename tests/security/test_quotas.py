"""What those get who want more than their share of a real network, or come from another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from secrets import token_urlsafe

import pytest
import trio

import onyx
from onyx.blocking import DataSource, User
from onyx.errors import RequestFailed
from onyx.identity.known_networks import use_credentials
from overlay.link.frame_codec import encode
from overlay.link.frames import Publish
from overlay.link.principal import Principal
from tests.onyx.networks import RunningProcess, small_topology_text
from tests.onyx.test_stranger import authority_of, issued
from tests.security.attacker import (
    NOBODY,
    NOTHING_WRONG,
    SOURCE,
    Victim,
    attacker,
    hello,
    learn_next_number,
)

LIMITS = """
[limits]
principal_profiles_max = 2
principal_sources_max = 1
principal_messages_s_max = 2
principal_bytes_s_max = 20_000
principal_waiting_bytes_max = 20_000
"""


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProcess]:
    """A network that gives nobody much."""
    directory = tmp_path_factory.mktemp("strict")
    file = directory / "strict.toml"
    text = small_topology_text(directory / "data", brokers=1).replace('"small"', '"strict"')
    file.write_text(text + LIMITS, encoding="utf-8")
    running = RunningProcess.start(file)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def victim(strict: RunningProcess, tmp_path_factory: pytest.TempPathFactory) -> Victim:
    victim = Victim(strict, tmp_path_factory.mktemp("attackers"))
    trio.run(victim.prepare)
    return victim


def credentials(network: RunningProcess, place: Path, principal: str) -> Path:
    return issued(authority_of(network), Principal.parse(principal), place)


def test_profiles(strict: RunningProcess, tmp_path: Path) -> None:
    with (
        use_credentials(credentials(strict, tmp_path, "user/mallory")),
        User(strict.registration) as mallory,
    ):
        for _ in range(2):
            mallory.add_profile("//a")
        with pytest.raises(RequestFailed, match="over-quota"):
            mallory.add_profile("//a")
        mallory.remove_profile(mallory.profiles()[0].id)
        mallory.add_profile("//b")


def test_sources(strict: RunningProcess, tmp_path: Path) -> None:
    with use_credentials(credentials(strict, tmp_path, "source/mallory")):
        DataSource.register(strict.registration, name="one")
        with pytest.raises(RequestFailed, match="over-quota"):
            DataSource.register(strict.registration, name="two")


@pytest.mark.parametrize(
    ("sizes", "gets"),
    [
        pytest.param((9, 9, 9), "over-quota", id="messages"),
        pytest.param((15_000, 15_000), "over-quota", id="bytes"),
        pytest.param((9, 9), NOTHING_WRONG, id="what-one-may"),
    ],
)
async def test_messages_at_once(victim: Victim, sizes: tuple[int, ...], gets: str) -> None:
    """Each as a source of its own: what one has spent it has back in a second."""
    source = await onyx.DataSource.register(victim.network.registration, name="one of its own")
    victim.ours = source.id
    await learn_next_number(victim)
    first, last = victim.next_number, victim.next_number + len(sizes) - 1
    said = hello("source", source.id)
    for number, size in enumerate(sizes, first):
        frame = Publish(source.id, "text", b"<a>" + b"x" * (size - 7) + b"</a>")
        said += encode(frame, source.id, number)
    async with attacker(victim, SOURCE, "root", "clients") as connection:
        await connection.say(said)
        assert await connection.outcome(last) == gets


async def test_results_that_wait(strict: RunningProcess, tmp_path: Path) -> None:
    """The oldest go, and whoever comes for them is told how many; others have all of theirs."""
    files, profiles = {}, {}
    for name, path in (("eve", "//waits"), ("ben", "//waits[@last]")):
        (tmp_path / name).mkdir()
        files[name] = credentials(strict, tmp_path / name, f"user/{name}")
        with use_credentials(files[name]):
            async with onyx.User(strict.registration) as user:
                profiles[name] = (await user.add_profile(path)).id
    async with await onyx.DataSource.register(strict.registration) as source:
        for last in [b""] * 29 + [b' last=""']:
            message = b"<waits" + last + b">" + b"x" * 2_000 + b"</waits>"
            assert (await source.publish(message)).accepted
    lost = {}
    for name, most in (("eve", 30), ("ben", 1)):
        with use_credentials(files[name]):
            async with onyx.User(strict.registration) as user:
                results, come = user.results(profiles[name]), 0
                async for delivery in results:
                    come += 1
                    if delivery.number == 30:
                        break
                lost[name] = results.lost
                assert come + results.lost == most
    assert lost["eve"] and not lost["ben"]


@pytest.mark.parametrize("shown", ["mallory's", "revoked", "none"])
async def test_a_token_of_another_network(
    network: RunningProcess, victim: Victim, tmp_path: Path, shown: str
) -> None:
    """It is nobody's here."""
    other = Victim(network, tmp_path)
    await other.prepare()
    token = other.tokens.get(shown, token_urlsafe(32))
    for node in ("B1", "registration"):
        async with attacker(victim, NOBODY, node, "clients") as connection:
            await connection.say(hello("client", "1", token=token))
            assert await connection.outcome(0) == "not-authenticated"
