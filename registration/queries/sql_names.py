"""Names in a query: each column gets its unit and its type, or its place is refused.

The tree is changed in place: stars become columns, fields of structs stand behind their column,
named windows are written where they are used.  Found out for later, in ``meta`` of nodes (plain
values, so copies have it):

=================  =================================================================
column             ``full``: its full names (two of a column that ``USING`` merges in
                   a full join), or none of an alias of the select list; ``type``
table, subquery    ``unit``: its alias, unique in the query; of a lateral view as well
query              ``names`` and ``outputs``: names and types of its columns
call               ``function``: a function of a function provider
=================  =================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import exp

from registration.queries import sql_types
from registration.queries.column_types import NoType, read_columns
from registration.queries.providers import Column, Function, Market, Relation
from registration.queries.refusals import did_you_mean
from registration.queries.sql_functions import AGGREGATES, FUNCTIONS, GENERATORS
from registration.queries.sql_language import Text
from registration.queries.sql_types import type_of

_ARCHIVED = {"source": "string", "number": "bigint", "time": "timestamp"}
_OF_MESSAGES = {**_ARCHIVED, "media_type": "string", "message": "binary"}
_OF_RESULTS = {**_ARCHIVED, "profile": "string", "ordinal": "int"}
_ARCHIVE_OPTIONS = ("profile", "columns")
_SAVED_MAX = 20


class Cte(NamedTuple):
    """A query that has a name: of WITH, or saved as a relation."""

    query: exp.Query
    columns: tuple[Column, ...]


class Read(NamedTuple):
    relation: Relation
    arguments: tuple[tuple[str, str], ...]


class Meaning(NamedTuple):
    """Of a name in scope.  ``columns``: (unit, column) of a column, two of a merged one, none of an
    alias."""

    columns: tuple[tuple[str, Column], ...]
    type: str

    @property
    def full(self) -> tuple[str, ...]:
        return tuple(f"{unit}.{column.name}" for unit, column in self.columns)


@dataclass(frozen=True, slots=True)
class Source:
    """A relation in scope; ``columns`` by their names in lower case."""

    alias: str
    path: tuple[str, ...]
    columns: dict[str, Meaning]

    @classmethod
    def of(cls, unit: str, alias: str, path: tuple[str, ...], columns: Iterable[Column]) -> Source:
        found: dict[str, Meaning] = {}
        for each in columns:
            found.setdefault(each.name.casefold(), Meaning(((unit, each),), each.type))
        return cls(alias.casefold(), path, found)

    @property
    def names(self) -> list[str]:
        """Of the columns, as they were registered."""
        return [each.columns[0][1].name for each in self.columns.values()]


@dataclass(slots=True)
class Scope:
    """``aliases``: names of the select list in lower case; ``aliases_first``: they are asked before
    columns, as in ORDER BY.  ``merged``: by USING."""

    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, Meaning] = field(default_factory=dict)
    aliases: dict[str, Meaning] = field(default_factory=dict)
    aliases_first: bool = False

    def called(self, *parts: str) -> list[Source]:
        """The relations of an alias, or of the two names of a relation; all, of no part."""
        return [each for each in self.sources if not parts or parts in ((each.alias,), each.path)]


class Names:
    """Of one text, for one market."""

    def __init__(self, text: Text, market: Market, saved: tuple[str, ...] = ()) -> None:
        self._text = text
        self._market = market
        self._saved = saved
        self._relations = {r.name.casefold(): r for r in market.relations.values()}
        self.reads: dict[str, Read | Cte] = {}
        """By unit; of a subquery in FROM the tree has it."""
        self.used: dict[str, dict[str, Column]] = {}
        """Columns that the query needs, by unit and name in lower case."""

    def query(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Cte]) -> list[Column]:
        """Names and types of a query's output; QueryRefused."""
        ctes = dict(ctes)
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            columns = self._renamed(cte, self.query(cte.this, None, ctes))
            ctes[cte.alias.casefold()] = Cte(cte.this, tuple(columns))
        match node:
            case exp.Subquery():
                self._refuse_parts(node, "order", "limit", "offset", "alias", "joins")
                found = self.query(node.this, parent, ctes)
            case exp.SetOperation():
                found = self._combined(node, parent, ctes)
            case exp.Select():
                found = self._select(node, parent, ctes)
            case _:
                raise self._text.refuse("forbidden-sql", "a query is a SELECT", node)
        node.meta["names"] = tuple(each.name for each in found)
        node.meta["outputs"] = tuple(each.type for each in found)
        return found

    def _refuse_parts(self, node: exp.Expr, *keys: str) -> None:
        for key in keys:
            if node.args.get(key):
                at = node.args[key]
                reason = f"{key.upper()} of a query in parentheses is not allowed"
                raise self._text.refuse(
                    "forbidden-sql", reason, at if isinstance(at, exp.Expr) else node
                )

    def _combined(
        self, node: exp.SetOperation, parent: Scope | None, ctes: dict[str, Cte]
    ) -> list[Column]:
        branches = [self.query(each, parent, ctes) for each in branches_of(node)]
        first = branches[0]
        for other in branches[1:]:
            if len(other) != len(first):
                reason = f"queries of {len(first)} and of {len(other)} columns cannot be one"
                raise self._text.refuse("forbidden-sql", reason, node.expression)
            first = [
                replace(one, type=sql_types.common(one.type, two.type))
                for one, two in zip(first, other, strict=True)
            ]
        scope = Scope(aliases=_aliases(first), aliases_first=True)
        self._tail(node, scope)
        return first

    def _select(self, node: exp.Select, parent: Scope | None, ctes: dict[str, Cte]) -> list[Column]:
        scope = Scope(parent)
        if not node.args.get("from_"):
            raise self._text.refuse("forbidden-sql", "a SELECT without FROM reads nothing", node)
        self._from(node, scope, ctes)
        for lateral in node.args.get("laterals") or ():
            self._lateral(lateral, scope, ctes)
        self._windows(node)
        where = node.args.get("where")
        if where is not None:
            self._expression(where, scope, ctes, "WHERE")
        self._stars(node, scope)
        found: list[Column] = []
        for item in list(node.expressions):
            name, place = _name_of(item), item.index
            self._expression(item, scope, ctes)
            resolved = node.expressions[place]
            for each, type_ in self._outputs(resolved, name):
                found.append(Column(each, type_))
                if isinstance(resolved, exp.Alias | exp.Aliases):
                    scope.aliases.setdefault(each.casefold(), Meaning((), type_))
        group = node.args.get("group")
        if group is not None:
            self._expression(group, scope, ctes, "GROUP BY")
        scope.aliases |= _aliases(found)
        scope.aliases_first = True
        for key in ("having", "order"):
            if node.args.get(key) is not None:
                self._expression(node.args[key], scope, ctes)
        self._tail(node, None)
        return found

    def _tail(self, node: exp.Expr, scope: Scope | None) -> None:
        """ORDER BY of a combination, LIMIT and OFFSET, which are plain numbers."""
        if scope is not None and node.args.get("order"):
            self._expression(node.args["order"], scope, {})
        for key in ("limit", "offset"):
            part = node.args.get(key)
            if part is not None and not (
                isinstance(part.expression, exp.Literal) and part.expression.name.isdecimal()
            ):
                raise self._text.refuse("forbidden-sql", f"{key.upper()} takes a number", part)

    def _windows(self, node: exp.Select) -> None:
        """Named windows are written where they are used."""
        named = {each.name.casefold(): each for each in node.args.get("windows") or ()}
        for window in list(node.find_all(exp.Window)):
            alias = window.args.get("alias")
            if alias is None or window in named.values():
                continue
            meant = named.get(alias.name.casefold())
            if meant is None or window.args.get("partition_by") or window.args.get("order"):
                reason = f"there is no window {alias.name} to be used as it is"
                raise self._text.refuse("syntax", reason, window)
            window.set("alias", None)
            for key in ("partition_by", "order", "spec"):
                part = meant.args.get(key)
                copies = [each.copy() for each in part] if isinstance(part, list) else part
                window.set(key, copies.copy() if isinstance(copies, exp.Expr) else copies)
        node.set("windows", None)

    # FROM

    def _from(self, node: exp.Select, scope: Scope, ctes: dict[str, Cte]) -> None:
        self._source(node.args["from_"].this, scope, ctes)
        self._joins(node.args.get("joins") or (), scope, ctes)

    def _joins(self, joins: Iterable[exp.Join], scope: Scope, ctes: dict[str, Cte]) -> None:
        comma = False
        for join in joins:
            side = join.side or join.kind
            comma |= not side and not join.args.get("on") and not join.args.get("using")
            if comma and side in ("RIGHT", "FULL"):
                hint = "write CROSS JOIN in place of the comma"
                reason = f"a {side} join beside a comma may mean two things"
                raise self._text.refuse("ambiguous", reason, join, hint)
            before, merged = len(scope.sources), dict(scope.merged)
            self._source(join.this, scope, ctes)
            if join.args.get("on"):
                self._expression(join.args["on"], scope, ctes, "ON")
            for name in join.args.get("using") or ():
                self._merge(name, join, scope, before)
            if join.kind in ("SEMI", "ANTI"):
                del scope.sources[before:]
                scope.merged = merged

    def _merge(self, name: exp.Expr, join: exp.Join, scope: Scope, before: int) -> None:
        sides = (
            Scope(None, scope.sources[:before], scope.merged),
            Scope(None, scope.sources[before:]),
        )
        one, other = (self._side(side, name) for side in sides)
        pair = "\0".join(one.full), "\0".join(other.full), sql_types.common(one.type, other.type)
        join.meta["using"] = (*join.meta.get("using", ()), pair)
        both = Meaning(one.columns + other.columns, one.type)
        kept = {"RIGHT": other, "FULL": both}.get(join.side, one)
        scope.merged[name.name.casefold()] = kept

    def _side(self, side: Scope, at: exp.Expr) -> Meaning:
        """The column of that name beside a join."""
        key = at.name.casefold()
        found = [each.columns[key] for each in side.sources if key in each.columns]
        if key in side.merged:
            found = [side.merged[key]]
        if len(found) != 1:
            code = "ambiguous" if found else "unknown-column"
            known = [name for source in side.sources for name in source.names]
            reason = (
                f"{len(found) or 'none'} of the relations beside the join has a column {at.name}"
            )
            raise self._text.refuse(code, reason, at, did_you_mean(at.name, known))  # type: ignore[arg-type]
        self._use(found[0])
        return found[0]

    def _source(self, node: exp.Expr, scope: Scope, ctes: dict[str, Cte]) -> None:
        alias = node.args.get("alias")
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self._refuse_parts(node, "alias")
            inner = node.this
            joins = (*(inner.args.get("joins") or ()), *(node.args.get("joins") or ()))
            if any(each.side in ("RIGHT", "FULL") for each in joins):
                reason = "a RIGHT or FULL join in parentheses is not allowed"
                raise self._text.refuse("forbidden-sql", reason, node, "write it as a subquery")
            self._source(inner, scope, ctes)
            self._joins(joins, scope, ctes)
            return
        path: tuple[str, ...] = ()
        read: Read | Cte | None = None
        if isinstance(node, exp.Table):
            read, path = self._table(node, ctes)
            columns = self._columns_of(read, node)
            name = node.alias or (path[-1] if path else "")
        elif isinstance(node, exp.Subquery):
            self._refuse_parts(node, "order", "limit", "offset", "joins")
            columns = self.query(node.this, None, ctes)
            name = node.alias
        else:
            reason = "this is not allowed in FROM: relations and subqueries are"
            raise self._text.refuse("forbidden-sql", reason, node)
        if alias is not None:
            columns = self._renamed(node, columns)
        unit = self.new_unit(name or "subquery")
        if read is not None:
            self.reads[unit] = read
        node.meta["unit"] = unit
        path = () if alias is not None else path
        if name and any(each.path == path for each in scope.called(name.casefold())):
            reason = f"{name} is two relations of this FROM"
            raise self._text.refuse("ambiguous", reason, node, "give one of them another alias")
        scope.sources.append(Source.of(unit, name, path, columns))

    def new_unit(self, name: str) -> str:
        base = re.sub(r"\W", "_", name)
        unit, number = base, 1
        while unit in self.used:
            number += 1
            unit = f"{base}_{number}"
        self.used[unit] = {}
        return unit

    def _renamed(self, node: exp.Expr, columns: list[Column]) -> list[Column]:
        """By the names of an alias, ``AS c (x, y)``, which the query's tree takes over."""
        names = [each.name for each in node.args["alias"].args.get("columns") or ()]
        if not names:
            return columns
        if len(names) != len(columns):
            reason = f"{len(names)} names for {len(columns)} columns"
            raise self._text.refuse("unknown-column", reason, node.args["alias"])
        if isinstance(node, exp.Table):
            reason = "names of columns beside an alias are allowed for subqueries alone"
            raise self._text.refuse("forbidden-sql", reason, node.args["alias"])
        node.this.meta["names"] = tuple(names)
        return [replace(each, name=name) for each, name in zip(columns, names, strict=True)]

    def _table(self, node: exp.Table, ctes: dict[str, Cte]) -> tuple[Read | Cte, tuple[str, ...]]:
        called = node.this if isinstance(node.this, exp.Anonymous) else None
        if not isinstance(node.this, exp.Identifier | exp.Anonymous):
            raise self._text.refuse("unknown-relation", "a relation has two names", node)
        name = node.this.name
        if not node.db:
            if called is None and name.casefold() in ctes:
                return ctes[name.casefold()], (name.casefold(),)
            if called is not None:
                reason = f"{name} is no relation: functions are not allowed in FROM"
                raise self._text.refuse("forbidden-sql", reason, node)
        said = f"{node.db}.{name}" if node.db else name
        relation = None
        if "." not in name and "." not in node.db:
            relation = self._market.relation(said) or self._relations.get(said.casefold())
        if relation is None:
            known = [each.name for each in self._relations.values()]
            same = [each for each in known if each.casefold().endswith(f".{name.casefold()}")]
            hint = f"did you mean {' or '.join(same[:3])}?" if same else ""
            known += [each for each in ctes if not node.db]
            hint = hint or did_you_mean(said, known)
            raise self._text.refuse("unknown-relation", f"there is no relation {said}", node, hint)
        path = tuple(relation.name.casefold().split("."))
        if relation.format == "query":
            return self._saved_query(relation, node), path
        arguments = self._arguments(called, relation) if called is not None else ()
        return Read(relation, arguments), path

    def _saved_query(self, relation: Relation, node: exp.Table) -> Cte:
        """A query that was saved as a relation takes part as a subquery (composition)."""
        if relation.uri in self._saved or len(self._saved) >= _SAVED_MAX:
            first = self._saved.index(relation.uri) if relation.uri in self._saved else 0
            names = [self._market.relations[uri].name for uri in self._saved[first:]]
            said = " of ".join((*names, relation.name))
            wrong = "of itself" if relation.uri in self._saved else "of too many saved queries"
            raise self._text.refuse("forbidden-sql", f"{names[0]} is made {wrong}: {said}", node)
        text = Text(relation.location)
        tree = text.parse()
        inner = Names(text, self._market, (*self._saved, relation.uri))
        inner.used, inner.reads = self.used, self.reads
        return Cte(tree, tuple(inner.query(tree, None, {})))

    def _arguments(self, called: exp.Anonymous, relation: Relation) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for given in called.expressions:
            if not isinstance(given, exp.Kwarg) or not isinstance(given.expression, exp.Literal):
                reason = "a relation takes arguments as name => 'text'"
                raise self._text.refuse("forbidden-sql", reason, given)
            name = given.this.name.lower()
            if relation.format != "archive" or name not in _ARCHIVE_OPTIONS or name in found:
                reason = f"{relation.name} takes no {name}, or has it already"
                hint = did_you_mean(name, _ARCHIVE_OPTIONS)
                raise self._text.refuse("forbidden-sql", reason, given, hint)
            found[name] = given.expression.name
        if "columns" in found and "profile" not in found:
            reason = "columns are of the results of a profile"
            raise self._text.refuse("forbidden-sql", reason, called, "give profile => '…' as well")
        return tuple(found.items())

    def _columns_of(self, read: Read | Cte, node: exp.Table) -> list[Column]:
        if isinstance(read, Cte):
            return list(read.columns)
        relation, arguments = read.relation, dict(read.arguments)
        if relation.format != "archive" or (relation.columns and "profile" not in arguments):
            return list(relation.columns)
        known = {each.name: each for each in relation.columns}
        names = dict(_OF_RESULTS if "profile" in arguments else _OF_MESSAGES)
        if "columns" in arguments:
            try:
                said = dict(read_columns(arguments["columns"]))
            except NoType:
                said = {}
            if not said or set(said) & set(names):
                reason = "columns are names and types: 'city string, temp double'"
                raise self._text.refuse("syntax", reason, node.this.expressions[-1])
            names |= said
        elif "profile" in arguments:
            names["result"] = "string"
        return [known.get(name) or Column(name, type_) for name, type_ in names.items()]

    def _lateral(self, node: exp.Expr, scope: Scope, ctes: dict[str, Cte]) -> None:
        call = node.this
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        if not node.args.get("view") or name not in GENERATORS or len(call.expressions) != 1:
            reason = f"LATERAL VIEW takes one of {', '.join(sorted(GENERATORS))}"
            raise self._text.refuse("forbidden-sql", reason, node)
        self._expression(call.expressions[0], scope, ctes, "LATERAL VIEW")
        columns = self._generated(call)
        alias = node.args.get("alias")
        given = [each.name for each in alias.args.get("columns") or ()] if alias else []
        if given and len(given) != len(columns):
            reason = f"{name} makes {len(columns)} columns, not {len(given)}"
            raise self._text.refuse("unknown-column", reason, alias)
        if given:
            columns = [replace(each, name=as_) for each, as_ in zip(columns, given, strict=True)]
        unit = self.new_unit(node.alias or name)
        node.meta["unit"] = unit
        node.meta["columns"] = tuple((each.name, each.type) for each in columns)
        scope.sources.append(Source.of(unit, node.alias, (), columns))

    def _generated(self, call: exp.Anonymous) -> list[Column]:
        name = call.name.lower().removesuffix("_outer")
        of = type_of(call.expressions[0])
        inside = sql_types.element(of)
        if name == "inline":
            parts = sql_types.parts(inside, "struct")
        else:
            parts = sql_types.parts(of, "map") or {"col": inside}
        if not parts or not all(parts.values()):
            reason = f"{call.name} takes an array or a map, not {of or 'a value of unknown type'}"
            raise self._text.refuse("forbidden-sql", reason, call)
        position = {"pos": "int"} if name == "posexplode" else {}
        return [Column(each, type_) for each, type_ in (position | parts).items()]

    # the select list

    def _stars(self, node: exp.Select, scope: Scope) -> None:
        items: list[exp.Expr] = []
        for item in node.expressions:
            star = item if isinstance(item, exp.Star) else getattr(item, "this", None)
            if not isinstance(star, exp.Star):
                items.append(item)
                continue
            left_out = {each.name.casefold(): each for each in star.args.get("except_") or ()}
            starred = self._starred(item, scope)
            names = {each.this.name.casefold() for each in starred}
            for key, each in left_out.items():
                if key not in names:
                    reason = f"there is no column {each.name} to leave out"
                    raise self._text.refuse(
                        "unknown-column", reason, each, did_you_mean(key, names)
                    )
            items += (each for each in starred if each.this.name.casefold() not in left_out)
        node.set("expressions", items)

    def _starred(self, item: exp.Expr, scope: Scope) -> list[exp.Column]:
        if isinstance(item, exp.Column):
            parts = tuple(each.name.casefold() for each in item.parts[:-1])
            meant = scope.called(*parts)
            if len(meant) != 1:
                reason = f"{'.'.join(parts)} is {'two relations' if meant else 'no relation'} here"
                hint = did_you_mean(parts[-1], [each.alias for each in scope.sources])
                raise self._text.refuse("unknown-relation", reason, item, hint)
            return [_column(name, meant[0].alias) for name in meant[0].names]
        found = [_column(of.columns[0][1].name) for of in scope.merged.values()]
        for source in scope.sources:
            found += (
                _column(name, source.alias)
                for name in source.names
                if name.casefold() not in scope.merged
            )
        return found

    def _outputs(self, item: exp.Expr, name: str) -> Iterator[tuple[str, str]]:
        """Names and types of what an item of the select list makes."""
        call = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        if isinstance(call, exp.Anonymous) and call.name.lower() in GENERATORS:
            if len(call.expressions) != 1:
                raise self._text.refuse("forbidden-sql", f"{call.name} takes one argument", call)
            columns = self._generated(call)
            names = [each.name for each in columns]
            if isinstance(item, exp.Aliases):
                names = [each.name for each in item.expressions]
            elif isinstance(item, exp.Alias):
                names = [item.alias]
            if len(names) != len(columns):
                reason = f"{call.name} makes {len(columns)} columns, not {len(names)}"
                raise self._text.refuse("unknown-column", reason, item)
            call.meta["columns"] = tuple(
                (as_, each.type) for as_, each in zip(names, columns, strict=True)
            )
            yield from call.meta["columns"]
        elif isinstance(item, exp.Aliases):
            raise self._text.refuse("forbidden-sql", "one column takes one name", item)
        else:
            yield name, type_of(item)

    # expressions

    def _expression(
        self, node: exp.Expr, scope: Scope, ctes: dict[str, Cte], clause: str = ""
    ) -> None:
        """Resolve all below; ``clause``: one that takes no aggregates."""
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if isinstance(each, exp.Query):
                self.query(each, scope, ctes)
                continue
            if isinstance(each, exp.Column):
                self._resolve(each, scope)
                continue
            if isinstance(each, exp.Kwarg):
                raise self._text.refuse("forbidden-sql", "arguments have no names here", each)
            if isinstance(each, exp.Anonymous):
                self._call(each, clause)
            if isinstance(each, exp.Lambda):
                self._lambda(each, waiting)
                continue
            waiting += reversed(list(each.iter_expressions()))

    def _lambda(self, node: exp.Lambda, waiting: list[exp.Expr]) -> None:
        """Its parameters are no columns."""
        names = {each.name.casefold() for each in node.expressions}
        inner = node.this
        for column in list(inner.find_all(exp.Column)):
            if column.parts[0].name.casefold() in names:
                first, *rest = column.parts
                changed: exp.Expr = exp.Identifier(this=first.name, quoted=True)
                for each in rest:
                    changed = exp.Dot(this=changed, expression=each.copy())
                column.replace(changed)
        waiting.append(node.this)

    def _call(self, node: exp.Anonymous, clause: str) -> None:
        name = node.name.lower()
        if name in AGGREGATES and clause and not isinstance(node.parent, exp.Window):
            reason = f"{node.name} is an aggregate, and stands in {clause}"
            raise self._text.refuse("forbidden-sql", reason, node)
        if name in GENERATORS and not isinstance(node.parent, exp.Select | exp.Alias | exp.Aliases):
            reason = f"{node.name} stands in the select list by itself, or in LATERAL VIEW"
            raise self._text.refuse("forbidden-sql", reason, node)
        if name == "struct":
            for each in [e for e in node.expressions if isinstance(e, exp.Column)]:
                named = exp.Identifier(this=each.parts[-1].name, quoted=True)
                each.replace(exp.Alias(this=each.copy(), alias=named))
        if name in FUNCTIONS:
            return
        known = self._market.functions_named(node.name)
        if any(each.kind == "scalar" for each in known):
            node.meta["function"] = name
            node.meta["type"] = known[0].outputs[0][1]
            return
        if known:
            reason = f"{node.name} makes rows: it is used as the wrapper of a relation"
            raise self._text.refuse("forbidden-sql", reason, node)
        offered = {each.name for each in self._market.functions.values() if each.kind == "scalar"}
        hint = did_you_mean(name, offered | FUNCTIONS.keys())
        reason = f"there is no function {node.name}, or it is not allowed in a query"
        raise self._text.refuse("unknown-function", reason, node, hint)

    def functions(self, node: exp.Anonymous) -> tuple[Function, ...]:
        """Functions of the call's name that take its arguments; QueryRefused where none does."""
        known = self._market.functions_named(node.name)
        given = [type_of(each) for each in node.expressions]
        fit = tuple(
            each
            for each in known
            if each.kind == "scalar"
            and len(each.inputs) == len(given)
            and all(map(sql_types.fits, given, (type_ for _, type_ in each.inputs)))
        )
        if fit:
            return tuple(each for each in fit if each.outputs[0][1] == fit[0].outputs[0][1])
        taken = " or ".join(f"({', '.join(t for _, t in f.inputs)})" for f in known[:3])
        reason = f"{node.name} takes {taken}, not ({', '.join(t or '?' for t in given)})"
        raise self._text.refuse("unknown-function", reason, node)

    def _resolve(self, node: exp.Column, scope: Scope) -> None:
        if isinstance(node.this, exp.Star):
            raise self._text.refuse("forbidden-sql", "a star stands by itself", node)
        within: Scope | None = scope
        found = None
        while within is not None and found is None:
            found = self._find(node, within)
            within = within.parent
        if found is None:
            raise self._unknown(node, scope)
        meant, length = found
        self._use(meant)
        node.meta["full"], node.meta["type"] = meant.full, meant.type
        column, fields = node.parts[:length], node.parts[length:]
        for key in ("catalog", "db", "table"):
            node.set(key, None)
        for key, part in zip(("this", "table", "db"), reversed(column), strict=False):
            node.set(key, part)
        self._fields(node, meant.type, fields)

    def _fields(self, node: exp.Column, type_: str, fields: list[exp.Expr]) -> None:
        """Fields of a struct are looked up in its type, those behind the column's parts as well."""
        at: exp.Expr = node
        for part in fields:
            outer = exp.Dot(this=exp.Null(), expression=part.copy())
            at.replace(outer)
            outer.set("this", at)
            at = outer
        at = node
        while type_ and isinstance(at.parent, exp.Dot) and at.parent.this is at:
            at = at.parent
            try:
                type_ = sql_types.field(type_, at.expression.name)
            except KeyError:
                known = sql_types.parts(sql_types.element(type_) or type_, "struct")
                reason = f"{type_[:80]} has no field {at.expression.name}"
                hint = did_you_mean(at.expression.name, known)
                raise self._text.refuse("unknown-column", reason, at.expression, hint) from None

    def _find(self, node: exp.Column, scope: Scope) -> tuple[Meaning, int] | None:
        """What a column means in a scope, and how many of its parts say that."""
        names = [each.name.casefold() for each in node.parts]
        if scope.aliases_first and names[0] in scope.aliases:
            return scope.aliases[names[0]], 1
        for length in (2, 1, 0):
            if len(names) <= length:
                continue
            name = names[length]
            if not length and name in scope.merged:
                return scope.merged[name], 1
            meant = [each for each in scope.called(*names[:length]) if name in each.columns]
            if len(meant) > 1:
                columns = [f"{each.alias or '.'.join(each.path)}.{name}" for each in meant]
                reason = f"{node.name} may be {' or '.join(columns)}"
                raise self._text.refuse("ambiguous", reason, node, "write the alias before it")
            if meant:
                return meant[0].columns[name], length + 1
        return (scope.aliases[names[0]], 1) if names[0] in scope.aliases else None

    def _unknown(self, node: exp.Column, scope: Scope) -> Exception:
        *qualifier, name = (each.name for each in node.parts)
        within: Scope | None = scope
        known: list[str] = []
        while within is not None:
            for source in within.sources if qualifier else ():
                if qualifier[-1].casefold() == source.alias:
                    reason = f"{qualifier[-1]} has no column {name}"
                    hint = did_you_mean(name, source.names)
                    return self._text.refuse("unknown-column", reason, node.parts[-1], hint)
            known += (each for source in within.sources for each in source.names)
            within = within.parent
        reason = f"there is no column {name}"
        if qualifier:
            known += (each.alias for each in scope.sources)
            reason = f"{'.'.join(qualifier)} is no relation or column of this query"
            name = qualifier[-1]
        return self._text.refuse("unknown-column", reason, node, did_you_mean(name, known))

    def _use(self, meant: Meaning) -> None:
        for unit, column in meant.columns:
            self.used[unit][column.name.casefold()] = column


def _aliases(columns: Iterable[Column]) -> dict[str, Meaning]:
    return {each.name.casefold(): Meaning((), each.type) for each in columns}


def branches_of(node: exp.Expr) -> list[exp.Expr]:
    """The two queries that are combined; a chain of one kind as one list."""
    found: list[exp.Expr] = []
    kind, distinct = type(node), node.args.get("distinct")
    left: exp.Expr = node
    while isinstance(left, exp.SetOperation) and type(left) is kind:
        plain = left is node or not any(
            left.args.get(each) for each in ("order", "limit", "offset", "with_")
        )
        if not plain or left.args.get("distinct") != distinct:
            break
        if left is not node and not isinstance(node, exp.Union):
            break
        found.append(left.expression)
        left = left.this
    return [left, *reversed(found)]


def _name_of(item: exp.Expr) -> str:
    """The name of an output column: as Spark has it where it is a column, else the text."""
    if item.output_name:
        return item.output_name
    if isinstance(item, exp.Dot):
        return item.expression.name
    return item.sql("spark", comments=False, normalize_functions=False)[:200]


def _column(name: str, alias: str = "") -> exp.Column:
    column = exp.Column(this=exp.Identifier(this=name, quoted=True))
    if alias:
        column.set("table", exp.Identifier(this=alias, quoted=True))
    return column
