"""A client made of the OpenAPI document alone, against a gateway that runs: whatever it sends, the
answer is as the document describes it, or a refusal with a code and a reason."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
import trio

from onyx import DataSource
from onyx.gateway.api import OPERATIONS, Operation
from tests.onyx.gateway.browsing import Answer, Client
from tests.onyx.networks import RunningProcess

STREAMS = {"/v1/results", "/v1/map"}
PLANS = {"/v1/plan/auto"}  # would begin to plan, in a process of its own
NAMES = ("fuzzed", "p1-none", "user/fuzz", "é" * 9, "x" * 300, "..", "a b", "0")
WRONG: tuple[Any, ...] = (None, True, -1, 1.5, 10**30, "", "é", [], [[]], {}, {"a": {"b": 1}})
CALLS = 4  # of each operation

Schema = Mapping[str, Any]


def operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in document["paths"].items():
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


def misfit(said: Any, schema: Schema, components: Schema, at: str = "$") -> str:
    """Where an answer is not as its schema has it, "" where it is."""
    if "$ref" in schema:
        return misfit(said, components[schema["$ref"].rpartition("/")[2]], components, at)
    if "anyOf" in schema:
        found = [misfit(said, each, components, at) for each in schema["anyOf"]]
        return "" if "" in found else found[0]
    kinds: dict[str, Any] = {
        "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
        "boolean": bool, "null": type(None),
    }  # fmt: skip
    if "type" in schema and not isinstance(said, kinds[schema["type"]]):
        return f"{at} is {said!r:.60}, no {schema['type']}"
    if "enum" in schema and said not in schema["enum"]:
        return f"{at} is {said!r}, none of {schema['enum']}"
    if isinstance(said, list):
        inside = [(f"{at}[{n}]", each, schema.get("items")) for n, each in enumerate(said)]
    elif isinstance(said, dict) and "properties" in schema:
        if lacking := [each for each in schema.get("required", ()) if each not in said]:
            return f"{at} lacks {lacking}"
        if unknown := sorted(said.keys() - schema["properties"].keys()):
            return f"{at} has {unknown}, which are in no schema"
        inside = [(f"{at}.{n}", each, schema["properties"][n]) for n, each in said.items()]
    else:
        return ""
    found = [misfit(each, of, components, where) for where, each, of in inside if of]
    return next(filter(None, found), "")


@pytest.mark.parametrize("seed", range(2))
def test_each_answer_is_as_the_document_says(
    client: Client, gateway_network: RunningProcess, seed: int
) -> None:
    trio.run(partial(DataSource.register, gateway_network.registration, name="fuzzed"))
    document = client.ask("GET", "/v1/openapi.json").said
    components = document["components"]["schemas"]
    answered = 0
    for method, path, operation in operations(document):
        for number in range(CALLS):
            chance = random.Random(f"{seed} {method} {path} {number}")
            answer = call(client, method, path, operation, chance)
            said = f"seed {seed}, call {number}: {method} {path}: {answer}"
            if answer.status >= 400:
                assert answer.status < 500 or answer.status == 503, said
                assert answer.headers["content-type"] == "application/problem+json", said
                assert answer.said["code"] and answer.said["reason"], said
                assert not misfit(answer.said, components["Refusal"], components), said
                continue
            answered += 1
            described = operation["responses"][str(answer.status)]
            schema = described.get("content", {}).get("application/json", {}).get("schema")
            if schema is not None:
                assert not misfit(answer.said, schema, components), said
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


def test_a_wrong_answer_would_be_found() -> None:
    rule: Schema = {
        "type": "object",
        "properties": {"role": {"type": "string"}, "of": {"type": "array", "items": {}}},
        "required": ["role"],
    }
    assert misfit({"role": "own"}, rule, {}) == ""
    assert misfit({"role": 3}, rule, {}) == "$.role is 3, no string"
    assert misfit({}, rule, {}) == "$ lacks ['role']"
    assert misfit({"role": "a", "more": 1}, rule, {}) == "$ has ['more'], which are in no schema"
    assert misfit({"role": "a", "of": 1}, {"$ref": "#/Rule"}, {"Rule": rule}).endswith("no array")
    json.dumps(WRONG[:-1])
