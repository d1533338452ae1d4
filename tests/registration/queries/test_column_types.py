"""Schemas and signatures as texts: read as sqlglot reads them, and refused with the place."""

from __future__ import annotations

from random import Random

import pytest
from sqlglot import exp

from registration.queries.column_types import NoType, read_columns, read_signature

SIMPLE = ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "boolean")


def random_type(random: Random, depth: int = 0) -> str:
    kind = random.choice(["array", "map", "struct", "decimal", *SIMPLE] if depth < 4 else SIMPLE)
    blank = random.choice(("", " "))
    if kind == "array":
        return f"ARRAY<{random_type(random, depth + 1)}{blank}>"
    if kind == "map":
        return f"map<string,{blank}{random_type(random, depth + 1)}>"
    if kind == "struct":
        count = random.randint(1, 3)
        fields = (f"f{n}:{blank}{random_type(random, depth + 1)}" for n in range(count))
        return f"STRUCT<{', '.join(fields)}>"
    if kind == "decimal":
        return f"DECIMAL({random.randint(3, 38)},{blank}{random.randint(0, 3)})"
    return random.choice((kind, kind.upper()))


@pytest.mark.parametrize("seed", range(100))
def test_types_are_those_that_sqlglot_reads(seed: int) -> None:
    text = random_type(Random(seed))
    ((name, said),) = read_columns(f"x {text}")
    assert name == "x"
    one, other = (exp.DataType.build(each, dialect="spark") for each in (text, said))
    assert one == other
    assert said == said.lower().replace(" ", "")
    assert read_columns(f"x {said}") == (("x", said),)


def test_a_schema_has_names_in_quotes_and_other_names_of_types() -> None:
    text = "`the id` Integer, t Timestamp_LTZ, d dec, m map<string, struct<`a b`: long>>"
    assert read_columns(text) == (
        ("the id", "int"),
        ("t", "timestamp"),
        ("d", "decimal(10,0)"),
        ("m", "map<string,struct<`a b`:bigint>>"),
    )


def test_signatures_are_of_scalars_and_of_tables() -> None:
    assert read_signature("(image BINARY) -> BINARY") == (
        (("image", "binary"),),
        (("", "binary"),),
    )
    assert read_signature(" ( ) ->(id INT,name STRING) ") == (
        (),
        (("id", "int"), ("name", "string")),
    )


@pytest.mark.parametrize(
    ("text", "place", "expected", "hint"),
    [
        ("", 1, "a name", ""),
        ("id", 3, "a type", ""),
        ("id in", 4, "a type of Spark's DDL", "did you mean int"),
        ("id int,", 8, "a name", ""),
        ("id int name string", 8, "nothing more", ""),
        ("id int, ID string", 9, "another name for each column", ""),
        ("a array<int", 12, '">"', ""),
        ("a array", 8, '"<"', ""),
        ("c char", 7, '"("', ""),
        ("d decimal(x)", 11, "a number", ""),
        ("a map<string>", 13, '","', ""),
        ("a " + "array<" * 40, 201, "at most 32 types within each other", ""),
        ("x int; DROP TABLE t", 6, "nothing more", ""),
    ],
)
def test_what_is_no_schema_is_refused_where_it_is_wrong(
    text: str, place: int, expected: str, hint: str
) -> None:
    with pytest.raises(NoType) as refused:
        read_columns(text)
    assert (refused.value.column, refused.value.expected) == (place, expected)
    assert refused.value.hint.startswith(hint)


@pytest.mark.parametrize("text", ["BINARY", "(image BINARY)", "(a INT) -> ", "(a INT) - INT", "()"])
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(NoType):
        read_signature(text)
