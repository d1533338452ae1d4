"""Generated graph messages: linked, typed descriptions, as catalogues and feeds have them.

A message is some nine subjects, 81 triples on average: a third of the subjects are blank nodes,
each has a type, names in some languages, references, numbers and most a time, and most are the
object of another.  Properties, classes, words and entities are chosen by Zipf's law, so that a few
are in every message and most in hardly any.
"""

from __future__ import annotations

from bisect import bisect
from random import Random

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from formats.graph.vocabulary import RDF, XSD

EXAMPLE = "http://example.org/"
PREFIXES = {
    "e": EXAMPLE,
    "p": f"{EXAMPLE}prop/",
    "n": f"{EXAMPLE}entity/",
    "c": f"{EXAMPLE}class/",
    "xsd": XSD,
    "rdf": RDF,
}
_SUBJECTS = 9
_PROPERTIES = 60  # of each kind
CLASSES, _ENTITIES, _WORDS = 800, 20_000, 30_000
_DATE_RANGES = ((2000, 2026), (1, 12), (1, 28))
_LANGUAGES = ("", "", "en", "de")
_TYPE = NamedNode(f"{RDF}type")
_INTEGER, _DATE_TIME = NamedNode(f"{XSD}integer"), NamedNode(f"{XSD}dateTime")


class Zipf:
    """Numbers below ``count``, the first ones often."""

    def __init__(self, count: int, exponent: float) -> None:
        self._sums = []
        total = 0.0
        for rank in range(1, count + 1):
            total += rank**-exponent
            self._sums.append(total)

    def choose(self, random: Random) -> int:
        return bisect(self._sums, random.random() * self._sums[-1])


class Catalogue:
    """Messages of one seed, by their numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._property, self._class = Zipf(_PROPERTIES, 0.8), Zipf(CLASSES, 0.6)
        self._entity, self._word = Zipf(_ENTITIES, 0.9), Zipf(_WORDS, 0.9)

    def message(self, number: int) -> list[Quad]:
        """The triples of a message, none twice."""
        random = Random(f"catalogue {self._seed} {number}")
        nodes: list[NamedNode | BlankNode] = []
        triples: list[Quad] = []
        for place in range(_SUBJECTS):
            node = self._node(random, number, place)
            if node not in nodes:
                triples += self._described(random, node, nodes)
                nodes.append(node)
        return list(dict.fromkeys(triples))

    def _node(self, random: Random, number: int, place: int) -> NamedNode | BlankNode:
        chance = random.random()
        if chance < 0.3:
            return BlankNode(f"b{place}")
        if chance < 0.7:
            return NamedNode(f"{EXAMPLE}doc/{number}/{place}")
        return self._an_entity(random)

    def _described(
        self, random: Random, node: NamedNode | BlankNode, others: list[NamedNode | BlankNode]
    ) -> list[Quad]:
        triples = [Quad(node, _TYPE, NamedNode(f"{EXAMPLE}class/C{self._class.choose(random)}"))]
        for _ in range(random.randint(2, 4)):
            word = f"w{self._word.choose(random)}"
            language = random.choice(_LANGUAGES)
            name = Literal(word, language=language) if language else Literal(word)
            triples.append(Quad(node, self._named(random, "name"), name))
        for _ in range(random.randint(1, 3)):
            triples.append(Quad(node, self._named(random, "rel"), self._an_entity(random)))
        for _ in range(random.randint(1, 2)):
            number = Literal(str(random.randint(0, 9999)), datatype=_INTEGER)
            triples.append(Quad(node, self._named(random, "num"), number))
        if random.random() < 0.6:
            year, month, day = (random.randint(*each) for each in _DATE_RANGES)
            time = Literal(f"{year}-{month:02}-{day:02}T00:00:00Z", datatype=_DATE_TIME)
            triples.append(Quad(node, self._named(random, "at"), time))
        if others:
            triples.append(Quad(random.choice(others), self._named(random, "rel"), node))
        return triples

    def _named(self, random: Random, kind: str) -> NamedNode:
        return NamedNode(f"{EXAMPLE}prop/{kind}{self._property.choose(random)}")

    def _an_entity(self, random: Random) -> NamedNode:
        return NamedNode(f"{EXAMPLE}entity/{self._entity.choose(random)}")


def written(triples: list[Quad], format: pyoxigraph.RdfFormat) -> bytes:  # noqa: A002
    """A message in a syntax of pyoxigraph's, with prefixes where it has some."""
    data = pyoxigraph.serialize(triples, format=format, prefixes=PREFIXES)
    assert data is not None
    return data
