"""Rules said as SPARQL: a query of one variable, where a rule says the same.

Taken are triples, property paths of ``/``, ``|`` and ``^``, UNION, and FILTER with comparisons,
IN, CONTAINS, STR, ISLITERAL, ISNUMERIC and ISIRI under ``&&``, ``||`` and ``!``.  A variable that
is the subject of a triple is one of the rule; any other is some value of a property, and is asked
for once, unless that property has one value at most.  A query that SPARQL answers otherwise than a
rule would is refused: so are texts without STR where a language may be said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, NoReturn, TypeAlias

from formats.graph.literal_forms import NO_VALUE, derived_value, is_seconds, value_kind
from formats.graph.rdf_schema import LANG_STRING, Property, RdfSchema, local_name
from formats.graph.vocabulary import RDF_TYPE, XSD
from registration.metadata.rules import (
    ALTERNATIVES_MAX,
    FIT,
    LIMITS,
    LITERALS,
    NEGATED,
    ORDERED,
    RESOURCE,
    RESOURCES,
    TURNED,
    VARIABLE,
    VARIABLES_MAX,
    WORDS,
    Condition,
    Conjunction,
    Constant,
    Draft,
    Join,
    Query,
    Rule,
    kinds_of,
    may_share,
    moment,
    number,
    parse_query,
    parse_rule,
)
from yfilter.errors import ProfileRefused
from yfilter.graph import query_ast as sparql
from yfilter.graph.graph_query import parse_anew
from yfilter.graph.group_variables import certain, filters_of, variables_of, without_filters
from yfilter.language import query_ast as ast
from yfilter.language.profile_limits import checked_text
from yfilter.language.query_ast import GENERAL

_SPARQL = re.compile(
    r"(?:\s+|#[^\n]*|(?:prefix|base)\b[^<]*<[^>]*>)*+select\s*(?:distinct\b|reduced\b)?\s*[?$*(]",
    re.IGNORECASE,
)
_STRING = XSD + "string"
_GUARDS = {"isliteral": LITERALS, "isnumeric": frozenset(("number",)), "isiri": RESOURCES}


class _Test(NamedTuple):
    """``is_text``: of which sides STR is taken; ``operator``: also the name of a guard."""

    left: sparql.Variable
    operator: str
    right: sparql.Term | None = None
    is_text: tuple[bool, bool] = (False, False)


_Parts: TypeAlias = tuple[sparql.TriplePattern | sparql.Values | _Test, ...]


class _Value(NamedTuple):
    """A property's value that a variable stands for; ``owner``: a variable of the rule."""

    owner: str
    property: Property
    kinds: frozenset[str]


def read_rule(text: str, schema: RdfSchema, rules: Mapping[str, Rule], name: str = "") -> Rule:
    """The rule that a text says, in the rules' language or in SPARQL; as ``parse_rule``."""
    if not _SPARQL.match(text):
        return parse_rule(text, schema, rules, name)
    return _Reader(checked_text(text, LIMITS), schema).query(is_rule=True).rule


def read_query(text: str, schema: RdfSchema, rules: Mapping[str, Rule]) -> Query:
    """The same of a query, which may select several variables; as ``parse_query``."""
    if not _SPARQL.match(text):
        return parse_query(text, schema, rules)
    return _Reader(checked_text(text, LIMITS), schema).query(is_rule=False)


class _Reader:
    """Of one query."""

    def __init__(self, text: str, schema: RdfSchema) -> None:
        self._text = text
        self._schema = schema
        self._query = parse_anew(text, LIMITS)

    def query(self, *, is_rule: bool) -> Query:
        query = self._query
        if query.form is not sparql.QueryForm.SELECT or (is_rule and len(query.variables) != 1):
            self._refuse("a rule registers one variable", "select", "SELECT ?v WHERE { … }")
        if query.whole:
            self._refuse_part("a query with this")
        found = self._group(query.where)
        if not found:
            self._refuse_part("a filter that never holds")
        patterns = [_Pattern(self._refuse, self._schema, parts) for parts in found]
        alternatives = tuple(each.conjunction(query.variables, is_rule) for each in patterns)
        if any(each.columns != patterns[0].columns for each in patterns):
            reason = "the alternatives select values of different properties"
            self._refuse(reason, "select", "those of one, or several queries")
        return Query(Rule(self._text, alternatives, self._schema), patterns[0].columns)

    def _group(self, group: sparql.Group) -> list[_Parts]:
        found: list[_Parts] = [()]
        for element in without_filters(group).elements:
            match element:
                case sparql.TriplePattern() | sparql.Values():
                    found = [(*each, element) for each in found]
                case sparql.Group():
                    found = self._product(found, self._group(element))
                case sparql.Alternatives(groups):
                    others = [each for part in groups for each in self._group(part)]
                    found = self._product(found, others)
                case _:
                    self._refuse_part(f"{type(element).__name__} of SPARQL")
        for condition in filters_of(group):
            found = self._product(found, self._tests(condition, is_negated=False))
            for variable in variables_of(condition):
                if variable not in certain(group):
                    reason = f"a filter asks for ?{variable.name}, which its group does not bind"
                    self._refuse(reason, f"?{variable.name}", "a triple with it beside the filter")
        return found

    def _product(self, left: list[_Parts], right: list[_Parts]) -> list[_Parts]:
        if len(left) * len(right) > ALTERNATIVES_MAX:
            reason = f"more than {ALTERNATIVES_MAX} alternatives without UNION and '||'"
            self._refuse(reason, "", "several rules", "too-many-alternatives")
        return [(*one, *other) for one in left for other in right]

    # -- filters

    def _tests(self, asked: ast.Expression, *, is_negated: bool) -> list[_Parts]:
        match asked:
            case ast.FunctionCall("not", (operand,)):
                return self._tests(operand, is_negated=not is_negated)
            case ast.And(parts) | ast.Or(parts):
                options = [self._tests(each, is_negated=is_negated) for each in parts]
                if isinstance(asked, ast.Or) != is_negated:
                    return [each for option in options for each in option]
                return reduce(self._product, options, [()])
            case sparql.Membership(operand, choices, is_without):
                each_of = tuple(ast.Comparison(operand, GENERAL["="], each) for each in choices)
                return self._tests(ast.Or(each_of), is_negated=is_negated != is_without)
            case ast.Comparison(left, operator, right):
                return [(self._test(left, operator.value, right, is_negated),)]
            case ast.FunctionCall("contains", (left, right)):
                return [(self._test(left, "contains", right, is_negated),)]
            case ast.FunctionCall(name, (sparql.Variable() as variable,)) if name in _GUARDS:
                if not is_negated:
                    return [(_Test(variable, name),)]
        return self._refuse_part("this filter")

    def _test(
        self,
        left: ast.Expression,
        operator: str,
        right: ast.Expression,
        is_negated: bool,
    ) -> _Test:
        sides = [_without_str(left), _without_str(right)]
        if not isinstance(sides[0][0], sparql.Variable) and operator in TURNED:
            sides.reverse()
            operator = TURNED[operator]
        (one, is_text), (other, is_other_text) = sides
        if not isinstance(one, sparql.Variable) or not isinstance(
            other, (sparql.Variable, sparql.Iri, sparql.LiteralTerm)
        ):
            self._refuse_part("a comparison of anything but a variable")
        operator = NEGATED[operator] if is_negated else operator
        return _Test(one, operator, other, (is_text, is_other_text))

    # -- refusals

    def _refuse(
        self, reason: str, word: str, expected: str = "", code: str = "unsupported", hint: str = ""
    ) -> NoReturn:
        offset = max(self._text.lower().find(word.lower()), 0)
        raise ProfileRefused(code, reason, self._text, offset, expected, hint)

    def _refuse_part(self, what: str) -> NoReturn:
        self._refuse(f"{what} says what no rule can say", "where", "triples, UNION and filters")


class _Pattern:
    """One alternative, without UNION and ``||``."""

    def __init__(self, refuse: Callable[..., NoReturn], schema: RdfSchema, parts: _Parts) -> None:
        self._refuse = refuse
        self._schema = schema
        self._triples = tuple(each for each in parts if isinstance(each, sparql.TriplePattern))
        self._tests = tuple(each for each in parts if isinstance(each, _Test))
        self._listed: dict[sparql.Term, set[str]] = {}  # of VALUES, by the variable
        for each in parts:
            if isinstance(each, sparql.Values):
                self._add_listed(each)
        self._names: dict[sparql.Variable, str] = {}
        self._values: dict[sparql.Variable, list[_Value]] = {}

    def conjunction(self, wanted: Sequence[sparql.Variable], is_rule: bool) -> Conjunction:
        """``columns``, then: where what is selected is."""
        self._draft = draft = Draft({}, "")
        subjects = dict.fromkeys(each.subject for each in self._triples)
        for subject in subjects:
            if not isinstance(subject, sparql.Variable):
                self._refuse("a triple about one resource", "{", "a variable, and FILTER(?v = …)")
            is_name = VARIABLE.fullmatch(subject.name) and subject.name not in WORDS
            self._names[subject] = draft.new(subject.name if is_name else "v", RESOURCE)
        for triple in sorted(self._triples, key=_is_type, reverse=True):
            self._add_triple(triple)
        for test in self._tests:
            if test.operator in _GUARDS:
                self._narrow(test.left, test.operator)
        tests = [test for test in self._tests if test.operator not in _GUARDS]
        uses = [each for test in tests for each in self._add_test(test)]
        self.columns = tuple(self._column(each, uses, is_rule) for each in wanted)
        self._add_values(uses)
        draft.register = self.columns[0][0]
        if lonely := draft.unconnected():
            reason = f"nothing connects ?{lonely} with ?{draft.register}"
            self._refuse(reason, f"?{lonely}", "a triple between", "not-connected")
        if len(draft.classes) > VARIABLES_MAX:
            reason = f"more than {VARIABLES_MAX} variables"
            self._refuse(reason, "", "several rules", "too-many-variables")
        return draft.conjunction()

    def _column(
        self, variable: sparql.Variable, uses: Sequence[sparql.Variable], is_rule: bool
    ) -> tuple[str, tuple[str, ...]]:
        """A variable of the rule, or one and the property whose values are wanted."""
        if variable in self._names:
            return self._names[variable], ()
        values = self._values.get(variable, [])
        if is_rule or not values:
            reason = f"?{variable.name} is the subject of no triple in each alternative"
            self._refuse(reason, f"?{variable.name}", f"?{variable.name} a <class>")
        first = next((each for each in values if each.property.is_single), values[0])
        if not first.property.is_single and (len(values) > 1 or variable in uses):
            reason = f"of the values of {local_name(first.property.name)} only some are selected"
            self._refuse(reason, f"?{variable.name}", "all of them", "several-values")
        return first.owner, (first.property.name,)

    # -- triples

    def _add_listed(self, values: sparql.Values) -> None:
        """Classes, of which a resource has some."""
        variable = values.variables[0]
        cells = {cell for row in values.rows for cell in row}
        if (
            not all(isinstance(cell, sparql.Iri) for cell in cells)
            or variable not in {each.object for each in self._triples if _is_type(each)}
            or [*variables_of((self._triples, self._tests))].count(variable) > 1
            or variable in self._listed
            or len(values.variables) > 1
        ):
            self._refuse("VALUES is taken of classes", "values", "'||' in a filter")
        self._listed[variable] = {cell.value for cell in cells if isinstance(cell, sparql.Iri)}

    def _add_triple(self, triple: sparql.TriplePattern) -> None:
        assert isinstance(triple.subject, sparql.Variable)
        owner = self._names[triple.subject]
        if _is_type(triple):
            return self._add_class(owner, triple.object)
        if not isinstance(triple.property, sparql.Iri) or triple.closure:
            self._refuse("a property that is not named", f"?{triple.subject.name}", "an IRI")
        name = triple.property.value
        property_ = self._schema.properties.get(name, Property(name))
        self._check_known("property", name, self._schema.properties)
        class_name, domains = self._draft.classes[owner], property_.domains
        if domains and not any(may_share(self._schema, class_name, each) for each in domains):
            reason = f"{local_name(name)} is no property of {local_name(class_name)}"
            self._refuse(reason, local_name(name), "", "unknown-property")
        value = _Value(owner, property_, kinds_of(property_))
        match triple.object:
            case sparql.Variable() as variable if variable in self._names:
                self._join(value, "=", self._names[variable], "", "iri")
            case sparql.Variable() as variable:
                self._values.setdefault(variable, []).append(value)
            case sparql.LiteralTerm(_, datatype) if datatype != _STRING:
                self._rule_out("=", triple.subject)
            case constant:
                self._compare(value, "=", constant, is_text=False)
        return None

    def _add_class(self, owner: str, term: sparql.Term) -> None:
        names = {term.value} if isinstance(term, sparql.Iri) else self._listed.get(term, set())
        if len(names) > 1:  # as a rule says it: a class and all below it
            names = {each for each in names if self._schema.below(each) == frozenset(names)}
        if len(names) != 1:
            self._refuse("a class that is not named", "rdf:type", "an IRI")
        (name,) = names
        self._check_known("class", name, self._schema.classes)
        draft = self._draft
        if draft.classes[owner] not in (RESOURCE, name):
            other = draft.new(owner, name)
            draft.joins[Join(owner, "", "=", other, "")] = None
        else:
            draft.classes[owner] = name

    def _check_known(self, what: str, name: str, known: Container[str]) -> None:
        if name not in known and not self._schema.is_open:
            hint = self._schema.near(what, name)
            reason = f"the schema has no {what} {name}"
            self._refuse(reason, local_name(name), "", f"unknown-{what}", hint)

    # -- filters

    def _narrow(self, variable: sparql.Variable, guard: str) -> None:
        kinds = self._seen(variable).kinds & _GUARDS[guard]
        if not kinds:
            self._rule_out(guard, variable)
        if variable in self._values:
            values = self._values[variable]
            self._values[variable] = [each._replace(kinds=each.kinds & kinds) for each in values]

    def _add_test(self, test: _Test) -> list[sparql.Variable]:
        """The variables that are values and that it uses."""
        left, operator, right, is_text = test
        if left in self._names and right in self._values and operator in TURNED:
            assert isinstance(right, sparql.Variable)
            left, right, operator, is_text = right, left, TURNED[operator], is_text[::-1]
        one = self._seen(left)
        if not isinstance(right, sparql.Variable):
            assert right is not None
            self._compare(one, operator, right, is_text=is_text[0])
            return [left] if left in self._values else []
        other = self._seen(right)
        kind = _kind(one, is_text[0], operator)
        if kind != _kind(other, is_text[1], operator) or kind not in FIT.get(operator, ORDERED):
            self._rule_out(operator, left)
        if kind == "moment" and one.property.range != other.property.range:
            self._rule_out(operator, left)
        self._join(one, operator, other.owner, other.property.name, kind)
        return [each for each in (left, right) if each in self._values]

    def _seen(self, variable: sparql.Variable) -> _Value:
        if variable in self._values:
            return self._values[variable][0]
        return _Value(self._names[variable], Property(""), RESOURCES)

    def _compare(self, value: _Value, operator: str, term: sparql.Term, *, is_text: bool) -> None:
        """A value, or a resource itself, with a constant."""
        constant = _constant(term)
        kind = _kind(value, is_text, operator)
        if constant is None:
            self._rule_out(operator, sparql.Variable(value.owner))
        # With what is of another kind these are false in both, unlike '!='.
        alike = ("number", "iri") if operator == "=" else ("number",) if operator != "!=" else ()
        if constant.kind in value.kinds.intersection(alike) and not is_text:
            kind = constant.kind
        datatype = term.datatype if isinstance(term, sparql.LiteralTerm) else ""
        if (
            constant.kind != kind
            or kind not in FIT.get(operator, ORDERED)
            or (kind == "moment" and datatype != value.property.range)
        ):
            self._rule_out(operator, sparql.Variable(value.owner))
        condition = Condition(value.owner, value.property.name, operator, constant)
        self._draft.conditions[condition] = None

    def _rule_out(self, operator: str, variable: sparql.Variable) -> NoReturn:
        reason = f"SPARQL and rules may answer '{operator}' here otherwise"
        expected = "numbers, STR(?v) and a text, IRIs of references, times of the range's datatype"
        self._refuse(reason, f"?{variable.name}", expected, "range")

    def _join(self, value: _Value, operator: str, right: str, name: str, kind: str) -> None:
        join = Join(value.owner, value.property.name, operator, right, name, kind)
        self._draft.joins[join] = None

    # -- values

    def _add_values(self, uses: list[sparql.Variable]) -> None:
        """What is said of variables that are values but by filters."""
        for variable, (first, *others) in self._values.items():
            for other in others:
                if first.kinds != RESOURCES or other.kinds != RESOURCES:
                    self._rule_out("=", variable)
                self._join(first, "=", other.owner, other.property.name, "iri")
            count = uses.count(variable) + len(others)
            if count > 1 and not first.property.is_single:
                reason = f"{local_name(first.property.name)} may have several values"
                expected = f"?{variable.name} once, or a variable for each use"
                self._refuse(reason, f"?{variable.name}", expected, "several-values")
            if not count:  # there is one
                if first.kinds != kinds_of(first.property):
                    self._rule_out("=", variable)
                kind = next(iter(first.kinds)) if len(first.kinds) == 1 else ""
                self._join(first, "=", first.owner, first.property.name, kind)


def _is_type(triple: sparql.TriplePattern) -> bool:
    """Whether it asks for a class."""
    closures = (sparql.Closure.NONE, sparql.Closure.INSTANCE)
    return triple.property == sparql.Iri(RDF_TYPE) and triple.closure in closures


def _without_str(asked: ast.Expression) -> tuple[ast.Expression, bool]:
    match asked:
        case ast.FunctionCall("str", (inner,)):
            return inner, True
    return asked, False


def _kind(value: _Value, is_text: bool, operator: str) -> str:
    """As what SPARQL compares a value, if a rule does so too."""
    range_ = value.property.range
    if is_text:
        return "text" if value.kinds <= LITERALS else ""
    (kind, *more) = value.kinds
    if more or (kind == "text" and range_ != _STRING):
        is_contained = operator in ("contains", "lacks") and range_ == LANG_STRING
        return "text" if is_contained else ""
    return kind


def _constant(term: sparql.Term) -> Constant | None:
    match term:
        case sparql.Iri(iri):
            return Constant("iri", iri, f"<{iri}>")
        case sparql.LiteralTerm(lexical, datatype, "") if datatype == _STRING:
            return Constant("text", lexical, "'" + lexical.replace("'", "''") + "'")
        case sparql.LiteralTerm(lexical, datatype):
            kind = value_kind(datatype.encode())
            if kind != NO_VALUE and derived_value(lexical.encode(), kind)[-1:].isdigit():
                return moment(lexical) if is_seconds(kind) else number(lexical)
    return None
