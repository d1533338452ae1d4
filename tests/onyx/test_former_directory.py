"""Where the data of a network is: in the account's state directory, or where its file says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from onyx.cli.main import main
from onyx.cli.up import check_former
from onyx.data_directory import DataDirectory
from onyx.errors import EXIT_CONFIG, DataDirectoryError
from onyx.local_network import local_network
from overlay.topology import load_topology

TEXT = """name = "pair"
{}[registration]
id = "R"
listen = "127.0.0.1:0"
[[broker]]
id = "B"
listen = "127.0.0.1:0"
"""


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    (tmp_path / "files").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def write(tmp_path: Path, line: str = "") -> Path:
    file = tmp_path / "files" / "pair.toml"
    file.write_text(TEXT.format(line), encoding="utf-8")
    return file


def keep(directory: Path, file: Path) -> None:
    """As a network that has run there."""
    directory.mkdir(parents=True)
    DataDirectory(directory).write_topology(load_topology(file))


def test_the_data_is_in_the_state_of_the_account_or_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_topology(write(tmp_path)).data_directory == tmp_path / "state/onyx/pair"
    relative = load_topology(write(tmp_path, 'data_directory = "data"\n'))
    assert relative.data_directory == tmp_path / "files/data"
    absolute = load_topology(write(tmp_path, 'data_directory = "/var/onyx"\n'))
    assert absolute.data_directory == Path("/var/onyx")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_network().data_directory == tmp_path / ".local/state/onyx/local"


@pytest.mark.parametrize(
    ("line", "former", "now"),
    [
        ("", ".onyx/pair", "state/onyx/pair"),
        ('data_directory = "data"\n', "data", "files/data"),
    ],
)
def test_data_of_a_former_release_is_not_begun_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, former: str, now: str
) -> None:
    file = write(tmp_path, line)
    topology = load_topology(file)
    check_former(topology, file)  # nothing is there
    keep(Path(former), file)
    with pytest.raises(DataDirectoryError, match=f"--data {former} each time"):
        check_former(topology, file)
    assert main(["up", str(file)]) == EXIT_CONFIG
    assert f"mv {former} {tmp_path / now}" in capsys.readouterr().err
    (tmp_path / now).parent.mkdir(parents=True, exist_ok=True)
    shutil.move(former, tmp_path / now)
    check_former(topology, file)
    moved = load_topology(tmp_path / now / "topology.toml")
    assert moved.data_directory == tmp_path / now
    keep(Path(former), file)
    check_former(topology, file)  # there is data where it is looked for
