"""The filter against nested loops: rules added late and removed, documents updated and removed."""

from __future__ import annotations

import sqlite3
from random import Random

import pytest

from formats.graph.vocabulary import XSD
from registration.metadata.documents import Statement
from registration.metadata.metadata_filter import MetadataFilter
from registration.metadata.rules import Condition, Conjunction, Constant, Join, Rule
from tests.registration.metadata import brute
from tests.registration.metadata.random_metadata import (
    BASE,
    FIELDS,
    Field,
    RandomDocuments,
    document_uri,
    kinds_of,
    random_day,
    random_schema,
    random_text,
)

CLASSES = ("A", "A1", "A2", "B", "B1", "C")
REPOSITORIES = 3


def constant(random: Random, kind: str, resources: list[str]) -> Constant:
    if kind == "number":
        value: float | str = random.choice([0.0, 1.0, 2.0, 2.5, 3.0, 5.0, 3.1])
    elif kind == "moment":
        day = random_day(random)
        value = float(brute.seen_as(Statement("", "", day, XSD + "date", ""), "moment") or 0)
    elif kind == "iri":
        value = random.choice(resources)
    else:
        value = random_text(random)
    return Constant(kind, value, str(value))


def random_conjunction(random: Random, resources: list[str]) -> Conjunction:
    """Joined in any way, in circles too."""
    count = random.choice([1, 1, 2, 2, 3, 4])
    classes = {f"v{number}": random.choice(CLASSES) for number in range(count)}
    names = [*classes]
    joins = []
    for at, name in enumerate(names[1:], 1):
        for _ in range(random.choice([1, 1, 1, 2])):
            joins.append(random_join(random, name, random.choice(names[:at]), classes))
    if random.random() < 0.3:
        joins.append(random_join(random, *random.choices(names, k=2), classes))
    conditions = []
    for _ in range(random.choice([0, 0, 1, 2])):
        name = random.choice(names)
        if random.random() < 0.1:
            operator = random.choice(["=", "!="])
            conditions.append(Condition(name, "", operator, constant(random, "iri", resources)))
            continue
        field = random.choice(fields_of(classes[name]))
        kind = random.choice(sorted(kinds_of(field)))
        operator = random.choice(operators_of(kind))
        value = constant(random, kind, resources)
        conditions.append(Condition(name, BASE + field.name, operator, value))
    iris = {name: BASE + each for name, each in classes.items()}
    return Conjunction(iris, random.choice(names), tuple(conditions), tuple(joins))


def fields_of(name: str) -> list[Field]:
    return [each for each in FIELDS.values() if name.startswith(each.domain)]


def operators_of(kind: str) -> list[str]:
    ordered = ["<", "<=", ">", ">="] if kind in ("number", "moment") else []
    return ["=", "=", "!=", *ordered, *(["contains", "lacks"] if kind == "text" else [])]


def random_join(random: Random, left: str, right: str, classes: dict[str, str]) -> Join[str]:
    lefts, rights = fields_of(classes[left]), fields_of(classes[right])
    references = [
        join
        for one, two, fields in ((left, right, lefts), (right, left, rights))
        for field in fields
        if field.range and classes[two].startswith(field.range)
        for join in (
            Join(one, BASE + field.name, "=", two, "", "iri"),
            Join(two, "", "=", one, BASE + field.name, "iri"),
        )
    ]
    if references and random.random() < 0.7:
        return random.choice(references)._replace(operator=random.choice(["=", "=", "=", "!="]))
    if random.random() < 0.1:
        return Join(left, "", random.choice(["=", "!="]), right, "", "iri")
    one, two = random.choice(lefts), random.choice(rights)
    kind = random.choice(["", *(kinds_of(one) & kinds_of(two))])
    operator = random.choice(operators_of(kind))
    return Join(left, BASE + one.name, operator, right, BASE + two.name, kind)


def run(seed: int) -> None:
    random = Random(seed)
    schema = random_schema()
    tables = sqlite3.connect(":memory:", isolation_level=None)
    filter_ = MetadataFilter(tables, schema)
    source = RandomDocuments(random)
    documents: dict[int, list[Statement]] = {}
    rules: dict[int, tuple[int, Rule]] = {}
    held: set[tuple[int, str]] = set()

    def wanted() -> dict[int, set[str]]:
        everything = [each for statements in documents.values() for each in statements]
        return {
            number: brute.matches(rule, everything, schema) for number, (_, rule) in rules.items()
        }

    for step in range(14):
        choice = random.random()
        if choice < 0.4 or step < 2:
            for _ in range(random.randint(1, 4)):
                number = len(rules) + step * 100
                count = random.choice([1, 1, 1, 2])
                some = tuple(random_conjunction(random, [*source.classes]) for _ in range(count))
                repository = random.randrange(REPOSITORIES)
                rules[number] = (repository, Rule("", some, schema))
                came = filter_.add(number, repository, some)
                new = {
                    (repository, uri)
                    for uri in filter_.statements.uris(r for _, r in came).values()
                }
                assert not new & held, "told as new twice"
                held |= new
        elif choice < 0.5 and rules:
            number = random.choice([*rules])
            repository, rule = rules.pop(number)
            gone = filter_.remove(number, repository, rule.alternatives)
            held -= {
                (repository, uri) for uri in filter_.statements.uris(r for _, r in gone).values()
            }
        else:
            some_documents = random.sample(range(6), random.randint(1, 3))
            batch = {
                number: [] if random.random() < 0.2 else source.document(number)
                for number in some_documents
            }
            documents.update(batch)
            effects = filter_.write({document_uri(number): each for number, each in batch.items()})
            names = filter_.statements.uris({each for part in effects for _, each in part})
            came = {(repository, names[each]) for repository, each in effects.came}
            left = {(repository, names[each]) for repository, each in effects.left}
            assert not came & held, "told as new twice"
            assert left <= held
            held = (held | came) - left
        expected = wanted()
        for number, uris in expected.items():
            found = set(filter_.statements.uris(filter_.matches(number)).values())
            assert found == uris, (seed, step, rules[number], found ^ uris)
        assert held == {
            (rules[number][0], uri) for number, uris in expected.items() for uri in uris
        }
    for number, (repository, rule) in rules.items():
        filter_.remove(number, repository, rule.alternatives)
    for table in ("atomic_rules", "joins", "inputs", "deps", "ends", "matches", "asked", "f_class"):
        assert tables.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


@pytest.mark.parametrize("seed", range(40))
def test_matches_are_those_of_nested_loops(seed: int) -> None:
    run(seed)
