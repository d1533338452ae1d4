"""Real messages of the reference data, cut to what real profiles need: the same results, byte for
byte, in whatever form what is left travels."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from formats import FORMS, ElementStream, decode, encode
from tests.yfilter.projection.test_projector import left_of
from tests.yfilter.test_real_messages import FOLDERS, SHARED, _without_doctype
from yfilter.errors import ProfileRefused
from yfilter.index.index import Index
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import Matcher
from yfilter.matches import ProfileMatch
from yfilter.projection.profile_needs import needs_of
from yfilter.projection.transformations import projector_of

PROFILES = Path(__file__).resolve().parents[2] / "profiles_for_real_messages"
MESSAGES, GROUPS = 4, 8

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no reference data here")


def profiles(folder: str) -> list[Profile]:
    found = []
    for text in re.split(r"\(: ===.*?=== :\)", (PROFILES / f"{folder}.xq").read_text()):
        try:
            found.append(parse_profile(text.strip()))
        except ProfileRefused:
            continue
    return found


def results(profile: Profile, stream: ElementStream) -> list[bytes]:
    matcher = Matcher()
    matcher.add(profile)
    matches = [match for match in matcher.match(stream) if isinstance(match, ProfileMatch)]
    return [result for match in matches for result in match.results()]


@pytest.mark.parametrize("folder", FOLDERS)
def test_results_on_what_is_left_of_real_messages(folder: str) -> None:
    rng = Random(FOLDERS.index(folder))
    known = profiles(folder)
    files = sorted(file for file in (SHARED / folder).rglob("*.xml") if file.is_file())
    cut = 0
    for file in rng.sample(files, min(MESSAGES, len(files))):
        stream = decode(_without_doctype(file), FORMS[0])
        for _ in range(GROUPS):
            group = rng.sample(known, rng.choice((1, 1, 2, 5)))
            projector = projector_of(Index())
            for need in dict.fromkeys(need for profile in group for need in needs_of(profile)):
                projector.add(need, 0)
            left = left_of(projector, stream)
            cut += left is not stream
            form = rng.choice(FORMS)
            travelled = decode(encode(left, form), form)
            for profile in group:
                assert results(profile, travelled) == results(profile, stream), profile.text
    assert cut > 0 or folder == "cap"  # most of its profiles want whole messages
