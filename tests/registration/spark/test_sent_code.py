"""Which Onyx runs at a worker of a cluster: what was sent, or its own of the same build."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest

from benchmarks.spark import spark_home
from onyx.spark.data_source import ArchiveReader, _Asked
from registration.catalog import ProfileEntry
from registration.plan_questions import PROFILES_FILE, TASK_FILE, PlanWanted
from registration.planner_desk import PlannerDesk, _write_profiles
from registration.planning.plan_file import from_json
from registration.spark.sent_code import FOLDER, PACKAGES, UNFIT, pack
from tests.registration.test_auto_planning import TOPOLOGY

ROOT = Path(__file__).resolve().parents[3]
RUN = """\
import sys
sys.path.insert(1, sys.argv[1])
from yfilter import Matcher
import formats
print(formats.__file__, formats.build_info())
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is sent."""
    file = tmp_path_factory.mktemp("packed") / "code.zip"
    pack(ROOT, file)
    return file


@pytest.fixture
def sent(packed: Path, tmp_path: Path) -> Path:
    """The code as Spark unpacks it at a worker."""
    with ZipFile(packed) as archive:
        archive.extractall(tmp_path / FOLDER)
    return tmp_path / FOLDER


def at_worker(sent: Path, own: Path | None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that has ``own`` code on its path, and in front of that the sent code."""
    libraries = [path for path in sys.path if "site-packages" in path]
    paths = os.pathsep.join([*([] if own is None else [str(own)]), *libraries])
    return subprocess.run(
        [sys.executable, "-S", "-c", RUN, str(sent)],
        cwd=sent.parent,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def of_another_platform(sent: Path) -> Path:
    for file in (sent / "code").rglob("*.so"):
        file.rename(file.with_name(f"{file.name.partition('.')[0]}.cpython-311-riscv64.so"))
    return sent


def own_copy(root: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package)
    return root


def test_sent_code_runs_compiled_where_it_fits(sent: Path) -> None:
    for own in (None, ROOT):
        done = at_worker(sent, own)
        assert done.stdout == f"{sent}/code/formats/__init__.py compiled\n", done.stderr


def test_another_platform_runs_its_own_code_of_the_same_build(sent: Path) -> None:
    done = at_worker(of_another_platform(sent), ROOT)
    assert done.stdout == f"{ROOT}/formats/__init__.py compiled\n", done.stderr


def test_a_worker_that_does_not_fit_is_told_by_its_host(sent: Path, tmp_path: Path) -> None:
    host = socket.gethostname()
    plain = at_worker(sent, None, ONYX_PLAIN="1").stderr.splitlines()[-1]
    assert plain.endswith(
        f"{UNFIT}: the worker {host} does not run the compiled modules: ONYX_PLAIN is set"
    )
    of_another_platform(sent)
    none = at_worker(sent, None).stderr.splitlines()[-1]
    assert f"{UNFIT}: the worker {host} has no Onyx" in none
    own = own_copy(tmp_path / "own")
    with (own / "yfilter" / "matcher.py").open("a") as file:
        file.write("# another\n")
    assert f"{UNFIT}: the worker {host} has another build" in at_worker(sent, own).stderr


def test_a_worker_to_which_nothing_was_sent_says_how_it_is(tmp_path: Path) -> None:
    reader = ArchiveReader(_Asked.of({"archive": str(tmp_path)}), None)
    sent = tmp_path / "sent"
    sent.write_bytes(import_module("pyspark.cloudpickle").dumps(reader))
    assert pickle.loads(sent.read_bytes())._asked == reader._asked
    opened = "import pickle, sys; pickle.loads(open(sys.argv[2], 'rb').read())"
    libraries = [path for path in sys.path if "site-packages" in path]
    done = subprocess.run(
        [sys.executable, "-S", "-c", opened, "", sent],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(libraries)},
        capture_output=True,
        text=True,
        check=False,
    )
    host = socket.gethostname()
    wanted = f"{UNFIT}: the worker {host}: No module named 'onyx'; Onyx is sent by onyx.spark.reg"
    assert wanted in done.stderr


CLUSTER = """\
import json, sys
from pathlib import Path
import msgspec
import onyx.spark
from registration.plan_questions import TASK_FILE, PlannerTask
from registration.planner_process import made_by

LEAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": LEAST,
    "spark.executor.extraJavaOptions": LEAST,
    "spark.task.maxFailures": "1",
}

def where(batches):
    import formats, pyarrow, socket
    for batch in batches:
        said = f"{formats.build_info()} {formats.__file__}"
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([said] * len(batch))], ["said"])

with onyx.spark.session("local-cluster[1,2,1024]", SETTINGS) as spark:
    rows = [(number, f"<m n='{number}'/>") for number in range(20)]
    frame = spark.createDataFrame(rows, "id int, message string").coalesce(2)
    found = onyx.spark.filter(frame, {"ann": "/m[@n > 10]"}).where("size(profiles) > 0").collect()
    said = {row.said for row in frame.mapInArrow(where, "said string").collect()}
    task = msgspec.msgpack.decode(Path(TASK_FILE).read_bytes(), type=PlannerTask)
    plan = made_by(spark, task, Path()).decode()
print(json.dumps({"found": sorted(row.id for row in found), "said": sorted(said), "plan": plan}))
"""


def test_the_workers_of_a_cluster_run_compiled_code_and_plan(tmp_path: Path) -> None:
    """An executor with two Pythons; the folder in which they work is one of the test.  They have no
    files of the planning process."""
    home = spark_home(tmp_path)
    wanted = PlanWanted(
        [ProfileEntry(f"p{n}", "ann", "B1", f"/m[@n = {n}]") for n in range(40)], TOPOLOGY
    )
    (tmp_path / TASK_FILE).write_bytes(msgspec.msgpack.encode(PlannerDesk(TOPOLOGY)._task(wanted)))
    _write_profiles(tmp_path / PROFILES_FILE, wanted)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["found"] == list(range(11, 20))
    for said in told["said"]:
        assert said.startswith(f"compiled {home}/work/app-")
        assert said.endswith(f"/{FOLDER}/code/formats/__init__.py")
    plan = from_json(told["plan"])
    assert (plan.facts.load, plan.facts.refused, len(set(plan.brokers))) == (40, 0, 3)
