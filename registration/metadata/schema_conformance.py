"""What only all documents together can show: that they conform to the schema (MDV, section 2.1).

A document alone was held against the schema when it was read.  Here a resource is the union of all
that is said of it: its classes may be said in one document, a property in another.  Looked at are
the resources that have changed, within the transaction that writes them.
"""

from __future__ import annotations

from formats.errors import MessageRefused
from formats.graph.rdf_schema import RdfSchema
from registration.metadata.filter_tables import Tables
from registration.metadata.statement_tables import StatementTables

_TABLES = ("range_of", "domain_of")
_NUMBERS = ("single", "known_class")


def note_schema(statements: StatementTables, tables: Tables, schema: RdfSchema) -> None:
    """Tell the connection which classes there are, and which ones properties lead to and are of."""
    for table in _TABLES:
        tables.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS {table}(prop INTEGER, class INTEGER,"
            " PRIMARY KEY (prop, class)) WITHOUT ROWID"
        )
        tables.execute(f"DELETE FROM {table}")
    for table in _NUMBERS:
        tables.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table}(number INTEGER PRIMARY KEY)")
        tables.execute(f"DELETE FROM {table}")
    name = statements.name
    ranges, domains, single = [], [], []
    for each in schema.properties.values():
        prop = name(each.name)
        if each.is_reference and each.range in schema.classes:
            ranges.append((prop, name(each.range)))
        domains += [(prop, name(domain)) for domain in each.domains]
        if each.is_single:
            single.append((prop,))
    tables.executemany("INSERT INTO range_of VALUES (?, ?)", ranges)
    tables.executemany("INSERT OR IGNORE INTO domain_of VALUES (?, ?)", domains)
    tables.executemany("INSERT INTO single VALUES (?)", single)
    known = [(name(each),) for each in schema.classes]
    tables.executemany("INSERT INTO known_class VALUES (?)", known)


# A resource is not of the class of a range or domain: it has classes, all of which are known.
_IS_OTHER = (
    "NOT EXISTS (SELECT 1 FROM types t WHERE t.res = {0} AND t.class = r.class)"
    " AND EXISTS (SELECT 1 FROM types t WHERE t.res = {0} AND t.own = 1)"
    " AND NOT EXISTS (SELECT 1 FROM types t WHERE t.res = {0} AND t.own = 1"
    " AND t.class NOT IN (SELECT number FROM known_class))"
)

_OF_STATEMENTS = (
    "SELECT s.res, s.prop, s.ref, r.class FROM {of} CROSS JOIN {table} r ON r.prop = s.prop"
)
_OF_REFERRERS = (
    "SELECT s.res, s.prop, s.ref, r.class FROM changed c CROSS JOIN range_of r"
    " CROSS JOIN statements s ON s.prop = r.prop AND s.ref = c.res AND s.ref != 0"
    f" WHERE {_IS_OTHER.format('c.res')}"
)
_CHANGED = "changed c CROSS JOIN statements s ON s.res = c.res"
# PERF: what one document alone says of a resource was looked at when it was read.
_SAID_BY_SEVERAL = (
    "(SELECT c.res FROM changed c"
    " WHERE (SELECT count(*) FROM subjects d WHERE d.res = c.res) > 1)"
    " c CROSS JOIN statements s ON s.res = c.res"
)


def check_conformance(
    statements: StatementTables, tables: Tables, *, is_whole: bool = False
) -> None:
    """MessageRefused ``wrong-class`` or ``several-values``: what has changed does not conform.
    ``is_whole``: all that is stored is looked at."""
    of = several = "statements s"
    if not is_whole:
        of, several = _CHANGED, _CHANGED if statements.schema.is_open else _SAID_BY_SEVERAL
    domains = _OF_STATEMENTS.format(of=several, table="domain_of")
    queries = [
        (f"{domains} WHERE {_IS_OTHER.format('s.res')}", 0),
        (
            _OF_STATEMENTS.format(of=of, table="range_of")
            + f" WHERE s.ref != 0 AND {_IS_OTHER.format('s.ref')}",
            1,
        ),
    ]
    if not is_whole:
        queries.append((_OF_REFERRERS, 1))
    for query, is_object in queries:
        found = tables.execute(f"{query} LIMIT 1").fetchone()
        if found is not None:
            subject, prop, ref, of_class = found
            uris = statements.uris({subject, ref})
            whose = uris[ref] if is_object else uris[subject]
            verb = "leads to" if is_object else "is of"
            name = statements.text(prop)
            raise MessageRefused(
                "wrong-class",
                f"{whose} is not of the class <{statements.text(of_class)}>, which <{name}> {verb}"
                + (f" (said of {uris[subject]})" if is_object else ""),
            )
    query = (
        f"SELECT s.res, s.prop FROM {several} CROSS JOIN single r ON r.number = s.prop"
        " GROUP BY s.res, s.prop"
        " HAVING count(DISTINCT s.ref || ' ' || s.kind || ' ' || s.value) > 1 LIMIT 1"
    )
    found = tables.execute(query).fetchone()
    if found is not None:
        (subject,) = statements.uris((found[0],)).values()
        raise MessageRefused(
            "several-values", f"{subject} has several values of <{statements.text(found[1])}>"
        )
