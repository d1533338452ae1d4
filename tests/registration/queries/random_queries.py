"""Texts of queries by chance over the example market, which Spark accepts."""

from __future__ import annotations

import random

_NUMBERS = {"R": ("id", "price", "k"), "S": ("id", "qty", "k"), "U": ("id", "x", "big")}
_WORDS = {"R": "name", "S": "name"}
_PATHS = {"R": "A.R", "S": "A.S", "U": "B.U"}


class _Query:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.aliases: dict[str, str] = {}

    def source(self) -> str:
        kind = self.rng.choice("RRSSU")
        alias = f"{kind.lower()}{len(self.aliases)}"
        self.aliases[alias] = kind
        if self.rng.random() < 0.2:
            return f"(SELECT * FROM {_PATHS[kind]} WHERE id > {self.rng.randint(0, 2)}) {alias}"
        return f"{_PATHS[kind]} {alias}"

    def number(self, among: list[str] | None = None) -> str:
        alias = self.rng.choice(among or list(self.aliases))
        column = f"{alias}.{self.rng.choice(_NUMBERS[self.aliases[alias]])}"
        return self.rng.choice([column] * 6 + [f"({column} + 1)", f"coalesce({column}, 0)"])

    def condition(self, among: list[str] | None = None, depth: int = 0) -> str:
        rng = self.rng
        one = self.number(among)
        roll = rng.random()
        if depth < 2 and roll < 0.25:
            two = self.condition(among, depth + 1), self.condition(among, depth + 1)
            return f"({two[0]} {rng.choice(['AND', 'OR'])} {two[1]})"
        if roll < 0.35:
            return f"{one} IS {rng.choice(['', 'NOT '])}NULL"
        if roll < 0.45:
            return f"{one} IN ({rng.randint(0, 3)}, {rng.randint(2, 6)})"
        if roll < 0.6:
            return f"{one} {rng.choice(['<', '=', '>='])} {self.number(among)}"
        return f"{one} {rng.choice(['<', '>', '<>'])} {rng.randint(0, 5)}"

    def subquery(self) -> str:
        """A condition with one."""
        rng = self.rng
        kind = rng.choice("RSU")
        path, inner = _PATHS[kind], rng.choice(_NUMBERS[kind])
        outside = self.number()
        return rng.choice(
            [
                f"EXISTS (SELECT 1 FROM {path} q WHERE q.{inner} = {outside} AND q.id > 0)",
                f"NOT EXISTS (SELECT q.id FROM {path} q WHERE q.id = {outside})",
                f"{outside} IN (SELECT {inner} FROM {path} WHERE id < 4)",
                f"{outside} > (SELECT avg({inner}) FROM {path})",
                f"{outside} <= (SELECT max(q.{inner}) FROM {path} q WHERE q.id = {self.number()})",
            ]
        )


def random_query(rng: random.Random) -> str:
    query = _Query(rng)
    text = query.source()
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        before = list(query.aliases)
        kind = rng.choice(["JOIN"] * 4 + ["LEFT JOIN"] * 3 + ["RIGHT JOIN", "FULL JOIN"]
                          + ["LEFT SEMI JOIN", "LEFT ANTI JOIN"])  # fmt: skip
        source = query.source()
        new = list(query.aliases)[-1]
        on = [f"{rng.choice(before)}.id = {new}.id"]
        on += [query.condition() for _ in range(rng.choice([0, 0, 1, 2]))]
        text += f" {kind} {source} ON {' AND '.join(on)}"
        if "SEMI" in kind or "ANTI" in kind:
            del query.aliases[new]
    where = [query.condition() for _ in range(rng.choice([0, 1, 2]))]
    if rng.random() < 0.4:
        where.append(query.subquery())
    tail = f" WHERE {' AND '.join(where)}" if where else ""
    if rng.random() < 0.4:
        keys = ", ".join(dict.fromkeys(query.number() for _ in range(rng.randint(1, 2))))
        value = query.number()
        items = f"{keys}, count(*) AS n, sum({value}) AS total, max({query.number()}) AS most"
        having = f" HAVING sum({value}) > 2" if rng.random() < 0.5 else ""
        return f"SELECT {items} FROM {text}{tail} GROUP BY {keys}{having}"
    items = ", ".join(f"{query.number()} AS c{n}" for n in range(rng.randint(1, 4)))
    distinct = rng.choice(["", "", "DISTINCT "])
    whole = f"SELECT {distinct}{items} FROM {text}{tail}"
    if rng.random() < 0.15:
        return f"{whole} UNION ALL {whole}"
    return whole
