"""Plans of the blocks of a query: from a query graph to a ``Problem``, and from its plans to nodes.

A block that is a unit of another block is planned by itself, at every site where its rows may be:
so the site is an interesting property across blocks too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf, prod

from registration.queries.access_plans import Places, operator, widths_of
from registration.queries.cost_model import MEGABYTE, Charge, sent, width_of
from registration.queries.idp import Effort, search
from registration.queries.join_plans import (
    Chosen,
    Condition,
    FixedJoin,
    Input,
    Plans,
    Problem,
    Step,
    Width,
    bits,
    sends,
)
from registration.queries.providers import Column, Function
from registration.queries.query_graph import Output, QueryGraph, bare, columns_in
from registration.queries.query_plan import PlanNode
from registration.queries.refusals import QueryRefused
from registration.queries.selectivity import OTHER, Values, groups, selectivity

ELEMENTS = 4.0
"""Of an array that is unnested, where nobody knows how many it has."""
ITEMS_MAX = 150
"""Of a block: relations, blocks, functions and unnests."""


def blocks(graph: QueryGraph) -> Iterator[QueryGraph]:
    """A block and all blocks in it."""
    yield graph
    for unit in graph.units:
        if unit.block is not None:
            yield from blocks(unit.block)


def send(places: Places, below: PlanNode, site: int, rows: float, width: float) -> PlanNode:
    """``receive`` at a site, above the ``send`` of those rows."""
    source = places.sites.index(below.site)
    link = places.links[source][site]
    model = places.model
    figures = sent(below.figures, model.send_start(link), model.send_byte(link), rows * width)
    target = places.sites[site]
    node = PlanNode("send", below.site, figures, (below,), text=f"to {target.name}", width=width)
    text = f"from {below.site.name}"
    return PlanNode("receive", target, figures, (node,), text=text, width=width)


class BlockPlans:
    """The plans of one block by site, made there or sent there.  Items of its problem: units, then
    steps.  QueryRefused: ``no-plan``, with the rules that forbid it; ``forbidden-sql``, if it has
    more than ITEMS_MAX.

    ``cost``: by site, inf where the rows may not be; ``flow``: where they may.  ``widths`` of the
    columns of the result by name, ``values`` of the ones that are columns of relations.
    """

    def __init__(self, places: Places, graph: QueryGraph, effort: Effort) -> None:
        self.places = places
        self._graph = graph
        self._count = len(graph.units)
        if self._count + len(graph.steps) > ITEMS_MAX:
            reason = f"a block joins more than {ITEMS_MAX} relations and functions"
            raise QueryRefused("forbidden-sql", reason)
        self._below = {
            number: BlockPlans(places, unit.block, effort)
            for number, unit in enumerate(graph.units)
            if unit.block is not None
        }
        self._accesses = [self._unit_accesses(number) for number in range(self._count)]
        self._functions: dict[tuple[int, int], Function] = {}
        self._columns = self._all_columns()
        self._predicates = [self._items_of(each.units, each.steps) for each in graph.predicates]
        shares = [selectivity(each.text, self._values_of) for each in graph.predicates]
        self.plans = Plans(self._problem(shares))
        if not graph.combine:
            search(self.plans, tuple(bits(self._flow(aggregated=False))), effort)
        self.rows, self._taken = self._result_rows()
        self.values = {
            each.name: values
            for each in graph.select
            if (values := self._values_of(bare(each.text))) is not None
        }
        self.widths = {each.name: self._output_width(each) for each in graph.select}
        self.width = 8.0 + sum(self.widths.values())
        self.flow = self._flow(aggregated=graph.aggregated)
        self.cost, self._source = self._result()

    def node(self, site: int) -> PlanNode:
        """The plan whose rows are at a site; with a ``receive`` where another one makes them."""
        source = self._source[site]
        if source == site:
            return self._top(site)
        return send(self.places, self.node(source), site, self.rows, self.width)

    def relations(self) -> Iterator[tuple[str, str]]:
        """URI and name of each relation that is read, blocks included."""
        for block in blocks(self._graph):
            for unit in block.units:
                if unit.relation is not None:
                    yield unit.relation.uri, unit.relation.name

    # --- the problem -----------------------------------------------------------------------

    def _unit_accesses(self, number: int) -> dict[int, PlanNode]:
        """Of a relation, by site."""
        relation = self._graph.units[number].relation
        if relation is None:
            return {}
        found = self.places.accesses(self._graph.units[number], number)
        if not found:
            resources = (relation.uri, relation.wrapper) if relation.wrapper else (relation.uri,)
            reason = f"no cycle provider may read {relation.name} for this user"
            raise self.places.no_plan(reason, resources)
        return found

    def _all_columns(self) -> dict[str, tuple[int, Column]]:
        """By its full name each column with the item that makes it."""
        columns = {
            f"{unit.alias}.{column.name}": (number, column)
            for number, unit in enumerate(self._graph.units)
            for column in unit.columns
        }
        for number, step in enumerate(self._graph.steps, self._count):
            columns.update((column.name, (number, column)) for column in step.columns)
        return columns

    def _items_of(self, units: int, steps: int) -> int:
        """The items that must be there: units, steps with what they need, and the sides of outer
        joins that make columns of those units null."""
        items = units | steps << self._count
        for number in bits(steps):
            step = self._graph.steps[number]
            items |= self._items_of(step.units, step.steps)
        for kind, left, right, _ in self._graph.outer:
            side = {"left": right, "right": left, "full": left | right}.get(kind, 0)
            if items & side:
                items |= left | right
        return items or 1

    def _problem(self, shares: list[float]) -> Problem:
        places = self.places
        problem = places.moves
        units = self._graph.units
        inputs = []
        for number, unit in enumerate(units):
            below = self._below.get(number)
            if below is not None:
                access = {site: cost for site, cost in enumerate(below.cost) if cost < inf}
                inputs.append(Input(below.rows, access, below.flow))
                continue
            access = {
                site: places.scalar(Charge(node.figures.seconds, node.figures.cost))
                for site, node in self._accesses[number].items()
            }
            inputs.append(Input(places.rows(unit), access, self._flow_of(number)))
        conditions = [
            Condition(items, share, bool(predicate.equal))
            for predicate, items, share in zip(
                self._graph.predicates, self._predicates, shares, strict=True
            )
        ]
        rows = [each.rows for each in inputs]
        conditions += [self._outer_condition(outer, rows) for outer in self._graph.outer]
        return replace(
            problem,
            inputs=tuple(inputs),
            steps=tuple(self._steps(rows)),
            conditions=tuple(conditions),
            widths=tuple(self._widths()),
            fixed=tuple(self._fixed()),
        )

    def _flow_of(self, number: int) -> int:
        relation = self._graph.units[number].relation
        assert relation is not None
        own = sum(1 << site for site in self._accesses[number])
        return self.places.may.flow_mask(relation.uri) | own

    def _fixed(self) -> Iterator[FixedJoin]:
        """Joins with fixed sides.  A right side that the operators on top ask for once more is
        joined after all else, where they are."""
        late = self._late()
        before = (1 << (self._count + len(self._graph.steps))) - 1 & ~late
        for kind, left, right, _ in self._graph.outer:
            if right & late:
                yield FixedJoin(before, right, stays=True)
                before |= right
            elif kind == "right":
                yield FixedJoin(right, left)
            else:
                yield FixedJoin(left, right, kind == "full")

    def _late(self) -> int:
        """The units on the right of a ``filter`` that operators on top, or predicates over more
        than its two sides, ask for."""
        graph = self._graph
        texts = (*(each.text for each in graph.select), graph.having, *graph.order)
        on_top = columns_in(" ".join(texts))
        late = 0
        for kind, left, right, _ in graph.outer:
            asked = kind == "filter" and (
                graph.units[right.bit_length() - 1].alias in on_top
                or any(items & right and items & ~(left | right) for items in self._predicates)
            )
            late |= right if asked else 0
        return late

    def _outer_condition(self, outer: tuple[str, int, int, str], rows: list[float]) -> Condition:
        """As a share of all pairs, so that each kind of join keeps the rows that it must."""
        kind, left, right, text = outer
        many, others = (prod(rows[unit] for unit in bits(side)) for side in (left, right))
        share = selectivity(text, self._values_of) if text else 1.0
        matched = min(1.0, share * others)
        if kind == "semi":
            share = matched / others
        elif kind == "filter":
            share = (OTHER if text else 1.0) / others
        elif kind == "anti":
            share = max(1.0 - matched, OTHER) / others
        else:
            kept = {"left": 1 / others, "right": 1 / many}.get(kind, max(1 / many, 1 / others))
            share = max(share, kept)
        return Condition(left | right, share, "=" in text)

    def _steps(self, rows: list[float]) -> Iterator[Step]:
        for number, step in enumerate(self._graph.steps):
            own = self._items_of(step.units, step.steps)
            if not step.alternatives:
                yield Step(own, ELEMENTS, self._everywhere(ELEMENTS))
                continue
            taken = max((rows[unit] for unit in bits(own) if unit < self._count), default=1.0)
            first = step.alternatives[0]
            times = first.rows_per_row if first.kind == "table" else 1.0
            yield Step(own, times, self._function_sites(number, taken))

    def _everywhere(self, times: float) -> dict[int, tuple[float, float]]:
        model, sites = self.places.model, self.places.sites
        return {
            site: (0.0, self.places.scalar(model.rows(sites[site], times)))
            for site in bits(self.places.busy)
        }

    def _function_sites(self, number: int, rows: float) -> dict[int, tuple[float, float]]:
        """Start and row of the function that is cheapest at each site, for so many rows."""
        places = self.places
        found: dict[int, tuple[float, float]] = {}
        for function in self._graph.steps[number].alternatives:
            for site in bits(places.may.function_mask(function.uri) & places.busy):
                costs = places.model.function(places.sites[site], function)
                start, row = map(places.scalar, costs)
                known = found.get(site, (inf, 0.0))
                if not places.has_room(site, function):
                    continue
                if start + row * rows < known[0] + known[1] * rows:
                    found[site] = start, row
                    self._functions[number, site] = function
        if not found:
            functions = self._graph.steps[number].alternatives
            reason = f"no cycle provider may execute {functions[0].name} for this user"
            raise places.no_plan(reason, [each.uri for each in functions])
        return found

    def _widths(self) -> Iterator[Width]:
        """Each column until its last consumer has taken it."""
        until = self._last_uses()
        for name, (item, _) in self._columns.items():
            yield Width(item, self._width_of(name), until.get(name, 0))

    def _last_uses(self) -> dict[str, int]:
        graph = self._graph
        until: dict[str, int] = {}

        def use(names: Iterable[str], items: int) -> None:
            for name in names:
                until[name] = until.get(name, 0) | items

        for predicate, items in zip(graph.predicates, self._predicates, strict=True):
            use(columns_in(predicate.text), items)
        for kind, left, right, text in graph.outer:
            use(columns_in(text), left | right)
            if kind == "filter":
                unit = graph.units[right.bit_length() - 1]
                use((f"{unit.alias}.{column.name}" for column in unit.columns), left | right)
        for number, step in enumerate(graph.steps, self._count):
            use(step.arguments, 1 << number)
        texts = (*(each.text for each in graph.select), *graph.group, *graph.order, graph.having)
        for text in texts:
            use(columns_in(text), -1)
        if graph.combine:
            use(self._columns, -1)
        return until

    def _width_of(self, name: str) -> float:
        """Bytes of a column by its full name."""
        item, column = self._columns[name]
        if item >= self._count:
            functions = self._graph.steps[item - self._count].alternatives
            told = functions[0].bytes_per_row if functions else None
            return width_of(column.type) if told is None else told
        relation = self._graph.units[item].relation
        widths = self._below[item].widths if relation is None else widths_of(relation)
        return widths.get(column.name, width_of(column.type))

    def _output_width(self, output: Output) -> float:
        name = bare(output.text)
        return self._width_of(name) if name in self._columns else width_of(output.type)

    def _values_of(self, name: str) -> Values | None:
        item, column = self._columns.get(name, (self._count, None))
        if item >= self._count or column is None:
            return None
        unit = self._graph.units[item]
        if unit.relation is None:
            return self._below[item].values.get(column.name)
        return Values(column, self.places.rows(unit))

    # --- the result ------------------------------------------------------------------------

    def _flow(self, *, aggregated: bool) -> int:
        """Where the joined rows of the block may be, or rows of its aggregates."""
        mask = self.places.everywhere
        for unit, entry in zip(self._graph.units, self.plans.problem.inputs, strict=True):
            allowed = entry.flow
            if aggregated and unit.relation is not None:
                allowed |= self.places.may.aggregate_mask(unit.relation.uri)
            mask &= allowed
        return mask

    def _result_rows(self) -> tuple[float, float]:
        """Of the result, and of what its operators on top take."""
        graph, plans = self._graph, self.plans
        if graph.combine:
            some = [entry.rows for entry in plans.problem.inputs]
            how = graph.combine.split()[0]
            taken = {"intersect": min(some), "except": some[0]}.get(how, sum(some))
        else:
            taken = plans.figures(plans.full)[0]
        rows = groups(taken, graph.group, self._values_of) if graph.aggregated else taken
        if graph.having:
            rows *= OTHER
        return max(1.0, min(rows, graph.limit if graph.limit is not None else inf)), taken

    def _result(self) -> tuple[list[float], list[int]]:
        """Cost by site, and the site that sends the result there."""
        plans, sites = self.plans, range(len(self.places.sites))
        cost = [inf for _ in sites]
        if self._graph.combine:
            parts = [plans.choices[1 << number].cost for number in range(self._count)]
            cost = [sum(part[site] for part in parts) for site in sites]
        elif plans.full in plans.choices:
            cost = plans.choices[plans.full].cost
        if min(cost) == inf:
            raise self._not_together()
        made = [inf for _ in sites]
        for site in bits(self.places.everywhere if self._passes_on() else self.places.busy):
            made[site] = cost[site] + self.places.scalar(self._own(site))
        return sends(plans.problem, made, self.rows * self.width, self.flow)

    def _own(self, site: int) -> Charge:
        """Of the operators on top: to unite, to group, to sort."""
        graph = self._graph
        rows = self._taken * (graph.aggregated + bool(graph.combine) * (1 + self._sorts_out()))
        rows += self.rows * bool(graph.order or graph.distinct)
        return self.places.model.rows(self.places.sites[site], rows)

    def _passes_on(self) -> bool:
        """Whether the operators on top leave rows as they are."""
        graph = self._graph
        changes = graph.order or graph.distinct or graph.limit is not None or graph.offset
        return graph.combine == "union all" and not changes

    def _sorts_out(self) -> bool:
        return self._graph.combine not in ("", "union all")

    def _top(self, site: int) -> PlanNode:
        graph, place = self._graph, self.places.sites[site]
        own, width = self._own(site), self.width
        if graph.combine:
            parts = [
                self._assembled(self.plans.chosen(1 << number, site))
                for number in range(self._count)
            ]
            below = operator(
                "union", place, parts, own, self._taken, width,
                waits=len(parts) * self._sorts_out(), kind=graph.combine, text=graph.combine,
            )  # fmt: skip
            own = Charge()
        else:
            below = self._assembled(self.plans.chosen(self.plans.full, site))
        if graph.aggregated:
            below = operator(
                "nest", place, (below,), own, self.rows, width, waits=1,
                text=", ".join(graph.group), memory_megabytes=self.rows * width / MEGABYTE,
            )  # fmt: skip
            own = Charge()
        waits, text = bool(graph.order or graph.distinct), ", ".join(e.name for e in graph.select)
        return operator("project", place, (below,), own, self.rows, width, waits=waits, text=text)

    # --- nodes -----------------------------------------------------------------------------

    def _assembled(self, chosen: Chosen) -> PlanNode:
        below = [self._assembled(each) for each in chosen.inputs]
        rows, width, _ = self.plans.figures(chosen.items)
        taken = [each.items for each in chosen.inputs]
        fresh = [
            number
            for number, items in enumerate(self._predicates)
            if not items & ~chosen.items and all(items & ~each for each in taken)
        ]
        if not below:
            node = self._access(chosen)
        elif chosen.step >= 0:
            node = self._step_node(chosen, below[0], rows, width)
        elif len(below) == 1:
            return send(self.places, below[0], chosen.site, rows, width)
        else:
            node, fresh = self._join(chosen, below, fresh, rows, width)
        for number in fresh:
            node = operator(
                "select", node.site, (node,), Charge(), rows, width, index=number,
                text=self._graph.predicates[number].text,
            )  # fmt: skip
        return node

    def _access(self, chosen: Chosen) -> PlanNode:
        number = chosen.items.bit_length() - 1
        below = self._below.get(number)
        if below is None:
            return self._accesses[number][chosen.site]
        inner = below.node(chosen.site)
        alias = self._graph.units[number].alias
        return PlanNode(
            "block", inner.site, inner.figures, (inner,), number, text=alias, width=below.width
        )

    def _step_node(self, chosen: Chosen, below: PlanNode, rows: float, width: float) -> PlanNode:
        place, model = self.places.sites[chosen.site], self.places.model
        number = chosen.step - self._count
        text = self._graph.steps[number].text
        taken = self.plans.figures(chosen.inputs[0].items)[0]
        function = self._functions.get((number, chosen.site))
        if function is None:
            own = model.rows(place, taken * ELEMENTS)
            return operator("unnest", place, (below,), own, rows, width, index=number, text=text)
        start, row = model.function(place, function)
        return operator(
            "apply", place, (below,), start.plus(row.times(taken)), rows, width, index=number,
            kind=function.kind, function=function, text=text, memory_megabytes=function.megabytes,
        )  # fmt: skip

    def _join(
        self, chosen: Chosen, below: list[PlanNode], fresh: list[int], rows: float, width: float
    ) -> tuple[PlanNode, list[int]]:
        one, other = chosen.inputs
        index, kind, text = -1, "cross", ""
        place = self.places.sites[chosen.site]
        for number, (said, left, right, condition) in enumerate(self._graph.outer):
            whole = left | right
            if not whole & ~chosen.items and whole & ~one.items and whole & ~other.items:
                index, kind, text = number, said, condition
                if left & ~one.items:
                    one, other, below = other, one, below[::-1]
        figures = [self.plans.figures(each.items) for each in (one, other)]
        if index < 0:
            if figures[0][0] * figures[0][1] < figures[1][0] * figures[1][1]:
                one, other, below, figures = other, one, below[::-1], figures[::-1]
            predicates = self._graph.predicates
            fresh = sorted(fresh, key=lambda each: not predicates[each].equal)
            if fresh:
                index, kind, text = fresh[0], "inner", predicates[fresh[0]].text
                fresh = fresh[1:]
        work = self.plans.join_rows(one.items, other.items, rows)
        own = self.places.model.rows(place, work)
        node = operator(
            "join", place, below, own, rows, width, waits=1, index=index, kind=kind, text=text,
            memory_megabytes=2 * figures[1][0] * figures[1][1] / MEGABYTE,
        )  # fmt: skip
        return node, fresh

    # --- no plan ---------------------------------------------------------------------------

    def _not_together(self) -> QueryRefused:
        """The rows of all units cannot meet, or not where a function may be."""
        uris = [unit.relation.uri for unit in self._graph.units if unit.relation is not None]
        names = [unit.relation.name if unit.relation else unit.alias for unit in self._graph.units]
        functions = [each for step in self._graph.steps for each in step.alternatives]
        uris += [each.uri for each in functions]
        reason = f"no cycle provider may have the rows of {', '.join(dict.fromkeys(names))}"
        if functions:
            names = [each.name for each in functions]
            reason += f" and the code of {', '.join(dict.fromkeys(names))}"
        return self.places.no_plan(f"{reason} together", uris, self.places.sites)
