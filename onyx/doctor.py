"""Doctor: what is wrong with a network, and what to do about it, by facts that were gathered.

Each check looks at the facts and names what it finds; none asks anybody anything (they are
gathered by onyx/cli/doctor.py).  What cannot be known, as a network without a topology file, is
passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import Struct

from onyx.errors import RequestFailed
from onyx.network_view import certificate_ends, read_statistics
from overlay.link.validity import AUTHORITY, ending
from overlay.statistics import BrokerStatistics, Credentials, NodeStatistics

FSYNC_SECONDS_MAX = 0.1
CLOCK_SECONDS_MAX = 1.0
WAITING_SECONDS_MAX = 300.0
ABSENT_SECONDS_MAX = 86_400.0
FLAPS_MAX = 6  # connections of a link in an hour, beyond the first
FLAPS_LEAST = 3
WANTED_LEAST = 100  # messages, before anything is said of how many nobody wanted

DAY = 86_400.0

RENEW = (
    "where the authority is: onyx cert issue PRINCIPAL --out FILE, and put that in place of the "
    "process' or user's file, which is read again while it runs; if it is good, set the clocks by "
    "NTP"
)
REPLACE = "replace it while all runs: onyx cert authority --help"


class Severity(StrEnum):
    PROBLEM = "problem"
    WARNING = "warning"


class DoctorFinding(Struct, frozen=True, forbid_unknown_fields=True):
    """``severity``: problem or warning."""

    check: str
    severity: str
    about: str  # a process, link, source, file or address
    what: str  # is wrong with it
    remedy: str


@dataclass(slots=True)
class Process:
    """One of the network; ``statistics``, all that it tells, None: it does not answer, and ``why``.
    ``down``: why its launcher says that it does not run.  ``skew_s``: how far its clock is ahead of
    ours, at least."""

    address: str
    statistics: Mapping[str, Any] | None = None
    down: str = ""
    skew_s: float = 0.0
    why: str = ""

    def read(self) -> NodeStatistics | RequestFailed | None:
        return read_statistics(self.statistics)


@dataclass(slots=True)
class Machine:
    """This one, as far as a topology file says what of the network is here.

    ``data_fault``: why the data directory cannot be used; ``free_bytes``: of each disk of
    stores, by a folder there; ``files_fault``: why there are too few open files; ``ports``: by
    address, what is wrong there; ``stores``: by process, what is wrong with its store."""

    data_directory: str
    data_fault: str = ""
    free_bytes: dict[str, int] = field(default_factory=dict)
    reserve_bytes: int = 0
    fsync_s: float | None = None
    files_fault: str = ""
    ports: dict[str, str] = field(default_factory=dict)
    stores: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Facts:
    """``unreachable``: why the registration service cannot be asked; ``schemas``: by source, what
    of its schema is not read; ``certificates``: when those end that are known here, of who asks
    and as the authority has issued them, in seconds of the epoch, at the second ``now``."""

    release: str
    unreachable: str = ""
    now: float = 0.0
    certificates: dict[str, float] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    schemas: dict[str, str] = field(default_factory=dict)
    machine: Machine | None = None

    def answering(self) -> Iterator[tuple[str, NodeStatistics]]:
        for node, process in self.processes.items():
            if isinstance(statistics := process.read(), NodeStatistics):
                yield node, statistics

    def brokers(self) -> Iterator[tuple[str, BrokerStatistics]]:
        """Those that answer."""
        for node, statistics in self.answering():
            if isinstance(statistics, BrokerStatistics):
                yield node, statistics


Check = Callable[[Facts], Iterator[DoctorFinding]]


def examine(facts: Facts) -> list[DoctorFinding]:
    """All that is found, problems first."""
    found = [finding for check in CHECKS for finding in check(facts)]
    return sorted(found, key=lambda finding: finding.severity != Severity.PROBLEM)


def _problem(check: str, about: str, what: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(check, Severity.PROBLEM, about, what, remedy)


def _warning(check: str, about: str, what: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(check, Severity.WARNING, about, what, remedy)


# --- the network --------------------------------------------------------------------------


def reached(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.unreachable:
        yield _problem(
            "reach", "registration service", facts.unreachable,
            "start it (onyx up), or say where it is: --registration, --topology, ONYX_REGISTRATION",
        )  # fmt: skip
    for node, process in facts.processes.items():
        if process.down:
            yield _problem(
                "process", node, f"is down: {process.down}",
                "its log says why; what waits for it is kept. Gone for good: onyx broker lost",
            )  # fmt: skip
        elif process.statistics is None:
            remedy = "start it there with the same topology file; look for a firewall on the way"
            if process.why:
                remedy = RENEW if "certificate" in process.why else "its log says more"
            yield _problem(
                "process", node,
                f"does not answer at {process.address}{f': {process.why}' * bool(process.why)}",
                remedy,
            )  # fmt: skip
        elif isinstance(failed := process.read(), RequestFailed):
            yield _problem(
                "process", node, failed.reason, "upgrade the older of the two, or this command"
            )


def releases(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.answering():
        there = statistics.node.version
        if there is not None and there != facts.release:
            yield _warning(
                "version", node, f"runs release {there}, this command is {facts.release}",
                "upgrade one process after the other (UPGRADING.md); two releases go together",
            )  # fmt: skip


def clocks(facts: Facts) -> Iterator[DoctorFinding]:
    for node, process in facts.processes.items():
        if abs(process.skew_s) > CLOCK_SECONDS_MAX:
            where = "ahead of" if process.skew_s > 0 else "behind"
            yield _problem(
                "clock", node, f"its clock is {abs(process.skew_s):.1f} s {where} that of here",
                "let NTP set both: certificates, tokens and ages of what waits go by the calendar",
            )  # fmt: skip


def certificates(facts: Facts) -> Iterator[DoctorFinding]:
    told = [
        (f"{node}: {whose}", said)
        for node, statistics in facts.answering()
        for whose, said in certificate_ends(statistics.node)
    ]
    for node, statistics in facts.answering():
        if isinstance(tls := statistics.node.tls, Credentials) and tls.is_open:
            yield _problem(
                "key", node, "every account of its machine can read its key, and be it then",
                "chmod 600 on it; if others have accounts there: onyx cert revoke, and another one",
            )  # fmt: skip
    tells = (statistics.node.tls for _, statistics in facts.answering())
    by_themselves = {
        f"the certificate of {t.principal}" for t in tells if isinstance(t, Credentials)
    }
    known = {
        whose: ending(until, facts.now)
        for whose, until in facts.certificates.items()
        if whose not in by_themselves
    }
    for about, said in [*told, *known.items()]:
        if said:
            remedy = REPLACE if AUTHORITY in about else RENEW
            find = _problem if said.startswith("is over") else _warning
            yield find("certificate", about, said, remedy)


def insecure(facts: Facts) -> Iterator[DoctorFinding]:
    nodes = [node for node, statistics in facts.answering() if statistics.node.tls is None]
    if nodes:
        yield _warning(
            "tls", ", ".join(nodes), "run without TLS: whoever reaches a port owns the network",
            "start the network without --insecure",
        )  # fmt: skip


def waiting(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.brokers():
        online = {to for to, journal in statistics.links.brokers() if journal.online}
        for to, seconds in statistics.data.waiting_s.items():
            if seconds > WAITING_SECONDS_MAX:
                yield _problem(
                    "backlog", f"{node} -> {to}",
                    f"something has waited for {seconds:,.0f} s at least, and {to} is "
                    + ("there, and slow" if to in online else "away"),
                    f"look at {to} (onyx top); if it is gone for good: onyx broker lost {to}",
                )  # fmt: skip


def absent(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.brokers():
        boxes = statistics.mailboxes
        if boxes.oldest_s > ABSENT_SECONDS_MAX:
            days = f"{boxes.oldest_s / DAY:.1f} days"
            yield _warning(
                "absent", node,
                f"{boxes.waiting:,} deliveries wait for users, the oldest for {days}",
                f"whose: onyx status --broker {node} --of mailboxes.bytes_of_users; "
                "let them go after a time: delivery_age_s_max",
            )  # fmt: skip
        if dropped := boxes.dropped_for_limits:
            yield _warning(
                "dropped", node, f"{dropped:,} deliveries went untaken, for limits of the topology",
                "onyx dead list says whose; delivery_backlog_bytes_max, delivery_store_bytes_max, "
                "principal_waiting_bytes_max, delivery_age_s_max say how much may wait",
            )  # fmt: skip


def flapping(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.answering():
        shell = statistics.node
        if shell.time is None or shell.started is None:
            continue
        hours = max(shell.time - shell.started, 1.0) / 3600
        for broker, journal in statistics.links.brokers():
            again = journal.meetings - 1
            if again >= FLAPS_LEAST and again / hours > FLAPS_MAX:
                yield _problem(
                    "flapping", f"{node} - {broker}",
                    f"the link was lost {again} times in {hours:.1f} h",
                    "the logs of both ends say why each time; look at the network between them",
                )  # fmt: skip


def unwanted(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.brokers():
        data = statistics.data
        taken = data.published - data.refused
        if taken >= WANTED_LEAST and not (sum(data.crossings.values()) or data.matched_here):
            yield _warning(
                "matched", node, f"nobody wanted any of {taken:,} messages published here",
                "onyx profile why-not PROFILE MESSAGE says why: often another namespace",
            )  # fmt: skip
        useless = data.matched_nothing
        if data.received >= WANTED_LEAST and 2 * useless > data.received:
            yield _warning(
                "useless", node, f"{useless:,} of {data.received:,} messages came for nothing",
                "give routing tables more room: routing_table_max_bytes, max_disjuncts",
            )  # fmt: skip
        if data.refused >= WANTED_LEAST and data.refused > data.published / 2:
            yield _warning(
                "refused", node, f"{data.refused:,} of {data.published:,} messages were refused",
                "onyx dead list shows which and why",
            )  # fmt: skip


def set_aside(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.answering():
        if kept := statistics.dead.kept:
            yield _problem(
                "dead", node, f"it has failed at input that it passes over now: {kept:,} in all",
                "onyx dead list; tell us, with onyx doctor --bundle",
            )  # fmt: skip
        if statistics.disk_is_short:
            yield _problem(
                "disk", node, "its disk has less free than its reserve: nothing new is taken",
                "make room on it; reserve and archive are limits of the topology",
            )  # fmt: skip
    for node, broker in facts.brokers():
        if suspended := broker.budgets.suspended:
            yield _warning(
                "suspended", node, f"{len(suspended):,} profiles are suspended: they cost too much",
                "onyx status names them; onyx profile update gives them another text",
            )  # fmt: skip


def schemas(facts: Facts) -> Iterator[DoctorFinding]:
    for source, why in facts.schemas.items():
        yield _warning(
            "schema", source, f"its schema is not read: {why}",
            "register the source with the whole of it; until then nothing is checked by it",
        )  # fmt: skip


# --- this machine -------------------------------------------------------------------------


def disk(facts: Facts) -> Iterator[DoctorFinding]:
    machine = facts.machine
    if machine is None:
        return
    if machine.data_fault:
        yield _problem(
            "data", machine.data_directory, machine.data_fault,
            "say another one: data_directory in the file, or onyx up --data DIR",
        )  # fmt: skip
    for folder, free in machine.free_bytes.items():
        if free < machine.reserve_bytes:
            yield _problem(
                "disk", folder,
                f"{free:,} bytes are free, less than the reserve of {machine.reserve_bytes:,}: "
                "nothing is published",
                "make room on the disk, or lower disk_reserve_bytes",
            )  # fmt: skip
    if machine.fsync_s is not None and machine.fsync_s > FSYNC_SECONDS_MAX:
        yield _problem(
            "fsync", machine.data_directory,
            f"a small write is on the disk after {machine.fsync_s * 1e3:,.0f} ms, and whoever "
            "publishes waits for that",
            "put the data directory on a local disk with a cache that survives a power cut",
        )  # fmt: skip


def files(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.machine is not None and facts.machine.files_fault:
        yield _problem(
            "descriptors", "this machine", facts.machine.files_fault,
            "raise it (ulimit -Hn, LimitNOFILE of systemd), or lower connections_max",
        )  # fmt: skip


def ports(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.machine is not None:
        for address, what in facts.machine.ports.items():
            yield _problem(
                "port", address, what, "stop what listens there, or give another port in the file"
            )


def stores(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.machine is not None:
        for node, what in facts.machine.stores.items():
            yield _problem(
                "store", node, what,
                "onyx store verify says more; put back what was there, or onyx store repair",
            )  # fmt: skip


CHECKS: tuple[Check, ...] = (
    *(reached, releases, clocks, certificates, insecure, waiting, absent, flapping, unwanted),
    *(set_aside, schemas, disk, files, ports, stores),
)
