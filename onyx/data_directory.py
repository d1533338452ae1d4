"""DataDirectory: where a network keeps on disk what must survive.

::

    ~/.local/state/onyx/figure4/
    ├── topology.toml        the network as it runs: every address, written at each start
    ├── lock                 held by the launcher
    ├── up.log               of onyx up on a terminal: all that its processes log
    ├── identity/            who is who (onyx/identity/authority.py)
    ├── metadata/mdv/        of a provider of metadata (onyx/metadata/provider.py)
    └── nodes/
        ├── B1/
        │   ├── lock         held by the broker process
        │   ├── work, fault  what it is at, and how it died (onyx/node_process.py)
        │   ├── store.sqlite everything that B1 must not forget
        │   └── store.sqlite-head  up to which commit that was (overlay/link/store_head.py)
        └── registration/ ...

Invariants: a lock is held as long as its process lives and is gone with it, however it ends; the
lock file itself stays.  ``topology.toml`` is replaced as a whole or not at all.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from onyx.errors import DataDirectoryError, DataDirectoryInUse, file_errors
from overlay.link.store_head import sync_directory
from overlay.topology import Topology, TopologyError, load_topology, to_toml

TOPOLOGY_FILE = "topology.toml"
LOG_FILE = "up.log"
STORE_FILE = "store.sqlite"
ROWS_FILE = "rows.onyx"  # of a provider of metadata


class DataDirectory:
    """The directory of one network; nothing is made before it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def topology_file(self) -> Path:
        return self.path / TOPOLOGY_FILE

    @property
    def identity(self) -> Path:
        return self.path / "identity"

    def node_directory(self, node_id: str) -> Path:
        return self.path / "nodes" / node_id

    def store_file(self, node_id: str) -> Path:
        return self.node_directory(node_id) / STORE_FILE

    def provider_directory(self, name: str) -> Path:
        """Of a provider of metadata."""
        return self.path / "metadata" / name

    def set_aside(self, node_id: str) -> Path | None:
        """Give a broker that joins an empty store: one of an earlier time gets another name, which
        is returned, and takes the place of one that had it."""
        store = self.store_file(node_id)
        aside = store.with_name("earlier.sqlite")
        endings = ("", "-wal", "-shm", "-head")
        if not any(Path(f"{store}{ending}").exists() for ending in endings):
            return None
        for ending in endings:
            part, other = Path(f"{store}{ending}"), Path(f"{aside}{ending}")
            other.unlink(missing_ok=True)
            if part.exists():
                part.rename(other)
        return aside if aside.exists() else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the network as a whole; DataDirectoryInUse when another launcher does."""
        with directory_locked(self.path):
            yield

    @contextmanager
    def node_locked(self, node_id: str) -> Iterator[None]:
        """Hold what belongs to one node; DataDirectoryInUse when its process is running."""
        with directory_locked(self.node_directory(node_id)):
            yield

    def check_shape(self, topology: Topology) -> None:
        """DataDirectoryError when the rows in here were written by another network.

        What brokers have told each other holds on the broadcast trees of one shape; addresses,
        labels, capacities and limits may change between two starts.
        """
        if not self.topology_file.exists():
            return
        try:
            earlier = load_topology(self.topology_file)
        except TopologyError as error:
            raise DataDirectoryError(f"{error}; remove {self.path} to start anew") from None
        if _shape(earlier) != _shape(topology):
            raise DataDirectoryError(
                f"{self.path} holds the data of a network of another shape (brokers or links "
                f"differ from {self.topology_file}, which it can be started from); give another "
                "--data, remove it to start anew, or change the running network with onyx topology "
                "apply"
            )

    def write_topology(self, topology: Topology) -> Path:
        """Put the network as it runs on disk; returns the file, which may move with all else."""
        movable = replace(topology, data_directory=Path())
        write_atomically(self.topology_file, to_toml(movable).encode())
        return self.topology_file


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a whole file, durably: others see all of it or nothing.  UnwritableOutput."""
    with file_errors(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.chmod(mode)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


@contextmanager
def directory_locked(directory: Path) -> Iterator[None]:
    """Hold a directory; DataDirectoryInUse when a process has it."""
    with file_errors(directory):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            raise DataDirectoryInUse(
                f"{directory} is in use by process {holder or '?'}; stop that first, "
                "or give another --data"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def holder_of(directory: Path) -> int | None:
    """The process on this machine that holds a directory; None: none, or it cannot be told.  The
    lock is not touched."""
    lock = directory / "lock"
    with suppress(OSError, ValueError):
        pid, inode = int(lock.read_text()), lock.stat().st_ino
        held = Path("/proc/locks").read_text().splitlines()
        if any(f" {pid} " in line and f":{inode} " in line for line in held):
            return pid
    return None


def _shape(topology: Topology) -> object:
    """What the broadcast trees depend on."""
    return (
        {node.id for node in topology.registration},
        set(topology.broker_ids),
        {(frozenset(link.ends), round(link.latency_ms * 1000)) for link in topology.links},
    )
