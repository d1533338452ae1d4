"""Figure 1 as a network of processes: A and B, each behind a port at which a test looks on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.parquet as pq

from demo.queries.figure1 import free_ports, make
from onyx.queries.functions import digest_of, pack
from registration.queries.providers import NAMESPACE
from tests.hanging import SAFETY_SECONDS

ROWS = 60
PAGES = 1_000
PAGE = b"a page of U "
"""A page is 10,000 of it, so that nothing in front of its rows is taken for one."""
Seen = Callable[[bytes, bool], bool]
"""Is given each piece that passes, and whether it is an answer; False: the connection breaks."""

FIGURE = "http://objectglobe.example/figure1#"
_MORE = f"""
@prefix f: <{FIGURE}> . @prefix q: <{NAMESPACE}> .
f:U a q:Relation ; q:name "U" ; q:provider f:A ; q:readAt f:A, f:B ; q:format "parquet" ;
    q:location "{{folder}}/U.parquet" ; q:schema "id INT, page BINARY" .
f:hold a q:Function ; q:name "hold" ; q:provider f:F ; q:kind "scalar" ;
    q:signature "(id INT) -> INT" ; q:archive "hold.zip" ; q:digest "{{digest}}" .
f:hold-at-b a q:Flow ; q:what f:hold ; q:to f:B .
"""


class Passing:
    """A port in front of a provider."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.seen: Seen = lambda data, is_answer: True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                asking, _ = self._listener.accept()
                try:
                    asked = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    asking.close()
                    continue
                for ends in ((asking, asked, False), (asked, asking, True)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, is_answer: bool) -> None:
        with one, other:
            with suppress(OSError):
                while (data := one.recv(1 << 16)) and self.seen(data, is_answer):
                    other.sendall(data)
            for each in (one, other):  # so that the thread of the other way ends
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


class Network:
    """``catalog``: of the asking process.  Everybody reaches a provider by its port in front.

    Beside the demo's functions B has ``hold``, which gives nothing for ten minutes; beside its
    relations there is ``A.U`` of PAGES pages, which A and B both read."""

    def __init__(self, folder: Path) -> None:
        self.ports = dict(zip("AB", free_ports(), strict=True))
        self.in_front = {name: Passing(port) for name, port in self.ports.items()}
        self.processes: dict[str, subprocess.Popen[str]] = {}
        seen = {name: each.port for name, each in self.in_front.items()}
        self._catalogs = {
            name: self._made(folder / name, {**seen, name: self.ports[name]}) for name in "AB"
        }
        self.catalog = self._made(folder / "client", seen)

    @staticmethod
    def _made(folder: Path, ports: dict[str, int]) -> Path:
        catalog = make(folder, ROWS, (ports["A"], ports["B"]))
        source = folder / "hold"
        source.mkdir()
        facts = {"name": "hold", "kind": "scalar", "signature": "(id INT) -> INT"}
        (source / "function.json").write_text(json.dumps({**facts, "entry": "code:run"}))
        (source / "code.py").write_text("import time\n\n\ndef run(ids):\n    time.sleep(600)\n")
        packed = pack(source)
        (folder / "functions" / "hold.zip").write_bytes(packed)
        pages = {"id": pa.array(range(PAGES), pa.int32()), "page": [PAGE * 10_000] * PAGES}
        pq.write_table(pa.table(pages), folder / "U.parquet")
        with catalog.open("a") as file:
            file.write(_MORE.format(digest=digest_of(packed), folder=folder))
        return catalog

    def up(self, names: str) -> None:
        """These providers are at work; who was killed is started again."""
        for each in self.in_front.values():
            each.seen = lambda data, is_answer: True
        begun = []
        for name in names:
            found = self.processes.get(name)
            if found is None or found.poll() is not None:
                if found is not None and found.stdout is not None:
                    found.stdout.close()
                command = ["provider", "serve", str(self._catalogs[name]), name, "--insecure"]
                self.processes[name] = subprocess.Popen(
                    [sys.executable, "-m", "onyx", *command], text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                begun.append(self.processes[name])
        for process in begun:
            assert process.stdout is not None
            assert any("ready" in line for line in process.stdout)

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def functions_of(self, process: int) -> list[int]:
        """The processes of functions below a process."""
        return [
            each
            for each, command in _commands()
            if b"sandbox_process" in command and process in _above(each)
        ]

    def connections(self) -> int:
        """That are open to providers, through the ports in front."""
        ports = {f"{each.port:04X}" for each in self.in_front.values()}
        found = 0
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, one, other, state, *_ = line.split()
            ends = {one.rpartition(":")[2], other.rpartition(":")[2]}
            found += state == "01" and not ends.isdisjoint(ports)
        return found

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        for each in self.in_front.values():
            each.close()


@contextmanager
def network(folder: Path) -> Iterator[Network]:
    found = Network(folder)
    try:
        yield found
    finally:
        found.close()


def until(is_so: Callable[[], bool], reason: str) -> None:
    """Look until it is so."""
    given_up = monotonic() + SAFETY_SECONDS
    while not is_so():
        assert monotonic() < given_up, reason
        sleep(0.05)


def group_is_gone(group: int) -> bool:
    """Whether no process of a group of processes is left."""
    with suppress(ChildProcessError):  # orphans of tests are this process's to wait for
        os.waitpid(-group, os.WNOHANG)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def _commands() -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes()


def _above(process: int) -> Iterator[int]:
    """The processes above one."""
    with suppress(OSError):
        while process > 1:
            stat = Path(f"/proc/{process}/stat").read_text()
            process = int(stat.rpartition(")")[2].split()[1])
            yield process
