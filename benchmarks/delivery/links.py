"""``links``: a message cut for 1, 8 and 32 links whose needs are equal."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import within
from benchmarks.samples import mean
from benchmarks.workload.operators import OPERATORS, make_feeds
from formats import parse_text
from yfilter import parse_profile
from yfilter.projection.profile_needs import needs_of
from yfilter.projection.transformer import Transformer

_LINKS = (1, 8, 32)
_PROFILES = 20  # of each link


def measure_links(job: DeliverJob, teller: Teller) -> None:
    """Microseconds for all links; the message is parsed before."""
    texts = OPERATORS["equality_constructed"].profiles(_PROFILES, job.seed)
    needs = [need for text in texts for need in needs_of(parse_profile(text))]
    messages = make_feeds(job.seed, job.warmup + job.measured)
    base = None
    for links in _LINKS:
        transformers = [Transformer() for _ in range(links)]
        for transformer in transformers:
            for need in needs:
                transformer.add(need)
        _cut(transformers, messages[: job.warmup], job)
        times = _cut(transformers, messages[job.warmup :], job)
        key = f"links_{links}_us"
        teller.figure(key, f"cut for {links} links", mean(times), "us", base)
        base = base or key


def _cut(
    transformers: Sequence[Transformer], messages: Sequence[bytes], job: DeliverJob
) -> list[float]:
    clock = job.clock()
    times: list[float] = []

    def one(message: bytes) -> None:
        stream = parse_text(message)
        start = clock()
        for transformer in transformers:
            transformer.project(stream)
        times.append((clock() - start) / 1000)

    within(messages, one, job.seconds)
    return times
