"""Random texts of SPARQL queries, by its grammar, for tests of the graph language."""

from __future__ import annotations

from random import Random

PROLOGUE = (
    "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
)
_VARIABLES = ("?x", "?y", "?z", "$w")
_LITERALS = (
    *('"Ann"', "'Bob'", '"""a "b" c"""', '"hat"@en', '"chat"@fr-BE', '"x"^^:t', "true", "false"),
    *("5", "-5", "+2.5", "1e3", "-.5E-2", "0", '"2026-01-01"^^xsd:date', '"a\\tb\\u0041"'),
)
_IRIS = (":a", ":b", "<http://example.org/c>", ":d.e", ":")
_ONE = ("str", "lang", "datatype", "strlen", "ucase", "lcase", "isIRI", "isURI", "isLITERAL")
_OTHER_ONE = ("isBlank", "isNumeric", "abs", "CEIL", "floor", "round", "year", "month", "seconds")
_RARE = ("md5", "sha256", "tz", "timezone", "encode_for_uri", "iri", "URI", "bnode")
_TWO = ("contains", "STRSTARTS", "strends", "langMatches", "sameTerm", "strbefore", "strdt")


class RandomQuery:
    """One text; ``depth`` bounds how deep it is."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._label = 0

    def text(self) -> str:
        return PROLOGUE + self._query()

    def _query(self) -> str:
        chance = self.random.random()
        group = self.group(2)
        if chance < 0.3:
            head = f"ASK {group}"
        elif chance < 0.8:
            head = f"SELECT {self.some('', 'DISTINCT', 'reduced')} {self._selection()}"
            head += f"{self.some('', ' WHERE', ' where')} {group}"
        elif chance < 0.9:
            head = f"CONSTRUCT {{ {self._plain_triples()} }} WHERE {group}"
        elif chance < 0.95:
            head = f"CONSTRUCT WHERE {{ {self._plain_triples()} }}"
        else:
            head = f"DESCRIBE {self.some('*', ':a ?x', '?y')} {group}"
        return f"{head} {self._modifiers(may_group=head.startswith('SELECT'))}"

    def _selection(self) -> str:
        return self.some(
            "*", "*", "?x", "?x ?y", "(count(*) AS ?n)", "?x (max(?y) as ?m)", "(?x + 1 AS ?k)"
        )

    def _modifiers(self, *, may_group: bool = True) -> str:
        parts = []
        if may_group and self.random.random() < 0.15:
            parts.append(
                self.some("GROUP BY ?x", "GROUP BY (str(?x) AS ?s) ?y", "group by lang(?x)")
            )
        if self.random.random() < 0.1:
            parts.append(self.some("ORDER BY ?x", "ORDER BY DESC(?x) str(?y)", "order by (?x)"))
        if self.random.random() < 0.1:
            parts.append(self.some("LIMIT 3", "OFFSET 2 LIMIT 1", "LIMIT 1 OFFSET 2"))
        if self.random.random() < 0.1:
            parts.append(self._values())
        return " ".join(parts)

    def some(self, *choices: str) -> str:
        return self.random.choice(choices)

    def group(self, depth: int) -> str:
        parts: list[str] = []
        is_open = False  # whether triples need a dot in front
        for _ in range(self.random.randrange(4)):
            chance = self.random.random()
            if chance < 0.55 or not depth:
                if is_open:
                    parts.append(".")
                parts.append(self._triples(depth))
                is_open = True
                continue
            if chance < 0.75:
                parts.append(f"FILTER {self._constraint(depth - 1)}")
            else:
                parts.append(self._nested(depth - 1))
                if self.random.random() < 0.3:
                    parts.append(".")
            is_open = False
        return "{ " + " ".join(parts) + " }"

    def _nested(self, depth: int) -> str:
        kind = self.random.randrange(9)
        if kind == 0:
            return f"OPTIONAL {self.group(depth)}"
        if kind in (1, 2):
            return " UNION ".join(self.group(depth) for _ in range(self.random.randrange(1, 4)))
        if kind == 3:
            return f"MINUS {self.group(depth)}"
        if kind == 4:
            return f"GRAPH {self.some('?g', ':g')} {self.group(depth)}"
        if kind == 5:
            self._label += 1
            return f"BIND({self.expression(1)} AS ?b{self._label})"
        if kind == 6:
            return self._values()
        if kind == 7:
            return f"{{ SELECT {self._selection()} {self.group(depth)} {self._modifiers()} }}"
        return self.group(depth)

    def _values(self) -> str:
        def value() -> str:
            return self.some(*_IRIS, *_LITERALS, "UNDEF")

        if self.random.random() < 0.5:
            return f"VALUES ?x {{ {value()} {value()} }}"
        return f"VALUES (?x ?y) {{ ({value()} {value()}) ({value()} {value()}) }}"

    def _plain_triples(self) -> str:
        lines = []
        for _ in range(self.random.randrange(3)):
            subject = self.some(*_VARIABLES, *_IRIS, "_:a", "[]")
            value = self.some(*_VARIABLES, *_IRIS, *_LITERALS, "_:a", "[ :p ?y ]", "(?x 2)")
            lines.append(f"{subject} {self.some(*_IRIS, 'a', '?x')} {value}")
        return " . ".join(lines)

    def _triples(self, depth: int) -> str:
        subject = self.some(*_VARIABLES, *_VARIABLES, *_IRIS, "[]", "[ :p 1 ; ]", "(1 ?x)", '"s"')
        lists = [self._list(depth) for _ in range(self.random.randrange(1, 3))]
        return f"{subject} {' ; '.join(lists)}{self.some('', '', ' ;')}"

    def _list(self, depth: int) -> str:
        values = [self._value(depth) for _ in range(self.random.randrange(1, 3))]
        verb = (
            self.some("a", *_IRIS, *_IRIS, "?p") if self.random.random() < 0.75 else self._path(2)
        )
        return f"{verb} {', '.join(values)}"

    def _value(self, depth: int) -> str:
        chance = self.random.random()
        if depth and chance < 0.1:
            return f"[ {self._list(depth - 1)} ]"
        if depth and chance < 0.2:
            return f"( {self._value(depth - 1)} {self._value(depth - 1)} )"
        return self.some(*_VARIABLES, *_VARIABLES, *_IRIS, *_LITERALS, "[]", "()")

    def _path(self, depth: int) -> str:
        if not depth:
            return self.some("a", *_IRIS, "a/rdfs:subClassOf*", "!:a", "!(:a|^:b)")
        inner = self._path(depth - 1)
        kind = self.random.randrange(7)
        if kind == 0:
            return f"^{inner}" if not inner.startswith("^") else inner
        if kind == 1:
            return f"({inner}){self.some('*', '+', '?')}"
        if kind == 2:
            return f"({inner}|{self._path(depth - 1)})"
        if kind in (3, 4):
            return f"{inner}/{self._path(depth - 1)}"
        return f"({inner})"

    def _constraint(self, depth: int) -> str:
        chance = self.random.random()
        if chance < 0.2:
            return f"{self.some('', 'NOT ')}EXISTS {self.group(max(0, depth))}"
        if chance < 0.4:
            return self._call(1)
        return f"({self.expression(2)})"

    def expression(self, depth: int) -> str:
        if not depth:
            return self.some(*_VARIABLES, *_VARIABLES, *_LITERALS, ":a", "?undefined")
        inner = self.expression(depth - 1)
        kind = self.random.randrange(11)
        if kind < 3:
            return f"{inner}{self.some('=', ' != ', ' < ', '<=', ' > ', '>=')} {self.expression(0)}"
        if kind == 3:
            return f"({inner}) {self.some('&&', '||')} ({self.expression(depth - 1)})"
        if kind == 4:
            return f"!({inner})"
        if kind == 5:
            choices = f"{self.expression(0)}, {self.expression(0)}"
            return f"({inner}) {self.some('IN', 'not in')} ({choices})"
        if kind == 6:
            return f"({inner}) {self.some('+', '-', '*', '/')} {self.expression(0)}"
        if kind == 7:
            return f"{self.some('-', '+')} ?x"
        return self._call(depth - 1)

    def _call(self, depth: int) -> str:
        kind = self.random.randrange(10)
        inner = self.expression(max(0, depth))
        if kind < 4:
            return f"{self.some(*_ONE, *_OTHER_ONE, *_RARE)}({inner})"
        if kind < 6:
            return f"{self.some(*_TWO)}({inner}, {self.expression(0)})"
        if kind == 6:
            flags = self.some("", ', "i"')
            return f'regex({inner}, "^a.c"{flags})'
        if kind == 7:
            return self.some(
                f"if({inner}, 1, ?x)", f"coalesce({inner}, 2)", "concat(?x, ?y)", "now()"
            )
        if kind == 8:
            return f"bound({self.some(*_VARIABLES)})"
        return f"xsd:{self.some('integer', 'decimal', 'double', 'string', 'dateTime')}({inner})"
