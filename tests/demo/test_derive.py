"""Profiles derived from messages: in the language, true of something, and a share of nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from demo.derive import NOTHING_EVERY, derive_profiles
from demo.expectations import expect
from demo.messages import demo_messages
from demo.profile_files import DemoProfile
from demo.scenario import ScenarioError, folder_scenario
from yfilter.language.query_ast import Constructor, Flwor, PathExpression
from yfilter.language.query_parser import parse_profile

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FOLDERS = ("cap", "feeds", "fpml", "newsml-g2", "siri", "yfilter")
needs_shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason="no reference data here")

# Every character that a literal, a name or a namespace has to be careful with.
AWKWARD = """<r xmlns:p="urn:a&amp;b&quot;c'd" xmlns="urn:ü">
  <p:x y="&quot;q&quot; &amp; 'a' {b}">&lt;tag&gt; &amp;amp; {{c}}</p:x>
  <naïve-name.1 xml:lang="de">7</naïve-name.1><plain xmlns="">-0.5</plain><for>1e5</for>
</r>""".encode()


def test_the_same_seed_gives_the_same_profiles() -> None:
    data = [message.data for message in demo_messages(1, 20)]
    assert derive_profiles(data, 40, 5) == derive_profiles(data, 40, 5)
    assert derive_profiles(data, 40, 5) != derive_profiles(data, 40, 6)


@pytest.mark.parametrize("seed", range(30))
def test_awkward_names_and_values_are_written_as_the_language_wants(seed: int) -> None:
    profiles = derive_profiles([AWKWARD], 40, seed)
    assert len(profiles) == 40
    for profile in profiles:
        parse_profile(profile.text)
    matched = expect([profile.text for profile in profiles], AWKWARD)
    assert matched.unknown == ""
    _check_matches(profiles, Counter(matched.results.keys()))


def test_very_deep_messages_give_profiles_within_the_limits_of_the_language() -> None:
    deep = b"<d>" * 250 + b"<e n='1'>2</e>" + b"</d>" * 250
    profiles = derive_profiles([deep], 40, 1)
    assert len(profiles) == 40
    for profile in profiles:
        parse_profile(profile.text)


def test_messages_that_are_no_xml_give_nothing() -> None:
    assert derive_profiles([b"", b"<a>", b"no"], 10, 1) == []


def test_profiles_are_different_and_users_live_in_the_cities() -> None:
    data = [message.data for message in demo_messages(1, 20)]
    profiles = derive_profiles(data, 60, 3, ["Oslo", "Rome"])
    assert len({profile.text for profile in profiles}) == 60
    assert len({profile.name for profile in profiles}) == 60
    assert {profile.city for profile in profiles} == {"Oslo", "Rome"}


@needs_shared_data
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_reference_folder_gives_a_good_mix(folder: str) -> None:
    scenario = folder_scenario(SHARED / folder, 2004, ["Oslo", "Rome"], limit=20)
    assert len(scenario.profiles) == 66
    bodies = [parse_profile(profile.text).body for profile in scenario.profiles]
    kinds = Counter(map(type, bodies))
    assert min(kinds[PathExpression], kinds[Flwor], kinds[Constructor]) >= 2
    texts = [profile.text for profile in scenario.profiles]
    matches: Counter[int] = Counter()
    for message in scenario.messages:
        expectation = expect(texts, message.data)
        assert expectation.unknown == ""
        matches.update(expectation.results.keys())
    _check_matches(scenario.profiles, matches)
    counts = {matches[place] for place in range(len(texts))}
    assert len(counts) >= 5, "selectivity should be spread"
    assert sum("//" in text for text in texts) >= 5
    assert sum("*" in text for text in texts) >= 5
    if folder not in ("yfilter",):
        assert sum("declare " in text for text in texts) >= 20


def test_files_of_a_folder_are_spread_over_three_sources(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    for place in range(7):
        (tmp_path / f"{place}.any").write_bytes(b"<a/>")
    (tmp_path / "deeper" / "x.cap").write_bytes(b"<b c='1'/>")
    scenario = folder_scenario(tmp_path, 1, ["Oslo"])
    assert Counter(message.source for message in scenario.messages) == {
        "files-a": 3,
        "files-b": 3,
        "files-c": 2,
    }
    assert [message.name for message in scenario.of_source("files-b")] == [
        "1.any",
        "4.any",
        "deeper/x.cap",
    ]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda folder: None, "not a folder"),
        (lambda folder: folder.mkdir(), "no files"),
        (lambda folder: (folder.mkdir(), (folder / "a").write_text("a")), "well-formed"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path, make, reason: str) -> None:
    folder = tmp_path / "folder"
    make(folder)
    with pytest.raises(ScenarioError, match=reason):
        folder_scenario(folder, 1, [])


def _check_matches(profiles: list[DemoProfile], matches: Counter[int]) -> None:
    """Those that ask for what is nowhere match nothing, all others something."""
    for place, profile in enumerate(profiles):
        is_nothing = profile.interest.startswith("nothing ")
        assert (matches[place] == 0) == is_nothing, profile.text
    share = sum(profile.interest.startswith("nothing ") for profile in profiles)
    assert share == len(profiles) // NOTHING_EVERY
