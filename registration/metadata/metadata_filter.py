"""MetadataFilter: which resources the rules match, kept right while documents and rules change.

The publish & subscribe algorithm of MDV (section 3) over tables of SQLite.  A run takes a batch of
documents: what was matched through their former versions is put in question, what still holds is
put back, and what the new versions bring goes on through the joins, level by level, together with
what is stored (section 3.5).  All atomic rules' matches are kept, of end rules too, so that no
resource is told as new twice.

Nothing here opens a transaction or a file; the caller does, and takes the run back by rolling back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from formats.graph.rdf_schema import RdfSchema
from registration.metadata.atomic_rules import SAME, Form, Program, Trigger, decompose
from registration.metadata.documents import Statement
from registration.metadata.filter_tables import (
    RESOURCE_ITSELF,
    TABLE_OF,
    TEST_OF,
    Tables,
    compared,
    create,
)
from registration.metadata.join_sql import FEW, GroupSql
from registration.metadata.rules import Conjunction
from registration.metadata.statement_tables import StatementTables, insert_rows

_KNOWN_MAX = 10_000
PAIRS_MAX = 1_000_000
PIECE = 3  # letters; a pattern of ``contains`` is filed under the rarest piece of it
Pair = tuple[int, int]


class Effects(NamedTuple):
    """Pairs (repository, resource) as numbers: matched now and not before, no longer, and before
    and now though it, or what it strongly refers to, has changed."""

    came: set[Pair]
    left: set[Pair]
    changed: set[Pair]


class TooManyPairs(Exception):
    """``rules``: those that need a join of more than PAIRS_MAX pairs in one run, each with its
    repository; the run is to be taken back."""

    def __init__(self, rules: set[Pair]) -> None:
        super().__init__(rules)
        self.rules = rules


class Pairs:
    """Counts the pairs of resources that each join rule compares, in one run on a connection."""

    def __init__(self, tables: Tables) -> None:
        self.excessive = 0  # the join rule with too many
        self.is_limited = False  # until what runs can be taken back
        self._counts: dict[int, int] = {}
        tables.create_function("paired", 2, self._count)

    def begin(self) -> None:
        self.excessive = 0
        self._counts.clear()

    def _count(self, rule: int, resource: int) -> int:
        count = self._counts[rule] = self._counts.get(rule, 0) + 1
        if count > PAIRS_MAX and self.is_limited:
            self.excessive = rule
            raise OverflowError  # ends the statement
        return 1


class MatchTables:
    """What documents say, and what rules match; ``is_fixed``: nothing is written."""

    def __init__(self, tables: Tables, schema: RdfSchema, *, is_fixed: bool = False) -> None:
        self._tables = tables
        self.statements = StatementTables(tables, schema, is_fixed=is_fixed)

    def matches(self, subscription: int, after: int = 0, limit: int = -1) -> list[int]:
        """The resources that a rule matches, in order; behind one."""
        query = (
            "SELECT DISTINCT m.res FROM ends e CROSS JOIN matches m INDEXED BY matches_rule"
            " ON m.rule = e.rule AND m.res > ? WHERE e.subscription = ? ORDER BY m.res LIMIT ?"
        )
        found = self._tables.execute(query, (after, subscription, limit))
        return [number for (number,) in found]

    def matching(self, repository: int, resource: int, limit: int = -1) -> list[int]:
        """The rules of a repository that match a resource, or so many of them."""
        query = (
            "SELECT DISTINCT e.subscription FROM matches m"
            " CROSS JOIN ends e ON e.rule = m.rule AND e.repository = ? WHERE m.res = ? LIMIT ?"
        )
        return [rule for (rule,) in self._tables.execute(query, (repository, resource, limit))]

    def held(self, repository: int | None = None) -> list[Pair]:
        """What each repository's rules match, or those of one."""
        where = "" if repository is None else f" WHERE e.repository = {repository}"
        query = (
            "SELECT DISTINCT e.repository, m.res FROM ends e"
            f" CROSS JOIN matches m INDEXED BY matches_rule ON m.rule = e.rule{where}"
        )
        return self._tables.execute(query).fetchall()


class MetadataFilter(MatchTables):
    """The rules and documents of one provider.  ``tables`` hold what was written before;
    ``pairs``: the connection's, if it has any."""

    def __init__(self, tables: Tables, schema: RdfSchema, pairs: Pairs | None = None) -> None:
        create(tables)
        super().__init__(tables, schema)
        self._pairs = pairs or Pairs(tables)
        self._name = self.statements.name
        self._groups: dict[Form, int] = {}
        self._sql: dict[int, GroupSql] = {}
        for number, text in tables.execute("SELECT number, form FROM groups"):
            form = msgspec.json.decode(text, type=Form)
            self._groups[form] = number
            self._sql[number] = self._group_sql(number, form)
        (last,) = tables.execute("SELECT max(number) FROM atomic_rules").fetchone()
        self._last_rule: int = last or 0
        self._pieces: dict[tuple[int, int], set[str]] = {}  # by class and property
        self._known: dict[Trigger, int] = {}  # PERF: most rules have triggers that others have
        self._known_joins: dict[tuple[int, tuple[int, ...]], int] = {}
        self._old_depths: dict[int, int] = {}
        self._last_before = 0  # the last rule before the one that is added
        self._has_data = self._count("subjects") > 0
        # Of rules that have been added, until ``note_uses``.
        self._depths: dict[int, int] = {}
        self._uses: defaultdict[int, int] = defaultdict(int)
        self._fans: defaultdict[tuple[int, int, int], int] = defaultdict(int)
        self._asked: defaultdict[tuple[int, int, bool], int] = defaultdict(int)
        self._in_use = [name for name in TEST_OF if self._count(name)]

    def _count(self, table: str) -> int:
        """1 if it is not empty."""
        return len(self._tables.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall())

    # --- rules ----------------------------------------------------------------------------

    def add(
        self, subscription: int, repository: int, alternatives: Iterable[Conjunction]
    ) -> set[Pair]:
        """A new rule; gives what its repository gets by it that it had not.  TooManyPairs."""
        with self._run((repository, subscription)):
            ends = {self._intern(decompose(each)) for each in alternatives}
        new = set()
        for rule in ends if self._has_data else ():
            for (resource,) in self._tables.execute(
                "SELECT res FROM matches WHERE rule = ?", (rule,)
            ).fetchall():
                if not self._holds(repository, resource):
                    new.add((repository, resource))
        self._tables.executemany(
            "INSERT OR IGNORE INTO ends VALUES (?, ?, ?)",
            [(rule, repository, subscription) for rule in ends],
        )
        for rule in ends:
            self._uses[rule] += 1
        return new

    def remove(
        self, subscription: int, repository: int, alternatives: Iterable[Conjunction]
    ) -> set[Pair]:
        """A rule goes; gives what its repository loses by it."""
        had = set(self.matches(subscription))
        query = "DELETE FROM ends WHERE subscription = ?"
        self._tables.execute(query, (subscription,))
        programs = [decompose(each) for each in alternatives]
        ends: dict[int, None] = {}
        known: dict[int, Trigger] = {}
        for program in programs:
            ends[self._intern(program, known)] = None
        self.note_uses()
        left = {(repository, each) for each in had if not self._holds(repository, each)}
        for rule in ends:
            self._release(rule, known)
        self._forget()
        return left

    @contextmanager
    def _run(self, *added: Pair) -> Iterator[None]:
        """One that is ended where a join has too many pairs."""
        self._pairs.begin()
        try:
            yield
        except Exception:  # of any connection
            if not self._pairs.excessive:
                raise
            raise TooManyPairs({*added, *self._needing(self._pairs.excessive)}) from None

    def _needing(self, rule: int) -> list[Pair]:
        """The repositories and subscriptions that need an atomic rule."""
        query = (
            "WITH RECURSIVE up(rule) AS (SELECT ?"
            " UNION SELECT j.target FROM up CROSS JOIN joins j ON j.l = up.rule"
            " UNION SELECT j.target FROM up CROSS JOIN joins j ON j.r = up.rule"
            " UNION SELECT i.target FROM up CROSS JOIN inputs i ON i.rule = up.rule)"
            " SELECT e.repository, e.subscription FROM up CROSS JOIN ends e ON e.rule = up.rule"
        )
        return self._tables.execute(query, (rule,)).fetchall()

    def _forget(self) -> None:
        """What is kept of the tables' rules."""
        for each in (self._known, self._known_joins, self._old_depths):
            each.clear()

    def _holds(self, repository: int, resource: int) -> bool:
        query = (
            "SELECT 1 FROM matches m CROSS JOIN ends e ON e.rule = m.rule AND e.repository = ?"
            " WHERE m.res = ? LIMIT 1"
        )
        return self._tables.execute(query, (repository, resource)).fetchone() is not None

    def _intern(self, program: Program, known: dict[int, Trigger] | None = None) -> int:
        """The number of the end rule; each atomic rule is made once.  ``known`` is told the
        triggers by their numbers."""
        if len(self._known) + len(self._known_joins) > _KNOWN_MAX:
            self._forget()
        self._last_before = self._last_rule
        node: dict[str, int] = {}
        for variable, triggers in program.triggers.items():
            numbers = []
            for trigger in triggers:
                number = self._known.get(trigger, 0)
                if not number:
                    number = self._known[trigger] = self._trigger(trigger)
                numbers.append(number)
                if known is not None:
                    known[number] = trigger
            node[variable] = numbers[0]
            if len(numbers) > 1:
                numbers.sort()
                name = triggers[0].class_name
                node[variable] = numbers[0]
                for number in numbers[1:]:
                    node[variable] = self._join(
                        Form((name, name), (SAME,), 0), (node[variable], number)
                    )
        last = node[program.register]
        for variables, form in program.joins:
            last = self._join(form, tuple(node[each] for each in variables))
            node[variables[form.output]] = last
        return last

    def _filed_at(self, trigger: Trigger) -> tuple[str, dict[str, object]]:
        """The filter table of a trigger, and the columns of its row."""
        columns: dict[str, object] = {"class": self._name(trigger.class_name)}
        constant = trigger.constant
        if constant is None:
            return "f_class", columns
        value: object = constant.value
        if constant.kind == "iri":
            value = self.statements.resources((str(value),))[str(value)]
        columns |= {"prop": self._name(trigger.property), "value": value}
        if trigger.operator != "contains":
            return TABLE_OF[trigger.operator, constant.kind], columns
        return "f_contains", {**columns, "piece": _piece(str(value))}

    def _trigger(self, trigger: Trigger) -> int:
        table, columns = self._filed_at(trigger)
        where, key = _equal(columns), tuple(columns.values())
        found = self._tables.execute(f"SELECT rule FROM {table} WHERE {where}", key).fetchone()
        if found is not None:
            number: int = found[0]
            return number
        number = self._new_rule(0)
        places = ", ".join("?" * (len(key) + 1))
        insert = f"INSERT INTO {table} ({', '.join(columns)}, rule) VALUES ({places})"
        self._tables.execute(insert, (*key, number))
        if trigger.constant is not None:
            of_class, prop, _, *piece = key
            assert isinstance(of_class, int) and isinstance(prop, int)
            self._asked[of_class, prop, bool(piece)] += 1
            if piece:
                self._pieces.get((of_class, prop), set()).add(str(piece[0]))
            elif table not in self._in_use:
                self._in_use.append(table)
        if self._has_data:
            self._evaluate_trigger(number, trigger, key)
        return number

    def _new_rule(self, depth: int) -> int:
        self._last_rule += 1
        self._depths[self._last_rule] = depth
        return self._last_rule

    def note_uses(self) -> None:
        """Write what counts the uses of rules that have been added.  PERF: many use the same."""
        many = self._tables.executemany
        uses = self._uses
        new = [(number, depth, uses.pop(number, 0)) for number, depth in self._depths.items()]
        insert_rows(self._tables, "INSERT INTO atomic_rules", new)
        many(
            "UPDATE atomic_rules SET uses = uses + ? WHERE number = ?",
            [(count, number) for number, count in uses.items()],
        )
        many(
            "INSERT INTO deps VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET fan = fan + ?4",
            [(*place, count) for place, count in self._fans.items()],
        )
        many(
            "INSERT INTO asked VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE"
            " SET uses = uses + ?4, pieces = pieces + ?3",
            [(*of, is_piece * count, count) for (*of, is_piece), count in self._asked.items()],
        )
        for each in (self._depths, uses, self._fans, self._asked):
            each.clear()

    def _group(self, form: Form) -> int:
        number = self._groups.get(form)
        if number is None:
            number = self._groups[form] = len(self._groups) + 1
            text = msgspec.json.encode(form).decode()
            self._tables.execute("INSERT INTO groups VALUES (?, ?)", (number, text))
            self._sql[number] = self._group_sql(number, form)
        return number

    def _group_sql(self, number: int, form: Form) -> GroupSql:
        return GroupSql(number, form, self._name)

    def _join(self, form: Form, rules: tuple[int, ...]) -> int:
        group = self._group(form)
        tables = self._tables
        key = (group, rules)
        number = self._known_joins.get(key, 0)
        if not number and max(rules) <= self._last_before:  # else it is a new one
            number = self._joined(group, rules)
        if not number:
            number = self._new_rule(max(map(self._depth, rules)) + 1)
            if len(rules) == 2:
                tables.execute("INSERT INTO joins VALUES (?, ?, ?, ?)", (*rules, group, number))
            else:
                rows = [(rule, group, place, number) for place, rule in enumerate(rules)]
                tables.executemany("INSERT INTO inputs VALUES (?, ?, ?, ?)", rows)
            for place, rule in enumerate(rules):
                self._fans[rule, group, place] += 1
                self._uses[rule] += 1
            if self._has_data:
                self._evaluate_join(number, group, rules)
        self._known_joins[key] = number
        return number

    def _joined(self, group: int, rules: tuple[int, ...]) -> int:
        """The join of these inputs, or 0."""
        tables = self._tables
        if len(rules) == 2:
            query = "SELECT target FROM joins WHERE l = ? AND r = ? AND grp = ?"
            found = tables.execute(query, (*rules, group)).fetchone()
        else:
            query = "SELECT target FROM inputs WHERE rule = ? AND grp = ? AND position = 0"
            of_first = tables.execute(query, (rules[0], group)).fetchall()
            found = next((each for each in of_first if self._inputs(each[0]) == rules), None)
        return 0 if found is None else int(found[0])

    def _depth(self, rule: int) -> int:
        depth = self._depths.get(rule)
        if depth is None:
            depth = self._old_depths.get(rule)
        if depth is None:
            query = "SELECT depth FROM atomic_rules WHERE number = ?"
            depth = int(self._tables.execute(query, (rule,)).fetchone()[0])
            self._old_depths[rule] = depth
        return depth

    def _inputs(self, target: int) -> tuple[int, ...]:
        query = "SELECT rule FROM inputs WHERE target = ? ORDER BY position"
        return tuple(rule for (rule,) in self._tables.execute(query, (target,)))

    def _release(self, rule: int, known: Mapping[int, Trigger]) -> None:
        """One thing less needs an atomic rule; without any it goes, and what it needed."""
        tables = self._tables
        tables.execute("UPDATE atomic_rules SET uses = uses - 1 WHERE number = ?", (rule,))
        query = "SELECT 1 FROM atomic_rules WHERE number = ? AND uses > 0"
        if tables.execute(query, (rule,)).fetchone() is not None:
            return
        tables.execute("DELETE FROM atomic_rules WHERE number = ?", (rule,))
        tables.execute("DELETE FROM matches WHERE rule = ?", (rule,))
        trigger = known.get(rule)
        if trigger is not None:
            self._remove_trigger(rule, trigger)
            return
        found = tables.execute("SELECT l, r, grp FROM joins WHERE target = ?", (rule,)).fetchone()
        if found is not None:
            *inputs, group = found
            tables.execute("DELETE FROM joins WHERE target = ?", (rule,))
        else:
            query = "SELECT rule, grp FROM inputs WHERE target = ? ORDER BY position"
            rows = tables.execute(query, (rule,)).fetchall()
            inputs, group = [row[0] for row in rows], rows[0][1]
            tables.execute("DELETE FROM inputs WHERE target = ?", (rule,))
        for side, each in enumerate(inputs):
            place = (each, group, side)
            where = "WHERE rule = ? AND grp = ? AND side = ?"
            tables.execute(f"UPDATE deps SET fan = fan - 1 {where}", place)
            tables.execute(f"DELETE FROM deps {where} AND fan = 0", place)
            self._release(each, known)

    def _remove_trigger(self, rule: int, trigger: Trigger) -> None:
        table, columns = self._filed_at(trigger)
        execute = self._tables.execute
        key = tuple(columns.values())
        execute(f"DELETE FROM {table} WHERE {_equal(columns)} AND rule = ?", (*key, rule))
        if trigger.constant is not None:
            where = "WHERE class = ? AND prop = ?"
            counts = f"uses = uses - 1, pieces = pieces - {int('piece' in columns)}"
            execute(f"UPDATE asked SET {counts} {where}", key[:2])
            execute(f"DELETE FROM asked {where} AND uses = 0", key[:2])

    # --- a new rule on what is stored -----------------------------------------------------

    def _evaluate_trigger(self, rule: int, trigger: Trigger, key: Sequence[object]) -> None:
        insert = "INSERT OR IGNORE INTO matches SELECT"
        of_class, *rest = key
        if trigger.constant is None:
            query = f"{insert} res, ? FROM types WHERE class = ?"
            self._tables.execute(query, (rule, of_class))
        elif not trigger.property:
            query = (
                f"{insert} t.res, ? FROM types t WHERE t.class = ? AND t.res {trigger.operator} ?"
            )
            self._tables.execute(query, (rule, of_class, rest[1]))
        else:
            test = compared("fd", trigger.operator, "?", trigger.constant.kind)
            self._tables.execute(
                f"{insert} fd.res, ? FROM statements fd CROSS JOIN types t ON t.res = fd.res"
                f" AND t.class = ? WHERE fd.prop = ? AND {test}",
                (rule, of_class, *rest[:2]),
            )

    def _evaluate_join(self, target: int, group: int, rules: Sequence[int]) -> None:
        query = "SELECT count(*) FROM (SELECT 1 FROM matches WHERE rule = ? LIMIT 10000)"
        counts = [self._tables.execute(query, (each,)).fetchone()[0] for each in rules]
        if all(counts):
            start = counts.index(min(counts))
            self._tables.execute(self._sql[group].late(start), (rules[start], target))

    # --- documents ------------------------------------------------------------------------

    def write(self, documents: Mapping[str, Sequence[Statement]]) -> Effects:
        """Documents are as said, whatever they were before; one without statements is removed.
        TooManyPairs."""
        tables = self._tables
        self.note_uses()
        self._has_data = self._has_data or bool(documents)
        for table in ("changed", "fd", "fp", "ro", "nx", "result", "cand", "fresh"):
            tables.execute(f"DELETE FROM {table}")
        changes = self.statements.replace(documents)
        rows = [(each,) for each in changes.resources]
        tables.executemany("INSERT INTO changed VALUES (?)", rows)
        with self._run():
            is_new = not self._question()
            changes.write(tables)
            self._put_back(is_new=is_new)
            if not is_new:
                self._bring()
            self._go_on(is_new=True)
        return self._effects(changes.resources, is_new=is_new)

    # --- the three passes -----------------------------------------------------------------

    def _question(self) -> bool:
        """First pass: all that the former versions had a part in, at every depth, is taken out;
        whether there is anything."""
        tables = self._tables
        query = (
            "INSERT INTO ro SELECT m.res, m.rule FROM changed c CROSS JOIN matches m"
            " ON m.res = c.res"
        )
        if tables.execute(query).rowcount <= 0:
            return False
        self._go_on(is_new=False)
        tables.execute(
            "INSERT INTO cand SELECT a.depth, q.res, q.rule FROM result q"
            " CROSS JOIN atomic_rules a ON a.number = q.rule"
        )
        tables.execute("DELETE FROM matches WHERE (res, rule) IN (SELECT res, rule FROM cand)")
        tables.execute("DELETE FROM result")
        tables.execute("DELETE FROM ro")
        return True

    def _put_back(self, *, is_new: bool) -> None:
        """Second pass: triggers of the new versions, and the joins in question that still hold.
        ``is_new``: nothing is in question, so nothing that has changed was matched."""
        tables = self._tables
        if is_new:
            self._triggers("matches")
            if self._sql:
                tables.execute(
                    "INSERT INTO ro SELECT m.res, m.rule FROM changed c CROSS JOIN matches m"
                    " ON m.res = c.res WHERE EXISTS (SELECT 1 FROM deps d WHERE d.rule = m.rule)"
                )
            return
        self._triggers("ro")
        tables.execute(
            "INSERT INTO fresh SELECT ro.res, ro.rule FROM ro WHERE NOT EXISTS"
            " (SELECT 1 FROM matches m WHERE m.res = ro.res AND m.rule = ro.rule)"
        )
        tables.execute("INSERT OR IGNORE INTO matches SELECT res, rule FROM ro")
        query = "SELECT DISTINCT depth, rule FROM cand WHERE depth > 0"
        in_question: dict[tuple[int, int], None] = {}
        for depth, rule in sorted(tables.execute(query).fetchall()):
            in_question[depth, self._group_of(rule)] = None
        for depth, group in in_question:
            tables.execute(self._sql[group].kept(), (depth,))

    def _group_of(self, rule: int) -> int:
        query = (
            "SELECT grp FROM joins WHERE target = ?1 UNION SELECT grp FROM inputs WHERE target = ?1"
        )
        (group,) = self._tables.execute(query, (rule,)).fetchone()
        return int(group)

    def _bring(self) -> None:
        """Third pass: all that the new versions have a part in."""
        self._tables.execute(
            "INSERT OR IGNORE INTO ro SELECT m.res, m.rule FROM changed c CROSS JOIN matches m"
            " ON m.res = c.res"
        )

    def _go_on(self, *, is_new: bool) -> None:
        """From ``ro`` through the joins, until nothing is new of it.

        ``is_new``: what is found is stored, and goes on if it was not there or is of a resource
        that has changed; a match that was there, of one that has not, brings nothing.
        """
        tables = self._tables
        todo = (
            "SELECT DISTINCT d.grp, d.side, d.fan <= ? FROM (SELECT DISTINCT rule FROM ro) q"
            " CROSS JOIN deps d ON d.rule = q.rule"
        )
        while True:
            groups = tables.execute(todo, (FEW,)).fetchall() if self._sql else []
            if groups or not is_new:
                tables.execute("INSERT OR IGNORE INTO result SELECT res, rule FROM ro")
            if not groups:
                return
            tables.execute("DELETE FROM nx")
            for group, side, is_few in groups:
                tables.execute(self._sql[group].new(side, is_few=bool(is_few)))
            tables.execute("DELETE FROM ro")
            unseen = "NOT EXISTS (SELECT 1 FROM result q WHERE q.res = nx.res AND q.rule = nx.rule)"
            insert = "SELECT nx.res, nx.rule FROM nx WHERE"
            if is_new:
                stored = "(SELECT 1 FROM matches m WHERE m.res = nx.res AND m.rule = nx.rule)"
                tables.execute(f"INSERT INTO ro {insert} NOT EXISTS {stored}")
                tables.execute("INSERT OR IGNORE INTO fresh SELECT res, rule FROM ro")
                tables.execute(
                    f"INSERT OR IGNORE INTO ro {insert} {unseen} AND EXISTS"
                    " (SELECT 1 FROM changed c WHERE c.res = nx.res)"
                )
                tables.execute("INSERT OR IGNORE INTO matches SELECT res, rule FROM nx")
            else:
                tables.execute(f"INSERT INTO ro {insert} {unseen}")

    def _triggers(self, into: str) -> None:
        """The triggers that what has changed affects, into ``ro`` or ``matches``."""
        tables = self._tables
        tables.execute(
            "INSERT INTO fd SELECT s.res, a.class, s.prop, s.ref, s.value, s.num, s.sec, a.pieces"
            " FROM changed c CROSS JOIN types t ON t.res = c.res"
            " CROSS JOIN asked a ON a.class = t.class"
            " CROSS JOIN statements s ON s.res = c.res AND s.prop = a.prop"
        )
        tables.execute(
            "INSERT INTO fd SELECT c.res, a.class, a.prop, c.res, '', NULL, NULL, 0"
            " FROM changed c CROSS JOIN types t ON t.res = c.res"
            f" CROSS JOIN asked a ON a.class = t.class AND a.prop = {RESOURCE_ITSELF}"
        )
        insert = f"INSERT OR IGNORE INTO {into} SELECT"
        tables.execute(
            f"{insert} t.res, f.rule FROM changed c CROSS JOIN types t ON t.res = c.res"
            " CROSS JOIN f_class f ON f.class = t.class"
        )
        for table in self._in_use:
            tables.execute(
                f"{insert} fd.res, f.rule FROM fd CROSS JOIN {table} f"
                f" ON f.class = fd.class AND f.prop = fd.prop AND {TEST_OF[table]}"
            )
        query = "SELECT res, class, prop, value FROM fd WHERE pieces > 0 AND ref = 0"
        searched = [
            (res, of_class, prop, piece, value)
            for res, of_class, prop, value in tables.execute(query)
            for piece in _found(self._filed(of_class, prop), value)
        ]
        if searched:
            tables.executemany("INSERT INTO fp VALUES (?, ?, ?, ?, ?)", searched)
            tables.execute(
                f"{insert} fp.res, f.rule FROM fp CROSS JOIN f_contains f ON f.class = fp.class"
                " AND f.prop = fp.prop AND f.piece = fp.piece AND instr(fp.value, f.value) > 0"
            )

    def _filed(self, of_class: int, prop: int) -> set[str]:
        """The pieces under which patterns are filed, perhaps some under which none is any more."""
        found = self._pieces.get((of_class, prop))
        if found is None:
            query = "SELECT min(piece) FROM f_contains WHERE class = ? AND prop = ? AND piece > ?"
            found = set()
            last: str | None = ""
            while last is not None:
                found.add(last)
                key = (of_class, prop, last)
                (last,) = self._tables.execute(query, key).fetchone()
            self._pieces[of_class, prop] = found
        return found

    # --- effects --------------------------------------------------------------------------

    def _effects(self, concerned: set[int], *, is_new: bool) -> Effects:
        tables = self._tables
        pairs = "SELECT DISTINCT e.repository, m.res FROM {} m CROSS JOIN ends e ON e.rule = m.rule"
        before = set(tables.execute(pairs.format("cand")).fetchall())
        after = set(tables.execute(pairs.format("fresh")).fetchall())
        if is_new:
            source = "changed c CROSS JOIN matches m ON m.res = c.res CROSS JOIN ends e"
            after.update(tables.execute(pairs.replace("{} m CROSS JOIN ends e", source)))
        came, left = set(), set()
        for pair in after - before:
            if pair[1] in concerned or not self._held_all_along(*pair):
                came.add(pair)
        for pair in before - after:
            if not self._holds(*pair):
                left.add(pair)
        return Effects(came, left, self._changed() - came)

    def _held_all_along(self, repository: int, resource: int) -> bool:
        """Whether something matches what has not changed, and is not new."""
        query = (
            "SELECT 1 FROM matches m CROSS JOIN ends e ON e.rule = m.rule AND e.repository = ?"
            " WHERE m.res = ? AND NOT EXISTS"
            " (SELECT 1 FROM fresh f WHERE f.res = m.res AND f.rule = m.rule) LIMIT 1"
        )
        return self._tables.execute(query, (repository, resource)).fetchone() is not None

    def _changed(self) -> set[Pair]:
        """Who holds something that has changed, or what strongly refers to it."""
        up = "SELECT res FROM changed"
        if self.statements.strong:
            strong = ",".join(map(str, self.statements.strong))
            up += (
                " UNION SELECT s.res FROM up CROSS JOIN statements s"
                f" ON s.prop IN ({strong}) AND s.ref = up.res AND s.ref != 0"
            )
        query = (
            f"WITH RECURSIVE up(res) AS ({up})"
            " SELECT DISTINCT e.repository, m.res FROM up CROSS JOIN matches m ON m.res = up.res"
            " CROSS JOIN ends e ON e.rule = m.rule"
            " WHERE NOT EXISTS (SELECT 1 FROM changed c WHERE c.res = up.res)"
            " OR EXISTS (SELECT 1 FROM cand c WHERE c.res = up.res)"  # else all of it came
        )
        return set(self._tables.execute(query).fetchall())


def _equal(columns: Iterable[str]) -> str:
    return " AND ".join(f"{each} = ?" for each in columns)


def _piece(pattern: str) -> str:
    """The piece under which a pattern is filed: the first by the alphabet of the rarest."""
    pieces = sorted(_pieces(pattern)) if len(pattern) >= PIECE else [pattern]
    return min(pieces, key=_commonness)


def _pieces(text: str) -> set[str]:
    return {text[at : at + PIECE] for at in range(len(text) - PIECE + 1)}


def _found(filed: set[str], value: str) -> Iterable[str]:
    """The pieces that a value contains."""
    if len(filed) <= len(value):
        return [piece for piece in filed if piece in value]
    return filed.intersection(_pieces_of_value(value))


def _pieces_of_value(value: str) -> Iterator[str]:
    """All under which a pattern may be filed that the value contains."""
    yield ""
    for length in range(1, PIECE + 1):
        yield from {value[at : at + length] for at in range(len(value) - length + 1)}


def _commonness(piece: str) -> tuple[float, str]:
    """Letters that texts are full of last: how a piece is chosen does not depend on what other
    rules there are, so that it is found again."""
    return sum(_FREQUENT.get(letter, 0) for letter in piece.lower()), piece


_FREQUENT = {letter: 30 - at for at, letter in enumerate("etaoinsrhldcumfpgwybvkxjqz./-:0123")}
