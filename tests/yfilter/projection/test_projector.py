"""What the projector keeps is what the plain reference keeps; where it widens it keeps more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from lxml import etree

from formats import ElementStream, parse_text, to_text
from tests.formats.support import assert_invariants, canonical
from tests.yfilter.figures import figures
from tests.yfilter.projection.reference import ATTRIBUTES, Reference, touched
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.targets import LinkTarget
from yfilter.index.index import Index
from yfilter.language.query_ast import NameTest
from yfilter.matcher import Matcher
from yfilter.projection.needs import EVERYTHING, Kept, Kind, Need, Steps
from yfilter.projection.projector import Left, Projector
from yfilter.projection.transformations import NeedTable, bits_of, projector_of

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
    projector = projector_of(Index(), whole_share=2)
    for one in needs:
        projector.add(one, 0)
    stream = left_of(projector, parse_text(document.encode()))
    assert_invariants(stream)
    return to_text(stream).decode()


def left_of(projector: Projector, stream: ElementStream, link: int = 0) -> ElementStream:
    return found(projector, stream, [link])[link].stream or stream


def found(projector: Projector, stream: ElementStream, links: Iterable[int]) -> dict[int, Left]:
    """By link."""
    links = list(links)
    left = projector.project(stream, sum(1 << link for link in links))
    by_link = {link: one for mask, one in left for link in bits_of(mask)}
    assert by_link.keys() == set(links)
    assert sum(mask.bit_count() for mask, _ in left) == len(links)
    return by_link


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


def test_nearly_everything_is_passed_on_as_it_came() -> None:
    stream = parse_text(FEED.encode())
    for wanted in (
        EVERYTHING,
        need("", "/feed/entry/price", "subtree ."),
        need("feed", '/*/entry[@id = "2"]', "subtree ."),
        need("feed/entry", "", "subtree ."),  # nearly everything
    ):
        projector = projector_of(Index(), whole_share=0.8)
        projector.add(wanted, 0)
        assert found(projector, stream, [0])[0].stream is None
        assert figures(projector).projected_written == 0


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
    """For links that have some of the needs each, which come and go, more of them than a word
    has bits."""
    rng = Random(seed)
    print(f"seed {seed}")
    deep = 0.4 if is_recursive else 0.1
    projector = projector_of(Index(), whole_share=2)
    links = rng.sample(range(150), 4)
    needs: dict[int, list[Need]] = {link: [] for link in links}
    for _ in range(20):
        for _ in range(rng.randint(0, 3)):
            one = random_need(rng, deep)
            for link in rng.sample(links, rng.choice((1, 2, 4))):
                needs[link].append(one)
                projector.add(one, link)
        for link in links:
            while len(needs[link]) > rng.randint(1, 8):
                projector.remove(needs[link].pop(rng.randrange(len(needs[link]))), link)
        document = random_document(rng, NAMES, 4 + is_recursive).encode()
        stream = parse_text(document)
        asked = rng.sample(links, rng.randint(1, 4))
        by_link = found(projector, stream, asked)
        for link in asked:
            left = by_link[link].stream or stream
            reference = Reference(document, needs[link])
            assert_invariants(left)
            if is_recursive:
                check_keeps_at_least(reference, left)
            elif by_link[link].stream is None:
                assert all(mark & ATTRIBUTES for mark in reference.marks.values())
            else:
                assert canonical(to_text(left)) == reference.left(), (seed, document, needs[link])
            # What is left keeps all that is left: the next broker has nothing to add or to miss.
            again = left_of(projector, left, link)
            assert canonical(to_text(again)) == canonical(to_text(left))


def check_keeps_at_least(reference: Reference, left: ElementStream) -> None:
    """The nodes of the reference are among those that are left, in their order."""
    events = iter(events_of(etree.fromstring(to_text(left))))
    for event in events_of(etree.fromstring(reference.left())):
        assert event in events


def events_of(element: Any) -> Iterator[tuple[Any, ...]]:
    yield "start", element.tag
    for name, value in sorted(element.attrib.items()):
        yield "attribute", name, value
    if element.text:
        yield "text", element.text
    for child in element:
        if isinstance(child.tag, str):
            yield from events_of(child)
        if child.tail:
            yield "text", child.tail
    yield "end", element.tag


def two_needs() -> tuple[Need, Need]:
    first = need("feed/entry", '/*/category[@term = "a"]', "subtree title")
    return first, need("feed/entry", "/*/price[. > 10]", "node body")


def test_what_links_share_is_there_once() -> None:
    first, second = two_needs()
    one_index, index = Index(), Index()
    alone, together = projector_of(one_index, whole_share=2), projector_of(index, whole_share=2)
    for projector, links in ((alone, 1), (together, 32)):
        for link in range(links):
            projector.add(first, link)
            projector.add(second, link)
    assert figures(together).needs == 2
    assert figures(together) == figures(alone)
    assert structure(together, index) == structure(alone, one_index)
    stream = parse_text(FEED.encode())
    one = left_of(alone, stream)
    by_link = found(together, stream, range(32))
    assert len(set(by_link.values())) == 1  # one object
    assert to_text(by_link[31].stream or stream) == to_text(one)
    sizes = figures(together)
    assert (sizes.projected_written, sizes.projected_messages) == (1, 1)
    # One link more of one of the needs: another group with another set of links.
    together.add(first, 32)
    assert figures(together).needs == 2
    by_link = found(together, stream, range(33))
    assert len(set(by_link.values())) == 2
    for link in range(32):
        together.remove(first, link)
        together.remove(second, link)
    together.remove(first, 32)
    empty = Index()
    assert structure(together, index) == structure(projector_of(empty), empty)
    with pytest.raises(KeyError):
        together.remove(first, 32)


def structure(projector: Projector, index: Index) -> dict[str, int]:
    """What is there of the needs and their queries, and that nothing else is left."""
    needs, sizes = figures(projector), figures(index)
    names = ("nodes", "queries", "atoms", "records", "symbols", "attributes")
    return {
        **{name: getattr(needs, name) for name in ("needs", "need_groups")},
        **{name: getattr(sizes, f"index_{name}") for name in names},
        "operators": sizes.operators,
        "found": len(projector.table.found),
    }


@pytest.mark.parametrize(
    "wanted",
    [
        lambda n: need("feed/entry", f'/*/category[@term = "{n}"]', "subtree ."),
        lambda n: need("feed/entry", "", f"subtree n{n}"),
        lambda n: need("feed/entry", f'/*[@k = "{n}"]', f"subtree n{n}", "node ."),
        lambda n: need(f"feed/n{n}", f"/*[@k > {n}]", "subtree ."),
    ],
)
def test_work_for_a_need_does_not_grow_with_the_needs(wanted: Callable[[int], Need]) -> None:
    """Counted as calls of functions, for a first link, for a second one, and for taking out."""
    calls = []
    for many in (100, 400):
        table = NeedTable(Index())
        needs = [wanted(number) for number in range(many)]
        with counted_calls() as count:
            for change, link in ((table.add, 0), (table.add, 1), (table.remove, 0)):
                for one in needs:
                    change(one, link)
        calls.append(count[0] / many)
    assert calls[1] <= 1.1 * calls[0]


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    count = [0]

    def note(frame: object, event: str, _: object) -> None:
        count[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(before)


def test_links_that_are_not_reached_are_not_looked_at() -> None:
    projector = projector_of(Index(), whole_share=2)
    projector.add(two_needs()[0], 0)
    for number in range(50):
        projector.add(need(f"feed/entry/n{number}", "/*[string-length(.) > 1]", "subtree ."), 1)
    stream = parse_text(
        (
            "<feed><entry>" + "".join(f"<n{n}>text</n{n}>" for n in range(50)) + "</entry></feed>"
        ).encode()
    )
    found(projector, stream, [0])
    few = projector.visits
    found(projector, stream, [0, 1])
    assert projector.visits >= few + 50  # each condition, on its element


def test_needs_of_all_messages_are_found_once_for_all_links() -> None:
    """What is looked at does not depend on the number of links with equal needs."""
    visits = []
    for links in (1, 32):
        projector = projector_of(Index(), whole_share=2)
        for link in range(links):
            for one in two_needs():
                projector.add(one, link)
        projector.project(parse_text(FEED.encode()), (1 << links) - 1)
        visits.append(projector.visits)
    assert visits[0] == visits[1]


def test_a_change_outdates_only_the_states_that_it_concerns() -> None:
    index = Index()
    projector = projector_of(index, whole_share=2)
    for number in range(100):
        projector.add(need(f"feed/e{number}/k", "", "subtree ."), 0)
    document = "".join(f"<e{n}><k>1</k></e{n}>" for n in range(100))
    stream = parse_text(f"<feed>{document}</feed>".encode())

    def computed() -> int:
        projector.project(stream, 1)
        return figures(index).index_lazy_steps_computed

    made = computed()
    assert made > 200
    for change in (projector.add, projector.remove):
        change(need("feed/e7/k", '/*[. = "1"]', "subtree x"), 0)
        assert computed() <= made + 8
    # A new path: where the state of its place leads, and nothing else.
    projector.add(need("feed/e7/new", "", "subtree ."), 0)
    projector.project(parse_text(b"<feed><e7><new>1</new></e7></feed>"), 1)
    assert computed() <= made + 12


def test_many_more_places_and_names_than_are_there_at_once() -> None:
    index = Index()
    projector = projector_of(index, whole_share=2)
    for number in range(3000):
        wanted = need(f"feed/e{number}", "", "subtree .")
        projector.add(wanted, 0)
        left = left_of(projector, parse_text(f"<feed><e{number}>1</e{number}><x/></feed>".encode()))
        assert to_text(left).decode() == f"<feed><e{number}>1</e{number}></feed>"
        projector.remove(wanted, 0)
    assert figures(index).index_nodes < 100


def test_needs_and_profiles_share_what_is_found_of_a_message() -> None:
    """An atom that both ask for is one, found once."""
    matcher = Matcher()
    matcher.add('/feed/entry/category[@term = "a"]')
    atoms = matcher.statistics().index_atoms
    matcher.add_need(two_needs()[0], LinkTarget("r", "link"))
    assert matcher.statistics().index_atoms == atoms
    stream = parse_text(FEED.encode())
    assert to_text(matcher.transformed(stream, "r", ["link"])["link"]).decode() == (
        '<feed><entry><title y="1">A<b>!</b></title></entry></feed>'
    )
