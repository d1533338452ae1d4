"""Clusters of Spark whose workers, executors and drivers are killed, beside a network of Onyx.

A program with a session is told its job.  Each batch of Arrow that it reads writes into a pipe of
a few batches, and waits until the test has read them: so something is killed in the midst of a job,
at a step that the seed gives.  The sink of a stream is what its own log says that it has committed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import inf
from pathlib import Path
from random import Random
from select import select
from threading import Thread
from typing import IO, Any

import pytest
from lxml import etree
from msgspec import structs

from benchmarks.placement.scaling import descendants
from benchmarks.spark import spark_home
from onyx.blocking import DataSource, User
from overlay.planning import PlanningOptions
from registration.catalog import ProfileEntry
from registration.plan_questions import PlanMade, PlanWanted
from registration.planner_desk import PlannerDesk
from registration.planning.plan_file import from_json
from registration.spark.session import find_java, wrapped
from tests.onyx.networks import RunningProcess, small_topology_text
from tests.registration.test_auto_planning import TOPOLOGY

pytestmark = pytest.mark.skipif(
    "ONYX_KILLS" not in os.environ, reason="minutes: by hand, make campaign"
)

ROOT = Path(__file__).resolve().parents[3]
KILLS = int(os.environ.get("ONYX_KILLS", "2"))
SEED = int(os.environ.get("ONYX_KILLS_SEED", "1"))
STEP = 16 * 1024  # bytes in the pipe, which has room for 64 KiB
EXECUTOR = "CoarseGrainedExecutorBackend"
PROFILES = {"late": "/m[@n > 1500]", "third": "/m[@n mod 3 = 0]", "storm": "/m[contains(., 'st')]"}
MESSAGES = [f"<m n='{n}'><t>{'storm' if n % 7 else 'calm'}</t></m>" for n in range(2_000)]

PROGRAM = """\
import json, os, sys
import onyx.spark

job = json.loads(sys.argv[1])
LEAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": LEAST,
    "spark.executor.extraJavaOptions": LEAST,
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
    "spark.excludeOnFailure.enabled": "false",
}
pipe, step = job["pipe"], job["step"]

def stepping(batches):
    for batch in batches:
        with open(pipe, "wb", buffering=0) as file:
            file.write(bytes(step))
        yield batch

with onyx.spark.session(job["master"], SETTINGS) as spark:
    if "messages" in job:
        rows = list(enumerate(job["messages"]))
        frame = spark.createDataFrame(rows, "id int, message string").repartition(8)
        stepped = frame.mapInArrow(stepping, frame.schema)
        found = onyx.spark.filter(stepped, job["profiles"]).collect()
        print(json.dumps({row.id: sorted(row.profiles) for row in found}))
    else:
        stream = spark.readStream.format("onyx").options(**job["options"]).load()
        rows = stream.mapInArrow(stepping, stream.schema).writeStream.format("json")
        rows = rows.option("checkpointLocation", job["folder"] + "/checkpoint")
        query = rows.trigger(availableNow=True).start(job["folder"] + "/out")
        query.awaitTermination()
"""


class Job:
    """A program with a session on a cluster, in a process group of its own."""

    def __init__(self, master: str, folder: Path, **told: Any) -> None:
        pipe = folder / "pipe"
        if not pipe.exists():
            os.mkfifo(pipe)
        self._steps = os.open(pipe, os.O_RDWR)
        home = folder / "spark" if (folder / "spark").exists() else spark_home(folder)
        self._said = folder / "said"
        said = {"master": master, "pipe": str(pipe), "step": STEP, "folder": str(folder), **told}
        places = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
        with self._said.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps(said)],
                env={**os.environ, **places},
                cwd=folder,
                start_new_session=True,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def steps(self, number: float) -> None:
        """Let it go on for so many batches; fewer, where it ends before."""
        left = number * STEP
        end = os.pidfd_open(self.process.pid)
        while left > 0 and self._steps in select([self._steps, end], [], [])[0]:
            left -= len(os.read(self._steps, int(min(left, STEP))))
        os.close(end)

    def kill(self) -> None:
        _kill_group(self.process)
        self.process.communicate()
        os.close(self._steps)

    def finish(self) -> str:
        """What it prints in the end."""
        reader = Thread(target=self.steps, args=(inf,))
        reader.start()
        printed, _ = self.process.communicate()
        reader.join()
        os.close(self._steps)
        assert self.process.returncode == 0, self._said.read_text()[-5_000:]
        return printed


def executors() -> list[int]:
    """Of the jobs of this process."""
    return [int(pid) for pid in descendants() if EXECUTOR in _command(pid)]


def _command(pid: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


class Cluster:
    """A master and two workers with one executor each, started by hand on ports that the system
    chooses."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._home = spark_home(folder)
        java = wrapped(find_java(os.environ), folder / "java")
        self._environment = {**os.environ, "JAVA_HOME": str(java), "SPARK_LOCAL_IP": "127.0.0.1"}
        self._environment |= {"SPARK_HOME": str(self._home), "PYTHONPATH": ""}
        _, said = self._started("master.Master", "--port", "0")
        self.url = _awaited(said, r"Starting Spark master at (spark://\S+)")
        self.workers = []
        for number in range(2):
            cores = ("-c", "1", "-m", "1g", "-d", str(folder / f"work{number}"))
            worker, said = self._started("worker.Worker", *cores, self.url)
            _awaited(said, r"(Successfully registered with master)")
            self.workers.append(worker)

    def _started(self, name: str, *words: str) -> tuple[subprocess.Popen[str], IO[str]]:
        given = ("--host", "127.0.0.1", "--webui-port", "0")
        process = self._stack.enter_context(
            subprocess.Popen(
                [self._home / "bin/spark-class", f"org.apache.spark.deploy.{name}", *given, *words],
                env=self._environment,
                cwd=self._folder,
                start_new_session=True,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        self._stack.callback(_kill_group, process)
        assert process.stderr is not None
        return process, process.stderr


def _kill_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _awaited(said: IO[str], wanted: str) -> str:
    """The group of the first line that has it; the lines behind it are read by a thread."""
    for line in said:
        if found := re.search(wanted, line):
            Thread(target=lambda: [None for _ in said], daemon=True).start()
            return found[1]
    raise AssertionError(f"it ended without {wanted}")


@contextmanager
def hand_started(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The master's address, and a function that kills one worker with its executor."""
    with ExitStack() as stack:
        cluster = Cluster(folder, stack)
        yield cluster.url, lambda: _kill_group(cluster.workers[0])


@contextmanager
def local_cluster(_: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Two executors of the driver, of which one is killed."""
    yield "local-cluster[2,1,1024]", lambda: os.kill(executors()[0], signal.SIGKILL)


@pytest.fixture(params=[hand_started, local_cluster])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[str, Callable[[], None]]]:
    with request.param(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProcess]:
    directory = tmp_path_factory.mktemp("brokers")
    file = directory / "small.toml"
    file.write_text(small_topology_text(directory / "data", 2), encoding="utf-8")
    running = RunningProcess.start(file)
    yield running
    running.stop()


class Published:
    """Messages of a source that a profile gets, and the options of a stream of its results."""

    def __init__(self, brokers: RunningProcess, number: int) -> None:
        operator = Path(brokers.up["topology"]).parent / "identity" / "operator.pem"
        source = DataSource.register(brokers.registration)
        with User(brokers.registration) as user, source:
            profile = user.add_profile(f"/m[@of = '{source.id}']").id
            made = ((f"<m of='{source.id}' n='{n}'/>").encode() for n in range(number))
            assert all(one.accepted for one in source.publish_all(made))
        self.wanted = [(position, position - 1) for position in range(1, number + 1)]
        self.options = {
            "registration": brokers.registration,
            "credentials": str(operator),
            "profile": profile,
            "columns": "n int",
            "maxDeliveriesPerTrigger": "150",
        }


def committed(folder: Path) -> list[tuple[int, int]]:
    """Position and ``n`` of the rows in the sink, by its log."""
    files = set()
    for entry in (folder / "out" / "_spark_metadata").glob("[0-9]*"):
        files |= {json.loads(line)["path"] for line in entry.read_text().splitlines()[1:]}
    texts = (Path(file.removeprefix("file://")).read_text() for file in files)
    rows = (json.loads(line) for text in texts for line in text.splitlines())
    return sorted((row["position"], row["n"]) for row in rows)


async def test_a_planner_plans_on_a_master_of_its_own(tmp_path: Path) -> None:
    with hand_started(tmp_path) as (master, _):
        planning = PlanningOptions(master=master, conf={"spark.executor.memory": "512m"})
        topology = structs.replace(TOPOLOGY, data_directory=tmp_path, planning=planning)
        wanted = [ProfileEntry(f"p{n}", "ann", "B1", f"/m[@n = {n}]") for n in range(100)]
        answer = await PlannerDesk(topology).answer(PlanWanted(wanted, topology))
    assert isinstance(answer, PlanMade), answer
    facts = from_json(answer.text).facts
    assert (facts.load, facts.refused) == (100, 0)


def test_a_filter_finds_what_lxml_finds_though_a_worker_is_killed(
    cluster: tuple[str, Callable[[], None]], tmp_path: Path
) -> None:
    master, kill = cluster
    job = Job(master, tmp_path, messages=MESSAGES, profiles=PROFILES)
    job.steps(Random(SEED).randint(2, 12))
    kill()
    found = {int(number): names for number, names in json.loads(job.finish()).items()}
    paths = {name: etree.XPath(text) for name, text in PROFILES.items()}
    trees = enumerate(map(etree.fromstring, MESSAGES))
    assert found == {n: sorted(p for p, path in paths.items() if path(tree)) for n, tree in trees}


def test_results_are_in_the_sink_once_though_a_worker_is_killed(
    cluster: tuple[str, Callable[[], None]], brokers: RunningProcess, tmp_path: Path
) -> None:
    master, kill = cluster
    published = Published(brokers, 600)
    job = Job(master, tmp_path, options=published.options)
    job.steps(Random(SEED).randint(2, 6))
    kill()
    job.finish()
    assert committed(tmp_path) == published.wanted


def test_results_are_in_the_sink_once_though_drivers_are_killed(
    brokers: RunningProcess, tmp_path: Path
) -> None:
    """At a random step each, or within a second after it, when a batch is committed."""
    random = Random(SEED)
    print("seed", SEED)
    published = Published(brokers, 200 * KILLS)
    for _ in range(KILLS):
        job = Job("local[2]", tmp_path, options=published.options)
        job.steps(random.randint(0, 6))
        with suppress(subprocess.TimeoutExpired):
            job.process.wait(random.random())
        job.kill()
    Job("local[2]", tmp_path, options=published.options).finish()
    assert committed(tmp_path) == published.wanted
