"""What the projector keeps is what the plain reference keeps; where it widens it keeps more."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from formats import parse_text, to_text
from formats.stream_selection import ATTRIBUTES, KEPT
from tests.formats.support import assert_invariants, canonical
from tests.yfilter.projection.reference import Reference
from yfilter.engine.linear_paths import Conjunction
from yfilter.language.query_ast import NameTest
from yfilter.projection.needs import EVERYTHING, Kept, Kind, Need, Steps, touched
from yfilter.projection.projector import Projector

NAMES = "abcd"


def steps(text: str) -> Steps:
    """``a//b`` and so on."""
    found = []
    descendant = False
    for part in text.split("/"):
        if part:
            found.append((descendant, NameTest("*" if part == "*" else "", part)))
        descendant = not part and bool(found)
    return tuple(found)


def need(binding: str, condition: str, *kept: str) -> Need:
    paths = Conjunction.parse(condition) if condition else None
    return Need(steps(binding), paths, tuple(map(Kept.parse, kept)))


def projected(document: str, *needs: Need) -> str:
    projector = Projector(whole_share=2)
    for one in needs:
        projector.add(one)
    stream = projector.project(parse_text(document.encode()))
    assert_invariants(stream)
    return to_text(stream).decode()


SECOND = '<entry id="2"><category term="b"/><title>B</title><body z="1">2</body></entry>'
FEED = (
    '<feed x="1"><title>f</title>'
    '<entry id="1"><category term="a"/><title y="1">A<b>!</b></title><body>1</body></entry>'
    f"{SECOND}"
    '<entry id="3"><price>12</price><title>C</title><body>3</body></entry></feed>'
)


@pytest.mark.parametrize(
    ("needs", "left"),
    [
        ([], "<feed/>"),
        (
            [need("feed/entry", '/*/category[@term = "a"]', "subtree title")],
            '<feed><entry><title y="1">A<b>!</b></title></entry></feed>',
        ),
        (
            [need("feed/entry", '/*/category[@term = "a"]', "value title", "attribute @id")],
            '<feed><entry id="1"><title>A<b>!</b></title></entry></feed>',
        ),
        (
            [need("feed/entry", '/*/category[@term = "b"]', "subtree .")],
            f"<feed>{SECOND}</feed>",
        ),
        (
            [need("feed/entry", "/*/price[. > 10]", "node body")],
            "<feed><entry><body/></entry></feed>",
        ),
        ([need("feed/entry", "/*/price[. > 12]", "node body")], "<feed/>"),
        (
            [need("feed/entry", '/*/title[contains(., "C")]', "node body")],
            "<feed><entry><body/></entry></feed>",
        ),
        (
            [need("feed/entry", '/*/category[ends-with(@term, "b")]', "node title")],
            "<feed><entry><title/></entry></feed>",
        ),
        ([need("", "", "attribute feed/@*")], '<feed x="1"/>'),
        (
            # What another condition looks at is there wherever its elements are.
            [
                need("feed/entry", '/*/category[@term = "x"]', "subtree ."),
                need("feed/entry", "", "node category"),
            ],
            '<feed><entry><category term="a"/></entry><entry><category term="b"/></entry></feed>',
        ),
    ],
)
def test_examples(needs: list[Need], left: str) -> None:
    assert projected(FEED, *needs) == left


def test_everything_is_the_same_object() -> None:
    stream = parse_text(FEED.encode())
    for wanted in (
        EVERYTHING,
        need("", "/feed/entry/price", "subtree ."),
        need("feed", '/*/entry[@id = "2"]', "subtree ."),
        need("feed/entry", "", "subtree ."),  # nearly everything
    ):
        projector = Projector(whole_share=0.8)
        projector.add(wanted)
        assert projector.project(stream) is stream
        assert projector.statistics()["projected_whole"] == 1


def test_rests_when_nothing_is_saved() -> None:
    whole, half = parse_text(FEED.encode()), parse_text(b"<feed><x>much</x><price>1</price></feed>")
    projector = Projector(whole_share=0.8)
    projector.add(need("feed/entry", "", "subtree ."))
    for _ in range(100):
        assert projector.project(whole) is whole
    assert projector.statistics()["projection_rested"] > 60
    waited = 0
    while projector.project(half) is half:
        waited += 1
        assert waited < 16
    assert projector.project(half) is not half  # and no rest from then on
    projector.remove(need("feed/entry", "", "subtree ."))
    assert len(projector.project(whole)) == 1


def random_steps(rng: Random, names: str, least: int, most: int, deep: float) -> Steps:
    return tuple(
        (rng.random() < deep, NameTest("", rng.choice(names)))
        if rng.random() < 0.9
        else (False, NameTest("*", "*"))
        for _ in range(rng.randint(least, most))
    )


def random_condition(rng: Random, bound: bool, deep: float) -> Conjunction:
    """Paths with a condition on the last step at most, so that atoms say all of them."""
    paths = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        path = random_steps(rng, NAMES, 0 if bound else 1, 2, deep)
        text = "".join(f"{'//' if d else '/'}{test.local}" for d, test in path)
        value = rng.randint(0, 3)
        selection = rng.choice(
            (
                "",
                f'[@x = "{value}"]',
                f'[@x != "{value}"]',
                "[@y]",
                f"[@x >= {value}]",
                f"[@y < {value}]",
                f"[. = {value}]",
                f'[. = "{value}"]',
                f'[text() = "{value}"]',
                f'[contains(., "{value}")]',
                f'[starts-with(@x, "{value}")]',
                f"[string-length(.) > {value}]",
            )
        )
        paths.append(f"{'/*' if bound else ''}{text}{selection}")
    return Conjunction.parse(" and ".join(sorted(set(paths))))


def random_need(rng: Random, deep: float) -> Need:
    """What its condition needs is kept, too, as for a profile."""
    binding = random_steps(rng, NAMES, 0, 2, deep)
    condition = random_condition(rng, bool(binding), deep) if rng.random() < 0.8 else None
    kept = []
    for _ in range(rng.randint(1, 2)):
        kind = rng.choice([kind for kind in Kind if kind is not Kind.PART])
        attribute = NameTest("", rng.choice("xy")) if kind is Kind.ATTRIBUTE else None
        kept.append(Kept(random_steps(rng, NAMES, 0 if binding else 1, 2, deep), kind, attribute))
    if condition is not None:
        skipped = 1 if binding else 0
        kept += [replace(one, steps=one.steps[skipped:]) for one in touched(condition)]
        for path in condition.paths:
            kept.append(Kept(tuple(step.structure for step in path.steps[skipped:]), Kind.NODE))
    return Need(binding, condition, tuple(kept))


def random_document(rng: Random, names: str, depth: int) -> str:
    """No element is within one of its name when there are as many names as levels."""
    attributes = "".join(f' {a}="{rng.randint(0, 3)}"' for a in "xy" if rng.random() < 0.5)
    here = rng.choice(names)
    below = names if len(names) != depth else names.replace(here, "")
    content = "".join(
        random_document(rng, below, depth - 1)
        if depth > 1 and rng.random() < 0.7
        else rng.choice(("0", "1", "<!--c-->", "", "2"))
        for _ in range(rng.randint(0, 4))
    )
    return f"<{here}{attributes}>{content}</{here}>"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_recursive", [False, True])
def test_keeps_what_the_reference_keeps(seed: int, is_recursive: bool) -> None:
    rng = Random(seed)
    deep = 0.4 if is_recursive else 0.1
    projector = Projector(whole_share=2)
    needs: list[Need] = []
    for _ in range(30):
        for _ in range(rng.randint(0, 3)):
            needs.append(random_need(rng, deep))
            projector.add(needs[-1])
        while len(needs) > rng.randint(1, 8):
            projector.remove(needs.pop(rng.randrange(len(needs))))
        document = random_document(rng, NAMES, 4 + is_recursive).encode()
        reference = Reference(document, needs)
        stream = parse_text(document)
        selection = projector.decide(stream)
        is_exact = not is_recursive and len(reference.marks) > 0
        if selection is None:
            assert not is_exact or all(mark & ATTRIBUTES for mark in reference.marks.values())
            continue
        for number, element in enumerate(reference.elements):
            wanted, mark = reference.marks[element], selection.elements[number]
            assert wanted & mark == wanted, (seed, document, needs, number)
            if is_exact:
                assert wanted & 7 == mark & 7, (seed, document, needs, number)
            for attribute in stream.attributes_of(number):
                name = stream.names[stream.attribute_name[attribute]].local
                wants = bool(wanted & ATTRIBUTES or (element, name) in reference.attributes)
                has = bool(mark & ATTRIBUTES or selection.attributes[attribute])
                assert has >= wants, (seed, document, needs, number, name)
                assert has == wants or not (is_exact and mark & KEPT)
        left = projector.project(stream)
        assert_invariants(left)
        # What is left keeps all that is left: the next broker has nothing to add or to miss.
        assert canonical(to_text(projector.project(left))) == canonical(to_text(left))
