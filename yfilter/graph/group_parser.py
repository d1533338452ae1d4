"""Parses groups of a graph profile: triples, filters, and groups in groups."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from yfilter.graph.property_paths import SUB_PROPERTY, TYPE
from yfilter.graph.query_ast import (
    Alternatives,
    Bind,
    Closure,
    Filter,
    Group,
    GroupElement,
    InGraph,
    Iri,
    LiteralTerm,
    Minus,
    Optionally,
    TriplePattern,
    Values,
    Variable,
)
from yfilter.graph.triple_parser import Above, TripleParser
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.tokens import Token, TokenKind

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
