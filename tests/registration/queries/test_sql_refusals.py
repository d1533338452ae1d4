"""Texts that are no query here: each is refused with its code and its place, by bounded work."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from registration.queries.refusals import QueryRefused
from registration.queries.sql_functions import FUNCTIONS
from registration.queries.sql_language import LENGTH_MAX
from registration.queries.sql_reader import read_query
from tests.registration.queries.example_market import market

MARKET = market()
CALLS, CALLS_OF_A_CHARACTER = 500_000, 100
"""Calls and returns of Python code for a text, and for each of its characters."""

HOSTILE = [
    ("SELECT TRANSFORM(id) USING 'id' AS (x STRING) FROM A.R", "syntax", 22),
    ("SELECT MAP id USING 'cat' FROM A.R", "syntax", 15),
    ("FROM A.R MAP id USING 'sh' AS x", "syntax", 14),
    ("SELECT * FROM text.`/etc/passwd`", "unknown-relation", 15),
    ("SELECT * FROM csv.`/etc/hosts`", "unknown-relation", 15),
    ("SELECT * FROM parquet.`s3a://b/x`", "unknown-relation", 15),
    ("SELECT * FROM `/etc/passwd`", "unknown-relation", 15),
    ("SELECT * FROM `A.R`", "unknown-relation", 15),
    ("SELECT * FROM system.A.R", "forbidden-sql", 15),
    ("SELECT reflect('java.lang.System', 'exit', 1) FROM A.R", "unknown-function", 8),
    ("SELECT java_method('java.lang.Runtime', 'x') FROM A.R", "unknown-function", 8),
    ("SELECT try_reflect('java.lang.System', 'x') FROM A.R", "unknown-function", 8),
    ("SELECT `reflect`('java.lang.System', 'x') FROM A.R", "forbidden-sql", 8),
    ("SELECT a.b.reflect('x') FROM A.R", "unknown-function", 12),
    ("SELECT upper(reflect('x', 'y')) FROM A.R", "unknown-function", 14),
    ("SELECT id FROM A.R WHERE java_method('x', 'y') = 1", "unknown-function", 26),
    ("SELECT input_file_name() FROM A.R", "unknown-function", 8),
    ("SELECT raise_error('x') FROM A.R", "unknown-function", 8),
    ("SELECT current_user() FROM A.R", "unknown-function", 8),
    ("ADD FILE '/etc/passwd'", "forbidden-sql", 1),
    ("ADD JAR 'http://x/y.jar'", "forbidden-sql", 1),
    ("SET spark.sql.runSQLOnFiles=true", "forbidden-sql", 1),
    ("CREATE FUNCTION f AS 'x.Y' USING JAR 'y.jar'", "forbidden-sql", 1),
    ("INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1", "forbidden-sql", 1),
    ("DROP TABLE A.R", "forbidden-sql", 1),
    ("EXPLAIN SELECT id FROM A.R", "forbidden-sql", 1),
    ("DESCRIBE A.R", "forbidden-sql", 1),
    ("CACHE TABLE x AS SELECT id FROM A.R", "forbidden-sql", 1),
    ("EXECUTE IMMEDIATE 'DROP TABLE x'", "forbidden-sql", 1),
    ("BEGIN SELECT 1; END", "forbidden-sql", 1),
    ("SELECT id FROM A.R; DROP TABLE x", "forbidden-sql", 19),
    ("SELECT /*+ BROADCAST(R) */ id FROM A.R", "forbidden-sql", 8),
    ("SELECT id FROM A.R /* no end", "syntax", 29),
    ("SELECT 'no end FROM A.R", "syntax", 24),
    ("SELECT * FROM range(10)", "forbidden-sql", 15),
    ("SELECT * FROM read_files('/etc')", "forbidden-sql", 15),
    ("SELECT * FROM A.R(path => '/etc')", "forbidden-sql", 27),
    ("SELECT * FROM archive.wire(archive => '/etc')", "forbidden-sql", 39),
    ("SELECT * FROM archive.wire(profile => concat('a', 'b'))", "forbidden-sql", 39),
    ("SELECT * FROM identifier('A.R')", "forbidden-sql", 15),
    ("SELECT * FROM A.R, LATERAL (SELECT 1 FROM B.U)", "forbidden-sql", 36),
    ("SELECT * FROM A.R TABLESAMPLE (10 PERCENT)", "forbidden-sql", 32),
    ("SELECT * FROM A.R VERSION AS OF 1", "forbidden-sql", 33),
    ("SELECT * FROM A.R PIVOT (sum(price) FOR id IN (1, 2))", "forbidden-sql", 15),
    ("SELECT id FROM A.R |> WHERE id > 1", "forbidden-sql", 20),
    ("SELECT ${env} FROM A.R", "forbidden-sql", 8),
    ("SELECT :x FROM A.R", "forbidden-sql", 16),
    ("SELECT id FROM A.R DISTRIBUTE BY id", "forbidden-sql", 34),
    ("SELECT id INTO x FROM A.R", "forbidden-sql", 16),
    ("SELECT CAST(id AS A.X) FROM A.R", "syntax", 19),
    ("VALUES (1)", "forbidden-sql", 1),
    ("SELECT 1", "forbidden-sql", 8),
    ("SELECT іd FROM A.R", "unknown-column", 8),
    ("SELECT id FROM A.Ｒ", "unknown-relation", 16),
    ("SELECT id\u200b FROM A.R", "forbidden-sql", 8),
    ("SELECT ｒｅｆｌｅｃｔ('x') FROM A.R", "forbidden-sql", 8),
    ("SELECT `x`` FROM text.y` FROM A.R", "unknown-column", 8),
    ("SELECT id AS `a\nb` FROM A.R", "forbidden-sql", 14),
    ("SELECT id FROM A.R LATERAL VIEW json_tuple(name, 'a') j AS x", "forbidden-sql", 33),
    ("SELECT id FROM A.R LATERAL VIEW explode(array(reflect('x'))) j AS x", "unknown-function", 47),
    ("WITH RECURSIVE c AS (SELECT id FROM A.R) SELECT id FROM c", "forbidden-sql", 16),
    ("", "syntax", 1),
    (";", "syntax", 1),
    ("\x00", "forbidden-sql", 1),
]


WHOLE = """WITH c AS (SELECT id, thumbnail(p.image) t FROM B.T LATERAL VIEW explode(pictures) x p)
SELECT r.id, sum(s.qty) q FROM A.R r LEFT JOIN A.S s USING (id) JOIN c ON c.id = r.id
WHERE EXISTS (SELECT 1 FROM B.U u WHERE u.x = r.k) GROUP BY r.id HAVING q > 1
UNION ALL SELECT id, null FROM A.R ORDER BY id LIMIT 3"""
WORDS = (*"(),.*='`[]\\é", "->", "=>", "--", "/*", *WHOLE.split())


@contextmanager
def _bounded(text: str) -> Iterator[None]:
    """The work within is linear in the length of ``text``."""
    left = CALLS + CALLS_OF_A_CHARACTER * len(text)

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal left
        left -= 1
        assert left, f"more than linear: {text[:80]}"

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def _refusal(text: str) -> QueryRefused:
    with pytest.raises(QueryRefused) as caught, _bounded(text):
        read_query(text, MARKET)
    return caught.value


@pytest.mark.parametrize(("text", "code", "column"), HOSTILE)
def test_a_hostile_text_is_refused_at_its_place(text: str, code: str, column: int) -> None:
    refused = _refusal(text)
    assert (refused.code, refused.line, refused.column) == (code, 1, column), str(refused)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM A.R",
        "SELECT " + "upper(" * 3_000 + "name" + ")" * 3_000 + " FROM A.R",
        "SELECT " + "- " * 9_000 + "id FROM A.R",
        "SELECT " + "NOT " * 9_000 + "true FROM A.R",
        "SELECT " + "CASE WHEN " * 2_000 + "id" + " THEN 1 END" * 2_000 + " FROM A.R",
        "SELECT id" + " + id" * 9_000 + " FROM A.R",
        "SELECT CAST(id AS " + "array<" * 900 + "int" + ">" * 900 + ") FROM A.R",
        "SELECT * FROM " + "(SELECT * FROM " * 900 + "A.R" + ")" * 900,
        "SELECT id" + "[0]" * 5_000 + " FROM A.R",
        "SELECT " + "x -> " * 5_000 + "1 FROM A.R",
        "SELECT " + "a." * 9_000 + "b FROM A.R",
        "SELECT " + "'" * (LENGTH_MAX - 8),
        "SELECT id FROM A.R WHERE " + "id = 1 OR " * 20_000 + "id = 2",
        "x" * 10_000_000,
        "SELECT id FROM A.R" + " UNION ALL SELECT nothing FROM A.R" * 2_500,
    ],
    ids=lambda text: text[7:20],
)
def test_deep_and_long_texts_end_soon(text: str) -> None:
    assert _refusal(text).code in ("syntax", "forbidden-sql", "unknown-column")


def test_long_flat_texts_are_read() -> None:
    many = " AND ".join(f"id <> {each}" for each in range(1_000))
    listed = ", ".join(map(str, range(5_000)))
    for text in (f"SELECT id FROM A.R WHERE {many}", f"SELECT id FROM A.R WHERE id IN ({listed})"):
        assert read_query(text, MARKET).graph.predicates


def test_only_listed_functions_are_called_by_name() -> None:
    dangerous = "reflect java_method try_reflect input_file_name version raise_error uuid rand"
    assert not FUNCTIONS.keys() & set(dangerous.split())


@pytest.mark.parametrize(
    ("text", "code", "column", "hint"),
    [
        ("SELECT prise FROM A.R", "unknown-column", 8, "did you mean price?"),
        ("SELECT r.prise FROM A.R r", "unknown-column", 10, "did you mean price?"),
        ("SELECT q.price FROM A.R r", "unknown-column", 8, ""),
        ("SELECT t.info.x FROM B.T t", "unknown-column", 15, ""),
        ("SELECT t.info.b.d FROM B.T t", "unknown-column", 17, ""),
        ("SELECT id FROM A.R, A.S", "ambiguous", 8, "write the alias before it"),
        ("SELECT R.id FROM A.R, A.R", "ambiguous", 23, "give one of them another alias"),
        ("SELECT r.id FROM A.R r, A.S s FULL JOIN B.U u ON u.id = s.id", "ambiguous", 41,
         "write CROSS JOIN in place of the comma"),
        ("SELECT * FROM R", "unknown-relation", 15, "did you mean A.R?"),
        ("SELECT * FROM A.Rr", "unknown-relation", 15, "did you mean A.R?"),
        ("SELECT tumbnail(name) FROM A.R", "unknown-function", 8, "did you mean thumbnail?"),
        ("SELECT uper(name) FROM A.R", "unknown-function", 8,
         "did you mean upper or power?"),
        ("SELECT thumbnail(name) FROM A.R", "unknown-function", 8, ""),
        ("SELECT wrap_s(name) FROM A.R", "forbidden-sql", 8, ""),
        ("SELECT thumbnail(max(image)) FROM A.R", "unknown-column", 22, ""),
        ("SELECT score(max(price), 'a') FROM A.R", "forbidden-sql", 14,
         "put the argument into a subquery"),
        ("SELECT id FROM A.R WHERE sum(id) > 1", "forbidden-sql", 26, ""),
        ("SELECT * EXCEPT (prise) FROM A.R", "unknown-column", 18, "did you mean price?"),
        ("SELECT id FROM A.R UNION SELECT id, k FROM A.S", "forbidden-sql", 33, ""),
        ("SELECT id FROM A.R LIMIT 1 + 1", "forbidden-sql", 26, ""),
        ("SELECT r.id FROM A.R r WHERE EXISTS (SELECT 1 FROM A.S s WHERE s.idd = r.id)",
         "unknown-column", 66, "did you mean id?"),
        ("SELECT id FROM A.R WHERE", "syntax", 20, ""),
        ("SELECT id FORM A.R", "syntax", 16, ""),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_with_near_misses(text: str, code: str, column: int, hint: str) -> None:
    refused = _refusal(text)
    assert (refused.code, refused.column, refused.hint) == (code, column, hint), str(refused)


@pytest.mark.parametrize("seed", range(300))
def test_damaged_texts_are_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice([*(text for text, _, _ in HOSTILE), *[WHOLE] * 40])
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(["", *WORDS]) + text[at + rng.randint(0, 8) :]
    try:
        with _bounded(text):
            read_query(text, MARKET)
    except QueryRefused as refused:
        assert refused.line and refused.column, (seed, text)
