"""The tables of the filter (MDV, sections 3.2 and 3.3.4), and the rows of statements.

They are derived from documents and rules.  Names (classes, properties, datatypes, languages) and
resources are numbers.  A statement counts for the properties above its own too, and a resource is
of the classes above its own: such rows are not ``own``.

Columns of a primary key come first, in its order: quick_check of SQLite 3.40 calls any other table
WITHOUT ROWID damaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Tables(Protocol):
    """A connection to SQLite, whose transactions are the caller's."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[object] = ..., /) -> Any: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> Any: ...

    def create_function(self, name: str, narg: int, func: Any, /) -> None: ...


STORED = """
reflected(revision INTEGER, time REAL);
set_aside(uri TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
names(number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
resources(number INTEGER PRIMARY KEY, uri TEXT UNIQUE NOT NULL);
subjects(res INTEGER, doc INTEGER, PRIMARY KEY (res, doc)) WITHOUT ROWID;
types(res INTEGER, class INTEGER, doc INTEGER, own INTEGER,
    PRIMARY KEY (res, class, doc)) WITHOUT ROWID;
statements(res INTEGER, prop INTEGER, ref INTEGER, kind INTEGER, value TEXT, doc INTEGER,
    own INTEGER, num REAL, sec REAL,
    PRIMARY KEY (res, prop, ref, kind, value, doc)) WITHOUT ROWID;
atomic_rules(number INTEGER PRIMARY KEY, depth INTEGER NOT NULL, uses INTEGER NOT NULL);
groups(number INTEGER PRIMARY KEY, form TEXT UNIQUE NOT NULL);
joins(l INTEGER, r INTEGER, grp INTEGER, target INTEGER,
    PRIMARY KEY (l, r, grp, target)) WITHOUT ROWID;
inputs(rule INTEGER, grp INTEGER, position INTEGER, target INTEGER,
    PRIMARY KEY (rule, grp, position, target)) WITHOUT ROWID;
deps(rule INTEGER, grp INTEGER, side INTEGER, fan INTEGER NOT NULL,
    PRIMARY KEY (rule, grp, side)) WITHOUT ROWID;
ends(rule INTEGER, repository INTEGER, subscription INTEGER,
    PRIMARY KEY (rule, repository, subscription)) WITHOUT ROWID;
matches(res INTEGER, rule INTEGER, PRIMARY KEY (res, rule)) WITHOUT ROWID;
asked(class INTEGER, prop INTEGER, pieces INTEGER NOT NULL, uses INTEGER NOT NULL,
    PRIMARY KEY (class, prop)) WITHOUT ROWID;
f_class(class INTEGER, rule INTEGER, PRIMARY KEY (class, rule)) WITHOUT ROWID;
f_contains(class INTEGER, prop INTEGER, piece TEXT, value TEXT, rule INTEGER,
    PRIMARY KEY (class, prop, piece, value, rule)) WITHOUT ROWID
"""
INDEXES = """
subjects_doc ON subjects(doc, res);
types_class ON types(class, res);
statements_ref ON statements(prop, ref, res) WHERE ref != 0;
statements_num ON statements(prop, num, res) WHERE num IS NOT NULL;
statements_sec ON statements(prop, sec, res) WHERE sec IS NOT NULL;
statements_value ON statements(prop, value, res) WHERE ref = 0;
joins_r ON joins(r, l, grp, target);
joins_target ON joins(target);
inputs_target ON inputs(target, position);
ends_subscription ON ends(subscription);
matches_rule ON matches(rule, res)
"""
OF_A_RUN = """
changed(res INTEGER PRIMARY KEY);
fd(res INTEGER, class INTEGER, prop INTEGER, ref INTEGER, value TEXT, num REAL, sec REAL,
    pieces INTEGER);
fp(res INTEGER, class INTEGER, prop INTEGER, piece TEXT, value TEXT);
ro(res INTEGER, rule INTEGER, PRIMARY KEY (res, rule)) WITHOUT ROWID;
nx(res INTEGER, rule INTEGER, PRIMARY KEY (res, rule)) WITHOUT ROWID;
result(res INTEGER, rule INTEGER, PRIMARY KEY (res, rule)) WITHOUT ROWID;
cand(depth INTEGER, res INTEGER, rule INTEGER, PRIMARY KEY (res, rule)) WITHOUT ROWID;
fresh(res INTEGER, rule INTEGER, PRIMARY KEY (res, rule)) WITHOUT ROWID
"""

COLUMNS = {"text": "value", "number": "num", "moment": "sec", "iri": "ref"}
GUARDS = {"text": "{}.ref = 0 AND ", "iri": "{}.ref != 0 AND "}


def compared(row: str, operator: str, other: str, kind: str) -> str:
    """The condition that the value in a row of statements compares so with an expression."""
    guard = GUARDS.get(kind, "").format(row)
    if operator in ("contains", "lacks"):
        return f"{guard}instr({row}.value, {other}) {'>' if operator == 'contains' else '='} 0"
    return f"{guard}{row}.{COLUMNS[kind]} {operator} {other}"


RESOURCE_ITSELF = 0  # as a property: the paper's rdf#subject
# The filter tables of conditions with a constant, by operator and kind (FilterRules_OP of the
# paper), and by these what holds of a row of data and a rule.
_WORDS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
TABLE_OF = {
    (operator, kind): f"f_{word}_{column}"
    for kind, column in COLUMNS.items()
    for operator, word in _WORDS.items()
    if kind in ("number", "moment") or operator in ("=", "!=")
} | {("lacks", "text"): "f_lacks"}
TEST_OF = {name: compared("fd", of[0], "f.value", of[1]) for of, name in TABLE_OF.items()}


def create(tables: Tables) -> None:
    """Make what is not there; what a run needs is made for the connection."""
    for kind, texts in (("TABLE", STORED), ("INDEX", INDEXES), ("TEMP TABLE", OF_A_RUN)):
        for text in texts.split(";"):
            tables.execute(f"CREATE {kind} IF NOT EXISTS {text}")
    for (_, kind), name in TABLE_OF.items():
        value = "TEXT" if kind == "text" else "INTEGER" if kind == "iri" else "REAL"
        columns = f"class INTEGER, prop INTEGER, value {value}, rule INTEGER"
        key = "PRIMARY KEY (class, prop, value, rule)"
        tables.execute(f"CREATE TABLE IF NOT EXISTS {name}({columns}, {key}) WITHOUT ROWID")


def clear(tables: Tables) -> None:
    """Empty all that is stored."""
    names = [text.partition("(")[0].strip() for text in STORED.split(";")]
    for name in (*names, *TEST_OF):
        tables.execute(f"DELETE FROM {name}")
