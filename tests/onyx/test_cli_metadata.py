"""``onyx metadata``: a provider as a process, and every command that asks it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import trio

from onyx.errors import EXIT_DATA
from onyx.metadata import MetadataRepository
from tests.onyx.metadata.test_explanation import DOCUMENT, SCHEMA
from tests.onyx.metadata.test_metadata_network import ASKED, RULE, SAFETY_SECONDS
from tests.onyx.test_cli_network import Shell, shell

__all__ = ["shell"]

PROVIDER = ("--provider", "mdv-cli")
PREFIX = "http://e/"


def test_documents_of_a_folder_are_followed_by_a_cache(
    shell: Shell, registration: str, tmp_path: Path
) -> None:
    (tmp_path / "schema.ttl").write_bytes(SCHEMA)
    folder, cache, directory = tmp_path / "folder", tmp_path / "l1.onyx", tmp_path / "mdv"
    folder.mkdir()
    for memory in (b"32", b"92", b"128"):
        (folder / f"{memory.decode()}.ttl").write_bytes(DOCUMENT.replace(b"92", memory))
    serve = [sys.executable, "-m", "onyx", "metadata", "serve", directory, "--name", "mdv-cli"]
    environment = {**os.environ, "ONYX_REGISTRATION": registration}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, env=environment) as provider:
        try:
            assert provider.stdout is not None
            assert provider.stdout.readline().startswith(b"mdv-cli (")
            _commands(shell, tmp_path)
            (line,) = shell.objects("metadata", "status", *PROVIDER)
            assert (line["documents"], line["rules"], line["repositories"]) == (2, 1, 1)
            assert shell.run("metadata", "verify", directory) != 0  # it is in use
            _follow(registration, cache)
        finally:
            provider.send_signal(signal.SIGTERM)
            assert provider.wait(SAFETY_SECONDS) == 0
    assert shell.lines("metadata", "verify", directory) == []
    host = f"{PREFIX}128.ttl#host"
    assert shell.lines("metadata", "query", cache, ASKED) == [f"{host}\t128"]
    (row, said) = shell.objects("metadata", "query", cache, RULE)
    assert (row["row"], said["complete"]) == ([host], True)
    assert shell.lines("metadata", "query", cache, RULE, "--explain")[0].startswith("SELECT")


def _commands(shell: Shell, path: Path) -> None:
    assert shell.lines("metadata", "schema", path / "schema.ttl", *PROVIDER) == []
    sync = ("metadata", "sync", PREFIX, path / "folder", *PROVIDER)
    assert shell.lines(*sync) == []
    rule, *came = shell.lines("metadata", "rule", "L1", RULE, *PROVIDER)
    assert came == [f"L1\tcame\t{PREFIX}{each}.ttl#host" for each in (128, 92)]
    (line,) = shell.objects("metadata", "rule", "L1", *PROVIDER)
    assert line == {"id": rule, "name": "", "text": RULE, "matches": 2}
    (path / "folder" / "92.ttl").unlink()
    assert shell.run(*sync, "--dry-run", "--fail-if-lost") == EXIT_DATA
    left = f"L1\tleft\t{PREFIX}92.ttl#host"
    assert shell.out.splitlines() == [left]
    assert shell.lines(*sync) == [left]
    explain = ("metadata", "explain", "L1")
    info, host = (f"{PREFIX}128.ttl#{each}" for each in ("info", "host"))
    held, *_ = shell.lines(*explain, info, *PROVIDER)
    assert held == f"{rule}: {host} -> {info}"
    (said,) = shell.objects(*explain, f"{PREFIX}32.ttl#host", *PROVIDER)
    assert said["held"] == [] and rule in said["not_matched"]
    document = path / "folder" / "32.ttl"
    register = ("metadata", "register", document, "--at", f"{PREFIX}other", *PROVIDER)
    assert shell.lines(*register, "--dry-run") == []
    assert shell.run("metadata", "remove", f"{PREFIX}other", *PROVIDER) != 0
    assert "no-such-document" in shell.err


def _follow(registration: str, cache: Path) -> None:

    async def follow() -> None:
        with trio.fail_after(SAFETY_SECONDS):
            place = MetadataRepository(cache, registration, "L1", provider="mdv-cli")
            async with place as repository:
                await repository.wait(4)

    trio.run(follow)
