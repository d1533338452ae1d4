"""Provider: the documents and rules of a metadata provider (MDP), and the messages for the
repositories that follow it (MDV, sections 2.2 to 3.5).

Rows of a store are the truth: schema, documents, rules, repositories, messages that have not been
published.  The filter's tables are derived, and say which revision they reflect::

    request -> BEGIN, the filter's passes, messages -> commit of rows -> COMMIT -> answer
                       crash here: nothing was       crash here: the filter is a revision behind

A filter that is behind catches up when it is opened, on what the last revisions touched; one that
is further behind, ahead, or empty is made anew.  Matches are a function of documents and rules, so
both come to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec
import zstandard

from formats.characters import find_illegal_character
from formats.errors import Fault
from formats.errors import about as _about
from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.syntaxes import GraphSyntax
from overlay.link.durable import StoredMap, StoredValue
from overlay.link.events import Delete, Put
from overlay.link.row_log import RowLog, number_key, numbered_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from registration.metadata.change_messages import Change, RuleSaid, To, said_schema
from registration.metadata.documents import (
    MetadataRefused,
    Statement,
    read_document,
    syntax_of,
)
from registration.metadata.explanation import Explanation, failures, ways_up
from registration.metadata.filter_tables import Tables, clear, create
from registration.metadata.metadata_filter import Effects, MetadataFilter
from registration.metadata.rule_sparql import read_rule
from registration.metadata.rules import Rule
from registration.metadata.schema_conformance import check_conformance, note_schema

BATCH_MAX = 10_000  # documents
NAME_LENGTH_MAX = 256
CATCH_UP_MAX = 1_000  # revisions
PAGE_LENGTH = 1024 * 1024  # of triples in one page of all that a repository holds
MESSAGE_LENGTH = 256 * 1024  # of triples; a resource with all that it refers to is not divided
_LAST = number_key(10**16 - 1)


class SchemaRow(Row, frozen=True):
    data: bytes
    media_type: str
    is_open: bool


class DocumentRow(Row, frozen=True):
    """``text`` is compressed."""

    media_type: str
    text: bytes


class RuleRow(Row, frozen=True):
    """``names``: the rules of the same repository that its text names."""

    number: int
    name: str
    text: str
    names: tuple[str, ...] = ()


class NameRow(Row, frozen=True):
    """``users``: the rules whose texts have this name."""

    rule: int
    users: tuple[int, ...] = ()


class RepositoryRow(Row, frozen=True):
    """``last``: the number of the last message for it; ``owner``: the principal whose it is, ""
    where it came without TLS."""

    number: int
    last: int = 0
    owner: str = ""


class MessageRow(Row, frozen=True):
    to: tuple[str, ...]
    body: bytes


class TouchedRow(Row, frozen=True):
    """What a revision wrote.  ``is_all``: the filter cannot catch up on it."""

    documents: tuple[str, ...] = ()
    rules: tuple[tuple[str, int], ...] = ()
    is_all: bool = False


class CountsRow(Row, frozen=True):
    """The last number of each that was given out."""

    revision: int = 0
    message: int = 0
    rule: int = 0
    repository: int = 0


SCHEMA = Table("metadata-schema", SchemaRow)
DOCUMENTS = Table("metadata-document", DocumentRow)
RULES = Table("metadata-rule", RuleRow)
NAMES = Table("metadata-name", NameRow)
REPOSITORIES = Table("metadata-repository", RepositoryRow)
MESSAGES = Table("metadata-message", MessageRow)
TOUCHED = Table("metadata-touched", TouchedRow)
COUNTS = Table("metadata-counts", CountsRow)
IN_MEMORY = (SCHEMA, REPOSITORIES, COUNTS)


class Rows(Protocol):
    """A store of rows: overlay/link/row_store.py."""

    def commit(self, changes: Iterable[Put | Delete]) -> None: ...

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]: ...

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]: ...


class RepositoryEffects(NamedTuple):
    """URIs of resources that a repository's rules match now, match no longer, and match still
    though they or what they strongly refer to have changed; each in order."""

    came: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """``revision``: the one from which on it holds; of a rehearsal the one that it would be."""

    revision: int
    effects: dict[str, RepositoryEffects]


class WholePage(NamedTuple):
    """``after``: behind which the next page begins, 0 for none; pages of one revision belong
    together."""

    revision: int
    messages: list[bytes]
    after: int


class Progress(NamedTuple):
    """``time``: seconds since 1970, now at the provider; ``number``: of the last message for a
    repository."""

    revision: int
    time: float
    number: int


class ProviderStatus(NamedTuple):
    """``time``: seconds since 1970, now; ``waiting``: messages that have not been published."""

    revision: int
    time: float
    documents: int
    rules: int
    repositories: int
    waiting: int


class RuleInfo(NamedTuple):
    id: str
    name: str
    text: str
    rule: Rule
    outcome: Outcome

    @property
    def sparql(self) -> str:
        """A query that says the same."""
        return self.rule.sparql


class Provider:
    """One at a time has the rows and the tables.  All methods that change something are all or
    nothing; with ``dry_run`` they are rolled back and tell what would be."""

    def __init__(self, name: str, rows: Rows, tables: Tables, wall: Callable[[], float]) -> None:
        """``wall``: the time in seconds since 1970."""
        self.name = name
        self._store = rows
        self._tables = tables
        self._wall = wall
        self._load()
        waiting = self._store.read(MESSAGES.space, number_key(0), _LAST)
        self._published = int(waiting[0][0]) - 1 if waiting else self._counts.now.message
        reflected = self._reflected()
        if reflected != self.revision:
            self._catch_up(reflected)

    def _load(self) -> None:
        """What is in memory, from the store; anew after what was not carried out."""
        self._log = log = RowLog()
        # Of the turn that is under way.
        self._effects: dict[str, RepositoryEffects] = {}
        self._new_rules: dict[str, RuleRow | None] = {}
        self._new_names: dict[str, NameRow | None] = {}
        self._absent: set[str] = set()  # names that no rule has in the store
        self._schema_row: StoredValue[SchemaRow | None] = StoredValue(log, SCHEMA, None)
        self._counts = StoredValue(log, COUNTS, CountsRow())
        self._repositories = StoredMap(log, REPOSITORIES)
        stored = StoredRows(self._store.load([table.space for table in IN_MEMORY]))
        for state in log.stored:
            state.restore(stored)
        self._repository_of = {row.number: name for name, row in self._repositories.items()}
        row = self._schema_row.now
        self.schema = _NO_SCHEMA if row is None else _schema(row)
        create(self._tables)
        self._filter = MetadataFilter(self._tables, self.schema)
        note_schema(self._filter.statements, self._tables, self.schema)

    @property
    def revision(self) -> int:
        return self._counts.now.revision

    # --- schema, documents ----------------------------------------------------------------

    def put_schema(
        self, data: bytes, media_type: str, *, is_open: bool = False, dry_run: bool = False
    ) -> Outcome:
        """Put a schema in force, which all documents and rules have to conform to; a refusal says
        which does not."""
        row = SchemaRow(data, media_type, is_open)
        _check_text(data)
        _schema(row)
        with self._turn(dry_run):
            before = self._snapshot()
            self._schema_row.put(row)
            self._touch(TouchedRow(is_all=True))
            self.schema = _schema(row)
            self._make_anew()
            self._tell_snapshot(before)
            return self._said()

    def register(
        self, documents: Mapping[str, bytes], media_type: str, *, dry_run: bool = False
    ) -> Outcome:
        """Register documents by their URIs, or update those that are registered already.

        MessageRefused at one that cannot be read or does not conform to the schema;
        MetadataRefused.
        """
        syntax = syntax_of(media_type)
        _check_batch(documents)
        statements = {}
        for uri, data in documents.items():
            statements[uri] = read_document(uri, data, syntax, self.schema)
        with self._turn(dry_run):
            for uri, data in documents.items():
                DOCUMENTS.put(self._log, uri, DocumentRow(media_type, _compress(data)))
            self._touch(TouchedRow(documents=tuple(documents)))
            self._write(statements)
            return self._said()

    def remove(self, uris: Collection[str], *, dry_run: bool = False) -> Outcome:
        """Documents go with all that they alone say; MetadataRefused at one that is not there."""
        _check_batch(uris)
        for uri in uris:
            if self.document(uri) is None:
                raise _refused("no-such-document", f"there is no document {uri}")
        with self._turn(dry_run):
            for uri in uris:
                DOCUMENTS.delete(self._log, uri)
            self._touch(TouchedRow(documents=tuple(uris)))
            self._write(dict.fromkeys(uris, ()))
            return self._said()

    def document(self, uri: str) -> tuple[str, bytes] | None:
        """Media type and text of a registered document."""
        for _, value in self._store.read(DOCUMENTS.space, uri, uri):
            row = DOCUMENTS.read(uri, value)
            return row.media_type, zstandard.decompress(row.text)
        return None

    def documents(self, prefix: str = "", after: str = "") -> dict[str, str]:
        """The digests (SHA-256, hexadecimal) of the documents whose URIs begin so, by URI, a page
        behind ``after``."""
        first = max(prefix, after + "\0" if after else "")
        found: dict[str, str] = {}
        for uri, value in self._store.read(DOCUMENTS.space, first, f"{prefix}\U0010ffff"):
            if len(found) == BATCH_MAX:
                break
            text = zstandard.decompress(DOCUMENTS.read(uri, value).text)
            found[uri] = sha256(text).hexdigest()
        return found

    def _write(self, documents: Mapping[str, Sequence[Statement]]) -> None:
        effects = self._filter.write(documents)
        check_conformance(self._filter.statements, self._tables)
        self._tell(effects)

    # --- rules ----------------------------------------------------------------------------

    def add_rule(
        self, repository: str, text: str, name: str = "", *, owner: str = "", dry_run: bool = False
    ) -> RuleInfo:
        """Add a rule to those of a repository; one of the same name is replaced, and those that
        name it follow.  ``owner``: the principal that asks, whose the repository is from its first
        rule on.  ProfileRefused; MetadataRefused."""
        (info,) = self.add_rules(repository, ((text, name),), owner=owner, dry_run=dry_run)
        return info

    def add_rules(
        self,
        repository: str,
        rules: Iterable[tuple[str, str]],
        *,
        owner: str = "",
        dry_run: bool = False,
    ) -> list[RuleInfo]:
        """The same of several, as texts with names (or ""), in one revision."""
        _check_name("repository", repository)
        came: set[tuple[int, int]] = set()
        left: set[tuple[int, int]] = set()
        said: list[RuleSaid] = []
        parsed_rules: list[Rule] = []
        touched: list[tuple[str, int]] = []
        is_all = False
        with self._turn(dry_run):
            number = self._repository(repository, owner)
            for text, name in rules:
                _check_name("rule", name or "r")
                names = _Named(self, repository)
                rule = read_rule(text, self.schema, names, name)
                rows = self._with_users(repository, name)
                is_all = is_all or bool(rows)
                for each in rows:
                    parsed = self._parsed(repository, each)
                    gone = self._filter.remove(each.number, number, parsed.alternatives)
                    left |= gone - came
                    came -= gone
                row = self._put_rule(repository, rows, RuleRow(0, name, text, tuple(names.used)))
                for each in (row, *rows[1:]):
                    with _about("" if each is row else f"rule r{each.number}, which names it"):
                        parsed = rule if each is row else self._parsed(repository, each)
                    new = self._filter.add(each.number, number, parsed.alternatives)
                    came |= new - left
                    left -= new
                touched.append((repository, row.number))
                said.append(RuleSaid(f"r{row.number}", name, text))
                parsed_rules.append(rule)
            self._touch(TouchedRow(rules=tuple(touched), is_all=is_all))
            self._tell(Effects(came, left, set()), {repository: said})
            outcome = self._said()
        return [RuleInfo(*of, each, outcome) for of, each in zip(said, parsed_rules, strict=True)]

    def _put_rule(self, repository: str, former: Sequence[RuleRow], row: RuleRow) -> RuleRow:
        """A new rule, or another for the first of the ``former``."""
        if former:
            row = msgspec.structs.replace(row, number=former[0].number)
            self._name_users(repository, former[0], -1)
        else:
            counts = self._counts.now
            row = msgspec.structs.replace(row, number=counts.rule + 1)
            self._counts.put(msgspec.structs.replace(counts, rule=row.number))
            if row.name:
                key = _name_key(repository, row.name)
                self._new_names[key] = NameRow(row.number)
                self._absent.discard(key)
        self._new_rules[numbered_key(repository, row.number)] = row
        self._name_users(repository, row, 1)
        return row

    def remove_rule(
        self, repository: str, rule: str, *, owner: str = "", dry_run: bool = False
    ) -> Outcome:
        """A rule goes, by its id; MetadataRefused where there is none, or another names it."""
        self._check_owner(repository, owner)
        row = self._rule_of_id(repository, rule)
        if row is None:
            raise _refused("no-such-rule", f"repository {repository!r} has no rule {rule!r}")
        users = self._with_users(repository, row.name)[1:]
        if users:
            raise _refused("rule-in-use", f"rule r{users[0].number} names rule {row.name!r}")
        parsed = self._parsed(repository, row)
        with self._turn(dry_run):
            number = self._repositories[repository].number
            self._new_rules[numbered_key(repository, row.number)] = None
            self._name_users(repository, row, -1)
            if row.name:
                self._new_names[_name_key(repository, row.name)] = None
            self._touch(TouchedRow(is_all=True))
            left = self._filter.remove(row.number, number, parsed.alternatives)
            said = RuleSaid(rule, row.name, "")
            self._tell(Effects(set(), left, set()), {repository: [said]})
            return self._said()

    def rules(self, repository: str) -> list[RuleRow]:
        """Of a repository, in the order in which they came."""
        first, last = numbered_key(repository, 0), f"{repository}|{_LAST}"
        found = self._store.read(RULES.space, first, last)
        return [RULES.read(key, value) for key, value in found]

    def matches(self, rule: str) -> list[str]:
        """The URIs that a rule matches, in order; none of a rule that is not there."""
        number = _number_of(rule)
        found = self._filter.matches(number) if number else ()
        return sorted(self._filter.statements.uris(found).values())

    def explain(self, repository: str, uri: str) -> Explanation:
        """Why a repository holds a resource, or its rules do not match it."""
        if repository not in self._repositories:
            raise _refused("no-such-repository", f"there is no repository {repository!r}")
        statements = self._filter.statements
        number = statements.known((uri,)).get(uri)
        ways = {} if number is None else ways_up(statements, number)
        held: list[tuple[str, tuple[str, ...]]] = []
        not_matched: dict[str, tuple[str, ...]] = {}
        for row in self.rules(repository):
            rule = f"r{row.number}"
            found = [ways[each] for each in self._filter.matches(row.number) if each in ways]
            for way in sorted(found, key=len):
                uris = statements.uris(way)
                held.append((rule, tuple(uris[each] for each in way)))
            if not any(len(way) == 1 for way in found):
                parsed = self._parsed(repository, row)
                why = failures(parsed, uri, statements, self._tables, self.schema)
                not_matched[rule] = why
        return Explanation(tuple(held), not_matched)

    def repositories(self) -> dict[str, RepositoryRow]:
        return dict(self._repositories)

    def changes(self, repository: str, after: int = 0) -> list[bytes]:
        """The messages for a repository with greater numbers, until they are published."""
        found = self._store.read(MESSAGES.space, number_key(after + 1), _LAST)
        rows = (MESSAGES.read(key, value) for key, value in found)
        return [zstandard.decompress(row.body) for row in rows if repository in row.to]

    def whole(self, repository: str, after: int = 0, *, owner: str = "") -> WholePage:
        """All that a repository is to hold, as messages with the number of the last one for it,
        which replace what it has; a page behind ``after``."""
        self._check_owner(repository, owner)
        row = self._repositories.get(repository)
        if row is None:
            raise _refused("no-such-repository", f"there is no repository {repository!r}")
        held = {each for number, each in self._filter.held() if number == row.number}
        left = sorted(each for each in held if each > after)
        parts: list[dict[str, object]] = []
        if not after:
            rules = self.rules(repository)
            said = tuple(RuleSaid(f"r{each.number}", each.name, each.text) for each in rules)
            parts.append({"schema": self._schema_said(), "rules": said})
        length = 0
        while left and length < PAGE_LENGTH:
            for part in self._parts(left[:_AT_ONCE], ()):
                parts.append(part)
                length += len(str(part["triples"]))
            after = left[min(_AT_ONCE, len(left)) - 1]
            left = left[_AT_ONCE:]
        to = {repository: To(0, not left)}
        messages = [self._change(row.last, to, part).to_bytes() for part in parts]
        return WholePage(self.revision, messages, after if left else 0)

    def outbox(self, limit: int) -> list[tuple[int, bytes]]:
        """The first messages that have not been published, by their numbers."""
        first = self._published + 1
        found = self._store.read(MESSAGES.space, number_key(first), number_key(first + limit - 1))
        return [
            (int(key), zstandard.decompress(MESSAGES.read(key, value).body)) for key, value in found
        ]

    def published(self, through: int) -> None:
        """Messages up to this number have been published, and are forgotten."""
        with self._turn():
            for key, _ in self._store.read(MESSAGES.space, number_key(0), number_key(through)):
                MESSAGES.delete(self._log, key)
        self._published = through

    def progress(self, repository: str) -> Progress:
        """How far it is, for a repository that wants to know whether it is as far."""
        row = self._repositories.get(repository)
        return Progress(self.revision, self._wall(), 0 if row is None else row.last)

    def status(self) -> ProviderStatus:
        """What it has; all documents and rules are counted."""
        (documents,) = self._tables.execute("SELECT count(DISTINCT doc) FROM subjects").fetchone()
        query = "SELECT count(DISTINCT subscription) FROM ends"
        (rules,) = self._tables.execute(query).fetchone()
        waiting = self._counts.now.message - self._published
        counts = (documents, rules, len(self._repositories), waiting)
        return ProviderStatus(self.revision, self._wall(), *counts)

    def _check_owner(self, repository: str, owner: str) -> None:
        row = self._repositories.get(repository)
        if row is not None and owner != row.owner and owner and row.owner:
            raise _refused("other-owner", f"repository {repository!r} is of {row.owner}")

    def _repository(self, name: str, owner: str) -> int:
        self._check_owner(name, owner)
        row = self._repositories.get(name)
        if row is None:
            counts = self._counts.now
            row = RepositoryRow(counts.repository + 1, owner=owner)
            self._counts.put(msgspec.structs.replace(counts, repository=row.number))
            self._repositories[name] = row
            self._repository_of[row.number] = name
        return row.number

    def _rule_row(self, repository: str, number: int) -> RuleRow | None:
        key = numbered_key(repository, number)
        if key in self._new_rules:
            return self._new_rules[key]
        found = self._store.read(RULES.space, key, key)
        return RULES.read(*found[0]) if found else None

    def _rule_of_id(self, repository: str, rule: str) -> RuleRow | None:
        number = _number_of(rule)
        return self._rule_row(repository, number) if number else None

    def _name_row(self, repository: str, name: str) -> NameRow | None:
        key = _name_key(repository, name)
        if key in self._new_names:
            return self._new_names[key]
        found = self._store.read(NAMES.space, key, key) if name and key not in self._absent else ()
        if not found:
            self._absent.add(key)  # PERF: each rule of a batch asks whether its classes are rules
            return None
        return NAMES.read(*found[0])

    def _named(self, repository: str, name: str) -> RuleRow | None:
        row = self._name_row(repository, name)
        return None if row is None else self._rule_row(repository, row.rule)

    def _with_users(self, repository: str, name: str) -> list[RuleRow]:
        """The rule of a name, then those that name it, and so on; [] if there is none."""
        found: dict[int, RuleRow] = {}
        todo = [name]
        while todo:
            entry = self._name_row(repository, todo.pop())
            for number in () if entry is None else (entry.rule, *entry.users):
                row = self._rule_row(repository, number)
                if row is not None and number not in found:
                    found[number] = row
                    todo.append(row.name)
        return list(found.values())

    def _name_users(self, repository: str, row: RuleRow, step: int) -> None:
        """A rule begins (1) or ends (-1) to name others."""
        for name in row.names:
            entry = self._name_row(repository, name)
            if entry is not None:
                users = set(entry.users) - {row.number} | ({row.number} if step > 0 else set())
                entry = msgspec.structs.replace(entry, users=tuple(sorted(users)))
                self._new_names[_name_key(repository, name)] = entry

    def _parsed(self, repository: str, row: RuleRow) -> Rule:
        return read_rule(row.text, self.schema, _Named(self, repository), row.name)

    # --- messages -------------------------------------------------------------------------

    def _tell(
        self,
        effects: Effects,
        rules: Mapping[str, Sequence[RuleSaid]] | None = None,
        schema_to: Collection[str] = (),
    ) -> None:
        """Write the messages of a revision, and note its effects for the answer."""
        self._note(effects)
        parts: list[tuple[frozenset[str], dict[str, object]]] = []
        of = self._repository_of
        to: dict[tuple[int, bool], list[str]] = {}  # by resource, and whether it is matched
        for pairs, is_matched in ((effects.came | effects.changed, True), (effects.left, False)):
            for repository, resource in pairs:
                to.setdefault((resource, is_matched), []).append(of[repository])
        groups: dict[frozenset[str], tuple[list[int], list[int]]] = {}
        for (resource, is_matched), receivers in sorted(to.items()):
            group = groups.setdefault(frozenset(receivers), ([], []))
            group[0 if is_matched else 1].append(resource)
        told = {name for names in groups for name in names} | (rules or {}).keys()
        new = {name for name in told if not self._repositories[name].last} | {*schema_to}
        if new:
            parts.append((frozenset(new), {"schema": self._schema_said()}))
        for name, said in (rules or {}).items():
            parts.append((frozenset((name,)), {"rules": tuple(said)}))
        for group_of, (matched, dropped) in groups.items():
            parts += [(group_of, part) for part in self._parts(matched, dropped)]
        self._send(parts)

    def _schema_said(self) -> tuple[str, str]:
        row = self._schema_row.now
        if row is None:
            return "", ""
        return said_schema(row.media_type, row.is_open), row.data.decode()

    def _change(self, number: int, to: Mapping[str, To], part: Mapping[str, Any]) -> Change:
        return Change(
            provider=self.name,
            number=number,
            revision=self.revision,
            time=self._wall(),
            to=to,
            **part,
        )

    def _parts(self, matched: Sequence[int], dropped: Sequence[int]) -> Iterator[dict[str, object]]:
        """What is said of resources, in messages that are not too long if they can be divided."""
        tables = self._filter.statements
        reached = sorted(tables.reached(matched))
        triples = tables.n_triples(reached)
        if len(triples) > MESSAGE_LENGTH and len(matched) > 1:
            half = len(matched) // 2
            yield from self._parts(matched[:half], dropped)
            yield from self._parts(matched[half:], ())
            return
        uris = tables.uris((*reached, *dropped))
        yield {
            "matched": tuple(uris[each] for each in matched),
            "dropped": tuple(uris[each] for each in dropped),
            "about": tuple(uris[each] for each in reached),
            "triples": triples,
        }

    def _send(self, parts: Sequence[tuple[frozenset[str], dict[str, object]]]) -> None:
        last = {name: at for at, (names, _) in enumerate(parts) for name in names}
        counts = self._counts.now
        number = counts.message
        for at, (names, part) in enumerate(parts):
            number += 1
            to = {}
            for name in sorted(names):
                row = self._repositories[name]
                to[name] = To(row.last, last[name] == at)
                self._repositories[name] = msgspec.structs.replace(row, last=number)
            body = _compress(self._change(number, to, part).to_bytes())
            MESSAGES.put(self._log, number_key(number), MessageRow(tuple(to), body))
        self._counts.put(msgspec.structs.replace(self._counts.now, message=number))

    def _note(self, effects: Effects) -> None:
        uris = self._filter.statements.uris({each for part in effects for _, each in part})
        found: dict[str, list[set[str]]] = {}
        for at, part in enumerate(effects):
            for repository, resource in part:
                name = self._repository_of[repository]
                sets = found.setdefault(name, [set(), set(), set()])
                sets[at].add(uris[resource])
        self._effects = {
            name: RepositoryEffects(*(tuple(sorted(each)) for each in sets))
            for name, sets in found.items()
        }

    def _said(self) -> Outcome:
        return Outcome(self.revision, self._effects)

    # --- turns ----------------------------------------------------------------------------

    @contextmanager
    def _turn(self, dry_run: bool = False) -> Iterator[None]:
        """All of it, or nothing."""
        self._effects = {}
        self._absent.clear()
        self._tables.execute("BEGIN IMMEDIATE")
        try:
            yield
            if not dry_run:
                self._note_reflected()
                for key, rule in self._new_rules.items():
                    _put_or_delete(RULES, self._log, key, rule)
                for key, name in self._new_names.items():
                    _put_or_delete(NAMES, self._log, key, name)
                self._store.commit(self._log.drain())
                self._new_rules, self._new_names = {}, {}
        except BaseException:
            self._back()
            raise
        if dry_run:
            self._back()
            return
        try:
            self._tables.execute("COMMIT")
        except Exception:  # it is done, by the rows; the filter follows, or is unusable
            self._back()
            self._catch_up(self._reflected())

    def _back(self) -> None:
        if self._tables.in_transaction:  # errors such as a full disk have ended it
            self._tables.execute("ROLLBACK")
        self._load()

    def _touch(self, row: TouchedRow) -> None:
        counts = self._counts.now
        revision = counts.revision + 1
        self._counts.put(msgspec.structs.replace(counts, revision=revision))
        TOUCHED.put(self._log, number_key(revision), row)
        if revision > CATCH_UP_MAX:
            TOUCHED.delete(self._log, number_key(revision - CATCH_UP_MAX))

    # --- the filter follows the rows ------------------------------------------------------

    def _reflected(self) -> int:
        """The revision that the filter's tables have; -1: none."""
        row = self._tables.execute("SELECT value FROM reflected").fetchone()
        return -1 if row is None else int(row[0])

    def _note_reflected(self) -> None:
        self._filter.note_uses()
        self._tables.execute("DELETE FROM reflected")
        self._tables.execute("INSERT INTO reflected VALUES (?)", (self.revision,))

    def _catch_up(self, reflected: int) -> None:
        first, last = number_key(reflected + 1), number_key(self.revision)
        rows = [TOUCHED.read(*each) for each in self._store.read(TOUCHED.space, first, last)]
        is_known = reflected >= 0 and len(rows) == self.revision - reflected
        self._tables.execute("BEGIN IMMEDIATE")
        try:
            if not is_known or any(row.is_all for row in rows):
                self._make_anew()
            else:
                for row in rows:
                    self._repeat(row)
            self._note_reflected()
            self._tables.execute("COMMIT")
        except BaseException:
            self._tables.execute("ROLLBACK")
            raise

    def _repeat(self, row: TouchedRow) -> None:
        """What a revision did to the filter, from what the rows say now."""
        documents: dict[str, Sequence[Statement]] = {}
        for uri in row.documents:
            found = self.document(uri)
            documents[uri] = () if found is None else self._read(uri, *found)
        if documents:
            self._filter.write(documents)
        for repository, number in row.rules:
            rule = self._rule_row(repository, number)
            if rule is not None:
                of = self._repositories[repository].number
                self._filter.add(number, of, self._parsed(repository, rule).alternatives)

    def _make_anew(self) -> None:
        """The filter's tables from documents and rules alone."""
        clear(self._tables)
        self._filter = MetadataFilter(self._tables, self.schema)
        note_schema(self._filter.statements, self._tables, self.schema)
        self._fill(self._filter)
        check_conformance(self._filter.statements, self._tables, is_whole=True)

    def _fill(self, filter_: MetadataFilter) -> None:
        for _, key, value in self._store.load((RULES.space,)):
            row = RULES.read(key, value)
            repository = key.rpartition("|")[0]
            number = self._repositories[repository].number
            with _about(f"rule r{row.number} of repository {repository!r}"):
                rule = self._parsed(repository, row)
            filter_.add(row.number, number, rule.alternatives)
        batch: dict[str, Sequence[Statement]] = {}
        for _, uri, value in self._store.load((DOCUMENTS.space,)):
            document = DOCUMENTS.read(uri, value)
            text = zstandard.decompress(document.text)
            with _about(f"document {uri}"):
                batch[uri] = self._read(uri, document.media_type, text)
            if len(batch) == _BATCH:
                filter_.write(batch)
                batch = {}
        filter_.write(batch)

    def _read(self, uri: str, media_type: str, data: bytes) -> list[Statement]:
        return read_document(uri, data, syntax_of(media_type), self.schema)

    def verify(self, tables: Tables) -> list[str]:
        """Evaluate all rules on all documents anew, in empty tables; what differs, in words."""
        create(tables)
        anew = MetadataFilter(tables, self.schema)
        self._fill(anew)
        differences = []
        for _, key, value in self._store.load((RULES.space,)):
            number = RULES.read(key, value).number
            kept = set(self.matches(f"r{number}"))
            right = set(anew.statements.uris(anew.matches(number)).values())
            for words, found in (("not kept", right - kept), ("kept and wrong", kept - right)):
                differences += [f"rule r{number}: {uri} is {words}" for uri in sorted(found)]
        return differences

    # --- a new schema ---------------------------------------------------------------------

    def _snapshot(self) -> dict[tuple[str, str], int]:
        """By (repository, matched resource): the hash of what it is sent of it."""
        tables = self._filter.statements
        hashes: dict[int, int] = {}
        found = {}
        for repository, resource in self._filter.held():
            if resource not in hashes:
                said = tables.statements(tables.reached((resource,)))
                hashes[resource] = hash(frozenset(each for some in said.values() for each in some))
            (uri,) = tables.uris((resource,)).values()
            found[self._repository_of[repository], uri] = hashes[resource]
        return found

    def _tell_snapshot(self, before: Mapping[tuple[str, str], int]) -> None:
        after = self._snapshot()
        numbers = self._filter.statements.resources({uri for _, uri in (*before, *after)})

        def pairs(of: Iterable[tuple[str, str]]) -> set[tuple[int, int]]:
            return {(self._repositories[name].number, numbers[uri]) for name, uri in of}

        changed = [each for each in after.keys() & before.keys() if after[each] != before[each]]
        effects = Effects(
            pairs(after.keys() - before.keys()),
            pairs(before.keys() - after.keys()),
            pairs(changed),
        )
        self._tell(
            effects, schema_to=[name for name, row in self._repositories.items() if row.last]
        )


_compress = zstandard.ZstdCompressor().compress  # PERF: a new one takes three times as long
_AT_ONCE = 100  # resources looked up at once
_BATCH = 1_000  # documents written at once, where all are
_NO_SCHEMA = read_schema(b"", GraphSyntax.N_TRIPLES)


class _Named(dict[str, Rule]):
    """The rules of a repository by their names, parsed when they are asked for; ``used``: those
    that were."""

    def __init__(self, provider: Provider, repository: str) -> None:
        super().__init__()
        self._provider = provider
        self._repository = repository
        self.used: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None

    def get(self, name: object, default: object = None) -> Rule | None:  # type: ignore[override]
        if not isinstance(name, str):
            return None
        if not super().__contains__(name):
            row = self._provider._named(self._repository, name)
            if row is None:
                return None
            self[name] = self._provider._parsed(self._repository, row)
        self.used[name] = None
        return super().__getitem__(name)

    def __getitem__(self, name: str) -> Rule:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found


def _put_or_delete(table: Table[Any], log: RowLog, key: str, row: Any) -> None:
    if row is None:
        table.delete(log, key)
    else:
        table.put(log, key, row)


def _refused(code: str, reason: str) -> MetadataRefused:
    return MetadataRefused(Fault(code, reason))


@lru_cache(4)
def _schema(row: SchemaRow) -> RdfSchema:
    return read_schema(row.data, syntax_of(row.media_type), row.is_open)


def _check_text(schema: bytes) -> None:
    """Messages carry it as a text of XML."""
    try:
        at = find_illegal_character(schema.decode())
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        raise _refused("schema-text", f"the schema is no text of XML in UTF-8 at {at}")


def _check_name(whose: str, name: str) -> None:
    if not 0 < len(name) <= NAME_LENGTH_MAX or "|" in name or not name.isprintable():
        wanted = "1 to 256 characters that can be printed, without '|'"
        raise _refused("bad-name", f"{whose} {name!r}; expected {wanted}")


def _check_batch(batch: Collection[str]) -> None:
    if len(batch) > BATCH_MAX:
        raise _refused("too-many", f"{len(batch)} documents at once; at most {BATCH_MAX}")


def _number_of(rule: str) -> int:
    return int(rule[1:]) if rule[:1] == "r" and rule[1:].isdecimal() else 0


def _name_key(repository: str, name: str) -> str:
    return f"{repository}|{name}"
