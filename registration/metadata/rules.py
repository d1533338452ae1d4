"""Rules over metadata: text -> normalised alternatives, which have no paths, ``or`` and ``not``.

::

    prefix p: <http://example.org/>
    search CycleProvider c, Data d register c
    where  c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64
           and not (d.storedAt? != c or d.<http://example.org/changed> <= 2024-02-29)

    rule       ::= ( 'prefix' name ':' '<' iri '>' )*
                   'search' extension variable ( ',' extension variable )*
                   'register' variable ( 'where' any )?
    extension  ::= a class, or the name of another rule
    any        ::= all ( 'or' all )*
    all        ::= part ( 'and' part )*
    part       ::= 'not' part | '(' any ')' | operand operator operand
    operator   ::= '=' | '!=' | '<' | '<=' | '>' | '>=' | 'contains'
    operand    ::= text | number | date | dateTime | '<' iri '>' | variable ( '.' property '?'? )*

A comparison holds if some values at the ends of its paths compare so: where a value is missing it
is false, for ``!=`` too.  ``not`` goes inward, to the operators.  Each ``?`` is some value by
itself; a property with several values needs one.  A text is compared with the lexical form of any
literal, a number with numbers, a date or a time with dates and times (without a zone in UTC), an
IRI with resources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from itertools import product
from math import isinf
from typing import Generic, NamedTuple, NoReturn, TypeAlias, TypeVar

from formats.characters import NAME_START
from formats.graph.iris import has_scheme
from formats.graph.literal_forms import (
    DATE,
    DATE_TIME,
    DIGITS_TOLD,
    NO_VALUE,
    derived_value,
    is_seconds,
    value_kind,
)
from formats.graph.rdf_schema import LITERAL, Property, RdfSchema, UnknownName, local_name
from formats.graph.vocabulary import RDF_TYPE, RDFS, XSD
from yfilter.errors import ProfileRefused
from yfilter.language.profile_limits import ProfileLimits, checked_text
from yfilter.language.tokens import Token, TokenKind, TokenLexer, TokenParser

V = TypeVar("V")  # what names a resource: a variable, or its place among others
RESOURCE = RDFS + "Resource"
"""The class of all resources that a statement is about."""
ALTERNATIVES_MAX = 32
VARIABLES_MAX = 16  # of a conjunction
PATH_MAX = 16  # properties


class Constant(NamedTuple):
    """``text``: as a rule writes it."""

    kind: str  # "text" | "number" | "moment" | "iri"
    value: str | float  # text; double; seconds since 1970; IRI
    text: str


class Condition(NamedTuple):
    """Some value of ``property`` compares so with a constant; "": the resource itself does.

    ``operator``: ``= != < <= > >= contains lacks``, of a resource itself ``=`` and ``!=``.  A text
    is compared with the lexical form of any literal, a number and a moment with literals that have
    one, an IRI with resources.
    """

    variable: str
    property: str
    operator: str
    constant: Constant


class Join(NamedTuple, Generic[V]):
    """Some value of one property compares so with some value of another; "": the resource itself.

    ``kind``: how values are compared, as that of a Constant; "" where no range tells: by the kind
    of both, a number, a moment, an IRI, or else a text; never if they are of two kinds.
    """

    left: V
    left_property: str
    operator: str
    right: V
    right_property: str
    kind: str = "iri"


class Conjunction(NamedTuple):
    """``classes``: of each variable, in order of appearance, RESOURCE where nothing is known."""

    classes: dict[str, str]
    register: str
    conditions: tuple[Condition, ...]
    joins: tuple[Join[str], ...]


class Rule(NamedTuple):
    """``names``: the rules it is made of, at all depths."""

    text: str
    alternatives: tuple[Conjunction, ...]
    schema: RdfSchema
    names: frozenset[str] = frozenset()

    @property
    def sparql(self) -> str:
        """A query that says the same over all statements."""
        return sparql_text(self.alternatives, self.schema)


class Query(NamedTuple):
    """A rule's conditions, and what is wanted of what they hold for: ``columns`` of variables, each
    with the properties to go along, () for the resource itself."""

    rule: Rule
    columns: tuple[tuple[str, tuple[str, ...]], ...]


def parse_rule(text: str, schema: RdfSchema, rules: Mapping[str, Rule], name: str = "") -> Rule:
    """The rule that a text says; ``rules``: those that it may name, ``name``: its own."""
    return _parsed(text, schema, rules, name, is_query=False).rule


def parse_query(text: str, schema: RdfSchema, rules: Mapping[str, Rule]) -> Query:
    """The same language, with ``select v, v.p`` where a rule has ``register v``."""
    return _parsed(text, schema, rules, "", is_query=True)


def _parsed(
    text: str, schema: RdfSchema, rules: Mapping[str, Rule], name: str, *, is_query: bool
) -> Query:
    checked = checked_text(text, LIMITS)
    shapes = _shapes_of(schema, is_query)
    key, constants = _taken_apart(checked)
    shape = shapes.get(key)
    if shape is not None and (found := shape.filled(constants.values(), rules, name)):
        return Query(Rule(text, found, schema), shape.of.columns)
    parser = _RuleParser(checked, schema, rules, name, is_query=is_query)
    query = Query(parser.rule(text), tuple(parser.columns))
    is_told = constants == parser.constants and len({*constants.values()}) == len(constants)
    if shape is None and is_told and not query.rule.names and len(key) <= _SHAPE_LENGTH_MAX:
        if len(shapes) >= _SHAPES_MAX:
            del shapes[next(iter(shapes))]
        shapes[key] = _Shape(tuple(parser.searched), tuple(constants.values()), query)
    return query


# -- text -> comparisons

LIMITS = ProfileLimits(length_max=32_768)
WORDS = ("prefix", "search", "register", "where", "and", "or", "not", "contains")
_NAME = f"[{NAME_START}][{NAME_START}0-9\u00b7\\-]*"
_DAY = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
_CONSTANT = rf"""
        ('[^']*(?:''[^']*)*')
      | ({_DAY}(?:T[0-9:.]+)?(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?(?![{NAME_START}0-9])
         |[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![{NAME_START}0-9]))
      | <([^\x00-\x20<>"{{}}|^`\\:]+:[^\x00-\x20<>"{{}}|^`\\]*)>
    """
_TOKEN = re.compile(
    rf"""[ \t\n]*
      (?:({_NAME}(?::{_NAME})?) | {_CONSTANT} | (!=|<=|>=|==|<>|&&|\|\||[.,?()=<>:!]) | (\Z))
    """,
    re.VERBOSE,
)
_COMPARED = re.compile(rf"(?:[=<>]|contains)[ \t\n]*(?:{_CONSTANT})", re.VERBOSE)
_KINDS = [TokenKind[n] for n in ("END", "NAME", "STRING", "NUMBER", "IRI", "SYMBOL", "END")]
_IRI_GROUP = _KINDS.index(TokenKind.IRI)
_new = tuple.__new__  # PERF: half the time of a NamedTuple's own
_NAMES = (TokenKind.NAME, TokenKind.IRI)
_SHAPES_MAX, _SHAPE_LENGTH_MAX = 1_024, 2_048
_MEANT = {"==": "'='", "<>": "'!='", "&&": "'and'", "||": "'or'", "!": "'not', or '!='"}
_MEANT |= dict.fromkeys(("like", "matches", "in"), "'contains'")
_MEANT |= {"select": "'search'", "from": "'search'", "return": "'register'"}
VARIABLE = re.compile("[A-Za-z][A-Za-z0-9_]*")
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "contains")
NEGATED = {"=": "!=", "<": ">=", ">": "<=", "contains": "lacks"}
NEGATED |= {negated: operator for operator, negated in NEGATED.items()}
TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ORDERED = frozenset(("number", "moment"))
_IS_DAY = re.compile(_DAY)
RESOURCES = frozenset(("iri",))
LITERALS = frozenset(("text", "number", "moment"))
_ALL = LITERALS | RESOURCES
TEXTS = frozenset(("text",))
FIT = {"=": _ALL, "!=": _ALL, "contains": TEXTS, "lacks": TEXTS}  # others: ORDERED
_SHOWN = {
    "text": "a text ('uni-passau.de')",
    "number": "a number (64)",
    "moment": "a date or time (2024-02-29, 2024-02-29T12:00:00Z)",
    "iri": "a resource (a variable, <http://example.org/doc.rdf#host>)",
}


class _Path(NamedTuple):
    """``kinds`` and ``class_name`` of what is at its end."""

    variable: str
    steps: tuple[Property, ...]
    kinds: frozenset[str]
    class_name: str


class _Comparison(NamedTuple):
    left: _Path
    operator: str
    right: _Path | Constant
    kind: str  # as that of a Join
    offset: int


_Alternatives: TypeAlias = list[tuple[_Comparison, ...]]


class _Lexer(TokenLexer):
    __slots__ = ()

    def _scan(self, offset: int) -> Token:
        match = _TOKEN.match(self.text, offset)
        if match is None:
            self._refuse(offset)
        group = match.lastindex or 0
        start = match.start(group) - (group == _IRI_GROUP)
        token = _new(Token, (_KINDS[group], match[group], start, match.end()))
        self._scanned[offset] = token
        return token

    def _refuse(self, offset: int) -> NoReturn:
        while self.text[offset] in " \t\n":
            offset += 1
        if self.text[offset].isdigit():
            what = "a number or a date runs into a name"
            raise self.refusal("syntax", what, offset, "white space behind a number")
        if self.text[offset] == '"':
            what = "a text stands in single quotation marks"
            raise self.refusal("syntax", what, offset, "'…', with '' for one of them in it")
        self._refuse_character(offset, ("this text is not closed", "a closing '"), "")


class _RuleParser(TokenParser):
    word_form = "'{}'"

    def __init__(
        self,
        text: str,
        schema: RdfSchema,
        rules: Mapping[str, Rule],
        name: str,
        *,
        is_query: bool,
    ) -> None:
        super().__init__(LIMITS)
        self.columns: list[tuple[str, tuple[str, ...]]] = []
        self._is_query = is_query
        self.lexer = _Lexer(text)
        self._schema = schema
        self.constants: dict[int, Constant] = {}  # by their offsets
        self.searched: list[str] = []  # names, as they are written
        self._rules = rules
        self._name = name
        self._prefixes: dict[str, str] = {}
        self._variables: dict[str, Token] = {}
        self._classes: dict[str, str] = {}
        self._named: dict[str, Rule] = {}  # by the variable that stands for what it matches
        self._names: set[str] = set()

    def rule(self, text: str) -> Rule:
        while self.takes_word("prefix"):
            prefix = self._taken("a prefix", TokenKind.NAME).text
            self.expect(":")
            self._prefixes[prefix] = self._taken("an IRI in < >", TokenKind.IRI).text
        self.expect_word("search")
        self.listed(self._searched)
        if self._is_query and self.takes_word("select"):
            self.columns = self.listed(self._column)
            register = self.columns[0][0]
        else:
            self.expect_word("register")
            register = self._known(self._taken("a variable of the search part", TokenKind.NAME))
            self.columns = [(register, ())]
        alternatives: _Alternatives = [()]
        if self.takes_word("where"):
            alternatives = self._any(is_negated=False)
        if self.lexer.peek().kind is not TokenKind.END:
            raise self.unexpected("'and', 'or' or the end" if alternatives[0] else "'where'")
        found = tuple(self._normalised(register, alternatives))
        return Rule(text, found, self._schema, frozenset(self._names))

    def meant(self, token: Token, expected: str) -> str:
        if token.text in _MEANT:
            return _MEANT[token.text]
        if token.kind is TokenKind.NAME and token.text not in WORDS:
            words = [word for word in WORDS if f"'{word}'" in expected]
            if close := get_close_matches(token.text.lower(), words, n=1):
                return f"'{close[0]}'"
        return expected

    # -- the search part

    def _searched(self) -> None:
        class_name, named = self._extension(self._taken("a class or a rule's name", *_NAMES))
        token = self._taken("a variable", TokenKind.NAME)
        if token.text in WORDS or not VARIABLE.fullmatch(token.text):
            reason = f"'{token.text}' cannot be the name of a variable"
            wanted = "letters, digits and '_', and no word of the language"
            raise self.refusal("variable", reason, token.offset, wanted)
        if token.text in self._variables:
            reason = f"there are two variables named {token.text}"
            raise self.refusal("variable", reason, token.offset, "another name")
        self._variables[token.text] = token
        self._classes[token.text] = class_name
        if named is not None:
            self._named[token.text] = named

    def _extension(self, token: Token) -> tuple[str, Rule | None]:
        name = token.text
        self.searched.append(name)
        named = None
        if token.kind is TokenKind.NAME:
            named = self._rules.get(name)
            self._check_circle(name, named, token)
        try:
            class_name = self._find("class", token)
        except UnknownName as unknown:
            if named is None:
                hint = unknown.hint
                if not hint and len(self._rules) < 1_000:
                    near = get_close_matches(name, self._rules, n=1)
                    hint = f"did you mean the rule {near[0]}?" if near else ""
                raise self._unknown("class", unknown.reason, token, hint) from None
        else:
            if named is None:
                return class_name, None
            reason = f"{name} is a class and a rule"
            raise self._unknown("class", reason, token, f"write <{class_name}> if you mean it")
        self._names |= {name, *named.names}
        first = named.alternatives[0]
        return first.classes[first.register], named

    def _check_circle(self, name: str, named: Rule | None, token: Token) -> None:
        if self._name and name == self._name:
            how = "itself"
        elif named is not None and self._name in named.names:
            how = f"{name}, which is made of it"
        else:
            return
        reason = f"the rule {self._name} names {how}"
        raise self.refusal("circle", reason, token.offset, "a class, or another rule")

    def _find(self, kind: str, token: Token) -> str:
        is_iri = token.kind is TokenKind.IRI
        if is_iri and (self._schema.is_open or token.text == RESOURCE):
            return token.text
        return self._schema.find(kind, token.text, {} if is_iri else self._prefixes)

    def _unknown(self, what: str, reason: str, token: Token, hint: str) -> ProfileRefused:
        return ProfileRefused(f"unknown-{what}", reason, self.lexer.text, token.offset, hint=hint)

    def _taken(self, expected: str, *kinds: TokenKind) -> Token:
        if self.lexer.peek().kind not in kinds:
            raise self.unexpected(expected)
        return self.lexer.take()

    def _known(self, token: Token) -> str:
        if token.text not in self._variables:
            known = ", ".join(self._variables)
            hint = f"the variables are {known}; a text is written '{token.text}'"
            reason = f"there is no variable {token.text}"
            raise self._unknown("variable", reason, token, hint)
        return token.text

    # -- the where part, as alternatives

    def _any(self, *, is_negated: bool) -> _Alternatives:
        return self._combined("or", self._all, is_negated, multiplies=is_negated)

    def _all(self, *, is_negated: bool) -> _Alternatives:
        return self._combined("and", self._part, is_negated, multiplies=not is_negated)

    def _combined(
        self, word: str, part: Callable[..., _Alternatives], is_negated: bool, *, multiplies: bool
    ) -> _Alternatives:
        found = part(is_negated=is_negated)
        while (token := self.lexer.peek()).is_word(word):
            self.lexer.take()
            others = part(is_negated=is_negated)
            count = len(found) * len(others) if multiplies else len(found) + len(others)
            self._check_alternatives(count, token.offset)
            pairs = product(found, others)
            found = [(*one, *other) for one, other in pairs] if multiplies else found + others
        return found

    def _check_alternatives(self, count: int, offset: int) -> None:
        if count > ALTERNATIVES_MAX:
            reason = f"{count} alternatives without 'or'; at most {ALTERNATIVES_MAX}"
            raise self.refusal("too-many-alternatives", reason, offset, "several rules")

    def _part(self, *, is_negated: bool) -> _Alternatives:
        token = self.lexer.peek()
        if self.takes_word("not"):
            self.enter(token)
            found = self._part(is_negated=not is_negated)
            self.leave()
            return found
        if self.takes("("):
            self.enter(token)
            found = self._any(is_negated=is_negated)
            self.leave()
            self.expect(")", ", 'and' or 'or'")
            return found
        return [(self._comparison(is_negated=is_negated),)]

    def _comparison(self, *, is_negated: bool) -> _Comparison:
        first = self.lexer.peek()
        left = self._operand()
        operator = self.lexer.peek()
        if operator.text not in _OPERATORS or operator.kind is TokenKind.STRING:
            raise self.unexpected("an operator: = != < <= > >= or 'contains'")
        self.lexer.take()
        second = self.lexer.peek()
        right = self._operand()
        said = operator.text
        if isinstance(left, Constant):
            if isinstance(right, Constant):
                reason = "two constants are compared"
                raise self.refusal("constants", reason, first.offset, "a variable, or a path")
            if said not in TURNED:
                reason = "'contains' looks into what is on its left"
                raise self.refusal("range", reason, first.offset, "a path on the left")
            left, right, said, second = right, left, TURNED[said], first
        kind = self._kind(left, said, right, second)
        return _Comparison(left, NEGATED[said] if is_negated else said, right, kind, first.offset)

    def _kind(self, left: _Path, operator: str, right: _Path | Constant, token: Token) -> str:
        """As what both are compared; "" where only the values tell."""
        fit = FIT.get(operator, ORDERED)
        kinds = frozenset((right.kind,)) if isinstance(right, Constant) else right.kinds
        both = left.kinds & kinds & fit
        if not both:
            wanted = left.kinds & fit
            if not wanted:
                reason = f"'{operator}' does not compare {_kinds_shown(left.kinds)}"
                raise self.refusal("range", reason, token.offset, "'=' or '!='")
            reason = f"{_kinds_shown(kinds)} is compared with {_kinds_shown(left.kinds)}"
            raise self.refusal("range", reason, token.offset, _kinds_shown(wanted))
        kind = next(iter(both)) if len(both) == 1 else ""
        if isinstance(right, _Path) and kind == "iri":
            one, other = left.class_name, right.class_name
            if not may_share(self._schema, one, other):
                reason = f"no {local_name(one)} is a {local_name(other)}"
                raise self.refusal("range", reason, token.offset, "resources of one class")
        return kind

    def _column(self) -> tuple[str, tuple[str, ...]]:
        path = self._path(self._taken("a path", TokenKind.NAME))
        return path.variable, tuple(step.name for step in path.steps)

    # -- operands

    def _operand(self) -> _Path | Constant:
        token = self.lexer.take()
        text = token.text
        match token.kind:
            case TokenKind.NAME if text not in WORDS:
                return self._path(token)
            case TokenKind.STRING | TokenKind.IRI | TokenKind.NUMBER:
                if constant := _constant(token.kind, text):
                    self.constants[token.offset] = constant
                    return constant
                if token.kind is TokenKind.IRI:
                    reason = f"<{text}> names no resource without a base"
                    raise self.refusal("syntax", reason, token.offset, "a whole IRI")
                if _IS_DAY.match(text):
                    wanted = "2024-02-29, or 2024-02-29T12:00:00Z"
                    raise self.refusal("moment", f"there is no {text}", token.offset, wanted)
                reason = f"numbers are compared to {DIGITS_TOLD} digits"
                raise self.refusal("number", reason, token.offset, f"at most {DIGITS_TOLD} digits")
        self.lexer.offset = token.offset
        raise self.unexpected("a path, a text in ' ', a number, a date or an IRI in < >")

    def _path(self, token: Token) -> _Path:
        variable = self._known(token)
        class_name = self._classes[variable]
        kinds = RESOURCES
        steps: list[Property] = []
        while self.takes("."):
            name = self._taken("a property", *_NAMES)
            if "iri" not in kinds:
                before = local_name(steps[-1].name)
                reason = f"{before} is {_kinds_shown(kinds)}, which has no properties"
                raise self.refusal("range", reason, name.offset, "an operator")
            if len(steps) == PATH_MAX:
                reason = f"a path of more than {PATH_MAX} properties"
                raise self.refusal("too-long-path", reason, name.offset, "a variable between")
            step = self._step(class_name, name)
            if not self.takes("?") and not step.is_single:
                reason = f"{local_name(step.name)} may have several values"
                raise self.refusal("several-values", reason, name.end, "'?', for some of them")
            steps.append(step)
            class_name, kinds = _class_behind(step), kinds_of(step)
        return _Path(variable, tuple(steps), kinds, class_name)

    def _step(self, class_name: str, token: Token) -> Property:
        try:
            name = self._find("property", token)
        except UnknownName as unknown:
            raise self._unknown("property", unknown.reason, token, unknown.hint) from None
        if name == RDF_TYPE:
            reason = "classes are not asked for by a property"
            raise self.refusal("type", reason, token.offset, "'search', with a class")
        known = self._schema.properties.get(name, Property(name))
        domains = known.domains
        if domains and not any(may_share(self._schema, class_name, each) for each in domains):
            reason = f"{local_name(name)} is no property of {local_name(class_name)}"
            raise self._unknown("property", reason, token, self._way(class_name, domains, token))
        return known

    def _way(self, class_name: str, domains: tuple[str, ...], token: Token) -> str:
        """The question whether a path was meant by a property that another class has."""
        for each in self._schema.properties.values():
            if (
                each.is_reference
                and any(may_share(self._schema, class_name, domain) for domain in each.domains)
                and any(may_share(self._schema, each.range, domain) for domain in domains)
            ):
                mark = "" if each.is_single else "?"
                return f"did you mean {local_name(each.name)}{mark}.{token.text}?"
        return f"{token.text} is of {' and '.join(map(local_name, domains))}"

    # -- normalisation (MDV, section 3.3)

    def _normalised(self, register: str, alternatives: _Alternatives) -> Iterator[Conjunction]:
        named = [each.alternatives for each in self._named.values()]
        count = len(alternatives)
        for variable, each in zip(self._named, named, strict=True):
            count *= len(each)
            self._check_alternatives(count, self._variables[variable].offset)
        for chosen, comparisons in product(product(*named), alternatives):
            draft = Draft(self._classes, register)
            for variable, conjunction in zip(self._named, chosen, strict=True):
                draft.take_in(variable, conjunction)
                self._check_variables(draft, self._variables[variable].offset)
            for comparison in comparisons:
                draft.add(comparison)
                self._check_variables(draft, comparison.offset)
            if (lonely := draft.unconnected()) in self._variables:
                reason = f"nothing connects {lonely} with {register}"
                wanted = f"a comparison of {lonely}, or of its values, in each alternative"
                offset = self._variables[lonely].offset
                raise self.refusal("not-connected", reason, offset, wanted)
            yield draft.conjunction()

    def _check_variables(self, draft: Draft, offset: int) -> None:
        if len(draft.classes) > VARIABLES_MAX:
            reason = f"more than {VARIABLES_MAX} variables, those of paths included"
            raise self.refusal("too-many-variables", reason, offset, "two rules, one of the other")


class Draft:
    """A conjunction that grows."""

    def __init__(self, classes: Mapping[str, str], register: str) -> None:
        self.classes = dict(classes)
        self.register = register
        self.conditions: dict[Condition, None] = {}
        self.joins: dict[Join[str], None] = {}
        self._shared: dict[tuple[str, str], str] = {}  # by the only value of what

    def take_in(self, variable: str, conjunction: Conjunction) -> None:
        """What a variable stands for is what this one registers."""
        names = {conjunction.register: variable}
        for each, class_name in conjunction.classes.items():
            if each != conjunction.register:
                names[each] = self.new(f"{variable}_{each}", class_name)
        for condition in conjunction.conditions:
            self.conditions[condition._replace(variable=names[condition.variable])] = None
        for join in conjunction.joins:
            self.joins[join._replace(left=names[join.left], right=names[join.right])] = None

    def add(self, comparison: _Comparison) -> None:
        left, operator, right, kind, _ = comparison
        variable, name = self._end(left)
        if isinstance(right, Constant):
            self.conditions[Condition(variable, name, operator, right)] = None
            return
        other, other_name = self._end(right)
        if other_name and not name:  # a reference is said from where it is
            variable, name, other, other_name = other, other_name, variable, name
        self.joins[Join(variable, name, operator, other, other_name, kind)] = None

    def _end(self, path: _Path) -> tuple[str, str]:
        """The variable and the property at the end of a path."""
        variable = path.variable
        for step in path.steps[:-1]:
            key = variable, step.name
            behind = self._shared.get(key, "")
            if not behind:
                class_name = _class_behind(step)
                behind = self.new(_initial(class_name), class_name)
                self.joins[Join(variable, step.name, "=", behind, "")] = None
                if step.is_single:
                    self._shared[key] = behind
            variable = behind
        return variable, path.steps[-1].name if path.steps else ""

    def new(self, name: str, class_name: str) -> str:
        number, new = 1, name
        while new in self.classes:
            number += 1
            new = f"{name}{number}"
        self.classes[new] = class_name
        return new

    def unconnected(self) -> str:
        """A variable that no joins connect with the registered one, or nothing."""
        found, pairs = {self.register}, {(each.left, each.right) for each in self.joins}
        while near := [pair for pair in pairs if not found.isdisjoint(pair)]:
            found.update(*near)
            pairs.difference_update(near)
        return next((each for each in self.classes if each not in found), "")

    def conjunction(self) -> Conjunction:
        return Conjunction(self.classes, self.register, tuple(self.conditions), tuple(self.joins))


def may_share(schema: RdfSchema, one: str, other: str) -> bool:
    """Whether a resource may be of both classes."""
    if schema.is_open or RESOURCE in (one, other):
        return True
    return not schema.below(one).isdisjoint(schema.below(other))


def number(text: str) -> Constant | None:
    """None if it is not told from others."""
    value = float(text)
    if text.isdecimal() and len(text) <= DIGITS_TOLD:  # PERF: nearly all
        return Constant("number", value, str(int(text)))
    digits = re.sub(r"[eE].*|[^0-9]", "", text).strip("0")
    if len(digits) > DIGITS_TOLD or isinf(value):
        return None
    return Constant("number", value, repr(value or 0.0).removesuffix(".0"))


def moment(text: str) -> Constant | None:
    """None if there is no such date or time."""
    seconds = derived_value(text.encode(), DATE_TIME if "T" in text else DATE)
    return Constant("moment", float(seconds), text) if seconds else None


def _constant(kind: TokenKind, text: str) -> Constant | None:
    if kind is TokenKind.IRI:
        return Constant("iri", text, f"<{text}>") if has_scheme(text.encode()) else None
    if kind is TokenKind.STRING:
        return Constant("text", text[1:-1].replace("''", "'"), text)
    return moment(text) if _IS_DAY.match(text) else number(text)


def _class_behind(said: Property) -> str:
    """Of the values of a property that are resources."""
    return (said.is_reference and said.range) or RESOURCE


@lru_cache(1_024)
def kinds_of(said: Property) -> frozenset[str]:
    """As what the values of a property may be compared."""
    if said.is_reference:
        return RESOURCES
    if said.range in ("", LITERAL):
        return LITERALS if said.range else _ALL
    kind = value_kind(said.range.encode())
    if kind == NO_VALUE:
        return TEXTS
    return frozenset(("moment" if is_seconds(kind) else "number",))


def _kinds_shown(kinds: frozenset[str]) -> str:
    return " or ".join(_SHOWN[kind] for kind in _SHOWN if kind in kinds)


@lru_cache(1_024)
def _initial(class_name: str) -> str:
    """The name of a variable for the resources of a class."""
    return next(
        (each.lower() for each in local_name(class_name) if "a" <= each.lower() <= "z"), "v"
    )


# -- PERF: rules, or queries, that differ in constants alone


class _Shape(NamedTuple):
    """All these, as one of them.  ``searched``: names of classes, and so of no rules."""

    searched: tuple[str, ...]
    constants: tuple[Constant, ...]
    of: Query

    def filled(
        self, constants: Collection[Constant], rules: Mapping[str, Rule], name: str
    ) -> tuple[Conjunction, ...]:
        """The alternatives with other constants; none for a rule that has to be parsed."""
        other = dict(zip(self.constants, constants, strict=True))
        if len({*constants}) < len(other):
            return ()
        if any(each == name or each in rules for each in self.searched):
            return ()
        found = []
        for classes, register, conditions, joins in self.of.rule.alternatives:
            said = [_new(Condition, (*each[:3], other[each.constant])) for each in conditions]
            found.append(Conjunction(classes, register, tuple(said), joins))
        return tuple(found)


@lru_cache(16)
def _shapes_of(schema: RdfSchema, is_query: bool) -> dict[str, _Shape]:
    """By texts without their constants."""
    return {}


def _taken_apart(text: str) -> tuple[str, dict[int, Constant]]:
    """A text without the constants behind operators, and these by their offsets; the text as it is
    where one is refused."""
    pieces: list[str] = []
    constants: dict[int, Constant] = {}
    end = 0
    for found in _COMPARED.finditer(text):
        group = found.lastindex or 0
        constant = _constant(_KINDS[group + 1], found[group])
        if constant is None:
            return text, {}
        start, last = found.start(group), found.end()
        start -= text[last - 1] == ">"
        pieces += (text[end:start], f"\0{constant.kind}")
        constants[start] = constant
        end = last
    return "".join((*pieces, text[end:])), constants


# -- alternatives -> text


def normal_text(conjunction: Conjunction, schema: RdfSchema) -> str:
    """A rule that says one conjunction, without paths."""

    def end(variable: str, name: str) -> str:
        if not name:
            return variable
        is_single = schema.properties.get(name, Property(name)).is_single
        return f"{variable}.{_short('property', name, schema)}{'' if is_single else '?'}"

    searched = ", ".join(
        f"{_short('class', class_name, schema)} {variable}"
        for variable, class_name in conjunction.classes.items()
    )
    said = [
        (each.variable, _comparison(end(*each[:2]), each.operator, each.constant.text))
        for each in conjunction.conditions
    ]
    for left, left_property, operator, right, right_property, _ in conjunction.joins:
        shown = end(right, right_property)
        said.append((left, _comparison(end(left, left_property), operator, shown)))
    said.sort(key=lambda each: list(conjunction.classes).index(each[0]))
    where = f" where {' and '.join(text for _, text in said)}" if said else ""
    return f"search {searched} register {conjunction.register}{where}"


def _comparison(left: str, operator: str, right: str) -> str:
    if operator == "lacks":
        return f"not {left} contains {right}"
    return f"{left} {operator} {right}"


def _short(kind: str, name: str, schema: RdfSchema) -> str:
    local = local_name(name)
    try:
        if re.fullmatch(_NAME, local) and schema.find(kind, local, {}) == name:
            return local
    except UnknownName:
        pass
    return f"<{name}>"


_DATE_TIME = f"<{XSD}dateTime>"
_MOMENTS = ", ".join(f"<{XSD}{name}>" for name in ("date", "dateTime", "dateTimeStamp"))
_ZONE = "(Z|[+-][0-9]{2}:[0-9]{2})$"
_QUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def sparql_text(alternatives: tuple[Conjunction, ...], schema: RdfSchema) -> str:
    """The query for what some alternative registers, over statements as documents say them."""
    groups = [_Group(each, schema).text() for each in alternatives]
    where = groups[0] if len(groups) == 1 else " UNION ".join(f"{{ {each} }}" for each in groups)
    return f"SELECT DISTINCT ?{alternatives[0].register} WHERE {{ {where} }}"


class _Group:
    """What a conjunction asks, as the inside of a group."""

    def __init__(self, conjunction: Conjunction, schema: RdfSchema) -> None:
        self._conjunction = conjunction
        self._below = schema.below
        self._said: list[str] = []
        self._values = 0
        self._subjects: set[str] = set()

    def text(self) -> str:
        classes, register, conditions, joins = self._conjunction
        order, left = [register], [*joins]  # so that each part is connected with those before it
        for variable in order:
            self._add_class(variable, classes[variable])
            for name, property_, operator, constant in conditions:
                if name == variable:
                    self._compare(name, property_, operator, _written(constant), constant.kind)
            for join in [each for each in left if variable in (each.left, each.right)]:
                left.remove(join)
                right = self._value(join.right, join.right_property)
                self._compare(join.left, join.left_property, join.operator, right, join.kind)
                order += {join.left, join.right} - {*order}
        for variable in order:
            if variable not in self._subjects:
                self._said.append(f"?{variable} {self._new()} {self._new()} .")
        return " ".join(self._said)

    def _add_class(self, variable: str, class_name: str) -> None:
        if class_name != RESOURCE:
            self._subjects.add(variable)
            below = [f"<{each}>" for each in sorted(self._below(class_name))]
            wanted = below[0] if len(below) == 1 else self._new()
            if len(below) > 1:
                self._said.append(f"VALUES {wanted} {{ {' '.join(below)} }}")
            self._said.append(f"?{variable} a {wanted} .")

    def _new(self) -> str:
        self._values += 1
        return f"?_{self._values}"

    def _value(self, variable: str, name: str, value: str = "") -> str:
        """A value of a property, or the resource itself."""
        if not name:
            return f"?{variable}"
        self._subjects.add(variable)
        value = value or self._new()
        properties = "|".join(f"<{each}>" for each in sorted(self._below(name)))
        self._said.append(f"?{variable} {properties} {value} .")
        return value

    def _compare(self, variable: str, name: str, operator: str, right: str, kind: str) -> None:
        if name and operator == "=" and kind == "iri" and not right.startswith("?_"):
            self._value(variable, name, right)
            return
        sides = (self._value(variable, name), right)
        kinds = (kind,) if kind else tuple(_SHOWN) if operator in ("=", "!=") else sorted(ORDERED)
        guard = _IS if kind else {**_IS, "text": _IS_TEXT_ALONE}
        tests = [_test(each, operator, sides, guard) for each in kinds]
        self._said.append(f"FILTER({' || '.join(tests)})")


_IS = {
    "number": "ISNUMERIC(?v)",
    "moment": f"DATATYPE(?v) IN ({_MOMENTS})",
    "iri": "ISIRI(?v)",
    "text": "ISLITERAL(?v)",
}
_IS_TEXT_ALONE = f"ISLITERAL(?v) && !ISNUMERIC(?v) && DATATYPE(?v) NOT IN ({_MOMENTS})"
_DAY_OF = f'REPLACE(STR(?v), "{_ZONE}", ""), IF(CONTAINS(STR(?v), "T"), "", "T00:00:00")'
_ZONE_OF = f'IF(REGEX(STR(?v), "{_ZONE}"), REPLACE(STR(?v), "^.*{_ZONE}", "$1"), "Z")'
_SEEN = {"text": "STR(?v)", "moment": f"{_DATE_TIME}(CONCAT({_DAY_OF}, {_ZONE_OF}))"}


def _test(kind: str, operator: str, sides: tuple[str, str], guard: Mapping[str, str]) -> str:
    """That variables, or the second of them a constant, compare so, as values of a kind."""
    guards = [guard[kind].replace("?v", each) for each in sides if each.startswith("?_")]
    left, right = (
        _SEEN.get(kind, "?v").replace("?v", each) if each[0] == "?" else each for each in sides
    )
    test = f"{left} {operator} {right}"
    if operator in ("contains", "lacks"):
        test = f"{'!' * (operator == 'lacks')}CONTAINS({left}, {right})"
    elif operator == "!=" and kind in ORDERED:  # so that what is no number, or not one, is not
        test = f"({left} < {right} || {left} > {right})"
    return " && ".join((*guards, test))


def _written(constant: Constant) -> str:
    text = constant.text
    match constant.kind:
        case "text":
            return f'"{str(constant.value).translate(_QUOTED)}"'
        case "moment":
            if "T" not in text:
                end = len(text) - (0 if text[-3] == "-" else 1 if text[-1] == "Z" else 6)
                text = f"{text[:end]}T00:00:00{text[end:]}"
            zone = "" if re.search(r"T.*[Z+-]", text) else "Z"
            return f'"{text}{zone}"^^{_DATE_TIME}'
        case "number":
            plain = f"{Decimal(text):f}"
            return plain if len(plain) <= 20 else text
    return text
