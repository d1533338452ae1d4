"""Report: the run as it happens and as a summary, on a terminal or in a file.

Colour and pictures only help; everything is said in words as well.  Without a terminal there is
no colour.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TextIO

from demo.outcome import Outcome, Run, policy_of
from demo.picture import draw_crossings
from demo.planning import DemoPlan
from demo.scenario import Scenario
from demo.traffic import Visit
from demo.verdict import FAULT_KINDS, Fault
from onyx.drawing import broker_text, columns

FAULTS_SHOWN = 20
_NAMES_SHOWN = 4
_PATTERNS_SHOWN = 8
_COLOURS = {"bold": "1", "green": "32", "red": "31", "yellow": "33", "dim": "2", "cyan": "36"}


class Report:
    """Writes to ``stream``; ``quiet`` leaves out what is shown as it happens."""

    def __init__(self, stream: TextIO, scenario: Scenario, *, quiet: bool, colour: bool) -> None:
        self._stream = stream
        self._scenario = scenario
        self._quiet = quiet
        self._colour = colour
        self._start = time.monotonic()

    # --- live -----------------------------------------------------------------------------

    def step(self, text: str) -> None:
        """What begins now."""
        seconds = time.monotonic() - self._start
        self._line(f"{self._paint('dim', f'{seconds:5.1f} s')}  {text}")

    def visit(self, run: Run, visit: Visit) -> None:
        """What a broker did with a message: links it crossed, users it was delivered to."""
        if self._quiet:
            return
        name = self._message_name(run, visit)
        if visit.refused:
            self._line(
                f"         {name:16} {visit.broker}  {self._paint('red', 'refused')} "
                f"[{visit.refused}]"
            )
            return
        links = ", ".join(f"{child} ({_size(size)})" for child, size in visit.links)
        way = f"→ {links}" if links else "stays"
        users = self._users(run, visit.profiles)
        got = f"  {self._paint('green', '✓')} {users}" if users else ""
        arrow = "●" if visit.accepted else " "
        self._line(f"       {arrow} {name:16} {visit.broker}  {way}{got}")

    def _message_name(self, run: Run, visit: Visit) -> str:
        source = next(name for name, entry in run.sources.items() if entry.id == visit.source)
        return f"{source} {visit.number}"

    def _users(self, run: Run, profiles: list[str]) -> str:
        """The first few names; profiles of one user count as one."""
        owner = {
            registered.id: profile.user
            for registered, profile in zip(run.profiles, self._scenario.profiles, strict=True)
        }
        names = list(dict.fromkeys(owner[profile] for profile in profiles))
        rest = len(names) - _NAMES_SHOWN
        return ", ".join(names[:_NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")

    # --- summary --------------------------------------------------------------------------

    def summary(self, outcome: Outcome) -> None:
        if outcome.run.plan is not None:
            self._head("How profiles are placed")
            self._show_plan(outcome.run.plan, outcome.run)
        self._head("What each user got")
        self._show_users(outcome)
        if outcome.refused:
            self._head(f"Messages refused: {len(outcome.refused)}")
            self._show_refusals(outcome)
        self._head("Which links the messages crossed")
        self._show_links(outcome)
        self._head("Checked")
        self._show_checks(outcome)

    def _show_plan(self, made: DemoPlan, run: Run) -> None:
        """The patterns and partitions that were chosen."""
        plan, counts = made.plan, Counter(made.partition_of)
        rows: list[tuple[str, ...]] = [("pattern", "profiles", "partitions")]
        for rule in plan.rules[:_PATTERNS_SHOWN]:
            rows.append((rule.pattern, f"{rule.load:g}", str(rule.spread)))
        self._table(rows, right={1, 2})
        if len(plan.rules) > _PATTERNS_SHOWN:
            self._line(f"  … and {len(plan.rules) - _PATTERNS_SHOWN} more")
        self._line("")
        for broker in sorted(set(plan.brokers)):
            own = [number for number, host in enumerate(plan.brokers) if host == broker]
            sizes = ", ".join(
                f"{number} ({counts[number]}{', any' if number in plan.dont_care else ''})"
                for number in own
            )
            self._line(f"  {broker_text(run.topology.broker(broker))}: partitions {sizes}")
        self._line(
            f"  in brackets how many profiles; any: {plan.facts.dont_care:g} profiles that no "
            "pattern confines, near their users"
        )

    def _show_users(self, outcome: Outcome) -> None:
        messages: Counter[str] = Counter()
        results: Counter[str] = Counter()
        for key, made in outcome.run.deliveries:
            messages[key.profile] += 1
            results[key.profile] += len(made)
        rows: list[tuple[str, ...]] = [("user", "profile", "host", "messages", "results")]
        for profile, registered in zip(
            outcome.scenario.profiles, outcome.run.profiles, strict=True
        ):
            counts = messages[registered.id], results[registered.id]
            rows.append((profile.user, profile.name, registered.broker, *map(str, counts)))
        self._table(rows, right={3, 4})

    def _show_refusals(self, outcome: Outcome) -> None:
        for name, refusal in outcome.refused:
            policy = policy_of(refusal)
            self._line(f"  {name}: {refusal}" + (f" – policy: {policy}" if policy else ""))
            if name in outcome.disagreements:
                self._line(self._paint("red", f"      {outcome.disagreements[name]}"))

    def _show_links(self, outcome: Outcome) -> None:
        run = outcome.run

        def label(broker: str) -> str:
            return broker_text(run.topology.broker(broker))

        for root, accepted in outcome.accepted_by_root.items():
            names = [name for name, entry in run.sources.items() if entry.broker == root]
            self._line(
                f"  broadcast tree of {label(root)}: {accepted} messages of {', '.join(names)}"
            )
            crossings = run.traffic.crossings
            for line in draw_crossings(run.trees[root], label, crossings, accepted):
                self._line(f"    {line}")
            self._line("")
        total, flooding = run.crossings_counted, outcome.flooding
        saved = 1 - total / flooding if flooding else 0.0
        self._line(
            f"  {total} link crossings, {_size(run.traffic.bytes_total)}; flooding would have "
            f"cost {flooding}: {saved:.0%} saved"
        )
        if run.crossings_cut:
            whole = run.traffic.bytes_total + run.bytes_saved
            self._line(
                f"  {run.crossings_cut} carried less than the message, what somebody behind the "
                f"link needs: about {_size(run.bytes_saved)} saved, {run.bytes_saved / whole:.0%}"
            )

    def _show_checks(self, outcome: Outcome) -> None:
        run, verdict = outcome.run, outcome.verdict
        matched = len({key.profile for key, _ in run.deliveries})
        rate = len(run.decisions) / run.publish_seconds if run.publish_seconds else 0.0
        self._line(
            f"  {len(run.decisions)} messages published, {outcome.accepted} accepted, "
            f"{len(outcome.refused)} refused; {run.publish_seconds:.1f} s, {rate:.0f} a second"
        )
        self._line(
            f"  {len(run.profiles)} profiles evaluated one by one on each message: "
            f"{matched} got something, {len(run.profiles) - matched} nothing"
        )
        kinds = Counter(fault.kind for fault in verdict.faults)
        faults = ", ".join(f"{kinds[kind]} {kind}" for kind in FAULT_KINDS)
        self._line(
            f"  {verdict.right} deliveries with {verdict.results} results are right; {faults}"
        )
        for fault in verdict.faults[:FAULTS_SHOWN]:
            self._line(self._paint("red", f"    {self._fault(outcome, fault)}"))
        if len(verdict.faults) > FAULTS_SHOWN:
            self._line(f"    … and {len(verdict.faults) - FAULTS_SHOWN} more")
        for name, wrong in outcome.disagreements.items():
            self._line(self._paint("red", f"  {name}: {wrong}"))
        for problem in (*outcome.problems, *outcome.leftovers):
            self._line(self._paint("red", f"  {problem}"))
        if not outcome.leftovers:
            self._line("  no process, no port and no temporary file is left")
        self._line("")
        if outcome.good:
            self._line(self._paint("green", "✓ every user got exactly what their profiles ask for"))
        else:
            self._line(self._paint("red", "✗ not everything is as it should be"))

    def _fault(self, outcome: Outcome, fault: Fault) -> str:
        place = next(
            place
            for place, registered in enumerate(outcome.run.profiles)
            if registered.id == fault.key.profile
        )
        profile = outcome.scenario.profiles[place]
        name = _name_of(outcome, fault.key.source, fault.key.number)
        return f"{fault.kind}: {name} for {profile.user} ({profile.name}): {fault.detail}"

    # --- lines ----------------------------------------------------------------------------

    def _head(self, text: str) -> None:
        self._line("")
        self._line(self._paint("bold", text))

    def _table(self, rows: list[tuple[str, ...]], right: set[int]) -> None:
        alignment = ("<>"[column in right] for column in range(len(rows[0])))
        for line in columns(rows, alignment).splitlines():
            self._line(f"  {line}")

    def _line(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._colour else text


def to_json(outcome: Outcome) -> dict[str, object]:
    """The summary as plain values."""
    run = outcome.run
    messages = Counter(key.profile for key, _ in run.deliveries)
    return {
        "good": outcome.good,
        "published": len(run.decisions),
        "accepted": outcome.accepted,
        "refused": [
            {
                "message": name,
                "code": refusal.code,
                "reason": refusal.reason,
                "line": refusal.line,
                "column": refusal.column,
                "policy": policy_of(refusal),
            }
            for name, refusal in outcome.refused
        ],
        "plan": {
            "partitions": run.plan.plan.partitions,
            "patterns": [rule.pattern for rule in run.plan.plan.rules],
            "brokers": list(run.plan.plan.brokers),
            "profiles": Counter(run.plan.partition_of),
            "matched_share": run.plan.plan.facts.matched_share,
        }
        if run.plan is not None
        else None,
        "sources": {name: entry.broker for name, entry in run.sources.items()},
        "profiles": [
            {
                "name": profile.name,
                "user": profile.user,
                "host": registered.broker,
                "messages": messages[registered.id],
            }
            for profile, registered in zip(outcome.scenario.profiles, run.profiles, strict=True)
        ],
        "deliveries": len(run.deliveries),
        "right": outcome.verdict.right,
        "faults": [
            {
                "kind": fault.kind,
                "profile": fault.key.profile,
                "message": _name_of(outcome, fault.key.source, fault.key.number),
                "detail": fault.detail,
            }
            for fault in outcome.verdict.faults
        ],
        "crossings": [
            {"root": crossing.root, "from": crossing.parent, "to": crossing.child, "count": count}
            for crossing, count in sorted(run.traffic.crossings.items())
        ],
        "crossings_total": run.crossings_counted,
        "crossings_of_flooding": outcome.flooding,
        "crossings_cut": run.crossings_cut,
        "bytes": run.traffic.bytes_total,
        "bytes_saved": run.bytes_saved,
        "disagreements": dict(outcome.disagreements),
        "problems": list(outcome.problems),
        "leftovers": list(outcome.leftovers),
        "publish_seconds": round(run.publish_seconds, 3),
    }


def _name_of(outcome: Outcome, source: str, number: int) -> str:
    """The name of a source's message by its number; where it has none, the number."""
    for place, decision in outcome.run.decisions.items():
        message = outcome.scenario.messages[place]
        if message.source == source and decision.number == number:
            return message.name
    return f"{source} {number}"


def _size(size: int) -> str:
    """Bytes for people."""
    if size < 1_000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{size / 1_000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"
