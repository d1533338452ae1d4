"""The report on a plan: one HTML page with its pictures in it, for people who decide on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from math import isinf

from onyx.charts import Curve, columns_svg, curves_svg
from registration.planning.plan import Plan, Rule
from registration.planning.plan_file import plan_id
from registration.spark.population import RefusedProfile

_RULES_SHOWN = 50

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 "Inter", "Segoe UI", "Helvetica Neue", Arial, sans-serif;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.25rem 0.6rem; border-bottom: 1px solid #8884; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-size: 0.85rem; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
.warning { border-left: 4px solid #c2410c; padding-left: 0.8rem; }
"""


def load_svg(plan: Plan) -> str:
    """The load of each partition."""
    return columns_svg("Load of each partition", "partition", "profiles", plan.facts.loads)


def coverage_svg(plan: Plan) -> str:
    """How much of the population the first patterns of the plan place."""
    placed = 0.0
    points = [(0.0, 0.0)]
    for number, rule in enumerate(sorted(plan.rules, key=lambda rule: -rule.load), 1):
        placed += rule.load
        points.append((float(number), 100 * placed / plan.facts.load))
    return curves_svg(
        "Coverage by the number of patterns",
        "patterns, the largest first",
        "profiles placed (%)",
        [Curve("coverage", points)],
    )


def plan_report(
    plan: Plan, refused: Sequence[RefusedProfile] = (), messages_refused: int = 0
) -> str:
    """The page."""
    facts = plan.facts
    basis = (
        f"measured on {facts.samples:,} sampled messages"
        if facts.samples
        else "estimated without messages, from the schemas"
    )
    rows = [
        ("profiles (by load)", f"{facts.load:,.0f}"),
        ("partitions", f"{plan.partitions:,}"),
        ("patterns", f"{len(plan.rules):,}"),
        ("coverage", f"{facts.coverage:.2%}"),
        ("largest partition over the mean", f"{facts.imbalance:.3f}"),
        ("partitions that a message visits", f"{facts.matched_share:.2%}, {basis}"),
    ]
    if plan.brokers:
        rows.append(("topology", plan.topology))
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>Plan {plan_id(plan)}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>Plan <code>{plan_id(plan)}</code></h1>",
        _table(("", ""), rows, numbers=()),
        *_warnings(plan, refused, messages_refused),
        "<h2>Coverage</h2>",
        coverage_svg(plan),
        "<h2>Load</h2>",
        load_svg(plan),
        "<h2>Patterns</h2>",
        *_patterns(plan),
        *_brokers(plan),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _patterns(plan: Plan) -> Iterator[str]:
    shown = plan.rules[:_RULES_SHOWN]
    heading = (
        "pattern",
        "profiles",
        "at most in a message",
        "values in a message",
        "partitions",
        "single values",
    )
    yield _table(heading, [_pattern_row(rule) for rule in shown], numbers=range(1, 6))
    if len(plan.rules) > len(shown):
        yield f"<p>… and {len(plan.rules) - len(shown):,} more, all in plan.json.</p>"


def _pattern_row(rule: Rule) -> tuple[str, ...]:
    return (
        rule.pattern,
        f"{rule.load:,.0f}",
        "no bound" if isinf(rule.at_most) else f"{rule.at_most:g}",
        f"{rule.expected:.2f}",
        f"{rule.spread:,}",
        f"{len(rule.values):,}",
    )


def _brokers(plan: Plan) -> Iterator[str]:
    if not plan.brokers:
        return
    counts = Counter(plan.brokers)
    loads: Counter[str] = Counter()
    for broker, load in zip(plan.brokers, plan.facts.loads, strict=True):
        loads[broker] += round(load)
    yield "<h2>Brokers</h2>"
    yield _table(
        ("broker", "partitions", "profiles"),
        [(broker, f"{counts[broker]:,}", f"{loads[broker]:,}") for broker in sorted(counts)],
        numbers=(1, 2),
    )


def _warnings(
    plan: Plan, refused: Sequence[RefusedProfile], messages_refused: int
) -> Iterator[str]:
    if plan.facts.refused:
        yield f'<p class="warning">{plan.facts.refused:,} texts are no profiles and were left out.'
        yield f"{'The first' if plan.facts.refused > len(refused) else 'They'}:</p>"
        rows = [(entry.profile, entry.reason) for entry in refused]
        yield _table(("profile", "reason"), rows, numbers=())
    if messages_refused:
        yield f'<p class="warning">{messages_refused:,} sampled messages could not be read.</p>'


def _table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] | range
) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "".join(
            f'<{tag} class="number">{escape(cell)}</{tag}>'
            if place in numbers
            else f"<{tag}>{escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )

    head = f"<tr>{line('th', heading)}</tr>" if any(heading) else ""
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table>{head}{body}</table>"
