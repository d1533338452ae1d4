"""``links``: what is left of a message for 1, 8 and 32 links, of equal and different needs."""

from __future__ import annotations

from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.transformed import links

_LINKS = (1, 8, 32)


def measure_links(job: DeliverJob, teller: Teller) -> None:
    """Microseconds for all links; the message is parsed before."""
    few = job.measured < _FEW
    found = links.measure_links(4 if few else 20, 2 if few else 20, _LINKS, job.seed)
    for count in _LINKS:
        base = "links_1_us" if count > 1 else None
        key = f"links_{count}_us"
        teller.figure(key, f"cut for {count} links, equal needs", found[key], "us", base)
    for count in _LINKS:
        key = f"links_different_{count}_us"
        teller.figure(key, f"cut for {count} links, needs that differ", found[key], "us")
    key = "links_different_each_us"
    teller.figure(key, "each of these more", found[key], "us")
    added = links.measure_added(200 if few else 20_000)
    teller.figure("needs_added_s", "needs added", added["needs_added_s"], "s")


_FEW = 20  # messages of a quick run
