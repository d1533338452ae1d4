"""``onyx up``: run a whole network, or one process of it, until interrupted."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from onyx.background import background_tasks
from onyx.beside import running_beside
from onyx.child_process import ChildProcess, describe_exit
from onyx.cli.gateway import listen_address
from onyx.cli.values import check_known, has_terminal, print_json
from onyx.cli.verb import Subparsers, add_arguments, add_verb
from onyx.data_directory import LOG_FILE, TOPOLOGY_FILE, DataDirectory
from onyx.errors import DataDirectoryError, UsageError
from onyx.gateway_child import check_gateway, gateway_lacks, running_gateway
from onyx.identity.network_identity import NetworkIdentity
from onyx.launcher import RunningNetwork, launch
from onyx.listening import NodeProcess, bind_process, process_of, processes_of
from onyx.local_network import FILE as LOCAL_FILE
from onyx.local_network import local_network
from onyx.logs import USUAL_LOGS, add_log_arguments, configure_logging, log_options
from onyx.release import lacks
from onyx.service_manager import tell_service_manager
from onyx.start_progress import StartProgress
from overlay.archive import ArchiveOptions
from overlay.gateway import DEFAULT_LISTEN, GatewayTable
from overlay.link.open_files import allow_connections
from overlay.link.stored_rows import INTERESTS, PROFILES, READ, ROWS
from overlay.nodes import Address, MetadataNode, standby_name
from overlay.plain_text import PlainStream
from overlay.state_directory import state_directory
from overlay.stores import SQLITE
from overlay.toml_table import read_record
from overlay.topology import PORT_MAX, Topology, TopologyError, load_topology

if TYPE_CHECKING:
    from onyx.cli.up_screen import UpScreen

# -------------------------------------------------------------------------------------------------
# A network whose data is where a former release would have looked for it is not begun anew.
#
# Until 0.1 the data directory was ``.onyx/NAME``, and a relative one in a file was relative to the
# working directory; now the one is in the account's state directory, the other relative to its
# file.


def check_former(topology: Topology, file: Path) -> None:
    """DataDirectoryError, with what to do, where there is data of before and none of now."""
    now = topology.data_directory.absolute()
    if (now / TOPOLOGY_FILE).exists():
        return
    if now == state_directory() / topology.name:
        former = Path(".onyx") / topology.name
    else:
        former = Path(os.path.relpath(now, file.absolute().parent))  # as the file has it
    if former.absolute() != now and (former / TOPOLOGY_FILE).exists():
        raise DataDirectoryError(
            f"{former} has the data of {topology.name}, as a former release kept it, and {now}, "
            f"where it is looked for now, has none; move it (mkdir -p {now.parent} && mv {former} "
            f"{now}), or say --data {former} each time"
        )


log = logging.getLogger("onyx.launcher")

DETAILS = """\
Every broker and the registration service is a process of its own. All addresses are
bound before the first one starts, so that a network comes up as a whole or not at all;
port 0 in the file stands for any free port. A process that dies is started again with
what it had on disk; one that fails again and again is tried later each time (after 30 s
at most), onyx status says so, and the others stay up. Ctrl-C (or SIGTERM) stops
everything.

SIGHUP has it read the file again: most limits, the bounds of archives and the level of the
log are in force at once, and what takes a new start is named. onyx topology apply FILE does
the same for all processes of the network, and changes brokers and links.

Beside the nodes run a gateway ([gateway] in the file, or --gateway) and providers of metadata
([[metadata]], docs/metadata.md), which are kept alive in the same way.

With --broker or --registration just that one process runs, at its own address: start
one on each machine, with the same file everywhere.

Every connection is TLS, and both ends show certificates. They are made in the data
directory, where onyx cert issues more; this account's clients find theirs by the
network's addresses. One process on another machine needs --credentials, a file from
onyx cert issue broker/ID. With --insecure there is none of that, on loopback only.

What must survive is in the data directory: data_directory of the file, relative to it, or
else ~/.local/state/onyx/NAME ($XDG_STATE_HOME/onyx/NAME); topology.toml in it is the network
as it runs, with every address. Data that a former release has left in .onyx/NAME is not
passed over: it is said how to go on with it.

With --archive (or [archive] in the file) every broker writes the messages that its
sources publish there into files of its own, which onyx backtest --archive reads: a
copy, bounded in size and age, that nobody waits for. What could not be written, say
because the disk is full, is counted by onyx status.

What processes have to say goes to standard error, a line an event, with the time in UTC
and the process (--log-format, --log-level). kill -USR1 PID lets one process say more,
and again what it said before. On a terminal one line says how far the start is, and then
where to look, how to stop, and what to try; all lines go to up.log in the data directory,
and only warnings are shown, unless --log-level, --log-format or [log] ask for them.

Exit code 78: the topology is refused or an address is taken, nothing was started;
75: the data directory is in use; 77: a process has no credentials; 70: a process failed
again and again before all were ready."""

EXAMPLES = """\
  onyx up                                         one broker at 127.0.0.1:7200, and a page
  onyx up --port 8200                             the same, at 8200, 8201 and 8300
  onyx up topologies/figure4.toml
  onyx up topologies/single.toml --data /var/lib/onyx
  onyx up topologies/figure4.toml --gateway       with a page to look at
  onyx up topologies/figure4.toml --archive news --archive-share 0.1
  onyx up topologies/figure4.toml --broker B4     only B4, as on a machine of its own
  onyx up topologies/figure4.toml --broker B4 --credentials B4.pem     on another machine
"""


def add_parser(subparsers: Subparsers) -> None:
    file = "a topology file (default: one broker on this machine)"
    parser = add_verb(
        *(subparsers, "up", "", run, {"file [TOPOLOGY]": file}), details=DETAILS, examples=EXAMPLES
    )
    one = {
        "--broker ID": "run only this broker",
        "--registration": "run only the registration service",
    }
    add_arguments(parser.add_mutually_exclusive_group(), one)
    one_or_all = {
        "--standby": "of the one process: the standby that it has",
        "--port N": "of the registration service, with the others as far from it as in the file",
    }
    add_arguments(parser, one_or_all, {"port": _port})
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--credentials",
        metavar="FILE",
        dest="node_credentials",
        type=Path,
        help="of the one process, from onyx cert issue (default: from the data directory)",
    )
    insecure = "without TLS, on loopback only"
    add_arguments(how, {"--insecure": insecure})
    parser.add_argument(
        "--gateway",
        metavar="HOST:PORT",
        nargs="?",
        const="",
        help=f"serve HTTP and pages there (default: that of [gateway], or {DEFAULT_LISTEN})",
    )
    kept = {
        "--data DIR": "the data directory",
        "--archive DIR": "keep the messages that are published",
        "--archive-share SHARE": "of the messages (default: 1)",
        "--archive-bytes N": "remove the oldest files of a larger archive (default: 10 GiB)",
        "--archive-days DAYS": "remove older files (default: 30)",
        "--json": "print what happens as JSON, one object a line",
    }
    add_arguments(parser, kept, {"archive_share": float})
    add_log_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run the network or the process; returns when it was told to stop."""
    if arguments.file is None:
        page = None if gateway_lacks() else GatewayTable()
        arguments.file, topology = Path(LOCAL_FILE), replace(local_network(), gateway=page)
    else:
        topology = load_topology(arguments.file)
    stores = {each.node.store for each in processes_of(topology)}
    stores |= {each.store for each in topology.metadata}
    if stores != {SQLITE} and (reason := lacks("postgres", psycopg="psycopg")):
        raise TopologyError(str(arguments.file), "stores", reason)
    if topology.oidc is not None and (reason := lacks("oidc", jwt="PyJWT")):
        raise TopologyError(str(arguments.file), "oidc", reason)
    if arguments.data is not None:
        topology = replace(topology, data_directory=arguments.data)
    else:
        check_former(topology, arguments.file)
    topology = _as_said(topology, arguments)
    gateway = _gateway(topology.gateway, arguments)
    topology = replace(topology, gateway=None)  # no node need know of it
    if arguments.broker is None and not arguments.registration:
        if arguments.standby:
            raise UsageError("--standby is of one node: say --broker or --registration")
        if arguments.node_credentials is not None:
            raise UsageError("--credentials is for one process: say --broker or --registration")
        trio.run(_run_network, topology, gateway, arguments)
    else:
        if arguments.port is not None:
            raise UsageError("--port is of a whole network: of one process the file says it")
        node_id = _node_id(topology, arguments)
        if arguments.standby and not topology.node(node_id).has_standby:
            raise UsageError(f"--standby: {node_id} has none, expected standby in {arguments.file}")
        trio.run(_run_one, topology, node_id, arguments)
    if arguments.json:
        print_json({"event": "stopped"})


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= PORT_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is no port, expected 0 to {PORT_MAX}")
    return int(text)


def _as_said(file: Topology, arguments: argparse.Namespace) -> Topology:
    """The file with what the command line says differently."""
    archive, log_ = _archive(file.archive, arguments), log_options(arguments, file.log)
    gateway = file.gateway or (None if arguments.gateway is None else GatewayTable())
    said = replace(file, archive=archive, log=log_, gateway=gateway)
    if arguments.port is None:
        return said
    try:
        return said.at_port(arguments.port)
    except TopologyError as error:
        raise UsageError(f"--port {arguments.port}: {error}") from None


def _archive(options: ArchiveOptions, arguments: argparse.Namespace) -> ArchiveOptions:
    """The file's archive with what the command line says differently."""
    given = {
        "directory": arguments.archive and arguments.archive.absolute(),
        "share": arguments.archive_share,
        "bytes_max": arguments.archive_bytes,
        "days_max": arguments.archive_days,
    }
    said = {name: value for name, value in given.items() if value is not None}
    if said and arguments.archive is None and options.directory is None:
        raise UsageError("there is no archive: say --archive DIR, or [archive] in the file")
    try:
        read_record({**said, "directory": "of the option"}, ArchiveOptions, "", "archive")
    except TopologyError as error:
        option = "--" + error.key.replace(".", "-").removesuffix("_max")
        raise UsageError(f"{option}: {error.reason}") from None
    return replace(options, **said)


def _gateway(found: GatewayTable | None, arguments: argparse.Namespace) -> GatewayTable | None:
    """The gateway, where the command line says; None: there shall be none."""
    if found is None:
        return None
    if arguments.gateway:
        found = replace(found, listen=listen_address(arguments.gateway, "--gateway"))
    check_gateway(found, str(arguments.file))
    return found


async def _run_network(
    topology: Topology, gateway: GatewayTable | None, arguments: argparse.Namespace
) -> None:
    screen = _screen(topology, arguments)
    configure_logging("launcher", topology.log, screen)
    count = len([*processes_of(topology)]) + len(topology.metadata) + (gateway is not None)
    events, file = _Events(arguments.json, screen, count), str(arguments.file)
    with (
        nullcontext() if screen is None else closing(screen),
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        async with trio.open_nursery() as nursery:

            async def stop_at_signal() -> None:
                async for _ in signals:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(stop_at_signal)
            had_terminal = has_terminal()
            async with (
                launch(
                    topology,
                    file=file,
                    gateway=gateway,
                    report=events.process_event,
                    write_line=None if screen is None else screen.write_line,
                    is_secure=not arguments.insecure,
                ) as network,
                AsyncExitStack() as stack,
            ):
                for each in network.topology.metadata:
                    name, words = f"metadata/{each.name}", _provider(network, each)
                    run = running_beside(network, name, words, events.process_event)
                    await stack.enter_async_context(run)
                page = None
                if gateway is not None:
                    serve = running_gateway(network, gateway, events.process_event)
                    page = await stack.enter_async_context(serve)
                events.network_is_up(network, page)
                with trio.open_signal_receiver(signal.SIGHUP) as hangups:
                    async for _ in hangups:
                        if had_terminal and not has_terminal():
                            break  # it was closed
                        _take_settings(network, gateway, arguments, events)
                nursery.cancel_scope.cancel()


def _screen(topology: Topology, arguments: argparse.Namespace) -> UpScreen | None:
    """None: what happens is said in lines alone, as for other programs."""
    if arguments.json or not all(isinstance(to, PlainStream) for to in (sys.stdout, sys.stderr)):
        return None
    # What no other verb need load.
    from onyx.cli.up_screen import UpScreen  # noqa: PLC0415

    assert isinstance(sys.stderr, PlainStream)
    is_asked_for = arguments.log_level or arguments.log_format or topology.log != USUAL_LOGS
    log_file = DataDirectory(topology.data_directory).path / LOG_FILE
    return UpScreen(sys.stderr, log_file, shows_all=bool(is_asked_for))


def _provider(network: RunningNetwork, node: MetadataNode) -> list[str]:
    """The command of a provider of metadata; as the operator where it asks others."""
    file, name, topology = network.topology_file, node.name, network.topology
    directory = DataDirectory(file.parent).provider_directory(name)
    identity, admin = network.identity, topology.admin
    joined = {each.member for each in topology.metadata}
    asks = node.network or node.member or name in joined
    options = [
        ("--name", name),
        ("--store", node.store),
        ("--topology", file),
        ("--credentials", identity.client if asks else identity.credentials_of_source(name)),
        ("--with", node.member),
        ("--admin", admin and Address(admin.host, 0)),
        *(("--prefix", prefix) for prefix in node.prefixes),
    ]
    words = [str(word) for option in options if option[1] is not None for word in option]
    return ["onyx", "metadata", "serve", str(directory), *words, *["--network"] * node.network]


def _wiring(topology: Topology) -> object:
    return set(topology.broker_ids), {frozenset(link.ends) for link in topology.links}


def _take_settings(
    network: RunningNetwork,
    gateway: GatewayTable | None,
    arguments: argparse.Namespace,
    events: _Events,
) -> None:
    """Of the file, as it is by now."""
    try:
        if arguments.file == Path(LOCAL_FILE):
            raise TopologyError(LOCAL_FILE, "", "there is no topology file to read again")
        wanted = _as_said(load_topology(arguments.file), arguments)
        page = _gateway(wanted.gateway, arguments)
        allow_connections(wanted.limits, len(wanted.brokers), str(arguments.file))
    except (TopologyError, UsageError) as error:
        log.error("nothing is changed: %s", error)
        return
    taken, left = network.take_settings(wanted)
    if page != gateway:
        left.append("gateway")
    now = network.topology
    if wanted.with_trial_store(now.stores.url).metadata != now.metadata:
        left.append("metadata")
    if _wiring(network.topology) != _wiring(wanted):
        left.append("broker, link: by onyx topology apply")
    events.settings_are_taken(taken, left)


async def _run_one(topology: Topology, node_id: str, arguments: argparse.Namespace) -> None:
    # The engine takes long to load, and every other verb loads this module.
    from onyx.node_process import run_node_process  # noqa: PLC0415

    file = str(arguments.file)
    allow_connections(topology.limits, len(topology.brokers), file)
    if topology.has_trial_store:
        reason = '"trial" is started with the whole network, expected "postgresql://..." for one'
        raise TopologyError(file, "store", f"{reason} process")
    for process in processes_of(topology):
        listen, links = process.node.listen, process.node.links
        if not (listen.port and links.port):
            address, key = (links, process.keys[1]) if listen.port else (listen, process.keys[0])
            raise TopologyError(
                file,
                key,
                f'"{address}": port 0 cannot be found by processes that are started '
                "one by one; give a port, or the "
                f"{DataDirectory(topology.data_directory).topology_file.name} that onyx up writes "
                "into the data directory",
            )
    topology = replace(topology, data_directory=DataDirectory(topology.data_directory).path)
    process = process_of(topology, standby_name(node_id) if arguments.standby else node_id)
    sockets = bind_process(process, file)
    configure_logging(process.name, topology.log)
    events = _Events(arguments.json)
    with sockets:
        async with background_tasks(trio.open_nursery()) as nursery:
            credentials = arguments.node_credentials
            if credentials is None:
                identity = NetworkIdentity(
                    DataDirectory(topology.data_directory).identity,
                    topology,
                    is_secure=not arguments.insecure,
                    may_make=arguments.registration,
                    file=file,
                )
                credentials = identity.credentials_of(topology, node_id)
                identity.note(topology)
                nursery.start_soon(identity.keep_valid)
            await run_node_process(
                *(topology, process, sockets, credentials),
                ready=lambda: events.node_is_ready(topology, process),
                progress=lambda *reached: events.node_starts(process, *reached),
                waiting=lambda: events.node_waits(topology, process),
                read_file=lambda: _as_said(load_topology(arguments.file), arguments),
            )


def _node_id(topology: Topology, arguments: argparse.Namespace) -> str:
    if arguments.registration:
        return topology.registration[0].id
    of = f"broker of {arguments.file}"
    return check_known(arguments.broker, topology.broker_ids, "--broker", of)


class _Events:
    """Says what happens: on a screen, in sentences, or as a JSON object a line."""

    def __init__(self, as_json: bool, screen: UpScreen | None = None, count: int = 1) -> None:
        """``count``: of the processes that are started."""
        self._as_json = as_json
        self._screen = screen
        self._count = count
        self._ready: set[str] = set()
        self._is_up = False
        self._came = StartProgress()

    def network_is_up(self, network: RunningNetwork, page: str | None) -> None:
        self._is_up = True
        topology = network.topology
        providers = [each.name for each in topology.metadata]
        tell_service_manager(f"the network {topology.name} is up", is_ready=True)
        if self._as_json:
            addresses = {id_: topology.where(id_) for id_ in topology.broker_ids}
            print_json(
                {
                    "event": "up",
                    "name": topology.name,
                    "registration": network.registration,
                    "brokers": addresses,
                    "pids": dict(network.pids),
                    "topology": str(network.topology_file),
                    **({} if page is None else {"gateway": page}),
                    **({"metadata": providers} if providers else {}),
                }
            )
            return
        if self._screen is None:
            print(_table(network, page))
            return
        self._screen.show_progress("")
        print(_next_steps(network, page), flush=True)

    def settings_are_taken(self, taken: list[str], left: list[str]) -> None:
        if self._as_json:
            print_json({"event": "settings", "taken": taken, "takes_a_start": left})
            return
        log.info("in force from now on: %s", ", ".join(taken) or "nothing that has changed")
        if left:
            log.warning("takes a new start of the network: %s", ", ".join(left))

    def node_starts(self, process: NodeProcess, what: str, done: int, total: int) -> None:
        self._came.note(what, done, total)
        tell_service_manager(f"{process.name} starts: {self._came}")

    def node_is_ready(self, topology: Topology, process: NodeProcess) -> None:
        self._say_of(topology, process, "ready", "is ready")

    def node_waits(self, topology: Topology, process: NodeProcess) -> None:
        self._say_of(topology, process, "waiting", "waits to take the place of the other process")

    def _say_of(self, topology: Topology, process: NodeProcess, event: str, sentence: str) -> None:
        name, address = process.name, str(process.node.listen)
        tell_service_manager(f"{name} {sentence} at {address}", is_ready=True)
        if self._as_json:
            print_json({"event": event, "node": name, "address": address, "pid": os.getpid()})
        else:
            print(f"{name} of {topology.name} {sentence} at {address}; Ctrl-C stops it", flush=True)

    def process_event(self, event: str, child: ChildProcess) -> None:
        """In the life of a child; while the network comes up only deaths are news, and how far it
        is."""
        if self._screen is not None and not self._is_up:
            self._show_progress(self._screen, event, child)
            if event == "restoring":
                return
        if not self._is_up and event not in ("died", "restoring"):
            return
        if self._as_json:
            facts: dict[str, object] = {"event": event, "node": child.node_id}
            facts["pid"] = child.pid
            if event == "died":
                facts["exit_code"] = child.exit_code
                facts["failures"] = child.failures
                facts["again_seconds"] = child.pause_seconds
            elif event == "restoring":
                reached = child.came.reached
                facts["restored"], facts["rows"] = reached.get(ROWS, (0, 0))
                facts["read"] = reached.get(READ, (0, 0))[0]
                facts.update({what: reached.get(what, (0, 0)) for what in (PROFILES, INTERESTS)})
            print_json(facts)
            return
        pause = f" in {child.pause_seconds:g} s, the others stay up"
        again = pause if child.failures > 1 or child.pause_seconds >= 1 else ""
        died = f"{child.node_id} died ({describe_exit(child.exit_code)}); starting it again{again}"
        text = {
            "died": died,
            "started": f"{child.node_id} is started again, process {child.pid}",
            "restoring": f"{child.node_id} starts: {child.came}",
            "ready": f"{child.node_id} is ready again",
        }[event]
        log.log(logging.WARNING if event == "died" else logging.INFO, "%s", text)

    def _show_progress(self, screen: UpScreen, event: str, child: ChildProcess) -> None:
        if event == "ready":
            self._ready.add(child.node_id)
        elif event == "died":
            self._ready.discard(child.node_id)
        said = f"{len(self._ready)} of {self._count} processes are ready"
        more = f"; {child.node_id} starts: {child.came}" if event == "restoring" else ""
        screen.show_progress(f"onyx: {said}{more}")


def _next_steps(network: RunningNetwork, page: str | None) -> str:
    """For people."""
    directory, at = network.topology_file.parent, f"--registration {network.registration}"
    look = f"onyx status {at}" if page is None else f"{page}  (or onyx status {at})"
    export = f"export ONYX_REGISTRATION={network.registration}"
    return f"""\
The network {network.topology.name} is up.

Look:  {look}
Stop:  Ctrl-C; its data stay in {directory}, with the log ({LOG_FILE})
Try:   {export}; echo '//title' | onyx profile add - --wait"""


def _table(network: RunningNetwork, page: str | None) -> str:
    topology = network.topology
    providers = [each.name for each in topology.metadata]
    labels = {broker.id: broker.label for broker in topology.brokers}
    rows = [
        (each.name, str(each.node.listen), labels.get(each.node.id, "registration service"))
        for each in processes_of(topology)
    ]
    id_width = max(len(row[0]) for row in rows)
    address_width = max(len(row[1]) for row in rows)
    lines = [f"The network {topology.name} is up.", ""]
    for node_id, address, what in rows:
        line = f"  {node_id:<{id_width}}  {address:<{address_width}}  {what}"
        lines.append(line.rstrip())
    lines += [
        "",
        f"Sources and users:  export ONYX_REGISTRATION={network.registration}",
        *([] if page is None else [f"A page to look at:  {page}"]),
        *([f"Metadata:           {', '.join(providers)}"] if providers else []),
        f"Data:               {topology.data_directory}",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)
