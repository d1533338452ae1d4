"""The surface of the program is as committed in the golden files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overlay.link.frame import FRAME_TYPES
from tests.golden import wire
from tests.golden.files import FILES
from tests.golden.golden_file import FOLDER, GoldenFile

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_is_as_it_was(file: GoldenFile) -> None:
    if lacks := file.lacks():
        pytest.skip(lacks)
    differences = file.differences()
    assert not differences, f"if that is decided: python -m tests.golden {file.name}\n{differences}"


def test_nothing_else_is_golden() -> None:
    kept = {path.name for path in FOLDER.iterdir() if path.suffix in (".json", ".txt")}
    assert kept == {file.name for file in FILES}


def test_messages_of_before_can_be_read() -> None:
    """Those that are committed, which other releases and disks have."""
    committed = (FOLDER / "wire.json").read_text(encoding="utf-8")
    texts = json.loads(committed)["messages"]
    found = wire.read_again(committed)
    assert len(found) > 5 * len(texts)
    for (message, said), text in found.items():
        assert text == texts[message]["text"], (message, said)


def test_each_frame_has_a_vector() -> None:
    """They are held by tests/overlay/link/test_frames.py."""
    vectors = json.loads((ROOT / "tests/overlay/link/vectors.json").read_text(encoding="utf-8"))
    assert {vector["type"] for vector in vectors["valid"]} == FRAME_TYPES.keys()
