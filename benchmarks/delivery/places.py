"""``places``: profiles with an area each, beside a loop over these areas."""

from __future__ import annotations

from math import cos, sin, tau
from random import Random

import lxml.etree

from benchmarks.benchmark import WrongAnswers
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import make_matcher, measure
from benchmarks.samples import mean
from yfilter.language.places import Place, read_place, relates

_POINTS = 10  # a message
_LOOPED = 20  # messages


def measure_places(job: DeliverJob, teller: Teller) -> None:
    """All-in, for messages of ten points over Europe; the loop has parsed message and areas."""
    random = Random(f"places {job.seed}")
    areas = [_area(random) for _ in range(job.number)]
    messages = [_message(random) for _ in range(job.warmup + job.measured)]
    matcher = make_matcher([f'//item[place:inside(point, "{area}")]' for area in areas])
    times = measure(matcher, messages[: job.warmup], messages[job.warmup :], job)
    known = list(map(_place, areas))
    clock, looped = job.clock(), []
    for message in messages[-_LOOPED:]:
        texts = [one.text or "" for one in lxml.etree.fromstring(message).iter("point")]
        start = clock()
        points = list(map(_place, texts))
        found = {
            number
            for number, area in enumerate(known)
            if any(relates("place:inside", point, area) for point in points)
        }
        looped.append((clock() - start) / 1000)
        if found != {int(matcher.id_of(number)) for number in matcher.matched_numbers(message)}:
            raise WrongAnswers("the engine and the loop find different areas")
    unit = "places_lxml_parse_us"
    teller.figure("places_matches", "places: matches a message", mean(times.matches))
    teller.figure(unit, "places: lxml parses (U)", mean(times.lxml_parse), "us")
    teller.figure("places_us", "places: all-in", mean(times.all_in), "us", unit)
    teller.figure("places_looped_us", "places: a loop over all areas", mean(looped), "us", unit)
    ratio = mean(looped) / mean(times.all_in)
    teller.figure("places_ratio", "places: times as fast as the loop", ratio)


def _area(random: Random) -> str:
    """A circle, a box or a ring, of some ten km."""
    south, west, size = random.uniform(40, 60), random.uniform(-10, 30), random.uniform(0.05, 0.5)
    match random.randrange(3):
        case 0:
            return f"circle {south:.3f},{west:.3f} {100 * size:.1f}"
        case 1:
            return f"box {south:.3f},{west:.3f} {south + size:.3f},{west + size:.3f}"
        case _:
            corners = random.randint(4, 12)
            turns = [tau * corner / corners for corner in range(corners)]
            ring = [(south + size * sin(turn), west + size * cos(turn)) for turn in turns]
            return f"polygon {' '.join(f'{north:.3f},{east:.3f}' for north, east in ring)}"


def _message(random: Random) -> bytes:
    points = [(random.uniform(40, 60), random.uniform(-10, 30)) for _ in range(_POINTS)]
    items = "".join(f"<item><point>{north:.4f} {east:.4f}</point></item>" for north, east in points)
    return f"<feed>{items}</feed>".encode()


def _place(text: str) -> Place:
    place = read_place(text)
    assert place is not None  # as they are made
    return place
