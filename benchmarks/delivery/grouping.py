"""``grouping``: the grouping idiom, a profile that groups 2,000 distinct values in 31 KB."""

from __future__ import annotations

from random import Random

from benchmarks.delivery.answers import check
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import make_matcher, measure
from benchmarks.samples import mean

_VALUES = 2_000
_FORMS = {
    "grouping_ms": "let $same := //e[@k = $v] return <g k='{$v}' n='{count($same)}'>{$same}</g>",
    "grouping_count_ms": "return <g k='{$v}' n='{count(//e[@k = $v])}'/>",
}


def measure_grouping(job: DeliverJob, teller: Teller) -> None:
    """Milliseconds from bytes to results, for messages that have each value once."""
    random = Random(f"grouping {job.seed}")
    values = min(_VALUES, 2 * job.number)
    messages = []
    for _ in range(min(10, job.measured + 1)):
        keys = [f"v{value}" for value in random.sample(range(10_000, 100_000), values)]
        text = "".join(f'<e k="{key}"/>' for key in keys)
        messages.append(f"<log>{text}</log>".encode())
    teller.condition("grouping_bytes", "grouping: bytes a message", len(messages[0]))
    for key, form in _FORMS.items():
        profile = f"for $v in distinct-values(//e/@k) {form}"
        matcher = make_matcher([profile])
        times = measure(matcher, messages[:1], messages[1:], job)
        label = f"grouping of {values:,} values" + (", counted" if "count_" in key else "")
        made = check(matcher, [profile], messages[1:], job) and mean(times.results)
        teller.figure(key, label, mean(times.all_in) / 1000, "ms")
        teller.figure(key.replace("_ms", "_results"), "results", made)
