"""The SQL of a rule group: one statement for all its join rules (MDV, sections 3.3.3 and 3.4).

A statement starts from one input, goes along the links to the others by an index, and meets there
what has been stored of them.  The order of the joins is pinned by CROSS JOIN and decides the cost:

- *few*: the rules that a start belongs to are looked up first, then each partner by its key;
- *many*: a start that belongs to very many rules (the trigger of a class alone belongs to as many
  as there are paths from it) would look all of them up for every resource, so the matches of the
  partner are found first, and the rules by both inputs.

There must be no ANALYZE on these tables: with statistics SQLite builds a Bloom filter of the whole
rule table for every statement.
"""

from __future__ import annotations

from collections.abc import Callable

from registration.metadata.atomic_rules import TURNED, Form, Link, turned
from registration.metadata.filter_tables import COLUMNS, GUARDS, compared

FEW = 32  # rules that one input belongs to, on one side of one group
SIDES = ("l", "r")


class LinkSql:
    """Links between resources, which are SQL expressions; ``name``: the numbers of properties."""

    def __init__(self, name: Callable[[str], int]) -> None:
        self._name = name

    def path(self, link: Link, here: str) -> tuple[list[str], str] | None:
        """From the resource on the left of a link to the one on its right, by an index."""
        own, other = f"s{link.right}", f"v{link.right}"
        if not link.left_property and not link.right_property:
            return ([], here) if link.operator == "=" else None
        if not link.left_property or not link.right_property:
            if link.operator != "=":
                return None
            known, found = ("res", "ref") if link.left_property else ("ref", "res")
            prop = self._name(link.left_property or link.right_property)
            on = f"{own}.prop = {prop} AND {own}.{known} = {here} AND {own}.ref != 0"
            return [f"CROSS JOIN statements {own} ON {on}"], f"{own}.{found}"
        mine = f"{own}.res = {here} AND {own}.prop = {self._name(link.left_property)}"
        theirs = f"{other}.prop = {self._name(link.right_property)}"
        return [
            f"CROSS JOIN statements {own} ON {mine}",
            f"CROSS JOIN statements {other} ON {theirs} AND {_compared(link, own, other)}",
        ], f"{other}.res"

    def holds(self, link: Link, left: str, right: str) -> str:
        """The condition that a link between two resources is there."""
        if not link.left_property and link.right_property:
            link, left, right = turned(link), right, left
        if not link.left_property:
            return f"{left} {link.operator} {right}"
        mine = f"x.res = {left} AND x.prop = {self._name(link.left_property)}"
        if not link.right_property:
            refers = compared("x", link.operator, right, "iri")
            return f"EXISTS (SELECT 1 FROM statements x WHERE {mine} AND {refers})"
        theirs = f"y.res = {right} AND y.prop = {self._name(link.right_property)}"
        return (
            f"EXISTS (SELECT 1 FROM statements x CROSS JOIN statements y ON {theirs}"
            f" WHERE {mine} AND {_compared(link, 'x', 'y')})"
        )

    def next_place(
        self, links: list[Link], places: dict[int, str]
    ) -> tuple[Link | None, int, list[str], str]:
        """A link from a place that has been reached to one that has not: the tables on the way,
        and the resource there; "" where no index leads to it."""
        blind: int | None = None
        for each in links:
            for link in (each, turned(each)):
                if link.left in places and link.right not in places:
                    found = self.path(link, places[link.left])
                    if found is not None:
                        return each, link.right, *found
                    blind = link.right if blind is None else blind
        assert blind is not None  # all are connected
        return None, blind, [], ""


def _compared(link: Link, left: str, right: str) -> str:
    """That the values in two rows of statements compare as a link says."""
    operator = link.operator
    if operator in ("within", "without"):
        left, right, operator = right, left, TURNED[operator]

    def alike(kind: str) -> str:
        guard = GUARDS.get(kind, "").format(right)
        return guard + compared(left, operator, f"{right}.{COLUMNS[kind]}", kind)

    if link.kind or operator in ("contains", "lacks"):
        return alike(link.kind or "text")
    tests = [alike("number"), alike("moment")]
    if operator in ("=", "!="):
        no_number = "{0}.num IS NULL AND {0}.sec IS NULL AND {0}.value != 'NaN'"
        tests.append(" AND ".join((alike("text"), *map(no_number.format, (left, right)))))
        tests.append(alike("iri"))
    return f"({' OR '.join(f'({each})' for each in tests)})"


class GroupSql(LinkSql):
    """The statements of one group, which has a ``number``; ``name``: the numbers of properties."""

    def __init__(self, number: int, form: Form, name: Callable[[str], int]) -> None:
        self.form = form
        self._number = number
        super().__init__(name)
        self._is_pair = len(form.classes) == 2

    def new(self, start: int, *, is_few: bool) -> str:
        """What the rows of ``ro`` at one input give, into ``nx``."""
        limit = (
            f"EXISTS (SELECT 1 FROM deps z WHERE z.rule = d.rule AND z.grp = {self._number}"
            f" AND z.side = {start} AND z.fan {'<=' if is_few else '>'} {FEW})"
        )
        select = self._select(start, "ro d", [limit] if self._is_pair else [], is_few=is_few)
        return f"INSERT OR IGNORE INTO nx {select}"

    def late(self, start: int) -> str:
        """What is stored gives a new rule: arguments are its input at ``start`` and its number."""
        source = "(SELECT res, rule FROM matches INDEXED BY matches_rule WHERE rule = ?) d"
        target = f"{'j' if self._is_pair else 't'}.target = ?"
        return f"INSERT OR IGNORE INTO matches {self._select(start, source, [target])}"

    def kept(self) -> str:
        """The candidates of a depth (the argument) that still hold, back into ``matches``."""
        out = self.form.output
        rules = "joins j" if self._is_pair else "inputs j"
        mine = f"j.{SIDES[out]}" if self._is_pair else "j.rule"
        place = "" if self._is_pair else f" AND j.position = {out}"
        joined, where = self._others(out, "d.res", "j", is_few=True, is_looked_up=True)
        inner = " ".join(("SELECT 1 FROM matches d", *joined))
        counted = self._counted("c.rule")
        held = " AND ".join((f"d.res = c.res AND d.rule = {mine}", counted, *where))
        return (
            f"INSERT OR IGNORE INTO matches SELECT c.res, c.rule FROM cand c"
            f" CROSS JOIN {rules} ON j.target = c.rule AND j.grp = {self._number}{place}"
            f" WHERE c.depth = ? AND EXISTS ({inner} WHERE {held})"
        )

    def _select(self, start: int, source: str, where: list[str], *, is_few: bool = True) -> str:
        rules = "j" if self._is_pair else "t"
        joined, more = self._others(start, "d.res", rules, is_few=is_few)
        out = self._places[self.form.output]
        parts = (f"SELECT {out}, {rules}.target FROM {source}", *joined)
        conditions = " AND ".join([*where, self._counted(f"{rules}.target"), *more])
        return " ".join(parts) + f" WHERE {conditions}"

    def _counted(self, target: str) -> str:
        """True; counts the pairs that a rule compares, as far as an index does not (``Pairs``)."""
        return f"paired({target}, {[*self._places.values()][-1]})"

    def _others(
        self, start: int, here: str, rules: str, *, is_few: bool, is_looked_up: bool = False
    ) -> tuple[list[str], list[str]]:
        """Tables to join, and conditions, from one input to all others; ``is_looked_up``: the rule
        is known as ``rules`` already."""
        places = self._places = {start: here}
        links = list(self.form.links)
        joined: list[str] = []
        if not self._is_pair and not is_looked_up:
            joined.append(
                f"CROSS JOIN inputs t ON t.rule = d.rule AND t.grp = {self._number}"
                f" AND t.position = {start}"
            )
        while len(places) < len(self.form.classes):
            link, place, path, there = self.next_place(links, places)
            if link is not None:
                links.remove(link)
            matches = f"CROSS JOIN matches m{place}"
            at = f"m{place}.res = {there}" if there else ""
            joined += path
            if not self._is_pair:
                joined.append(
                    f"CROSS JOIN inputs t{place} ON t{place}.target = {rules}.target"
                    f" AND t{place}.position = {place}"
                )
                joined.append(_met(matches, at, f"m{place}.rule = t{place}.rule"))
            else:
                rule = f"m{place}.rule = j.{SIDES[place]}"
                look_up = (
                    f"CROSS JOIN joins j ON j.{SIDES[start]} = d.rule AND j.grp = {self._number}"
                )
                if is_looked_up:
                    joined.append(_met(matches, at, rule))
                elif is_few or not there:
                    joined += [look_up, _met(matches, at, rule)]
                else:
                    joined += [f"{matches} ON {at}", f"{look_up} AND {rule}"]
            places[place] = there or f"m{place}.res"
        return joined, [self.holds(each, places[each.left], places[each.right]) for each in links]


def _met(matches: str, at: str, rule: str) -> str:
    """What is stored of an input, by its resource, or all that there is."""
    return f"{matches} ON {at} AND {rule}" if at else f"{matches} INDEXED BY matches_rule ON {rule}"
