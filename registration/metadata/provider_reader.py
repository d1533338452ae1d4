"""ProviderReader: what a metadata provider is asked that changes nothing, over the rows and the
filter's tables as they are.

A provider reads what it writes itself.  Beside it, in a thread of its own, a ``ReaderBeside`` has a
second connection to each: what it says is as of one revision, the last that has been committed,
however long the next one takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from sys import maxsize
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec
import zstandard

from formats.errors import Fault
from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.syntaxes import GraphSyntax
from overlay.link.durable import StoredValue, fill
from overlay.link.events import Delete, Put
from overlay.link.row_log import RowLog, number_key, numbered_key
from overlay.link.row_store import RowsBeside
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.statistics import gauge
from registration.metadata.backbone import MEMBERS, PREFIXES, Standing
from registration.metadata.browsing import SHOWN, Seen, browse
from registration.metadata.change_messages import Change, RuleSaid, To, said_schema
from registration.metadata.documents import MetadataRefused, syntax_of
from registration.metadata.explanation import Explanation, failures, ways_up
from registration.metadata.filter_tables import Tables
from registration.metadata.metadata_filter import MatchTables
from registration.metadata.n_triples import DIGEST_LENGTH, said_digest
from registration.metadata.rule_sparql import read_rule
from registration.metadata.rules import Rule

BATCH_MAX = 10_000  # documents
EXPLAINED_MAX = 1_000  # rules of which it is said why they do not match
PAGE_LENGTH = 1024 * 1024  # of triples in one page of all that a repository holds
MESSAGE_LENGTH = 256 * 1024  # of what one message says, if that is not a single triple
LAST = number_key(10**16 - 1)
_AT_ONCE = 100  # resources looked up at once
_MARKUP = 40  # what one item takes besides its text
R = TypeVar("R")
T = TypeVar("T")


class SchemaRow(Row, frozen=True):
    data: bytes
    media_type: str
    is_open: bool


class DocumentRow(Row, frozen=True):
    """``text`` is compressed."""

    media_type: str
    text: bytes


class RuleRow(Row, frozen=True):
    """``names``: the rules of the same repository that its text names; ``suspended``: why the
    filter does not have it."""

    number: int
    name: str
    text: str
    names: tuple[str, ...] = ()
    suspended: str = ""

    def said(self) -> RuleSaid:
        return RuleSaid(f"r{self.number}", self.name, self.text, self.suspended)


class NameRow(Row, frozen=True):
    """``users``: the rules whose texts have this name."""

    rule: int
    users: tuple[int, ...] = ()


class RepositoryRow(Row, frozen=True):
    """``last``: the number of the last message for it, ``digest``: of all of them; ``owner``: the
    principal whose it is, "" where it came without TLS."""

    number: int
    last: int = 0
    owner: str = ""
    digest: str = ""


class MessageRow(Row, frozen=True):
    to: tuple[str, ...]
    body: bytes


class TouchedRow(Row, frozen=True):
    """What a revision wrote, and when.  ``is_all``: the filter cannot catch up on it."""

    documents: tuple[str, ...] = ()
    rules: tuple[tuple[str, int], ...] = ()
    is_all: bool = False
    time: float = 0.0


class CountsRow(Row, frozen=True):
    """The last number of each that was given out, ``backbone``: of the messages to other members;
    ``published``: of the messages that
    have been, or that the root broker has ``refused``, which are counted."""

    revision: int = 0
    message: int = 0
    rule: int = 0
    repository: int = 0
    published: int = 0
    refused: int = 0
    suspended: int = 0
    backbone: int = 0


SCHEMA = Table("metadata-schema", SchemaRow)
DOCUMENTS = Table("metadata-document", DocumentRow)
RULES = Table("metadata-rule", RuleRow)
NAMES = Table("metadata-name", NameRow)
REPOSITORIES = Table("metadata-repository", RepositoryRow)
MESSAGES = Table("metadata-message", MessageRow)
TOUCHED = Table("metadata-touched", TouchedRow)
COUNTS = Table("metadata-counts", CountsRow)


class ReadRows(Protocol):
    """What is read of a store of rows: overlay/link/row_store.py."""

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]: ...

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]: ...


class Rows(ReadRows, Protocol):
    def check(self) -> None: ...

    def commit(self, changes: Iterable[Put | Delete]) -> None: ...


class WholePage(NamedTuple):
    """``after``: behind which matched resource the next page begins, and how many messages later;
    None: there is none.  Pages of one revision belong together."""

    revision: int
    messages: list[bytes]
    after: tuple[int, int] | None


class Progress(NamedTuple):
    """``time``: seconds since 1970, now at the provider; ``number``: of the last message for a
    repository, ``digest``: of all of them."""

    revision: int
    time: float
    number: int
    digest: str


class ProviderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``time``: seconds since 1970, now; ``suspended``: rules besides the ``rules``;
    ``refused_messages``: since when what they said is asked for."""

    revision: Annotated[int, gauge("Of the metadata.", "metadata_revision")] = 0
    time: float = 0.0
    documents: Annotated[int, gauge("Registered documents.", "metadata_documents")] = 0
    rules: Annotated[int, gauge("Rules of all repositories.", "metadata_rules")] = 0
    suspended: Annotated[int, gauge("Suspended rules.", "metadata_suspended_rules")] = 0
    repositories: Annotated[int, gauge("Repositories.", "metadata_repositories")] = 0
    waiting: Annotated[
        int, gauge("Messages that have not been published.", "metadata_waiting_messages")
    ] = 0
    refused_messages: Annotated[
        int, gauge("Messages that the root broker has refused.", "metadata_refused_messages")
    ] = 0


class RepositoryInfo(NamedTuple):
    """``owner`` and ``last`` as of its row; ``matches``: resources that its rules match; ``heard``:
    when it last asked how far the provider is, in seconds since 1970, or 0: not since the provider
    was opened."""

    owner: str
    rules: int
    matches: int
    last: int
    heard: float


class ProviderReader:
    """Each method says what is so when it is called."""

    def __init__(
        self, name: str, rows: ReadRows, tables: Tables, wall: Callable[[], float]
    ) -> None:
        """``wall``: the time in seconds since 1970."""
        self.name = name
        self._store = rows
        self._tables = tables
        self._wall = wall
        self._heard: dict[str, float] = {}
        self._load()

    def _load(self) -> None:
        """What is in memory, from the store."""
        self._log = RowLog()
        self._schema_row: StoredValue[SchemaRow | None] = StoredValue(self._log, SCHEMA, None)
        self._counts = StoredValue(self._log, COUNTS, CountsRow())
        self._fill_from(SCHEMA, COUNTS)
        row = self._schema_row.now
        self.schema = NO_SCHEMA if row is None else schema_of(row)
        self._filter = self._opened_filter()

    def _fill_from(self, *tables: Table[Any]) -> None:
        fill(self._log, StoredRows(self._store.load([table.space for table in tables])))

    def _opened_filter(self) -> MatchTables:
        return MatchTables(self._tables, self.schema, is_fixed=True)

    @property
    def revision(self) -> int:
        return self._counts.now.revision

    def _repository_row(self, name: str) -> RepositoryRow | None:
        return self._row(REPOSITORIES, name)

    def _row(self, table: Table[R], key: str) -> R | None:
        found = self._store.read(table.space, key, key)
        return table.read(*found[0]) if found else None

    def document(self, uri: str) -> tuple[str, bytes] | None:
        """Media type and text of a registered document."""
        row = self._row(DOCUMENTS, uri)
        return None if row is None else (row.media_type, zstandard.decompress(row.text))

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

    def rules(self, repository: str, after: str = "", limit: int = maxsize) -> list[RuleRow]:
        """Of a repository, in the order in which they came; behind one, by its id."""
        found: list[RuleRow] = []
        number = _number_of(after)
        while number < self._counts.now.rule and len(found) < limit:
            first, number = number + 1, number + BATCH_MAX
            keys = numbered_key(repository, first), numbered_key(repository, number)
            found += [RULES.read(*row) for row in self._store.read(RULES.space, *keys)]
        return found[:limit]

    def matches(self, rule: str) -> list[str]:
        """The URIs that a rule matches, in order; none of a rule that is not there."""
        number = _number_of(rule)
        found = self._filter.matches(number) if number else ()
        return sorted(self._filter.statements.uris(found).values())

    def rules_page(self, repository: str, after: str) -> list[tuple[RuleRow, int]]:
        """As many as fit into an answer, each with how many resources it matches."""
        rows = next(portions(self.rules(repository, after, BATCH_MAX), lambda row: len(row.text)))
        return [(row, len(self._filter.matches(row.number))) for row in rows]

    def matches_page(self, rule: str, after: str) -> list[str]:
        """As many as fit into an answer, in the order in which they were first heard of."""
        last = self._filter.statements.known((after,)).get(after, 0)
        found = self._filter.matches(_number_of(rule), last, BATCH_MAX)
        uris = self._filter.statements.uris(found)
        return next(portions((uris[each] for each in found), len))

    def explain(self, repository: str, resource: str) -> Explanation:
        """Why a repository holds a resource, or its first rules do not match it."""
        of = self._check_known(repository).number
        statements = self._filter.statements
        number = statements.known((resource,)).get(resource)
        ways = {} if number is None else ways_up(statements, number)
        found: list[tuple[int, tuple[int, ...]]] = []
        for each, way in ways.items():
            found += [(rule, way) for rule in self._filter.matching(of, each)]
        uris = statements.uris({each for _, way in found for each in way})
        held = [
            (f"r{rule}", tuple(uris[each] for each in way))
            for rule, way in sorted(found, key=lambda one: (one[0], len(one[1])))
        ]
        direct = {rule for rule, way in found if len(way) == 1}
        not_matched: dict[str, tuple[str, ...]] = {}
        for row in self.rules(repository, limit=EXPLAINED_MAX):
            if row.suspended:
                not_matched[f"r{row.number}"] = (f"it is suspended: {row.suspended}",)
            elif row.number not in direct:
                parsed = self._parsed(repository, row)
                why = failures(parsed, resource, statements, self._tables, self.schema)
                not_matched[f"r{row.number}"] = why
        return Explanation(tuple(held), not_matched)

    def browse(self, name: str = "", after: str = "", limit: int = SHOWN) -> Seen:
        """Classes; of a class its resources; of a resource what is said of it, and where."""
        names = {row.number: name for name, row in self._all(REPOSITORIES).items()}
        return browse(self._filter.statements, self._tables, names, name, after, limit)

    def repositories(self) -> dict[str, RepositoryInfo]:
        query = (
            "SELECT e.repository, count(DISTINCT e.subscription), count(DISTINCT m.res) FROM ends e"
            " LEFT JOIN matches m INDEXED BY matches_rule ON m.rule = e.rule GROUP BY e.repository"
        )
        counts = {of: (rules, matches) for of, rules, matches in self._tables.execute(query)}
        found = {}
        for name, row in self._all(REPOSITORIES).items():
            rules, matches = counts.get(row.number, (0, 0))
            heard = self._heard.get(name, 0.0)
            found[name] = RepositoryInfo(row.owner, rules, matches, row.last, heard)
        return found

    def _all(self, table: Table[R]) -> dict[str, R]:
        return {key: table.read(key, value) for _, key, value in self._store.load((table.space,))}

    def changes(self, repository: str, after: int = 0) -> list[bytes]:
        """The messages for a repository with greater numbers, until they are published."""
        found = self._store.read(MESSAGES.space, number_key(after + 1), LAST)
        rows = (MESSAGES.read(key, value) for key, value in found)
        return [zstandard.decompress(row.body) for row in rows if repository in row.to]

    def whole(
        self,
        repository: str,
        after: tuple[int, int] = (0, 0),
        known: bytes = b"",
        *,
        owner: str = "",
    ) -> WholePage:
        """All that a repository is to hold, as messages with the number of the last one for it,
        which replace what it has; the page behind ``after``.  ``known``: the digests of what it has
        already, which is not said again."""
        row = self._check_known(repository, owner)
        parts: list[dict[str, Any]] = []
        if not any(after):
            rules = [each.said() for each in self.rules(repository)]
            parts.append({"schema": self._schema_said()})
            parts += [{"rules": tuple(some)} for some in portions(rules, rule_length)]
        last, done = after
        digests = frozenset(
            known[at : at + DIGEST_LENGTH] for at in range(0, len(known), DIGEST_LENGTH)
        )
        left = sorted(each for number, each in self._filter.held(row.number) if each > last)
        length = 0
        while left and length < PAGE_LENGTH:
            some, left = left[:_AT_ONCE], left[_AT_ONCE:]
            (said,) = self._parts([(some, ())], digests)
            for at, part in enumerate(islice(said, done, None), done):
                if length >= PAGE_LENGTH:
                    left, done = some, at
                    break
                parts.append(part)
                length += len(part["triples"]) + sum(map(len, part["kept"]))
            else:
                last, done = some[-1], 0
        to = {repository: To(0, not left, row.digest)}
        messages = [self._change(row.last, to, part, self._wall()).to_bytes() for part in parts]
        return WholePage(self.revision, messages, (last, done) if left else None)

    def outbox(self, limit: int, after: int = 0) -> list[tuple[int, bytes]]:
        """The first messages that have not been published, with greater numbers, by these."""
        first = max(after, self._counts.now.published) + 1
        found = self._store.read(MESSAGES.space, number_key(first), number_key(first + limit - 1))
        return [
            (int(key), zstandard.decompress(MESSAGES.read(key, value).body)) for key, value in found
        ]

    def progress(self, repository: str) -> Progress:
        """How far it is, for a repository that wants to know whether it is as far."""
        row = self._repository_row(repository)
        if row is None:
            return Progress(self.revision, self._wall(), 0, "")
        self._heard[repository] = self._wall()
        return Progress(self.revision, self._wall(), row.last, row.digest)

    def status(self) -> ProviderStatus:
        """What it has; all documents and rules are counted."""
        (documents,) = self._tables.execute("SELECT count(DISTINCT doc) FROM subjects").fetchone()
        query = "SELECT count(DISTINCT subscription) FROM ends"
        (rules,) = self._tables.execute(query).fetchone()
        of = self._counts.now
        return ProviderStatus(
            revision=of.revision,
            time=self._wall(),
            documents=documents,
            rules=rules,
            suspended=of.suspended,
            repositories=len(self._all(REPOSITORIES)),
            waiting=of.message - of.published,
            refused_messages=of.refused,
        )

    # --- for the other members of a backbone ----------------------------------------------

    def standing(self) -> Standing:
        members, prefixes = self._all(MEMBERS), self._all(PREFIXES)
        applied = {name: row.applied for name, row in members.items()}
        return Standing(self.name, self._counts.now.backbone, applied, prefixes)

    def digests(self, prefix: str, after: str = "") -> dict[str, bytes]:
        """Of the documents whose URIs begin so, a page behind ``after``."""
        return dict(islice(self._digests(prefix, after), BATCH_MAX))

    def _digests(self, prefix: str, after: str, last: str = "") -> Iterator[tuple[str, bytes]]:
        first = max(prefix, after + "\0" if after else "")
        last = last or f"{prefix}\U0010ffff"
        for uri, value in self._store.read(DOCUMENTS.space, first, last):
            yield uri, sha256(value).digest()

    def held(self, uris: Iterable[str]) -> dict[str, tuple[str, bytes]]:
        """Documents, and under "" the schema, as they are kept; the first of them if they are
        long."""
        found: dict[str, tuple[str, bytes]] = {}
        length = 0
        for uri in uris:
            schema, row = self._schema_row.now or EMPTY, self._row(DOCUMENTS, uri) if uri else None
            if not uri:
                found[""] = said_schema(schema.media_type, schema.is_open), compress(schema.data)
            elif row is not None:
                found[uri] = row.media_type, row.text
                length += len(row.text)
            if length > PAGE_LENGTH:
                break
        return found

    def _check_known(self, repository: str, owner: str = "") -> RepositoryRow:
        self._check_owner(repository, owner)
        row = self._repository_row(repository)
        if row is None:
            raise refused("no-such-repository", f"there is no repository {repository!r}")
        return row

    def _check_owner(self, repository: str, owner: str) -> None:
        row = self._repository_row(repository)
        if row is not None and owner != row.owner and owner and row.owner:
            raise refused("other-owner", f"repository {repository!r} is of {row.owner}")

    def _rule_row(self, repository: str, number: int) -> RuleRow | None:
        return self._row(RULES, numbered_key(repository, number))

    def _rule_of_id(self, repository: str, rule: str) -> RuleRow | None:
        number = _number_of(rule)
        return self._rule_row(repository, number) if number else None

    def _name_row(self, repository: str, name: str) -> NameRow | None:
        return self._row(NAMES, name_key(repository, name))

    def _named(self, repository: str, name: str) -> RuleRow | None:
        row = self._name_row(repository, name)
        return None if row is None else self._rule_row(repository, row.rule)

    def _parsed(self, repository: str, row: RuleRow) -> Rule:
        return read_rule(row.text, self.schema, NamedRules(self, repository), row.name)

    def _schema_said(self) -> tuple[str, str]:
        row = self._schema_row.now
        if row is None:
            return "", ""
        return said_schema(row.media_type, row.is_open), row.data.decode()

    def _change(
        self, number: int, to: Mapping[str, To], part: Mapping[str, Any], time: float
    ) -> Change:
        return Change(
            provider=self.name,
            number=number,
            revision=self.revision,
            time=time,
            to=to,
            **part,
        )

    def _parts(
        self,
        groups: Iterable[tuple[Sequence[int], Sequence[int]]],
        known: Collection[bytes] = (),
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """What is said of the matched and dropped resources of each group, in messages that are not
        too long.  PERF: all are read at once."""
        of = list(groups)
        tables = self._filter.statements
        links = tables.links({each for matched, _ in of for each in matched})
        lines, uris = tables.n_triples(links)
        uris |= tables.uris(each for _, dropped in of for each in dropped)
        for matched, dropped in of:
            said = [("dropped", uris[each], "") for each in dropped]
            is_matched = set(matched)
            for each in sorted(_reached(links, is_matched)):
                word = "matched" if each in is_matched else "about"
                if known and said_digest(lines[each]) in known:
                    said.append((f"{word} kept", uris[each], ""))
                    continue
                text = "".join(lines[each])
                if len(text) <= MESSAGE_LENGTH:  # PERF: as most are
                    said.append((word, uris[each], text))
                    continue
                said += [(word, uris[each], "".join(some)) for some in portions(lines[each], len)]
            yield map(_part, portions(said, lambda one: len(one[1]) + len(one[2])))

    def _reflected(self) -> int:
        """The revision of these rows that the filter's tables have; -1: none."""
        row = self._tables.execute("SELECT revision, time FROM reflected").fetchone()
        return row[0] if row is not None and self._time_of(row[0]) == row[1] else -1

    def _time_of(self, revision: int) -> float:
        """0 of one that is not there, or not any more."""
        key = number_key(revision)
        found = self._store.read(TOUCHED.space, key, key)
        return TOUCHED.read(*found[0]).time if found else 0.0


class NamedRules(dict[str, Rule]):
    """The rules of a repository by their names, parsed when they are asked for; ``used``: those
    that were."""

    def __init__(self, provider: ProviderReader, repository: str) -> None:
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


class ReaderBeside(ProviderReader):
    """In a thread of its own; ``tables`` and ``rows`` are others than those of the Provider, from
    whose commit of rows to that of the tables ``seam`` is held."""

    _store: RowsBeside

    def __init__(
        self,
        name: str,
        rows: RowsBeside,
        tables: Tables,
        wall: Callable[[], float],
        seam: AbstractContextManager[object],
    ) -> None:
        self._seam = seam
        self._loaded = -1  # the revision of which it has what is in memory
        super().__init__(name, rows, tables, wall)

    @contextmanager
    def now(self) -> Iterator[ProviderReader]:
        """Within the block all is as of one revision, the last that has been committed."""
        with ExitStack() as stack:
            if not self._is_one(stack):  # between the two commits
                stack.close()
                with self._seam:
                    if not self._is_one(stack):
                        raise RuntimeError("the filter has another revision than the rows")
            if self.revision != self._loaded:
                self._load()
                self._loaded = self.revision
            yield self

    def _is_one(self, stack: ExitStack) -> bool:
        """Whether rows and tables are of the same revision, as they are until ``stack`` ends."""
        stack.enter_context(self._store.snapshot())
        self._tables.execute("BEGIN")
        stack.callback(self._tables.execute, "ROLLBACK")
        self._fill_from(COUNTS)
        return self._reflected() == self.revision


def portions(
    items: Iterable[T], length: Callable[[T], int], most: int | None = None
) -> Iterator[list[T]]:
    """What is said, as much at a time as a message takes, or ``most``; one portion at least."""
    most = MESSAGE_LENGTH if most is None else most
    some: list[T] = []
    total = 0
    for each in items:
        size = length(each) + _MARKUP
        if some and total + size > most:
            yield some
            some, total = [], 0
        some.append(each)
        total += size
    yield some


def rule_length(rule: RuleSaid) -> int:
    return len(rule.text)


def _reached(links: Mapping[int, Sequence[int]], start: Iterable[int]) -> set[int]:
    found = set(start)
    todo = list(found)
    while todo:
        on = [each for each in links[todo.pop()] if each not in found]
        found.update(on)
        todo += on
    return found


def _part(said: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """The fields of a Change that say it."""
    uris: dict[str, dict[str, None]] = {"matched": {}, "dropped": {}, "about": {}, "kept": {}}
    for words, uri, _ in said:
        for word in words.split():
            uris[word][uri] = None
    about = uris["matched"] | uris["about"]
    uris["about"] = {uri: None for uri in about if uri not in uris["kept"]}
    triples = "".join([text for _, _, text in said])
    return {"triples": triples, **{word: tuple(of) for word, of in uris.items()}}


compress = zstandard.ZstdCompressor().compress  # PERF: a new one takes three times as long
EMPTY = SchemaRow(b"", GraphSyntax.N_TRIPLES.value, False)  # where none was put
NO_SCHEMA = read_schema(EMPTY.data, GraphSyntax.N_TRIPLES)


@lru_cache(4)
def schema_of(row: SchemaRow) -> RdfSchema:
    return read_schema(row.data, syntax_of(row.media_type), row.is_open)


def refused(code: str, reason: str) -> MetadataRefused:
    return MetadataRefused(Fault(code, reason))


def _number_of(rule: str) -> int:
    return int(rule[1:]) if rule[:1] == "r" and rule[1:].isdecimal() else 0


def name_key(repository: str, name: str) -> str:
    return f"{repository}|{name}"
