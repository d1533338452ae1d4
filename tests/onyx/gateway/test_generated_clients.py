"""Clients generated of the OpenAPI document for Java, Go and TypeScript: compiled, and one used.

A step of the campaign, which installs the generator: ``python -m tests.campaign clients``.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.onyx.gateway.browsing import Client
from tests.onyx.gateway.schemas import document

TOOLS = os.environ.get("ONYX_CLIENT_TOOLS", "")
pytestmark = pytest.mark.skipif(not TOOLS, reason="ONYX_CLIENT_TOOLS names no folder")
PROGRAM = Path(__file__).parent / "generated_client.ts"


def run(*words: object, folder: Path) -> str:
    done = subprocess.run(
        [*map(str, words)],
        cwd=folder,
        env=os.environ | {"GOPROXY": "off", "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def generate(language: str, folder: Path, *properties: str) -> None:
    file = folder / "openapi.json"
    file.write_text(json.dumps(document()), encoding="utf-8")
    generator = Path(TOOLS) / "bin" / "openapi-generator-cli"
    options = ["-i", file, "-g", language, "-o", folder / "client"]
    if properties:
        options += ["--additional-properties", ",".join(properties)]
    run(generator, "generate", *options, folder=folder)


def test_java(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")  # it ships the libraries of JSON
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    how = ("openApiNullable=false", "useJakartaEe=true", "library=native")
    generate("java", tmp_path, *how)
    sources = sorted((tmp_path / "client" / "src" / "main").rglob("*.java"))
    run("javac", "-nowarn", "-d", tmp_path, "-cp", jars, *sources, folder=tmp_path)


def test_go(tmp_path: Path) -> None:
    generate("go", tmp_path, "withGoMod=false", "packageName=onyx")
    (tmp_path / "go.mod").write_text("module onyx\n\ngo 1.19\n", encoding="utf-8")
    run("go", "build", "./client", folder=tmp_path)


def test_typescript_end_to_end(client: Client, tmp_path: Path) -> None:
    generate("typescript-fetch", tmp_path)
    (tmp_path / "main.ts").write_bytes(PROGRAM.read_bytes())
    compiler = Path(TOOLS) / "node_modules" / ".bin" / "tsc"
    how = ("--strict", "--target", "es2020", "--module", "commonjs", "--lib", "es2020,dom")
    run(compiler, *how, "--outDir", tmp_path / "out", "main.ts", folder=tmp_path)
    said = json.loads(run("node", "out/main.js", client.url.rstrip("/"), folder=tmp_path))
    assert said["number"] >= 1
    assert said == {
        "number": said["number"],
        "matched": True,
        "attempts": 5,
        "states": ["up"] * 4,
        "silent": [],
        "code": "syntax",
    }
