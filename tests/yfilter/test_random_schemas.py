"""Every engine and bound against lxml on each profile alone, on schemas that Hypothesis makes up.

A schema says which elements an element may contain, itself perhaps, and which attributes and text
it has; messages follow it, profiles mostly do.  Profiles are texts that mean the same in XPath 1.0.
"""

from __future__ import annotations

from random import Random

import hypothesis.strategies as st
from hypothesis import given
from lxml import etree

from formats.text import parse_text
from tests.examples import examples
from yfilter import LinkTarget, Matcher, MatchLimits, RouteMatch, parse_profile, routing_query
from yfilter.engine.linear_paths import Conjunction

WORDS = ("x", "y", "zz")
NOWHERE = "q"  # no schema has it

# Below, what lets things grow happens for large numbers, so that the simplest case is a small one.
numbers = st.randoms(use_true_random=False)


class Schema:
    """``children`` of each element, ``attributes`` with their kind of value, who has text."""

    def __init__(self, rng: Random) -> None:
        self.names = tuple("abcdefgh"[: rng.randint(1, 8)])
        self.children = {
            name: rng.sample(self.names, rng.randint(0, min(3, len(self.names))))
            for name in self.names
        }
        self.attributes = {
            name: [attribute for attribute in ("id", "n", "m") if rng.random() > 0.5]
            for name in self.names
        }
        self.text = {name: rng.random() > 0.6 for name in self.names}

    def message(self, rng: Random) -> bytes:
        self._left = rng.randint(1, 40)
        return self._element(rng, self.names[0], 0).encode()

    def profile(self, rng: Random) -> str:
        text, _ = self._path(rng, "", self.names[0], rng.randint(1, 5), 2)
        return text

    def _element(self, rng: Random, name: str, depth: int) -> str:
        self._left -= 1
        attributes = "".join(
            f' {attribute}="{self._value(rng, attribute)}"'
            for attribute in self.attributes[name]
            if rng.random() > 0.2
        )
        content = rng.choice(WORDS) if self.text[name] and rng.random() > 0.3 else ""
        while self._left > 0 and depth < 9 and self.children[name] and rng.random() > 0.3:
            content += self._element(rng, rng.choice(self.children[name]), depth + 1)
            if self.text[name] and rng.random() > 0.8:
                content += rng.choice(WORDS)
        return f"<{name}{attributes}>{content}</{name}>"

    def _value(self, rng: Random, attribute: str) -> str:
        return rng.choice(WORDS) if attribute == "id" else str(rng.randint(1, 5))

    def _path(self, rng: Random, text: str, name: str, steps: int, level: int) -> tuple[str, str]:
        """Steps down from the parent of an element that may be ``name``."""
        for step in range(steps):
            axis = "//" if rng.random() > 0.75 else "/"
            if axis == "//" and rng.random() > 0.3:
                name = rng.choice(self.names)
            test = "*" if rng.random() > 0.85 else NOWHERE if rng.random() > 0.97 else name
            text += axis + test
            while rng.random() > 0.7:
                text += f"[{self._condition(rng, name, level)}]"
            if step < steps - 1:
                name = rng.choice(self.children[name] or list(self.names))
        return text, name

    def _condition(self, rng: Random, name: str, level: int) -> str:
        kind = rng.randrange(7)
        attribute = rng.choice(self.attributes[name] or ["id"])
        if kind == 0:
            return f"@{attribute}"
        if kind == 1 or (kind == 2 and attribute == "id"):
            return f'@id {rng.choice(("=", "=", "!="))} "{rng.choice(WORDS)}"'
        if kind == 2:
            return f"@{attribute} {rng.choice(('=', '<', '<=', '>', '>='))} {rng.randint(1, 5)}"
        if kind == 3:
            return f'{rng.choice(("text()", "."))} = "{rng.choice(WORDS)}"'
        if level == 0:
            return "@n"
        child = rng.choice(self.children[name] or list(self.names))
        below, _ = self._path(rng, "", child, rng.randint(1, 2), level - 1)
        below = f".{below}" if below.startswith("//") else below[1:]
        return below if kind < 6 else rng.choice((f"not({below})", f"{below} or @id"))


@examples(35)
@given(numbers)
def test_every_build_and_bound_matches_what_lxml_selects(rng: Random) -> None:
    schema = Schema(rng)
    engines = [
        Matcher(),
        Matcher(MatchLimits(lazy_bytes_max=1)),
        Matcher(MatchLimits(lazy_bytes_max=20_000)),
        Matcher(),
    ]
    profiles: dict[str, str] = {}
    for _ in range(4):
        for _ in range(rng.randint(1, 12)):
            if profiles and rng.random() > 0.7:
                gone = rng.choice(sorted(profiles))
                del profiles[gone]
                for engine in engines:
                    engine.remove(gone)
                continue
            text = schema.profile(rng)
            (name,) = {engine.add(text) for engine in engines}
            profiles[name] = text
        message = schema.message(rng)
        tree = etree.fromstring(message).getroottree()
        wanted = {name for name, text in profiles.items() if tree.xpath(text)}
        stream = parse_text(message)
        for engine in engines:
            found = engine.matched_ids(stream)
            assert sorted(found) == sorted(wanted), [profiles[name] for name in wanted ^ {*found}]


@examples(25)
@given(numbers)
def test_links_are_those_whose_conjunctions_lxml_finds(rng: Random) -> None:
    schema = Schema(rng)
    engines = [Matcher(), Matcher(MatchLimits(lazy_bytes_max=1)), Matcher()]
    wanted: dict[tuple[Conjunction, str], None] = {}
    for _ in range(rng.randint(1, 20)):
        link = f"l{rng.randint(1, 6)}"
        for conjunction in routing_query(parse_profile(schema.profile(rng))):
            wanted[conjunction, link] = None
    for conjunction, link in wanted:
        for engine in engines:
            engine.add_route(conjunction, LinkTarget("r", link))
    for _ in range(4):
        message = schema.message(rng)
        tree = etree.fromstring(message).getroottree()
        links = {
            link
            for conjunction, link in wanted
            if all(tree.xpath(str(path)) for path in conjunction.paths)
        }
        for engine in engines:
            found = list(engine.match(message, "r"))
            assert {match.link for match in found if isinstance(match, RouteMatch)} == links
            assert len(found) == len(links)
