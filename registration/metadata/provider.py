"""Provider: the documents and rules of a metadata provider (MDP), and the messages for the
repositories that follow it (MDV, sections 2.2 to 3.5).

Rows of a store are the truth: schema, documents, rules, repositories, messages that have not been
published.  The filter's tables are derived, and say which revision they reflect::

    request -> BEGIN, the filter's passes, messages -> commit of rows -> COMMIT -> answer
                       crash here: nothing was       crash here: the filter is a revision behind

A filter that is behind catches up when it is opened, on what the last revisions touched; one that
is further behind, of another history (rows were put back), or empty is made anew.  A revision is
known by its number and its time.  Matches are a function of documents and rules, so both come to
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import msgspec
import zstandard

from formats.characters import find_illegal_character
from formats.errors import Refusal
from formats.errors import about as _about
from overlay.link.durable import StoredMap
from overlay.link.row_log import RowLog, number_key, numbered_key
from overlay.link.tables import Table
from registration.metadata.backbone import (
    MEMBERS,
    NOTHING,
    PREFIXES,
    Backbone,
    BackboneMessage,
    Documents,
    PrefixRow,
    parts,
)
from registration.metadata.change_messages import RuleSaid, To, chained, said_schema
from registration.metadata.documents import Statement, read_document, syntax_of
from registration.metadata.filter_tables import Tables, clear, create
from registration.metadata.metadata_filter import (
    PAIRS_MAX,
    Effects,
    MetadataFilter,
    Pairs,
    TooManyPairs,
)
from registration.metadata.provider_reader import (
    BATCH_MAX,
    DOCUMENTS,
    MESSAGES,
    NAMES,
    REPOSITORIES,
    RULES,
    TOUCHED,
    DocumentRow,
    MessageRow,
    NamedRules,
    NameRow,
    ProviderReader,
    RepositoryRow,
    Rows,
    RuleRow,
    SchemaRow,
    TouchedRow,
    compress,
    name_key,
    portions,
    rule_length,
    schema_of,
)
from registration.metadata.provider_reader import (
    refused as _refused,
)
from registration.metadata.rule_sparql import read_rule
from registration.metadata.schema_conformance import check_conformance, conflicts, note_schema

NAME_LENGTH_MAX = 256
CATCH_UP_MAX = 1_000  # revisions
SCHEMA_BYTES_MAX = 2 * 1024 * 1024
RULES_SHOWN = 100  # of one effect of a rehearsal


class RepositoryEffects(NamedTuple):
    """URIs of resources that a repository's rules match now, match no longer, and match still
    though they or what they strongly refer to have changed; each in order."""

    came: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """``revision``: the one from which on it holds; of a rehearsal the one that it would be, with
    ``rules``: by repository and URI, the ids of the rules that have it come, leave or change, at
    most RULES_SHOWN of them."""

    revision: int
    effects: dict[str, RepositoryEffects]
    rules: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict, compare=False)


class RuleInfo(NamedTuple):
    """``sparql``: a query that says the same; ``suspended``: why it matches nothing, or ""."""

    id: str
    name: str
    text: str
    sparql: str
    outcome: Outcome
    suspended: str


_NO_SEAM = nullcontext()
_P = ParamSpec("_P")
_S = TypeVar("_S", bound="Provider")
_T = TypeVar("_T")


def suspending(
    deed: Callable[Concatenate[_S, _P], _T],
) -> Callable[Concatenate[_S, _P], _T]:
    """A deed of one turn, which suspends the rules that have too many pairs in it."""

    @wraps(deed)
    def done(provider: _S, /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        try:
            while True:
                try:
                    return deed(provider, *arguments, **named)
                except TooManyPairs as error:
                    names = provider._repository_of
                    provider._excessive |= {rule: names.get(of, "") for of, rule in error.rules}
        finally:
            provider._excessive = {}

    return done


class Provider(ProviderReader):
    """One at a time has the rows and the tables.  All methods that change something are all or
    nothing; with ``dry_run`` they are rolled back and tell what would be."""

    _store: Rows
    _filter: MetadataFilter

    def __init__(
        self,
        name: str,
        rows: Rows,
        tables: Tables,
        wall: Callable[[], float],
        seam: AbstractContextManager[object] = _NO_SEAM,
    ) -> None:
        """``wall``: the time in seconds since 1970; ``seam``: held while the rows are a revision
        ahead of the tables."""
        self._seam = seam
        self._pairs = Pairs(tables)
        self._excessive: dict[int, str] = {}  # rules with their repositories
        super().__init__(name, rows, tables, wall)
        self._catch_up()

    def _load(self) -> None:
        """What is in memory, from the store; anew after what was not carried out."""
        # Of the turn that is under way.
        self._effects: dict[str, RepositoryEffects] = {}
        self._by_rule: dict[str, dict[str, tuple[str, ...]]] = {}
        self._new_rules: dict[str, RuleRow | None] = {}
        self._new_names: dict[str, NameRow | None] = {}
        self._absent: set[str] = set()  # names that no rule has in the store
        self._withdrawn_pairs: set[tuple[int, int]] = set()
        self._suspended: dict[str, list[RuleSaid]] = {}
        create(self._tables)
        super()._load()
        self._repositories = StoredMap(self._log, REPOSITORIES)
        self.backbone = Backbone(self._log, self.name)
        self._fill_from(REPOSITORIES, MEMBERS, PREFIXES)
        self._repository_of = {row.number: name for name, row in self._repositories.items()}

    def check(self) -> None:
        """Fenced where the rows may be another process's by now: nothing may be told any more."""
        self._store.check()

    def _opened_filter(self) -> MetadataFilter:
        found = MetadataFilter(self._tables, self.schema, self._pairs)
        note_schema(found.statements, self._tables, self.schema)
        return found

    # --- schema, documents ----------------------------------------------------------------

    def put_schema(
        self, data: bytes, media_type: str, *, is_open: bool = False, dry_run: bool = False
    ) -> Outcome:
        """Put a schema in force, which all documents and rules have to conform to; a refusal says
        which does not.  The one that is in force changes nothing."""
        row = SchemaRow(data, media_type, is_open)
        self.backbone.check_home(("",))
        if row == self._schema_row.now:
            return Outcome(self.revision, {})
        _check_text(data)
        schema_of(row)
        with self._turn(dry_run):
            aside = self.set_aside()
            for what, refusal in self._change_schema(row):
                if what not in aside:
                    with _about(what):
                        raise refusal
            for refusal in conflicts(self._filter.statements, self._tables, is_whole=True):
                if refusal.reason not in aside:
                    raise refusal
            self._say({"": (said_schema(media_type, is_open), compress(data))})
            return self._said()

    def _change_schema(self, row: SchemaRow) -> list[tuple[str, Refusal]]:
        """Gives the documents that do not conform to it, and the rules that did before."""
        before = self._snapshot()
        self._schema_row.put(row)
        self.schema = schema_of(row)
        documents, rules = self._make_anew()
        suspended = self._suspend_by_schema(rules)
        self._touch(TouchedRow(is_all=True))
        self._tell_snapshot(before)
        return [*suspended, *((f"document {uri}", each) for uri, each in documents.items())]

    def _suspend_by_schema(self, refused: Mapping[str, Refusal]) -> list[tuple[str, Refusal]]:
        """Note which rules do not conform to the schema; gives those that did before."""
        found = []
        for key, row in self._all(RULES).items():
            why = str(refused[key].fault) if key in refused else ""
            if row.suspended in (why, _EXCESSIVE):
                continue
            self._count_suspended(bool(why) - bool(row.suspended))
            self._new_rules[key] = now = msgspec.structs.replace(row, suspended=why)
            repository = key.rpartition("|")[0]
            self._suspended.setdefault(repository, []).append(now.said())
            if why and not row.suspended:
                what = f"rule r{row.number} of repository {repository!r}"
                found.append((what, refused[key]))
        return found

    def set_aside(self) -> dict[str, str]:
        """Documents that count for nothing, as they do not conform to the schema, and resources of
        which several documents say what does not; each with the reason."""
        if not self.backbone.members:
            return {}
        rows = self._tables.execute("SELECT uri, reason FROM set_aside").fetchall()
        several = conflicts(self._filter.statements, self._tables, is_whole=True)
        found = {each.reason: each.code for each in islice(several, _SHOWN_MAX)}
        return {f"document {uri}": reason for uri, reason in rows} | found

    @suspending
    def register(
        self, documents: Mapping[str, bytes], media_type: str, *, dry_run: bool = False
    ) -> Outcome:
        """Register documents by their URIs, or update those that are registered already.

        MessageRefused at one that cannot be read or does not conform to the schema;
        MetadataRefused.
        """
        syntax = syntax_of(media_type)
        _check_batch(documents)
        self.backbone.check_home(documents)
        statements = {}
        for uri, data in documents.items():
            statements[uri] = read_document(uri, data, syntax, self.schema)
        with self._turn(dry_run):
            rows = {uri: (media_type, compress(data)) for uri, data in documents.items()}
            self._write(rows, statements)
            check_conformance(self._filter.statements, self._tables)
            self._say(rows)
            return self._said()

    @suspending
    def remove(self, uris: Collection[str], *, dry_run: bool = False) -> Outcome:
        """Documents go with all that they alone say; MetadataRefused at one that is not there."""
        _check_batch(uris)
        self.backbone.check_home(uris)
        for uri in uris:
            if self.document(uri) is None:
                raise _refused("no-such-document", f"there is no document {uri}")
        with self._turn(dry_run):
            rows = dict.fromkeys(uris)
            self._write(rows, dict.fromkeys(uris, ()))
            check_conformance(self._filter.statements, self._tables)
            self._say(rows)
            return self._said()

    def _write(
        self,
        rows: Documents,
        documents: Mapping[str, Sequence[Statement]],
        refused: Mapping[str, Refusal] = NOTHING,
    ) -> None:
        for uri, row in rows.items():
            _put_or_delete(DOCUMENTS, self._log, uri, None if row is None else DocumentRow(*row))
        self._touch(TouchedRow(documents=tuple(rows)))
        self._put_aside(rows, refused)
        self._tell(self._filter.write(documents))

    def _put_aside(self, uris: Iterable[str], refused: Mapping[str, Refusal]) -> None:
        """Note which of these documents are refused."""
        if self.backbone.members:
            gone = [(uri,) for uri in uris]
            self._tables.executemany("DELETE FROM set_aside WHERE uri = ?", gone)
            new = [(uri, str(refusal.fault)) for uri, refusal in refused.items()]
            self._tables.executemany("INSERT INTO set_aside VALUES (?, ?)", new)

    def _say(
        self,
        documents: Documents = NOTHING,
        prefixes: Mapping[str, PrefixRow] = NOTHING,
        members: tuple[str, ...] = (),
    ) -> None:
        """To the other members of the backbone, if there are any, and anything is said."""
        if not self.backbone.members:
            return
        said: list[dict[str, Any]] = [{"documents": part} for part in parts(documents)]
        if prefixes or members:
            said.append({"prefixes": dict(prefixes), "members": members})
        for part in said:
            counts = self._counts.now
            number = counts.message + 1
            message = BackboneMessage(
                provider=self.name, number=number, after=counts.backbone, **part
            )
            row = MessageRow((), compress(message.to_bytes()))
            MESSAGES.put(self._log, number_key(number), row)
            self._counts.put(msgspec.structs.replace(counts, message=number, backbone=number))

    # --- rules ----------------------------------------------------------------------------

    def add_rule(
        self, repository: str, text: str, name: str = "", *, owner: str = "", dry_run: bool = False
    ) -> RuleInfo:
        """Add a rule to those of a repository; one of the same name is replaced, and those that
        name it follow.  ``owner``: the principal that asks, whose the repository is from its first
        rule on.  ProfileRefused; MetadataRefused."""
        (info,) = self.add_rules(repository, ((text, name),), owner=owner, dry_run=dry_run)
        return info

    @suspending
    def add_rules(
        self,
        repository: str,
        rules: Sequence[tuple[str, str]],
        *,
        owner: str = "",
        dry_run: bool = False,
    ) -> list[RuleInfo]:
        """The same of several, as texts with names (or ""), in one revision."""
        check_name("repository", repository)
        came: set[tuple[int, int]] = set()
        left: set[tuple[int, int]] = set()
        said: list[RuleSaid] = []
        added: list[tuple[RuleRow, str]] = []
        touched: list[tuple[str, int]] = []
        is_all = False
        with self._turn(dry_run):
            number = self._repository(repository, owner)
            for text, name in rules:
                check_name("rule", name or "r")
                names = NamedRules(self, repository)
                rule = read_rule(text, self.schema, names, name)
                rows = self._with_users(repository, name)
                is_all = is_all or bool(rows)
                for each in rows:
                    gone = self._withdrawn(repository, each)
                    left |= gone - came
                    came -= gone
                row = self._put_rule(repository, rows, RuleRow(0, name, text, tuple(names.used)))
                for each in (row, *rows[1:]):
                    with _about("" if each is row else f"rule r{each.number}, which names it"):
                        parsed = rule if each is row else self._parsed(repository, each)
                    state = each if each is row else self._set_rule(repository, each)
                    if state.suspended != each.suspended:
                        said.append(state.said())
                    if not state.suspended:
                        new = self._filter.add(each.number, number, parsed.alternatives)
                        came |= new - left
                        left -= new
                touched.append((repository, row.number))
                said.append(row.said())
                added.append((row, rule.sparql))
            self._touch(TouchedRow(rules=tuple(touched), is_all=is_all))
            self._tell(Effects(came, left, set()), {repository: said})
            outcome = self._said()
        return [
            RuleInfo(f"r{row.number}", row.name, row.text, sparql, outcome, row.suspended)
            for row, sparql in added
        ]

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
                key = name_key(repository, row.name)
                self._new_names[key] = NameRow(row.number)
                self._absent.discard(key)
        self._name_users(repository, row, 1)
        return self._set_rule(repository, row)

    def _set_rule(self, repository: str, row: RuleRow) -> RuleRow:
        """Write the row of a rule that is out of the filter."""
        why = _EXCESSIVE if row.number in self._excessive else ""
        row = msgspec.structs.replace(row, suspended=why)
        self._count_suspended(int(bool(why)))
        self._new_rules[numbered_key(repository, row.number)] = row
        return row

    def _withdrawn(self, repository: str, row: RuleRow) -> set[tuple[int, int]]:
        """Take a rule out of the filter; gives what its repository loses by it."""
        if row.suspended:
            self._count_suspended(-1)
            return set()
        number = self._repositories[repository].number
        return self._filter.remove(row.number, number, self._parsed(repository, row).alternatives)

    def _count_suspended(self, step: int) -> None:
        if step:
            counts = self._counts.now
            suspended = counts.suspended + step
            self._counts.put(msgspec.structs.replace(counts, suspended=suspended))

    def _suspend(self) -> None:
        """Take out the rules with which the turn would have too many pairs."""
        for number, repository in self._excessive.items():
            row = self._rule_row(repository, number)
            if row is not None and not row.suspended:
                self._withdrawn_pairs |= self._withdrawn(repository, row)
                said = self._set_rule(repository, row).said()
                self._suspended.setdefault(repository, []).append(said)

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
        with self._turn(dry_run):
            self._drop_rules(repository, (row,))
            return self._said()

    def _drop_rules(self, repository: str, rows: Sequence[RuleRow]) -> None:
        left = {pair for row in rows for pair in self._withdrawn(repository, row)}
        for row in rows:
            self._new_rules[numbered_key(repository, row.number)] = None
            self._name_users(repository, row, -1)
            if row.name:
                self._new_names[name_key(repository, row.name)] = None
        self._touch(TouchedRow(is_all=True))
        said = [RuleSaid(f"r{row.number}", row.name, "") for row in rows]
        self._tell(Effects(set(), left, set()), {repository: said})

    def remove_repository(
        self, repository: str, *, owner: str = "", dry_run: bool = False
    ) -> Outcome:
        """A repository goes with all its rules, in one revision; MetadataRefused."""
        self._check_known(repository, owner)
        with self._turn(dry_run):
            self._drop_rules(repository, self.rules(repository))
            del self._repository_of[self._repositories.pop(repository).number]
            return self._said()

    def published(self, through: int, refused: int = 0) -> None:
        """Messages up to this number have been published, or ``refused``, and are forgotten."""
        with self._turn():
            counts = self._counts.now
            for number in range(counts.published + 1, through + 1):
                MESSAGES.delete(self._log, number_key(number))
            refused += counts.refused
            self._counts.put(msgspec.structs.replace(counts, published=through, refused=refused))

    def _repository_row(self, name: str) -> RepositoryRow | None:
        return self._repositories.get(name)

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
        return super()._rule_row(repository, number)

    def _name_row(self, repository: str, name: str) -> NameRow | None:
        key = name_key(repository, name)
        if key in self._new_names:
            return self._new_names[key]
        found = super()._name_row(repository, name) if name and key not in self._absent else None
        if found is None:
            self._absent.add(key)  # PERF: each rule of a batch asks whether its classes are rules
        return found

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
                self._new_names[name_key(repository, name)] = entry

    # --- messages -------------------------------------------------------------------------

    def _tell(
        self,
        effects: Effects,
        rules: Mapping[str, Sequence[RuleSaid]] | None = None,
        schema_to: Collection[str] = (),
    ) -> None:
        """Write the messages of a revision, and note its effects for the answer."""
        came, left = effects.came, self._withdrawn_pairs
        changed = effects.changed | (came & left)
        effects = Effects(came - left, effects.left | (left - came), changed)
        rules = self._suspended | {
            name: [*self._suspended.get(name, ()), *said] for name, said in (rules or {}).items()
        }
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
        told = {name for names in groups for name in names} | rules.keys()
        new = {name for name in told if not self._repositories[name].last} | {*schema_to}
        if new:
            parts.append((frozenset(new), {"schema": self._schema_said()}))
        for name, said in rules.items():
            some = portions(said, rule_length)
            parts += [(frozenset((name,)), {"rules": tuple(each)}) for each in some]
        for group_of, of_group in zip(groups, self._parts(groups.values()), strict=True):
            parts += [(group_of, part) for part in of_group]
        self._send(parts)

    def _send(self, parts: Sequence[tuple[frozenset[str], dict[str, object]]]) -> None:
        addressed = [(some, part) for names, part in parts for some in portions(sorted(names), len)]
        last = {name: at for at, (names, _) in enumerate(addressed) for name in names}
        number, time = self._counts.now.message, self._wall()
        for at, (names, part) in enumerate(addressed):
            number += 1
            to = {}
            for name in names:
                row = self._repositories[name]
                digest = chained(row.digest, number, self.revision, time)
                to[name] = To(row.last, last[name] == at, digest)
                row = msgspec.structs.replace(row, last=number, digest=digest)
                self._repositories[name] = row
            body = compress(self._change(number, to, part, time).to_bytes())
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
        return Outcome(self.revision, self._effects, self._by_rule)

    def _note_rules(self, *parts: str) -> None:
        """The rules that match, by the tables as they are, the resources of these effects."""
        known, matching = self._filter.statements.known, self._filter.matching
        for name, effects in self._effects.items():
            row = self._repositories.get(name)
            uris = [uri for part in parts for uri in getattr(effects, part)]
            if row is not None and uris:
                by_uri = self._by_rule.setdefault(name, {})
                for uri, number in known(uris).items():
                    rules = sorted(matching(row.number, number, RULES_SHOWN))
                    by_uri[uri] = tuple(f"r{each}" for each in rules)

    # --- turns ----------------------------------------------------------------------------

    @contextmanager
    def _turn(self, dry_run: bool = False) -> Iterator[None]:
        """All of it, or nothing."""
        self._catch_up()
        self._effects, self._by_rule = {}, {}
        for each in (self._absent, self._withdrawn_pairs, self._suspended):
            each.clear()
        self._tables.execute("BEGIN IMMEDIATE")
        try:
            self._pairs.is_limited = True
            self._suspend()
            yield
            self._pairs.is_limited = False
            if dry_run:
                effects, by_rule = self._effects, self._by_rule
                self._note_rules("came", "changed")
                self._back()
                self._effects, self._by_rule = effects, by_rule
                self._note_rules("left")
                return
            self._filter.note_uses()
            for key, rule in self._new_rules.items():
                _put_or_delete(RULES, self._log, key, rule)
            for key, name in self._new_names.items():
                _put_or_delete(NAMES, self._log, key, name)
            with self._seam:
                self._store.commit(self._log.drain())
                self._new_rules, self._new_names = {}, {}
                self._commit_tables()
        except BaseException:
            self._back()
            raise

    def _commit_tables(self) -> None:
        try:
            self._tables.execute("COMMIT")
        except Exception:  # it is done, by the rows; the filter follows, or is unusable
            self._back()
            self._catch_up()

    def _back(self) -> None:
        self._pairs.is_limited = False
        if self._tables.in_transaction:  # errors such as a full disk have ended it
            self._tables.execute("ROLLBACK")
        self._load()

    def _touch(self, row: TouchedRow) -> None:
        row = TouchedRow(is_all=True) if self._suspended else row
        counts = self._counts.now
        revision = counts.revision + 1
        self._counts.put(msgspec.structs.replace(counts, revision=revision))
        row = msgspec.structs.replace(row, time=self._wall())
        TOUCHED.put(self._log, number_key(revision), row)
        self._note_reflected(row.time)
        if revision > CATCH_UP_MAX:
            TOUCHED.delete(self._log, number_key(revision - CATCH_UP_MAX))

    # --- the filter follows the rows ------------------------------------------------------

    def _note_reflected(self, time: float) -> None:
        self._tables.execute("DELETE FROM reflected")
        self._tables.execute("INSERT INTO reflected VALUES (?, ?)", (self.revision, time))

    def _catch_up(self) -> None:
        reflected = self._reflected()
        if reflected == self.revision:
            return
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
            self._filter.note_uses()
            self._note_reflected(self._time_of(self.revision))
            self._tables.execute("COMMIT")
        except BaseException:
            self._tables.execute("ROLLBACK")
            raise

    def _repeat(self, row: TouchedRow) -> None:
        """What a revision did to the filter, from what the rows say now."""
        documents: dict[str, Sequence[Statement]] = dict.fromkeys(row.documents, ())
        rows = ((uri, self._row(DOCUMENTS, uri)) for uri in row.documents)
        refused = self._read(((uri, row) for uri, row in rows if row is not None), documents)
        self._put_aside(documents, refused)
        if documents:
            self._filter.write(documents)
        for repository, number in row.rules:
            rule = self._rule_row(repository, number)
            if rule is not None and not rule.suspended:
                of = self._repositories[repository].number
                self._filter.add(number, of, self._parsed(repository, rule).alternatives)

    def _make_anew(self) -> tuple[dict[str, Refusal], dict[str, Refusal]]:
        """The filter's tables from documents and rules alone; gives those that do not conform to
        the schema, by URIs and by the keys of their rows."""
        self._pairs.is_limited = False  # all at once has more than each revision had
        clear(self._tables)
        self._filter = self._opened_filter()
        documents, rules = self._fill(self._filter)
        self._put_aside((), documents)
        return documents, rules

    def _fill(self, filter_: MetadataFilter) -> tuple[dict[str, Refusal], dict[str, Refusal]]:
        documents: dict[str, Refusal] = {}
        rules: dict[str, Refusal] = {}
        for _, key, value in self._store.load((RULES.space,)):
            row = RULES.read(key, value)
            if row.suspended == _EXCESSIVE:
                continue
            repository = key.rpartition("|")[0]
            number = self._repositories[repository].number
            try:
                rule = self._parsed(repository, row)
            except Refusal as refusal:
                rules[key] = refusal
                continue
            filter_.add(row.number, number, rule.alternatives)
        found = self._store.load((DOCUMENTS.space,))
        rows = ((uri, DOCUMENTS.read(uri, value)) for _, uri, value in found)
        while some := list(islice(rows, _BATCH)):
            batch: dict[str, Sequence[Statement]] = {}
            documents |= self._read(some, batch)
            filter_.write(batch)
        return documents, rules

    def _read(
        self, rows: Iterable[tuple[str, DocumentRow]], said: dict[str, Sequence[Statement]]
    ) -> dict[str, Refusal]:
        """Read documents; gives those that do not conform to the schema."""
        refused: dict[str, Refusal] = {}
        for uri, row in rows:
            try:
                data = zstandard.decompress(row.text)
                said[uri] = read_document(uri, data, syntax_of(row.media_type), self.schema)
            except Refusal as refusal:
                refused[uri] = refusal
        return refused

    def verify(self, tables: Tables) -> list[str]:
        """Evaluate all rules on all documents anew, in empty tables; what differs, in words."""
        create(tables)
        anew = MetadataFilter(tables, self.schema)
        refused, _ = self._fill(anew)
        aside = {uri for (uri,) in self._tables.execute("SELECT uri FROM set_aside")}
        differences = [f"{uri} is set aside, or should be" for uri in aside ^ refused.keys()]
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


_EXCESSIVE = f"more than {PAIRS_MAX:,} pairs in one run"
_SHOWN_MAX = 1_000  # resources that do not conform
_BATCH = 1_000  # documents written at once, where all are


def _put_or_delete(table: Table[Any], log: RowLog, key: str, row: Any) -> None:
    if row is None:
        table.delete(log, key)
    else:
        table.put(log, key, row)


def _check_text(schema: bytes) -> None:
    """Messages carry it as a text of XML."""
    if len(schema) > SCHEMA_BYTES_MAX:
        raise _refused("too-large", f"{len(schema)} bytes of a schema; at most {SCHEMA_BYTES_MAX}")
    try:
        at = find_illegal_character(schema.decode())
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        raise _refused("schema-text", f"the schema is no text of XML in UTF-8 at {at}")


def check_name(whose: str, name: str) -> None:
    if not 0 < len(name) <= NAME_LENGTH_MAX or "|" in name or not name.isprintable():
        wanted = "1 to 256 characters that can be printed, without '|'"
        raise _refused("bad-name", f"{whose} {name!r}; expected {wanted}")


def _check_batch(batch: Collection[str]) -> None:
    if len(batch) > BATCH_MAX:
        raise _refused("too-many", f"{len(batch)} documents at once; at most {BATCH_MAX}")
