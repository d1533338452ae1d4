"""What programs ask of a gateway, of one that runs."""

from __future__ import annotations

import io
import zipfile
from base64 import b64decode

import pytest
import trio
from starlette.routing import Route

from onyx import DataSource, User
from onyx.gateway.api import OPERATIONS
from onyx.gateway.call import Gateway
from onyx.gateway.gateway_process import application
from onyx.gateway.map_feed import MapFeed
from onyx.gateway.options import GatewayOptions
from onyx.gateway.sessions import Sessions
from onyx.gateway.traffic import Traffic
from onyx.gateway.trials import Trials
from overlay.nodes import Address
from tests.onyx.gateway.browsing import Answer, Client
from tests.onyx.gateway.tokens import issue, revoke
from tests.onyx.networks import RunningProcess
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE

XS = "http://www.w3.org/2001/XMLSchema"
CONNECTIONS_MAX = 512  # as a gateway has them unless it is told
SECRET = "a-token-of-the-tests-with-enough-characters"


def test_a_connection_goes_with_its_client(client: Client) -> None:
    """Otherwise those of clients that have gone would fill the gateway."""
    for number in range(CONNECTIONS_MAX + 8):
        assert client.ask("GET", "/v1/whoami").status == 200, number


def test_what_a_reader_has_is_acknowledged_when_they_come_back(client: Client, source: str) -> None:
    profile = client.add_profile("/reader")
    client.publish(source, "<reader>1</reader>")
    path = f"/v1/results?profile={profile}"
    with client.events(path) as events:
        opened, first = next(events), next(events)
    assert opened.kind == "open"
    assert (first.kind, first.data["results"]) == ("delivery", ["<reader>1</reader>"])
    assert first.id == f"{profile}:1"
    with client.events(path) as events:  # who does not say that they have it gets it again
        assert [next(events).kind, next(events).id] == ["open", first.id]
    client.publish(source, "<reader>2</reader>")
    with client.events(path, last_event_id=first.id) as events:
        next(events)
        assert next(events).data["results"] == ["<reader>2</reader>"]
    with client.events(path) as events:  # and what was acknowledged is gone for good
        next(events)
        assert next(events).data["results"] == ["<reader>2</reader>"]
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_who_only_looks_leaves_all_to_whoever_takes_it(client: Client, source: str) -> None:
    profile = client.add_profile("/looked")
    path = f"/v1/results?profile={profile}"
    client.publish(source, "<looked>1</looked>")
    with client.events(f"{path}&acknowledge=never") as looking:
        assert [next(looking).kind, next(looking).id] == ["open", f"{profile}:1"]
        with client.events(path) as taking:
            assert [next(taking).kind, next(taking).id] == ["open", f"{profile}:1"]
            client.publish(source, "<looked>2</looked>")
            assert next(taking).id == next(looking).id == f"{profile}:2"
        with client.events(path, last_event_id=f"{profile}:2") as taking:
            assert next(taking).kind == "open"  # both are acknowledged
            client.publish(source, "<looked>3</looked>")
            seen = next(looking)
    assert (seen.id, seen.data["results"]) == (f"{profile}:3", ["<looked>3</looked>"])
    with client.events(f"{path}&acknowledge=never", last_event_id=f"{profile}:1") as looking:
        assert next(looking).kind == "open"
        assert next(looking).data == {"profile": profile, "deliveries": 1}
        assert next(looking).id == f"{profile}:3"
        client.ask("DELETE", f"/v1/profiles/{profile}")
        ended = next(looking)
    assert (ended.kind, ended.data["code"]) == ("ended", "unknown-profile")


def test_a_stream_of_several_profiles_says_how_far_it_is_with_each(
    client: Client, source: str
) -> None:
    one, other = client.add_profile("/several/a"), client.add_profile("/several/b")
    client.publish(source, "<several><a/><b/></several>")
    path = f"/v1/results?profile={one}&profile={other}&acknowledge=sent"
    with client.events(path) as events:
        next(events)
        got = [next(events), next(events)]
    assert {event.data["profile"] for event in got} == {one, other}
    assert set(got[1].id.split(",")) == {f"{one}:1", f"{other}:1"}
    assert client.ask("GET", "/v1/results", last_event_id="x").status == 400
    assert client.ask("GET", "/v1/results?profile=p0", last_event_id="x").said["code"] == (
        "bad-event-id"
    )
    assert client.ask("GET", "/v1/results?profile=p0-none").status == 404
    wrong = client.ask("DELETE", "/v1/status")
    assert (wrong.status, wrong.said["code"]) == (405, "method-not-allowed")


def test_a_profile_that_is_removed_ends_its_stream(client: Client) -> None:
    profile = client.add_profile("/removed")
    with client.events(f"/v1/results?profile={profile}") as events:
        next(events)
        assert client.ask("DELETE", f"/v1/profiles/{profile}").status == 204
        ended = next(events)
    assert (ended.kind, ended.data["code"]) == ("ended", "forgotten")


def test_a_message_is_accepted_once_by_its_key_or_refused_with_its_place(
    client: Client, source: str
) -> None:
    path = f"/v1/sources/{source}/messages"
    first = client.ask("POST", path, "<a/>", publish_key="k1")
    again = client.ask("POST", path, "<a/>", publish_key="k1")
    assert (first.status, again.status) == (201, 200)
    assert (again.said["number"], again.said["is_known"]) == (first.said["number"], True)
    refused = client.ask("POST", path, "<a><b></a>")
    assert refused.status == 422
    said = {name: refused.said[name] for name in ("code", "line", "column")}
    assert said == {"code": "malformed", "line": 1, "column": 9}
    assert client.ask("POST", "/v1/sources/s0-none/messages", "<a/>").status == 404


def test_profiles_are_resources(client: Client) -> None:
    added = client.ask("POST", "/v1/profiles", {"text": "/a/b", "user": "ann"})
    where = added.headers["location"]
    assert client.ask("GET", where).said["text"] == "/a/b"
    listed = client.ask("GET", "/v1/profiles?user=ann").said
    assert [each["id"] for each in listed["profiles"]] == [added.said["id"]]
    changed = client.ask("PUT", where, {"text": "/a/c"})
    assert (changed.status, changed.said["version"], changed.said["live"]) == (200, 2, True)
    refused = client.ask("PUT", where, {"text": "/a[b => 1]"})
    assert refused.status == 422
    said = [refused.said[name] for name in ("code", "line", "column", "expected")]
    assert said == ["syntax", 1, 6, "'>='"]
    assert client.ask("GET", where).said["text"] == "/a/c"
    assert client.ask("DELETE", where).status == 204
    assert client.ask("GET", where).status == 404
    assert client.ask("POST", "/v1/profiles", {}).said["where"] == "text"
    for said in ("{", "[]", '{"text": NaN}', r'{"text": "\ud800"}', "[" * 100_000):
        refused = client.ask("POST", "/v1/profiles", said, content_type="application/json")
        assert (refused.status, refused.said["code"]) == (400, "bad-json")


def test_how_what_waits_is_kept_is_a_part_of_a_profile(client: Client, source: str) -> None:
    profile = client.add_profile("/kept", policy={"deliveries_max": 2})
    path = f"/v1/profiles/{profile}/policy"
    shown = client.ask("GET", path).said
    assert (shown["deliveries_max"], shown["when_full"]) == (2, "drop-oldest")
    changed = client.ask("PATCH", path, {"when_full": "drop-newest"})
    assert (changed.status, changed.said) == (200, {**shown, "when_full": "drop-newest"})
    for number in range(4):
        client.publish(source, f"<kept>{number}</kept>")
    with client.events(f"/v1/results?profile={profile}&acknowledge=sent") as events:
        next(events)
        got = [next(events).data["results"] for _ in range(2)]
    assert got == [["<kept>0</kept>"], ["<kept>1</kept>"]]
    assert client.ask("PUT", path, {"ttl_s": 60}).said == {
        **shown,
        "ttl_s": 60,
        "deliveries_max": 0,
    }
    refused = client.ask("PATCH", path, {"ttl_s": -1})
    assert (refused.status, refused.said["code"]) == (400, "bad-argument")
    assert client.ask("GET", "/v1/profiles/p0-none/policy").status == 404
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_sources_are_resources(client: Client, gateway_network: RunningProcess) -> None:
    async def register() -> str:
        return (await DataSource.register(gateway_network.registration, name="changed")).id

    source = trio.run(register)
    where = f"/v1/sources/{source}"
    assert client.ask("GET", "/v1/sources/changed").said["id"] == source
    schema = {"schema": "<!ELEMENT a EMPTY>", "schema_name": "a.dtd", "validate": "reject"}
    updated = client.ask("PATCH", where, {**schema, "rate": 7, "location": [20, 0]})
    assert updated.status == 200, updated
    said = updated.said
    assert (said["version"], said["rate"], said["schema_kind"]) == (2, 7, "dtd")
    assert (said["validation"], said["location"]) == ("reject", [20, 0])
    assert client.ask("POST", f"{where}/messages", "<b/>").said["code"] == "invalid"
    for wrong, status, code in (
        ({"schema": "<!ELEMENT", "schema_name": "a.dtd"}, 422, "schema-refused"),
        ({"schema": None}, 422, "schema-refused"),  # by which it is validated
        ({"rate": "much"}, 400, "bad-argument"),
        ({"rat": 1}, 400, "bad-argument"),
        ({}, 400, "bad-argument"),
    ):
        refused = client.ask("PATCH", where, wrong)
        assert (refused.status, refused.said["code"]) == (status, code), refused
    assert client.ask("PATCH", where, {"schema": None, "validate": "off"}).said["schema_name"] == ""
    assert client.ask("DELETE", where).status == 204
    assert client.ask("GET", where).said["code"] == "unknown-source"
    assert client.ask("DELETE", where).status == 404


def zipped(**documents: str) -> bytes:
    """With names that end in .xsd."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as bundle:
        for name, text in documents.items():
            begin = f"<xs:schema xmlns:xs='{XS}'>"
            bundle.writestr(f"{name}.xsd", f"{begin}{text}</xs:schema>")
    return written.getvalue()


def test_a_schema_of_several_documents_is_a_zip_file(
    client: Client, gateway_network: RunningProcess
) -> None:
    async def register() -> str:
        return (await DataSource.register(gateway_network.registration)).id

    where = f"/v1/sources/{trio.run(register)}"
    main = "<xs:include schemaLocation='t.xsd'/><xs:element name='a' type='T'/>"
    kind = "<xs:simpleType name='T'><xs:restriction base='xs:int'/></xs:simpleType>"
    both = zipped(main=main, t=kind)

    def put(body: bytes, query: str = "", kind: str = "application/zip") -> Answer:
        return client.ask("PUT", f"{where}/schema{query}", body, content_type=kind)

    said = put(both).said
    assert (said["schema_name"], said["schema_kind"], said["schema_unread"]) == (
        *("main.xsd", "xsd"),
        [],
    )
    assert client.ask("PATCH", where, {"validate": "reject"}).status == 200
    assert client.ask("POST", f"{where}/messages", "<a>x</a>").said["code"] == "invalid"
    assert client.ask("POST", f"{where}/messages", "<a>7</a>").status == 201
    lacking = put(zipped(main=main, other="<xs:element name='b'/>"), "?main=main.xsd")
    assert "t.xsd, which is not there" in str(lacking.said), lacking
    for body, query, why in (
        (both[:60], "", "the body is no zip file"),
        (both, "?main=none.xsd", "the zip file has no none.xsd"),
        (zipped(), "", "has no .xsd, .rng, .dtd file"),
        (zipped(a="", b=""), "", "Say main=NAME; no other refers to a.xsd, b.xsd"),
        (zipped(a="<xs:element"), "", "a.xsd"),
    ):
        refused = put(body, query)
        assert (refused.status, refused.said["code"]) == (422, "schema-refused"), refused
        assert why in refused.said["reason"]
    assert put(both, kind="text/xml").status == 415
    assert client.ask("GET", where).said["schema_name"] == "main.xsd"
    assert client.ask("DELETE", where).status == 204


def test_a_profile_is_explained_and_said_why_it_does_not_match(client: Client) -> None:
    returning = "for $a in /a where $a/b > 3 return <r>{$a/c}</r>"
    asked = {"profile": returning, "message": "<a><b>5</b><c>x</c></a>"}
    explained = client.ask("POST", "/v1/explain", asked).said
    assert (explained["matched"], explained["results_shown"]) == (True, ["<r><c>x</c></r>"])
    explained = client.ask("POST", "/v1/explain", {"profile": "/Q{urn:a:b}c"}).said
    texts = [part["text"] for said in (explained, explained["shown"]) for part in said["parts"]]
    assert texts == ["/Q{urn:a:b}c", "/b:c"]
    assert explained["text"].endswith("\n\nb = urn:a:b")
    profile = client.add_profile("/a[b > 3]/c")
    asked = {"profile": profile, "message": "<a><b>2</b><c>x</c></a>"}
    why_not = client.ask("POST", "/v1/why-not", asked).said
    assert (why_not["matched"], why_not["failure"]["text"]) == (False, "[. > 3]")
    client.ask("DELETE", f"/v1/profiles/{profile}")


@pytest.mark.parametrize("name", ["pairs that never sum", "triples of elements"])
def test_a_hostile_profile_costs_no_more_than_its_limits(client: Client, name: str) -> None:
    asked = {"profile": HOSTILE[name], "message": MESSAGE.decode()}
    refused = client.ask("POST", "/v1/explain", asked)
    assert refused.status == 422, refused.said
    assert refused.said["code"].startswith("too-")
    assert client.ask("POST", "/v1/explain", {"profile": "/a", "message": "<a/>"}).status == 200


def test_the_document_says_what_there_is(client: Client) -> None:
    document = client.ask("GET", "/v1/openapi.json").said
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    trials = Trials()
    parts = GatewayOptions(Address("127.0.0.1", 1)), Sessions("127.0.0.1:1", 1), trials
    app = application(Gateway(*parts, MapFeed("127.0.0.1:1"), Traffic()))
    routes = [route for route in app._app.routes if isinstance(route, Route)]  # type: ignore[attr-defined]
    served = {
        (method, route.path)
        for route in routes
        if route.path.startswith("/v1/")
        for method in (route.methods or ()) - {"HEAD"}
    }
    assert described == served == {tuple(each.route.split()) for each in OPERATIONS}


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "onyx.attacker.example"}, 421, "wrong-host"),
        ({"host": "127.0.0.1.attacker.example:80"}, 421, "wrong-host"),
        ({"origin": "https://attacker.example"}, 403, "cross-site"),
        ({"sec_fetch_site": "cross-site"}, 403, "cross-site"),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate"}, 403, "cross-site"),
        ({"content_type": ""}, 415, "media-type"),
        ({"content_type": "application/xml"}, 415, "media-type"),
        ({"content_type": "text/plain"}, 415, "media-type"),
        ({"content_type": "application/x-www-form-urlencoded"}, 415, "media-type"),
        ({"content_length": str(1 << 40)}, 413, "too-long"),
        ({"authorization": "Bearer not-a-token-of-this-network"}, 401, "not-authenticated"),
    ],
)
def test_what_pages_of_others_can_send_is_refused(
    client: Client, headers: dict[str, str], status: int, code: str
) -> None:
    answer = client.ask("POST", "/v1/profiles", {"text": "/never-added"}, **headers)
    assert (answer.status, answer.said["code"]) == (status, code)
    assert "/never-added" not in str(client.ask("GET", "/profiles").said)


def test_pages_of_others_cannot_take_results(client: Client) -> None:
    for mode in ("no-cors", "navigate"):
        fetched = {"sec_fetch_site": "cross-site", "sec_fetch_mode": mode}
        assert client.ask("GET", "/v1/results?profile=p1", **fetched).status == 403


def test_whoever_shows_a_token_is_its_holder(
    client: Client, gateway_network: RunningProcess, source: str
) -> None:
    where = gateway_network.registration

    async def prepare() -> str:
        await issue(where, "user/ann", SECRET)
        async with User(where, "bob") as bob:
            return (await bob.add_profile("/of-bob")).id

    bobs = trio.run(prepare)
    ann = Client(client.url, {"Authorization": f"Bearer {SECRET}"})
    own = ann.add_profile("/of-ann")
    assert client.ask("GET", f"/v1/profiles/{own}").said["user"] == "ann"
    assert ann.ask("GET", f"/v1/profiles/{bobs}").status == 403
    assert ann.ask("GET", f"/v1/results?profile={bobs}").status == 403
    assert ann.ask("POST", "/v1/profiles", {"text": "/a", "user": "bob"}).status == 403
    assert ann.ask("PUT", f"/v1/profiles/{bobs}/policy", {}).said["code"] == "not-authorised"
    for method, body in (("PATCH", {"rate": 1}), ("DELETE", None)):
        assert ann.ask(method, f"/v1/sources/{source}", body).said["code"] == "not-authorised"
    backtest = {"profile": "/a", "source": source}
    assert ann.ask("POST", "/v1/backtests", backtest).said["code"] == "not-authorised"
    for path in ("/v1/status", "/v1/map", "/brokers/B1"):
        assert ann.ask("GET", path).status == 403
    assert ann.ask("GET", "/").headers["location"] == "/profiles"
    with ann.events(f"/v1/results?profile={own}") as events:
        next(events)
        trio.run(revoke, where, SECRET)
        assert [event.kind for event in events] in ([], ["ended"])
    while (status := ann.ask("GET", "/v1/profiles").status) == 403:
        pass  # their connections are about to be closed
    assert status == 401


def test_the_network_is_shown_in_figures(client: Client) -> None:
    nodes = client.ask("GET", "/v1/status").said["nodes"]
    assert set(nodes) == {"registration", "B1", "B2", "B3"}
    assert {said["state"] for said in nodes.values()} == {"up"}


def test_a_source_is_registered_once_by_its_key(client: Client) -> None:
    schema = {"schema": "<!ELEMENT a EMPTY>", "schema_name": "a.dtd", "validate": "reject"}
    said = {"name": "posted", "rate": 5, "location": [10, 0], "key": "posted", **schema}
    first, again = (client.ask("POST", "/v1/sources", said) for _ in range(2))
    assert (first.status, first.said["rate"], first.said["validation"]) == (201, 5, "reject")
    assert again.said["id"] == first.said["id"]
    where = first.headers["location"]
    assert client.ask("GET", where).said["name"] == "posted"
    other = client.ask("POST", "/v1/sources", {**said, "validate": "off"})
    assert (other.status, other.said["code"]) == (409, "other-content")
    assert client.ask("DELETE", where).status == 204


def test_the_way_of_a_message_is_shown_broker_by_broker(client: Client, source: str) -> None:
    profile = client.add_profile("/way", user="far", location=[0, 0])
    said = {"message": "<way/>", "media_type": "text/xml"}
    way = client.ask("POST", f"/v1/sources/{source}/trace", said).said
    assert way["source"] == source
    assert way["steps"][0]["broker"] == way["steps"][0]["root"] == "B1"
    assert [each["broker"] for each in way["steps"] if profile in each["profiles"]]
    broken = client.ask("POST", f"/v1/sources/{source}/trace", {"message": "<way>"})
    assert (broken.status, broken.said["code"]) == (422, "malformed")
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_a_dead_letter_is_listed_shown_replayed_and_dropped(client: Client) -> None:
    schema = {"schema": "<!ELEMENT a EMPTY>", "schema_name": "a.dtd", "validate": "reject"}
    where = client.ask("POST", "/v1/sources", {"name": "dying", **schema}).headers["location"]
    assert client.ask("POST", f"{where}/messages", "<dead/>").status == 422
    assert client.ask("POST", f"{where}/messages", "<deader/>").status == 422

    def letters() -> dict[str, str]:
        found = client.ask("GET", "/v1/dead").said
        assert found["silent"] == []
        own = [each for each in found["letters"] if each["source"] == where.split("/")[-1]]
        return {each["id"]: f"/v1/dead/{each['node']}/{each['id']}" for each in own}

    first, second = letters().values()
    data = {b64decode(client.ask("GET", path).said["data"]) for path in (first, second)}
    assert data == {b"<dead/>", b"<deader/>"}
    again = client.ask("POST", f"{first}/replay")
    assert (again.status, again.said["code"]) == (422, "invalid")
    client.ask("PATCH", where, {"validate": "off"})
    replayed = client.ask("POST", f"{first}/replay").said
    assert (replayed["kind"], replayed["source"]) == ("refused", where.split("/")[-1])
    assert replayed["number"] >= 1
    assert first not in letters().values()
    for path in letters().values():
        assert client.ask("DELETE", path).status == 204
    assert letters() == {}
    gone = client.ask("GET", first)
    assert (gone.status, gone.said["code"]) == (404, "unknown-letter")
    unknown = client.ask("GET", "/v1/dead/nowhere/0")
    assert (unknown.status, unknown.said["code"]) == (404, "unknown-node")
    client.ask("DELETE", where)


def test_a_token_is_made_works_and_is_revoked(client: Client) -> None:
    only = [["own", "*"]]
    made = client.ask("POST", "/v1/tokens", {"principal": "user/tom", "only": only})
    assert made.status == 201, made
    listed = client.ask("GET", "/v1/tokens").said["tokens"]
    mine = {"token": made.said["token"], "principal": "user/tom", "expires": made.said["expires"]}
    assert {**mine, "only": only} in listed
    tom = Client(client.url, {"Authorization": f"Bearer {made.said['secret']}"})
    assert tom.ask("GET", "/v1/whoami").said["principal"] == "user/tom"
    assert tom.ask("POST", "/v1/tokens", {"principal": "user/tom"}).status == 403
    assert client.ask("DELETE", f"/v1/tokens/{made.said['token']}").status == 204
    while (status := tom.ask("GET", "/v1/whoami").status) == 200:
        pass  # their connections are about to be closed
    assert status in (401, 403)


@pytest.mark.parametrize("kind", ["application/json", "image/png", "nonsense"])
def test_a_body_that_is_no_message_is_refused_by_its_media_type(
    client: Client, source: str, kind: str
) -> None:
    refused = client.ask("POST", f"/v1/sources/{source}/messages", "[1]", content_type=kind)
    assert (refused.status, refused.said["code"]) == (415, "unknown-format"), refused
