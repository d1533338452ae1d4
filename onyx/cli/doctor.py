"""``onyx doctor``: what is wrong with a network, and what to do about it."""

from __future__ import annotations

import argparse
import json
import math
import platform
import re
import socket
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import trio
from msgspec import to_builtins

from formats.errors import FormatError
from formats.schema import read_schema, what_is_unread
from onyx import machine_checks
from onyx.cli.asking import ask_brokers
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import counted, print_json, say
from onyx.cli.verb import Subparsers, add_verb
from onyx.data_directory import DataDirectory, holder_of
from onyx.doctor import CHECKS, WHERE, DoctorFinding, Facts, Process, Silence, examine, silence
from onyx.errors import EXIT_OK, RequestFailed, UsageError, UserError, file_errors
from onyx.identity.known_networks import credentials_for, identity_of
from onyx.machine_checks import Machine, examine_machine
from onyx.network_looks import whole
from onyx.network_view import read_statistics
from onyx.registration_client import NetworkClient, RegistrationClient, addresses_of
from onyx.release import version
from overlay import verbs
from overlay.link.validity import AUTHORITY, TOLD_DAYS
from overlay.statistics import BrokerStatistics, NodeStatistics, RegistrationStatistics
from overlay.topology import Topology, TopologyError, load_topology, to_toml

# -------------------------------------------------------------------------------------------------
# What onyx doctor asks the processes of a network, and why one does not answer.


ANSWER_SECONDS = 5.0
LOOK_SECONDS = 3.0
SCHEMAS_MAX = 256  # sources whose schemas are looked at


async def gather(
    where: str, topology: Topology | None, unknown: str = "", file: Topology | None = None
) -> Facts:
    """All that can be had of a network, and of this machine with a ``topology``, the one that runs,
    of which the operator has a ``file``.  ``unknown``: why no address is known."""
    facts = Facts(version(), now=time.time())
    if unknown:
        facts.unreachable = Silence(unknown, WHERE)
    else:
        facts.certificates = certificates_of(where)
        await _ask_registration(where, topology, facts)
    if topology is not None:
        if facts.unreachable is not None and not facts.is_stranger:
            at = {broker.id: topology.where(broker.id) for broker in topology.brokers}
            await _ask_brokers(at, {}, facts, topology)
        answering = [node for node, process in facts.processes.items() if process.statistics]
        machine = Machine(topology, file or topology, answering)
        facts.machine = await trio.to_thread.run_sync(examine_machine, machine)
    return facts


async def _ask_registration(where: str, topology: Topology | None, facts: Facts) -> None:
    name = "registration service" if topology is None else topology.registration[0].id
    error: UserError | None = None
    with trio.move_on_after(ANSWER_SECONDS) as first:
        try:
            async with RegistrationClient(where) as registration:
                own = await _asked(registration)
                first.deadline = math.inf
                await _ask_network(registration, own, name, topology, facts)
        except UserError as failed:
            error = failed
    if error is not None or first.cancelled_caught:
        facts.unreachable = await why_silent(where, error, topology, name)
        facts.is_stranger = isinstance(error, RequestFailed) and error.code == "not-authorised"


async def _ask_network(
    registration: RegistrationClient,
    own: Process,
    name: str,
    topology: Topology | None,
    facts: Facts,
) -> None:
    told = own.read()
    if isinstance(told, BrokerStatistics):
        facts.unreachable = silence("role", own.address, f"the broker {told.broker}")
        return
    said = told if isinstance(told, RegistrationStatistics) else RegistrationStatistics()
    facts.processes[said.registration or name] = own
    brokers = await registration.brokers()
    if topology is not None:
        facts.other_brokers = sorted(brokers.keys() ^ set(topology.broker_ids))
    await _ask_brokers(brokers, said.processes.down, facts, topology)
    facts.schemas = await _unread_schemas(registration)


async def _ask_brokers(
    brokers: Mapping[str, str], down: Mapping[str, str], facts: Facts, topology: Topology | None
) -> None:
    facts.processes |= {broker: Process(at) for broker, at in brokers.items()}  # in this order
    errors: dict[str, UserError] = {}
    heard = await ask_brokers(brokers, _asked, down, ANSWER_SECONDS, UserError, errors)

    async def note(broker: str, process: Process | None) -> None:
        at = brokers[broker]
        told = None if process is None else process.read()
        if isinstance(told, NodeStatistics) and (name := _name(told)) != broker:
            process = Process(at, why=silence("role", at, f"not {broker}, but {name}"))
        elif process is None and broker in down:
            process = Process(at, down=down[broker])
        elif process is None:
            why = await why_silent(at, errors.get(broker), topology, broker)
            process = Process(at, why=why)
        facts.processes[broker] = process

    async with trio.open_nursery() as nursery:  # each may take as long as the system tries
        for broker, process in heard.items():
            nursery.start_soon(note, broker, process)


def _name(told: NodeStatistics) -> str:
    return str(getattr(told, "broker", "") or getattr(told, "registration", "another process"))


async def why_silent(
    where: str, error: UserError | None, topology: Topology | None, node: str
) -> Silence:
    """Why a process does not answer, by the ``error`` of who has asked it, if there was one in
    time, by its address, and, where it is on this machine, by itself."""
    if isinstance(error, RequestFailed):
        return silence(_refusal(error), where, error.reason.partition("\n")[0])
    if error is not None and "certificate" in str(error):
        return silence("certificate", where, str(error))
    here = None if topology is None else DataDirectory(topology.data_directory)
    pid = None if here is None else holder_of(here.node_directory(node))
    for at in addresses_of(where):
        kind, said = await trio.to_thread.run_sync(look, *at)
        if kind != "gone":
            break
    if pid is not None and kind in ("gone", "mute"):
        kind = "stopped" if is_stopped(pid) else {"gone": "deaf", "mute": "hung"}[kind]
    return silence(kind, str(at), said, pid)


def _refusal(error: RequestFailed) -> str:
    """Its kind among SILENCES."""
    kinds = {"disk-full": "disk-full", "not-authorised": "not-allowed"}
    if error.code != "not-authenticated":
        return kinds.get(error.code, "refused")
    if "credentials" in error.reason:
        return "no-credentials"
    timely = "revoked" not in error.reason and "expired" not in error.reason
    return "authority" if timely else "certificate"


def look(host: str, port: int) -> tuple[str, str]:
    """Who is at an address that has not answered as a process of the network does: a kind among
    SILENCES, and the system's words."""
    kind = "far"
    try:
        with socket.create_connection((host, port), LOOK_SECONDS) as there:
            kind = "mute"
            there.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return "other", ": a web server" if there.recv(5) == b"HTTP/" else ""
    except ConnectionRefusedError:
        return "gone", ""
    except socket.gaierror:
        return "unknown", ""
    except ConnectionError:
        return "other", ""
    except OSError as error:
        return kind, error.strerror or "nothing comes back"


def is_stopped(pid: int) -> bool:
    """By a signal, or a debugger."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False


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


EXIT_FOUND = 1

DETAILS = f"""\
Looks at every process (does it answer, its release, its clock, what waits for neighbours
and users and for how long, links that come and go, messages that nobody wants, inputs
at which it has failed), at the ends of certificates (those of processes, of who is
connected, yours, and, where the authority is, all that it has issued), at the schemas of
sources, and at this machine, with --topology or where this account has started the network:
the topology file, the data directory, free disk, how long a write takes, open files, ports,
stores, certificates and keys, Java. Of a process that does not answer it says whether it is
gone, hangs, is stopped, is another one, or refuses. All but the schemas goes on without the
registration service. Everything that is found comes with a remedy. Nothing is changed.

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
    file = None if arguments.topology is None else load_topology(arguments.topology)
    where, unknown = "", ""
    try:
        where = registration_address(arguments)
    except UsageError as error:
        if file is None:
            raise
        unknown = str(error)
    topology = _running(where, file)
    facts = await gather(where, topology, unknown, file)
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


def _running(where: str, file: Topology | None) -> Topology | None:
    """The network as it runs, if it ever did; as the file says otherwise.  None: nobody knows what
    of it is on this machine."""
    if file is not None:
        directory = DataDirectory(file.data_directory)
    elif (identity := identity_of(*addresses_of(where)[0])) is not None:
        directory = DataDirectory(identity.parent)
    else:
        return None
    resolved = directory.topology_file
    with suppress(UserError, TopologyError):
        return load_topology(resolved) if resolved.exists() else file
    return file


def said(facts: Facts, found: Sequence[DoctorFinding]) -> str:
    """For people."""
    lines = []
    for finding in found:
        lines.append(f"{finding.severity.upper()}  {finding.about}: {finding.what}")
        lines.append(f"    {finding.remedy}")
    checks = CHECKS if facts.machine is None else (*CHECKS, *machine_checks.CHECKS)
    looked = counted(len(checks), "check")
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
    }
    contents = {"about.json": about, "findings.json": to_builtins(found)}
    for node, process in facts.processes.items():
        contents[f"processes/{node}.json"] = asdict(process)
    with file_errors(path), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            file.writestr(name, json.dumps(content, indent=1, default=str))
        if topology is not None:
            file.writestr("topology.toml", _PASSWORD.sub(r"\1:***@", to_toml(topology)))
