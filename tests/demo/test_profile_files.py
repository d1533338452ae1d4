"""The demo's own profiles: all understood, by the system and by the oracle, and well mixed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from demo.expectations import Expectation, expect
from demo.messages import demo_messages
from demo.profile_files import DemoProfile, ProfileFileError, load_profiles, with_header
from demo.scenario import PROFILES
from overlay.topology import load_topology
from yfilter.graph.query_ast import GraphQuery
from yfilter.language.query_ast import Constructor, Flwor, PathExpression
from yfilter.language.query_parser import parse_profile

TOPOLOGY = Path(__file__).resolve().parents[2] / "topologies" / "figure4.toml"


@pytest.fixture(scope="module")
def profiles() -> list[DemoProfile]:
    return load_profiles(PROFILES)


@pytest.fixture(scope="module")
def expectations(profiles: list[DemoProfile]) -> list[Expectation]:
    texts = [profile.text for profile in profiles]
    return [expect(texts, message.data, message.media_type) for message in demo_messages(2004)]


def test_there_are_enough_with_all_kinds_of_bodies(profiles: list[DemoProfile]) -> None:
    assert len(profiles) >= 64
    kinds = Counter(type(parse_profile(profile.text).body) for profile in profiles)
    assert kinds[PathExpression] >= 30
    assert kinds[Flwor] >= 6
    assert kinds[Constructor] >= 5
    assert kinds[GraphQuery] >= 15


def test_users_live_near_brokers_of_the_network(profiles: list[DemoProfile]) -> None:
    labels = {broker.label for broker in load_topology(TOPOLOGY).brokers}
    cities = {profile.city for profile in profiles}
    assert cities == {*labels, ""}


def test_the_examples_of_the_paper_are_there(profiles: list[DemoProfile]) -> None:
    texts = {" ".join(profile.text.split()) for profile in profiles}
    stock_news = """for $n in $msg/nitf where $n/head/pubdata/@edition.area = "SF" and
        $n//tobject.subject/@tobject.subject.type = "Stock" return
        <stock_news> {$n/body/body.head/hedline} {$n/body/body.content} </stock_news>"""
    q1 = """$msg/nitf[head/pubdata[@edition.area = "SF"]]
        [.//tobject.subject[@tobject.subject.type = "Stock"]]"""
    q2 = """$msg/nitf[head/pubdata[@edition.area = "SF"]]
        [.//tobject.subject[@tobject.subject.matter = "fishing"]]"""
    q3 = """<nitf> { for $n in $msg/nitf where $n/head/pubdata/@edition.area = "SF" and
        $n//series/@series.name = "Tide Forecasts" return $n/body/body.content } </nitf>"""
    for example in (stock_news, q1, q2, q3):
        assert any(text.endswith(" ".join(example.split())) for text in texts), example


def test_the_oracle_evaluates_every_profile(expectations: list[Expectation]) -> None:
    assert [expectation.unknown for expectation in expectations if expectation.unknown] == []


def test_those_that_should_match_nothing_do_and_all_others_match(
    profiles: list[DemoProfile], expectations: list[Expectation]
) -> None:
    matches = Counter(place for expectation in expectations for place in expectation.results)
    nothing = {profile.name for place, profile in enumerate(profiles) if not matches[place]}
    meant = {profile.name for profile in profiles if "-nothing-" in profile.name}
    assert nothing == meant
    assert 5 <= len(meant) <= len(profiles) // 5


def test_selectivity_is_spread(
    profiles: list[DemoProfile], expectations: list[Expectation]
) -> None:
    matches = Counter(place for expectation in expectations for place in expectation.results)
    counts = sorted(matches.values())
    assert sum(count <= 10 for count in counts) >= 10
    assert sum(10 < count <= 40 for count in counts) >= 15
    assert sum(count > 40 for count in counts) >= 10


def test_a_header_says_user_city_and_interest(tmp_path: Path) -> None:
    (tmp_path / "a.xq").write_text(with_header("Ana", "San Francisco", "fish:\n   all", "/a"))
    (tmp_path / "b.xq").write_text(with_header("Ben", "", "everything", "//*"))
    (tmp_path / "c.rq").write_text("# Cem near Houston: fog.\nASK { ?a ?b ?c }")
    ana, ben, cem = load_profiles(tmp_path)
    assert (ana.name, ana.user, ana.city) == ("a", "Ana", "San Francisco")
    assert ana.interest == "fish: all"
    assert (ben.user, ben.city, ben.interest) == ("Ben", "", "everything")
    assert (cem.user, cem.city, cem.interest) == ("Cem", "Houston", "fog.")


def test_a_file_without_a_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.xq").write_text("/a\n")
    with pytest.raises(ProfileFileError, match=r"a\.xq: expected '\(: user near city"):
        load_profiles(tmp_path)
