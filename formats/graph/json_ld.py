"""JSON-LD before it is read: its bounds, its context, and what relative IRIs become.

No context is ever fetched.  One that a source gives for its messages is put into each of them: it
holds in the whole message, before what the message says itself, and stands in for every context
that the message names by its address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits

# No IRI of a message begins so; one that was relative does, and is refused.
RELATIVE_BASE = "onyx-relative://nothing/"

_CONTEXT = "@context"
# Every string; one that is not closed goes on to the end.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_CONTEXT_MEMBER = re.compile(
    b'"' + b"".join(b"(?:%c|\\\\u00(?i:%02x))" % (byte, byte) for byte in _CONTEXT.encode()) + b'"'
)


def check_bounds(data: bytes, limits: GraphLimits) -> None:
    """Refuse what is deeper, or has more contexts, than the limits allow, before it is read.

    Raises MessageRefused (``too-deep``, ``too-many-contexts``).
    """
    contexts = sum(1 for _ in _CONTEXT_MEMBER.finditer(data))
    if contexts > limits.json_contexts_max:
        raise MessageRefused(
            "too-many-contexts", f"{contexts} contexts; at most {limits.json_contexts_max} allowed"
        )
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", data)):
        if bracket[0] in b"]}":
            depth -= 1
            continue
        depth += 1
        if depth > limits.json_depth_max:
            raise MessageRefused(
                "too-deep", f"nested more than {limits.json_depth_max} levels deep"
            )


def with_context(data: bytes, context: bytes) -> bytes:
    """The message with the context of its source, a JSON-LD document with an ``@context``.

    Raises MessageRefused (``malformed``, ``bad-context``).
    """
    given = _read(context, "bad-context")
    if not isinstance(given, dict) or not isinstance(given.get(_CONTEXT), dict | list):
        raise MessageRefused(
            "bad-context", f"the source's context is no object with an {_CONTEXT!r} in it"
        )
    found = _contexts_in(given[_CONTEXT], [])
    message = _resolved(_read(data, "malformed"), found)
    parts = message if isinstance(message, list) else [message]
    for part in parts:
        if isinstance(part, dict):
            part[_CONTEXT] = [*found, *_contexts_in(part.get(_CONTEXT, []), [])]
    return json.dumps(message, ensure_ascii=False, allow_nan=False).encode()


def _resolved(value: Any, given: list[Any]) -> Any:
    """The value with the given contexts in place of all that are named by their addresses."""
    if isinstance(value, list):
        return [_resolved(each, given) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: _contexts_in(each, given) if key == _CONTEXT else _resolved(each, given)
        for key, each in value.items()
    }


def _contexts_in(value: Any, given: list[Any]) -> list[Any]:
    """A context as a list, each that is named replaced by the given ones."""
    found: list[Any] = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str):
            found += given
        else:
            found.append(_resolved(each, given))
    return found


def _read(data: bytes, code: str) -> Any:
    try:
        return json.loads(data.decode())
    except json.JSONDecodeError as error:
        raise MessageRefused(code, error.msg, error.lineno, error.colno) from None
    except (ValueError, RecursionError) as error:
        raise MessageRefused(code, f"cannot be read as JSON: {error}") from None
