"""``flwor``: FLWOR profiles whose ``where`` mixes ``or``, ``contains`` and ``not``."""

from __future__ import annotations

from benchmarks.delivery.answers import check
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import make_matcher, measure
from benchmarks.samples import mean
from benchmarks.workload.operators import make_feeds, mixed_flwor


def measure_flwor(job: DeliverJob, teller: Teller) -> None:
    """All-in with results."""
    profiles = list(mixed_flwor(job.number, job.seed))
    messages = make_feeds(job.seed, job.warmup + job.measured)
    matcher = make_matcher(profiles)
    times = measure(matcher, messages[: job.warmup], messages[job.warmup :], job)
    compared = check(matcher, profiles, messages[job.warmup :], job)
    teller.figure("flwor_number", "FLWOR profiles, mixed", job.number)
    teller.figure("flwor_matches", "FLWOR: matches a message", mean(times.matches))
    teller.figure("flwor_lxml_parse_us", "FLWOR: lxml parses (U)", mean(times.lxml_parse), "us")
    unit = "flwor_lxml_parse_us"
    teller.figure("flwor_mixed_us", "FLWOR: all-in", mean(times.all_in), "us", unit)
    teller.figure("flwor_results_us", "FLWOR: results alone", times.results_us, "us", unit)
    teller.figure("flwor_messages_measured", "FLWOR: messages measured", len(times.all_in))
    teller.figure("flwor_checked", "FLWOR: answers as Saxon gives them", compared)
