"""DoctorFacts: what the doctor asks the processes of a network, and why one does not answer."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import trio

from formats.errors import FormatError
from formats.schema import read_schema, what_is_unread
from onyx.data_directory import DataDirectory, holder_of
from onyx.doctor import WHERE, Facts, Process, Silence, silence
from onyx.errors import RequestFailed, UserError
from onyx.identity.known_networks import credentials_for, identity_of
from onyx.machine_checks import Machine, examine_machine
from onyx.network_looks import ask_brokers, whole
from onyx.network_view import read_statistics
from onyx.registration_client import NetworkClient, RegistrationClient, addresses_of
from onyx.release import version
from overlay import verbs
from overlay.link.validity import AUTHORITY, TOLD_DAYS
from overlay.statistics import BrokerStatistics, NodeStatistics, RegistrationStatistics
from overlay.topology import Topology

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
