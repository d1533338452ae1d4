"""Compatibility: the bits of random markets against the rules, said once more in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from registration.queries.compatibility import Compatibility, Denial
from registration.queries.providers import (
    RIGHTS,
    CycleProvider,
    DataProvider,
    Flow,
    Function,
    FunctionProvider,
    Group,
    Market,
    Permission,
    Relation,
)

SUBJECTS = ("user/ann", "user/bob", "group/staff", "group/guests", "*", "anonymous", "")
USERS = (("", ()), ("ann", ()), ("bob", ("staff",)), ("eve", ("guests", "staff")))
GROUPS = ("passau", "munich")
SEEDS = 200


def random_market(random: Random) -> Market:
    cycles = {
        f"c{n}": CycleProvider(
            f"c{n}",
            f"C{n}",
            "host",
            7000 + n if n else random.choice((None, 7000)),
            frozenset(group for group in GROUPS if random.random() < 0.4),
        )
        for n in range(random.randint(1, 5))
    }
    data = {f"d{n}": DataProvider(f"d{n}", f"D{n}") for n in range(2)}
    owners = {f"o{n}": FunctionProvider(f"o{n}", f"O{n}") for n in range(2)}
    relations = {}
    for n in range(4):
        provider = random.choice(sorted(data))
        read_at = tuple(random.sample(sorted(cycles), random.randint(1, len(cycles))))
        name = f"{data[provider].name}.R{n}"
        relations[f"r{n}"] = Relation(f"r{n}", name, provider, read_at, "csv", "/x", ())
    functions = {
        f"f{n}": Function(f"f{n}", "f", random.choice(sorted(owners)), "scalar", (), (("", "int"),))
        for n in range(3)
    }
    things = [*cycles, *data, *owners, *relations, *functions, "nothing"]
    permissions = tuple(
        Permission(
            f"p{n}", random.choice(SUBJECTS), random.choice((*RIGHTS, "")), random.choice(things)
        )
        for n in range(random.randint(0, 8))
    )
    flows = tuple(
        Flow(
            f"w{n}",
            random.choice(things),
            random.choice([*cycles, None, None]),
            random.choice([*GROUPS, "nobody", None]),
            random.random() < 0.3,
        )
        for n in range(random.randint(0, 6))
    )
    return Market(data, owners, cycles, relations, functions, (), permissions, flows)


class PlainRules:
    """The docstrings of Permission and Flow, a question at a time."""

    def __init__(self, market: Market, user: str, groups: tuple[str, ...]) -> None:
        self.market, self.user, self.groups = market, user, groups

    def is_named(self, subject: str) -> bool:
        if subject == "anonymous":
            return True
        if subject == "*":
            return self.user != ""
        kind, _, name = subject.partition("/")
        if kind == "user":
            return name == self.user
        return kind == "group" and name in self.groups and self.user != ""

    def may(self, right: str, resource: str) -> bool:
        naming = [
            rule
            for rule in self.market.permissions
            if rule.resource == resource and rule.right in (right, "")
        ]
        return not naming or any(self.is_named(rule.subject) for rule in naming)

    def flows(
        self, resource: str, site: CycleProvider, read_at: tuple[str, ...], *, aggregates: bool
    ) -> bool:
        naming = [flow for flow in self.market.flows if flow.resource == resource]
        if not naming or site.uri in read_at:
            return True
        return any(
            (site.uri == flow.to or flow.to_group in site.groups)
            and (aggregates or not flow.aggregates_only)
            for flow in naming
        )

    def reads(self, of: Relation, site: CycleProvider) -> bool:
        is_allowed = self.may("read", of.uri) and self.may("read", of.provider)
        return site.uri in of.read_at and is_allowed and self.may("use", site.uri)

    def has_rows(self, of: Relation, site: CycleProvider, *, aggregates: bool) -> bool:
        return self.may("use", site.uri) and all(
            self.flows(each, site, of.read_at, aggregates=aggregates)
            for each in (of.uri, of.provider)
        )

    def runs(self, of: Function, site: CycleProvider) -> bool:
        return (
            all(self.may(right, of.uri) for right in ("execute", "load"))
            and all(self.may(right, of.provider) for right in ("execute", "load"))
            and self.may("load", site.uri)
            and self.may("use", site.uri)
            and all(self.flows(each, site, (), aggregates=False) for each in (of.uri, of.provider))
        )


def cases() -> Iterator[tuple[Market, PlainRules, Compatibility]]:
    for seed in range(SEEDS):
        print(f"seed {seed}")
        market = random_market(Random(seed))
        for user, groups in USERS:
            known = {each: Group(each, each, frozenset({user})) for each in groups}
            known["others"] = Group("others", "guests", frozenset({"someone"}))
            grouped = replace(market, groups=known)
            yield grouped, PlainRules(grouped, user, groups), Compatibility(grouped, user)


def mask_of(places: Sequence[bool]) -> int:
    return sum(1 << at for at, is_allowed in enumerate(places) if is_allowed)


def test_masks_are_what_the_rules_say() -> None:
    for market, rules, bits in cases():
        sites = list(enumerate(bits.sites))
        assert [each.uri for each in bits.sites] == sorted(each.uri for each in bits.sites)
        for uri, of in market.relations.items():
            reads = [rules.reads(of, site) for _, site in sites]
            rows = [rules.has_rows(of, site, aggregates=False) for _, site in sites]
            partly = [rules.has_rows(of, site, aggregates=True) for _, site in sites]
            assert bits.read_mask(uri) == mask_of(reads), uri
            assert bits.flow_mask(uri) == mask_of(rows), uri
            assert bits.aggregate_mask(uri) == mask_of(partly), uri
        for uri, function in market.functions.items():
            runs = [rules.runs(function, site) for _, site in sites]
            assert bits.function_mask(uri) == mask_of(runs), uri


def test_what_is_forbidden_has_a_rule_and_what_is_allowed_none() -> None:
    for market, rules, bits in cases():
        for site in bits.sites:
            at = 1 << bits.sites.index(site)
            assert bool(bits.execute_mask & at) == (rules.may("use", site.uri))
            for uri in market.functions:
                said = bits.why(uri, site.uri)
                assert bool(said) == (not bits.function_mask(uri) & at), (uri, site.uri, said)
            for uri, relation in market.relations.items():
                said = bits.why(uri, site.uri)
                may = rules.reads(replace(relation, read_at=(*relation.read_at, site.uri)), site)
                assert bool(said) == (not (bits.flow_mask(uri) & at and may)), (uri, site.uri, said)
        for uri in market.relations:
            if not bits.read_mask(uri):
                assert bits.why(uri), uri


def test_each_denial_names_a_rule_about_its_resource() -> None:
    for market, _, bits in cases():
        rules = {rule.uri: rule.resource for rule in market.permissions}
        rules |= {rule.uri: rule.resource for rule in market.flows}
        for denial in bits.denials():
            assert rules[denial.rule] == denial.resource
            assert denial.kind in (*RIGHTS, "flow", "aggregates")


@pytest.fixture
def figure_1() -> Market:
    cycles = {
        "A": CycleProvider("A", "A", "a", 1, frozenset({"passau"})),
        "B": CycleProvider("B", "B", "b", 2),
        "client": CycleProvider("client", "client"),
    }
    relations = {"R": Relation("R", "A.R", "A", ("A",), "csv", "/r", ())}
    return Market({"A": DataProvider("A", "A")}, {}, cycles, relations, {})


def test_rows_that_only_aggregates_may_leave(figure_1: Market) -> None:
    flow = Flow("rule", "R", to="client", aggregates_only=True)
    market = Market(
        figure_1.data_providers,
        {},
        figure_1.cycle_providers,
        figure_1.relations,
        {},
        (),
        (),
        (flow,),
    )
    bits = Compatibility(market, "ann")
    assert bits.flow_mask("R") == 0b001
    assert bits.aggregate_mask("R") == 0b101
    assert bits.denials() == (
        Denial("flow", "R", "B", "rule"),
        Denial("aggregates", "R", "client", "rule"),
    )
    assert bits.why("R", "B") == ("rule",)


def test_nothing_is_known_of_what_the_market_does_not_have(figure_1: Market) -> None:
    bits = Compatibility(figure_1)
    assert bits.read_mask("X") == bits.flow_mask("X") == bits.function_mask("X") == 0
    assert not bits.denials()
    assert not bits.why("X")
