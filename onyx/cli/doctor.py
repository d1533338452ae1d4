"""``onyx doctor``: what is wrong with a network, and what to do about it."""

from __future__ import annotations

import argparse
import errno
import json
import os
import platform
import re
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import trio
from msgspec import to_builtins

from formats.errors import FormatError
from formats.schema import read_schema, what_is_unread
from onyx.cli.asking import ask_brokers
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import counted, print_json, say
from onyx.cli.verb import Subparsers, add_verb
from onyx.data_directory import DataDirectory
from onyx.doctor import CHECKS, DoctorFinding, Facts, Machine, Process, examine
from onyx.errors import EXIT_OK, UsageError, UserError, file_errors
from onyx.identity.known_networks import credentials_for, identity_of
from onyx.listening import processes_of
from onyx.network_looks import whole
from onyx.network_view import read_statistics
from onyx.registration_client import NetworkClient, RegistrationClient, addresses_of
from onyx.release import version
from overlay import verbs
from overlay.link.errors import StoreError
from overlay.link.open_files import allow_connections
from overlay.link.store_inspection import inspect
from overlay.link.validity import AUTHORITY, TOLD_DAYS
from overlay.statistics import NodeStatistics, RegistrationStatistics
from overlay.stores import SQLITE
from overlay.topology import Topology, TopologyError, load_topology, to_toml

# -------------------------------------------------------------------------------------------------
# What onyx doctor looks at: the processes of a network, and what of it is on this machine.


FSYNC_BYTES = 4096
FSYNCS = 5
ANSWER_SECONDS = 5.0
SCHEMAS_MAX = 256  # sources whose schemas are looked at


async def gather(where: str, topology: Topology | None, unreachable: str = "") -> Facts:
    """All that can be had; of a network that does not answer, or that is ``unreachable``, why."""
    facts = Facts(version(), unreachable, time.time())
    if not unreachable:
        facts.certificates = certificates_of(where)
        await _ask_network(where, facts)
    if topology is not None:
        facts.machine = await trio.to_thread.run_sync(machine_of, topology, facts)
    return facts


async def _ask_network(where: str, facts: Facts) -> None:
    try:
        async with RegistrationClient(where) as registration:
            brokers = await registration.brokers()
            own = await _asked(registration)
            told = own.read()
            said = told if isinstance(told, RegistrationStatistics) else RegistrationStatistics()
            facts.processes[said.registration or "registration service"] = own
            down = said.processes.down
            why: dict[str, str] = {}
            heard = await ask_brokers(brokers, _asked, down, ANSWER_SECONDS, UserError, why)
            for broker, process in heard.items():
                said_of = down.get(broker, ""), 0.0, why.get(broker, "")
                silent = Process(brokers[broker], None, *said_of)
                facts.processes[broker] = process or silent
            facts.schemas = await _unread_schemas(registration)
    except UserError as error:
        facts.unreachable = str(error)


def certificates_of(where: str) -> dict[str, float]:
    """When certificates end: the one that is shown at an address, and, of each principal, the last
    that the authority has issued, where this account has started the network."""
    found: dict[str, float] = {}
    (host, port), *_ = addresses_of(where)
    with suppress(UserError):
        if (shown := credentials_for(host, port)) is not None:
            whose = {"own": f"your certificate, of {shown.principal}", "authority": AUTHORITY}
            found = {whose[of]: until for of, until in shown.ends().items()}
    with suppress(UserError):
        if (directory := identity_of(host, port)) is not None:
            # It takes long to load.
            from onyx.identity.authority import Authority  # noqa: PLC0415

            for one in Authority(directory).issued():
                if not one.revoked and one.days_left() > -TOLD_DAYS:  # else it is of the past
                    found[f"the certificate of {one.principal}"] = one.until.timestamp()
    return found


async def _asked(client: NetworkClient) -> Process:
    """What a process says of itself; its clock was read between question and answer."""
    before = time.time()
    said = await client.ask(verbs.Statistics())
    after = time.time()
    statistics = await whole(client, said)
    told = read_statistics(statistics)
    there = told.node.time if isinstance(told, NodeStatistics) else None
    skew = 0.0
    if there is not None:
        skew = there - after if there > after else min(0.0, there - before)
    return Process(client.at, statistics, skew_s=skew)


async def _unread_schemas(registration: RegistrationClient) -> dict[str, str]:
    found = {}
    sources = [source for source in await registration.sources() if source.schema_name]
    for source in sources[:SCHEMAS_MAX]:
        said = await registration.ask(verbs.SourceSchema(source=source.id))
        if why := await trio.to_thread.run_sync(why_unread, said.name, said.schema):
            found[source.id] = why
    return found


def why_unread(name: str, data: bytes) -> str:
    """What of a schema is not read; "" where all is."""
    try:
        unread = what_is_unread(read_schema(name, data))
    except FormatError as error:
        return f"{name}: {error}"
    more = f", and {len(unread) - 1} more" if len(unread) > 1 else ""
    return f"{unread[0]}{more}" if unread else ""


# --- this machine -------------------------------------------------------------------------


def machine_of(topology: Topology, facts: Facts) -> Machine:
    """``facts``: which processes answer, as what listens at their addresses is theirs."""
    directory = DataDirectory(topology.data_directory)
    machine = Machine(str(directory.path), reserve_bytes=topology.limits.disk_reserve_bytes)
    place = _existing(directory.path)
    try:
        machine.fsync_s = fsync_seconds(place)
        names = [process.name for process in processes_of(topology)]
        folders = [place, *(_existing(directory.node_directory(name)) for name in names)]
        disks = {folder.stat().st_dev: folder for folder in reversed(folders)}
        for folder in disks.values():
            disk = os.statvfs(folder)
            machine.free_bytes[str(folder)] = disk.f_bavail * disk.f_frsize
    except OSError as error:
        machine.data_fault = f"{place} cannot be written: {error.strerror}"
    try:
        allow_connections(topology.limits, len(topology.brokers))
    except TopologyError as error:
        machine.files_fault = error.reason
    for process in processes_of(topology):
        known = facts.processes.get(process.node.id)
        if known is None or known.statistics is None:
            for address in (process.node.listen, process.node.links):
                if why := port_fault(address.host, address.port):
                    machine.ports[str(address)] = why
        store = directory.store_file(process.name)
        if process.node.store == SQLITE and store.exists() and (why := store_fault(store)):
            machine.stores[process.name] = why
    return machine


def _existing(path: Path) -> Path:
    """The directory, or where it would be made."""
    while not path.exists():
        path = path.parent
    return path


def fsync_seconds(directory: Path) -> float:
    """How long a small write takes until it is on the disk; the median.  OSError."""
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(FSYNCS):
            began = time.perf_counter()
            file.write(b"\0" * FSYNC_BYTES)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return sorted(times)[FSYNCS // 2]


def port_fault(host: str, port: int) -> str:
    """Why a process could not listen at an address of this machine; "" where it could, or where the
    address is another machine's."""
    if not port:
        return ""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return "something else listens there"
            if error.errno == errno.EACCES:
                return "this account may not listen there"
    return ""


def store_fault(store: Path) -> str:
    """What is wrong with a store, without reading all of it; "" where nothing is."""
    try:
        found = inspect(store, deep=False)
    except (StoreError, OSError) as error:
        return str(error)
    return found.lost or "; ".join(found.faults)


EXIT_FOUND = 1

DETAILS = f"""\
Looks at every process (does it answer, its release, its clock, what waits for neighbours
and users and for how long, links that come and go, messages that nobody wants, inputs
at which it has failed), at the ends of certificates (those of processes, of who is
connected, yours, and, where the authority is, all that it has issued), at the schemas of
sources, and, with --topology, at this machine:
the data directory, free disk, how long a write takes, open files, ports, stores.
Everything that is found comes with a remedy. Nothing is changed.

--bundle FILE writes a zip file for a bug report: what was found, what processes count, the
topology without passwords, versions. No message and no text of a profile is in it; ids of
profiles and users may be.

Exit code 1: something was found.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx doctor --topology topologies/figure4.toml
  onyx doctor --json
  onyx doctor --topology net.toml --bundle report.zip
"""

_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@/\s]*@")


def add_parser(subparsers: Subparsers) -> None:
    takes = {"--bundle FILE": "write a zip file for a report"}
    parser = add_verb(subparsers, "doctor", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_client_arguments(parser)


async def run(arguments: argparse.Namespace) -> int:
    topology = None if arguments.topology is None else _running(arguments.topology)
    where, why = "", ""
    try:
        where = registration_address(arguments)
    except UsageError as error:
        if topology is None:
            raise
        why = str(error)
    facts = await gather(where, topology, why)
    found = examine(facts)
    if arguments.bundle is not None:
        write_bundle(arguments.bundle, facts, found, topology)
    if arguments.json:
        for finding in found:
            print_json(to_builtins(finding))
    else:
        print(said(facts, found))
        if arguments.bundle is not None:
            say(f"wrote {arguments.bundle}")
    return EXIT_FOUND if found else EXIT_OK


def _running(file: Path) -> Topology:
    """The network as it runs, if it ever did; as the file says otherwise."""
    topology = load_topology(file)
    resolved = DataDirectory(topology.data_directory).topology_file
    return load_topology(resolved) if resolved.exists() else topology


def said(facts: Facts, found: Sequence[DoctorFinding]) -> str:
    """For people."""
    lines = []
    for finding in found:
        lines.append(f"{finding.severity.upper()}  {finding.about}: {finding.what}")
        lines.append(f"    {finding.remedy}")
    looked = counted(len(CHECKS), "check")
    here = "" if facts.machine is not None else "; say --topology FILE to look at this machine too"
    of = f"{looked} of {len(facts.processes)} processes"
    lines.append(f"{of}: {counted(len(found), 'finding')}{here}")
    return "\n".join(lines)


def write_bundle(
    path: Path, facts: Facts, found: Sequence[DoctorFinding], topology: Topology | None
) -> None:
    """UnwritableOutput."""
    about = {
        "release": facts.release,
        "python": sys.version,
        "platform": platform.platform(),
        "unreachable": facts.unreachable,
        "schemas": facts.schemas,
        "machine": None if facts.machine is None else asdict(facts.machine),
    }
    contents = {"about.json": about, "findings.json": to_builtins(found)}
    for node, process in facts.processes.items():
        contents[f"processes/{node}.json"] = asdict(process)
    with file_errors(path), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            file.writestr(name, json.dumps(content, indent=1, default=str))
        if topology is not None:
            file.writestr("topology.toml", _PASSWORD.sub(r"\1:***@", to_toml(topology)))
