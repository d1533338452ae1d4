"""``onyx metadata``: a provider as a process, and every command that asks it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from onyx.cli.metadata import _BATCH_BYTES, _length
from onyx.errors import EXIT_BUSY, EXIT_DATA
from registration.metadata.provider_reader import BATCH_MAX, portions
from tests.hanging import SAFETY_SECONDS
from tests.onyx.metadata.test_explanation import DOCUMENT, SCHEMA
from tests.onyx.metadata.test_metadata_network import ASKED, RULE
from tests.onyx.test_cli_network import Shell, shell
from tests.postgres import Postgres

__all__ = ["shell"]

PROVIDER = ("--provider", "mdv-cli")
PREFIX = "http://e/"


def serving(registration: str, directory: Path, name: str, *more: str) -> subprocess.Popen[str]:
    return running(registration, "serve", str(directory), "--name", name, *more)


def running(registration: str, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "ONYX_REGISTRATION": registration}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "onyx", "metadata", *words]
    # A session of its own: the kernel has what is stopped go on where a group of processes becomes
    # an orphan, as that of the tests does when another one's process starts.
    return subprocess.Popen(command, text=True, env=environment, start_new_session=True, **pipes)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_documents_of_a_folder_are_followed_by_a_cache(
    shell: Shell, registration: str, tmp_path: Path
) -> None:
    (tmp_path / "schema.ttl").write_bytes(SCHEMA)
    folder, cache, directory = tmp_path / "folder", tmp_path / "l1.onyx", tmp_path / "mdv"
    folder.mkdir()
    for memory in (b"32", b"92", b"128"):
        (folder / f"{memory.decode()}.ttl").write_bytes(DOCUMENT.replace(b"92", memory))
    with serving(registration, directory, "mdv-cli", "--admin", "127.0.0.1:0") as provider:
        try:
            assert line_of(provider).startswith("mdv-cli (")
            _commands(shell, tmp_path)
            (line,) = shell.objects("metadata", "status", *PROVIDER)
            assert (line["documents"], line["rules"], line["repositories"]) == (2, 1, 1)
            assert shell.run("metadata", "verify", directory) != 0  # it is in use
            _follow(shell, registration, cache)
        finally:
            provider.send_signal(signal.SIGTERM)
            assert provider.wait(SAFETY_SECONDS) == 0
    assert shell.lines("metadata", "verify", directory) == []
    host = f"{PREFIX}128.ttl#host"
    assert shell.lines("metadata", "query", cache, ASKED) == [f"{host}\t128"]
    (row, said) = shell.objects("metadata", "query", cache, RULE)
    assert (row["row"], said["complete"]) == ([host], True)
    assert shell.lines("metadata", "query", cache, RULE, "--explain")[0].startswith("SELECT")


def test_a_cache_without_a_provider_says_what_it_waits_for(
    registration: str, tmp_path: Path
) -> None:
    said = "cache", str(tmp_path / "l0.onyx"), "L0", "--provider", "nobody"
    with running(registration, *said) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SAFETY_SECONDS) == 0
        assert process.stderr.read() == "", "it is said once"
    assert line == "onyx: waits for its provider: there is no source 'nobody' yet\n"


def test_a_standby_goes_on_with_rows_in_postgresql(
    shell: Shell, registration: str, postgres: Postgres, tmp_path: Path
) -> None:
    """One that was stopped for longer than its lease says nothing any more."""
    (tmp_path / "schema.ttl").write_bytes(SCHEMA)
    (tmp_path / "a.ttl").write_bytes(DOCUMENT)
    of, rows = ("--provider", "mdv-pg"), ("mdv-pg", "--store", postgres.url)
    register = ("metadata", "register", tmp_path / "a.ttl", *of, "--at")
    with ExitStack() as stack:

        def started(directory: str) -> subprocess.Popen[str]:
            process = stack.enter_context(serving(registration, tmp_path / directory, *rows))
            stack.callback(process.kill)
            return process

        first = started("first")
        assert line_of(first).endswith("serves revision 0\n")
        standby = started("standby")
        assert line_of(standby) == "mdv-pg waits to take the place of the other process\n"
        shell.lines("metadata", "schema", tmp_path / "schema.ttl", *of)
        shell.lines("metadata", "rule", "L1", RULE, *of)
        assert shell.lines(*register, f"{PREFIX}1") == [f"L1\tcame\t{PREFIX}1#host"]
        first.send_signal(signal.SIGSTOP)
        assert line_of(standby).endswith("serves revision 3\n")
        assert shell.lines(*register, f"{PREFIX}2") == [f"L1\tcame\t{PREFIX}2#host"]
        first.send_signal(signal.SIGCONT)
        assert first.wait(SAFETY_SECONDS) == EXIT_BUSY
        assert first.stderr is not None and "not this process's any more" in first.stderr.read()
        assert shell.lines(*register, f"{PREFIX}3") == [f"L1\tcame\t{PREFIX}3#host"]
        standby.send_signal(signal.SIGTERM)
        assert standby.wait(SAFETY_SECONDS) == 0
    verify = ("metadata", "verify", "--name", *rows)
    for directory in ("standby", "first"):  # the filter of one of them is behind
        assert shell.lines(*verify, tmp_path / directory) == []


def test_a_batch_has_no_more_documents_than_a_provider_takes() -> None:
    tiny = [(f"{PREFIX}{number}", b"") for number in range(25_000)]
    batches = [*portions(tiny, _length, _BATCH_BYTES)]
    assert max(map(len, batches)) <= BATCH_MAX
    assert [each for batch in batches for each in batch] == tiny


def _commands(shell: Shell, path: Path) -> None:
    assert shell.lines("metadata", "schema", path / "schema.ttl", *PROVIDER) == []
    sync = ("metadata", "sync", PREFIX, path / "folder", *PROVIDER)
    assert shell.lines(*sync) == []
    rule, *came = shell.lines("metadata", "rule", "L1", RULE, *PROVIDER)
    assert came == [f"L1\tcame\t{PREFIX}{each}.ttl#host" for each in (128, 92)]
    (line,) = shell.objects("metadata", "rule", "L1", *PROVIDER)
    assert line == {"id": rule, "name": "", "text": RULE, "matches": 2, "suspended": ""}
    (path / "folder" / "92.ttl").unlink()
    assert shell.run(*sync, "--dry-run", "--fail-if-lost") == EXIT_DATA
    left = f"L1\tleft\t{PREFIX}92.ttl#host"
    assert shell.out.splitlines() == [f"{left}\t{rule}"]
    assert shell.lines(*sync) == [left]
    explain = ("metadata", "explain", "L1")
    info, host = (f"{PREFIX}128.ttl#{each}" for each in ("info", "host"))
    held, *_ = shell.lines(*explain, info, *PROVIDER)
    assert held == f"{rule}: {host} -> {info}"
    (said,) = shell.objects(*explain, f"{PREFIX}32.ttl#host", *PROVIDER)
    assert said["held"] == [] and rule in said["not_matched"]
    _browse(shell, host, info)
    document = path / "folder" / "32.ttl"
    register = ("metadata", "register", document, "--at", f"{PREFIX}other", *PROVIDER)
    assert shell.lines(*register, "--dry-run") == []
    assert shell.run("metadata", "remove", f"{PREFIX}other", *PROVIDER) != 0
    assert "no-such-document" in shell.err


def _browse(shell: Shell, host: str, info: str) -> None:
    """Repository L1 holds the host, and the host refers to the info."""
    browse = ("metadata", "browse")
    assert shell.lines(*browse, "CycleProvider", "--limit", "1", *PROVIDER) == [host]
    assert f"--after {host}" in shell.err
    (count,) = (each.split("\t")[1] for each in shell.lines(*browse, *PROVIDER) if "Server" in each)
    assert count == "2"
    said = shell.lines(*browse, info, *PROVIDER)
    assert "repository\tL1" in said and f"document\t{PREFIX}128.ttl" in said
    (seen,) = shell.objects(*browse, info, *PROVIDER)
    assert [each["resource"] for each in seen["referrers"]] == [host]
    rule, came = shell.lines("metadata", "select", "L2", info, *PROVIDER)
    assert came == f"L2\tcame\t{info}"
    (line,) = shell.objects("metadata", "rule", "L2", *PROVIDER)
    assert line["id"] == rule and line["text"].endswith(f"v = <{info}>")
    listed = shell.objects("metadata", "repository", "list", *PROVIDER)
    assert {each["repository"]: each["matches"] for each in listed} == {"L1": 1, "L2": 1}
    left = shell.lines("metadata", "repository", "remove", "L2", *PROVIDER)
    assert left == [f"L2\tleft\t{info}"]
    assert shell.run("metadata", "repository", "remove", "L2", *PROVIDER) == EXIT_DATA


def _follow(shell: Shell, registration: str, cache: Path) -> None:
    """It shares its cache meanwhile."""
    said = ("cache", str(cache), "L1", "--listen", "127.0.0.1:0", "--json", *PROVIDER)
    with running(registration, *said) as process:
        try:
            url, revision = "", 0
            while not url or revision < 6:
                told = json.loads(line_of(process))
                url, revision = told.get("url", url), told.get("revision", revision)
            assert shell.lines("metadata", "query", url, ASKED) == [f"{PREFIX}128.ttl#host\t128"]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(SAFETY_SECONDS) == 0
