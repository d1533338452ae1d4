"""Thousands of profiles by one call or one command: none lost, none twice, whatever breaks."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from onyx import DataSource, NewProfile, ProfilesNotAccepted, User, launch
from onyx.blocking import User as BlockingUser
from onyx.profile_batches import cut
from tests.onyx.networks import small_topology
from tests.onyx.test_cli_network import Shell, shell, write

__all__ = ["shell"]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    """Profiles in a batch, so that few of them are several."""
    monkeypatch.setattr("onyx.profile_batches.BATCH_PROFILES", 50)
    return 50


def test_cut_by_number_length_and_kind() -> None:
    assert [len(part) for part in cut(["a"] * 2_500, len)] == [1_000, 1_000, 500]
    assert [len(part) for part in cut(["a" * 100_000] * 5, len)] == [2, 2, 1]
    assert list(cut([1, 1, 2, 1], lambda item: 1, lambda item: item)) == [[1, 1], [2], [1]]


@pytest.mark.usefixtures("small_batches")
async def test_many_are_added_changed_and_removed(registration: str) -> None:
    async with User(registration, "many") as user:
        texts = [f"//many/n{number}" for number in range(125)]
        ids = [i async for batch in user.add_profiles(texts) for i in batch.ids]
        shown = await user.profiles()
        assert [profile.id for profile in shown] == ids
        assert all(profile.live for profile in shown)
        assert (await user.profile(ids[62])).text == texts[62]
        changes = [(profile, f"//other/n{n}") for n, profile in enumerate(ids[:75])]
        changed = [batch async for batch in user.update_profiles(changes)]
        assert [profile for batch in changed for profile in batch.ids] == ids[:75]
        again = [batch async for batch in user.update_profiles(changes)]
        assert again == changed
        assert (await user.profile(ids[74])).version == 2
        gone = [batch async for batch in user.remove_profiles([*ids, "p0"])]
        assert [place for batch in gone for place in batch.refused] == [125]
        assert await user.profiles() == []


async def test_a_refused_one_refuses_its_batch_or_is_left_out(registration: str) -> None:
    async with User(registration, "picky") as user:
        texts = ["/a", "/a[", "/b"]
        with pytest.raises(ProfilesNotAccepted) as caught:
            async for _ in user.add_profiles(texts):
                pytest.fail("added")
        assert list(caught.value.refused) == [1]
        assert await user.profiles() == []
        (batch,) = [batch async for batch in user.add_profiles(texts, skip_refused=True)]
        assert [bool(profile) for profile in batch.ids] == [True, False, True]
        assert "line 1, column 4" in batch.refused[1]
        async for _ in user.remove_profiles(filter(None, batch.ids)):
            pass


async def test_each_may_have_a_user_and_a_place_of_its_own(registration: str) -> None:
    async with User(registration, "one") as user:
        asked = [NewProfile("//u", "two"), NewProfile("//u", location=(30.0, 0.0)), "//u"]
        ids = [i async for batch in user.add_profiles(asked) for i in batch.ids]
        infos = [await user.profile(profile) for profile in ids]
        assert [info.user for info in infos] == ["two", "one", "one"]
        assert infos[1].host == "B3"
        async for _ in user.remove_profiles(ids):
            pass


async def test_the_same_key_adds_once_whatever_dies_meanwhile(
    tmp_path: Path, small_batches: int
) -> None:
    texts = [f"//n{number}" for number in range(6 * small_batches)]
    async with (
        launch(small_topology(tmp_path, brokers=1), write_line=lambda line: None) as network,
        User(network.registration, "ada") as user,
    ):
        batches = user.add_profiles(texts, key="once")
        first = await anext(batches)
        network.kill(network.topology.registration[0].id)
        second = await anext(batches)  # the rest is left alone, as a process that is killed would
        network.kill("B1")
        again = [batch async for batch in user.add_profiles(texts, key="once")]
        assert again[:2] == [first, second]
        ids = [profile for batch in again for profile in batch.ids]
        assert {profile.id for profile in await user.profiles()} == set(ids)
        assert len(set(ids)) == len(ids) == len(texts)


async def test_who_waits_no_longer_is_told_who_is_missing(tmp_path: Path) -> None:
    async with (
        launch(small_topology(tmp_path, brokers=2), write_line=lambda line: None) as network,
        await DataSource.register(network.registration, location=(10.0, 0.0)),
        User(network.registration, "ada") as user,
    ):
        asked = [NewProfile(f"//n{number}", location=(20.0, 0.0)) for number in range(3)]
        (live,) = [batch async for batch in user.add_profiles(asked, timeout_seconds=30.0)]
        assert live.missing == []
        os.kill(network.pids["B1"], signal.SIGSTOP)
        (late,) = [batch async for batch in user.add_profiles(asked, timeout_seconds=0.1)]
        assert late.missing == ["B1"]
        changes = [(profile, "//other") for profile in live.ids]
        (late,) = [batch async for batch in user.update_profiles(changes, timeout_seconds=0.1)]
        assert late.missing == ["B1"]
        ids = live.ids
        async for batch in user.remove_profiles(ids, wait=True, timeout_seconds=0.1):
            assert batch.missing == ["B1"]
        os.kill(network.pids["B1"], signal.SIGCONT)


def test_the_same_without_trio(registration: str) -> None:
    with BlockingUser(registration, "blocking-many") as user:
        ids = [
            i for batch in user.add_profiles(f"/a/b{n}" for n in range(1_001)) for i in batch.ids
        ]
        assert len(ids) == 1_001
        list(user.update_profiles([(ids[0], "/c")]))
        assert user.profile(ids[0]).text == "/c"
        assert [len(batch.ids) for batch in user.remove_profiles(ids)] == [1_000, 1]
        assert user.profiles() == []


@pytest.mark.usefixtures("small_batches")
def test_a_file_of_many_on_the_command_line(shell: Shell, tmp_path: Path) -> None:
    texts = [f"//file/n{number}" for number in range(120)]
    lines = write(tmp_path / "queries.txt", "\n".join(texts) + "\n\n")
    ids = shell.lines("profile", "add", lines, "--lines", "--user", "eva")
    assert len(ids) == 120
    assert "120 of 120 profiles added" in shell.err
    key = shell.err.split("--resume ")[1].split()[0]
    resumed = ("profile", "add", lines, "--lines", "--user", "eva", "--resume", key)
    assert shell.lines(*resumed) == ids
    assert len(shell.lines("profile", "list", "--user", "eva")) == 1 + 120
    changes = "\n".join(json.dumps({"profile": p, "text": "//changed"}) for p in ids[:2])
    assert shell.lines("profile", "update", write(tmp_path / "new.jsonl", changes)) == ids[:2]
    assert "//changed" in "\n".join(shell.lines("profile", "show", ids[1]))
    again = write(tmp_path / "new.txt", f"{ids[1]} //again[a = 'b']\n\n  {ids[2]}\t//again\n")
    waiting = ("--lines", "--wait", "--timeout", "30")
    assert shell.lines("profile", "update", again, *waiting) == ids[1:3]
    assert "//again[a = 'b']" in "\n".join(shell.lines("profile", "show", ids[1]))
    wrong = write(tmp_path / "wrong.txt", f"{ids[0]} //x\n//y\n")
    assert shell.run("profile", "update", wrong, "--lines") == 65
    assert "line 2: this is '//y'; expected the id of a profile and" in shell.err
    gone = write(tmp_path / "ids.txt", "\n".join(ids))
    assert shell.lines("profile", "remove", gone, "--lines") == ids
    assert shell.run("profile", "remove", gone, "--lines") == 65
    assert "line 1: there is no such profile" in shell.err


def test_an_exported_file_is_added(shell: Shell, tmp_path: Path) -> None:
    one = {"profile": "p9", "user": "eve", "host": "B7", "near": False, "text": "//x\n/y"}
    file = write(tmp_path / "catalog.jsonl", json.dumps(one) + "\n" + '{"text": "//z"}\n')
    found = shell.objects("profile", "add", file, "--user", "fay")
    assert [entry["line"] for entry in found] == [1, 2]
    users = [shell.objects("profile", "show", entry["id"])[0]["user"] for entry in found]
    assert users == ["eve", "fay"]
    shell.lines("profile", "remove", *[entry["id"] for entry in found])


def test_wrong_lines_are_all_told_and_nothing_is_done(shell: Shell, tmp_path: Path) -> None:
    lines = write(tmp_path / "bad.txt", "//right\n//wrong[\n\n/also wrong\n")
    assert shell.run("profile", "add", lines, "--lines", "--user", "gus") == 65
    assert "line 2, column 9: " in shell.err and "expected" in shell.err
    assert "line 4, column 7: " in shell.err
    assert shell.lines("profile", "list", "--user", "gus") == []
    (added,) = shell.lines("profile", "add", lines, "--lines", "--user", "gus", "--skip-bad")
    shell.lines("profile", "remove", added)
    objects = write(tmp_path / "bad.jsonl", '{"text": 1}\n[]\n{\n{"text": "/a", "location": 1}\n')
    assert shell.run("profile", "add", objects) == 65
    for number, why in enumerate(("a string", "an object", "no JSON", "[latitude"), 1):
        assert f"line {number}: " in shell.err and why in shell.err


@pytest.mark.parametrize(
    "words",
    [
        ("add", "a.jsonl", "b.xq"),
        ("add", "a.xq", "--skip-bad"),
        ("add", "a.xq", "--resume", "k"),
        ("update", "p1"),
        ("update", "p1", "a.xq", "--lines"),
    ],
)
def test_arguments_that_make_no_sense(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell.run("profile", *words) == 2
