"""A query over an archive stands: its profile is the user's, once, and live."""

from __future__ import annotations

from pathlib import Path

import pytest

from onyx.blocking import DataSource, User
from onyx.errors import ProfileNotAccepted
from onyx.queries import Catalog, QueryRefused
from onyx.queries.planning import QueryPlan, plan_query
from onyx.queries.standing import add_standing, standing_profiles
from onyx.spark.network import Network

MARKET = """
@prefix q: <urn:onyx:query:1#> . @prefix : <http://example.org/#> .
:archive a q:DataProvider ; q:name "archive" .
:wire a q:Relation ; q:name "wire" ; q:provider :archive ; q:readAt <urn:onyx:query:client> ;
    q:format "archive" ; q:option "source=s1", "registration=127.0.0.1:7" .
:old a q:Relation ; q:name "old" ; q:provider :archive ; q:readAt <urn:onyx:query:client> ;
    q:format "archive" ; q:location "/no/such" .
"""


@pytest.fixture
def plan(tmp_path: Path) -> QueryPlan:
    (tmp_path / "market.ttl").write_text(MARKET)
    sql = """
        SELECT w.result, count(*) FROM archive.wire(profile => '//a') w
        JOIN (SELECT * FROM archive.old(profile => '//b[c = ''d'']') UNION ALL
              SELECT * FROM archive.wire(profile => '//a')) o ON o.number = w.number
        WHERE w.source IN (SELECT source FROM archive.wire(profile => '//c'))
        GROUP BY w.result
    """.replace("''", "\\'")
    return plan_query(sql, Catalog.read(tmp_path / "market.ttl").market)


def test_each_profile_of_a_query_stands_once_wherever_the_query_has_it(plan: QueryPlan) -> None:
    where = "127.0.0.1:7"
    assert standing_profiles(plan.fragments) == {"//a": where, "//b[c = 'd']": "", "//c": where}


def test_a_query_without_a_profile_cannot_stand(plan: QueryPlan) -> None:
    whole = plan_query("SELECT count(*) FROM archive.wire", plan.market)
    with pytest.raises(QueryRefused, match="asks nothing of messages to come"):
        standing_profiles(whole.fragments)


def test_the_profile_is_the_users_and_gets_messages_to_come(
    registration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(registration)
    profile = add_standing(network, "ann", "//standing[@n = 1]")
    assert profile.live
    assert add_standing(network, "ann", "//standing[@n = 1]").id == profile.id
    assert add_standing(network, "ann", "//standing[@n = 2]").id != profile.id
    monkeypatch.setattr("getpass.getuser", lambda: "login")
    assert add_standing(network, "", "//standing[@n = 2]").user == "login"
    with pytest.raises(ProfileNotAccepted):
        add_standing(network, "ann", "//[")
    with DataSource.register(registration) as source:
        assert source.publish(b'<standing n="1"/>').accepted
    with User(registration, "ann") as user:
        assert next(user.results(profile.id)).results == [b'<standing n="1"/>']
