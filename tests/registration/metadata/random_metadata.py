"""Schemas, documents and rules by seeds, and what a rule means, said without its normal form.

A resource is of one class for ever and has a home document; others say of it only what may be said
several times.  So all documents of a seed are valid together, whichever are registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from random import Random
from typing import NamedTuple, TypeAlias

from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF, RDF_TYPE, RDFS, XSD
from registration.metadata.documents import Statement
from registration.metadata.rules import Constant
from tests.registration.metadata.brute import NUMBERS, Graph, both, meets, seen_as

BASE = "http://schema.example/"
LITERAL = RDFS + "Literal"
_CLASSES = {"A": "", "B": "", "C": "", "A1": "A", "A2": "A1", "B1": "B"}  # each with the one above
_DOCUMENTS, _RESOURCES = 6, 3  # resources of a document
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "contains": "lacks"}


class Field(NamedTuple):
    """A property; ``above``: the one it is below."""

    name: str
    domain: str
    range: str  # a class's name or a datatype
    is_single: bool = True
    is_strong: bool = False
    above: str = ""


FIELDS = {
    field.name: field
    for field in (
        Field("number", "A", XSD + "integer"),
        Field("price", "B", XSD + "decimal"),
        Field("size", "C", XSD + "double"),
        Field("numbers", "A", XSD + "int", is_single=False),
        Field("text", "A", XSD + "string"),
        Field("texts", "B", RDF + "langString", is_single=False),
        Field("label", "C", XSD + "string"),
        Field("shortLabel", "C", XSD + "string", above="label"),
        Field("day", "B", XSD + "date"),
        Field("times", "C", XSD + "dateTime", is_single=False),
        Field("any", "A", LITERAL, is_single=False),
        Field("b", "A", "B", is_strong=True),
        Field("bs", "A", "B", is_single=False),
        Field("bestB", "A", "B", is_single=False, above="bs"),
        Field("c", "B", "C"),
        Field("cs", "A1", "C", is_single=False, is_strong=True),
        Field("a", "C", "A", is_strong=True),
        Field("next", "A", "A"),
        Field("peers", "B", "B", is_single=False, is_strong=True),
    )
}


def schema_bytes() -> bytes:
    """The schema of all seeds, in Turtle."""
    owl, m = "http://www.w3.org/2002/07/owl#", "urn:onyx:metadata:"
    lines = [f"@prefix : <{BASE}> ."]
    for name, above in _CLASSES.items():
        lines.append(f":{name} a <{RDFS}Class> .")
        if above:
            lines.append(f":{name} <{RDFS}subClassOf> :{above} .")
    for field in FIELDS.values():
        range_ = f":{field.range}" if field.range in _CLASSES else f"<{field.range}>"
        types = [f"<{RDF}Property>"]
        types += [f"<{owl}FunctionalProperty>"] * field.is_single
        types += [f"<{m}StrongReference>"] * field.is_strong
        lines.append(f":{field.name} a {', '.join(types)} ;")
        lines.append(f"  <{RDFS}domain> :{field.domain} ; <{RDFS}range> {range_} .")
        if field.above:
            lines.append(f":{field.name} <{RDFS}subPropertyOf> :{field.above} .")
    return "\n".join(lines).encode()


def random_schema(*, is_open: bool = False) -> RdfSchema:
    return read_schema(schema_bytes(), GraphSyntax.TURTLE, is_open)


# -- documents


def document_uri(number: int) -> str:
    return f"http://documents.example/{number}.rdf"


class RandomDocuments:
    """Of one seed: all versions of all its documents."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.classes = {  # of each resource, some of which no document is about
            f"{document_uri(number)}#{local}": random.choice([*_CLASSES])
            for number in range(_DOCUMENTS)
            for local in [*(f"r{each}" for each in range(_RESOURCES)), "_:0"]
        }

    def document(self, number: int) -> list[Statement]:
        """A new version of one, each statement once; it may be empty."""
        random, uri = self._random, document_uri(number)
        found: dict[Statement, None] = {}
        for subject, class_ in self.classes.items():
            is_home = subject.startswith(f"{uri}#")
            is_blank = "#_:" in subject
            if random.random() > (0.8 if is_home else 0.0 if is_blank else 0.1):
                continue
            if is_home:
                found[Statement(subject, RDF_TYPE, BASE + class_, "", "")] = None
            taken: set[str] = set()  # of what has one value
            for field in FIELDS.values():
                if not self.has(class_, field.domain) or random.random() < 0.35:
                    continue
                if field.is_single and (not is_home or (field.above or field.name) in taken):
                    continue
                taken.add(field.above or field.name)
                for _ in range(1 if field.is_single else random.randint(1, 3)):
                    value = self._value(field, uri)
                    if value is not None:
                        found[value._replace(subject=subject)] = None
        return list(found)

    @staticmethod
    def has(class_: str, domain: str) -> bool:
        """Whether a class is the one of a property's domain, or below it."""
        while class_ and class_ != domain:
            class_ = _CLASSES[class_]
        return bool(class_)

    def _value(self, field: Field, uri: str) -> Statement | None:
        name = BASE + field.name
        if field.range in _CLASSES:
            fit = [
                resource
                for resource, class_ in self.classes.items()
                if self.has(class_, field.range)
                and ("#_:" not in resource or resource.startswith(f"{uri}#"))
            ]
            return Statement("", name, self._random.choice(fit), "", "") if fit else None
        return Statement("", name, *random_literal(self._random, field.range))


def random_literal(random: Random, datatype: str) -> tuple[str, str, str]:
    """Lexical form, datatype and language."""
    if datatype == LITERAL:
        others = ("integer", "decimal", "float", "string", "date", "dateTime", "boolean")
        datatype = random.choice([RDF + "langString", *(XSD + each for each in others)])
        lexical, datatype, language = random_literal(random, datatype)
        # Also asked for as texts, and the stores of pyoxigraph forget other forms of a value.
        if datatype in NUMBERS:
            lexical = repr(float(lexical)).removesuffix(".0")
        return lexical.replace(".50", ".5"), datatype, language
    number = random.randint(0, 5)
    match datatype.rpartition("#")[2]:
        case "integer" | "int":
            return random.choice(["{}", "0{}", "+{}"]).format(number), datatype, ""
        case "decimal":
            return f"{number}{random.choice(['', '.0', '.50', '.1'])}", datatype, ""
        case "double" | "float":
            return f"{number}{random.choice(['', '.1', '.5e0', 'E0'])}", datatype, ""
        case "date":
            return random_day(random) + random.choice(["", "", "Z", "+02:00"]), datatype, ""
        case "dateTime":
            zone = random.choice(["", "Z", "Z", "-01:00"])
            return f"{random_day(random)}T{random_clock(random)}{zone}", datatype, ""
        case "boolean":
            return random.choice(["true", "false"]), datatype, ""
        case "langString":
            return random_text(random), datatype, random.choice(["en", "de", "en-gb"])
    return random_text(random), datatype, ""


def random_text(random: Random) -> str:
    return "".join(random.choice("ab'\\\"ü") for _ in range(random.choice([0, 1, 1, 2, 3])))


def random_day(random: Random) -> str:
    return f"2024-0{random.randint(2, 3)}-0{random.randint(1, 2)}"


def random_clock(random: Random) -> str:
    return random.choice(["00:00:00", "01:00:00", "23:00:00", "12:30:00.5", "12:30:00.50"])


def n_triples(statements: Iterable[Statement], *, has_blanks: bool = False) -> bytes:
    """``has_blanks``: with nodes that have no name as the document had them."""
    lines = (
        f"{_node(each.subject, has_blanks)} <{each.property}> {_object(each, has_blanks)} .\n"
        for each in statements
    )
    return "".join(lines).encode()


def _node(name: str, has_blanks: bool) -> str:
    _, blank, number = name.partition("#_:")
    return f"_:b{number}" if blank and has_blanks else f"<{name}>"


def _object(each: Statement, has_blanks: bool) -> str:
    if not each.datatype:
        return _node(each.value, has_blanks)
    quoted = each.value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"@{each.language}' if each.language else f'"{quoted}"^^<{each.datatype}>'


# -- rules


class Path(NamedTuple):
    variable: str
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        steps = (f".{field.name}{'' if field.is_single else '?'}" for field in self.fields)
        return self.variable + "".join(steps)


class Comparison(NamedTuple):
    left: Path
    operator: str
    right: Path | Constant
    kind: str = ""  # of two paths


class Combined(NamedTuple):
    word: str  # "and" | "or" | "not"
    parts: tuple[Expression, ...]


Expression: TypeAlias = Comparison | Combined


class RandomRule(NamedTuple):
    """``search``: of each variable its class, or the name of another rule."""

    text: str
    search: dict[str, str]
    register: str
    where: Expression | None


class RandomRules:
    """``others``: rules that may be named, with the classes of what they register."""

    def __init__(self, random: Random, resources: Iterable[str]) -> None:
        self._random = random
        self._resources = list(resources)
        self.others: dict[str, RandomRule] = {}
        self._registers: dict[str, str] = {}

    def rule(self, name: str = "") -> RandomRule:
        """With a name others that are made later may name it."""
        random = self._random
        search = {"x": self._extension(random.choice([*_CLASSES]))}
        where: list[Expression] = []
        while len(search) < 3 and random.random() < 0.35:
            self._connect(search, where)
        for _ in range(random.choice([0, 1, 1, 2])):
            where.append(self._expression(search, random.choice([1, 1, 2, 3])))
        random.shuffle(where)
        register = random.choice([*search])
        whole = Combined("and", tuple(where)) if len(where) > 1 else where[0] if where else None
        searched = ", ".join(f"{class_} {variable}" for variable, class_ in search.items())
        condition = f" where {self._text(whole)}" if whole else ""
        rule = RandomRule(
            f"search {searched} register {register}{condition}", search, register, whole
        )
        if name:
            self.others[name] = rule
            self._registers[name] = self._class_of(search[register])
        return rule

    def forget(self, name: str) -> None:
        """Rules that are made later do not name this one."""
        del self.others[name], self._registers[name]

    def _class_of(self, extension: str) -> str:
        return self._registers.get(extension, extension)

    def _extension(self, class_: str) -> str:
        fit = [name for name, each in self._registers.items() if each == class_]
        return self._random.choice(fit) if fit and self._random.random() < 0.3 else class_

    def _connect(self, search: dict[str, str], where: list[Expression]) -> None:
        """One variable more, with the comparison that connects it."""
        random = self._random
        variable, old = "xyz"[len(search)], random.choice([*search])
        path = self._path(old, self._class_of(search[old]), lambda field: True)
        if path is None:
            return
        last = path.fields[-1]
        if last.range in _CLASSES:
            fit = [each for each in _CLASSES if RandomDocuments.has(each, last.range)]
            search[variable] = self._extension(random.choice(fit))
            operator = random.choice(["=", "=", "=", "=", "!="])
            where.append(Comparison(path, operator, Path(variable, ()), "iri"))
            return
        class_ = random.choice([*_CLASSES])
        other = self._path(variable, class_, lambda field: bool(joined_kinds(last, field)))
        if other is not None:
            search[variable] = self._extension(class_)
            where.append(self._joined(path, other))

    def _joined(self, left: Path, right: Path) -> Comparison:
        kinds = joined_kinds(left.fields[-1], right.fields[-1])
        operators = ["=", "=", "!="]
        if kinds & {"number", "moment"}:
            operators += ["<", "<=", ">", ">="]
        if "text" in kinds:
            operators.append("contains")
        operator = self._random.choice(operators)
        if operator[0] in "<>":
            kinds &= {"number", "moment"}
        if operator == "contains":
            kinds = {"text"}
        return Comparison(left, operator, right, min(kinds) if len(kinds) == 1 else "")

    def _path(self, variable: str, class_: str, fits: object) -> Path | None:
        assert callable(fits)
        random, fields = self._random, []
        while True:
            here = [field for field in FIELDS.values() if RandomDocuments.has(class_, field.domain)]
            ends = [field for field in here if fits(field)]
            on = [field for field in here if field.range in _CLASSES]
            if ends and (not on or random.random() < 0.6):
                return Path(variable, (*fields, random.choice(ends)))
            if not on or len(fields) == 3:
                return None
            fields.append(random.choice(on))
            class_ = fields[-1].range

    def _expression(self, search: Mapping[str, str], leaves: int) -> Expression:
        random = self._random
        if random.random() < 0.2:
            return Combined("not", (self._expression(search, leaves),))
        if leaves > 1:
            left = random.randint(1, leaves - 1)
            parts = self._expression(search, left), self._expression(search, leaves - left)
            return Combined(random.choice(["and", "or"]), parts)
        variable = random.choice([*search])
        path = self._path(variable, self._class_of(search[variable]), lambda field: True)
        if path is None or random.random() < 0.1:
            path = Path(variable, ())
        others = [
            other
            for name, extension in search.items()
            if path.fields
            and (other := self._path(name, self._class_of(extension), lambda field: True))
            and joined_kinds(path.fields[-1], other.fields[-1])
        ]
        if others and random.random() < 0.3:
            return self._joined(path, random.choice(others))
        return self._with_constant(path)

    def _with_constant(self, path: Path) -> Comparison:
        random = self._random
        kinds = kinds_of(path.fields[-1]) if path.fields else {"iri"}
        kind = random.choice(sorted(kinds))
        operators = ["=", "!="]
        if kind == "iri":
            iri = random.choice(self._resources)
            return Comparison(path, random.choice(operators), Constant(kind, iri, f"<{iri}>"))
        if kind == "text":
            text = random_text(random)
            quoted = "'" + text.replace("'", "''") + "'"
            operator = random.choice([*operators, "contains", "contains"])
            return Comparison(path, operator, Constant(kind, text, quoted))
        operator = random.choice([*operators, "<", "<=", ">", ">="])
        if kind == "number":
            number = random.choice(["0", "1", "2", "3", "-1", "2.5", "0.1", "3.1", "1e0"])
            return Comparison(path, operator, Constant(kind, float(number), number))
        lexical = random_literal(random, XSD + random.choice(["date", "dateTime"]))[0]
        return Comparison(path, operator, moment(lexical))

    def _text(self, where: Expression) -> str:
        """In all the ways to write it."""
        random = self._random
        if isinstance(where, Combined):
            if where.word == "not":
                return f"not {self._enclosed(where.parts[0])}"
            enclosed = (
                self._text(part)
                if isinstance(part, Combined)
                and (part.word == "not" or (where.word, part.word) == ("or", "and"))
                else self._enclosed(part)
                for part in where.parts
            )
            return f" {where.word} ".join(enclosed)
        left, operator, right, _ = where
        shown = right.text if isinstance(right, Constant) else str(right)
        turned = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
        if operator in turned and random.random() < 0.3:
            return f"{shown} {turned[operator]} {left}"
        return f"{left} {operator} {shown}"

    def _enclosed(self, where: Expression) -> str:
        text = self._text(where)
        is_whole = isinstance(where, Comparison) and self._random.random() < 0.8
        return text if is_whole else f"({text})"


def moment(lexical: str) -> Constant:
    datatype = XSD + ("dateTime" if "T" in lexical else "date")
    seconds = seen_as(Statement("", "", lexical, datatype, ""), "moment")
    assert seconds is not None
    return Constant("moment", seconds, lexical)


def kinds_of(field: Field) -> set[str]:
    """As what its values may be compared."""
    if field.range in _CLASSES:
        return {"iri"}
    if field.range == LITERAL:
        return {"text", "number", "moment"}
    local = field.range.rpartition("#")[2]
    if local in ("date", "dateTime"):
        return {"moment"}
    return {"text"} if local in ("string", "langString") else {"number"}


def joined_kinds(left: Field, right: Field) -> set[str]:
    """As what values of both may be compared; resources if some may be of both classes."""
    kinds = kinds_of(left) & kinds_of(right)
    has = RandomDocuments.has
    if kinds == {"iri"} and not has(left.range, right.range) and not has(right.range, left.range):
        return set()
    return kinds


# -- what a rule means


def meaning(rule: RandomRule, others: Mapping[str, RandomRule], graph: Graph) -> set[str]:
    """What it matches, by its tree: for each choice of resources, each comparison by itself."""
    extensions = [
        meaning(others[each], others, graph) if each in others else graph.of_class(BASE + each)
        for each in rule.search.values()
    ]
    found = set()
    for resources in product(*extensions):
        at = dict(zip(rule.search, resources, strict=True))
        if rule.where is None or _is_true(rule.where, graph, at, is_negated=False):
            found.add(at[rule.register])
    return found


def _is_true(where: Expression, graph: Graph, at: Mapping[str, str], *, is_negated: bool) -> bool:
    if isinstance(where, Combined):
        is_negated ^= where.word == "not"
        parts = (_is_true(part, graph, at, is_negated=is_negated) for part in where.parts)
        return any(parts) if (where.word == "or") != is_negated else all(parts)
    left, operator, right, kind = where
    if is_negated:
        operator = _NEGATED[operator]
    lefts = _values(left, graph, at)
    if isinstance(right, Constant):
        return any(meets(value, operator, right) for value in lefts)
    rights = _values(right, graph, at)
    return any(both(x, operator, y, kind) for x in lefts for y in rights)


def _values(path: Path, graph: Graph, at: Mapping[str, str]) -> list[Statement]:
    """What stands at the end of a path."""
    here = list(graph.values_of(at[path.variable], ""))
    class_ = ""
    for field in path.fields:
        here = [
            value
            for each in here
            if not class_ or BASE + class_ in graph.classes.get(each.value, ())
            for value in graph.values_of(each.value, BASE + field.name)
        ]
        class_ = field.range
    return here
