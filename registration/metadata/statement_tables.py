"""StatementTables: what documents say of resources, as rows (MDV, section 3.2).

The filter of a provider and the cache of a repository have them.  A resource is the union of what
all documents say of it; a document that goes takes its own statements along.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from formats.graph.literal_forms import derived_value, is_seconds, value_kind
from formats.graph.rdf_schema import RdfSchema
from formats.graph.vocabulary import RDF, RDF_TYPE
from registration.metadata.documents import Statement
from registration.metadata.filter_tables import RESOURCE_ITSELF, Tables
from registration.metadata.n_triples import quoted, suffix
from registration.metadata.rules import RESOURCE

_AT_ONCE = 500  # values in one statement
_NOT_DERIVED = (None, None)
_ROWS_AT_ONCE = (100, 10, 1)
_new = tuple.__new__  # PERF: half the time of a NamedTuple's own
_LANGUAGE_STRING = RDF + "langString"


class Row(NamedTuple):
    """A statement as the tables have it; ``ref`` 0: a literal, of which ``kind`` is the datatype,
    or the language with @ before it."""

    prop: int
    ref: int
    kind: int
    value: str


Rows: TypeAlias = dict[int, dict[Row | int, int]]
"""By resource: its statements and its classes, each with 1 if it is said, 0 if it follows."""


class StatementTables:
    """``tables`` have been created, and hold what was written before; ``is_fixed``: to read."""

    def __init__(self, tables: Tables, schema: RdfSchema, *, is_fixed: bool = False) -> None:
        self._tables = tables
        self._is_fixed = is_fixed
        self.schema = schema
        self._names: dict[str, int] = {}
        self._by_number: dict[int, str] = {}
        for number, name in tables.execute("SELECT number, name FROM names"):
            self._names[name], self._by_number[number] = number, name
        (last,) = tables.execute("SELECT max(number) FROM resources").fetchone()
        self._last_resource: int = last or 0
        self.strong = [
            self.name(each.name) for each in schema.properties.values() if each.is_strong
        ]

    def name(self, name: str) -> int:
        """The number of a property, class, datatype or language."""
        if not name:
            return RESOURCE_ITSELF
        number = self._names.get(name)
        if number is None:
            if self._is_fixed:
                return -1  # nothing has it
            number = self._names[name] = len(self._names) + 1
            self._by_number[number] = name
            self._tables.execute("INSERT INTO names VALUES (?, ?)", (number, name))
        return number

    def text(self, number: int) -> str:
        """The property, class, datatype or language of a number."""
        return self._by_number[number]

    def resources(self, uris: Iterable[str]) -> dict[str, int]:
        """The numbers of resources; new ones get one."""
        wanted = list(dict.fromkeys(uris))
        found = self.known(wanted)
        new = [uri for uri in wanted if uri not in found]
        found.update((uri, number) for number, uri in enumerate(new, self._last_resource + 1))
        self._last_resource += len(new)
        insert_rows(self._tables, "INSERT INTO resources", [(found[uri], uri) for uri in new])
        return found

    def known(self, uris: Sequence[str]) -> dict[str, int]:
        """The numbers of those resources that have one."""
        found: dict[str, int] = {}
        for some, places in _portions(uris):
            query = f"SELECT uri, number FROM resources WHERE uri IN ({places})"
            found.update(self._tables.execute(query, some).fetchall())
        return found

    def uris(self, numbers: Iterable[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for some, places in _portions(list(numbers)):
            query = f"SELECT number, uri FROM resources WHERE number IN ({places})"
            found.update(self._tables.execute(query, some).fetchall())
        return found

    # --- documents ------------------------------------------------------------------------

    def of_document(self, doc: int) -> Rows:
        """The rows of a document."""
        return self._collected(
            "subjects d CROSS JOIN {0} s ON s.res = d.res AND s.doc = d.doc WHERE d.doc = ?", (doc,)
        )

    def of_resources(self, doc: int, resources: Sequence[int]) -> Rows:
        """The rows of a document about some resources."""
        found: Rows = {}
        for some, places in _portions(resources):
            found |= self._collected(f"{{0}} s WHERE s.res IN ({places}) AND s.doc = {doc}", some)
        return found

    def _collected(self, source: str, arguments: Sequence[object]) -> Rows:
        """``source``: of rows ``s``, without the name of their table."""
        found: Rows = {}
        select = f"SELECT s.res, s.prop, s.ref, s.kind, s.value, s.own FROM {source}"
        rows = self._tables.execute(select.format("statements"), arguments)
        for resource, prop, ref, kind, value, own in rows:
            found.setdefault(resource, {})[Row(prop, ref, kind, value)] = own
        select = f"SELECT s.res, s.class, s.own FROM {source}"
        for resource, of_class, own in self._tables.execute(select.format("types"), arguments):
            found.setdefault(resource, {})[of_class] = own
        return found

    def rows(self, statements: Iterable[Statement], numbers: Mapping[str, int]) -> Rows:
        """The rows of some statements; ``numbers``: of all resources in them."""
        rows: Rows = {}
        classes, above = self.schema.classes, self.schema.properties_above
        name = self.name
        for subject, prop, value, datatype, language in statements:
            resource = numbers[subject]
            of_subject = rows.get(resource)
            if of_subject is None:
                of_subject = rows[resource] = {name(RESOURCE): 0}
            if prop == RDF_TYPE and not datatype:
                of_subject[name(value)] = 1
                for each in classes.get(value, ()):
                    of_subject.setdefault(name(each), 0)
                continue
            if datatype:
                key = (0, name(f"@{language}" if language else datatype), value)
            else:
                key = (numbers[value], 0, "")
            of_subject[_new(Row, (name(prop), *key))] = 1
            for each in above.get(prop, ()):
                of_subject.setdefault(Row(name(each), *key), 0)
        return rows

    def numbers(self, uris: Iterable[str], *said: Iterable[Statement]) -> dict[str, int]:
        """The numbers of resources and of all in some statements; new ones get one."""
        wanted = set(uris)
        for statements in said:
            for each in statements:
                wanted.add(each.subject)
                if not each.datatype and each.property != RDF_TYPE:
                    wanted.add(each.value)
        return self.resources(wanted)

    def replace(self, documents: Mapping[str, Sequence[Statement]]) -> Changes:
        """What has to be written for documents to be as given; nothing is yet."""
        last = self._last_resource
        numbers = self.numbers(documents, *documents.values())
        changes = Changes(self)
        for uri, statements in documents.items():
            doc = numbers[uri]
            had = {} if doc > last else self.of_document(doc)
            changes.add(doc, had, self.rows(statements, numbers))
        return changes

    # --- resources ------------------------------------------------------------------------

    def reached(
        self, resources: Collection[int], *, up: bool = False, doc: int | None = None
    ) -> set[int]:
        """Resources with all that they strongly refer to, and so on; ``up``: with all that refer
        to them.  ``doc``: as this document alone says."""
        return set(self.links(resources, up=up, doc=doc))

    def links(
        self, resources: Collection[int], *, up: bool = False, doc: int | None = None
    ) -> dict[int, list[int]]:
        """The same, each with where its strong references lead."""
        found: dict[int, list[int]] = {each: [] for each in resources}
        new = list(found)
        while new:
            on: dict[int, list[int]] = {}
            for here, there in self.steps(new, up=up, doc=doc):
                found[here].append(there)
                if there not in found:
                    on[there] = []
            found |= on
            new = list(on)
        return found

    def steps(
        self, resources: Sequence[int], *, up: bool = False, doc: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """The strong references of resources, each with where it leads; ``up``: to them, each with
        where it comes from."""
        here, there = ("ref", "res") if up else ("res", "ref")
        strong = f"prop IN ({','.join(map(str, self.strong))}) AND ref != 0"
        strong += "" if doc is None else f" AND doc = {doc}"
        for some, places in _portions(resources if self.strong else ()):
            where = f"WHERE {here} IN ({places}) AND {strong}"
            query = f"SELECT {here}, {there} FROM statements {where}"
            yield from self._tables.execute(query, some)

    def statements(
        self, resources: Collection[int], doc: int | None = None
    ) -> dict[int, list[Statement]]:
        """All that is said of resources, or one document says, each statement once, in order."""
        said: dict[int, dict[Statement, None]] = {number: {} for number in resources}
        rows, types, uris = self._said(resources, doc)
        for resource, of_class in types:
            each = Statement(uris[resource], RDF_TYPE, self._by_number[of_class], "", "")
            said[resource][each] = None
        for resource, prop, ref, kind, value in rows:
            datatype = self._by_number[kind] if kind else ""
            language = ""
            if datatype.startswith("@"):
                datatype, language = _LANGUAGE_STRING, datatype[1:]
            about = (uris[resource], self._by_number[prop], uris[ref] if ref else value)
            said[resource][Statement(*about, datatype, language)] = None
        return {number: sorted(found) for number, found in said.items()}

    def n_triples(
        self, resources: Collection[int]
    ) -> tuple[dict[int, dict[str, None]], dict[int, str]]:
        """All that is said of resources, as lines of which none is there twice, and their URIs.
        PERF: what most messages are, without a Statement for each."""
        lines: dict[int, dict[str, None]] = {each: {} for each in resources}
        rows, types, uris = self._said(resources)
        names = self._by_number
        for resource, of_class in types:
            lines[resource][f"<{uris[resource]}> <{RDF_TYPE}> <{names[of_class]}> .\n"] = None
        for resource, prop, ref, kind, value in rows:
            shown = f"<{uris[ref]}>" if ref else quoted(value) + suffix(names[kind])
            lines[resource][f"<{uris[resource]}> <{names[prop]}> {shown} .\n"] = None
        return lines, uris

    def _said(
        self, resources: Collection[int], doc: int | None = None
    ) -> tuple[list[tuple[int, int, int, int, str]], list[tuple[int, int]], dict[int, str]]:
        """The statements and the classes that are said, and the URIs of all resources in them."""
        of = "own = 1" if doc is None else f"own = 1 AND doc = {doc}"
        rows: list[tuple[int, int, int, int, str]] = []
        types: list[tuple[int, int]] = []
        for some, places in _portions(list(resources)):
            where = f"WHERE res IN ({places}) AND {of}"
            query = f"SELECT res, prop, ref, kind, value FROM statements {where}"
            rows += self._tables.execute(query, some)
            types += self._tables.execute(f"SELECT res, class FROM types {where}", some)
        return rows, types, self.uris({*resources, *(row[2] for row in rows if row[2])})

    def referred(self, resources: Collection[int], prop: str) -> dict[int, set[int]]:
        """The resources that a property of each leads to."""
        found: dict[int, set[int]] = {}
        for some, places in _portions(list(resources)):
            query = (
                f"SELECT res, ref FROM statements WHERE res IN ({places})"
                f" AND prop = {self.name(prop)} AND ref != 0"
            )
            for resource, target in self._tables.execute(query, some):
                found.setdefault(resource, set()).add(target)
        return found

    def referring(self, resources: Collection[int], prop: str) -> set[int]:
        """The resources whose property leads to one of these."""
        found: set[int] = set()
        for some, places in _portions(list(resources)):
            where = f"WHERE prop = {self.name(prop)} AND ref IN ({places}) AND ref != 0"
            rows = self._tables.execute(f"SELECT res FROM statements {where}", some)
            found.update(number for (number,) in rows)
        return found

    def with_value(self, prop: str, values: Collection[str], of_class: str) -> set[int]:
        """The resources of a class of which a property is one of these literals."""
        found: set[int] = set()
        query = (
            "SELECT s.res FROM statements s CROSS JOIN types t ON t.res = s.res"
            f" AND t.class = {self.name(of_class)} WHERE s.prop = {self.name(prop)} AND s.ref = 0"
        )
        for some, places in _portions(list(values)):
            rows = self._tables.execute(f"{query} AND s.value IN ({places})", some)
            found.update(number for (number,) in rows)
        return found

    def of_classes(self, classes: Sequence[str]) -> list[int]:
        """The resources of one of these classes."""
        names = ",".join(str(self.name(each)) for each in classes)
        query = f"SELECT DISTINCT res FROM types WHERE class IN ({names})"
        return [number for (number,) in self._tables.execute(query)]

    def below(self, namespace: str) -> set[int]:
        """The resources of which something is said by a property or a class of a namespace."""
        names = [str(each) for name, each in self._names.items() if name.startswith(namespace)]
        found: set[int] = set()
        for table, column in (("statements", "prop"), ("types", "class")):
            query = f"SELECT DISTINCT res FROM {table} WHERE {column} IN ({','.join(names)})"
            found.update(number for (number,) in self._tables.execute(query))
        return found

    def values(self, resources: Sequence[int], prop: str) -> Iterator[tuple[int, str]]:
        """The values of a property as texts; a reference as its URI."""
        for some, places in _portions(resources):
            query = (
                "SELECT DISTINCT s.res, ifnull(r.uri, s.value) FROM statements s"
                f" LEFT JOIN resources r ON r.number = s.ref WHERE s.res IN ({places})"
                f" AND s.prop = {self.name(prop)} ORDER BY 1, 2"
            )
            yield from self._tables.execute(query, some)

    def derived(self, row: Row) -> tuple[float | None, float | None]:
        """The number and the seconds of a literal."""
        if row.ref:
            return _NOT_DERIVED
        return _derived(self._by_number[row.kind], row.value)


class Changes:
    """Rows that go and rows that come, of several documents; ``resources``: those concerned."""

    def __init__(self, tables: StatementTables) -> None:
        self._of = tables
        self.resources: set[int] = set()
        self._gone: list[tuple[object, ...]] = []
        self._gone_types: list[tuple[int, int, int]] = []
        self._new: list[tuple[Any, ...]] = []
        self._new_types: list[tuple[int, int, int, int]] = []
        self._subjects: list[tuple[int, int]] = []
        self._gone_subjects: list[tuple[int, int]] = []

    def add(self, doc: int, had: Rows, now: Rows) -> None:
        """A document that said one thing is to say another."""
        for resource in had.keys() | now.keys():
            before, after = had.get(resource, {}), now.get(resource, {})
            if before == after:
                continue
            self.resources.add(resource)
            if not before:
                self._subjects.append((resource, doc))
            elif not after:
                self._gone_subjects.append((resource, doc))
            for row in before.keys() - after.keys() if before else ():
                if isinstance(row, int):
                    self._gone_types.append((resource, row, doc))
                else:
                    self._gone.append((resource, *row, doc))
            for row, own in after.items():
                if before and before.get(row) == own:
                    continue
                if isinstance(row, int):
                    self._new_types.append((resource, row, doc, own))
                else:
                    derived = _NOT_DERIVED if row[1] else self._of.derived(row)
                    self._new.append((resource, *row, doc, own, *derived))

    def write(self, tables: Tables) -> None:
        many = tables.executemany
        many(
            "DELETE FROM statements WHERE res = ? AND prop = ? AND ref = ? AND kind = ?"
            " AND value = ? AND doc = ?",
            self._gone,
        )
        many("DELETE FROM types WHERE res = ? AND class = ? AND doc = ?", self._gone_types)
        many("DELETE FROM subjects WHERE res = ? AND doc = ?", self._gone_subjects)
        insert_rows(tables, "INSERT INTO subjects", self._subjects)
        insert_rows(tables, "INSERT OR REPLACE INTO types", self._new_types)
        insert_rows(tables, "INSERT OR REPLACE INTO statements", sorted(self._new))


def insert_rows(tables: Tables, insert: str, rows: Sequence[tuple[object, ...]]) -> None:
    """PERF: a third less than ``executemany``, which runs a statement a row."""
    at = 0
    for size in _ROWS_AT_ONCE:
        while len(rows) - at >= size:
            some = rows[at : at + size]
            places = ",".join([f"({','.join('?' * len(some[0]))})"] * size)
            tables.execute(f"{insert} VALUES {places}", list(chain.from_iterable(some)))
            at += size


@lru_cache(maxsize=10_000)
def _derived(datatype: str, lexical: str) -> tuple[float | None, float | None]:
    kind = value_kind(datatype.encode())
    value = derived_value(lexical.encode(), kind) if kind else b""
    if not value:
        return _NOT_DERIVED
    return (None, float(value)) if is_seconds(kind) else (float(value), None)


def _portions(values: Sequence[object]) -> Iterator[tuple[Sequence[object], str]]:
    """Values for one statement at a time, with as many places."""
    for at in range(0, len(values), _AT_ONCE):
        some = values[at : at + _AT_ONCE]
        yield some, ",".join("?" * len(some))
