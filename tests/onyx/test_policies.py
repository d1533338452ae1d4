"""How results are kept and given out again, by real processes: library, command line, brokers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import asdict

from onyx import DeliveryPolicy
from onyx.blocking import DataSource, User
from onyx.cli.main import main
from onyx.errors import RequestFailed, UsageError
from tests.hanging import SAFETY_SECONDS

ONCE = DeliveryPolicy(attempts_max=1)


def onyx(registration: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "onyx", *arguments, "--registration", registration],
        capture_output=True,
        text=True,
        timeout=SAFETY_SECONDS,
        check=False,
    )


def test_a_policy_is_said_with_the_profile_shown_and_changed(
    registration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "p.xq"
    text.write_text("//kept")
    where = ["--registration", registration]
    added = ["profile", "add", str(text), "--max-deliveries", "3", "--when-full", "drop-newest"]
    assert main([*added, *where]) == 0
    profile = capsys.readouterr().out.strip()
    assert main(["profile", "show", profile, *where]) == 0
    assert "at most 3 deliveries wait; when that is full: drop-newest" in capsys.readouterr().out
    assert main(["profile", "policy", profile, "--ttl", "60", *where, "--json"]) == 0
    policy = json.loads(capsys.readouterr().out)["policy"]
    assert policy == asdict(DeliveryPolicy("drop-newest", deliveries_max=3, ttl_s=60))
    assert main(["profile", "policy", profile, "--usual", *where]) == 0
    assert capsys.readouterr().out.startswith("as much waits as the network allows; ")
    with pytest.raises(SystemExit):
        main(["profile", "policy", profile, "--attempts", "5000", *where])
    wrong = "argument --attempts: must be a whole number from 1 to 1000, not '5000'"
    assert wrong in capsys.readouterr().err
    with User(registration) as user:
        assert user.policy(profile) == DeliveryPolicy()
        user.set_policy(profile, ONCE)
        assert user.policy(profile) == ONCE
        with pytest.raises(RequestFailed, match="no profile"):
            user.set_policy("p-nowhere", ONCE)


def test_what_a_program_rejects_comes_again_and_can_be_replayed(
    registration: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = DataSource.register(registration, name="orders")
    with source, User(registration, "ann") as user:
        again = user.add_profile("//order", policy=DeliveryPolicy(attempts_max=2, retry_s=0))
        results = user.results(again.id, share=True)
        source.publish(b"<order>1</order>")
        seen = []
        for _ in range(2):
            with results.attempt():
                seen.append(next(results).results)
                raise ValueError("no stock")
        source.publish(b"<order>2</order>")
        assert next(results).results == [b"<order>2</order>"]
        assert seen == [[b"<order>1</order>"]] * 2
        where = ["--registration", registration]
        assert main(["dead", "list", "--user", "ann", "--json", *where]) == 0
        (letter,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert (letter["kind"], letter["profile"]) == ("undeliverable", again.id)
        assert letter["error"] == "ValueError: no stock"
        assert main(["dead", "list", "--user", "bob", *where]) == 0
        assert "There are no dead letters." in capsys.readouterr().out
        assert main(["dead", "replay", letter["id"], *where]) == 0
        assert capsys.readouterr().out == f"{letter['id']}: delivered again\n"
        assert next(results).results == [b"<order>1</order>"]
        assert main(["dead", "show", letter["id"], *where]) == 65, "it is gone"


def test_only_what_is_shared_is_rejected(registration: str) -> None:
    with User(registration) as user, pytest.raises(UsageError, match="share=True"):
        user.results("p1").reject("no")


def test_a_command_accepts_each_delivery_or_rejects_it(registration: str, tmp_path: Path) -> None:
    source = DataSource.register(registration, name="jobs")
    with source, User(registration) as user:
        profile = user.add_profile("//job", policy=ONCE)
        source.publish(b"<job>bad</job>")
        source.publish(b"<job>good</job>")
        done = tmp_path / "done"
        command = f"cat > {done} && echo no $ONYX_NUMBER >&2 && grep -q good {done}"
        shared = onyx(
            registration, "subscribe", profile.id, "--share", "--exec", command, "--count", "1"
        )
        assert (shared.returncode, done.read_text()) == (0, "<job>good</job>")
        expected = f"{profile.id}: message 1 of {source.id}: rejected, exit code 1: no 1"
        assert expected in shared.stderr
        source.publish(b"<job>bad</job>")
        alone = onyx(registration, "subscribe", profile.id, "--exec", command)
        assert alone.returncode == 65
        assert "has ended with exit code 1: no 3" in alone.stderr
        for delivery in user.results(profile.id):
            assert delivery.number == 3, "what one who is alone did not accept comes again"
            break


def test_a_message_that_was_refused_is_published_again(
    registration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = DataSource.register(registration, name="broken")
    where = ["--registration", registration]
    with source:
        assert not source.publish(b"<broken>").accepted
    assert main(["dead", "list", "--kind", "refused", "--json", *where]) == 0
    letters = map(json.loads, capsys.readouterr().out.splitlines())
    (letter,) = (letter for letter in letters if letter["source"] == source.id)
    assert main(["dead", "show", letter["id"], *where]) == 0
    assert "<broken>" in capsys.readouterr().out
    assert main(["dead", "replay", letter["id"], *where]) == 65
    assert "refused again" in capsys.readouterr().out
    assert main(["dead", "drop", letter["id"], *where]) == 0
