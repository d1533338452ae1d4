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
import time
from collections import Counter
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

from benchmarks.placement.scaling import descendants
from benchmarks.spark import spark_home
from onyx.blocking import DataSource, User
from registration.spark.session import find_java, wrapped
from tests.onyx.networks import RunningProcess, small_topology_text

pytestmark = pytest.mark.skipif(
    "ONYX_KILLS" not in os.environ, reason="minutes: by hand, make campaign"
)

ROOT = Path(__file__).resolve().parents[3]
KILLS = int(os.environ.get("ONYX_KILLS", "2"))
SEED = int(os.environ.get("ONYX_KILLS_SEED", "1"))
SECONDS = float(os.environ.get("ONYX_KILLS_SECONDS", "inf"))  # of the kills of one test
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
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "100",
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
        query = rows.trigger(**job["trigger"]).start(job["folder"] + "/out")
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

    def kill_executor(self) -> None:
        """The first; wait for it, where the driver is about to start one."""
        while not (found := executors()):
            time.sleep(0.1)
        os.kill(found[0], signal.SIGKILL)

    def kill(self) -> None:
        for pid in executors():  # which are in groups of their own
            os.kill(pid, signal.SIGKILL)
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


ALL = {"availableNow": True}


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
        self._brokers, self._number = brokers, 0
        self.source = DataSource.register(brokers.registration)
        with User(brokers.registration) as user:
            profile = user.add_profile(f"/m[@of = '{self.source.id}']").id
        self.more(number)
        self.options = {
            "registration": brokers.registration,
            "credentials": str(operator),
            "profile": profile,
            "columns": "n int",
            "maxDeliveriesPerTrigger": "150",
        }

    def more(self, number: int) -> None:
        numbers = range(self._number, self._number + number)
        made = (f"<m of='{self.source.id}' n='{n}'/>".encode() for n in numbers)
        with self.source:
            assert all(one.accepted for one in self.source.publish_all(made))
        self._number += number

    @property
    def wanted(self) -> list[tuple[int, int]]:
        return [(position, position - 1) for position in range(1, self._number + 1)]


def committed(folder: Path) -> list[tuple[int, int]]:
    """Position and ``n`` of the rows in the sink, by its log."""
    files = set()
    for entry in (folder / "out" / "_spark_metadata").glob("[0-9]*"):
        files |= {json.loads(line)["path"] for line in entry.read_text().splitlines()[1:]}
    texts = (Path(file.removeprefix("file://")).read_text() for file in files)
    rows = (json.loads(line) for text in texts for line in text.splitlines())
    return sorted((row["position"], row["n"]) for row in rows)


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
    job = Job(master, tmp_path, options=published.options, trigger=ALL)
    job.steps(Random(SEED).randint(2, 6))
    kill()
    job.finish()
    assert committed(tmp_path) == published.wanted


@pytest.mark.parametrize(
    ("master", "victim", "brokers_each"),
    [("local[2,100]", "driver", 7), ("local-cluster[1,1,1024]", "executor", 3)],
)
def test_results_are_in_the_sink_once_though_all_are_killed_again_and_again(
    master: str, victim: str, brokers_each: int, brokers: RunningProcess, tmp_path: Path
) -> None:
    """For each kill of the victim so many are of a broker, which costs less to start: at a random
    step each, or within a second after it, when a batch is committed."""
    random, kills = Random(SEED), Counter[str]()
    published = Published(brokers, 300)
    asked = {"options": published.options, "trigger": {"processingTime": "0 seconds"}}
    job = Job(master, tmp_path, **asked)
    end = time.monotonic() + SECONDS
    while kills.total() < KILLS and time.monotonic() < end:
        published.more(300)
        job.steps(random.randint(0, 6))
        with suppress(subprocess.TimeoutExpired):
            job.process.wait(random.random())
        (killed,) = random.choices([victim, "broker"], [1, brokers_each])
        if job.process.returncode is not None:
            killed = "ended"  # the JVM waits ten seconds for a process of Python, however busy
        if killed in ("driver", "ended"):
            job.kill()
            job = Job(master, tmp_path, **asked)
        elif killed == "executor":
            job.kill_executor()
        else:
            brokers.kill(f"B{random.randint(1, 2)}")
        kills[killed] += 1
        print(f"{time.ctime()}, seed {SEED}: {dict(kills)}", flush=True)
    job.kill()
    Job("local[2]", tmp_path, options=published.options, trigger=ALL).finish()
    found = Counter(committed(tmp_path))
    lost = set(published.wanted) - found.keys()
    doubled = {row: count for row, count in found.items() if count > 1}
    assert (lost, doubled) == (set(), {}), f"seed {SEED}: {dict(kills)}"
    assert len(found) == len(published.wanted)
