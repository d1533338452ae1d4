"""RepositoryCache: a local metadata repository (LMR), and the queries that it answers alone
(MDV, sections 2.2 and 2.4).

The cache holds what its rules match at the provider, with all that this strongly refers to, and
local metadata, which nobody else ever sees.  A message of the provider names the one before it, so
that a gap shows; the messages of a revision are applied together.  Garbage is what no matched
resource reaches over strong references, circles of them too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple, TypeVar

from formats.errors import Fault, Refusal
from registration.metadata.change_messages import (
    Change,
    MessageMissing,
    RuleSaid,
    chained,
    read_change,
    read_said_schema,
)
from registration.metadata.documents import Statement, read_document, syntax_of
from registration.metadata.filter_tables import Tables, clear, create
from registration.metadata.implied import missing, with_paths
from registration.metadata.n_triples import n_triples, read_n_triples, said_digest
from registration.metadata.plain_views import make_views
from registration.metadata.query_sql import query_sql
from registration.metadata.rule_sparql import read_query, read_rule
from registration.metadata.rules import Query, Rule, normal_text
from registration.metadata.schema_conformance import check_conformance, note_schema
from registration.metadata.statement_tables import Changes, StatementTables

R = TypeVar("R")
GLOBAL = 0  # the document of all that the provider says
_OWN = """
state(word TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID
matched(res INTEGER PRIMARY KEY)
own_rules(id TEXT PRIMARY KEY, name TEXT, text TEXT, suspended TEXT) WITHOUT ROWID
pending(number INTEGER PRIMARY KEY, message BLOB)
"""


class Answer(NamedTuple):
    """``rows`` of texts, in order.  ``revision`` of the provider that it shows, ``time``: seconds
    since 1970 when the provider had it.  ``complete``: no row is missing that the provider would
    find; else ``rules`` would make it so, together with those that there are."""

    rows: list[tuple[str, ...]]
    revision: int
    time: float
    complete: bool
    rules: tuple[str, ...] = ()


class RepositoryCache:
    """Of one repository; ``tables`` hold what was written before."""

    def __init__(self, repository: str, tables: Tables) -> None:
        """Refusal ``other-repository`` where the tables are another repository's."""
        self._tables = tables
        with _turn(tables):
            create(tables)
            for text in _OWN.strip().splitlines():
                tables.execute(f"CREATE TABLE IF NOT EXISTS {text}")
            self.repository = self._state("repository") or repository
            if repository not in ("", self.repository):
                what = f"it is of repository {self.repository!r}, not {repository!r}"
                raise Refusal(Fault("other-repository", what))
            self._note("repository", self.repository)
            self._load()

    def _load(self) -> None:
        self.schema = read_said_schema(self._state("schema type"), self._state("schema"))
        self._statements = StatementTables(self._tables, self.schema)
        note_schema(self._statements, self._tables, self.schema)
        self._parsed: dict[str, Rule] | None = None

    # --- what the provider says -----------------------------------------------------------

    @property
    def number(self) -> int:
        """Of the last message that has come."""
        return int(self._state("number") or 0)

    @property
    def digest(self) -> str:
        """Of all messages up to that one."""
        return self._state("digest")

    @property
    def revision(self) -> int:
        """Of the provider, whose state it shows."""
        return int(self._state("revision") or 0)

    @property
    def time(self) -> float:
        """When the provider had that revision, in seconds since 1970; 0: never heard of."""
        return float(self._state("time") or 0)

    @property
    def position(self) -> int:
        """Of the last delivery that brought a message, as it was told to ``apply``."""
        return int(self._state("position") or 0)

    def apply(self, message: bytes, position: int = 0) -> bool:
        """Take a message; False if it was taken before.  ``position``: of the delivery that brought
        it, stored in the same transaction.

        MessageRefused if it is none for this repository; MessageMissing if one before it has not
        come.
        """
        change = read_change(message)
        to = change.to.get(self.repository)
        if to is None:
            raise Refusal(
                Fault("other-repository", f"message {change.number} is not for {self.repository!r}")
            )
        last = self.number
        if change.number <= last:
            if position:
                with _turn(self._tables):
                    self._note("position", str(position))
            return False
        if to.after != last:
            raise MessageMissing(
                Fault("message-missing", f"message {to.after} has not come; the last was {last}")
            )
        digest = chained(self.digest, change.number, change.revision, change.time)
        if to.digest not in ("", digest):
            raise MessageMissing(Fault("message-missing", f"message {last} has come of others"))
        with self._change():
            self._note("number", str(change.number))
            self._note("digest", digest)
            if position:
                self._note("position", str(position))
            if not to.is_last:
                row = (change.number, message)
                self._tables.execute("INSERT INTO pending VALUES (?, ?)", row)
                return True
            query = "SELECT message FROM pending ORDER BY number"
            pending = [read_change(each) for (each,) in self._tables.execute(query).fetchall()]
            self._tables.execute("DELETE FROM pending")
            self._collect(self._carry_out([*pending, change]))
            self.confirm(change.revision, change.time)
        return True

    @property
    def provider(self) -> str:
        """The one that it follows, "" if none was noted."""
        return self._state("provider")

    @property
    def former(self) -> str:
        """The provider that it followed before and that may have its rules yet, or ""."""
        return self._state("former")

    def note_provider(self, provider: str) -> None:
        """Nothing is left to be done at the former one."""
        with _turn(self._tables):
            self._note("provider", provider)
            self._note("former", "")

    def replace(
        self, messages: Sequence[bytes], asked_at: int = -1, provider: str | None = None
    ) -> bool:
        """Hold what these messages say instead of all that the provider has said before
        (``Provider.whole``), unless that was later; ``asked_at``: the number that it had then, if
        the provider may be at a smaller one; ``provider``: another one, from now on.  Without
        messages: hold nothing.  False where they keep what may be otherwise by now."""
        changes = [read_change(each) for each in messages]
        number, digest, revision, time = 0, "", 0, 0.0
        if changes:
            number, revision, time = changes[-1].number, changes[-1].revision, changes[-1].time
            digest = changes[-1].to[self.repository].digest
        if provider is None and number < self.number != asked_at:
            return True
        if asked_at != self.number and any(each.kept for each in changes):
            return False
        with self._change():
            if provider is not None:
                self._note("former", self.provider)
                self._note("provider", provider)
                self._note("position", "0")
            for table in ("matched", "own_rules", "pending"):
                self._tables.execute(f"DELETE FROM {table}")
            self._parsed = None
            self._carry_out(changes)
            self._collect(set(self._subjects(GLOBAL)))
            self._note("number", str(number))
            self._note("digest", digest)
            self._note("revision", str(revision))
            self._note("time", repr(time))
        return True

    def digests(self) -> bytes:
        """Of all that is held of the provider's, a resource after the other, so that it need not
        say it again."""
        said = self._statements.statements(self._subjects(GLOBAL), GLOBAL)
        return b"".join(said_digest(n_triples(each)) for each in said.values())

    @contextmanager
    def _change(self) -> Iterator[None]:
        """All of it, or nothing, in memory too."""
        try:
            with _turn(self._tables):
                yield
        except BaseException:
            self._load()
            raise

    def confirm(self, revision: int, time: float) -> None:
        """The provider has said that this state is that of its revision; a smaller one counts if it
        was said later, as the rows may have been put back."""
        if revision >= self.revision or time >= self.time:
            self._show(revision, time)

    def _show(self, revision: int, time: float) -> None:
        self._note("revision", str(revision))
        self._note("time", repr(time))

    def _carry_out(self, revision: Sequence[Change]) -> set[int]:
        """Gives what may be garbage: all that what has changed strongly referred to.  Several
        messages may say one resource, each a part of it."""
        tables = self._tables
        before: set[int] = set()
        told: set[int] = set()
        for change in revision:
            if change.schema[0]:
                self._put_schema(*change.schema)
                before.update(self._subjects(GLOBAL))  # other references may be strong now
            for rule in change.rules:
                tables.execute("DELETE FROM own_rules WHERE id = ?", (rule.id,))
                if rule.text:
                    tables.execute("INSERT INTO own_rules VALUES (?, ?, ?, ?)", rule)
                self._parsed = None
            said = read_n_triples(change.triples)
            uris = (*change.about, *change.matched, *change.dropped)
            numbers = self._statements.numbers(uris, said)
            about = [numbers[uri] for uri in change.about]
            dropped = [numbers[uri] for uri in change.dropped]
            before |= self._statements.reached((*about, *dropped), doc=GLOBAL)
            changes = Changes(self._statements)
            had = self._statements.of_resources(GLOBAL, about)
            now = self._statements.rows(said, numbers)
            for each in told.intersection(about):
                now[each] = _both(had.get(each, {}), now.get(each, {}))
            told.update(about)
            changes.add(GLOBAL, had, now)
            changes.write(tables)
            matched = [(numbers[uri],) for uri in change.matched]
            tables.executemany("INSERT OR IGNORE INTO matched VALUES (?)", matched)
            gone = [(each,) for each in dropped]
            tables.executemany("DELETE FROM matched WHERE res = ?", gone)
        return before

    def _collect(self, suspects: set[int]) -> None:
        """Throw away those that no matched resource reaches."""
        above = self._statements.reached(suspects, up=True, doc=GLOBAL)
        query = "SELECT 1 FROM matched WHERE res = ?"
        execute = self._tables.execute
        roots = [each for each in above if execute(query, (each,)).fetchone() is not None]
        gone = list(suspects - self._statements.reached(roots, doc=GLOBAL))
        changes = Changes(self._statements)
        changes.add(GLOBAL, self._statements.of_resources(GLOBAL, gone), {})
        changes.write(self._tables)

    def _put_schema(self, media_type: str, text: str) -> None:
        """All that is there is held by the new schema."""
        documents = {GLOBAL: self._said(GLOBAL)}
        query = "SELECT DISTINCT doc FROM subjects WHERE doc > 0"
        for (doc,) in self._tables.execute(query).fetchall():
            documents[doc] = self._said(doc)
        matched = self._matched()
        uris = self._statements.uris((*documents.keys() - {GLOBAL}, *matched))
        self._note("schema type", media_type)
        self._note("schema", text)
        clear(self._tables)
        self._tables.execute("DELETE FROM matched")
        self._load()
        make_views(self._tables, self._statements)
        numbers = self._statements.numbers(uris.values(), *documents.values())
        changes = Changes(self._statements)
        for doc, said in documents.items():
            number = GLOBAL if doc == GLOBAL else numbers[uris[doc]]
            changes.add(number, {}, self._statements.rows(said, numbers))
        changes.write(self._tables)
        rows = [(numbers[uris[each]],) for each in matched]
        self._tables.executemany("INSERT INTO matched VALUES (?)", rows)

    def _said(self, doc: int) -> list[Statement]:
        found = self._statements.statements(self._subjects(doc), doc)
        return [each for some in found.values() for each in some]

    def _subjects(self, doc: int) -> list[int]:
        query = "SELECT res FROM subjects WHERE doc = ?"
        return [number for (number,) in self._tables.execute(query, (doc,))]

    def _matched(self) -> list[int]:
        return [number for (number,) in self._tables.execute("SELECT res FROM matched")]

    # --- what it holds --------------------------------------------------------------------

    def resources(self) -> dict[str, str]:
        """What the provider said, by resource: URI -> N-Triples in order."""
        numbers = self._subjects(GLOBAL)
        found = self._statements.statements(numbers, GLOBAL)
        uris = self._statements.uris(numbers)
        return {uris[number]: "".join(n_triples(found[number])) for number in sorted(numbers)}

    def resource(self, uri: str) -> str:
        """All that is said of a resource, local metadata too, in N-Triples; "" if nothing is."""
        return self._triples(self._statements.known((uri,)).values())

    def matches(self) -> dict[str, str]:
        """What the rules match: URI -> N-Triples of it and of all that it strongly refers to."""
        tables = self._statements
        return {
            uri: self._triples(sorted(tables.reached((number,), doc=GLOBAL)))
            for number, uri in tables.uris(self._matched()).items()
        }

    def _triples(self, numbers: Collection[int]) -> str:
        lines, _ = self._statements.n_triples(numbers)
        return "".join(line for some in lines.values() for line in some)

    def statements(self) -> StatementTables:
        """All that is said, to read: local metadata too."""
        return StatementTables(self._tables, self.schema, is_fixed=True)

    def count(self) -> int:
        """How many resources the provider said something of."""
        query = f"SELECT count(*) FROM subjects WHERE doc = {GLOBAL}"
        return int(self._tables.execute(query).fetchone()[0])

    def rules(self) -> list[RuleSaid]:
        """The rules of the repository at the provider."""
        query = "SELECT id, name, text, suspended FROM own_rules ORDER BY length(id), id"
        return [RuleSaid(*row) for row in self._tables.execute(query)]

    def rules_in_order(self) -> list[RuleSaid]:
        """The same, those that others name first."""
        self._all_rules()
        places = {name: at for at, name in enumerate(self._names)}
        return sorted(self.rules(), key=lambda rule: places.get(rule.name, len(places)))

    def register_local(self, documents: Mapping[str, bytes], media_type: str) -> None:
        """Local metadata: kept and asked here, and never sent anywhere.  A document of the same URI
        is replaced, by one without statements removed.  MessageRefused."""
        syntax = syntax_of(media_type)
        said = {
            uri: read_document(uri, data, syntax, self.schema) for uri, data in documents.items()
        }
        with _turn(self._tables):
            changes = self._statements.replace(said)
            changes.write(self._tables)
            self._tables.execute("DELETE FROM changed")
            rows = [(each,) for each in changes.resources]
            self._tables.executemany("INSERT INTO changed VALUES (?)", rows)
            check_conformance(self._statements, self._tables)

    # --- queries --------------------------------------------------------------------------

    def query(self, text: str) -> Answer:
        """Ask in the rules' language or in SPARQL; ProfileRefused."""
        query = self._read(text)
        variables = [*dict.fromkeys(variable for variable, _ in query.columns)]
        made = query_sql(query.rule.alternatives, variables, self._statements)
        found = self._tables.execute(made.sql, made.arguments).fetchall()
        values = [
            self._column({row[variables.index(variable)] for row in found}, path)
            for variable, path in query.columns
        ]
        places = [variables.index(variable) for variable, _ in query.columns]
        rows = {
            row
            for bound in found
            for row in product(
                *(column[bound[at]] for column, at in zip(values, places, strict=True))
            )
        }
        rules = self._rules_for(query)
        return Answer(sorted(rows), self.revision, self.time, not rules, rules)

    def _column(self, resources: set[int], path: Sequence[str]) -> dict[int, list[str]]:
        """The values at the end of a path from each resource; "" where there is none."""
        tables = self._statements
        if not path:
            return {number: [uri] for number, uri in tables.uris(resources).items()}
        reached = {number: {number} for number in resources}
        for prop in path[:-1]:
            on = tables.referred({each for some in reached.values() for each in some}, prop)
            reached = {
                number: {target for each in some for target in on.get(each, ())}
                for number, some in reached.items()
            }
        ends: dict[int, list[str]] = {}
        everything = {each for some in reached.values() for each in some}
        for resource, value in tables.values(list(everything), path[-1]):
            ends.setdefault(resource, []).append(value)
        return {
            number: sorted({value for each in some for value in ends.get(each, ())}) or [""]
            for number, some in reached.items()
        }

    def explain(self, text: str) -> str:
        """The SQL of a query."""
        query = self._read(text)
        variables = dict.fromkeys(variable for variable, _ in query.columns)
        return query_sql(query.rule.alternatives, variables, self._statements).sql

    def _read(self, text: str) -> Query:
        if not self._state("schema type"):
            raise Refusal(Fault("no-schema", "the provider has not sent its schema yet"))
        return read_query(text, self.schema, self._rules())

    def _rules_for(self, query: Query) -> tuple[str, ...]:
        """The rules with which the answer would be complete; none where it is."""
        rules = [each for rule in self._all_rules().values() for each in rule.alternatives]
        found: dict[str, None] = {}
        for each in query.rule.alternatives:
            whole = with_paths(each, query.columns, self.schema)
            while lacking := missing(whole, rules, self.schema):
                rule = whole._replace(register=lacking[0])
                found[normal_text(rule, self.schema)] = None
                rules.append(rule)
        return tuple(found)

    def _all_rules(self) -> dict[str, Rule]:
        if self._parsed is None:
            names: dict[str, Rule] = {}
            left = self.rules()
            parsed: dict[str, Rule] = {}
            while left:  # those that others name first
                later = []
                for rule in left:
                    try:
                        found = read_rule(rule.text, self.schema, names, rule.name)
                    except Refusal:
                        later.append(rule)
                        continue
                    if not rule.suspended:
                        parsed[rule.id] = found
                    if rule.name:
                        names[rule.name] = found
                if len(later) == len(left):
                    break
                left = later
            self._parsed, self._names = parsed, names
        return self._parsed

    def _rules(self) -> dict[str, Rule]:
        self._all_rules()
        return self._names

    # --- state ----------------------------------------------------------------------------

    def _state(self, word: str) -> str:
        query = "SELECT value FROM state WHERE word = ?"
        row = self._tables.execute(query, (word,)).fetchone()
        return "" if row is None else str(row[0])

    def _note(self, word: str, value: str) -> None:
        self._tables.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (word, value))


def _both(some: Mapping[R, int], others: Mapping[R, int]) -> dict[R, int]:
    """Rows, each with 1 if it is said in either."""
    return {row: max(some.get(row, 0), others.get(row, 0)) for row in {**some, **others}}


@contextmanager
def _turn(tables: Tables) -> Iterator[None]:
    tables.execute("BEGIN IMMEDIATE")
    try:
        yield
        tables.execute("COMMIT")
    except BaseException:
        if tables.in_transaction:  # errors such as a full disk have ended it
            tables.execute("ROLLBACK")
        raise
