"""Backup of a network: all of its data directory that must survive, in one file.

::

    NAME.tar.zst        for its owner only: it holds the keys of the network
    ├── topology.toml   the network as it ran
    ├── identity/...    who is who
    ├── nodes/ID/store.sqlite, store.sqlite-head     all of one moment (store_moment.py)
    ├── metadata/NAME/rows.onyx, rows.onyx-head      the same, of a provider
    └── manifest.json   the digest of each of the files above, the commit of each store

Unpacked, it is a data directory.  The manifest comes last, so a file that is cut short has none.
Archives of messages and what belongs to processes that run (locks, marks of work) are not in it.
"""

from __future__ import annotations

import io
import re
import sqlite3
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

import msgspec
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from onyx.data_directory import ROWS_FILE, STORE_FILE, TOPOLOGY_FILE, DataDirectory
from onyx.errors import (
    DataDirectoryError,
    StoreUnusable,
    UnreadableInput,
    UnwritableOutput,
    file_errors,
)
from onyx.release import version
from overlay.link.errors import StoreError
from overlay.link.store_head import head_file, sync_directory, sync_file
from overlay.link.store_inspection import inspect
from overlay.link.store_moment import one_moment
from overlay.link.store_repair import backup
from overlay.stores import SQLITE
from overlay.topology import load_topology

FORMAT = 1
MANIFEST = "manifest.json"
ENDING = ".tar.zst"
BLOCK_BYTES = 1 << 20
MANIFEST_BYTES_MAX = 64 << 20
_MEMBER = re.compile(
    rf"{re.escape(TOPOLOGY_FILE)}|identity/[^/\0]+|(nodes/[\w.-]+/{re.escape(STORE_FILE)}|"
    rf"metadata/[\w.-]+/{re.escape(ROWS_FILE)})(-head)?"
)


class BackedUpFile(msgspec.Struct, frozen=True):
    """``commit``: of a store."""

    name: str
    sha256: str
    commit: int | None = None


class Manifest(msgspec.Struct, frozen=True):
    """``when``: the moment, RFC 3339."""

    format: int
    release: str
    network: str
    when: str
    files: list[BackedUpFile]

    @property
    def stores(self) -> dict[str, BackedUpFile]:
        """By node, or "metadata/NAME"."""
        stores = [file for file in self.files if file.commit is not None]
        return {file.name.removeprefix("nodes/").rpartition("/")[0]: file for file in stores}


def described(manifest: Manifest) -> dict[str, object]:
    """For ``--json``."""
    return {
        "network": manifest.network,
        "when": manifest.when,
        "release": manifest.release,
        "stores": [
            {"node": node_id, "commit": file.commit, "sha256": file.sha256}
            for node_id, file in manifest.stores.items()
        ],
    }


class Made(NamedTuple):
    """A backup; commits of all stores waited for ``held_seconds``."""

    path: Path
    manifest: Manifest
    held_seconds: float


def back_up(directory: DataDirectory, target: Path) -> Made:
    """Copy a network, running or not, to a file, or into a directory under a name with the time.

    DataDirectoryError when not all of it is in files of this machine, StoreUnusable when a store
    is not whole, UnwritableOutput."""
    topology = load_topology(directory.topology_file)
    places = {
        node.id: (directory.store_file(node.id), node.store)
        for node in (*topology.registration, *topology.brokers)
    }
    for each in topology.metadata:
        rows = directory.provider_directory(each.name) / ROWS_FILE
        places[f"metadata/{each.name}"] = rows, each.store
    elsewhere = [name for name, (_, store) in places.items() if store != SQLITE]
    if elsewhere:
        raise DataDirectoryError(
            f"the rows of {', '.join(elsewhere)} are in a PostgreSQL server: copy its database "
            f"with pg_dump, and {directory.identity} and {directory.topology_file} as they are"
        )
    stores = {name: file for name, (file, _) in places.items()}
    _check_here(directory, stores)
    if target.is_dir():
        target /= f"{topology.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{ENDING}"
    if target.exists():
        raise UnwritableOutput(f"{target} is there already; give another name")
    with (
        _errors(target),
        TemporaryDirectory(prefix=f".{target.name[:64]}.", dir=target.parent) as work,
        one_moment(list(stores.values())) as moment,
    ):
        when = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        part = Path(work) / "part"
        with _written(part) as archive:
            archive.add(TOPOLOGY_FILE, directory.topology_file)
            for file in sorted(directory.identity.glob("[!.]*")):
                archive.add(f"identity/{file.name}", file)
            for store, reader in zip(stores.values(), moment.connections, strict=True):
                copy = Path(work) / STORE_FILE
                chain = backup(store, copy, reader)
                name = store.relative_to(directory.path)
                archive.add(str(name), copy, chain.number)
                archive.add(str(head_file(name)), head_file(copy))
                copy.unlink()
                head_file(copy).unlink()
            manifest = Manifest(FORMAT, version(), topology.name, when, archive.files)
            archive.finish(manifest)
        check(part)
        part.rename(target)
        sync_directory(target.parent)
    return Made(target, manifest, moment.held_seconds)


def check(file: Path) -> Manifest:
    """Read all of a backup and hold it against its manifest; StoreUnusable when it is damaged."""
    return _unpack(file, None)


def restore(file: Path, directory: Path) -> Manifest:
    """Make a data directory, which must not be there or be empty, of a backup.

    StoreUnusable when that or a store in it is damaged, and nothing is left behind;
    UnreadableInput, UnwritableOutput."""
    if not file.is_file():
        raise UnreadableInput(f"there is no backup {file}")
    is_made = not directory.exists()
    with _errors(directory):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UnwritableOutput(f"{directory} is not empty; give a directory that is not there")
        try:
            with TemporaryDirectory(prefix=".restore.", dir=directory) as work:
                manifest = _unpack(file, Path(work))
                _check_stores(file, Path(work), manifest)
                # The topology last: without it nobody takes this for a network.
                for name in ("identity", "nodes", "metadata", TOPOLOGY_FILE):
                    if (Path(work) / name).exists():
                        (Path(work) / name).rename(directory / name)
                sync_directory(directory)
        except BaseException:
            if is_made:
                directory.rmdir()
            raise
    return manifest


class _Archive:
    """A backup that is being written; ``files`` are in it."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.files: list[BackedUpFile] = []
        self._tar = tar

    def add(self, name: str, path: Path, commit: int | None = None) -> None:
        with path.open("rb") as stream:
            summed = _Summed(stream)
            self._tar.addfile(self._tar.gettarinfo(arcname=name, fileobj=stream), summed)
        self.files.append(BackedUpFile(name, summed.sum.hexdigest(), commit))

    def finish(self, manifest: Manifest) -> None:
        data = msgspec.json.format(msgspec.json.encode(manifest))
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(data), 0o600
        self._tar.addfile(info, io.BytesIO(data))


class _Summed(io.RawIOBase):
    """A stream whose digest is taken as it is read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.sum = sha256()
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.sum.update(data)
        return data


@contextmanager
def _written(path: Path) -> Iterator[_Archive]:
    """A new file of mode 0600, on the disk in the end."""
    path.touch(mode=0o600, exist_ok=False)
    with (
        path.open("wb") as stream,
        ZstdCompressor(write_checksum=True).stream_writer(stream) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield _Archive(tar)
    sync_file(path)


def _unpack(file: Path, into: Path | None) -> Manifest:
    """Read a backup, and write what is in it, if somewhere."""
    sums: dict[str, str] = {}
    manifest: Manifest | None = None
    place = "its beginning"
    try:
        with (
            file.open("rb") as stream,
            ZstdDecompressor().stream_reader(stream) as plain,
            tarfile.open(fileobj=plain, mode="r|") as tar,
        ):
            for member in tar:
                place = member.name
                content = tar.extractfile(member) if member.isreg() else None
                is_known = place == MANIFEST or (
                    _MEMBER.fullmatch(place) and ".." not in place.split("/")
                )
                if content is None or manifest is not None or place in sums or not is_known:
                    said = f"{place!r} is nothing that a backup has there"
                    raise StoreUnusable(f"{file} is damaged, or no backup: {said}")
                if place == MANIFEST:
                    manifest = _decoded(content.read(MANIFEST_BYTES_MAX))
                else:
                    sums[place] = _taken(content, member, into)
            while plain.read(BLOCK_BYTES):  # what looked like the end of the tar may be a damage
                pass
    except (tarfile.TarError, ZstdError, EOFError, msgspec.MsgspecError) as error:
        raise StoreUnusable(f"{file} is damaged at {place}: {error}") from None
    if manifest is None:
        raise StoreUnusable(f"{file} is cut short after {place}: its {MANIFEST} is missing")
    expected = {each.name: each.sha256 for each in manifest.files}
    for name in sorted(expected.keys() | sums.keys()):
        if expected.get(name) != sums.get(name):
            raise StoreUnusable(f"{file} is damaged: {name} is not what was written")
    return manifest


def _decoded(data: bytes) -> Manifest:
    said = msgspec.json.decode(data, type=dict[str, object]).get("format")
    if said != FORMAT:
        raise StoreUnusable(f"the backup has format {said}; this program reads format {FORMAT}")
    return msgspec.json.decode(data, type=Manifest)


def _taken(content: IO[bytes], member: tarfile.TarInfo, into: Path | None) -> str:
    """The digest of a member, which is written; what is written is on the disk."""
    summed = _Summed(content)
    if into is None:
        while summed.read(BLOCK_BYTES):
            pass
    else:
        path = into / member.name
        for parent in reversed(path.relative_to(into).parents[:-1]):
            (into / parent).mkdir(mode=0o700, exist_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        with path.open("wb") as stream:
            while data := summed.read(BLOCK_BYTES):
                stream.write(data)
        path.chmod(member.mode & 0o644)
        sync_file(path)
    return summed.sum.hexdigest()


def _check_here(directory: DataDirectory, stores: Mapping[str, Path]) -> None:
    missing = [name for name, store in stores.items() if not store.exists()]
    if missing:
        raise DataDirectoryError(
            f"{directory.path} has no store of {', '.join(missing)}: that runs on another machine, "
            "or has not begun. A network is copied where all of its processes are; one store is "
            "copied by onyx store backup"
        )


def _check_stores(file: Path, work: Path, manifest: Manifest) -> None:
    for node_id, stored in manifest.stores.items():
        found = inspect(work / stored.name)
        if not found.is_whole or found.chain is None or found.chain.number != stored.commit:
            faults = found.lost or ", ".join(found.faults) or "rows are damaged or missing"
            raise StoreUnusable(f"{file}: the store of {node_id} is not whole: {faults}")


@contextmanager
def _errors(place: Path) -> Iterator[None]:
    try:
        with file_errors(place):
            yield
    except (StoreError, sqlite3.Error) as error:
        raise StoreUnusable(str(error)) from None
