"""The tools of who operates a network, as commands; and onyx up without a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.request import urlopen

import pytest
import trio

from onyx import DataSource, RegistrationClient, User
from onyx.cli.bench import EXIT_SLOWER
from onyx.cli.json_lines import decode_line
from onyx.cli.main import main
from onyx.errors import EXIT_OK
from onyx.gateway_child import gateway_lacks
from onyx.launcher import RunningNetwork
from tests.hanging import SAFETY_SECONDS

SMALL = ["--messages", "20", "--bytes", "200", "--profiles", "2", "--changes", "2"]


class Said:
    """What a command has said, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def lines(self, verb: str) -> list[dict[str, object]]:
        """Each is what the schema of ``--json`` promises."""
        lines = self.out.splitlines()
        for line in lines:
            decode_line(verb, line)
        return [json.loads(line) for line in lines]


class Commands:
    def __init__(self, network: RunningNetwork, capsys: pytest.CaptureFixture[str]) -> None:
        self._network = network
        self._capsys = capsys

    def where(self, *arguments: str) -> Sequence[str]:
        return [*arguments, "--registration", self._network.registration]

    async def run(self, *arguments: str) -> Said:
        code = await trio.to_thread.run_sync(main, self.where(*arguments))
        return Said(code, *self._capsys.readouterr())


@pytest.fixture
def commands(two_brokers: RunningNetwork, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(two_brokers, capsys)


async def test_top_says_once_how_the_network_is(
    two_brokers: RunningNetwork, commands: Commands
) -> None:
    source = await DataSource.register(two_brokers.registration, name="news")
    async with source, User(two_brokers.registration, "ann") as user:
        await user.add_profile("//a", location=(20.0, 0.0))
        await source.publish(b"<a/>")
    said = await commands.run("top", "--once", "--json", "--interval", "0.05")
    assert said.code == EXIT_OK
    found = said.lines("top")
    assert {str(row["broker"]) for row in found if row["kind"] == "broker"} == {"B1", "B2"}
    assert [row["source"] for row in found if row["kind"] == "source"] == [source.id]
    said = await commands.run("top", "--once", "--interval", "0.05")
    assert said.code == EXIT_OK
    assert "B1" in said.out and source.id in said.out


async def test_tap_ends_after_what_was_asked_for(
    two_brokers: RunningNetwork, commands: Commands
) -> None:
    source = await DataSource.register(two_brokers.registration, location=(10.0, 0.0))
    heard: list[Said] = []

    async def tap() -> None:
        kinds = ["--kind", "accepted", "--kind", "delivery"]
        heard.append(await commands.run("tap", "--json", "--count", "2", "--path", "//a", *kinds))

    async with source, User(two_brokers.registration, "ann") as user:
        profile = await user.add_profile("//a", location=(20.0, 0.0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tap)
            while not heard:
                await source.publish(b"<b/>")
                await source.publish(b"<a/>")
    (said,) = heard
    assert said.code == EXIT_OK
    events = said.lines("tap")
    assert len(events) == 2
    assert {str(event["kind"]) for event in events} <= {"accepted", "delivery"}
    assert {str(event.get("profile", profile.id)) for event in events} == {profile.id}
    said = await commands.run("tap", "--seconds", "0.2", "--kind", "crossing")
    assert (said.code, said.out) == (EXIT_OK, "")


async def test_bench_is_held_against_what_it_was(commands: Commands, tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    said = await commands.run("bench", *SMALL, "--json", "--save", str(file))
    assert said.code == EXIT_OK
    measures = said.lines("bench")
    before = json.loads(file.read_text())
    assert [each["name"] for each in measures] == list(before["measures"])
    for factor, code in ((1e-6, EXIT_SLOWER), (1e6, EXIT_OK)):
        changed = json.loads(file.read_text())
        for measure in changed["measures"].values():
            measure["p50_ms"] *= factor
            measure["p99_ms"] *= factor
        other = tmp_path / "other.json"
        other.write_text(json.dumps(changed))
        said = await commands.run("bench", *SMALL, "--baseline", str(other))
        assert said.code == code
        assert ("onyx: slower: publish: p99" in said.err) == (code == EXIT_SLOWER)


async def test_bench_that_is_interrupted_leaves_nothing(
    two_brokers: RunningNetwork, commands: Commands
) -> None:
    endless = ["--messages", "2", "--profiles", "2", "--changes", "1000000"]
    command = [sys.executable, "-m", "onyx", "bench", *endless]
    with subprocess.Popen(
        commands.where(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as bench:
        async with RegistrationClient(two_brokers.registration) as registration:
            while not await registration.profiles():
                await trio.sleep(0.02)
            bench.send_signal(signal.SIGINT)
            await trio.to_thread.run_sync(bench.wait)
            assert bench.returncode == 130
            assert await registration.profiles() == []
            assert await registration.sources() == []
        assert bench.stderr is not None
        assert b"Traceback" not in bench.stderr.read()


def test_up_without_a_file_is_one_broker_with_a_page(tmp_path: Path) -> None:
    home = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    command = [sys.executable, "-m", "onyx"]
    with subprocess.Popen(
        [*command, "up", "--json", "--port", "0"],
        env=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as up:
        try:
            assert up.stdout is not None
            event = {}
            while event.get("event") != "up":
                line = up.stdout.readline()
                assert line, up.stderr.read().decode() if up.stderr else ""
                event = json.loads(line)
            assert (tmp_path / "onyx" / "local" / "topology.toml").exists()
            where = ["--registration", event["registration"]]
            done = subprocess.run(
                [*command, "profile", "add", "-", "--user", "ann", *where],
                input=b"//a",
                env=home,
                capture_output=True,
                check=False,
            )
            assert done.returncode == EXIT_OK, done.stderr.decode()
            assert ("gateway" in event) != bool(gateway_lacks())
            if not gateway_lacks():
                with urlopen(event["gateway"], timeout=SAFETY_SECONDS) as page:
                    assert b"<title>" in page.read()
        finally:
            up.send_signal(signal.SIGTERM)
            assert up.wait(SAFETY_SECONDS) == EXIT_OK
