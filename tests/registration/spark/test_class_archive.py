"""JVMs of sessions take the classes of Spark from an archive; no other JVM does."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from registration.spark.session import Java, find_java, wrapped
from tests.registration.spark.test_java import fake_java

JARS = "/spark/jars/slf4j-api-2.jar:/spark/jars/*"


def arguments_of(java: Java, session: Path, *given: str) -> list[str]:
    program = wrapped(java, session / "java") / "bin" / "java"
    ran = subprocess.run([program, *given], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_a_session_gets_the_archive_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands on jars alone: the folder with the settings of the session comes behind them."""
    monkeypatch.setattr(Java, "_kept", lambda _, of: tmp_path / f"{of}.jsa")
    java, session = Java(fake_java(tmp_path / "own java", "21")), tmp_path / "a session"
    given = ["-cp", f"{session}/:{JARS}", "-Xmx1g", "Main", ""]
    behind = ["-cp", f"/spark/jars/*:{session}/", "-Xmx1g", "Main", ""]
    archives = f"-XX:SharedArchiveFile={tmp_path}/java.jsa"
    assert arguments_of(java, session, *given) == behind
    (tmp_path / "spark.jsa").touch()
    shares = [f"{archives}:{tmp_path}/spark.jsa", "-Xlog:cds*=off"]
    assert arguments_of(java, session, *given) == shares + behind
    makes = [archives, "-XX:ArchiveClassesAtExit=new", "-Xlog:cds*=off"]
    assert arguments_of(replace(java, archives="new"), session, *given) == makes + behind


@pytest.mark.parametrize(
    "given",
    [
        ["-Xmx128m", "-cp", "/spark/jars/*", "org.apache.spark.launcher.Main"],
        ["-cp", f"/of/the/user/:{JARS}", "Main"],
        ["-cp", f"{{session}}/:{JARS}:/hadoop/", "Main"],
    ],
)
def test_another_jvm_starts_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    monkeypatch.setattr(Java, "_kept", lambda _, of: tmp_path)
    java = Java(fake_java(tmp_path / "java", "21"))
    given = [each.format(session=tmp_path / "session") for each in given]
    assert arguments_of(java, tmp_path / "session", *given) == given


def test_java_takes_classes_of_spark_from_the_archive(tmp_path: Path) -> None:
    """The one of this environment (``make dev``), by a program of Spark that ends at once."""
    java = find_java(os.environ)
    if not java.spark_classes.exists():
        pytest.skip("make dev has made no archive of Spark's classes")
    jars = java.spark_classes.parents[1] / "jars"
    session = tmp_path / "session"
    told = subprocess.run(
        [
            wrapped(java, session / "java") / "bin" / "java",
            *("-cp", f"{session}/:{jars}/*", "-Xlog:class+load:file=loaded"),
            *("org.apache.spark.deploy.SparkSubmit", "--version"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = (tmp_path / "loaded").read_text().splitlines()
    of_spark = [line for line in loaded if " org.apache.spark." in line and "$Lambda" not in line]
    shared = [line for line in of_spark if "shared objects file (top)" in line]
    assert len(shared) > 0.8 * len(of_spark) > 50, told.stderr
