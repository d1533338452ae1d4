"""What is wrong on this machine with a network: files, disks, ports and processes.

Each check yields findings and asks no process of the network, so all go on when none answers.
What of the network is on this machine is what its data directory has.
"""

from __future__ import annotations

import errno
import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from onyx.data_directory import DataDirectory, holder_of
from onyx.doctor import RENEW, DoctorFinding, problem
from onyx.errors import DataDirectoryError
from onyx.listening import NodeProcess, processes_of
from onyx.release import lacks
from overlay.link.credentials import Credentials, CredentialsError, CredentialsFile
from overlay.link.errors import StoreError
from overlay.link.open_files import allow_connections
from overlay.link.principal import NOBODY
from overlay.link.store_head import head_file
from overlay.link.store_inspection import inspect
from overlay.nodes import Address
from overlay.stores import SQLITE
from overlay.topology import Topology, TopologyError

AUTHORITY_FILE = "authority.pem"
FSYNC_SECONDS_MAX = 0.1
FSYNC_BYTES = 4096
FSYNCS = 5
SERVER_SECONDS = 5.0
SPARE_FILES = 1_000  # that a disk must have room for, beside bytes


@dataclass(frozen=True, slots=True)
class Machine:
    """``topology``: the network as it runs, or last ran; ``file``: as its operator has it now;
    ``answering``: the nodes that answer, which tell of their ports and certificates themselves."""

    topology: Topology
    file: Topology
    answering: Collection[str] = ()

    @property
    def directory(self) -> DataDirectory:
        return DataDirectory(self.topology.data_directory)

    def silent(self) -> Iterator[NodeProcess]:
        """Processes that do not answer, here or elsewhere."""
        for process in processes_of(self.topology):
            if process.node.id not in self.answering:
                yield process

    def folders(self) -> list[Path]:
        """The data directory, or where it would be made, and those of its processes."""
        names = [process.name for process in processes_of(self.topology)]
        found = [self.directory.path, *map(self.directory.node_directory, names)]
        return [*dict.fromkeys(map(_existing, found))]


Check = Callable[[Machine], Iterator[DoctorFinding]]


def examine_machine(machine: Machine) -> list[DoctorFinding]:
    found: dict[DoctorFinding, None] = {}
    for check in CHECKS:
        try:
            found |= dict.fromkeys(check(machine))
        except OSError as error:
            denied = problem(
                "data", str(error.filename), f"cannot be looked at: {error.strerror}",
                "run onyx doctor as the account that runs the network",
            )  # fmt: skip
            found[denied] = None
    return [*found]


def topologies(machine: Machine) -> Iterator[DoctorFinding]:
    """The file against the network as it runs."""
    file, runs, path = machine.file, machine.topology, str(machine.directory.topology_file)
    remedy = f"take {path}, which is the network as it runs; or onyx topology apply FILE"
    found = partial(problem, "topology", file.name, remedy=remedy)
    if file.name != runs.name:
        yield found(what=f"the network that runs from its data directory is {runs.name}")
        return
    try:
        machine.directory.check_shape(file)
    except DataDirectoryError as error:
        yield found(what=str(error))
        return
    running = {process.name: process.node for process in processes_of(runs)}
    for process in processes_of(file):
        there = running.get(process.name)
        if there is not None and process.node.listen.port not in (0, there.listen.port):
            said = f"{process.name} listens at {there.listen}, and by the file at "
            yield found(what=said + str(process.node.listen))


def directories(machine: Machine) -> Iterator[DoctorFinding]:
    first, *others = machine.folders()
    for folder in (first, *others):
        try:
            seconds = fsync_seconds(folder, FSYNCS if folder == first else 1)
        except OSError as error:
            yield problem(
                "data", str(folder), f"{folder} cannot be written: {error.strerror}",
                "give it to the account of the network (chown -R), or say another one: "
                "data_directory in the file, or onyx up --data DIR",
            )  # fmt: skip
            continue
        if folder == first and seconds > FSYNC_SECONDS_MAX:
            yield problem(
                "fsync", str(folder),
                f"a small write is on the disk after {seconds * 1e3:,.0f} ms, and each publisher "
                "waits for that",
                "put the data directory on a local disk with a cache that survives a power cut",
            )  # fmt: skip


def disks(machine: Machine) -> Iterator[DoctorFinding]:
    reserve = machine.topology.limits.disk_reserve_bytes
    for folder in {folder.stat().st_dev: folder for folder in reversed(machine.folders())}.values():
        disk = os.statvfs(folder)
        free = disk.f_bavail * disk.f_frsize
        if free < reserve:
            yield problem(
                "disk", str(folder),
                f"{free:,} bytes are free, less than the reserve of {reserve:,}: nothing is "
                "published",
                "make room on the disk, or lower disk_reserve_bytes",
            )  # fmt: skip
        elif disk.f_files and disk.f_favail < SPARE_FILES:
            yield problem(
                "disk", str(folder), f"its disk has room for {disk.f_favail:,} more files",
                "remove files that nobody needs, or put the data directory on another disk",
            )  # fmt: skip


def open_files(machine: Machine) -> Iterator[DoctorFinding]:
    try:
        allow_connections(machine.topology.limits, len(machine.topology.brokers))
    except TopologyError as error:
        yield problem(
            "descriptors", "this machine", error.reason,
            "raise it (ulimit -Hn, LimitNOFILE of systemd), or lower connections_max",
        )  # fmt: skip


def ports(machine: Machine) -> Iterator[DoctorFinding]:
    """A port of a process that runs here is its own, whether or not it answers."""
    gateway = machine.topology.gateway
    wanted: list[tuple[str, Address]] = []
    if gateway is not None and holder_of(machine.directory.path) is None:
        wanted.append(("the gateway", gateway.listen))
    for process in machine.silent():
        if holder_of(machine.directory.node_directory(process.name)) is None:
            addresses = process.node.listen, process.node.links, process.admin_address
            wanted += [(process.name, address) for address in addresses if address is not None]
    for name, address in wanted:
        if why := port_fault(address):
            yield problem(
                "port", str(address), f"{name} does not run, and {why}",
                f"stop what listens there (ss -ltnp 'sport = :{address.port}' names it), or give "
                "another port in the file",
            )  # fmt: skip


def port_fault(address: Address) -> str:
    """Why a process could not listen at an address of this machine; "" where it could, or where the
    address is another machine's."""
    if not address.port:
        return ""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return "something else listens there"
            if error.errno == errno.EACCES:
                return "this account may not listen there"
    return ""


def stores(machine: Machine) -> Iterator[DoctorFinding]:
    servers = set()
    for process in processes_of(machine.topology):
        if process.node.store != SQLITE:
            servers.add(process.node.store)
        elif why := file_fault(machine.directory.store_file(process.name)):
            yield problem(
                "store", process.name, why,
                "onyx store verify says more; put back what was there, or onyx store repair",
            )  # fmt: skip
    for server in servers:
        if why := server_fault(server):
            yield problem(
                "store", "PostgreSQL", why,
                "start the server, or look at its log, the way to it and the password",
            )  # fmt: skip


def file_fault(store: Path) -> str:
    """What is wrong with a store, without reading all of it; "" where nothing is, or there is
    none."""
    if not (store.exists() or head_file(store).exists()):
        return ""
    try:
        found = inspect(store, deep=False)
    except (StoreError, OSError) as error:
        return str(error)
    return found.lost or "; ".join(found.faults)


def server_fault(url: str) -> str:
    """Why a server of PostgreSQL cannot be used; "" where it can."""
    if why := lacks("postgres", psycopg="psycopg"):
        return why
    from overlay.link.postgres_store import connect  # noqa: PLC0415

    try:
        connect(url, "onyx", SERVER_SECONDS).close()
    except StoreError as error:
        return str(error)
    return ""


def credentials(machine: Machine) -> Iterator[DoctorFinding]:
    """Those of processes that do not answer: over, revoked, open, of another authority."""
    identity, authority = machine.directory.identity, ""
    with suppress(OSError, ValueError):
        authority = CredentialsFile.read(identity / AUTHORITY_FILE).certificates[-1]
    for process in machine.silent():
        node = process.node.id
        principal = machine.topology.principal(node)
        path = identity / f"{principal.role}.{node}.pem"
        if not path.exists():
            continue
        try:
            shown = Credentials(path, identity / "revoked")
        except CredentialsError as error:
            yield problem("certificate", str(path), str(error), RENEW)
            continue
        holder = shown.principal_of(shown.own)
        if holder != principal:
            why = holder.why if holder.role == NOBODY.role else f"the certificate of {holder}"
            yield problem("certificate", str(path), f"{node} shows {why}", RENEW)
        elif authority and authority not in shown.authorities:
            said = f"is of another authority than {identity / AUTHORITY_FILE}"
            yield problem("certificate", str(path), said, RENEW)
        elif shown.is_open:
            yield problem(
                "key", str(path), "every account of this machine can read it, and be it then",
                "chmod 600 on it; if others have accounts here: onyx cert revoke, and another one",
            )  # fmt: skip


def planning(machine: Machine) -> Iterator[DoctorFinding]:
    if machine.topology.planning.auto:
        why = lacks("spark", pyspark="PySpark")
        if not why:
            # It takes long to load.
            from registration.spark.session import SparkUnavailable, find_java  # noqa: PLC0415

            try:
                find_java(os.environ)
            except SparkUnavailable as error:
                why = str(error)
        if why:
            yield problem("planning", "auto = true", why, "install it, or auto = false")


def _existing(path: Path) -> Path:
    """The directory, or where it would be made."""
    while not path.exists():
        path = path.parent
    return path


def fsync_seconds(directory: Path, writes: int = FSYNCS) -> float:
    """How long a small write takes until it is on the disk; the median.  OSError."""
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(writes):
            began = time.perf_counter()
            file.write(b"\0" * FSYNC_BYTES)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return sorted(times)[writes // 2]


CHECKS: tuple[Check, ...] = (
    *(topologies, directories, disks, open_files, ports, stores, credentials, planning),
)
