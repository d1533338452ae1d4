"""Query plan -> fragments: what each cycle provider executes, as SQL over views (2.1 step 3).

The plan is cut at each *send*.  An operator becomes a common table expression over the ones below
it, with full names as columns, so the texts of the query graph hold as they are.  No word of the
user's text is in it: all is printed from the checked tree.  A send gives its columns the types that
the receiver expects; the stream says a type that only Spark knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from registration.queries.query_graph import QueryGraph, Unit, columns_in, quoted
from registration.queries.query_plan import Fragment, PlanNode, Plug, Receive, Scan

_JOINS = {
    "inner": "JOIN", "cross": "CROSS JOIN", "left": "LEFT JOIN", "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN",
}  # fmt: skip


def fragments_of(root: PlanNode, graph: QueryGraph) -> tuple[Fragment, ...]:
    """The fragments of a query plan, each behind those that it receives; the last one makes the
    result."""
    made: list[Fragment] = []
    last = _Maker(made, root)
    if root.operator == "project":
        last.finish(_selected(last.rows(root.inputs[0], graph), graph))
    else:
        rows = last.rows(root, graph)
        columns = zip(rows.columns, graph.select, strict=True)
        said = (f"{quoted(name)} AS {quoted(each.name)}" for name, each in columns)
        last.finish(f"SELECT {', '.join(said)} FROM {rows.name}")
    return tuple(made)


@dataclass(slots=True)
class _Rows:
    """``name``: of the table expression or view; ``columns``: names and types, those of a whole
    block (``is_whole``) are ``c0`` and so on.

    ``done``: kinds and places of the predicates, steps and joins of the block that it has."""

    name: str
    columns: dict[str, str]
    done: frozenset[tuple[str, int]] = frozenset()
    is_whole: bool = False


@dataclass(slots=True)
class _Maker:
    """One fragment under way: the part of the plan below ``top``."""

    made: list[Fragment]
    top: PlanNode
    tables: list[str] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    receives: list[Receive] = field(default_factory=list)
    plugs: list[Plug] = field(default_factory=list)
    megabytes: float = 0.0

    def finish(self, sql: str) -> int:
        """Number of the new fragment."""
        number = len(self.made)
        text = f"WITH {', '.join(self.tables)} {sql}" if self.tables else sql
        self.made.append(
            Fragment(
                number, self.top.site, tuple(self.scans), tuple(self.receives), tuple(self.plugs),
                text, self.top.figures, self.megabytes,
            )
        )  # fmt: skip
        return number

    def rows(self, node: PlanNode, graph: QueryGraph) -> _Rows:
        """The operator and all below it, which is about ``graph``."""
        self.megabytes += node.memory_megabytes
        match node.operator:
            case "scan":
                return self._scan(node, graph)
            case "wrap":
                assert node.function is not None
                self._plug(node)
                return self.rows(node.inputs[0], graph)
            case "receive":
                return self._receive(node.inputs[0], graph)
            case "block":
                return self._block(node, graph)
            case "join":
                return self._join(node, graph)
            case "union":
                return self._union(node, graph)
            case "project":
                return self._project(self.rows(node.inputs[0], graph), graph)
            case "nest":
                return self.rows(node.inputs[0], graph)
        below = self.rows(node.inputs[0], graph)
        match node.operator:
            case "select":
                text = f"SELECT * FROM {below.name} WHERE {graph.predicates[node.index].text}"
                return self._table(text, below.columns, below.done | {("predicate", node.index)})
            case "apply" | "unnest":
                return self._step(node, below, graph)
        raise AssertionError(node.operator)

    def _table(
        self,
        text: str,
        columns: dict[str, str],
        done: Iterable[tuple[str, int]] = (),
        name: str = "",
        names: str = "",
    ) -> _Rows:
        name = name or f"t{len(self.tables)}"
        self.tables.append(f"{quoted(name)}{names} AS ({text})")
        return _Rows(quoted(name), columns, frozenset(done))

    def _plug(self, node: PlanNode) -> str:
        """The name by which the fragment calls the node's function."""
        assert node.function is not None
        for plug in self.plugs:
            if plug.function == node.function:
                return plug.name
        plain = re.sub(r"\W", "_", node.function.name)
        name = f"f{len(self.plugs)}_{plain}"
        self.plugs.append(Plug(name, node.function))
        return name

    def _scan(self, node: PlanNode, graph: QueryGraph) -> _Rows:
        unit = graph.units[node.index]
        assert unit.relation is not None
        view = f"s{len(self.made)}_{len(self.scans)}"
        names = tuple(each.name for each in unit.columns)
        self.scans.append(Scan(view, unit.relation, names, unit.arguments, node.figures))
        return self._renamed(view, {name: name for name in names}, unit)

    def _renamed(self, table: str, own: dict[str, str], unit: Unit) -> _Rows:
        """The columns of a unit by their full names; ``own``: what the table calls them."""
        columns = {f"{unit.alias}.{each.name}": each.type for each in unit.columns}
        said = (
            f"{quoted(own[each.name])} AS {quoted(f'{unit.alias}.{each.name}')}"
            for each in unit.columns
        )
        return self._table(f"SELECT {', '.join(said)} FROM {table}", columns)

    def _block(self, node: PlanNode, graph: QueryGraph) -> _Rows:
        unit = graph.units[node.index]
        assert unit.block is not None
        below = self.rows(node.inputs[0], unit.block)
        own: dict[str, str] = {}
        for each, name in zip(unit.block.select, below.columns, strict=True):
            own.setdefault(each.name, name)
        return self._renamed(below.name, own, unit)

    def _step(self, node: PlanNode, below: _Rows, graph: QueryGraph) -> _Rows:
        step = graph.steps[node.index]
        columns = below.columns | {each.name: each.type for each in step.columns}
        done = below.done | {("step", node.index)}
        made = ", ".join(quoted(each.name) for each in step.columns)
        if node.function is None:
            outer = "OUTER " if step.outer else ""
            text = f"SELECT * FROM {below.name} LATERAL VIEW {outer}{step.text} made AS {made}"
        else:
            called = len(quoted(step.alternatives[0].name))
            call = f"{self._plug(node)}{step.text[called:]}"
            text = f"SELECT *, {call} AS {made} FROM {below.name}"
        return self._table(text, columns, done)

    def _join(self, node: PlanNode, graph: QueryGraph) -> _Rows:
        left, right = (self.rows(each, graph) for each in node.inputs)
        done = left.done | right.done
        if node.kind == "filter":
            unit = graph.units[graph.outer[node.index][2].bit_length() - 1]
            own = {f"{unit.alias}.{each.name}": each.name for each in unit.columns}
            said = (f"{quoted(full)} AS {quoted(name)}" for full, name in own.items())
            text = f"SELECT {', '.join(said)} FROM {right.name}"
            self._table(text, {}, name=unit.alias)
            return _Rows(left.name, left.columns, done | {("outer", node.index)})
        condition, columns = "", dict(left.columns)
        if node.kind == "inner":
            done |= {("predicate", node.index)}
            condition = graph.predicates[node.index].text
        elif node.kind != "cross":
            done |= {("outer", node.index)}
            condition = graph.outer[node.index][3]
        if node.kind not in ("semi", "anti"):
            columns |= right.columns
        on = f" ON {condition}" if condition else ""
        text = f"SELECT * FROM {left.name} {_JOINS[node.kind]} {right.name}{on}"
        return self._table(text, columns, done)

    def _union(self, node: PlanNode, graph: QueryGraph) -> _Rows:
        parts = [self.rows(each, graph) for each in node.inputs]
        said = (f"SELECT {', '.join(map(quoted, p.columns))} FROM {p.name}" for p in parts)
        return self._table(f" {graph.combine.upper()} ".join(said), parts[0].columns)

    def _project(self, below: _Rows, graph: QueryGraph) -> _Rows:
        columns = {f"c{place}": each.type for place, each in enumerate(graph.select)}
        names = f" ({', '.join(columns)})"
        rows = self._table(_selected(below, graph), columns, names=names)
        rows.is_whole = True
        return rows

    def _receive(self, send: PlanNode, graph: QueryGraph) -> _Rows:
        """The rows that another fragment sends; only columns that anything above asks for."""
        maker = _Maker(self.made, send.inputs[0])
        rows = maker.rows(send.inputs[0], graph)
        columns = rows.columns
        if not rows.is_whole:
            wanted = _wanted(rows, graph)
            columns = {name: type_ for name, type_ in columns.items() if name in wanted}
            columns = columns or dict(list(rows.columns.items())[:1])
        said = (
            f"CAST({quoted(name)} AS {type_}) AS {quoted(name)}" if type_ else quoted(name)
            for name, type_ in columns.items()
        )
        number = maker.finish(f"SELECT {', '.join(said)} FROM {rows.name}")
        view = f"r{number}"
        self.receives.append(Receive(view, number, tuple(columns.items())))
        return _Rows(view, columns, rows.done, rows.is_whole)


def _selected(below: _Rows, graph: QueryGraph) -> str:
    """The root of a block: its output columns with all that stands around them."""
    outputs = (f"{each.text} AS {quoted(each.name)}" for each in graph.select)
    distinct = "DISTINCT " if graph.distinct else ""
    text = f"SELECT {distinct}{', '.join(outputs)} FROM {below.name}"
    if graph.group:
        text += f" GROUP BY {', '.join(graph.group)}"
    if graph.having:
        text += f" HAVING {graph.having}"
    if graph.order:
        text += f" ORDER BY {', '.join(graph.order)}"
    if graph.limit is not None:
        text += f" LIMIT {graph.limit}"
    return f"{text} OFFSET {graph.offset}" if graph.offset else text


def _wanted(rows: _Rows, graph: QueryGraph) -> set[str]:
    """Names in all texts of the block that are not done yet."""
    texts = [each.text for each in graph.select]
    texts += (*graph.group, *graph.order, graph.having)
    for kind, found in (
        ("predicate", [each.text for each in graph.predicates]),
        ("step", [each.text for each in graph.steps]),
        ("outer", [each[3] for each in graph.outer]),
    ):
        texts += (text for place, text in enumerate(found) if (kind, place) not in rows.done)
    wanted = {name for text in texts for name in columns_in(text)}
    views = (graph.units[right.bit_length() - 1] for kind, _, right, _ in graph.outer
             if kind == "filter")  # fmt: skip
    wanted |= {f"{unit.alias}.{each.name}" for unit in views for each in unit.columns}
    if graph.combine:
        wanted |= rows.columns.keys()
    return wanted
