"""``onyx store`` on real files: what is wrong is named, what is good is kept."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from onyx.cli.main import main
from onyx.data_directory import DataDirectory
from overlay.link.errors import StoreError, StoreLost
from overlay.link.events import Put
from overlay.link.store import Store
from overlay.link.store_head import head_file, read_head
from registration.catalog_rebuild import marked
from tests.onyx.networks import small_topology
from tests.overlay.test_archive_file import file_of, message

TEXT = b"for $x in //storm return $x"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The store of B2, with three commits, its process stopped."""
    path = DataDirectory(tmp_path).store_file("B2")
    path.parent.mkdir(parents=True)
    with Store(path) as store:
        store.commit([Put("profile", f"p{number:03d}", TEXT) for number in range(400)])
        store.commit([Put("profile", "p007", b"of " + TEXT)])
        store.commit([Put("zone", "k", b"1")])
    return path


def test_an_archive_is_read_to_its_last_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "onyx-B1-1.msgpack.zst"
    whole = file_of([message(number) for number in range(30)])
    path.write_bytes(whole)
    assert main(["store", "verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: whole, 1 files, 30 good messages\n"
    path.write_bytes(whole[:9] + b"X" + whole[10:])
    assert main(["store", "verify", str(tmp_path)]) == 74
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{tmp_path}: NOT whole, 1 files, 20 good messages"
    assert said[1] == f"  {path.name}: 10 messages at byte 0 are damaged"
    assert main(["store", "verify", str(path), "--json"]) == 74
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "archive": str(path),
        "whole": False,
        "files": 1,
        "messages": 20,
        "damaged": [f"{path.name}: 10 messages at byte 0 are damaged"],
    }


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(b"of " + TEXT)] ^= 1
    path.write_bytes(data)


def rows(path: Path) -> list[tuple[str, str, bytes]]:
    with Store(path) as store:
        return list(store.rows())


def test_a_good_store_is_whole(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert main(["store", "verify", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said == f"{path}: whole, at commit 3, 401 good rows in 2 spaces\n"
    assert main(["store", "verify", str(path.parent), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == {"profile": 400, "zone": 1}
    assert (found["whole"], found["commit"], found["lost"]) == (True, 3, "")
    assert main(["store", "repair", str(path.parent)]) == 0
    assert "nothing to repair" in capsys.readouterr().out
    for name, content in files.items():
        assert name == "lock" or (path.parent / name).read_bytes() == content


def test_a_store_in_use_is_verified_and_copied(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.sqlite"
    with Store(path) as store:
        store.commit([Put("zone", "l", b"2")])
        assert main(["store", "verify", str(path)]) == 0
        assert "whole, at commit 4, 402 good rows" in capsys.readouterr().out
        assert main(["store", "backup", str(path.parent), str(copy)]) == 0
        store.commit([Put("zone", "m", b"3")])
    assert f"{copy} is {path} at commit 4" in capsys.readouterr().out
    assert sorted(file.name for file in tmp_path.glob("copy*")) == [
        *("copy.sqlite", "copy.sqlite-head")
    ]
    assert main(["store", "verify", str(copy)]) == 0
    assert main(["store", "backup", str(path.parent), str(copy)]) == 74
    assert "is there already" in capsys.readouterr().err
    # As the help says.
    for file in path.parent.glob("store.sqlite*"):
        file.unlink()
    shutil.copy(copy, path)
    shutil.copy(head_file(copy), head_file(path))
    assert [key for space, key, _ in rows(path) if space == "zone"] == ["k", "l"]


def test_damaged_rows_are_named_and_set_aside(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(path)
    damaged = path.read_bytes()
    assert main(["store", "verify", str(path)]) == 74
    said = capsys.readouterr().out
    assert f"{path}: NOT whole, at commit 3, 400 good rows in 2 spaces\n" in said
    assert "row 'p007' of space 'profile' is damaged" in said
    with pytest.raises(StoreError, match="row 'p007'"):
        rows(path)
    assert main(["store", "backup", str(path), str(path.with_name("copy"))]) == 74
    assert "is not whole, and was removed" in capsys.readouterr().err
    assert main(["store", "repair", str(path.parent)]) == 0
    assert "made anew of 400 good rows" in capsys.readouterr().out
    kept = rows(path)
    assert len(kept) == 400 and "p007" not in {key for _, key, _ in kept}
    (line,) = path.with_name("damaged.jsonl").read_text(encoding="utf-8").splitlines()
    aside = json.loads(line)
    assert (aside["space"], aside["key"]) == ("profile", "p007")
    assert base64.b64decode(aside["value"])[1:] == (b"of " + TEXT)[1:]
    assert path.with_name("damaged.sqlite").read_bytes() == damaged
    assert main(["store", "verify", str(path)]) == 0


def test_a_page_that_cannot_be_read_costs_what_is_in_it(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = path.read_bytes()
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    place = next(at for at, page in enumerate(pages) if b"p100" in page)
    pages[place] = bytes(4096)
    path.write_bytes(b"".join(pages))
    assert main(["store", "verify", str(path), "--json"]) == 74
    found = json.loads(capsys.readouterr().out)
    lacks = found["missing"]["profile"]
    assert 0 < lacks < 400 and found["rows"]["profile"] == 400 - lacks and found["faults"]
    assert main(["store", "repair", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"space 'profile' lacks {lacks} rows" in said
    kept = {key for space, key, _ in rows(path) if space == "profile"}
    assert len(kept) == 400 - lacks
    assert {"p000", "p399"} <= kept and "p100" not in kept


def test_a_lost_store_goes_on_only_if_that_is_said(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = path.read_bytes()
    with Store(path) as store:
        store.commit([Put("zone", "l", b"2")])
    path.write_bytes(older)
    assert main(["store", "verify", str(path)]) == 74
    assert "store-lost" in capsys.readouterr().out
    assert main(["store", "repair", str(path)]) == 74
    assert "at commit 3, and was at commit 4" in capsys.readouterr().err
    assert main(["store", "repair", str(path), "--accept-loss"]) == 0
    assert len(rows(path)) == 401
    assert read_head(head_file(path))[0].number == 5, "no number is used again"


@pytest.mark.parametrize("left", [None, b""])
def test_of_a_store_that_is_gone_an_empty_one_is_made_only_if_that_is_said(
    left: bytes | None, path: Path
) -> None:
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    assert main(["store", "verify", str(path.parent)]) == 74
    assert main(["store", "repair", str(path.parent)]) == 74
    with pytest.raises(StoreLost):
        Store(path)
    assert main(["store", "repair", str(path.parent), "--accept-loss"]) == 0
    assert rows(path) == []


def test_a_damaged_head_is_given_up_only_if_that_is_said(path: Path) -> None:
    head_file(path).write_bytes(b"nothing")
    assert main(["store", "verify", str(path)]) == 74
    assert main(["store", "repair", str(path)]) == 74
    assert main(["store", "repair", str(path), "--accept-loss"]) == 0
    assert len(rows(path)) == 401


def test_a_repair_that_is_cut_off_leaves_what_does_not_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(path)

    def cut_off(*_: object) -> None:
        raise OSError("killed")

    monkeypatch.setattr("overlay.link.store_repair.write_head", cut_off)
    assert main(["store", "repair", str(path)]) == 74
    with pytest.raises(StoreLost):
        Store(path)


def test_who_is_running_is_not_repaired(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DataDirectory(tmp_path).node_locked("B2"):
        assert main(["store", "repair", str(path.parent)]) == 75
    assert "is in use by process" in capsys.readouterr().err


def test_what_is_no_store_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "verify", str(tmp_path / "nothing")]) == 66
    assert "there is no store" in capsys.readouterr().err
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE rows (x)")
    connection.close()
    assert main(["store", "verify", str(other)]) == 74
    assert "not a store of this program" in capsys.readouterr().out


def test_what_is_no_data_directory_has_no_catalog(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "rebuild", str(tmp_path)]) == 66
    assert f"there is no {tmp_path / 'topology.toml'}" in capsys.readouterr().err


def test_a_store_is_told_to_be_rebuilt_with_what_no_broker_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = DataDirectory(tmp_path).write_topology(small_topology(tmp_path, 2, port=1))
    path = DataDirectory(tmp_path).store_file("registration")
    path.parent.mkdir(parents=True)
    with Store(path) as store:
        store.commit([Put("profile", "p1", TEXT), Put("key", "p1", b"k"), Put("outbox", "b", b"")])
    rebuild = ["store", "rebuild", str(tmp_path), "--timeout", "0", "--lost", "B2", "--json"]
    assert main(rebuild) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"done": False, "former": str(path.with_name("earlier.sqlite")), "said": ""}
    assert rows(path) == [("key", "p1", b"k"), marked(["B2"])]
    assert len(rows(path.with_name("earlier.sqlite"))) == 3
    path.unlink()  # as a disk loses it, but for its head
    rebuild[2:3] = [str(file), "--data", str(tmp_path)]
    assert main(rebuild) == 0
    assert rows(path) == [marked(["B2"])]
