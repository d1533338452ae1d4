"""A client made of the OpenAPI document alone, against a gateway that runs: whatever it sends, the
answer is as the document describes it (schemas.py), or a refusal with a code and a reason."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
import trio

from onyx import DataSource
from onyx.gateway.api import OPERATIONS, Operation
from onyx.registration_client import RegistrationClient
from tests.onyx.gateway.browsing import Answer, Client
from tests.onyx.gateway.schemas import Schema, document, misfit
from tests.onyx.networks import RunningProcess

STREAMS = {"/v1/results", "/v1/map"}
PLANS = {"/v1/plan/auto"}  # would begin to plan, in a process of its own
NAMES = ("fuzzed", "p1-none", "user/fuzz", "é" * 9, "x" * 300, "..", "a b", "0")
WRONG: tuple[Any, ...] = (None, True, -1, 1.5, 10**30, "", "é", [], [[]], {}, {"a": {"b": 1}})
CALLS = 4  # of each operation

RULE: Schema = {
    "type": "object",
    "properties": {
        "role": {"type": "string"},
        "of": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["role"],
}
SIGNED_IN: Schema = {"$ref": "#/components/schemas/SignedIn"}


def operations(of: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in of["paths"].items():
        for method, operation in methods.items():
            if path not in STREAMS | PLANS:
                yield method.upper(), path, operation


def value(schema: Schema, chance: random.Random) -> Any:
    """One that fits, or now and then one of any kind."""
    if chance.random() < 0.2:
        return chance.choice(WRONG)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "anyOf" in schema:
        return value(chance.choice(schema["anyOf"]), chance)
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = chance.choice(kind)
    plain = {"boolean": chance.random() < 0.5, "integer": chance.randrange(100), "number": 0.5}
    if kind == "array":
        inside = schema.get("prefixItems") or [schema.get("items", {})]
        return [value(each, chance) for each in inside]
    return plain.get(kind, {} if kind == "object" else chance.choice(NAMES))


def call(
    client: Client, method: str, path: str, operation: Schema, chance: random.Random
) -> Answer:
    for name in re.findall(r"\{(\w+)\}", path):
        path = path.replace(f"{{{name}}}", quote(chance.choice(NAMES), safe=""))
    query = [
        f"{each['name']}={quote(str(value(each['schema'], chance)))}"
        for each in operation["parameters"]
        if each["in"] == "query" and chance.random() < 0.7
    ]
    path += "?" + "&".join(query) if query else ""
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return client.ask(method, path, chance.choice(NAMES) if content else None)
    schema = content["application/json"]["schema"]
    body = {
        name: value(each, chance)
        for name, each in schema.get("properties", {}).items()
        if name in schema.get("required", ()) or chance.random() < 0.5
    }
    sent = chance.choice([body, body, body, [body], {**body, "other": 1}])
    return client.ask(method, path, sent)


@pytest.mark.parametrize("seed", range(2))
def test_each_answer_is_as_the_document_says(
    client: Client, gateway_network: RunningProcess, seed: int
) -> None:
    trio.run(partial(DataSource.register, gateway_network.registration, name="fuzzed"))
    answered = 0
    for method, path, operation in operations(document()):
        for number in range(CALLS):
            chance = random.Random(f"{seed} {method} {path} {number}")
            answer = call(client, method, path, operation, chance)
            said = f"seed {seed}, call {number}: {method} {path}: {answer}"
            if answer.status >= 400:
                assert answer.status < 500 or answer.status == 503, said
                continue
            answered += 1
    assert answered > 20, "nearly all was refused"


def test_a_wrong_argument_is_named_with_what_was_expected(client: Client) -> None:
    rule = {"principal": "user/ann", "role": "king"}
    answer = client.ask("POST", "/v1/access/grant", rule)
    assert (answer.status, answer.said["where"]) == (400, "role")
    assert answer.said["expected"].startswith("publish, subscribe")
    unknown = client.ask("POST", "/v1/access/grant", {**rule, "scop": "own"})
    assert (unknown.status, unknown.said["where"], unknown.said["reason"]) == (
        *(400, "scop"),
        "the body has 'scop'; did you mean \"scope\"?; it may have: principal, role, scope",
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.route)
def test_a_name_that_an_operation_has_not_is_refused(client: Client, operation: Operation) -> None:
    method, path = operation.route.split()
    path = re.sub(r"\{\w+\}", "x", path)
    said = [client.ask(method, f"{path}?nonsense=1", "<a/>" if method == "POST" else None)]
    if operation.media_type in ("", "application/json"):
        said.append(client.ask(method, path, {"nonsense": 1}))
    for place, refused in zip(("query", "body"), said, strict=False):
        assert (refused.status, refused.said["where"]) == (400, "nonsense")
        assert f"the {place} has 'nonsense'; it may have: " in refused.said["reason"]


def test_each_operation_is_described_whole() -> None:
    """As OpenAPI 3.1 has it: operations by names of their own, each parameter of a path, references
    to schemas that are there, and of each success the content."""
    paths, components = document()["paths"], document()["components"]["schemas"]
    described = [(path, each) for path, methods in paths.items() for each in methods.values()]
    names = [each["operationId"] for _, each in described]
    assert sorted(set(names)) == sorted(names)
    assert all(re.fullmatch(r"[a-z][a-z_]*", name) for name in names)
    for path, each in described:
        in_path = [p["name"] for p in each["parameters"] if p["in"] == "path"]
        assert in_path == re.findall(r"\{(\w+)\}", path)
        assert all(p["required"] for p in each["parameters"] if p["in"] == "path")
        success = {status: of for status, of in each["responses"].items() if status < "3"}
        assert success
        for status, of in success.items():
            content = of["content"]
            assert bool(content) == (status != "204"), (path, status)
            assert set(content) <= {"application/json", "text/event-stream"}
        assert "application/problem+json" in each["responses"]["default"]["content"]
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document())))
    assert references <= components.keys() == references, "each schema is of something"
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in components)


@pytest.mark.parametrize(
    ("said", "schema", "wrong"),
    [
        ({"role": "own"}, RULE, ""),
        ({"role": 3}, RULE, "$.role is 3, no string"),
        ({}, RULE, "$ lacks ['role']"),
        ({"role": "a", "more": 1}, RULE, "$.more is in no schema"),
        ({"role": "a", "of": [1, True]}, RULE, "$.of[1] is True, no integer"),
        ({"any": 1}, {"type": "object"}, ""),
        ({"a": 1}, {"type": "object", "additionalProperties": False}, "$.a is in no schema"),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ""),
        ("c", {"enum": ["a", "b"]}, "$ is 'c', none of ['a', 'b']"),
        ([1], {"type": "array", "minItems": 2}, "$ has 1"),
        ([1, "a"], {"type": "array", "prefixItems": [{}], "items": False}, "$[1] is in no schema"),
        ({"principal": ""}, SIGNED_IN, ""),
        ({"principal": 1}, SIGNED_IN, "$.principal is 1, no string"),
    ],
)  # fmt: skip
def test_a_wrong_answer_would_be_found(said: Any, schema: Schema, wrong: str) -> None:
    assert misfit(said, schema) == wrong


def test_each_operation_answers_as_described(
    client: Client, gateway_network: RunningProcess
) -> None:
    """Each but those that take a provider of metadata or of queries, or a broker that is lost, and
    which other tests ask; ``client`` holds what it gets against the document."""
    dtd = {"schema": "<!ELEMENT asked EMPTY>", "schema_name": "a.dtd", "validate": "reject"}
    source = client.ask("POST", "/v1/sources", {"name": "asked", **dtd}).said["id"]
    for message in ("<a/>", "<b/>"):
        assert client.ask("POST", f"/v1/sources/{source}/messages", message).status == 422
    letters = client.ask("GET", "/v1/dead").said["letters"]
    first, second = (each for each in letters if each["source"] == source)
    client.ask("PATCH", f"/v1/sources/{source}", {"schema": None, "validate": "off"})
    graph = "<http://e/a> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://e/b> ."

    async def put_taxonomy() -> None:
        async with RegistrationClient(gateway_network.registration) as registration:
            await registration.put_taxonomy("asked", graph.encode(), "text/turtle")

    trio.run(put_taxonomy)
    made = client.ask("POST", "/v1/tokens", {"principal": "user/asked"}).said
    token = {"authorization": f"Bearer {made['secret']}"}
    named = {"source": source, "broker": "B3", "name": "asked", "token": made["token"]}
    named |= {"profile": client.add_profile("/asked"), "node": first["node"], "id": first["id"]}
    backtest = {"profile": "/a", "source": source}
    named["backtest"] = client.ask("POST", "/v1/backtests", backtest).said["id"]
    rule = {"principal": "user/asked", "role": "own"}
    topology = client.ask("GET", "/v1/topology").said["text"]
    bodies: dict[str, Any] = {
        "POST /v1/sources": {"name": "asked too"},
        "PATCH /v1/sources/{source}": {"rate": 7},
        "POST /v1/sources/{source}/messages": "<asked/>",
        "POST /v1/sources/{source}/trace": {"message": "<asked/>"},
        "POST /v1/profiles": {"text": "/asked/too"},
        "PUT /v1/profiles/{profile}": {"text": "/asked[a]"},
        "PATCH /v1/profiles/{profile}": {"near": False},
        "PUT /v1/profiles/{profile}/policy": {"ttl_s": 7},
        "PATCH /v1/profiles/{profile}/policy": {"retry_s": 7},
        "POST /v1/explain": {"profile": "/a[b]", "message": "<a><b/></a>"},
        "POST /v1/why-not": {"profile": named["profile"], "message": "<asked/>"},
        "POST /v1/brokers/{broker}/drain": {"dry_run": True},
        "POST /v1/topology": {"text": topology, "dry_run": True},
        "POST /v1/access/grant": rule,
        "POST /v1/access/revoke": rule,
        "POST /v1/tokens": {"principal": "user/asked"},
        "POST /v1/backtests": backtest,
    }
    elsewhere = r"/v1/(metadata|queries|brokers/.*/lost|results|map|sources/.*/schema)"
    asked = [each for each in OPERATIONS if not re.match(elsewhere, each.route.split()[1])]
    for each in sorted(asked, key=lambda each: each.route.startswith("DELETE")):
        method, path = each.route.split()
        at = named | ({"id": second["id"]} if method == "POST" else {})
        headers = token if path == "/v1/sign-in" else {}
        body = bodies.get(each.route)
        answer = client.ask(method, path.format(**at), body, **headers)
        assert answer.status < 300, f"{each.route}: {answer}"
