"""``onyx backup`` and ``restore``: a network under traffic, and what is wrong with a file."""

from __future__ import annotations

import io
import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest
import trio
from zstandard import ZstdCompressor, ZstdDecompressor

from onyx import DataSource, User, launch
from onyx.cli.json_lines import decode_line
from onyx.cli.main import main
from onyx.data_directory import DataDirectory
from onyx.errors import StoreUnusable
from onyx.network_backup import check
from onyx.results import Results
from overlay.link import store_moment
from overlay.link.errors import StoreError
from overlay.link.events import Put
from overlay.link.store import Store
from overlay.link.store_moment import one_moment
from overlay.topology import load_topology
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology

NORTH, SOUTH = (10.0, 0.0), (30.0, 0.0)  # where B1 and B3 are
NODES = ("registration", "B1", "B2", "B3")


async def take_ten(results: Results) -> None:
    """The first ten, which are acknowledged."""
    assert [(await anext(results)).number for _ in range(10)] == list(range(1, 11))
    results.acknowledge_nowait()
    await results.flush()


async def test_a_network_under_traffic_is_restored_elsewhere_as_it_was_at_one_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, data = tmp_path / "small.tar.zst", tmp_path / "restored"
    with trio.fail_after(SAFETY_SECONDS):
        async with launch(small_topology(tmp_path / "data")) as network:
            source = await DataSource.register(network.registration, location=NORTH)
            async with source, User(network.registration, "ada") as user:
                profile = await user.add_profile("//n", location=SOUTH)
                assert (source.root, profile.host) == ("B1", "B3")
                for number in range(1, 21):
                    assert (await source.publish(f"<n>{number}</n>".encode())).accepted
                await take_ten(user.results(profile.id))
                flowing, is_done = trio.Event(), trio.Event()

                async def publish() -> None:
                    number = 20
                    while not is_done.is_set():
                        number += 1
                        assert (await source.publish(f"<n>{number}</n>".encode())).number == number
                        flowing.set()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(publish)
                    await flowing.wait()
                    words = ["backup", str(file), "--data", str(tmp_path / "data"), "--json"]
                    assert await trio.to_thread.run_sync(main, words) == 0
                    is_done.set()
        decode_line("backup", made := capsys.readouterr().out)
        assert sorted(each["node"] for each in json.loads(made)["stores"]) == sorted(NODES)
        assert file.stat().st_mode & 0o777 == 0o600
        assert main(["restore", str(file), "--data", str(data), "--json"]) == 0
        decode_line("restore", restored := capsys.readouterr().out)
        assert json.loads(restored)["stores"] == json.loads(made)["stores"]
        said: list[str] = []
        topology = load_topology(data / "topology.toml")
        async with launch(topology, write_line=said.append) as network:
            address = network.registration
            async with DataSource(address, source.id) as source, User(address, "ada") as user:
                assert (await user.profile(profile.id)).live
                last = (await source.publish(b"<n>last</n>")).number
                assert last > 21
                results = user.results(profile.id)
                found = [await anext(results) for _ in range(11, last + 1)]
                assert [each.number for each in found] == list(range(11, last + 1))
                texts = [f"<n>{number}</n>".encode() for number in range(11, last)]
                assert [each.results for each in found] == [
                    [text] for text in (*texts, b"<n>last</n>")
                ]
                another = await user.add_profile("//n[. = 'more']", location=SOUTH)
                assert (await source.publish(b"<n>more</n>")).number == last + 1
                assert (await anext(results)).number == last + 1
                assert (await anext(user.results(another.id))).results == [b"<n>more</n>"]
    assert not [line for line in said if "store-lost" in line or " error " in line]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a network that is stopped."""
    directory = DataDirectory(tmp_path / "data")
    for node_id in NODES:
        directory.node_directory(node_id).mkdir(parents=True)
        with Store(directory.store_file(node_id)) as store:
            store.commit([Put("zone", "k", node_id.encode() * 500)])
    directory.identity.mkdir()
    (directory.identity / "authority.key").write_bytes(b"secret")
    (directory.identity / "authority.key").chmod(0o600)
    directory.write_topology(small_topology(directory.path))
    return directory.path


def test_a_stopped_network_is_restored_as_it_was(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies, there = tmp_path / "copies", tmp_path / "there"
    copies.mkdir()
    assert main(["backup", str(copies), "--data", str(data)]) == 0
    assert "network small at" in capsys.readouterr().out
    (file,) = copies.iterdir()
    assert file.name.startswith("small-") and file.name.endswith("Z.tar.zst")
    assert main(["backup", str(file), "--data", str(data)]) == 73
    assert "is there already" in capsys.readouterr().err
    assert main(["restore", str(file), "--data", str(there)]) == 0
    assert f"onyx up {there}/topology.toml" in capsys.readouterr().out
    assert (there / "identity/authority.key").read_bytes() == b"secret"
    assert (there / "identity/authority.key").stat().st_mode & 0o777 == 0o600
    assert load_topology(there / "topology.toml").data_directory == there
    with Store(DataDirectory(there).store_file("B2")) as store:
        assert list(store.rows()) == [("zone", "k", b"B2" * 500)]
    assert main(["restore", str(file), "--data", str(there)]) == 73
    assert "is not empty" in capsys.readouterr().err


def test_no_flipped_bit_goes_unseen(data: Path, tmp_path: Path) -> None:
    file, bad = tmp_path / "good.tar.zst", tmp_path / "bad.tar.zst"
    assert main(["backup", str(file), "--data", str(data)]) == 0
    good, whole, seen = file.read_bytes(), check(file), 0
    for place in range(0, len(good), len(good) // 150):
        flipped = bytearray(good)
        flipped[place] ^= 1 << place % 8
        bad.write_bytes(flipped)
        try:
            assert check(bad) == whole  # a bit of the file's own head may change nothing
        except StoreUnusable as error:
            assert "is damaged" in str(error) or "is cut short" in str(error)
            seen += 1
    assert seen > 100


def test_what_is_damaged_is_named_and_nothing_is_left(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, there = tmp_path / "good.tar.zst", tmp_path / "there"
    assert main(["backup", str(file), "--data", str(data)]) == 0
    good = file.read_bytes()
    plain = ZstdDecompressor().decompressobj().decompress(good)
    altered = plain.replace(b"B2B2", b"B2b2", 1)
    outside = io.BytesIO()
    with tarfile.open(fileobj=outside, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("identity/../../escaped"))
    compress = ZstdCompressor().compress
    bad = tmp_path / "bad.tar.zst"
    for content, expected in [
        (compress(altered), f"{bad} is damaged: nodes/B2/store.sqlite is not what was written"),
        (good[: len(good) // 2], f"{bad} is "),
        (b"", f"{bad} is damaged at its beginning"),
        (compress(outside.getvalue()), "'identity/../../escaped' is nothing that a backup has"),
    ]:
        bad.write_bytes(content)
        capsys.readouterr()
        assert main(["restore", str(bad), "--data", str(there)]) == 74
        assert expected in capsys.readouterr().err
        assert not there.exists()
    assert main(["restore", str(tmp_path / "none"), "--data", str(there)]) == 66


def test_what_is_no_whole_network_is_not_copied(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, directory = tmp_path / "copy.tar.zst", DataDirectory(data)
    store = directory.store_file("B2")
    content = store.read_bytes()
    store.write_bytes(content.replace(b"B2B2", b"B2b2", 1))
    assert main(["backup", str(file), "--data", str(data)]) == 74
    assert f"copy of {store} is not whole" in capsys.readouterr().err
    store.unlink()
    assert main(["backup", str(file), "--data", str(data)]) == 78
    assert "has no store of B2" in capsys.readouterr().err
    with directory.topology_file.open("a") as stream:
        stream.write('[stores]\nurl = "postgresql://h/d"\n')
    assert main(["backup", str(file), "--data", str(data)]) == 78
    assert "pg_dump" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_no_store_of_a_moment_is_behind_what_another_knows(tmp_path: Path) -> None:
    """The second has n only once the first has it, as one that has acknowledged."""
    paths = [tmp_path / "first", tmp_path / "second"]
    is_done, has_gone_on = Event(), Event()

    def write() -> None:
        with Store(paths[0]) as first, Store(paths[1]) as second:
            number = 0
            while not is_done.is_set():
                number += 1
                first.commit([Put("zone", "n", str(number).encode())])
                second.commit([Put("zone", "n", str(number).encode())])
                has_gone_on.set()

    writer = Thread(target=write)
    writer.start()
    try:
        assert has_gone_on.wait(SAFETY_SECONDS)
        for _ in range(20):
            with one_moment(paths) as moment:
                has_gone_on.clear()
                assert has_gone_on.wait(SAFETY_SECONDS)
                first, second = (
                    int(connection.execute("SELECT value FROM checked_rows").fetchone()[0])
                    for connection in moment.connections
                )
            assert 0 <= first - second <= 1
    finally:
        is_done.set()
        writer.join()


def test_a_store_that_cannot_be_locked_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "first", tmp_path / "second"]
    monkeypatch.setattr(store_moment, "LOCK_SECONDS", 0.0)
    monkeypatch.setattr(store_moment, "PAUSE_SECONDS", 0.0)
    with Store(paths[0]) as first, Store(paths[1]):
        with closing(sqlite3.connect(paths[1], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="could not be locked at once"), one_moment(paths):
                pytest.fail("has a moment")
        first.commit([Put("zone", "k", b"1")])
