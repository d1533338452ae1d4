"""What only all documents together can show: that they conform to the schema (MDV, section 2.1).

A document alone was held against the schema when it was read.  Here a resource is the union of all
that is said of it: its classes may be said in one document, a property in another.  Looked at are
the resources that have changed, within the transaction that writes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from formats.errors import MessageRefused
from formats.graph.rdf_schema import RdfSchema
from registration.metadata.filter_tables import Tables
from registration.metadata.statement_tables import StatementTables


def note_schema(statements: StatementTables, tables: Tables, schema: RdfSchema) -> None:
    """Tell the connection which classes there are, and which ones properties lead to and are of."""
    tables.execute(
        "CREATE TEMP TABLE IF NOT EXISTS said(word TEXT, prop INTEGER, class INTEGER,"
        " PRIMARY KEY (word, prop, class)) WITHOUT ROWID"
    )
    tables.execute("DELETE FROM said")
    name = statements.name
    rows = [("class", 0, name(each)) for each in schema.classes]
    for each in schema.properties.values():
        prop = name(each.name)
        rows += [("domain", prop, name(domain)) for domain in {*each.domains}]
        if each.is_reference and each.range in schema.classes:
            rows.append(("range", prop, name(each.range)))
        if each.is_single:
            rows.append(("single", prop, 0))
    tables.executemany("INSERT INTO said VALUES (?, ?, ?)", rows)


# A resource is not of the class of a range or domain: it has classes, all of which are known.
_IS_OTHER = (
    "NOT EXISTS (SELECT 1 FROM types t WHERE t.res = {0} AND t.class = r.class)"
    " AND EXISTS (SELECT 1 FROM types t WHERE t.res = {0} AND t.own = 1)"
    " AND NOT EXISTS (SELECT 1 FROM types t WHERE t.res = {0} AND t.own = 1"
    " AND NOT EXISTS (SELECT 1 FROM said k WHERE k.word = 'class' AND k.prop = 0"
    " AND k.class = t.class))"
)

_FOUND = "SELECT s.res, s.prop, s.ref, r.class FROM"
_OF_REFERRERS = (
    f"{_FOUND} changed c CROSS JOIN said r ON r.word = 'range'"
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


def check_conformance(statements: StatementTables, tables: Tables) -> None:
    """MessageRefused ``wrong-class`` or ``several-values``: what has changed does not conform."""
    for refusal in conflicts(statements, tables):
        raise refusal


def conflicts(
    statements: StatementTables, tables: Tables, *, is_whole: bool = False
) -> Iterator[MessageRefused]:
    """The refusals of what has changed and does not conform; ``is_whole``: of all there is."""
    of = several = "statements s"
    if not is_whole:
        of, several = _CHANGED, _CHANGED if statements.schema.is_open else _SAID_BY_SEVERAL
    having = "CROSS JOIN said r ON r.prop = s.prop AND r.word ="
    domains = f"{_FOUND} {several} {having} 'domain' WHERE {_IS_OTHER.format('s.res')}"
    ranges = f"{_FOUND} {of} {having} 'range' WHERE s.ref != 0 AND {_IS_OTHER.format('s.ref')}"
    for query in (domains, ranges) if is_whole else (domains, ranges, _OF_REFERRERS):
        for subject, prop, ref, of_class in tables.execute(query):
            uris = statements.uris({subject, ref})
            whose, verb, more = uris[subject], "is of", ""
            if query is not domains:
                whose, verb, more = uris[ref], "leads to", f" (said of {whose})"
            reason = f"{whose} is not of the class <{statements.text(of_class)}>"
            reason = f"{reason}, which <{statements.text(prop)}> {verb}{more}"
            yield MessageRefused("wrong-class", reason)
    query = (
        f"SELECT s.res, s.prop FROM {several} {having} 'single' GROUP BY s.res, s.prop"
        " HAVING count(DISTINCT s.ref || ' ' || s.kind || ' ' || s.value) > 1"
    )
    for number, prop in tables.execute(query):
        (subject,) = statements.uris((number,)).values()
        yield MessageRefused(
            "several-values", f"{subject} has several values of <{statements.text(prop)}>"
        )
