"""Views for plain SQL: a cache's file as tables of its schema, for programs that know SQLite alone.

::

    CycleProvider(resource, serverHost, serverInformation)    a class, its properties of one value
    "CycleProvider.tag"(resource, value)                      each that may have several
    note(resource, value)                                     each that is of no class

Names are local names; whole IRIs where several have the same, or a table of the cache has it.
SQLite takes small letters and capitals for the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from formats.graph.rdf_schema import Property, local_name
from registration.metadata.filter_tables import Tables
from registration.metadata.rules import RESOURCE
from registration.metadata.statement_tables import StatementTables

# A reference as its URI, a finite number as a number, anything else as its text.
_VALUE = (
    "ifnull((SELECT uri FROM resources WHERE number = s.ref),"
    " CASE WHEN s.num - s.num = 0 THEN s.value + 0 ELSE s.value END)"
)


def make_views(tables: Tables, statements: StatementTables) -> None:
    """Those of the schema in force, instead of all that there are."""
    query = "SELECT name FROM sqlite_master WHERE type {} 'view'"
    for (view,) in tables.execute(query.format("=")).fetchall():
        tables.execute(f"DROP VIEW main.{_quoted(view)}")
    classes, number = statements.schema.classes, statements.name
    of_class: dict[str, list[Property]] = {}
    for each in statements.schema.properties.values():
        for domain in each.domains or (RESOURCE,):
            of_class.setdefault(domain, []).append(each)
    there = [name for (name,) in tables.execute(query.format("!="))]
    names = _short(classes, there)
    for name, higher in classes.items():
        lineage = {name, *higher}
        own = {each.name: each for domain in lineage for each in of_class.get(domain, ())}
        single = [each.name for each in own.values() if each.is_single]
        columns = [
            f"(SELECT {_VALUE} FROM statements s WHERE s.res = r.number"
            f" AND s.prop = {number(prop)} LIMIT 1) AS {_quoted(column)}"
            for prop, column in sorted(_short(single, ("resource",)).items())
            if lineage.issuperset(own[prop].domains)
        ]
        _make(
            tables,
            names[name],
            f"{', '.join(('r.uri AS resource', *columns))} FROM resources r WHERE r.number IN"
            f" (SELECT res FROM types WHERE class = {number(name)})",
        )
    for name, prefix in (*((each, f"{names[each]}.") for each in classes), (RESOURCE, "")):
        of = of_class.get(name, ())
        several = [each.name for each in of if name == RESOURCE or not each.is_single]
        for prop, view in _short(several, () if prefix else (*there, *names.values())).items():
            _make(
                tables,
                prefix + view,
                f"DISTINCT r.uri AS resource, {_VALUE} AS value FROM types t"
                f" CROSS JOIN statements s ON s.res = t.res AND s.prop = {number(prop)}"
                f" JOIN resources r ON r.number = t.res WHERE t.class = {number(name)}",
            )


def _make(tables: Tables, name: str, select: str) -> None:
    tables.execute(f"CREATE VIEW IF NOT EXISTS main.{_quoted(name)} AS SELECT {select}")


def _short(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """How each is shown."""
    local = {each: local_name(each) for each in names}
    used = Counter(each.casefold() for each in (*local.values(), *taken))
    return {
        each: short if used[short.casefold()] == 1 and _is_free(short) else each
        for each, short in local.items()
    }


def _is_free(name: str) -> bool:
    return bool(name) and not name.casefold().startswith("sqlite_")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
