"""Answers of a gateway held against its OpenAPI document, as those of all tests are (browsing.py).

Read as JSON Schema says, but that an object has no names that its schema has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from onyx.gateway.api import OPERATIONS, openapi

Schema = Mapping[str, Any]
KINDS: Mapping[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
    "boolean": bool, "null": type(None),
}  # fmt: skip


@cache
def document() -> Schema:
    return openapi(OPERATIONS)


def operation(method: str, path: str) -> Schema | None:
    """The one that a request is of, if it is of any."""
    path = path.partition("?")[0]
    for template, methods in document()["paths"].items():
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in methods:
            found: Schema = methods[method.lower()]
            return found
    return None


def misfit_of_answer(method: str, path: str, status: int, media_type: str, said: Any) -> str:
    """Where an answer is not as the document has it, "" where it is."""
    described = operation(method, path)
    if described is None:
        return ""
    by_status = described["responses"]
    if status < 400 and str(status) not in by_status:
        return f"{status} is none of {list(by_status)}"
    content = by_status.get(str(status), by_status["default"]).get("content", {})
    if not content:
        return f"{said!r}, and no content is described" if said else ""
    if media_type not in content:
        return f"{media_type} is none of {list(content)}"
    return misfit(said, content[media_type]["schema"])


def misfit_of_event(path: str, kind: str, said: Any) -> str:
    described = operation("GET", path)
    assert described is not None
    events = described["responses"]["200"]["content"]["text/event-stream"]["x-events"]
    return misfit(said, events[kind]) if kind in events else f"{kind} is none of {list(events)}"


def misfit(said: Any, schema: Schema | bool, at: str = "$") -> str:
    """Where a value is not as a schema has it, "" where it is."""
    if isinstance(schema, bool):
        return "" if schema else f"{at} is in no schema"
    return next(filter(None, _misfits(said, schema, at)), "")


def _misfits(said: Any, schema: Schema, at: str) -> Iterator[str]:
    if "$ref" in schema:
        yield misfit(said, document()["components"]["schemas"][schema["$ref"].split("/")[-1]], at)
    if "anyOf" in schema:
        found = [misfit(said, each, at) for each in schema["anyOf"]]
        yield "" if "" in found else found[0]
    if (kind := schema.get("type")) is not None:
        kinds = [kind] if isinstance(kind, str) else kind
        if isinstance(said, bool):
            is_right = "boolean" in kinds
        else:
            is_right = isinstance(said, tuple(KINDS[each] for each in kinds))
        yield "" if is_right else f"{at} is {said!r:.60}, no {kind}"
    if said not in schema.get("enum", [said]):
        yield f"{at} is {said!r}, none of {schema['enum']}"
    if isinstance(said, list):
        first, rest = schema.get("prefixItems", []), schema.get("items", {})
        for number, each in enumerate(said):
            yield misfit(each, first[number] if number < len(first) else rest, f"{at}[{number}]")
        if not schema.get("minItems", 0) <= len(said) <= schema.get("maxItems", len(said)):
            yield f"{at} has {len(said)}"
    if isinstance(said, dict) and schema.get("type") == "object":
        lacking = [each for each in schema.get("required", ()) if each not in said]
        yield f"{at} lacks {lacking}" if lacking else ""
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", not known)
        for name, each in said.items():
            yield misfit(each, known.get(name, others), f"{at}.{name}")
