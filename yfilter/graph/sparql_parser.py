"""Text of a graph profile -> GraphQuery.  Every refusal says where, and what was expected there.

The grammar is that of SPARQL 1.1 queries, without FROM and SERVICE.  What the tree can say it says
alone; of the rest it has a necessary part, and the whole text with all names in full.

The parser is one class in layers, each in its file: terms, filters, triples, and here groups and
queries.  It is recursive, and bounded by ``ProfileLimits``.  ``docs/graphs.md`` documents the
language.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from formats.graph.vocabulary import RDF, RDF_TYPE, RDFS
from yfilter.graph.filter_parser import FilterParser
from yfilter.graph.group_variables import renamed, variables_of
from yfilter.graph.necessary_part import necessary_part, weakened
from yfilter.graph.query_ast import (
    INSTANCE_PROPERTY,
    Alternatives,
    Bind,
    Closure,
    Filter,
    FilterExpression,
    GraphQuery,
    Group,
    GroupElement,
    InGraph,
    Iri,
    LiteralTerm,
    Minus,
    Optionally,
    QueryForm,
    Term,
    TriplePattern,
    Values,
    Variable,
)
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.trees import nodes_of

# -------------------------------------------------------------------------------------------------
# Property paths of SPARQL as triples: ``?x a/b ?y`` is ``?x a _:0 . _:0 b ?y``.
#
# ``a/rdfs:subClassOf*`` and ``a/^rdfs:subClassOf*`` ask the taxonomies.  What has no fixed number
# of triples (``*``, ``+``, ``?``) or is what a triple is not (``!p``) is Weakened.


SUB_CLASS = Iri(RDFS + "subClassOf")
SUB_PROPERTY = Iri(RDFS + "subPropertyOf")
TYPE = Iri(RDF_TYPE)


@dataclass(frozen=True, slots=True)
class Inverse:
    path: Path


@dataclass(frozen=True, slots=True)
class Chain:
    """``a/b/c``, two or more."""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """``a|b|c``, two or more."""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """``count`` is ``*``, ``+`` or ``?``."""

    path: Path
    count: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """``!(p|^q)``: any property but p, or any but q the other way."""

    forward: tuple[Iri, ...]
    backward: tuple[Iri, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """``a/rdfs:subClassOf*``, or with ``^`` before the second."""

    closure: Closure


Path: TypeAlias = Iri | Variable | Inverse | Chain | Choice | Repeated | Excluded | Typed
_TYPED = {
    (TYPE, Repeated(SUB_CLASS, "*")): Typed(Closure.INSTANCE),
    (TYPE, Inverse(Repeated(SUB_CLASS, "*"))): Typed(Closure.INSTANCE_ABOVE),
    (TYPE, Repeated(Inverse(SUB_CLASS), "*")): Typed(Closure.INSTANCE_ABOVE),
}


def typed(first: Path, second: Path) -> Typed | None:
    """What ``first/second`` asks of the taxonomies, if it does."""
    return _TYPED.get((first, second)) if first == TYPE else None


def elements_of(
    subject: Term, path: Path, value: Term, blank: Callable[[], Variable]
) -> list[GroupElement]:
    """The triples of ``subject path value``; ``blank`` makes the nodes in between."""
    match path:
        case Iri() | Variable():
            return [TriplePattern(subject, path, value)]
        case Typed(closure):
            return [TriplePattern(subject, TYPE, value, closure)]
        case Inverse(inner):
            return elements_of(value, inner, subject, blank)
        case Chain(parts):
            elements: list[GroupElement] = []
            for part in parts[:-1]:
                between = blank()
                elements += elements_of(subject, part, between, blank)
                subject = between
            return elements + elements_of(subject, parts[-1], value, blank)
        case Choice(parts):
            ways = (Group(tuple(elements_of(subject, part, value, blank))) for part in parts)
            return [Alternatives(tuple(ways))]
        case Repeated(inner, "+"):
            first = elements_of(subject, inner, blank(), blank)
            last = elements_of(blank(), inner, value, blank)
            return [weakened(Group((*first, *last)))]
        case Repeated():
            lost = (term for term in (subject, value) if isinstance(term, Variable))
            return [weakened(Group(()), lost)]
        case Excluded(forward, backward):
            ways_of = [
                Group((TriplePattern(start, blank(), end),))
                for start, properties, end in (
                    (subject, forward, value),
                    (value, backward, subject),
                )
                if properties
            ]
            whole = ways_of[0] if len(ways_of) == 1 else Group((Alternatives(tuple(ways_of)),))
            return [weakened(whole)]


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Parses groups of a graph profile: triples, filters, and groups in groups.


# -------------------------------------------------------------------------------------------------
# Parses triples of a graph profile: lists with ``;`` and ``,``, brackets, collections, paths.


FIRST, REST, NIL = (Iri(RDF + name) for name in ("first", "rest", "nil"))
_VERB = "a property: an IRI, a variable or 'a'"
_INSTANCE = {Iri(INSTANCE_PROPERTY): typed(TYPE, Repeated(SUB_CLASS, "*"))}


class Above(NamedTuple):
    """``subject rdfs:subClassOf* value``, or subPropertyOf; what it asks its group tells."""

    subject: Term
    property: Iri
    value: Term
    stands_as: GroupElement  # in its group, as long as that is not known
    token: Token


class TripleParser(FilterParser):
    """``elements`` are those of the group that is read; ``visible`` the variables it has so far."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self.elements: list[GroupElement] = []
        self.above: list[Above] = []
        self.visible: dict[Variable, None] = {}
        self.has_paths = True  # and not in a template
        self.replaced: list[tuple[int, int, str]] = []  # of the tokens taken: from, to, by what
        self.repeats = 0  # of self.above, as long as it is not known what they ask
        self.unsaid_closures: list[Token] = []  # where a whole query cannot ask them
        self._triples = 0
        self._counted = 0  # ``*``, ``+`` and ``?`` of a path, but those that ask the taxonomies

    def triples(self) -> None:
        """Triples, with dots between them and perhaps behind the last."""
        while True:
            self._same_subject()
            if not self.takes(".") or not self.begins_triples():
                return

    def begins_triples(self) -> bool:
        token = self.peek()
        return self.begins_term(token) or token.is_symbol("(", "[", "<<")

    def _same_subject(self) -> None:
        token = self.peek()
        if token.is_symbol("<<"):
            raise self.unsupported("a triple as a term is", token)
        is_node = token.is_symbol("(", "[")
        subject = self._node()
        stands_alone = is_node and self.lexer.taken[-2].text not in "(["
        if not stands_alone or self._begins_verb():
            self._properties(subject)

    def _begins_verb(self) -> bool:
        token = self.peek()
        if token.kind in (TokenKind.VARIABLE, TokenKind.IRI, TokenKind.NAME):
            return True
        if token.kind is TokenKind.WORD:
            return token.text == "a"
        return self.has_paths and token.is_symbol("(", "^", "!")

    def _properties(self, subject: Term) -> None:
        """``p o, o; q o``; the last semicolons may have nothing behind them."""
        while True:
            if not self._begins_verb():
                raise self.unexpected(_VERB)
            verb = self._path() if self.has_paths else self._verb()
            while True:
                self._object(subject, verb)
                if not self.takes(","):
                    break
            if not self.takes(";"):
                return
            while self.takes(";"):
                pass
            if not self._begins_verb():
                return

    def _verb(self) -> Iri | Variable:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            return self.seen(self.variable())
        if token.text == "a" and token.kind is TokenKind.WORD:
            self.take()
            return TYPE
        if token.kind not in (TokenKind.IRI, TokenKind.NAME):
            raise self.unexpected(_VERB)
        return self.iri()

    def _object(self, subject: Term, verb: Path) -> None:
        """The triple goes before those of the object's own brackets."""
        place = len(self.elements)
        token = self.peek()
        if token.is_symbol("<<"):
            raise self.unsupported("a triple as a term is", token)
        value = self._node()
        made: list[GroupElement]
        match verb:
            case Iri() | Variable():
                made = [TriplePattern(subject, verb, value)]
            case Repeated(Iri() as property) if _asks_alone(verb):
                made = elements_of(subject, verb, value, self.blank)
                self.above.append(Above(subject, property, value, made[0], token))
                self.repeats += 1
            case _:
                made = elements_of(subject, verb, value, self.blank)
                self._check_above(made, token)
        self.elements[place:place] = made
        self._count(max(1, len(made)))

    def _check_above(self, made: list[GroupElement], token: Token) -> None:
        """Of classes above one that is not named, nobody knows which are meant."""
        for node in nodes_of(tuple(made)):
            if (
                isinstance(node, TriplePattern)
                and node.closure is Closure.INSTANCE_ABOVE
                and not isinstance(node.object, Iri)
            ):
                raise self.unsupported(
                    "a/^rdfs:subClassOf* of what is not named is", token, "the IRI of a class"
                )

    def _count(self, triples: int) -> None:
        self._triples += triples
        if self._triples > self.limits.steps_max:
            raise self.refusal(
                "too-long", f"more than {self.limits.steps_max} triples", self.peek().offset
            )

    # -- nodes

    def _node(self) -> Term:
        """A term, ``[ … ]`` or ``( … )``."""
        token = self.peek()
        if token.is_symbol("["):
            return self._bracket()
        if token.is_symbol("("):
            return self._collection()
        term = self.term()
        return self.seen(term) if isinstance(term, Variable) else term

    def seen(self, variable: Variable) -> Variable:
        if not variable.is_blank:
            self.visible.setdefault(variable)
            self.given.add(variable.name)
        return variable

    def _bracket(self) -> Variable:
        self.enter(self.expect("["))
        node = self.blank()
        if not self.peek().is_symbol("]"):
            self._properties(node)
        self.leave()
        self.expect("]", ", ';' or ','")
        return node

    def _collection(self) -> Term:
        self.enter(self.expect("("))
        nodes: list[Variable] = []
        while not self.takes(")"):
            node = self.blank()
            if nodes:
                self.elements.append(TriplePattern(nodes[-1], REST, node))
            nodes.append(node)
            self._object(node, FIRST)
            self._count(1)
        self.leave()
        if not nodes:
            return NIL
        self.elements.append(TriplePattern(nodes[-1], REST, NIL))
        return nodes[0]

    # -- property paths

    def _path(self) -> Path:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            return self._verb()
        self._counted = 0
        path = self._choice()
        if self._counted and not _asks_alone(path):
            self.is_whole = True
        return path

    def _choice(self) -> Path:
        parts = [self._chain_of_steps()]
        while self.takes("|"):
            parts.append(self._chain_of_steps())
        self._count(len(parts) - 1)
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _chain_of_steps(self) -> Path:
        parts: list[Path] = []
        starts: list[int] = []
        while True:
            start = len(self.lexer.taken)
            part = self._step()
            asked = typed(parts[-1], part) if parts else None
            if asked is None:
                parts.append(part)
                starts.append(start)
            else:
                parts[-1] = asked
                self._counted -= 1
                self._replace(starts[-1], asked)
            if not self.takes("/"):
                break
        self._count(len(parts) - 1)
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _replace(self, start: int, asked: Typed) -> None:
        """Has ``a/rdfs:subClassOf*``, from a token on, stand for itself in the whole query."""
        if asked.closure is Closure.INSTANCE:
            self.replaced.append((start, len(self.lexer.taken), f"<{INSTANCE_PROPERTY}>"))
        else:
            self.unsaid_closures.append(self.lexer.taken[start])

    def _step(self) -> Path:
        if self.takes("^"):
            inner = self._repeated()
            return inner.path if isinstance(inner, Inverse) else Inverse(inner)
        return self._repeated()

    def _repeated(self) -> Path:
        path = self._path_primary()
        token = self.peek()
        if not token.is_symbol("*", "+", "?"):
            return path
        self.take()
        self._counted += 1
        return Repeated(path, token.text)

    def _path_primary(self) -> Path:
        token = self.peek()
        if token.is_symbol("("):
            self.enter(self.take())
            inner = self._choice()
            self.leave()
            self.expect(")", ", '/' or '|'")
            return inner
        if token.is_symbol("!"):
            self.take()
            return self._excluded()
        verb = self._path_iri()
        return _INSTANCE.get(verb) or verb

    def _path_iri(self) -> Iri:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            raise self.refusal("syntax", "a variable in a path", token.offset, "an IRI")
        verb = self._verb()
        assert isinstance(verb, Iri)
        return verb

    def _excluded(self) -> Path:
        self.is_whole = True
        forward: list[Iri] = []
        backward: list[Iri] = []
        in_parentheses = self.takes("(")
        while True:
            is_backward = self.takes("^")
            (backward if is_backward else forward).append(self._path_iri())
            if not in_parentheses or not self.takes("|"):
                break
        if in_parentheses:
            self.expect(")", " or '|'")
        return Excluded(tuple(forward), tuple(backward))


def _asks_alone(path: Path) -> bool:
    """Whether a path, by itself, may ask the taxonomies."""
    return path in (Repeated(SUB_CLASS, "*"), Repeated(SUB_PROPERTY, "*"))


# -------------------------------------------------------------------------------------------------


_IN_GROUP = "a triple, FILTER, OPTIONAL, UNION, or '}'"


class GroupParser(TripleParser):
    """``classes``: variables that are in the tree no more, as the taxonomies have their values."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self.classes: dict[Variable, Token] = {}
        self._blocks = 0  # so far

    @abstractmethod
    def subquery(self) -> None:
        """SELECT in a group."""

    def group(self) -> Group:
        self.enter(self.expect("{"))
        outer = self.elements, self.above, self.visible, self.block
        self.elements, self.above, self.visible = [], [], {}
        self._end_block()
        if self.peek().is_word("SELECT"):
            self.subquery()
        else:
            while self._takes_element():
                pass
        group = Group(tuple(self._with_closures()))
        seen = self.visible
        self.elements, self.above, self.visible, self.block = outer
        self.visible.update(seen)
        self.leave()
        if not self.peek().is_symbol("}"):
            raise self.unexpected(_IN_GROUP)
        self.take()
        return group

    def unseen_group(self) -> Group:
        seen = dict(self.visible)
        group = self.group()
        self.visible = seen
        return group

    def _end_block(self) -> None:
        """A basic graph pattern ends, and another may begin."""
        self._blocks += 1
        self.block = self._blocks

    def _takes_element(self) -> bool:
        """Reads the next element of a group, if there is one; it may be several triples."""
        token = self.peek()
        if self.begins_triples():
            self.triples()
            if self.begins_triples():
                raise self.unexpected("'.' between triples, or ';' for the same subject")
            return True
        if token.is_symbol("{"):
            made: GroupElement = self._alternatives()
        elif token.is_word("FILTER"):
            self.take()
            made = Filter(self.constraint())
        elif token.is_word("OPTIONAL"):
            self.take()
            made = Optionally(self.group())
        elif token.is_word("MINUS"):
            self.take()
            made = Minus(self.unseen_group())
        elif token.is_word("GRAPH"):
            self.take()
            made = self._in_graph()
        elif token.is_word("BIND"):
            self.take()
            made = self._bind()
        elif token.is_word("VALUES"):
            made = self.values()
        elif token.is_word("SERVICE"):
            raise self.unsupported("SERVICE is", token, "a pattern of the message itself")
        else:
            return False
        self.elements.append(made)
        if not isinstance(made, Filter):
            self._end_block()
        self.takes(".")
        return True

    def _alternatives(self) -> GroupElement:
        groups = [self.group()]
        while self.takes_word("UNION"):
            groups.append(self.group())
        return groups[0] if len(groups) == 1 else Alternatives(tuple(groups))

    def _in_graph(self) -> InGraph:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            graph: Iri | Variable = self.seen(self.variable())
        else:
            graph = self.iri()
        return InGraph(graph, self.group())

    def _bind(self) -> Bind:
        self.expect("(")
        value = self.expression()
        self.expect_word("AS")
        token = self.peek()
        variable = self.made_variable()
        if variable in self.visible:
            what = f"{token} has a value already"
            raise self.refusal("duplicate-variable", what, token.offset, "a name of its own")
        self.visible[variable] = None
        self.expect(")")
        return Bind(value, variable)

    def made_variable(self) -> Variable:
        """The variable behind AS."""
        variable = self.chosen_variable()
        self.given.add(variable.name)
        return variable

    def values(self) -> Values:
        self.take()
        variables: list[Variable] = []
        is_single = self.peek().kind is TokenKind.VARIABLE
        if is_single:
            variables.append(self.seen(self.variable()))
        else:
            self.expect("(")
            while not self.takes(")"):
                token = self.peek()
                variables.append(self.seen(self.variable()))
                if variables[-1] in variables[:-1]:
                    raise self.refusal("duplicate-variable", f"{token} twice", token.offset)
        self.expect("{")
        rows: list[tuple[Iri | LiteralTerm | None, ...]] = []
        while not self.takes("}"):
            token = self.peek()
            if is_single:
                row = [self._value()]
            else:
                self.expect("(", " or '}'")
                row = []
                while not self.takes(")"):
                    row.append(self._value())
            if len(row) != len(variables):
                what = f"{len(row)} values for {len(variables)} variables"
                raise self.refusal("values", what, token.offset, "a value for each, or UNDEF")
            rows.append(tuple(row))
            if len(rows) * max(1, len(variables)) > self.limits.steps_max:
                raise self.refusal(
                    "too-long", f"more than {self.limits.steps_max} values", token.offset
                )
        return Values(tuple(variables), tuple(rows))

    def _value(self) -> Iri | LiteralTerm | None:
        if self.takes_word("UNDEF"):
            return None
        if self.peek().kind in (TokenKind.IRI, TokenKind.NAME):
            return self.iri()
        literal = self.literal()
        if literal is None:
            raise self.unexpected("an IRI, a literal, UNDEF or the end of the values")
        return literal

    # -- taxonomies

    def _with_closures(self) -> list[GroupElement]:
        """The elements of the group that was read, with what they ask of the taxonomies.

        ``?p rdfs:subPropertyOf* P`` is of the triples with ``?p`` as their property;
        ``?c rdfs:subClassOf* C`` and ``C rdfs:subClassOf* ?c`` of the triple ``?x a ?c``.
        """
        for above in self.above:
            if above.property == SUB_PROPERTY:
                self._close_property(above)
            else:
                self._close_class(above)
        return self.elements

    def _close_property(self, above: Above) -> None:
        if not isinstance(above.value, Iri) or not isinstance(above.subject, Variable):
            return
        made: list[GroupElement] = []
        is_asked = False
        for element in self.elements:
            if not isinstance(element, TriplePattern) or element.property != above.subject:
                made.append(element)
                continue
            is_asked = True
            closed = replace(element, closure=Closure.PROPERTY, above=above.value.value)
            others = (element,) if element.closure is Closure.PROPERTY else ()
            made.extend(one for one in (*others, closed) if one not in made)
        if is_asked:
            self._close(above, made)

    def _close_class(self, above: Above) -> None:
        match above.subject, above.value:
            case Variable() as variable, Iri() as constant:
                closure = Closure.INSTANCE
            case Iri() as constant, Variable() as variable:
                closure = Closure.INSTANCE_ABOVE
            case _:
                return
        of_class = [
            element
            for element in self.elements
            if isinstance(element, TriplePattern)
            and (element.property, element.object) == (TYPE, variable)
        ]
        if len(of_class) == 1:
            closed = TriplePattern(of_class[0].subject, TYPE, constant, closure)
            made = [closed if element is of_class[0] else element for element in self.elements]
            self._close(above, made)
            self.visible.pop(variable, None)
            self.classes[variable] = above.token

    def _close(self, above: Above, made: list[GroupElement]) -> None:
        self.elements = [element for element in made if element is not above.stands_as]
        self.repeats -= 1
        self.unsaid_closures.append(above.token)


# -------------------------------------------------------------------------------------------------


_FORMS = "SELECT, CONSTRUCT or ASK"
_UPDATES = (
    *("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"),
)


class _Column(NamedTuple):
    """One of SELECT; ``outside``: the variables of its expression that are in no aggregate."""

    token: Token
    variable: Variable
    outside: tuple[Token, ...]
    value: FilterExpression | None = None

    @property
    def is_computed(self) -> bool:
        return self.value is not None


class SparqlParser(GroupParser):
    """One parser reads one text."""

    def query(self) -> GraphQuery:
        """The query; its ``results`` are left to the caller."""
        self.prologue()
        start = len(self.lexer.taken)
        token = self.peek()
        if token.is_word("SELECT"):
            query, _ = self._select_query()
        elif token.is_word("CONSTRUCT"):
            query = self._construct_query()
        elif token.is_word("ASK"):
            self.take()
            query = GraphQuery(QueryForm.ASK, self._solutions()[0])
        elif token.is_word("DESCRIBE"):
            query = self._describe_query()
        elif token.is_word(*_UPDATES):
            raise self.refusal(
                "unsupported", f"{token} changes data: a profile asks", token.offset, _FORMS
            )
        else:
            raise self.unexpected(_FORMS)
        if self.peek().kind is not TokenKind.END:
            raise self.unexpected("the end of the profile")
        return self._finished(query, start)

    def _finished(self, query: GraphQuery, start: int) -> GraphQuery:
        """With the whole text where that is needed, and blank nodes in the order of the tree."""
        where = query.where
        whole = ""
        self._check_classes(query)
        if self.is_whole or self.repeats:
            if self.unsaid_closures:
                raise self.unsupported(
                    "a question to the taxonomies, but a/rdfs:subClassOf*, beside what else this"
                    " query has is",
                    self.unsaid_closures[0],
                )
            whole = self._text_from(start)
            where = necessary_part(where)
        if self.blanks:
            found = dict.fromkeys(variable for variable in variables_of(where) if variable.is_blank)
            names = {variable: Variable(f"_:{place}") for place, variable in enumerate(found)}
            if any(old != new for old, new in names.items()):
                where = renamed(where, names)
        return GraphQuery(
            query.form, where, query.variables, query.is_distinct, query.template, whole=whole
        )

    def _text_from(self, start: int) -> str:
        taken = self.lexer.taken
        texts = [self.canonical(token) for token in taken]
        for first, end, text in self.replaced:
            texts[first:end] = [text, *[""] * (end - first - 1)]
        for place, token in enumerate(taken):  # some readers want a function's name and "(" as one
            if token.kind is TokenKind.WORD and taken[place + 1].is_symbol("("):
                texts[place : place + 2] = [f"{texts[place]}(", ""]
        return " ".join(filter(None, texts[start:]))

    def _check_classes(self, query: GraphQuery) -> None:
        """Refuses to tell which class it was that the taxonomies were asked of."""
        if self.classes:
            used = set(variables_of((query.where, query.variables, query.template)))
            for variable, token in self.classes.items():
                if variable in used:
                    raise self.unsupported(
                        f"?{variable.name}, a class that only the taxonomies tell, elsewhere is",
                        token,
                        "?x a/rdfs:subClassOf* <class>",
                    )

    # -- forms

    def _select_query(self) -> tuple[GraphQuery, tuple[Variable, ...]]:
        """SELECT up to VALUES, at the top or in a group; and the variables that are computed.

        ``where`` of a query that has a solution whatever there is, as ``count(*)`` has, is empty.
        """
        self.take()
        is_distinct = self.takes_word("DISTINCT")
        if not is_distinct:
            self.takes_word("REDUCED")
        aggregates = self.aggregates
        columns = self._columns()
        where, keys, is_grouped = self._solutions(aggregates)
        if not columns:
            if is_grouped and keys is not None:
                raise self.refusal("syntax", "SELECT * with GROUP BY", self.peek().offset)
            return GraphQuery(QueryForm.SELECT, where, tuple(self.visible), is_distinct), ()
        self._check_columns(columns, keys or frozenset(), is_grouped)
        variables = tuple(column.variable for column in columns)
        computed = tuple(column.variable for column in columns if column.is_computed)
        if not is_grouped:
            where = _with_computed(where, columns)
        return GraphQuery(QueryForm.SELECT, where, variables, is_distinct), computed

    def _columns(self) -> list[_Column]:
        """What is selected; nothing for ``*``."""
        if self.takes("*"):
            return []
        columns: list[_Column] = []
        while True:
            token = self.peek()
            if token.kind is TokenKind.VARIABLE:
                columns.append(_Column(token, self.chosen_variable(), ()))
            elif token.is_symbol("("):
                self.take()
                seen = len(self.outside)
                with self.aggregating():
                    value = self.expression()
                self.expect_word("AS")
                token = self.peek()
                variable = self.made_variable()
                columns.append(_Column(token, variable, tuple(self.outside[seen:]), value))
                self.expect(")")
            elif columns:
                return columns
            else:
                raise self.unexpected("'*', or variables: ?x ?y")

    def _check_columns(
        self, columns: list[_Column], keys: frozenset[Variable], is_grouped: bool
    ) -> None:
        known = set(keys)
        names: set[Variable] = set()
        for column in columns:
            variable, token = column.variable, column.token
            if variable in names or (column.is_computed and variable in self.visible):
                raise self.refusal("duplicate-variable", f"{token} is there twice", token.offset)
            names.add(variable)
            of_groups = column.outside if column.is_computed else (token,)
            for used in of_groups if is_grouped else ():
                if Variable(used.text) not in known:
                    what = f"{used} may have several values in a group"
                    wanted = f"{used} in GROUP BY, or an aggregate: sample(?{used.text})"
                    raise self.refusal("grouping", what, used.offset, wanted)
            known.add(variable)

    def _construct_query(self) -> GraphQuery:
        self.take()
        template: tuple[TriplePattern, ...]
        if self.peek().is_symbol("{"):
            template = self._template()
            where, _, _ = self._solutions()
            return GraphQuery(QueryForm.CONSTRUCT, where, template=template)
        self._no_dataset()
        self.expect_word("WHERE")
        where = Group(self._plain_triples())
        blanks = dict.fromkeys(one for one in variables_of(where) if one.is_blank)
        names = {blank: Variable(f"_:t{place}") for place, blank in enumerate(blanks)}
        self._modifiers()
        where = self._with_values(where)
        template = tuple(one for one in where.elements if isinstance(one, TriplePattern))
        return GraphQuery(QueryForm.CONSTRUCT, where, template=renamed(template, names))

    def _template(self) -> tuple[TriplePattern, ...]:
        outer = self.labels, self.blanks, self.visible, self.given
        self.labels, self.blanks, self.visible, self.given = {}, 0, {}, set()
        self.blank_mark = "_:t"
        triples = self._plain_triples()
        for token in self.lexer.taken:
            if token.kind is TokenKind.VARIABLE:
                self.asked.setdefault(token.text, token)
        self.labels, self.blanks, self.visible, self.given = outer
        self.blank_mark = "_:"
        return triples

    def _plain_triples(self) -> tuple[TriplePattern, ...]:
        """Triples in braces, without paths."""
        self.expect("{")
        self.has_paths = False
        if self.begins_triples():
            self.triples()
        self.expect("}", ", or '.' between triples")
        self.has_paths = True
        made, self.elements = self.elements, []
        return tuple(triple for triple in made if isinstance(triple, TriplePattern))

    def _describe_query(self) -> GraphQuery:
        """DESCRIBE: a graph, as of CONSTRUCT."""
        self.take()
        self.is_whole = True
        if not self.takes("*"):
            self._described()
            while self.peek().kind in (TokenKind.VARIABLE, TokenKind.IRI, TokenKind.NAME):
                self._described()
        if self.peek().is_word("WHERE", "FROM") or self.peek().is_symbol("{"):
            where, _, _ = self._solutions()
            return GraphQuery(QueryForm.CONSTRUCT, where)
        self._modifiers()
        return GraphQuery(QueryForm.CONSTRUCT, self._with_values(Group(())))

    def _described(self) -> None:
        if self.peek().kind is TokenKind.VARIABLE:
            self.chosen_variable()
        else:
            self.iri()

    # -- behind the form

    def _solutions(
        self, aggregates: int | None = None
    ) -> tuple[Group, frozenset[Variable] | None, bool]:
        """WHERE and all behind it: the pattern, the keys of GROUP BY, whether there are groups.

        ``aggregates``: how many were read before SELECT, None for another form.
        """
        where = self._where()
        keys, is_filtered = self._modifiers(may_group=aggregates is not None)
        is_grouped = keys is not None or is_filtered or self.aggregates > (aggregates or 0)
        if not is_grouped:
            return self._with_values(where), keys, is_grouped
        self._with_values(where)  # of groups
        return (where if keys else Group(())), keys, is_grouped

    def _no_dataset(self) -> None:
        if self.peek().is_word("FROM"):
            raise self.unsupported(
                "FROM is", self.peek(), "GRAPH; a profile asks each message, and nothing else"
            )

    def _where(self) -> Group:
        self._no_dataset()
        self.takes_word("WHERE")
        return self.group()

    def _modifiers(self, *, may_group: bool = False) -> tuple[frozenset[Variable] | None, bool]:
        """GROUP BY … OFFSET: the keys of groups, None without them; whether there is HAVING."""
        start = len(self.lexer.taken)
        keys = None
        if (token := self.peek()).is_word("GROUP", "HAVING") and not may_group:
            raise self.unsupported(f"{token} but in SELECT is", token)
        if self.takes_word("GROUP"):
            self.expect_word("BY")
            keys = frozenset(self._keys())
        is_filtered = self.takes_word("HAVING")
        if is_filtered:
            with self.aggregating():
                self.constraint()
                while self._begins_constraint():
                    self.constraint()
        if self.takes_word("ORDER"):
            self.expect_word("BY")
            with self.aggregating():
                self._order_key()
                while self._begins_constraint() or self._begins_order_key():
                    self._order_key()
        given: set[str] = set()
        while (token := self.peek()).is_word("LIMIT", "OFFSET"):
            if token.text.upper() in given:
                raise self.refusal("syntax", f"{token} is there twice", token.offset)
            given.add(token.text.upper())
            self.take()
            if not self.peek().text.isdecimal():
                raise self.unexpected("a number")
            self.take()
        if len(self.lexer.taken) > start:
            self.is_whole = True
        return keys, is_filtered

    def _keys(self) -> Iterator[Variable]:
        while True:
            token = self.peek()
            if token.kind is TokenKind.VARIABLE:
                yield self.chosen_variable()
            elif token.is_symbol("("):
                self.take()
                self.expression()
                if self.takes_word("AS"):
                    yield self.made_variable()
                self.expect(")")
            else:
                self.constraint()
            if self.peek().kind is not TokenKind.VARIABLE and not self._begins_constraint():
                return

    def _begins_constraint(self) -> bool:
        token = self.peek()
        if token.kind in (TokenKind.IRI, TokenKind.NAME):
            return True
        return token.is_symbol("(") or self.is_built_in(token)

    def _begins_order_key(self) -> bool:
        return self.peek().kind is TokenKind.VARIABLE or self.peek().is_word("ASC", "DESC")

    def _order_key(self) -> None:
        token = self.peek()
        if token.is_word("ASC", "DESC"):
            self.take()
            if not self.peek().is_symbol("("):
                raise self.unexpected("'('")
        if self.peek().kind is TokenKind.VARIABLE:
            self.chosen_variable()
        else:
            self.constraint()

    def _with_values(self, where: Group) -> Group:
        """With VALUES behind all else."""
        if not self.peek().is_word("VALUES"):
            return where
        return Group((where, self.values()))

    def subquery(self) -> None:
        """``{ SELECT … }``: its pattern is necessary; what it does not select is its own."""
        self.is_whole = True
        aggregates = self.aggregates
        query, computed = self._select_query()
        self.aggregates = aggregates
        own = dict.fromkeys(variables_of(query.where))
        names = {one: self.blank() for one in own if one not in query.variables}
        where = renamed(query.where, names)
        lost = computed if where.elements else query.variables
        self.elements.append(weakened(where, lost))
        self.visible = dict.fromkeys(query.variables)


def _with_computed(where: Group, columns: list[_Column]) -> Group:
    """The pattern with what is computed of each of its solutions: SELECT (?x + 1 AS ?y)."""
    made = [Bind(column.value, column.variable) for column in columns if column.value is not None]
    if not made:
        return where
    # What stands in the pattern does not see it.
    is_seen = not {each.variable for each in made}.isdisjoint(variables_of(where))
    return Group(((where,) if is_seen else where.elements) + tuple(made))
