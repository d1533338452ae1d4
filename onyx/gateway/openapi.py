"""The OpenAPI document of the API, made from its operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from onyx.gateway.operation import Operation
from onyx.release import version
from overlay.delivery_policy import DeliveryPolicy

REFUSAL = {
    "description": "code, reason",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "wait": {"type": "boolean"},
    "rate": {"type": "number"},
    "size": {"type": "integer"},
    "schema": {"type": ["string", "null"]},
    "policy": {"type": "object"},
    **{name: {"type": "integer"} for name in DeliveryPolicy._fields[1:]},
    "location": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
}
"""Of the fields that are no texts."""


def openapi(operations: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    fields = {"code": "string", "reason": "string", "expected": "string"}
    places = {"line": "integer", "column": "integer"}
    properties = {name: {"type": kind} for name, kind in {**fields, **places}.items()}
    refusal = {"type": "object", "properties": properties, "required": ["code", "reason"]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Onyx gateway", "version": version()},
        "paths": paths,
        "components": {
            "schemas": {"Refusal": refusal},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _described(operation: Operation) -> dict[str, Any]:
    answers = {
        str(status): REFUSAL | {"description": said} if status >= 400 else {"description": said}
        for status, said in operation.answers.items()
    }
    described: dict[str, Any] = {
        "operationId": operation.answer.__name__,
        "summary": operation.summary,
        "parameters": list(_parameters(operation)),
        "responses": {**answers, "default": REFUSAL},
    }
    if operation.media_type:
        schema: dict[str, Any] = {}
        if operation.body:
            schema = {
                "type": "object",
                "properties": {
                    name: {**_SCHEMAS.get(name, {"type": "string"}), "description": said}
                    for name, said in operation.body.items()
                },
                "required": list(operation.required),
            }
        described["requestBody"] = {
            "required": bool(operation.body) or operation.media_type != "application/json",
            "content": {operation.media_type: {"schema": schema}},
        }
    return described


def _parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    text = {"type": "string"}
    for name in re.findall(r"\{(\w+)\}", operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": text}
    for name, said in operation.query.items():
        yield {"name": name, "in": "query", "description": said, "schema": text}
    for name, said in operation.headers.items():
        if name != "Authorization":  # is a scheme of security
            yield {"name": name, "in": "header", "description": said, "schema": text}
