"""Doctor: faults of a network and their remedies, by facts that were gathered.

Each check looks at the facts and yields findings; none asks anybody anything (onyx/doctor_facts.py
gathers the facts).  The checks of a machine, which need no process that answers, are
onyx/machine_checks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from onyx.errors import RequestFailed
from onyx.network_view import certificate_ends, read_statistics
from overlay.link.validity import AUTHORITY, DAY, ending
from overlay.statistics import BrokerStatistics, Credentials, NodeStatistics

CLOCK_SECONDS_MAX = 1.0
WAITING_SECONDS_MAX = 300.0
ABSENT_SECONDS_MAX = 86_400.0
FLAPS_MAX = 6  # connections of a link in an hour, beyond the first
FLAPS_LEAST = 3
WANTED_LEAST = 100  # messages, before anything is said of how many nobody wanted

RENEW = (
    "where the file is, while it is good: onyx cert renew FILE; where the authority is: onyx cert "
    "issue PRINCIPAL --out FILE, and put that in its place. A process reads it again while it "
    "runs. If the certificate is good, set the clocks by NTP"
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


class Silence(NamedTuple):
    """Why a process does not answer: the sentence, and the remedy."""

    what: str
    remedy: str


WHERE = "say where it is: --registration, --topology, --context, ONYX_REGISTRATION"
SILENCES: Mapping[str, Silence] = {
    "gone": Silence(
        "nothing listens at {at}: the process is gone",
        "start it on its machine with the same topology file (onyx up), or " + WHERE + "; its log "
        "says why it ended. What waits for it is kept. Gone for good: onyx broker lost",
    ),
    "deaf": Silence(
        "process {pid} runs, and does not listen at {at}",
        "its log says for what it waits: a start takes as long as its store is large",
    ),
    "stopped": Silence("process {pid} is stopped by a signal", "kill -CONT {pid}"),
    "hung": Silence(
        "process {pid} hangs: it takes connections at {at} and says nothing",
        "kill -KILL {pid}, if it stays so: its launcher starts it again, and what it has "
        "acknowledged is in its store",
    ),
    "mute": Silence(
        "something takes connections at {at} and says nothing: the process hangs, or is none of "
        "this network",
        "on its machine: onyx doctor --topology FILE says which; or " + WHERE,
    ),
    "other": Silence(
        "something answers at {at}, and not as a process of Onyx{said}",
        "is that the address of a gateway, or of links? Else stop it; " + WHERE,
    ),
    "far": Silence(
        "there is no way to {at}: {said}",
        "look for a firewall on the way, and whether that machine runs and is meant",
    ),
    "unknown": Silence("no machine is known by the name in {at}", "look at the name, and at DNS"),
    "role": Silence(
        "{said} answers at {at}", WHERE + ", or take the topology file of the network there"
    ),
    "no-credentials": Silence(
        "{said}",
        "where the authority is: onyx cert issue user/NAME --out FILE; then --credentials FILE",
    ),
    "authority": Silence(
        "{said}",
        "the address, or the credentials, are those of another network: onyx context list, "
        "ONYX_CREDENTIALS; else onyx cert issue PRINCIPAL --out FILE where the authority is",
    ),
    "certificate": Silence("{said}", RENEW),
    "disk-full": Silence("{said}", "make room on its disk, or lower disk_reserve_bytes"),
    "not-allowed": Silence(
        "{said}", "ask as an operator: --credentials FILE, of onyx cert issue operator/NAME"
    ),
    "refused": Silence("{said}", "its log says more"),
}
"""By kind, of a process ``pid`` ``at`` an address, of which something was ``said``."""


def silence(kind: str, at: str, said: str = "", pid: int | None = None) -> Silence:
    of = SILENCES[kind]
    return Silence(*(text.format(at=at, said=said, pid=pid) for text in of))


@dataclass(slots=True)
class Process:
    """One of the network; ``statistics``, all that it tells, None: it does not answer, and ``why``.
    ``down``: why its launcher says that it does not run.  ``skew_s``: how far its clock is ahead of
    ours, at least."""

    address: str
    statistics: Mapping[str, Any] | None = None
    down: str = ""
    skew_s: float = 0.0
    why: Silence | None = None

    def read(self) -> NodeStatistics | RequestFailed | None:
        return read_statistics(self.statistics)


@dataclass(slots=True)
class Facts:
    """``unreachable``: why the registration service cannot be asked, and ``is_stranger``: whether
    nobody here would answer this principal; ``schemas``: by source, what
    of its schema is not read; ``certificates``: when those end that are known here, of who asks
    and as the authority has issued them, in seconds of the epoch, at the second ``now``;
    ``machine``: what this machine's checks have found, None: nobody knows what of the network is
    here."""

    release: str
    unreachable: Silence | None = None
    is_stranger: bool = False
    now: float = 0.0
    certificates: dict[str, float] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    schemas: dict[str, str] = field(default_factory=dict)
    machine: list[DoctorFinding] | None = None
    other_brokers: list[str] = field(default_factory=list)  # the file's or the network's alone

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
    found = [finding for check in CHECKS for finding in check(facts)] + (facts.machine or [])
    return sorted(found, key=lambda finding: finding.severity != Severity.PROBLEM)


def problem(check: str, about: str, what: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(check, Severity.PROBLEM, about, what, remedy)


def warning(check: str, about: str, what: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(check, Severity.WARNING, about, what, remedy)


# --- the network --------------------------------------------------------------------------


def reached(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.unreachable is not None:
        yield problem("reach", "registration service", *facts.unreachable)
    for node, process in facts.processes.items():
        if process.down:
            yield problem(
                "process", node, f"is down: {process.down}",
                "its log says why; what waits for it is kept. Gone for good: onyx broker lost",
            )  # fmt: skip
        elif process.statistics is None:
            yield problem("process", node, *(process.why or silence("mute", process.address)))
        elif isinstance(failed := process.read(), RequestFailed):
            yield problem(
                "process", node, failed.reason, "upgrade the older of the two, or this command"
            )


def other_network(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.other_brokers:
        yield problem(
            "topology", "registration service",
            "the network that answers has other brokers than the topology file: "
            + ", ".join(facts.other_brokers),
            "it is another network, or the file is older: " + WHERE + "; or onyx topology apply",
        )  # fmt: skip


def releases(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.answering():
        there = statistics.node.version
        if there is not None and there != facts.release:
            yield warning(
                "version", node, f"runs release {there}, this command is {facts.release}",
                "upgrade one process after the other (UPGRADING.md); two releases go together",
            )  # fmt: skip


def clocks(facts: Facts) -> Iterator[DoctorFinding]:
    for node, process in facts.processes.items():
        if abs(process.skew_s) > CLOCK_SECONDS_MAX:
            where = "ahead of" if process.skew_s > 0 else "behind"
            yield problem(
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
            yield problem(
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
            find = problem if said.startswith("is over") else warning
            yield find("certificate", about, said, remedy)


def restarted(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.answering():
        if restarts := statistics.node.restarts:
            yield warning(
                "restarts", node,
                f"its launcher has started it again, {restarts} times since it started itself",
                "its log says why it ended each time (a line error, or none: killed from outside, "
                "by memory too)",
            )  # fmt: skip


def insecure(facts: Facts) -> Iterator[DoctorFinding]:
    nodes = [node for node, statistics in facts.answering() if statistics.node.tls is None]
    if nodes:
        yield warning(
            "tls", ", ".join(nodes), "run without TLS: whoever reaches a port owns the network",
            "start the network without --insecure",
        )  # fmt: skip


def waiting(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.brokers():
        online = {to for to, journal in statistics.links.brokers() if journal.online}
        for to, seconds in statistics.data.waiting_s.items():
            if seconds > WAITING_SECONDS_MAX:
                yield problem(
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
            yield warning(
                "absent", node,
                f"{boxes.waiting:,} deliveries wait for users, the oldest for {days}",
                f"whose: onyx status --broker {node} --of mailboxes.bytes_of_users; "
                "let them go after a time: delivery_age_s_max",
            )  # fmt: skip
        if dropped := boxes.dropped_for_limits:
            yield warning(
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
                yield problem(
                    "flapping", f"{node} - {broker}",
                    f"the link was lost {again} times in {hours:.1f} h",
                    "the logs of both ends say why each time; look at the network between them",
                )  # fmt: skip


def unwanted(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.brokers():
        data = statistics.data
        taken = data.published - data.refused
        if taken >= WANTED_LEAST and not (sum(data.crossings.values()) or data.matched_here):
            yield warning(
                "matched", node, f"nobody wanted any of {taken:,} messages published here",
                "onyx profile why-not PROFILE MESSAGE says why: often another namespace",
            )  # fmt: skip
        useless = data.matched_nothing
        if data.received >= WANTED_LEAST and 2 * useless > data.received:
            yield warning(
                "useless", node, f"{useless:,} of {data.received:,} messages came for nothing",
                "give routing tables more room: routing_table_max_bytes, max_disjuncts",
            )  # fmt: skip
        if data.refused >= WANTED_LEAST and data.refused > data.published / 2:
            yield warning(
                "refused", node, f"{data.refused:,} of {data.published:,} messages were refused",
                "onyx dead list shows which and why",
            )  # fmt: skip


def set_aside(facts: Facts) -> Iterator[DoctorFinding]:
    for node, statistics in facts.answering():
        if kept := statistics.dead.kept:
            yield problem(
                "dead", node, f"it has failed at input that it passes over now: {kept:,} in all",
                "onyx dead list; tell us, with onyx doctor --bundle",
            )  # fmt: skip
        if statistics.disk_is_short:
            yield problem(
                "disk", node, "its disk has less free than its reserve: nothing new is taken",
                "make room on it; reserve and archive are limits of the topology",
            )  # fmt: skip
    for node, broker in facts.brokers():
        if suspended := broker.budgets.suspended:
            yield warning(
                "suspended", node, f"{len(suspended):,} profiles are suspended: they cost too much",
                "onyx status names them; onyx profile update gives them another text",
            )  # fmt: skip


def schemas(facts: Facts) -> Iterator[DoctorFinding]:
    for source, why in facts.schemas.items():
        yield warning(
            "schema", source, f"its schema is not read: {why}",
            "register the source with the whole of it; until then nothing is checked by it",
        )  # fmt: skip


CHECKS: tuple[Check, ...] = (
    *(
        reached,
        other_network,
        releases,
        clocks,
        certificates,
        insecure,
        restarted,
        waiting,
        absent,
        flapping,
        unwanted,
    ),
    *(set_aside, schemas),
)
