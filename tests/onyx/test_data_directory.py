"""The data directory's locks and files; listening sockets."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from onyx.data_directory import DataDirectory, write_atomically
from onyx.errors import DataDirectoryError, DataDirectoryInUse, UnwritableOutput
from onyx.listening import bind, bind_all, bound_address
from overlay.nodes import Address
from overlay.topology import TopologyError, load_topology
from tests.onyx.networks import open_files, small_topology


def test_a_node_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    first, second = DataDirectory(tmp_path / "data"), DataDirectory(tmp_path / "data")
    with first.node_locked("B1"):
        with pytest.raises(DataDirectoryInUse, match=f"B1 is in use by process {os.getpid()};"):
            second.node_locked("B1").__enter__()
        with second.node_locked("B2"), second.locked():
            pass
    with second.node_locked("B1"):
        pass


def test_what_a_node_stores_is_for_its_account_alone(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    with directory.locked(), directory.node_locked("B1"):
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "data" / "nodes" / "B1").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnwritableOutput, match="file/data cannot be written: Not a directory"):
        DataDirectory(tmp_path / "file" / "data").locked().__enter__()


def test_the_topology_is_written_whole_and_read_back(tmp_path: Path) -> None:
    topology = small_topology(tmp_path)
    directory = DataDirectory(tmp_path)
    directory.check_shape(topology)  # nothing there yet
    assert load_topology(directory.write_topology(topology)) == topology
    directory.check_shape(topology)
    directory.topology_file.write_text("name = ", encoding="utf-8")
    with pytest.raises(DataDirectoryError, match=r"topology.toml: is not valid TOML.*start anew"):
        directory.check_shape(topology)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_atomically(file, b"old")
    write_atomically(file, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_bytes() == b"new"
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    with pytest.raises(UnwritableOutput, match="taken cannot be written"):
        write_atomically(tmp_path / "taken", b"new")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "taken"}


def test_all_sockets_are_bound_or_none(tmp_path: Path) -> None:
    before = open_files()
    with ExitStack() as stack:
        sockets = bind_all(small_topology(tmp_path), stack, "file.toml")
        assert list(sockets) == ["registration", "B1", "B2", "B3"]
        host, port = bound_address(sockets["B1"].clients, Address("localhost", 0))
        assert (host, port) == ("localhost", sockets["B1"].clients.getsockname()[1])
        with socket.create_connection(("127.0.0.1", port)):
            pass
        taken = small_topology(tmp_path, port=port)
        with pytest.raises(TopologyError, match="already in use"), ExitStack() as inner:
            bind_all(taken, inner, "file.toml")
    assert open_files() == before


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("192.0.2.1", "is no address of this machine"),  # TEST-NET-1 of RFC 5737
        ("a..b", "no such host"),
    ],
)
def test_an_address_that_cannot_be_had_is_named(host: str, reason: str) -> None:
    with pytest.raises(TopologyError) as failure:
        bind(Address(host, 0), "file.toml", "broker[0].listen")
    assert str(failure.value).startswith(f'file.toml: broker[0].listen: "{host}:0"')
    assert reason in str(failure.value)


def test_the_store_of_a_broker_that_joins_is_empty(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    assert data.set_aside("B1") is None
    store = data.store_file("B1")
    store.parent.mkdir(parents=True)
    for content in (b"first", b"second"):
        store.write_bytes(content)
        Path(f"{store}-wal").write_bytes(b"log of " + content)
        Path(f"{store}-head").write_bytes(b"head of " + content)
        aside = data.set_aside("B1")
        assert aside is not None and aside.parent == store.parent
        assert aside.read_bytes() == content
        assert Path(f"{aside}-wal").read_bytes() == b"log of " + content
        assert Path(f"{aside}-head").read_bytes() == b"head of " + content
        assert not Path(f"{store}-head").exists()
        assert not store.exists() and not Path(f"{store}-wal").exists()
