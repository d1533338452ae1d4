"""Text of a graph profile -> GraphQuery.  Every refusal says where, and what was expected there.

The grammar is that of SPARQL 1.1 queries, without FROM and SERVICE.  What the tree can say it says
alone; of the rest it has a necessary part, and the whole text with all names in full.

The parser is one class in layers, each in its file: terms, filters, triples, and here groups and
queries.  It is recursive, and bounded by ``ProfileLimits``.  ``docs/graphs.md`` documents the
language.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from yfilter.graph.group_parser import GroupParser
from yfilter.graph.necessary_part import necessary_part, weakened
from yfilter.graph.query_ast import (
    Bind,
    FilterExpression,
    GraphQuery,
    Group,
    QueryForm,
    TriplePattern,
    Variable,
)
from yfilter.graph.tree_walk import renamed, variables_of
from yfilter.language.tokens import Token, TokenKind

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
        self.check_bound()
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
