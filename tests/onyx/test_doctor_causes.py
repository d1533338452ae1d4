"""Broken set-ups, one a row: the doctor names the cause of each, with its remedy.

Files, stores, certificates, ports and limits are really broken.  Where a process is silent its port
is a real one: nothing listens there, something takes connections and says nothing, or something
else answers.  The network of the last test is one of real processes.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from onyx import doctor_facts, launch
from onyx.data_directory import DataDirectory, holder_of
from onyx.doctor import DoctorFinding, examine
from onyx.doctor_facts import gather
from onyx.errors import NetworkUnreachable, NotAuthenticated, RequestFailed, UserError
from onyx.identity.authority import Authority, account
from onyx.identity.known_networks import use_credentials
from onyx.machine_checks import Machine, examine_machine
from overlay.link.events import Put
from overlay.link.principal import Principal
from overlay.link.store import Store
from overlay.link.store_head import head_file
from overlay.nodes import Address
from overlay.planning import PlanningOptions
from overlay.topology import AdminOptions, Topology
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology

B1 = Principal("broker", "B1")
HOST = "127.0.0.1"


@dataclass
class Broken:
    """A network of which no process runs: ``topology`` as it ran last, ``file`` as its operator has
    it now.  Each port is bound and nobody listens there, so no other process gets it."""

    folder: Path
    patch: pytest.MonkeyPatch
    stack: ExitStack
    topology: Topology = field(init=False)
    file: Topology = field(init=False)

    def __post_init__(self) -> None:
        small = small_topology(self.folder / "data", 2)
        at = {name: (HOST, self.bound()) for name in ("registration", "B1", "B2")}
        links = {name: (HOST, self.bound()) for name in at}
        self.topology = self.file = small.with_addresses(at, links)
        self.directory = DataDirectory(self.topology.data_directory)
        for name in at:
            store = self.directory.store_file(name)
            store.parent.mkdir(parents=True)
            opened = Store(store)
            opened.commit([Put("kept", "row", b"value")])
            opened.close()
        self.authority = Authority.make(self.directory.identity, self.topology.name)
        self.directory.write_topology(self.topology)
        self.sockets: list[socket.socket]

    def bound(self) -> int:
        """A port of its own."""
        made = self.stack.enter_context(socket.socket())
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, 0))
        self.sockets = [*getattr(self, "sockets", []), made]
        return int(made.getsockname()[1])

    def listen(self, node: str) -> socket.socket:
        """Something takes connections where a node would."""
        port = self.topology.address(node).port
        (found,) = (each for each in self.sockets if each.getsockname()[1] == port)
        found.listen()
        return found

    def hold(self, node: str) -> None:
        """This process has what belongs to a node."""
        self.stack.enter_context(self.directory.node_locked(node))

    def answer(self, said: bytes) -> None:
        """Somebody answers everybody so, where the registration service would."""
        listening = self.listen("registration")

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with listening.accept()[0] as there:
                        there.sendall(said)
                        there.recv(1 << 16)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.stack.callback(listening.shutdown, socket.SHUT_RDWR)
        self.patch.setattr(doctor_facts, "LOOK_SECONDS", SAFETY_SECONDS)

    def limits(self, **more: int) -> None:
        self.topology = replace(self.topology, limits=replace(self.topology.limits, **more))

    def machine(self) -> list[DoctorFinding]:
        return examine_machine(Machine(self.topology, self.file))

    async def whole(self) -> list[DoctorFinding]:
        operator = self.authority.keep(account())
        with use_credentials(operator):
            where = self.topology.where("registration")
            return examine(await gather(where, self.topology, file=self.file))


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broken]:
    with ExitStack() as stack:
        yield Broken(tmp_path, monkeypatch, stack)


# --- this machine ---------------------------------------------------------------------------------


def another_network(it: Broken) -> None:
    it.file = replace(it.file, name="other")


def another_shape(it: Broken) -> None:
    it.file = small_topology(it.folder / "data", 3)


def another_port(it: Broken) -> None:
    b1 = it.file.broker("B1")
    moved = replace(b1, listen=Address(HOST, it.bound()))
    it.file = replace(it.file, brokers=(moved, it.file.broker("B2")))


def data_directory_in_the_way(it: Broken) -> None:
    (it.folder / "file").write_text("in the way")
    it.topology = replace(it.topology, data_directory=it.folder / "file")


def data_directory_that_cannot_be_looked_at(it: Broken) -> None:
    """By a name that no file system takes; a folder of another account fails in the same place."""
    it.topology = replace(it.topology, data_directory=it.folder / ("x" * 300))


def store_of_b1_gone(it: Broken) -> None:
    it.directory.store_file("B1").unlink()


def store_of_b1_emptied(it: Broken) -> None:
    it.directory.store_file("B1").write_bytes(b"")


def store_of_b1_without_head(it: Broken) -> None:
    head_file(it.directory.store_file("B1")).unlink()


def store_of_b1_overwritten(it: Broken) -> None:
    it.directory.store_file("B1").write_bytes(b"no store" * 1000)


def server_of_stores_away(it: Broken) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://onyx@{HOST}:{it.bound()}/onyx"
    it.topology = replace(
        it.topology, brokers=tuple(replace(b, store=url) for b in it.topology.brokers)
    )


def disk_below_its_reserve(it: Broken) -> None:
    it.limits(disk_reserve_bytes=1 << 62)


def no_room_for_files(it: Broken) -> None:
    real = os.statvfs(it.folder)
    numbers = list(real)
    numbers[7] = 3  # f_favail
    it.patch.setattr(os, "statvfs", lambda path: os.statvfs_result(numbers))


def too_few_open_files(it: Broken) -> None:
    it.limits(connections_max=1_000_000_000)


def links_port_taken(it: Broken) -> None:
    port = it.topology.node("B1").links.port
    next(each for each in it.sockets if each.getsockname()[1] == port).listen()


def admin_port_taken(it: Broken) -> None:
    taken = it.stack.enter_context(socket.create_server((HOST, 0))).getsockname()[1]
    offset = taken - it.topology.address("B1").port
    it.patch.setattr(AdminOptions, "address", lambda _, listen: Address(HOST, listen[1] + offset))
    it.topology = replace(it.topology, admin=AdminOptions())


def certificate_over(it: Broken) -> None:
    it.authority.file_of(B1).write_bytes(it.authority.issue(B1, days=-0.001))
    it.authority.file_of(B1).chmod(0o600)


def certificate_revoked(it: Broken) -> None:
    it.authority.keep(B1)
    it.authority.revoke({each.serial for each in it.authority.issued()})


def certificate_of_another_authority(it: Broken) -> None:
    other = Authority.make(it.folder / "other", it.topology.name)
    it.authority.file_of(B1).write_bytes(other.issue(B1))
    it.authority.file_of(B1).chmod(0o600)


def certificate_of_another_process(it: Broken) -> None:
    it.authority.file_of(B1).write_bytes(it.authority.issue(Principal("broker", "B2")))


def certificate_cut_short(it: Broken) -> None:
    it.authority.file_of(B1).write_bytes(it.authority.issue(B1)[:300])


def key_for_everybody(it: Broken) -> None:
    it.authority.keep(B1).chmod(0o644)


def no_java(it: Broken) -> None:
    it.topology = replace(it.topology, planning=PlanningOptions(auto=True))
    it.patch.setattr("registration.spark.session._system_homes", lambda _: [])
    it.patch.setattr("registration.spark.session.packaged_java", lambda: None)


MACHINE = [
    (another_network, "topology", "runs from its data directory is small", "onyx topology apply"),
    (another_shape, "topology", "a network of another shape", "the network as it runs"),
    (another_port, "topology", "B1 listens at 127.0.0.1:", "the network as it runs"),
    (data_directory_in_the_way, "data", "cannot be written: Not a directory", "--data DIR"),
    (data_directory_that_cannot_be_looked_at, "data", "cannot be looked at", "as the account"),
    (store_of_b1_emptied, "store", "is empty", "onyx store repair"),
    (store_of_b1_without_head, "store", "is gone", "onyx store repair"),
    (store_of_b1_overwritten, "store", "not a database", "onyx store verify"),
    (store_of_b1_gone, "store", "is gone", "onyx store repair"),
    (server_of_stores_away, "store", "cannot be reached", "start the server"),
    (disk_below_its_reserve, "disk", "less than the reserve", "make room on the disk"),
    (no_room_for_files, "disk", "room for 3 more files", "remove files"),
    (too_few_open_files, "descriptors", "open files", "ulimit -Hn"),
    (links_port_taken, "port", "B1 does not run, and something else listens there", "ss -ltnp"),
    (admin_port_taken, "port", "something else listens there", "another port in the file"),
    (certificate_over, "certificate", "B1 shows a certificate that is over", "onyx cert issue"),
    (certificate_revoked, "certificate", "a certificate that is revoked", "onyx cert issue"),
    (certificate_of_another_authority, "certificate", "another authority than", "onyx cert issue"),
    (certificate_of_another_process, "certificate", "certificate of broker/B2", "onyx cert issue"),
    (certificate_cut_short, "certificate", "no credentials in it", "onyx cert issue"),
    (key_for_everybody, "key", "every account of this machine can read it", "chmod 600"),
    (no_java, "planning", "Spark needs Java", "auto = false"),
]


@pytest.mark.parametrize(
    ("breaks", "check", "what", "remedy"), MACHINE, ids=[each[0].__name__ for each in MACHINE]
)
def test_what_is_wrong_on_this_machine(
    broken: Broken, breaks: Callable[[Broken], None], check: str, what: str, remedy: str
) -> None:
    assert [each for each in broken.machine() if each.check != "fsync"] == []
    breaks(broken)
    found = [each for each in broken.machine() if each.check != "fsync"]
    assert {each.check for each in found} == {check}
    assert what in found[0].what
    assert remedy in found[0].remedy


# --- a process that does not answer -----------------------------------------------------------


def gone(it: Broken) -> None:
    """As all are."""


def taken_by_others(it: Broken) -> None:
    it.listen("registration")


def hung(it: Broken) -> None:
    it.listen("registration")
    it.hold("registration")


def deaf(it: Broken) -> None:
    it.hold("registration")


def web_server(it: Broken) -> None:
    it.answer(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def something_else(it: Broken) -> None:
    it.answer(b"220 mail.example ESMTP\r\n")


def no_way(it: Broken) -> None:
    """A port that no packet comes back from, as a firewall that drops them."""

    def dropped(*_: object) -> socket.socket:
        raise TimeoutError

    it.patch.setattr("onyx.doctor_facts.socket.create_connection", dropped)


def no_route(it: Broken) -> None:
    def unreachable(*_: object) -> socket.socket:
        raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))

    it.patch.setattr("onyx.doctor_facts.socket.create_connection", unreachable)


def no_such_host(it: Broken) -> None:
    def unknown(*_: object) -> socket.socket:
        raise socket.gaierror

    it.patch.setattr("onyx.doctor_facts.socket.create_connection", unknown)


SILENT = [
    (gone, "the process is gone", "onyx up"),
    (taken_by_others, "says nothing: the process hangs, or is none of", "says which"),
    (hung, "hangs: it takes connections at", "kill -KILL"),
    (deaf, "runs, and does not listen at", "its log says"),
    (web_server, "not as a process of Onyx: a web server", "a gateway"),
    (something_else, "not as a process of Onyx", "--registration"),
    (no_way, "nothing comes back", "a firewall on the way"),
    (no_route, "No route to host", "a firewall on the way"),
    (no_such_host, "no machine is known by the name", "DNS"),
]


@pytest.mark.parametrize(
    ("breaks", "what", "remedy"), SILENT, ids=[each[0].__name__ for each in SILENT]
)
async def test_why_a_process_is_silent(
    broken: Broken, breaks: Callable[[Broken], None], what: str, remedy: str
) -> None:
    """The registration service, and after it each broker: by itself, of which nobody else tells."""
    broken.patch.setattr(
        doctor_facts, "LOOK_SECONDS", 0.1
    )  # nobody says anything, but for ``answer``
    breaks(broken)
    registration = broken.topology.where("registration")
    why = await doctor_facts.why_silent(registration, None, broken.topology, "registration")
    assert what in why.what
    assert remedy in why.remedy


REFUSED = [
    (NotAuthenticated("no credentials are known for 10.0.0.7:7200.\nSay so"), "--credentials FILE"),
    (NotAuthenticated("a certificate that is revoked"), "onyx cert issue PRINCIPAL"),
    (NetworkUnreachable("no connection: a certificate that is over"), "onyx cert issue PRINCIPAL"),
    (NotAuthenticated("self-signed certificate in certificate chain"), "another network"),
    (RequestFailed("disk-full", "the disk has less than its reserve"), "make room on its disk"),
    (RequestFailed("not-authorised", "user/amy may not operate"), "ask as an operator"),
    (RequestFailed("too-many", "too many connections"), "its log"),
]


@pytest.mark.parametrize(("error", "remedy"), REFUSED)
async def test_a_process_that_refuses_has_said_why(error: UserError, remedy: str) -> None:
    """No port is looked at."""
    why = await doctor_facts.why_silent("10.0.0.7:7200", error, None, "B1")
    assert why.what in str(error)
    assert remedy in why.remedy


async def test_a_doctor_goes_on_without_the_registration_service(broken: Broken) -> None:
    """To brokers and this machine; a process that runs has its own ports, and is not at fault."""
    broken.patch.setattr(doctor_facts, "ANSWER_SECONDS", 0.1)  # nobody answers
    broken.patch.setattr(doctor_facts, "LOOK_SECONDS", 0.1)  # from this machine to itself
    broken.hold("B1")
    broken.listen("B1")
    store_of_b1_without_head(broken)
    found = {(each.check, each.about): each for each in await broken.whole()}
    found = {key: each for key, each in found.items() if key[0] != "fsync"}
    kinds = {("reach", "registration service"), ("process", "B1"), ("process", "B2")}
    assert found.keys() == {*kinds, ("store", "B1")}
    assert "gone" in found["reach", "registration service"].what
    assert f"process {os.getpid()} hangs" in found["process", "B1"].what
    assert "gone" in found["process", "B2"].what


# --- real processes -------------------------------------------------------------------------------


async def test_a_network_of_processes_one_fault_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow process may not answer in time, so each is looked at until its cause is named."""
    topology = small_topology(tmp_path / "data", 2)
    monkeypatch.setattr(doctor_facts, "LOOK_SECONDS", 0.1)  # a process that is stopped says nothing
    stranger = Authority.make(tmp_path / "other", "small").keep(account())
    with trio.fail_after(SAFETY_SECONDS):
        async with launch(topology, write_line=lambda line: None) as network:
            runs = network.topology
            directory = DataDirectory(runs.data_directory)
            where = network.registration

            async def until(
                check: str, about: str, what: str, at: str = "", file: Topology = runs
            ) -> DoctorFinding:
                while True:
                    for each in examine(await gather(at or where, file, file=file)):
                        if (each.check, each.about) == (check, about) and what in each.what:
                            return each

            b1 = runs.where("B1")
            await until("reach", "registration service", f"the broker B1 answers at {b1}", b1)
            swapped = runs.with_addresses({"B1": runs.address("B2"), "B2": runs.address("B1")})
            mixed = replace(swapped, registration=runs.registration)
            links = str(runs.registration[0].links)
            await until("process", "B1", "not B1, but B2", links, mixed)
            three = replace(small_topology(tmp_path / "none", 3), registration=runs.registration)
            await until("topology", "registration service", ": B3", "", three)
            with use_credentials(stranger):
                found = await until("reach", "registration service", "")
                assert "another network" in found.remedy

            authority = Authority(directory.identity)
            ann = Principal("user", "ann")
            file = tmp_path / "ann.pem"
            file.write_bytes(authority.issue(ann))
            authority.revoke({each.serial for each in authority.issued() if each.principal == ann})
            with use_credentials(file):
                found = await until("reach", "registration service", "revoked")
                assert "onyx cert issue" in found.remedy

            for node, check in (("B1", "process"), ("registration", "reach")):
                pid = holder_of(directory.node_directory(node))
                assert pid is not None
                os.kill(pid, signal.SIGSTOP)
                about = node if check == "process" else "registration service"
                found = await until(check, about, f"process {pid} is stopped")
                assert found.remedy == f"kill -CONT {pid}"
                os.kill(pid, signal.SIGCONT)
