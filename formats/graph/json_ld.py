"""JSON-LD before it is read: its bounds, its context, and what relative IRIs become.

No context is ever fetched.  One that a source gives for its messages is put into each of them: it
holds in the whole message, before what the message says itself, and stands in for every context
that the message names by its address.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits

# No IRI of a message begins so; one that was relative does, and is refused.
RELATIVE_BASE = "onyx-relative://nothing/"

_CONTEXT = "@context"
_SHORT = 4096  # bytes in which no harm can be done by one context
# Every string; one that is not closed goes on to the end.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_DEEPER = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed numbers
_CONTEXT_MEMBER = re.compile(
    b'"'
    + b"".join(b"(?:%c|\\\\u00(?i:%02x))" % (byte, byte) for byte in _CONTEXT.encode())
    + rb'"(?P<list>[ \t\r\n]*+:[ \t\r\n]*+\[)?'
)


def check_bounds(data: bytes, limits: GraphLimits) -> None:
    """Refuse what is longer or deeper, or has more contexts, than the limits allow, before it is
    read.

    Raises MessageRefused (``too-large``, ``too-deep``, ``too-many-contexts``).
    """
    if len(data) > limits.json_bytes_max:
        raise MessageRefused(
            "too-large",
            f"{len(data):,} bytes of JSON-LD; at most {limits.json_bytes_max:,}: publish a larger "
            "graph in Turtle or N-Quads",
        )
    contexts, several = 0, False
    for found in _CONTEXT_MEMBER.finditer(data):
        contexts += 1
        several = several or contexts > 1 or found["list"] is not None
    if contexts > limits.json_contexts_max:
        raise MessageRefused(
            "too-many-contexts", f"{contexts} contexts; at most {limits.json_contexts_max} allowed"
        )
    steps = array("b", _STRING.sub(b"", data).translate(_DEEPER, _NO_BRACKETS))
    if max(accumulate(steps), default=0) > limits.json_depth_max:
        raise MessageRefused("too-deep", f"nested more than {limits.json_depth_max} levels deep")
    if several or (contexts and len(data) > _SHORT):
        _check_contexts(data, limits)


def _check_contexts(data: bytes, limits: GraphLimits) -> None:
    """Refuse contexts that are copied too often, or whose terms are said by terms that are said by
    terms: pyoxigraph copies all terms for each context, and for each object where contexts have
    contexts; and it calls itself for each term that another one is said by."""
    found: list[Any] = []
    objects = 0

    def met(value: dict[str, Any]) -> dict[str, Any]:
        nonlocal objects
        objects += 1
        if _CONTEXT in value:
            found.append(value[_CONTEXT])
        return value

    _read(data, "malformed", met)
    within: dict[int, dict[str, Any]] = {}  # the objects in contexts, by their identities
    while found:
        value = found.pop()
        if isinstance(value, list):
            found += value
        elif isinstance(value, dict) and id(value) not in within:
            within[id(value)] = value
            found += value.values()
    for context in within.values():
        _check_chains(context, limits.json_depth_max)
    contexts, terms = len(within), sum(map(len, within.values()))
    scoped = any(_CONTEXT in context for context in within.values())
    work = (terms + 1) * max(contexts, objects if scoped else 0)
    if work > limits.json_context_work_max:
        raise MessageRefused(
            "too-many-contexts", f"contexts of {terms} terms are to be copied too often"
        )


def _check_chains(context: dict[str, Any], depth_max: int) -> None:
    """Refuse a context in which a term is said by another one, that by a third, and so on."""
    depths: dict[str, int] = {}
    for first in context:
        open_terms = [first]
        while open_terms:
            term = open_terms[-1]
            said_by = [each for each in _said_by(term, context[term]) if each in context]
            unknown = [each for each in said_by if each not in depths and each not in open_terms]
            if unknown:
                open_terms.append(unknown[0])
            else:
                depths[term] = 1 + max((depths.get(each, 0) for each in said_by), default=0)
                open_terms.pop()
            if len(open_terms) > depth_max or depths.get(term, 0) > depth_max:
                raise MessageRefused(
                    "too-deep", f"terms of a context said by more than {depth_max} others in turn"
                )


def _said_by(term: str, definition: Any) -> list[str]:
    """The terms that may be needed to know what a term means."""
    values = [definition]
    if isinstance(definition, dict):
        values = [definition.get(key) for key in ("@id", "@type", "@reverse", "@index", "@nest")]
    words = [each for each in (term, *values) if isinstance(each, str)]
    words += [each.partition(":")[0] for each in words]
    return [each for each in words if each != term]


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


def _read(
    data: bytes, code: str, met: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> Any:
    """``met`` is told each object."""
    try:
        return json.loads(data.decode(), object_hook=met)
    except json.JSONDecodeError as error:
        raise MessageRefused(code, error.msg, error.lineno, error.colno) from None
    except (ValueError, RecursionError) as error:
        raise MessageRefused(code, f"cannot be read as JSON: {error}") from None
