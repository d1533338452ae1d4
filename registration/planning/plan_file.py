"""The plan as an artefact: one JSON text with a version and an id that is its own checksum.

::

    {"format": "onyx-plan", "version": 1, "id": "3f0c…", "partitions": 200,
     "topology": "figure4", "brokers": ["B1", …],        host broker of each partition, or []
     "dont_care": [199],                                  partitions of "don't care" profiles
     "rules": [{"pattern": "/nitf/head/pubdata/@edition.area", "at_most": 1, "expected": 0.98,
                "load": 412.0, "values": {"SF": [3], "NY": [4, 5]}, "crowded": {"NY": 310.0},
                "slots": [6, 6, 7, …]}, …],
     "facts": {"load": …, "loads": […], "matched_share": …, …}}

``at_most`` null means no bound.  The id is the SHA-256 of everything else; a plan that was changed
by hand is refused, as is one of another version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import inf, isfinite, isinf
from typing import Any, NoReturn

from formats.errors import Fault, Refusal
from registration.planning.plan import Facts, Plan, Rule

FORMAT = "onyx-plan"
VERSION = 1
FILE_BYTES_MAX = 256 * 1024 * 1024
PARTITIONS_MAX = 100_000


class PlanError(Refusal):
    """A plan that cannot be used: ``name`` of the file, ``key`` in it, ``reason``."""

    kind = "plan-refused"

    def __init__(self, name: str, key: str, reason: str) -> None:
        super().__init__(Fault(reason=reason, where=f"{name}: {key}" if key else name))


def plan_id(plan: Plan) -> str:
    """The same for equal plans: 16 hexadecimal digits."""
    return _id(_content(plan))


def to_json(plan: Plan) -> str:
    content = _content(plan)
    head = {"format": FORMAT, "version": VERSION, "id": _id(content)}
    return json.dumps({**head, **content}, ensure_ascii=False) + "\n"


def from_json(text: str | bytes, name: str = "the plan") -> Plan:
    """The plan in ``text``; PlanError says what is wrong with it and where."""
    try:
        top = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError(name, "", f"is not JSON: {error}") from None
    reader = _Reader(name)
    if not isinstance(top, dict) or top.get("format") != FORMAT:
        reader.refuse("format", f'this is no plan, expected "{FORMAT}"')
    if top.get("version") != VERSION:
        reader.refuse(
            "version", f"{top.get('version')!r} is not read, expected {VERSION}; make the plan anew"
        )
    plan = reader.plan(top)
    if top.get("id") != plan_id(plan):
        reader.refuse("id", "the content is not what the plan was when it was made")
    return plan


def _id(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _content(plan: Plan) -> dict[str, Any]:
    facts = plan.facts
    return {
        "partitions": plan.partitions,
        "topology": plan.topology,
        "brokers": list(plan.brokers),
        "dont_care": list(plan.dont_care),
        "facts": {
            "load": facts.load,
            "refused": facts.refused,
            "dont_care": facts.dont_care,
            "matched_share": facts.matched_share,
            "brokers_share": facts.brokers_share,
            "samples": facts.samples,
            "loads": list(facts.loads),
        },
        "rules": [
            {
                "pattern": rule.pattern,
                "at_most": None if isinf(rule.at_most) else rule.at_most,
                "expected": rule.expected,
                "load": rule.load,
                "values": {value: list(where) for value, where in rule.values.items()},
                "crowded": dict(rule.crowded),
                "slots": list(rule.slots),
            }
            for rule in plan.rules
        ],
    }


class _Reader:
    """Takes JSON apart and trusts nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._partitions = 0

    def refuse(self, key: str, reason: str) -> NoReturn:
        raise PlanError(self._name, key, reason)

    def plan(self, top: dict[str, Any]) -> Plan:
        self._partitions = self._count(top.get("partitions"), "partitions", PARTITIONS_MAX)
        if self._partitions < 1:
            self.refuse("partitions", "there must be at least one")
        brokers = self._list(top.get("brokers"), "brokers")
        if not all(isinstance(broker, str) for broker in brokers):
            self.refuse("brokers", "must be ids of brokers")
        if len(brokers) not in (0, self._partitions):
            self.refuse("brokers", f"{len(brokers)} brokers for {self._partitions} partitions")
        dont_care = self._places(top.get("dont_care"), "dont_care")
        rules = tuple(
            self._rule(rule, f"rules[{place}]")
            for place, rule in enumerate(self._list(top.get("rules"), "rules"))
        )
        if len({rule.pattern for rule in rules}) < len(rules):
            self.refuse("rules", "two rules have the same pattern")
        topology = self._text(top.get("topology"), "topology")
        facts = self._facts(self._table(top.get("facts"), "facts"))
        return Plan(self._partitions, rules, dont_care, facts, tuple(brokers), topology)

    def _facts(self, facts: dict[str, Any]) -> Facts:
        loads = self._list(facts.get("loads"), "facts.loads")
        if len(loads) != self._partitions:
            self.refuse("facts.loads", f"{len(loads)} loads for {self._partitions} partitions")
        return Facts(
            load=self._number(facts.get("load"), "facts.load"),
            refused=self._count(facts.get("refused"), "facts.refused"),
            dont_care=self._number(facts.get("dont_care"), "facts.dont_care"),
            matched_share=self._number(facts.get("matched_share"), "facts.matched_share"),
            brokers_share=self._number(facts.get("brokers_share"), "facts.brokers_share"),
            samples=self._count(facts.get("samples"), "facts.samples"),
            loads=tuple(self._number(load, "facts.loads") for load in loads),
        )

    def _rule(self, value: Any, key: str) -> Rule:
        rule = self._table(value, key)
        values = self._table(rule.get("values"), f"{key}.values")
        crowded = self._table(rule.get("crowded"), f"{key}.crowded")
        slots = self._places(rule.get("slots"), f"{key}.slots")
        if len(slots) & (len(slots) - 1):
            self.refuse(f"{key}.slots", f"{len(slots)} is no power of two")
        at_most = rule.get("at_most")
        return Rule(
            pattern=self._text(rule.get("pattern"), f"{key}.pattern"),
            at_most=inf if at_most is None else self._number(at_most, f"{key}.at_most"),
            expected=self._number(rule.get("expected"), f"{key}.expected"),
            load=self._number(rule.get("load"), f"{key}.load"),
            values={
                text: self._places(where, f"{key}.values[{text!r}]")
                for text, where in values.items()
            },
            slots=slots,
            crowded={
                text: self._number(load, f"{key}.crowded[{text!r}]")
                for text, load in crowded.items()
            },
        )

    def _places(self, value: Any, key: str) -> tuple[int, ...]:
        """One or more partitions."""
        found = self._list(value, key)
        if not found:
            self.refuse(key, "must name at least one partition")
        for place in found:
            if self._count(place, key) >= self._partitions:
                self.refuse(key, f"{place} is no partition, expected 0 to {self._partitions - 1}")
        return tuple(found)

    def _table(self, value: Any, key: str) -> dict[str, Any]:
        return value if isinstance(value, dict) else self.refuse(key, "must be an object")

    def _list(self, value: Any, key: str) -> list[Any]:
        return value if isinstance(value, list) else self.refuse(key, "must be a list")

    def _text(self, value: Any, key: str) -> str:
        return value if isinstance(value, str) else self.refuse(key, "must be a string")

    def _count(self, value: Any, key: str, most: int = 2**63) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            return value
        return self.refuse(key, f"{value!r} is no whole number from 0 to {most}")

    def _number(self, value: Any, key: str) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not isfinite(value) or value < 0:
            self.refuse(key, f"{value!r} is no number of at least 0")
        return float(value)
