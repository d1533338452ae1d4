"""How long a registration service that has lost its disk takes to have its catalog from its
brokers (``onyx store rebuild``), and whether all of it is there."""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from onyx import RegistrationClient, User
from onyx.data_directory import DataDirectory
from tests.survival.separate_nodes import HERE, REGISTRATION, SeparateNodes

BROKERS = 3
SETTINGS = "[limits]\nprincipal_profiles_max = 1000000\n[planning]\nauto = false"


def measure_rebuild(report: Report, options: argparse.Namespace) -> None:
    """``rebuild_s``: from the command to when it says that the catalog is whole, with a new process
    of the service; WrongAnswers unless each profile is there as it was, and no id is given twice.
    """
    with tempfile.TemporaryDirectory() as directory:
        seconds, ready = trio.run(_measure, Path(directory), options.profiles)
    report.figure("rebuild_profiles", f"profiles at {BROKERS} brokers", options.profiles)
    report.figure("rebuild_s", "  until the catalog is rebuilt from these", seconds, "s")
    report.figure("rebuild_ready_s", "  of that, until the new process runs", ready, "s")


async def _measure(directory: Path, profiles: int) -> tuple[float, float]:
    with SeparateNodes(directory, BROKERS, limits=SETTINGS) as nodes:
        nodes.start(nodes.node_ids, HERE)
        await nodes.wait_ready()
        texts = [f'/n[@key = "{number}"]/part[. > {number % 100}]' for number in range(profiles)]
        async with User(nodes.registration, "ada") as user:
            async for batch in user.add_profiles(texts):
                if batch.refused:
                    raise WrongAnswers(f"rebuild: refused: {batch.refused}")
        before = await _listed(nodes)
        nodes.stop(REGISTRATION, signal.SIGKILL)
        shutil.rmtree(DataDirectory(nodes.data).node_directory(REGISTRATION))
        found = await trio.to_thread.run_sync(_rebuild, nodes)
        if await _listed(nodes) != before or len(before) != profiles:
            raise WrongAnswers(f"rebuild: {len(before)} profiles are not those that there were")
        async with User(nodes.registration, "ada") as user:
            added = await user.add_profile("//n")
        number = int(added.id[1:].partition("-")[0])
        if number != profiles + 1:
            raise WrongAnswers(f"rebuild: {added.id} is the id behind {profiles} profiles")
    return found


async def _listed(nodes: SeparateNodes) -> list[tuple[object, ...]]:
    async with RegistrationClient(nodes.registration) as registration:
        found = await registration.profiles(texts=True)
    return [(each.id, each.user, each.host, each.text, each.version) for each in found]


def _rebuild(nodes: SeparateNodes) -> tuple[float, float]:
    """Seconds until the catalog is whole, and of these until the service runs."""
    command = ["-m", "onyx", "store", "rebuild", str(nodes.file(REGISTRATION))]
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *command, "--data", str(nodes.data)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=HERE,
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the store is marked, and the service has to be started
        nodes.start([REGISTRATION], HERE)
        stdout = nodes.processes[REGISTRATION].stdout
        assert stdout is not None
        stdout.readline()
        ready = time.perf_counter() - began
        process.stderr.read()
    if process.returncode:
        raise WrongAnswers(f"rebuild: onyx store rebuild ended with {process.returncode}")
    return time.perf_counter() - began, ready
