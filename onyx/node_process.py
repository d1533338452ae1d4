"""One process of a network: a broker or the registration service, from start to stop.

It runs in the foreground (``onyx up FILE --broker B1``) or as a child of the launcher::

    launcher ──listening socket──> child     bound before the child exists, kept over its restarts
             ──lifeline──────────> child     end of file: the launcher is gone, stop
             <──"restored 7 100"─  child     so many rows of its store taken back, of so many;
                                             likewise "read", "profiles", "interests"
             <──────────"ready"──  child     listening, store open, all peers connected
             <─────────log lines─  child     its standard output and standard error

Invariants: the node's directory is locked before its store is opened; SIGTERM, SIGINT or the end
of the lifeline stop it cleanly, and what it has promised is on disk before anyone is told, so
that SIGKILL does no harm either.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import logging
import mmap
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import trio
from msgspec import convert, structs
from msgspec.structs import asdict

from formats.kernel import AVAILABLE
from onyx.background import background_tasks
from onyx.child_process import RestartPolicy, stop_at_end
from onyx.data_directory import DataDirectory
from onyx.errors import (
    EXIT_OK,
    NotAuthenticated,
    StoreGone,
    UnwritableOutput,
    UserError,
    exit_code_of,
)
from onyx.garbage import leave_survivors_alone, none_looked_for
from onyx.listening import NodeProcess, NodeSockets, bind_process, process_of
from onyx.logs import configure_logging, toggle_debug, use_logs
from onyx.node_store import open_store, taken_store
from onyx.release import who
from onyx.start_progress import StartProgress
from onyx.store_errors import store_errors
from overlay.limits import Limits
from overlay.link.connections import Connections, open_stream
from overlay.link.core_context import Surroundings
from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.dead_letters import keep_aside
from overlay.link.door import CLIENT_ROLES, Door, DoorLimits
from overlay.link.event_queue import EventQueue
from overlay.link.frames import ErrorFrame
from overlay.link.lone_error import lone_error
from overlay.link.lost_stores import STORE_LOST
from overlay.link.node_limits import NodeLimits
from overlay.link.open_files import allow_connections
from overlay.link.principal import PROCESS_ROLES, Principal, nobody
from overlay.link.processor_clock import ProcessorClock
from overlay.link.row_store import RowStore
from overlay.link.store import SWITCH_SECONDS
from overlay.link.stored_rows import Progress, unsaid
from overlay.link.suspect import CoreFailed, marked
from overlay.link.vitals import Vitals
from overlay.link.work_mark import AT, IDLE, MARK, WorkMark, read_mark
from overlay.live_settings import with_live_settings
from overlay.statistics import Node
from overlay.stores import SQLITE
from overlay.topology import Topology, TopologyError, load_topology
from yfilter.errors import KernelMissing

# -------------------------------------------------------------------------------------------------
# The two doors of a node's process, as the topology bounds them: one for sources and users, one
# for the other processes of the network.


def doors_of(sockets: NodeSockets, topology: Topology) -> tuple[Door, Door]:
    """The door of clients, the door of links; whoever runs them closes what they listen with, and
    the sockets stay."""
    limits = topology.limits
    connections = allow_connections(limits, len(topology.brokers), gives_way=True)
    clients = DoorLimits.of(limits, connections.clients, is_of_links=False)
    links = DoorLimits.of(limits, connections.links, is_of_links=True)
    return (
        Door([_listener(sockets.clients)], CLIENT_ROLES, clients),
        Door([_listener(sockets.links)], PROCESS_ROLES, links),
    )


def node_limits(limits: Limits, caution: int = 0) -> NodeLimits:
    """What the buffers of a process may take; in ``caution`` turns at first one frame is handled
    each."""
    return NodeLimits(cautious_turns=caution).bounded(limits)


def _listener(listener: socket.socket) -> trio.SocketListener:
    own = listener.dup()
    own.setblocking(False)
    return trio.SocketListener(trio.socket.from_stdlib_socket(own))


# -------------------------------------------------------------------------------------------------
# The deaths of a process that left no exception: at what, and whether that is to blame.
#
# ::
#
#     work     what is worked on (overlay/link/work_mark.py) | the same of the death before
#     fault    what compiled code did last, if it ended the process (faulthandler)
#
# Blamed is what the main thread was at when it had a fault (SIGSEGV, SIGABRT, ...), and what two
# deaths in a row were at, by whatever (SIGKILL): one may be an operator's, or the kernel's that has
# chosen this process, and everything has to be some frame's bad luck.  Where it is not certain
# which of some frames it was, the next life handles one at a time.  Deaths of an idle process, and
# those of the whole machine, are of no account: what is mapped need not have reached the disk.


_PAGE = 2 * MARK.size


class ProcessDied(Exception):
    """How."""


@dataclass(frozen=True, slots=True)
class Death:
    """``at`` which input; ``blame``: how it died of that, "" where that is not known; ``is_vague``:
    it may have been another that had come with it."""

    at: str
    blame: str
    is_vague: bool


@contextmanager
def watched_deaths(directory: Path) -> Iterator[tuple[WorkMark, Death | None]]:
    """The mark of this process while it lives, and how the one before it in this directory died;
    None: of nothing that it was at.  UnwritableOutput."""
    try:
        with (
            (directory / "work").open("a+b") as work,
            (directory / "fault").open("a+") as fault,
        ):
            work.truncate(_PAGE)
            with mmap.mmap(work.fileno(), _PAGE) as memory:
                fault.seek(0)
                death = _take_death(memory, fault.read())
                fault.truncate(0)
                is_ours = not faulthandler.is_enabled()
                if is_ours:
                    fault.write(f"{_thread()}\n")
                    fault.flush()
                    faulthandler.enable(fault)
                try:
                    yield memory, death
                finally:  # in order, so that it leaves nothing
                    if is_ours:
                        faulthandler.disable()
                    (directory / "work").unlink(missing_ok=True)
                    (directory / "fault").unlink(missing_ok=True)
    except OSError as error:
        raise UnwritableOutput(f"{directory} cannot be written: {error.strerror}") from None


def _take_death(memory: mmap.mmap, fault: str) -> Death | None:
    """What the mark says, which becomes that of the death before."""
    state, at = read_mark(memory[: MARK.size])
    _, before = read_mark(memory[MARK.size : _PAGE])
    memory[:_PAGE] = bytes(_PAGE)
    if state == IDLE:
        return None
    blame = ""
    if state == AT:
        thread, _, told = fault.partition("\n")
        if f"Current thread {thread} " in told:
            blame = told
        elif at == before:
            blame = "the process died at it twice in a row, without a word"
    if not blame:
        MARK.pack_into(memory, MARK.size, state, at.encode())
    return Death(at, blame, is_vague=not blame and (state != AT or bool(before)))


def _thread() -> str:
    """This one, as faulthandler says it."""
    return f"{threading.get_ident():#018x}"


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# What a process says whose store has less than it had: everybody who comes is told so.
#
# It has nothing to go on with.  Sources and users that it has acknowledged messages to would wait
# for it, and neighbours too, if it just ended.


TELL_SECONDS = 5.0  # whoever was connected dials again within 1


async def tell_lost(
    sockets: NodeSockets,
    topology: Topology,
    credentials: Credentials | None,
    node_id: str,
) -> None:
    """``store-lost`` to whoever comes within TELL_SECONDS; what was seen is in the log."""
    sockets.listen()
    detail = f"the store of {node_id} is damaged, an older copy or emptied; its log says more"
    said = ErrorFrame(STORE_LOST, detail, fatal=True)
    doors = [replace(door, closed=said) for door in doors_of(sockets, topology)]
    own = node_limits(topology.limits)
    connections = Connections(EventQueue(), open_stream, own, credentials)
    with trio.move_on_after(TELL_SECONDS):
        await connections.run(doors, {}, trio.TASK_STATUS_IGNORED)


# -------------------------------------------------------------------------------------------------
# The lives of a core: one that falls over is made anew from the store, in the same process.
#
# ::
#
#     life ──CoreFailed, input known──> input kept aside ──pause──> next life, which passes it over
#       │ └──CoreFailed, not known────> a cautious life, one frame at a time ──CoreFailed──> ...
#       └──anything else──────────────> the end of the process
#
# Nothing of the call that failed is in the store, and its sender still has it: a source and a
# broker in their journals, a client asks again.  So what is passed over is passed over once, when
# it comes again, and all else goes on behind it.  A cautious life that fails at no known input is
# the end of the process, which whoever runs it starts again.


CAUTIOUS_TURNS = 10_000

log = logging.getLogger("onyx.process")


async def run_lives(
    life: Callable[[int], Awaitable[None]],
    store: RowStore,
    policy: RestartPolicy,
    wall: Callable[[], float] = time.time,
    death: Death | None = None,
) -> None:
    """Run ``life(caution)`` again whenever its core falls over; the pause between two grows while
    they are short.  ``death``: that of the process before."""
    failures = 0
    caution = 0 if death is None else _take_back(death, store, wall())
    while True:
        began = trio.current_time()
        try:
            await life(caution)
            return
        except BaseException as error:
            failure = lone_error(error)
            if not isinstance(failure, CoreFailed) or (failure.suspect is None and caution):
                raise
            caution = _take_down(failure, store, wall())
            failures = 1 if trio.current_time() - began >= policy.stable_seconds else failures + 1
        del failure  # and with it the core
        gc.unfreeze()
        gc.collect()
        await trio.sleep(policy.delay.after(failures))


def _take_back(death: Death, store: RowStore, at: float) -> int:
    """Keep aside what the process before died of, if that is known; how cautious the first life
    has to be."""
    if not death.blame:
        log.warning("died at %s the last time; if it does again, that is passed over", death.at)
        return CAUTIOUS_TURNS if death.is_vague else 0
    suspect = marked(death.at)
    keep_aside(store, suspect, ProcessDied(death.blame), at)
    log.error(
        "%s: died at %s, which is passed over from now on (onyx dead show %s)\n%s",
        *(suspect.id, death.at, suspect.id, death.blame),
    )
    return 0


def _take_down(failure: CoreFailed, store: RowStore, at: float) -> int:
    """Keep the input aside; how cautious the next life has to be."""
    suspect, cause = failure.suspect, failure.__cause__ or failure
    if suspect is None:
        log.error("failed at an input that is not known; one at a time now", exc_info=cause)
        return CAUTIOUS_TURNS
    keep_aside(store, suspect, cause, at)
    log.error(
        "%s: failed at %s, which is kept aside and passed over from now on (onyx dead show %s)",
        *(suspect.id, suspect.what, suspect.id),
        exc_info=cause,
    )
    return 0


# -------------------------------------------------------------------------------------------------


READY = b"ready\n"
CAME_FURTHER = "{} {} {}\n"
PROGRESS_SECONDS = 0.5  # between two words of progress


def main(argv: Sequence[str] | None = None) -> int:
    """The child that the launcher starts; not for people."""
    parser = argparse.ArgumentParser(prog="python -m onyx.node_process")
    parser.add_argument("topology", type=Path, help="the resolved topology file")
    parser.add_argument("process", help="id of the broker or registration node, or ID/standby")
    parser.add_argument(
        "--listen-fds", type=int, nargs="*", help="without them: it binds its addresses itself"
    )
    parser.add_argument("--ready-fd", type=int, required=True)
    parser.add_argument("--lifeline-fd", type=int, required=True)
    parser.add_argument("--restarts", type=int, default=0, help="so often it was started again")
    parser.add_argument("--kept", action="store_true", help="it is started again when it ends")
    parser.add_argument("--credentials", type=Path, help="without it: no TLS")
    arguments = parser.parse_args(argv)
    try:
        topology = load_topology(arguments.topology)
        configure_logging(arguments.process, topology.log)
        trio.run(_run_child, topology, arguments)
    except (UserError, TopologyError, CredentialsError) as error:
        print(f"onyx: {error}", file=sys.stderr)
        return exit_code_of(error)
    return EXIT_OK


async def run_node_process(
    topology: Topology,
    process: NodeProcess,
    sockets: NodeSockets,
    credentials: Path | None,
    *,
    lifeline: int | None = None,
    read_file: Callable[[], Topology] | None = None,
    ready: Callable[[], None] = lambda: None,
    waiting: Callable[[], None] = lambda: None,
    progress: Progress = unsaid,
    tells_lost: bool = True,
    restarts: int = 0,
) -> None:
    """Run a node until a signal or the end of the lifeline stops it.

    At SIGHUP it takes of what ``read_file`` gives what it can while it runs (live_settings.py).
    ``sockets`` are bound, and are closed at the end; ``credentials`` is the file of
    its own (None: it runs without TLS), beside which are those ``revoked``; ``ready`` is called
    once, ``progress`` before that, now and then as the rows of the store are taken back.  Of a node
    and its standby one waits for the other, of which ``waiting`` is told, once; until then nobody
    is let in at its addresses, so that who tries one of these goes to the other.  A core
    that falls over at an input is made anew, and passes over it (node_process.py); so is what the
    process died of (node_process.py).  One whose store has less than it had ``tells_lost`` to
    whoever comes, for some seconds (node_process.py).
    DataDirectoryInUse when the node is running already, StoreUnusable when its store cannot be
    used, StoreGone when it has less than it had, LeaseLost when another process has taken it over,
    UserError without compiled modules.
    """
    topology, node_id = structs.replace(topology, metadata=()), process.node.id
    _say_start(process, topology.limits)
    if not AVAILABLE:
        raise UserError(str(KernelMissing()))
    shown = None if credentials is None else _load(credentials, topology, node_id)
    leave_survivors_alone()
    sys.setswitchinterval(SWITCH_SECONDS)
    directory = DataDirectory(topology.data_directory)
    with (
        sockets,
        directory.node_locked(process.name),
        watched_deaths(directory.node_directory(process.name)) as (mark, death),
    ):
        async with background_tasks(trio.open_nursery()) as nursery:
            nursery.start_soon(_heed_signals, nursery.cancel_scope)
            if lifeline is not None:
                nursery.start_soon(stop_at_end, lifeline, nursery.cancel_scope)
            vitals = _open_vitals(process, sockets, nursery, restarts)
            file = _File(topology, read_file)
            _follow_files(nursery, file, vitals, shown)
            has_standby = topology.node(node_id).has_standby
            waits = waiting if has_standby else _unheard
            told = _Told(node_id, vitals, ready, waits, progress)

            async def run_with_store() -> None:
                # A standby is to go on as soon as it may; what is wrong with a file is said first.
                load = partial(_runner, topology, node_id, shown)
                run = None if topology.node(node_id).store == SQLITE else load()
                opens = partial(open_store, topology, node_id)
                async with taken_store(opens, told.waiting) as store:
                    if store.epoch:
                        log.info("is %s from now on, epoch %d", node_id, store.epoch)
                    sockets.listen()
                    issuer = _issuer(topology, nursery)
                    run = run or load()

                    async def life(caution: int) -> None:
                        node = process.node
                        log.info("listening at %s, for links at %s", node.listen, node.links)
                        doors = doors_of(sockets, file.topology)  # which the life closes
                        of_node = file.topology, node_id, doors, store
                        bounds = node_limits(file.topology.limits, caution)
                        node_says = vitals.of_node(store, shown, time.time)
                        shell = ProcessorClock(), time.time, node_says, unsaid, log.info
                        around = Surroundings(*shell, caution, issuer, mark, store.epoch)
                        await run(*of_node, *told.reports(), bounds, shown, around, vitals)

                    await run_lives(life, store, RestartPolicy(), death=death)

            try:
                with store_errors():
                    await run_with_store()
            except StoreGone as error:
                if tells_lost and not has_standby:
                    log.error("%s", error)
                    vitals.hindrance = STORE_LOST
                    await tell_lost(sockets, topology, shown, node_id)
                raise


def _runner(
    topology: Topology, node_id: str, shown: Credentials | None
) -> Callable[..., Awaitable[None]]:
    """What a node runs, which takes a second to load."""
    with none_looked_for():
        if any(node.id == node_id for node in topology.registration):
            from registration.service import run_registration  # noqa: PLC0415

            if shown is None or not shown.is_beside_authority:
                return run_registration
            from onyx.identity.signing_process import sign  # noqa: PLC0415

            return partial(run_registration, sign=partial(sign, shown.path.parent))
        from onyx.broker.broker import run_broker  # noqa: PLC0415

    return run_broker


class _Told:
    """Who is told how far a process is: its vitals always, others the first time."""

    def __init__(
        self,
        node_id: str,
        vitals: Vitals,
        ready: Callable[[], None],
        waiting: Callable[[], None],
        progress: Progress,
    ) -> None:
        self._node_id = node_id
        self._vitals = vitals
        self._ready = ready
        self._waiting = waiting
        self._progress = progress
        self._is_ready = self._is_waiting = False
        self._came = StartProgress()

    def reports(self) -> tuple[Callable[[], None], Progress]:
        """``ready`` and ``progress`` of a life that begins."""
        self._vitals.hindrance = "it starts"
        self._came = StartProgress()
        return self.ready, _now_and_then(self.progress)

    def ready(self) -> None:
        leave_survivors_alone()
        self._vitals.hindrance = ""
        log.info("ready")
        if not self._is_ready:
            self._is_ready = True
            self._ready()

    def progress(self, what: str, done: int, total: int) -> None:
        self._came.note(what, done, total)
        log.info("%s", self._came)
        self._vitals.hindrance = f"it starts: {self._came}"
        if not self._is_ready:
            self._progress(what, done, total)

    def waiting(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._vitals.hindrance = f"another process is {self._node_id}"
            log.info("another process is %s; waiting to take its place", self._node_id)
            self._waiting()


def _unheard() -> None:
    pass


def _load(path: Path, topology: Topology, node_id: str) -> Credentials:
    """NotAuthenticated when they are those of another, CredentialsError."""
    found = Credentials(path, path.with_name("revoked"))
    principal = topology.principal(node_id)
    if found.principal != principal:
        raise NotAuthenticated(f"{path} is of {found.principal}; expected those of {principal}")
    if found.is_over:
        for said in found.warnings():
            log.error("%s", said)
        raise NotAuthenticated(
            f"{path}: the certificate is over; where the authority is, say onyx cert issue "
            f"{principal} --out FILE"
        )
    return found


def _issuer(topology: Topology, nursery: trio.Nursery) -> Callable[[str], Principal]:
    """Who says whose the tokens of the topology's ``[oidc]`` are."""
    if topology.oidc is None:
        return nobody
    # Who has no such tokens need not have PyJWT.
    from onyx.identity.oidc_issuer import OidcIssuer  # noqa: PLC0415

    issuer = OidcIssuer(topology.oidc)
    nursery.start_soon(issuer.run)
    return issuer.principal


def _open_vitals(
    process: NodeProcess, sockets: NodeSockets, nursery: trio.Nursery, restarts: int
) -> Vitals:
    """New ones, that whoever asks at the admin address is told, if the process has one."""
    about = convert({**who(), "started": time.time(), "restarts": restarts}, Node)
    vitals = Vitals(about, lambda settings: use_logs(settings.log))
    if process.admin_address is not None:
        # What a process without an admin address need not load.
        from onyx.telemetry.admin_server import open_admin  # noqa: PLC0415
        from onyx.telemetry.metrics import Metrics  # noqa: PLC0415

        at, metrics = process.admin_address, Metrics(process.name, vitals)
        vitals.admin = open_admin(nursery, at, metrics, lambda: vitals.hindrance, sockets.admin)
        log.info("metrics at http://%s/metrics", vitals.admin)
    return vitals


async def _run_child(topology: Topology, arguments: argparse.Namespace) -> None:
    process = process_of(topology, arguments.process)
    if arguments.listen_fds:
        sockets = NodeSockets(*(socket.socket(fileno=fd) for fd in arguments.listen_fds))
    else:
        sockets = bind_process(process, str(arguments.topology))
    is_told = False

    def tell_launcher() -> None:
        nonlocal is_told
        if not is_told:
            is_told = True
            os.write(arguments.ready_fd, READY)
            os.close(arguments.ready_fd)

    def tell_progress(what: str, done: int, total: int) -> None:
        if not is_told:
            os.write(arguments.ready_fd, CAME_FURTHER.format(what, done, total).encode())

    await run_node_process(
        topology,
        process,
        sockets,
        arguments.credentials,
        lifeline=arguments.lifeline_fd,
        read_file=partial(load_topology, arguments.topology),
        ready=tell_launcher,
        waiting=tell_launcher,
        progress=tell_progress,
        tells_lost=arguments.kept,
        restarts=arguments.restarts,
    )


def _now_and_then(progress: Progress) -> Progress:
    """The same, PROGRESS_SECONDS apart."""
    next_at = time.monotonic() + PROGRESS_SECONDS

    def say(what: str, done: int, total: int) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            next_at = time.monotonic() + PROGRESS_SECONDS
            progress(what, done, total)

    return say


async def _heed_signals(scope: trio.CancelScope) -> None:
    """SIGUSR1 makes the log say more, and again what it said."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1) as signals:
        async for number in signals:
            if number == signal.SIGUSR1:
                log.warning("the log is of level %s from now on", toggle_debug())
                continue
            log.info("stopping: %s", signal.Signals(number).name)
            scope.cancel()


@dataclass
class _File:
    """What a process was started with, and has taken of what it ``read`` since."""

    topology: Topology
    read: Callable[[], Topology] | None

    def take(self, wanted: Topology) -> tuple[list[str], list[str]]:
        self.topology, taken, left = with_live_settings(self.topology, wanted)
        return taken, left


def _follow_files(
    nursery: trio.Nursery, file: _File, vitals: Vitals, shown: Credentials | None
) -> None:
    """What changes while the process runs: that of the network, and its own credentials."""
    nursery.start_soon(_take_settings, file, vitals)
    if shown is not None and not shown.is_beside_authority:
        # What a process beside the authority need not load.
        from onyx.renewal import keep_renewed  # noqa: PLC0415

        where = file.topology.where(file.topology.registration[0].id)
        nursery.start_soon(keep_renewed, shown, where)


async def _take_settings(file: _File, vitals: Vitals) -> None:
    """Of the file, whenever there is a SIGHUP."""
    if file.read is None:
        return
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async for _ in signals:
            try:
                wanted = file.read()
            except TopologyError as error:
                log.error("nothing is changed: %s", error)
                continue
            changed = file.take(wanted)
            if vitals.core is not None:  # one to come is made with them
                changed = vitals.core.settings.take_file(wanted)
            if left := changed[1]:
                log.warning("takes a new start: %s", ", ".join(left))


def _say_start(process: NodeProcess, limits: Limits) -> None:
    """The first line of a log: which process it is of, and bounds that are not the usual ones."""
    found = {**who(), "node": process.name, "listens": str(process.node.listen)}
    bounds = _bounds(limits)
    log.info("starts", extra=found | dict(bounds.items() - _bounds(Limits()).items()))
    log.debug("all bounds", extra=bounds)


def _bounds(limits: Limits) -> dict[str, object]:
    found = asdict(limits).items()
    return {name: value for name, value in found if isinstance(value, int | float)}


if __name__ == "__main__":
    sys.exit(main())
