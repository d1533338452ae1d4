"""Prose for the demo's messages: sentences from a small stock of parts.

Everything is drawn from the caller's random generator, so a message is a function of its seed.
"""

from __future__ import annotations

from random import Random

PEOPLE = (
    "Ana Ruiz",
    "Björn Åkesson",
    "Chidi Okafor",
    "Dörte Wiśniewska",
    "Elif Yıldız",
    "Fergus O'Shea",
    "Grace Kim",
    "Haruki Ōta",
    "Inés Peña",
    "Jean-Luc Théron",
)
ORGANISATIONS = (
    "Harbor & Sons",
    "Blue Mesa Mining",
    "Cobalt Rail",
    "Larkspur Foods",
    "Nimbus Telecom",
    "Oak Street Bank",
    "Pelican Airways",
    "Tidewater Energy",
)
CITY_OF_AREA = {
    "SF": "San Francisco",
    "NY": "New York",
    "LA": "Los Angeles",
    "CHI": "Chicago",
    "SEA": "Seattle",
    "HOU": "Houston",
}

_SUBJECTS = (
    "The harbour board",
    "A spokesman for the exchange",
    "The night ferry",
    "An early survey",
    "The city's oldest theatre",
    "A team of divers",
    "The fishing fleet",
    "One in five households",
    "The coach",
    "A small workshop on the pier",
)
_VERBS = (
    "has confirmed",
    "did not expect",
    "is waiting for",
    "will pay for",
    "turned down",
    "keeps a record of",
    "has asked for",
    "found room for",
)
_OBJECTS = (
    "a second round of talks",
    "higher prices before the summer",
    "the repair of the north quay",
    "three new routes",
    "a late and very narrow win",
    "the results of the count",
    "fewer than forty visitors",
    "a change of the timetable",
    "the largest catch since records began",
    "another week of fog",
)
_TAILS = (
    "",
    "",
    ", and nobody was surprised",
    ", two people close to the matter said",
    " – “not this year”, as one put it",
    "; work starts on Monday",
    ", although costs rose by < 2 %",
    " & that was that",
)


def sentence(random: Random) -> str:
    parts = (random.choice(_SUBJECTS), random.choice(_VERBS), random.choice(_OBJECTS))
    return " ".join(parts) + random.choice(_TAILS) + "."


def sentences(random: Random, count: int) -> str:
    return " ".join(sentence(random) for _ in range(count))


def headline(random: Random) -> str:
    return f"{random.choice(_SUBJECTS)} {random.choice(_VERBS)} {random.choice(_OBJECTS)}"


def date(random: Random) -> str:
    """A day of 2026 as YYYYMMDD."""
    return f"2026{random.randint(1, 12):02}{random.randint(1, 28):02}"


def time_stamp(random: Random) -> str:
    """A moment of 2026 in ISO form, with an offset."""
    day = date(random)
    clock = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:00"
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock}-0{random.randint(5, 8)}:00"
