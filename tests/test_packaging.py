"""What is built and installed, and what starts it."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from onyx.cli.main import main
from onyx.service_manager import VARIABLE, tell_service_manager

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("formats", "yfilter", "overlay", "registration", "onyx")
UNITS = sorted((ROOT / "packaging").glob("*.service"))


HEADER = "formats/words.pxd"
HOT_SOURCE = "formats/not_imported.pyx"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, without what was compiled in it."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("MANIFEST.in", "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("*.so", "compiled.json", "__pycache__")
        shutil.copytree(ROOT / package, copy / package, ignore=ignored)
    (copy / HOT_SOURCE).write_text("def one():\n    return 1\n")
    (copy / HOT_SOURCE).with_suffix(".c").touch()
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    """The wheel for every platform."""
    copy = source
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    environment = os.environ | {"ONYX_COMPILE": "skip", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([*command, "--wheel-dir", copy, copy], check=True, env=environment)
    (built,) = copy.glob("*.whl")
    return built


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked:
        pytest.skip("this is no git checkout")
    assert {name for name in tracked if not name.endswith(".pyx")} - inside == set()
    assert HEADER in inside
    assert {name for name in inside if name.endswith((".pyx", ".c", ".so"))} == set()


def test_the_sdist_has_what_is_compiled(source: Path) -> None:
    build = "import setuptools.build_meta as b; print(b.build_sdist('dist'))"
    environment = os.environ | {"ONYX_COMPILE": "skip"}
    subprocess.run(
        [sys.executable, "-c", build], cwd=source, env=environment, check=True, capture_output=True
    )
    (built,) = (source / "dist").glob("*.tar.gz")
    with tarfile.open(built) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"setup.py", "MANIFEST.in", HEADER, HOT_SOURCE} <= inside
    assert {name for name in inside if name.endswith((".c", ".so"))} == set()


def test_what_is_installed_runs_beside_folders_of_other_things(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    for package in PACKAGES[:-1]:
        (tmp_path / "here" / package).mkdir(parents=True)
        (tmp_path / "here" / package / "__init__.py").write_text("raise SystemExit('wrong one')")
    done = subprocess.run(
        [sys.executable, "-m", "onyx", "profile", "check", "-"],
        cwd=tmp_path / "here",
        env=os.environ | {"PYTHONPATH": str(installed)},
        input=b"//a[@b = 1]",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("kind", ["a path", "an abstract name"])
def test_a_service_manager_is_told(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "notify") if kind == "a path" else f"@onyx-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + address[1:] if address.startswith("@") else address)
        monkeypatch.setenv(VARIABLE, address)
        tell_service_manager("B1 waits")
        tell_service_manager("B1 is ready", is_ready=True)
        assert manager.recv(1000) == b"STATUS=B1 waits"
        assert manager.recv(1000) == b"READY=1\nSTATUS=B1 is ready"
    tell_service_manager("nobody listens any more")
    monkeypatch.delenv(VARIABLE)
    tell_service_manager("nobody has asked")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_says_what_the_command_takes(
    unit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parsed = configparser.RawConfigParser(strict=False)
    parsed.read_string(unit.read_text())
    service = parsed["Service"]
    assert service["Type"] == "notify"
    words = shlex.split(service["ExecStart"].replace("%i", "B1"))
    assert words[:2] == ["/usr/bin/env", "onyx"]
    check_words(words[2:], tmp_path)
    assert "nonsense" in capsys.readouterr().err


def check_words(words: list[str], directory: Path) -> None:
    """They are read before the topology file, which is found to be wrong."""
    topology = directory / "network.toml"
    topology.write_text('name = "n"\nnonsense = 1\n')
    (directory / "web.pem").touch()
    for place, word in enumerate(words):
        if word.endswith("network.toml"):
            words[place] = str(topology)
        elif word.startswith(("/etc/onyx-web/", "/etc/onyx/web")):
            words[place] = str(directory / "web.pem")
    assert main(words) == 78


def test_kubernetes_says_what_the_commands_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Containers have the entry point of the image, or a command of their own."""
    text = (ROOT / "packaging" / "kubernetes.yaml").read_text()
    (entry,) = re.findall("ENTRYPOINT (.+)", (ROOT / "packaging" / "Containerfile").read_text())
    found = re.findall(r"^ +(command|args): (\[[^]]*\])", text, re.MULTILINE)
    lists = [(kind, json.loads(" ".join(words.split()))) for kind, words in found]
    assert [kind for kind, _ in lists] == ["args", "command", "args"]
    (_, of_broker), (_, command), (_, of_gateway) = lists
    for words in (json.loads(entry) + of_broker, command + of_gateway):
        assert words[0] == "onyx"
        check_words(words[1:], tmp_path)
        assert "nonsense" in capsys.readouterr().err
    ports = set(re.findall(r"containerPort: (\d+)", text))
    served = re.findall(r"- \{name: \w+, port: (\d+)\}", text)
    assert set(served) <= ports


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubernetes_reads_its_objects(tmp_path: Path) -> None:
    shutil.copy(ROOT / "packaging" / "kubernetes.yaml", tmp_path)
    (tmp_path / "kustomization.yaml").write_text("resources: [kubernetes.yaml]\n")
    done = subprocess.run(
        ["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    kinds = re.findall(r"^kind: (\w+)$", done.stdout, re.MULTILINE)
    assert sorted(kinds) == ["Deployment", "Service", "Service", "StatefulSet"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_reads_a_unit(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name.replace("@", "@B1")
    text = unit.read_text().replace("User=onyx", "User=root").replace("Group=onyx", "Group=root")
    copy.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if copy.name in line] == []


def _container_engine() -> str:
    for engine in ("docker", "podman"):
        found = shutil.which(engine)
        if (
            found
            and subprocess.run([found, "info"], capture_output=True, check=False).returncode == 0
        ):
            return found
    return ""


def test_the_container_runs_without_root(tmp_path: Path) -> None:
    engine = _container_engine()
    if not engine:
        pytest.skip("needs docker or podman, and an engine that runs")
    containerfile = "packaging/Containerfile"
    (version,) = re.findall("ARG PYTHON=(.+)", (ROOT / containerfile).read_text())
    for base in (f"python:{version}", f"python:{version}-slim"):
        pull = [engine, "pull", "-q", f"docker.io/library/{base}"]
        if subprocess.run(pull, capture_output=True, check=False).returncode:
            pytest.skip(f"the image {base} cannot be had")
    built = subprocess.run(
        [engine, "build", "-q", "-f", containerfile, "-t", "onyx-test", "."], cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    run = [engine, "run", "--rm", "--entrypoint"]
    assert subprocess.check_output([*run, "id", "onyx-test", "-u"]).strip() == b"10001"
    assert subprocess.check_output([*run, "onyx", "onyx-test", "--version"]).startswith(b"onyx ")
