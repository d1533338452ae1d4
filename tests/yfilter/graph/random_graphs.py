"""Random graphs and patterns that fit them now and then, for tests of matching."""

from __future__ import annotations

from random import Random

PROLOGUE = (
    "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
)
NODES = ("<http://e/a>", "<http://e/b>", "<http://e/c>", "<urn:x:9>")
BLANKS = ("_:n", "_:m")
PROPERTIES = ("<http://e/p>", "<http://e/q>", "<http://e/9>", "rdf:type")
CLASSES = ("<http://e/C>", "<http://e/D>")
STRINGS = ('"Ann"', '"Bob"', '""', '"5"', '"a storm"', '"<&"')
TEXTS = ('"Ann"@en', '"a storm"@en-gb', '"chat"@fr')
# Each in the one form that its value has: pyoxigraph takes "05" and the xsd:byte 5 for 5.
NUMBERS = (
    *("5", "-5", "10", "9.50", "1e1", "0.1", "16777217", "123456789012345678"),
    *('"0.1"^^xsd:float', '"16777217"^^xsd:float'),
    *('"0.1"^^xsd:double', '"5.00000000000000000001"^^xsd:decimal', '"NaN"^^xsd:double'),
    *('"9.99999999999999999999"^^xsd:decimal', '"INF"^^xsd:double', '"x"^^xsd:integer'),
)
MOMENTS = (
    *('"2003-01-01T00:00:00Z"^^xsd:dateTime', '"2003-12-31T23:00:00-05:00"^^xsd:dateTime'),
    *('"2004-06-01T12:00:00"^^xsd:dateTime', '"2004-06-01"^^xsd:date'),
)
OTHERS = ("true", '"z"^^<http://e/t>', '"P1D"^^xsd:duration')
LITERALS = (*STRINGS, *TEXTS, *NUMBERS, *MOMENTS, *OTHERS)
VARIABLES = ("?x", "?y", "?z")
_COMPARED = ("=", "=", "!=", "<", "<=", ">", ">=")


class RandomCase:
    """Graphs in TriG, and the text of queries."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def some(self, *choices: str) -> str:
        return self.random.choice(choices)

    def literal(self) -> str:
        kinds = (STRINGS, TEXTS, NUMBERS, NUMBERS, MOMENTS, OTHERS)
        return self.random.choice(self.random.choice(kinds))

    # -- graphs

    def graph(self) -> str:
        lines = [self._triple() for _ in range(self.random.randrange(16))]
        if self.random.random() < 0.3:
            named = " ".join(self._triple() for _ in range(self.random.randrange(1, 4)))
            lines.append(f"{self.some('<http://e/g>', '<http://e/h>', '_:g')} {{ {named} }}")
        return PROLOGUE_OF_DATA + "\n".join(lines)

    def _triple(self) -> str:
        verb = self.some(*PROPERTIES)
        value = self.some(*CLASSES) if verb == "rdf:type" else self._object()
        return f"{self.some(*NODES, *BLANKS)} {verb} {value} ."

    def _object(self) -> str:
        return self.some(*NODES, *BLANKS) if self.random.random() < 0.35 else self.literal()

    # -- queries

    def query(self) -> str:
        return f"{PROLOGUE}ASK {self.group(2)}"

    def group(self, depth: int) -> str:
        parts = [f"{self.pattern()} ." for _ in range(self.random.randrange(1, 4))]
        for _ in range(self.random.randrange(3)):
            parts.append(f"FILTER({self.condition(2)})")
        if depth and self.random.random() < 0.4:
            parts.insert(self.random.randrange(len(parts) + 1), self._nested(depth - 1))
        return "{ " + " ".join(parts) + " }"

    def _nested(self, depth: int) -> str:
        kind = self.random.randrange(9)
        if kind < 3:
            return f"{self.group(depth)} UNION {self.group(depth)}"
        if kind == 3:
            return f"OPTIONAL {self.group(depth)}"
        if kind == 4:
            return f"GRAPH {self.some('?g', '<http://e/g>', '?x')} {self.group(depth)}"
        if kind == 5:
            return f"MINUS {self.group(depth)}"
        if kind == 6:
            term = self.some(*NODES, self.literal())
            return f"VALUES {self.some(*VARIABLES)} {{ {term} {self.literal()} }}"
        if kind == 7:
            return f"FILTER {self.some('', 'NOT ')}EXISTS {self.group(depth)}"
        return self.group(depth)

    def pattern(self) -> str:
        verb = self.some(*PROPERTIES, *PROPERTIES, "?p")
        is_type = verb == "rdf:type"
        value = self.some(*CLASSES, "?t") if is_type else self._object_of_pattern()
        return f"{self.some(*VARIABLES, *VARIABLES, *NODES, '[]')} {verb} {value}"

    def _object_of_pattern(self) -> str:
        if self.random.random() < 0.7:
            return self.some(*VARIABLES)
        return self.some(*NODES, self.literal(), "[]")

    def condition(self, depth: int) -> str:
        if depth and self.random.random() < 0.3:
            parts = self.condition(depth - 1), self.condition(depth - 1)
            return f"({parts[0]}) {self.some('&&', '||')} ({parts[1]})"
        if depth and self.random.random() < 0.15:
            return f"!({self.condition(depth - 1)})"
        variable = self.some(*VARIABLES)
        text = self.some(variable, f"str({variable})", f"lcase({variable})")
        if self.random.random() < 0.3:
            text = self.some(f"substr({text}, 2)", f'strafter({text}, "n")', f'concat("", {text})')
        kind = self.random.randrange(12)
        if kind < 4:
            left, right = variable, self.some(self.literal(), self.literal(), *NODES, "?y")
            if self.random.random() < 0.2:
                left, right = right, left
            return f"{left} {self.some(*_COMPARED)} {right}"
        if kind == 4:
            choices = f"{self.literal()}, {self.some(*NODES, self.literal())}"
            return f"{variable} {self.some('', 'NOT ')}IN ({choices})"
        if kind == 5:
            function = self.some("contains", "strstarts", "strends")
            return f"{function}({text}, {self.some(*STRINGS, *TEXTS, chr(34) + 'a' + chr(34))})"
        if kind == 6:
            return f"regex({text}, {self.some(*REGULAR)})"
        if kind == 7:
            return f"lang({variable}) {self.some(*_COMPARED)} {self.some(*TAGS)}"
        if kind == 8:
            wanted = self.some('"en"', '"*"', '"EN-GB"')
            return f"langMatches(lang({variable}), {wanted})"
        if kind == 9:
            datatype = self.some("xsd:string", "xsd:integer", "rdf:langString", "<http://e/t>")
            return f"datatype({variable}) {self.some('=', '!=')} {datatype}"
        if kind == 10:
            test = self.some("isIRI", "isBlank", "isLiteral", "isNumeric", "bound")
            return f"{test}({variable})"
        return self.some(
            f"year({variable}) {self.some(*_COMPARED)} 2004",
            f"sameTerm({variable}, {self.literal()})",
            f"{text} = {self.some(*STRINGS)}",
            f"strlen({text}) {self.some(*_COMPARED)} {self.some('3', '4')}",
            f"str({variable}) {self.some(*_COMPARED)} {self.some(*STRINGS)}",
            "1 < 2",
        )


PROLOGUE_OF_DATA = PROLOGUE.replace("PREFIX", "@prefix").replace("> @", "> .\n@").strip() + " .\n"
REGULAR = ('"^a"', '"n"', '"^$"', '"ANN", "i"', '"[0-9]+"', '"x*"')
TAGS = ('""', '"en"', '"en-gb"', '"EN"')
