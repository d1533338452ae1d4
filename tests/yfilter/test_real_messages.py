"""200 profiles for the real messages of ../shared/data, each held against Saxon on all of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.conformance_real import compare_folder, profile_files, profiles_in
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse

DATA = Path(__file__).parents[3] / "shared" / "data"


def test_there_are_200_and_their_texts_survive() -> None:
    texts = [text for file in profile_files() for text in profiles_in(file).values()]
    assert len(set(texts)) >= 200
    for text in texts:
        parsed = parse_profile(text)
        assert parse_profile(unparse(parsed)).body == parsed.body


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")
@pytest.mark.skipif(find_spec("saxonche") is None, reason="needs saxonche")
@pytest.mark.parametrize("file", profile_files(), ids=lambda file: file.stem)
def test_each_gives_what_saxon_gives(file: Path) -> None:
    found = compare_folder(file, DATA)
    assert found.faults == []
    assert found.results > 100
