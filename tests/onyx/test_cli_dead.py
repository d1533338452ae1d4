"""``onyx dead`` against a network of which a broker has failed at something."""

from __future__ import annotations

from pathlib import Path

import pytest

from onyx.cli.main import main
from onyx.data_directory import DataDirectory
from overlay.link.dead_letters import keep_aside
from overlay.link.store import Store
from overlay.link.suspect import Suspect
from tests.onyx.networks import RunningProcess, small_topology_text

LETTER = Suspect("0123456789abcdef", "request 'x' of client/c", "client/c", b"<poison/>\xff")


def test_what_a_broker_has_failed_at_is_listed_shown_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small_topology_text(tmp_path / "data", brokers=1), encoding="utf-8")
    path = DataDirectory(tmp_path / "data").store_file("B1")
    path.parent.mkdir(parents=True)
    with Store(path) as store:
        try:
            raise ZeroDivisionError("by nothing")
        except ZeroDivisionError as error:
            keep_aside(store, LETTER, error, at=0.0)
    running = RunningProcess.start(file)
    monkeypatch.setenv("ONYX_REGISTRATION", running.registration)
    try:
        assert main(["dead", "list"]) == 0
        heading, line = capsys.readouterr().out.splitlines()
        assert heading.startswith("NODE")
        facts = ("B1", LETTER.id, "1970-01-01T00:00:00Z", "True", LETTER.what, "by nothing")
        assert all(fact in line for fact in facts)
        assert main(["status"]) == 0
        assert "B1 has failed at 1 input: onyx dead list" in capsys.readouterr().out
        assert main(["dead", "show", LETTER.id]) == 0
        shown = capsys.readouterr().out
        assert "Traceback" in shown and "<poison/>\\xff" in shown
        assert main(["dead", "drop", LETTER.id, "--node", "registration"]) == 65
        assert main(["dead", "drop", LETTER.id, "--node", "B2"]) == 2
        assert main(["dead", "drop", LETTER.id]) == 0
        assert main(["dead", "list"]) == 0
        assert capsys.readouterr().out.endswith("There are no dead letters.\n")
    finally:
        running.stop()
