"""What a line of a log is, as text and as JSON, and that a process begins with who it is."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from onyx.launcher import launch
from onyx.logs import configure_logging, toggle_debug, use_logs
from onyx.release import version
from overlay.log_options import LogFormat, LogOptions
from tests.onyx.networks import small_topology

RFC_3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


@pytest.fixture(autouse=True)
def kept_logging() -> Iterator[None]:
    """What is configured here is of one test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_of_text_says_when_who_and_what() -> None:
    stream = io.StringIO()
    configure_logging("B1", LogOptions(), stream)
    logging.getLogger("onyx.node").warning("%s is lost", "B2", extra={"after": 3})
    assert re.fullmatch(RFC_3339 + " B1 warning onyx.node: B2 is lost after=3\n", stream.getvalue())


def test_a_line_of_json_is_one_object_with_its_trace() -> None:
    stream = io.StringIO()
    configure_logging("B1", LogOptions(format=LogFormat.JSON), stream)
    try:
        raise ValueError("no\nnewline")
    except ValueError:
        logging.getLogger("onyx.node").exception("it failed", extra={"input": "x"})
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert re.fullmatch(RFC_3339, found.pop("time"))
    assert "ValueError: no\nnewline" in found.pop("exception")
    assert found == {
        "event": "it failed",
        "input": "x",
        "level": "error",
        "logger": "onyx.node",
        "process": "B1",
    }


def test_what_is_below_the_level_is_not_written_until_somebody_asks() -> None:
    stream, options = io.StringIO(), LogOptions(level="warning")
    configure_logging("B1", options, stream)
    log = logging.getLogger("onyx.node")
    log.info("1")
    assert toggle_debug() == "debug"
    log.debug("2")
    assert toggle_debug() == "warning"
    log.info("3")
    assert [line.rpartition(" ")[2] for line in stream.getvalue().splitlines()] == ["2"]


def test_other_options_are_in_force_from_then_on() -> None:
    stream = io.StringIO()
    configure_logging("B1", LogOptions(), stream)
    log = logging.getLogger("onyx.node")
    log.info("1")
    use_logs(LogOptions("error", LogFormat.JSON))
    log.info("2")
    log.error("3")
    text, line = stream.getvalue().splitlines()
    assert text.endswith(" B1 info onyx.node: 1")
    assert (json.loads(line)["event"], json.loads(line)["process"]) == ("3", "B1")


async def test_a_process_begins_with_who_it_is(tmp_path: Path) -> None:
    said: list[str] = []
    logs = LogOptions(format=LogFormat.JSON)
    topology = replace(small_topology(tmp_path / "data", 1), log=logs)
    topology = replace(topology, limits=replace(topology.limits, sources_max=7))
    async with launch(topology, write_line=said.append) as network:
        pids = network.pids
    lines = [json.loads(line) for line in said]
    assert {line["process"] for line in lines} == {"registration", "B1"}
    for process, pid in pids.items():
        first = next(line for line in lines if line["process"] == process)
        assert first["event"] == "starts"
        assert (first["pid"], first["version"]) == (pid, version())
        bounds = {name for name in first if name.endswith("_max")}
        assert (first["sources_max"], bounds) == (7, {"sources_max"}), (
            "others are as they usually are"
        )
