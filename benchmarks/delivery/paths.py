"""``paths``: path profiles, the results whole messages; the workload of ``match``."""

from __future__ import annotations

from itertools import islice

from benchmarks.delivery.answers import check
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import make_matcher, measure
from benchmarks.samples import mean
from benchmarks.workload import ProfileMaker, make_messages, make_schema

_SIZE = 10_000  # bytes of a message


def measure_paths(job: DeliverJob, teller: Teller) -> None:
    """All-in with results, and what a result costs beyond matching."""
    schema = make_schema(job.seed)
    profiles = list(islice(ProfileMaker(schema, job.seed).distinct(), job.number))
    messages = make_messages(schema, job.seed, job.warmup + job.measured, _SIZE)
    matcher = make_matcher(profiles)
    times = measure(matcher, messages[: job.warmup], messages[job.warmup :], job)
    compared = check(matcher, profiles, messages[job.warmup :], job)
    matches = mean(times.matches)
    teller.figure("number", "path profiles", job.number)
    teller.figure("matches", "matches a message", matches)
    teller.figure("lxml_parse_us", "lxml parses (U)", mean(times.lxml_parse), "us")
    teller.figure("all_in_us", "all-in, with results", mean(times.all_in), "us", "lxml_parse_us")
    teller.figure(
        "matched_us", "seen before, numbers alone", mean(times.matched), "us", "lxml_parse_us"
    )
    teller.figure("results_us", "results, beyond that", times.results_us, "us", "lxml_parse_us")
    each = 1000 * times.results_us / matches if matches else None
    teller.figure("result_ns_each", "a result", each, "ns")
    teller.figure("messages_measured", "messages measured", len(times.all_in))
    teller.figure("checked", "answers as Saxon gives them", compared)
