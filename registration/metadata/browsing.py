"""Browsing what a provider has, by class, resource and reference (MDV, section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from formats.errors import Fault
from formats.graph.rdf_schema import UnknownName
from registration.metadata.documents import MetadataRefused, Statement
from registration.metadata.filter_tables import Tables
from registration.metadata.statement_tables import StatementTables

SHOWN = 100  # of a page, unless it is said

T = TypeVar("T")


class Referrer(NamedTuple):
    """A resource that refers to another, by these ``properties``."""

    resource: str
    properties: tuple[str, ...]


class ResourceSeen(NamedTuple):
    """``classes``: those that are said first, then those above; ``referrers``: a page of them, by
    URI; ``documents``: those that say something of it; ``repositories``: those that hold it."""

    classes: tuple[str, ...]
    statements: tuple[Statement, ...]
    referrers: tuple[Referrer, ...]
    documents: tuple[str, ...]
    repositories: tuple[str, ...]


class Seen(NamedTuple):
    """Without a ``name`` all ``classes``, each with how many resources count as of it; of a class a
    page of its ``resources``; of a resource all about it.  ``after``: behind which the next page
    begins, "" for none."""

    name: str
    classes: dict[str, int]
    resources: tuple[str, ...]
    resource: ResourceSeen | None
    after: str


def browse(
    statements: StatementTables,
    tables: Tables,
    repositories: Mapping[int, str],
    name: str,
    after: str,
    limit: int,
) -> Seen:
    """``name``: a class, by its IRI or a local name that is unique, or the URI of a resource.
    MetadataRefused where it is neither."""
    if not name:
        return Seen("", _classes(statements, tables), (), None, "")
    if ":" not in name:
        try:
            name = statements.schema.find("class", name, {})
        except UnknownName as error:
            fault = msgspec.structs.replace(error.fault, code="unknown-class")
            raise MetadataRefused(fault) from None
    query = "SELECT 1 FROM names n JOIN types t ON t.class = n.number WHERE n.name = ? LIMIT 1"
    if name in statements.schema.classes or tables.execute(query, (name,)).fetchone():
        found = [uri for (uri,) in tables.execute(_OF_CLASS, (name, after, limit + 1))]
        resources, more = _page(found, limit)
        return Seen(name, {}, resources, None, resources[-1] if more else "")
    number = statements.known((name,)).get(name, 0)
    rows = tables.execute(_REFERRERS, (number, after, limit + 1)).fetchall()
    classes = [each for (each,) in tables.execute(_CLASSES_OF, (number,))]
    if not rows and not classes:
        what = f"there is no class and no resource {name}"
        raise MetadataRefused(Fault("no-such-resource", what))
    referrers, more = _page([Referrer(uri, tuple(sorted(of.split()))) for uri, of in rows], limit)
    held: set[int] = set()
    for each in statements.reached((number,), up=True):
        held.update(of for (of,) in tables.execute(_HOLDERS, (each,)))
    documents = tables.execute("SELECT doc FROM subjects WHERE res = ?", (number,)).fetchall()
    seen = ResourceSeen(
        tuple(classes),
        tuple(statements.statements((number,))[number]),
        referrers,
        tuple(sorted(statements.uris(doc for (doc,) in documents).values())),
        tuple(sorted(repositories[each] for each in held)),
    )
    return Seen(name, {}, (), seen, referrers[-1].resource if more else "")


def _classes(statements: StatementTables, tables: Tables) -> dict[str, int]:
    query = (
        "SELECT n.name, count(DISTINCT t.res) FROM types t JOIN names n ON n.number = t.class"
        " GROUP BY t.class"
    )
    return dict(
        sorted((dict.fromkeys(statements.schema.classes, 0) | dict(tables.execute(query))).items())
    )


def _page(found: Sequence[T], limit: int) -> tuple[tuple[T, ...], bool]:
    """At most so many, and whether there are more."""
    return tuple(found[:limit]), len(found) > limit


# Walked in the order of URIs: a page of a large class costs no more than one of a small one.
_OF_CLASS = (
    "SELECT r.uri FROM names n CROSS JOIN resources r WHERE n.name = ? AND r.uri > ? AND EXISTS"
    " (SELECT 1 FROM types t WHERE t.res = r.number AND t.class = n.number)"
    " ORDER BY r.uri LIMIT ?"
)
_REFERRERS = (
    "SELECT uri, group_concat(prop, ' ') FROM (SELECT DISTINCT r.uri, p.name prop FROM names p"
    " CROSS JOIN statements s ON s.prop = p.number CROSS JOIN resources r ON r.number = s.res"
    " WHERE s.ref = ? AND s.ref != 0 AND s.own = 1 AND r.uri > ?)"
    " GROUP BY uri ORDER BY uri LIMIT ?"
)
_HOLDERS = (
    "SELECT DISTINCT e.repository FROM matches m CROSS JOIN ends e ON e.rule = m.rule"
    " WHERE m.res = ?"
)
_CLASSES_OF = (
    "SELECT n.name FROM types t JOIN names n ON n.number = t.class WHERE t.res = ?"
    " GROUP BY t.class ORDER BY max(t.own) DESC, n.name"
)
