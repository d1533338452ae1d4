"""SQL text -> checked query graph: which units a query joins, by which predicates and steps.

A FROM with inner joins is one set of units.  An outer join takes one unit on its right; a composite
side becomes a block whose columns keep their full names behind its alias.  Of a subquery in an
expression, what does not look outside is a block as well, a *view*: the text keeps the rest and
names the view as its relation.  So any subquery may look outside as Spark allows it, and the block
is planned, moved and read like every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from sqlglot import exp

from registration.queries.providers import Column, Market
from registration.queries.query_graph import Output, Predicate, QueryGraph, Step, Unit, quoted
from registration.queries.sql_functions import AGGREGATES, GENERATORS
from registration.queries.sql_language import (
    QuerySql,
    Text,
    conjuncts,
    print_sql,
)
from registration.queries.sql_names import Cte, Names, branches_of

_NARROW = ("boolean", "tinyint", "smallint", "int", "date", "bigint", "float", "double")


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """``sql``: the text of the checked tree, over the relations as the user named them."""

    graph: QueryGraph
    sql: str


def read_query(text: str, market: Market) -> CheckedQuery:
    """QueryRefused with code and place: syntax, forbidden-sql, unknown-relation, unknown-column,
    unknown-function, ambiguous."""
    place = Text(text)
    try:
        tree = place.parse()
        names = Names(place, market)
        names.query(tree, None, {})
        sql = print_sql(tree)
        return CheckedQuery(_Reader(place, names).graph(tree), sql)
    except RecursionError:
        raise place.refuse("syntax", "the query is nested too deeply", 0) from None


class _FlatGenerator(QuerySql.Generator):  # type: ignore[misc,valid-type]
    """Prints columns by their full names, and calls that a step makes by the step's column."""

    def column_sql(self, expression: exp.Column) -> str:
        full = expression.meta.get("full", ())
        if not full:
            return quoted(expression.name)
        said = ", ".join(map(quoted, full))
        return said if len(full) == 1 else f"coalesce({said})"

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        made = expression.meta.get("step")
        return quoted(made) if made else str(super().anonymous_sql(expression))


class _Flat(QuerySql):
    Generator = _FlatGenerator


def _output(name: str, type_: str, text: Callable[[], str]) -> Output:
    return Output(name, type_, text())


def _flat(node: exp.Expr) -> str:
    return print_sql(node, _Flat)


@dataclass(slots=True)
class _Block:
    """A FROM and its conditions so far; bits of units and steps are places."""

    units: list[Unit] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    outer: list[tuple[str, int, int, str]] = field(default_factory=list)
    made: dict[str, int] = field(default_factory=dict)
    """The step by its text."""
    views: int = 0

    @property
    def joined(self) -> int:
        """Bits of all units that are no views."""
        return ((1 << len(self.units)) - 1) & ~self.views

    def above_outer_joins(self, units: int) -> int:
        """With both sides of each join that makes columns of these units null."""
        for kind, left, right, _ in reversed(self.outer):
            if units & {"left": right, "full": left | right}.get(kind, 0):
                units |= left | right
        return units

    def bits(self, nodes: Iterable[exp.Expr]) -> tuple[int, int]:
        """Units and steps whose columns stand in some trees."""
        units = {unit.alias: 1 << place for place, unit in enumerate(self.units)}
        steps = {
            column.name: 1 << place
            for place, step in enumerate(self.steps)
            for column in step.columns
        }
        found = made = 0
        for full in _columns(nodes):
            made |= steps.get(full, 0)
            found |= units.get(full.partition(".")[0], 0)
        return found, made


def _columns(nodes: Iterable[exp.Expr]) -> Iterator[str]:
    """Full names in trees: of columns, and of calls that steps make (not of their arguments)."""
    for node in _within(nodes, lambda each: "step" in each.meta):
        if made := node.meta.get("step"):
            yield made
        elif isinstance(node, exp.Column):
            yield from node.meta.get("full", ())
        elif isinstance(node, exp.Table) and "view" in node.meta:
            yield f"{node.name}."


def _within(nodes: Iterable[exp.Expr], last: Callable[[exp.Expr], bool]) -> Iterator[exp.Expr]:
    """The nodes of trees, not those below one that is the ``last``."""
    for node in nodes:
        yield from node.walk(bfs=False, prune=last)


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _core(node: exp.Expr) -> exp.Expr:
    """A query without the parentheses around it."""
    return node.unnest() if isinstance(node, exp.Subquery) else node


class _Reader:
    def __init__(self, text: Text, names: Names) -> None:
        self._text = text
        self._names = names

    def graph(self, node: exp.Expr, keep: Iterable[str] | None = None) -> QueryGraph:
        """Of a query whose names are known.  ``keep``: names in lower case of the columns that
        anybody asks for, None: all."""
        names, node = node.meta["names"], _core(node)
        node.meta["names"] = names
        if isinstance(node, exp.SetOperation):
            return self._combined(node)
        assert isinstance(node, exp.Select)
        block = self._from(node)
        self._steps_of(node, block)
        if node.args.get("where"):
            block.conditions += conjuncts(node.args["where"].this)
        select = self._select(node, block, keep)
        tail = [node.args[key] for key in ("having", "order") if node.args.get(key)]
        self._views([*node.expressions, *tail], block)
        group = node.args.get("group")
        having = node.args.get("having")
        aggregated = group is not None or any(map(_aggregates, (*node.expressions, *tail)))
        return self._finished(
            block,
            [made() for made in select],
            group=_group_texts(group) if group is not None else (),
            having=_flat(having.this) if having is not None else "",
            distinct=node.args.get("distinct") is not None,
            aggregated=aggregated,
            **_tail(node),
        )

    def _select(
        self, node: exp.Select, block: _Block, keep: Iterable[str] | None
    ) -> list[Callable[[], Output]]:
        """Each output column, to be printed when all columns have their last names."""
        positions = [
            each
            for key in ("group", "order")
            if node.args.get(key)
            for each in node.args[key].find_all(exp.Literal, exp.Var)
        ]
        all_kept = keep is None or bool(node.args.get("distinct")) or bool(positions)
        aliases = {
            column.name.casefold() for column in node.find_all(exp.Column)
            if column.meta.get("full") == ()
        }  # fmt: skip
        wanted = {*(keep or ()), *aliases}
        found: list[Callable[[], Output]] = []
        names = iter(zip(node.meta["names"], node.meta["outputs"], strict=True))
        for item in node.expressions:
            value = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
            for text in self._values(value, block):
                name, type_ = next(names)
                if all_kept or name.casefold() in wanted:
                    found.append(partial(_output, name, type_, text))
        return found or [partial(Output, "one", "int", "1")]

    def _values(self, value: exp.Expr, block: _Block) -> list[Callable[[], str]]:
        """Texts of an item of the select list: one, or the columns of a generator."""
        if not (isinstance(value, exp.Anonymous) and value.name.lower() in GENERATORS):
            return [partial(_flat, value)]
        unit = self._names.new_unit(value.name)
        step = self._unnest(value, unit, value.meta["columns"], block)
        return [partial(quoted, column.name) for column in step.columns]

    def _finished(self, block: _Block, select: list[Output], **parts: object) -> QueryGraph:
        predicates = [self._predicate(each, block) for each in block.conditions]
        return QueryGraph(
            tuple(block.units),
            tuple(predicates),
            tuple(block.steps),
            tuple(select),
            tuple(block.outer),
            **parts,  # type: ignore[arg-type]
        )

    def _predicate(self, node: exp.Expr, block: _Block) -> Predicate:
        self._views([node], block)
        units, steps = block.bits([node])
        if units and not units & block.joined:
            units |= block.joined  # about views alone: rows that it keeps are those of all others
        equal: tuple[str, ...] = ()
        if isinstance(node, exp.EQ):
            sides = [side.meta.get("full", ()) for side in (node.this, node.expression)]
            two = [full[0] for full in sides if len(full) == 1]
            if len(two) == 2 and len({each.partition(".")[0] for each in two}) == 2:
                equal = tuple(two)
        return Predicate(units, _flat(node), equal if not steps else (), steps)

    def _combined(self, node: exp.SetOperation) -> QueryGraph:
        branches = branches_of(node)
        units = []
        for branch in branches:
            names = self._distinct_names(branch)
            graph = self.graph(branch)
            alias = self._names.new_unit("branch")
            columns = [
                Column(name, each.type) for name, each in zip(names, graph.select, strict=True)
            ]
            units.append(Unit(alias, tuple(columns), block=graph))
        first = units[0]
        typed = zip(node.meta["names"], node.meta["outputs"], first.columns, strict=True)
        select = [Output(name, t, quoted(f"{first.alias}.{c.name}")) for name, t, c in typed]
        kind = type(node).__name__.lower() + ("" if node.args.get("distinct") else " all")
        block = _Block(units)
        return self._finished(block, select, combine=kind, **_tail(node))

    def _distinct_names(self, node: exp.Expr) -> tuple[str, ...]:
        """Names of a query's columns, made up where they do not tell the columns apart."""
        names: tuple[str, ...] = node.meta["names"]
        if len({each.casefold() for each in names}) < len(names):
            asked = [c for c in node.find_all(exp.Column) if c.meta.get("full") == ()]
            if asked:
                reason = "several columns of this query have one name"
                raise self._text.refuse("ambiguous", reason, asked[0], "give them names by AS")
            names = tuple(f"c{place}" for place in range(len(names)))
            node.meta["names"] = names
        return names

    # FROM

    def _from(self, node: exp.Select) -> _Block:
        block = _Block()
        self._relation(node.args["from_"].this, block)
        for join in node.args.get("joins") or ():
            self._join(join, node, block)
        for lateral in node.args.get("laterals") or ():
            call = lateral.this
            outer = bool(lateral.args.get("outer"))
            self._functions([call], block)
            self._unnest(call, lateral.meta["unit"], lateral.meta["columns"], block, outer)
        return block

    def _relation(self, node: exp.Expr, block: _Block) -> None:
        """Add a relation, or the joined ones in parentheses."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self._relation(node.this, block)
            for join in (*(node.this.args.get("joins") or ()), *(node.args.get("joins") or ())):
                self._join(join, node, block)
            return
        alias = node.meta["unit"]
        used = self._names.used[alias]
        read = self._names.reads.get(alias)
        if isinstance(node, exp.Subquery) or isinstance(read, Cte):
            query = read.query.copy() if isinstance(read, Cte) else node.this
            graph = self.graph(query, used)
            kept = [Column(each.name, each.type) for each in graph.select]
            block.units.append(Unit(alias, tuple(kept), block=graph))
            return
        assert read is not None
        columns = tuple(used.values()) or (_narrowest(read.relation.columns),)
        block.units.append(Unit(alias, columns, read.relation, arguments=read.arguments))

    def _join(self, join: exp.Join, within: exp.Expr, block: _Block) -> None:
        on = [*conjuncts(join.args.get("on")), *_merged(join)]
        kind = (join.kind if join.kind in ("SEMI", "ANTI") else join.side).lower()
        if not kind:
            self._relation(join.this, block)
            block.conditions += on
            return
        for each in on:
            if each.find(exp.Query) or any("function" in n.meta for n in each.walk()):
                reason = "subqueries and functions of providers are not allowed here"
                hint = "put them into a subquery that is joined"
                raise self._text.refuse("forbidden-sql", reason, each, hint)
        right = _Block()
        self._relation(join.this, right)
        if kind == "right":
            kept, nulled = right, block
        else:
            kept, nulled = block, right
        alone = [] if kind == "full" else [each for each in on if not kept.bits([each])[0]]
        on = [each for each in on if not any(each is one for one in alone)]
        self._wrap(nulled, alone, [within, *on])
        if kind == "full":
            self._wrap(kept, [], [within, *on])
        block.units, unit = [*kept.units, *nulled.units], 1 << len(kept.units)
        block.conditions, block.outer = kept.conditions, kept.outer
        needed = block.above_outer_joins(block.bits(on)[0] & ~unit)
        left = needed if needed and kind != "full" else unit - 1
        text = " AND ".join(f"({_flat(each)})" for each in on) or "true"
        block.outer.append(("left" if kind == "right" else kind, left, unit, text))

    def _wrap(self, block: _Block, alone: list[exp.Expr], rest: list[exp.Expr]) -> None:
        """Make a side of an outer join one unit, with the conditions that are about it ``alone``;
        a composite one is a block, whose columns get other full names in ``rest``."""
        if len(block.units) == 1 and not block.conditions and not alone:
            return
        inner = _Block(block.units, [*block.conditions, *alone], outer=block.outer)
        graph, columns = self._whole(inner)
        alias = self._names.new_unit("join")
        block.units, block.conditions, block.outer = [Unit(alias, columns, block=graph)], [], []
        names = {each.name: f"{alias}.{each.name}" for each in columns}
        for column in (each for node in rest for each in node.find_all(exp.Column)):
            if column.meta.get("full"):
                column.meta["full"] = tuple(names.get(each, each) for each in column.meta["full"])
        for join in (each for node in rest for each in node.find_all(exp.Join)):
            join.meta["using"] = tuple(
                ("\0".join(names.get(each, each) for each in one.split("\0")), two, type_)
                for one, two, type_ in join.meta.get("using", ())
            )

    def _whole(self, block: _Block) -> tuple[QueryGraph, tuple[Column, ...]]:
        """A block that gives all its columns, by their full names."""
        hidden = 0
        for kind, _, right, _ in block.outer:
            hidden |= right if kind in ("semi", "anti", "filter") else 0
        columns = [
            Column(f"{unit.alias}.{each.name}", each.type)
            for place, unit in enumerate(block.units)
            if not hidden >> place & 1
            for each in unit.columns
        ]
        columns += (column for step in block.steps for column in step.columns)
        select = [Output(each.name, each.type, quoted(each.name)) for each in columns]
        return self._finished(block, select), tuple(columns)

    # steps

    def _unnest(
        self,
        call: exp.Anonymous,
        unit: str,
        columns: Iterable[tuple[str, str]],
        block: _Block,
        outer: bool = False,
    ) -> Step:
        units, steps = block.bits(call.expressions)
        made = tuple(Column(f"{unit}.{name}", type_) for name, type_ in columns)
        arguments = tuple(dict.fromkeys(_columns(call.expressions)))
        outer |= call.name.lower().endswith("_outer")
        name = call.name.lower().removesuffix("_outer")
        text = f"{name}({', '.join(map(_flat, call.expressions))})"
        step = Step(units, text, made, arguments, steps, outer=outer)
        block.steps.append(step)
        return step

    def _steps_of(self, node: exp.Select, block: _Block) -> None:
        keys = ("where", "group", "having", "order")
        parts = [node.args[key] for key in keys if node.args.get(key)]
        self._functions([*block.conditions, *node.expressions, *parts], block)

    def _functions(self, nodes: Iterable[exp.Expr], block: _Block) -> None:
        """A step for each call of a function of a provider, those in arguments first."""
        for call in [c for node in nodes for c in _calls(node)]:
            if call.meta.get("step"):
                continue
            for each in call.walk():
                aggregate = isinstance(each, exp.Anonymous) and each.name.lower() in AGGREGATES
                alias = isinstance(each, exp.Column) and not each.meta.get("full")
                if aggregate or alias or isinstance(each, exp.Window | exp.Query):
                    reason = f"{call.name} takes columns of relations, not what the query makes"
                    hint = "put the argument into a subquery"
                    raise self._text.refuse("forbidden-sql", reason, each, hint)
            if call.find_ancestor(exp.Lambda):
                reason = f"{call.name} is not allowed inside of ->"
                raise self._text.refuse("forbidden-sql", reason, call)
            alternatives = self._names.functions(call)
            name = alternatives[0].name
            text = f"{quoted(name)}({', '.join(map(_flat, call.expressions))})"
            place = block.made.get(text)
            if place is None:
                units, steps = block.bits(call.expressions)
                if not units and not steps:
                    reason = f"{call.name} takes at least one column"
                    raise self._text.refuse("forbidden-sql", reason, call)
                unit = self._names.new_unit(name)
                made = (Column(f"{unit}.value", alternatives[0].outputs[0][1]),)
                arguments = tuple(dict.fromkeys(_columns(call.expressions)))
                place = block.made[text] = len(block.steps)
                block.steps.append(Step(units, text, made, arguments, steps, alternatives))
            call.meta["step"] = block.steps[place].columns[0].name

    # subqueries in expressions

    def _views(self, nodes: Iterable[exp.Expr], block: _Block) -> None:
        """Make what subqueries read views of this block."""
        for node in nodes:
            for query in list(_queries(node)):
                views = self._view(query, block)
                left = block.above_outer_joins(block.bits([node])[0] & block.joined)
                for place in views:
                    block.views |= 1 << place
                    block.outer.append(
                        ("filter", left & ~(1 << place) or block.joined, 1 << place, "")
                    )

    def _view(self, query: exp.Expr, block: _Block) -> list[int]:
        """Places of the new units."""
        inside = {each.meta["unit"] for each in query.walk() if "unit" in each.meta}
        aliases = {full.partition(".")[0] for full in _columns([query])}
        core = _core(query)
        alias = self._names.new_unit("view")
        if aliases <= inside | self._made_in(query):
            names = self._distinct_names(core)
            graph = self.graph(core)
            columns = tuple(
                Column(name, each.type) for name, each in zip(names, graph.select, strict=True)
            )
            items = [exp.Column(this=exp.to_identifier(name, quoted=True)) for name in names]
            core.replace(_over(exp.Select(expressions=items), alias))
            block.units.append(Unit(alias, columns, block=graph))
            return [len(block.units) - 1]
        if not isinstance(core, exp.Select) or core.args.get("laterals"):
            reason = "a UNION or LATERAL VIEW in a subquery cannot name columns outside of it"
            raise self._text.refuse("forbidden-sql", reason, query)
        inner = self._from(core)
        if core.args.get("where"):
            inner.conditions += conjuncts(core.args["where"].this)
        outside = aliases - inside
        rest = [
            each
            for each in inner.conditions
            if any(full.partition(".")[0] in outside for full in _columns([each]))
        ]
        inner.conditions = [c for c in inner.conditions if not any(c is one for one in rest)]
        parts = [core.args[key] for key in ("group", "having", "order") if core.args.get(key)]
        self._functions([*inner.conditions, *rest, *core.expressions, *parts], inner)
        graph, columns = self._whole(inner)
        _over(core, alias)
        core.set("where", exp.Where(this=_all_of(rest)) if rest else None)
        block.units.append(Unit(alias, columns, block=graph))
        places = [len(block.units) - 1]
        for nested in [q for part in (*core.expressions, *rest, *parts) for q in _queries(part)]:
            places += self._view(nested, block)
        return places

    @staticmethod
    def _made_in(query: exp.Expr) -> set[str]:
        return {
            each.meta["step"].partition(".")[0] for each in query.walk() if each.meta.get("step")
        }


def _over(select: exp.Select, view: str) -> exp.Select:
    """The query, with a view as all that it reads."""
    table = exp.Table(this=exp.to_identifier(view, quoted=True))
    table.meta["view"] = True
    select.set("from_", exp.From(this=table))
    for key in ("joins", "laterals"):
        select.set(key, None)
    return select


def _all_of(conditions: list[exp.Expr]) -> exp.Expr:
    found = conditions[0]
    for each in conditions[1:]:
        found = exp.And(this=_parens(found), expression=_parens(each))
    return found


def _parens(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Or) else node


def _queries(node: exp.Expr) -> Iterator[exp.Expr]:
    """Subqueries in an expression, not those in them nor those that read views already."""
    for each in _within([node], _is_query):
        if _is_query(each):
            source = _core(each).args.get("from_")
            if source is None or "view" not in source.this.meta:
                yield each


def _calls(node: exp.Expr) -> list[exp.Anonymous]:
    """Calls of functions of providers, arguments before calls, without those in subqueries."""
    found = (each for each in _within([node], _is_query) if "function" in each.meta)
    return [each for each in found if isinstance(each, exp.Anonymous)][::-1]


def _aggregates(node: exp.Expr) -> bool:
    """Some call in it makes one value of many rows."""
    return any(
        isinstance(each, exp.Anonymous)
        and each.name.lower() in AGGREGATES
        and not isinstance(each.parent, exp.Window)
        for each in _within([node], _is_query)
    )


def _merged(join: exp.Join) -> Iterator[exp.Expr]:
    """Equalities that USING stands for."""
    for one, two, type_ in join.meta.get("using", ()):
        sides = []
        for full in (one, two):
            column = exp.Column(this=exp.to_identifier("using"))
            column.meta["full"], column.meta["type"] = tuple(full.split("\0")), type_
            sides.append(column)
        yield exp.EQ(this=sides[0], expression=sides[1])


def _group_texts(group: exp.Group) -> tuple[str, ...]:
    if group.args.get("all"):
        return ("ALL",)
    found = [_flat(each) for each in group.expressions]
    for key in ("rollup", "cube"):
        for each in group.args.get(key) or ():
            if each.expressions:
                found.append(_flat(each))
            else:
                found = [f"{key.upper()} ({', '.join(found)})"]
    return (*found, *(_flat(each) for each in group.args.get("grouping_sets") or ()))


def _tail(node: exp.Expr) -> dict[str, object]:
    order = node.args.get("order")
    limit, offset = node.args.get("limit"), node.args.get("offset")
    return {
        "order": tuple(map(_flat, order.expressions)) if order is not None else (),
        "limit": int(limit.expression.name) if limit is not None else None,
        "offset": int(offset.expression.name) if offset is not None else 0,
    }


def _narrowest(columns: tuple[Column, ...]) -> Column:
    """Of a relation that is only counted."""
    if not columns:
        return Column("source", "string")
    return min(columns, key=lambda c: _NARROW.index(c.type) if c.type in _NARROW else 99)
