"""JSON-LD before it is read: its bounds, its context, and what relative IRIs become.

No context is ever fetched.  One that a source gives for its messages is put into each of them: it
holds in the whole message, before what the message says itself, and stands in for every context
that the message names by its address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits
from formats.graph.nesting import JSON_STRINGS, check_nesting

# No IRI of a message begins so; one that was relative does, and is refused.
RELATIVE_BASE = "onyx-relative://nothing/"

_CONTEXT = "@context"
_SHORT = 4096  # bytes in which no harm can be done by one context
_CONTEXT_MEMBER = re.compile(
    b'"'
    + b"".join(b"(?:%c|\\\\u00(?i:%02x))" % (byte, byte) for byte in _CONTEXT.encode())
    + rb'"(?P<list>[ \t\r\n]*+:[ \t\r\n]*+\[)?'
)

_MAY_MAP = re.compile(rb'"@container"[ \t\r\n]*+:[ \t\r\n]*+(?:"@type"|\[)')


def check_bounds(data: bytes, limits: GraphLimits) -> None:
    """Refuse what is longer or deeper, or has more contexts, than the limits allow, before it is
    read.

    Raises MessageRefused (``too-large``, ``too-deep``, ``too-many-triples``,
    ``too-many-contexts``).
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
    bare = check_nesting(data, JSON_STRINGS, limits.depth_max)
    values, most = sum(map(bare.count, b",{[")), max(limits.json_values_max, len(data) // 10)
    if values > most:
        raise MessageRefused("too-many-triples", f"{values} values; at most {most} allowed")
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
    within: list[dict[str, Any]] = []
    while found:
        value = found.pop()
        if isinstance(value, list):
            found += value
        elif isinstance(value, dict):
            _check_chains(value, limits.depth_max)
            within.append(value)
    contexts, terms = len(within), sum(map(len, within))
    said = (each for context in within for each in context.values() if isinstance(each, dict))
    work = (terms + 1) * max(contexts, objects if any(_CONTEXT in each for each in said) else 0)
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


def without_type_maps(data: bytes) -> bytes:
    """The message with the nodes of type maps (``@container: @type``) as lists of nodes with these
    types, and without ``@set`` beside another container, which says nothing of triples: pyoxigraph
    takes no ``@id`` in the one, and not the other.

    A message in which a term is a type map in one context and none in another stays as it is.
    """
    if _MAY_MAP.search(data) is None:
        return data
    message = _read(data, "malformed")
    maps = _TypeMaps(message)
    return maps.written(message) if maps.terms or maps.has_sets else data


class _TypeMaps:
    """What the contexts of a message say: the terms that are type maps, the other names of
    ``@type`` and ``@none``, and whether there is a ``@set`` beside another container."""

    def __init__(self, message: Any) -> None:
        self.terms: set[str] = set()
        self.has_sets = False
        self._names = {"@type": {"@type"}, "@none": {"@none"}}
        others: set[str] = set()
        is_said = False  # values that are no nodes, or only some vocabulary tells which
        for context in _contexts_within(message):
            for term, definition in context.items():
                meant = definition if isinstance(definition, dict) else {"@id": definition}
                containers = _listed(meant.get("@container"))
                (self.terms if "@type" in containers else others).add(term)
                self.has_sets |= "@set" in containers and len(containers) > 1
                is_said |= meant.get("@type") in ("@json", "@vocab")
                if meant.get("@id") in ("@type", "@none"):
                    self._names[meant["@id"]].add(term)
        self.terms -= others
        if is_said:
            self.terms.clear()

    def written(self, message: Any) -> bytes:
        return json.dumps(self._plain(message), ensure_ascii=False, allow_nan=False).encode()

    def _plain(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {}
        for key, each in value.items():
            if key == _CONTEXT:
                found[key] = self._context(each)
            elif key in self.terms and isinstance(each, dict):
                found[key] = list(self._nodes(each))
            else:
                found[key] = self._plain(each)
        return found

    def _nodes(self, by_type: dict[str, Any]) -> Iterator[Any]:
        for name, nodes in by_type.items():
            types = [] if name in self._names["@none"] else [name]
            for each in nodes if isinstance(nodes, list) else [nodes]:
                node = {"@id": each} if isinstance(each, str) else self._plain(each)
                if not isinstance(node, dict) or not types:
                    yield node
                    continue
                own = [type_ for key in self._names["@type"] for type_ in _listed(node.get(key))]
                rest = {key: node[key] for key in node if key not in self._names["@type"]}
                first = {_CONTEXT: rest.pop(_CONTEXT)} if _CONTEXT in rest else {}
                yield {**first, "@type": types + own, **rest}

    def _context(self, context: Any) -> Any:
        if isinstance(context, list):
            return [self._context(each) for each in context]
        if not isinstance(context, dict):
            return context
        return {term: self._definition(term, each) for term, each in context.items()}

    def _definition(self, term: str, definition: Any) -> Any:
        if not isinstance(definition, dict):
            return definition
        found = {
            key: self._context(each) if key == _CONTEXT else each
            for key, each in definition.items()
        }
        containers = _listed(found.pop("@container", None))
        if term in self.terms:
            containers.remove("@type")
            found.setdefault("@type", "@id")
        if len(containers) > 1 and "@set" in containers:
            containers.remove("@set")
        if containers:
            found["@container"] = containers if len(containers) > 1 else containers[0]
        return found


def _contexts_within(value: Any) -> Iterator[dict[str, Any]]:
    """All contexts of a message, those within contexts too."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            yield from (each for each in _listed(value.get(_CONTEXT)) if isinstance(each, dict))
            pending += value.values()


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def _read(
    data: bytes, code: str, met: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> Any:
    """``met`` is told each object."""
    try:
        return json.loads(data.decode("utf-8-sig"), object_hook=met)
    except json.JSONDecodeError as error:
        raise MessageRefused(code, error.msg, error.lineno, error.colno) from None
    except (ValueError, RecursionError) as error:
        raise MessageRefused(code, f"cannot be read as JSON: {error}") from None
