"""PeerProcess: another broker that runs in a directory of its own, on ports of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from benchmarks.benchmark import BenchmarkError
from benchmarks.network.processor import disk_bytes, processes, settled_processor_seconds

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Program:
    """How a broker is started: with ``options`` and ``environment``, beside ``files`` in its
    directory and a process of ``beside``; {port}, {second_port}, {third_port} and {directory} are
    put in.  It is looked for in ``places`` before the path; it ``needs`` files."""

    name: str
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    beside: Sequence[str] = ()
    places: Sequence[str] = ()
    needs: Sequence[str] = ()

    def found(self) -> str | None:
        """Its path, if it is installed; what runs beside it too."""
        if self.beside and shutil.which(self.beside[0]) is None:
            return None
        if not all(Path(file).exists() for file in self.needs):
            return None
        path = os.pathsep.join([*self.places, os.environ.get("PATH", os.defpath)])
        return shutil.which(self.name, path=path)


class PeerProcess:
    """A broker that answers on ``port``."""

    def __init__(self, pid: int, port: int, directory: Path) -> None:
        self.pid = pid
        self.port = port
        self._directory = directory

    async def processor_seconds(self) -> float:
        """Of all its processes; waits until they have nothing to do."""
        return await settled_processor_seconds(self.pid)

    def disk_bytes(self) -> int:
        """All that it has written."""
        return disk_bytes(self._directory)


@asynccontextmanager
async def peer_process(program: Program, directory: Path) -> AsyncIterator[PeerProcess]:
    """A new one, without messages; ended with the block."""
    port, second, third = _free_ports(3)
    values = {"port": port, "second_port": second, "third_port": third, "directory": directory}

    def put_in(texts: Sequence[str]) -> list[str]:
        return [text.format_map(values) for text in texts]

    directory.mkdir(parents=True)
    for name, text in program.files.items():
        (directory / name).write_text(text.format_map(values), encoding="utf-8")
        (directory / name).chmod(0o400)
    environment = {name: text.format_map(values) for name, text in program.environment.items()}
    command = [program.found() or program.name, *put_in(program.options)]
    log = directory / "output"
    async with trio.open_nursery() as nursery:
        if program.beside:
            await nursery.start(_run, put_in(program.beside), environment, log)
        pid = await nursery.start(_run, command, environment, log)
        with trio.move_on_after(_START_SECONDS) as patience:
            while not await _answers(port):
                await trio.sleep(_LOOK_SECONDS)
        if patience.cancelled_caught:
            raise BenchmarkError(f"{program.name} did not answer within {_START_SECONDS:g} s")
        yield PeerProcess(pid, port, directory)
        nursery.cancel_scope.cancel()


async def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    task_status: trio.TaskStatus[int],
) -> None:
    """A process that is not to end by itself; killed with those below it."""
    with log.open("ab") as output:
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env={**os.environ, **environment},
            process_group=0,
        )
    task_status.started(process.pid)
    try:
        await process.wait()
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                for pid in processes(process.pid):
                    os.kill(pid, signal.SIGKILL)
                await process.wait()
    raise BenchmarkError(f"{command[0]} has ended: exit code {process.returncode}")


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)
        ]
        return [server.getsockname()[1] for server in servers]


async def _answers(port: int) -> bool:
    try:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True
