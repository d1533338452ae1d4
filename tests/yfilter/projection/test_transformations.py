"""What is computed on the way is what the host would have computed, over several brokers."""

from __future__ import annotations

from hashlib import sha256
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from formats import WireFormat, decode, encode, parse_text, to_text
from formats.element_stream import ElementStream
from formats.errors import DecodeError
from tests.formats.support import assert_invariants
from tests.yfilter.figures import figures
from tests.yfilter.profile_strategies import messages, profiles
from tests.yfilter.random_cases import random_message
from yfilter.engine.readings import Readings
from yfilter.engine.targets import LinkTarget, Transforming
from yfilter.errors import ProfileRefused
from yfilter.index.index import Index
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.matcher import Matcher
from yfilter.matches import ProfileMatch
from yfilter.projection import transformations as transformations_module
from yfilter.projection.needs import Need
from yfilter.projection.parts import (
    pack_pieces,
    part_needs_of,
    part_of_text,
    unpack_pieces,
    with_parts,
)
from yfilter.projection.transformations import Transformations


def picture(number: int) -> str:
    return sha256(b"%d" % number).hexdigest()


FEED = (
    "<feed><title>f</title>"
    + "".join(
        f'<item id="{n}" k="{n % 3}"><title>t{n}</title><body><p>a{n}</p><img>{picture(n)}</img>'
        f"<!--c--><p>b{n} &amp; c</p><table><row><cell>{n}</cell><cell/></row></table></body>"
        f"<tag>x</tag><tag>y{n}</tag></item>"
        for n in range(6)
    )
    + "</feed>"
).encode()

# Drop images and comments; rename; tables to lists; a constructor around what others have, too.
INNER = "<text>{for $p in $i/body/* where not($p/self::img) return $p}</text>"
LIST = "<l>{for $c in $i/body/table/row/cell return <li>{string($c)}</li>}</l>"
PROFILES = [
    f"for $i in /feed/item where $i/@k = 1 return {INNER}",
    f"for $i in /feed/item where $i/@k = 2 return <news>{{$i/title}}{INNER}</news>",
    f"for $i in /feed/item return <a n='{{$i/@id}}'>{{$i/tag}}{INNER}{{/feed/title}}</a>",
    "for $i in /feed/item return <headline>{string($i/title)}</headline>",
    f"<all>{{for $i in /feed/item where $i/@k != 0 return {LIST}}}</all>",
    "for $i in /feed/item[tag = 'y4'] return $i",
    'for $i in /feed/item return <t>{string-join($i/tag, ",")}<b>{count($i/body/*)}</b></t>',
    "//item[@k = 1]",
]


def results(texts: list[str], stream: ElementStream) -> list[list[bytes]]:
    matcher = Matcher()
    for number, text in enumerate(texts):
        matcher.add(text, str(number))
    found: dict[str, list[bytes]] = {}
    for match in matcher.match(stream):
        assert isinstance(match, ProfileMatch)
        found[match.profile_id] = [
            bytes(etree.tostring(etree.fromstring(result), method="c14n"))
            for result in match.results()
        ]
    return [found.get(str(number), []) for number in range(len(texts))]


TARGET = LinkTarget("r", "link")


class OneLink:
    """The transformations of a broker with one link."""

    def __init__(self, needs: tuple[Need, ...], restructures: bool = True) -> None:
        self.transformations = Transformations(Index(), whole_share=2)
        self.set_restructuring(restructures)
        self.transformations.open(TARGET)
        for need in needs:
            self.add(need)

    def set_restructuring(self, restructures: bool) -> None:
        mode = Transforming.RESTRUCTURING if restructures else Transforming.CUTTING
        self.transformations.set_mode("link", mode)

    def add(self, need: Need) -> None:
        self.transformations.add(need, TARGET)

    def remove(self, need: Need) -> None:
        self.transformations.remove(need, TARGET)

    def project(self, stream: ElementStream) -> ElementStream:
        return self.transformations.left(Readings(stream), "r", ["link"])["link"]

    @property
    def way(self) -> str:
        return self.transformations.way_of(TARGET)


def sent(link: OneLink, stream: ElementStream) -> ElementStream:
    """Over a link and read again."""
    return read_again(link.project(stream))


def read_again(left: ElementStream) -> ElementStream:
    assert_invariants(left)
    again = decode(encode(left, WireFormat.BINARY), WireFormat.BINARY)
    again.pieces = unpack_pieces(pack_pieces(left.pieces), len(left), 1 << 20)
    assert again.pieces == left.pieces
    return again


def needs_of_all(texts: list[str]) -> tuple[Need, ...]:
    needs = tuple(need for text in texts for need in part_needs_of(parse_profile(text)))
    for need in needs:
        assert Need.parse(need.text) == need
    return needs


@pytest.mark.parametrize("seed", range(15))
def test_results_are_the_same_after_any_links(seed: int) -> None:
    rng = Random(seed)
    texts = rng.sample(PROFILES, rng.randint(1, 5))
    others = rng.sample(PROFILES, rng.randint(0, 3))
    stream = parse_text(FEED)
    expected = results(texts, stream)
    links = [
        OneLink(needs_of_all(texts + others), rng.random() < 0.7),
        OneLink(needs_of_all(texts), rng.random() < 0.7),
        OneLink(needs_of_all(texts)),
    ]
    for _ in range(3):
        left = stream
        for link in links:
            left = sent(link, left)
            assert results(texts, left) == expected, (texts, left.pieces)


@settings(max_examples=15, deadline=None)
@given(st.lists(profiles(), min_size=1, max_size=3), messages())
def test_profiles_of_the_whole_language(bodies: list[object], message: bytes) -> None:
    texts = [unparse(body) for body in bodies]  # type: ignore[arg-type]
    check_over_two_links(texts, parse_text(message))


@pytest.mark.parametrize("seed", range(40))
def test_random_constructors_around_random_paths(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    if seed % 4:  # whatever it costs
        monkeypatch.setattr(transformations_module, "_size", lambda stream: -len(stream.pieces))
        monkeypatch.setattr(transformations_module, "_weight", lambda _: 0)
    texts = [random_restructuring(rng) for _ in range(rng.randint(1, 4))]
    check_over_two_links(texts, random_message(rng).stream)


def random_restructuring(rng: Random) -> str:
    """Of few forms, so that some have parts in common."""
    names = "abcd*"

    def path() -> str:
        steps = (rng.choice(("/", "//")) + rng.choice(names) for _ in range(rng.randint(1, 2)))
        return "$v" + "".join(steps) + rng.choice(("", "", "[1]", "[not(b)]", "/text()", "/@id"))

    def content(depth: int) -> str:
        kind = rng.randrange(6 if depth else 4)
        if kind == 0:
            return f"{{{path().removesuffix('/@id')}}}"
        if kind == 1:
            return f"{{for $w in $v/* where not($w/{rng.choice(names)}) return $w}}"
        if kind == 2:
            return f"{{count({path()})}} {{string-join({path()}, '-')}}"
        if kind == 3:
            return f"{{$v/../{rng.choice(names)}}}"
        name = rng.choice("xy")
        return f"<{name}>{content(depth - 1)}{content(depth - 1)}</{name}>"

    result = f"<r>{content(2)}{content(1)}</r>"
    where = rng.choice(("", f"where {path()} ", f"where count({path()}) > 1 "))
    return f"for $v in //{rng.choice(names)} {where}return {result}"


def check_over_two_links(texts: list[str], stream: ElementStream) -> None:
    """Together on the first link, each by itself on the second one."""
    expected = results(texts, stream)
    first = OneLink(needs_of_all(texts))
    for _ in range(2):  # measured, and then as was found best
        left = sent(first, stream)
        assert results(texts, left) == expected, texts
        for text, wanted in zip(texts, expected, strict=True):
            second = OneLink(needs_of_all([text]))
            assert results([text], sent(second, left)) == [wanted], text


def test_what_is_common_is_computed_once_and_taken_into_what_is_larger() -> None:
    stream = parse_text(FEED)
    larger = [
        f"for $i in /feed/item return <n{number}><head>{'h' * 60}</head>{INNER}</n{number}>"
        for number in range(4)
    ]
    first, second = OneLink(needs_of_all(larger)), OneLink(needs_of_all(larger[:1]))
    common = sent(first, stream)
    assert first.way == "common"
    assert len(common.pieces) == 6  # of each item one, for all four profiles
    assert all(piece.startswith(b"<text>") for piece in common.pieces.values())
    largest = sent(second, common)
    assert results(larger[:1], largest) == results(larger[:1], stream)
    assert len(largest) < len(stream)


def test_a_part_that_saves_nothing_is_left_to_the_host() -> None:
    link = OneLink(
        needs_of_all(["for $i in /feed/item return <headline>{string($i/title)}</headline>"])
    )
    assert not link.project(parse_text(FEED)).pieces
    assert link.way == "plain"


def test_a_part_that_is_an_error_is_left_to_the_host() -> None:
    profile = "for $i in /feed/item return <headline>{xs:integer($i/title) + 1}</headline>"
    stream = parse_text(FEED)
    link = OneLink(needs_of_all([profile]))
    left = link.project(stream)
    assert not left.pieces
    assert link.transformations.counted.failed == 1
    assert results([profile], left) == results([profile], stream)


def test_restructuring_may_be_switched_on_and_off() -> None:
    stream = parse_text(FEED)
    link = OneLink(needs_of_all(PROFILES[:1]), restructures=False)
    for restructures in (False, True, False):
        link.set_restructuring(restructures)
        left = link.project(stream)
        assert bool(left.pieces) == restructures
        assert results(PROFILES[:1], left) == results(PROFILES[:1], stream)


def test_changes_of_needs() -> None:
    stream = parse_text(FEED)
    link = OneLink(needs_of_all(PROFILES[:1]))
    assert link.project(stream).pieces
    link.add(needs_of_all(PROFILES[1:2])[0])
    assert results(PROFILES[:2], link.project(stream)) == results(PROFILES[:2], stream)
    link.remove(needs_of_all(PROFILES[1:2])[0])
    assert results(PROFILES[:1], link.project(stream)) == results(PROFILES[:1], stream)
    with pytest.raises(KeyError):
        link.remove(needs_of_all(PROFILES[1:2])[0])


@pytest.mark.parametrize(
    ("profile", "parts"),
    [
        ("for $v in //a return <x>{$v/b}</x>", ["<x>{$binding/b}</x>"]),
        ("for $w in //a return <x>{$w/b}</x>", ["<x>{$binding/b}</x>"]),
        # Neither what stands outside the element nor other variables.
        ("for $v in //a return <x>{$v/../b}<y>{1 + $v/c}</y></x>", ["<y>{1 + $binding/c}</y>"]),
        (
            "for $v in //a let $w := $v/b return <x>{count($w)}{count($v/c)}</x>",
            ["count($binding/c)"],
        ),
        ("for $v in //a return <x>{$v/following::b}</x>", []),
        # What may be an attribute has to go into its element.
        ("for $v in //a return <x>{/b}{for $k in $v/k return $k/@y}</x>", []),
        # What is in another namespace by default would say so.
        ("for $v in //a return <x xmlns='urn:x'>{/b}<y>{count($v/b)}</y></x>", []),
        # What is the same for every message needs no piece.
        ("for $v in //a return <x>{/b}<y>{1 + 1}</y></x>", []),
        # A document for each item.
        ("for $v in //a return (<x/>, $v/b)", []),
        ("//a", []),
    ],
)
def test_parts_of_profiles(profile: str, parts: list[str]) -> None:
    found = with_parts(parse_profile(profile))[1]
    assert [part.text for part in found] == parts
    for part in found:
        assert part_of_text(part.text) == part


@pytest.mark.parametrize("text", ["", "$binding/b", "<x>{$other}</x>", "<x>{/a}</x>", "1 return 2"])
def test_texts_that_are_no_parts(text: str) -> None:
    with pytest.raises(ProfileRefused):
        part_of_text(text)


def test_pieces_that_cannot_be_read() -> None:
    packed = pack_pieces({(0, "d"): b"<x/>", (2, "e"): b""})
    assert unpack_pieces(packed, 3, 100) == {(0, "d"): b"<x/>", (2, "e"): b""}
    rng = Random(1)
    for _ in range(300):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        try:
            unpack_pieces(bytes(damaged), 3, 100)
        except DecodeError:
            continue
    for size in range(1, len(packed)):
        with pytest.raises(DecodeError):
            unpack_pieces(packed[:size], 3, 100)
    with pytest.raises(DecodeError):
        unpack_pieces(packed, 2, 100)


@pytest.mark.parametrize("seed", range(12))
def test_links_that_do_this_and_that_share_one_pass(seed: int) -> None:
    """Every link has what its profiles need, whatever the others do, and changes of their needs."""
    rng = Random(seed)
    print(f"seed {seed}")
    stream = parse_text(FEED)
    modes = {f"l{number}": rng.choice(list(Transforming)) for number in range(6)}
    together = Transformations(Index(), whole_share=2)
    wanted: dict[str, list[str]] = {}
    for link, mode in modes.items():
        together.set_mode(link, mode)
        together.open(LinkTarget("r", link))
        wanted[link] = []
    for _ in range(8):
        link = rng.choice(list(modes))
        if wanted[link] and rng.random() < 0.3:
            for need in needs_of_all([wanted[link].pop()]):
                together.remove(need, LinkTarget("r", link))
        else:
            wanted[link].append(rng.choice(PROFILES))
            for need in needs_of_all(wanted[link][-1:]):
                together.add(need, LinkTarget("r", link))
        reached = rng.sample(list(modes), rng.randint(1, len(modes)))
        left = together.left(Readings(stream), "r", reached)
        assert left.keys() == {one for one in reached if modes[one] is not Transforming.NOT}
        for one, message in left.items():
            texts = wanted[one]
            assert results(texts, read_again(message)) == results(texts, stream), (one, texts)
            if modes[one] is Transforming.CUTTING:
                alone = OneLink(needs_of_all(texts), restructures=False)
                assert to_text(message) == to_text(alone.project(stream))
    for link in modes:
        together.close(LinkTarget("r", link))
    assert figures(together).needs == 0
    assert not together.left(Readings(stream), "r", list(modes))


def test_equal_links_compute_a_piece_once() -> None:
    stream = parse_text(FEED)
    links = [f"l{number}" for number in range(8)]
    together = Transformations(Index(), whole_share=2)
    for link in links:
        together.set_mode(link, Transforming.RESTRUCTURING)
        for need in needs_of_all(PROFILES[:1]):
            together.add(need, LinkTarget("r", link))
    for _ in range(3):
        before = together.counted.computed
        left = together.left(Readings(stream), "r", links)
        assert len(set(map(id, left.values()))) == 1
        assert left["l0"].pieces
        assert together.counted.computed - before == len(left["l0"].pieces)


def test_a_link_rests_by_itself_when_nothing_is_saved() -> None:
    whole = parse_text(b"<feed><item><k>1</k></item></feed>")
    half = parse_text(b"<feed><x>much and more of it</x><item><k>1</k></item></feed>")
    together = Transformations(Index(), whole_share=0.8)
    (everything,) = needs_of_all(["for $i in /feed/item return $i"])
    (little,) = needs_of_all(["for $i in /feed/item return <x>{count($i)}</x>"])
    most, least = LinkTarget("r", "most"), LinkTarget("r", "least")
    together.add(everything, most)
    together.add(little, least)
    for _ in range(100):
        left = together.left(Readings(whole), "r", ["most", "least"])
        assert left["most"] is whole
        assert left["least"] is not whole
    assert 60 < together.counted.rested < 100
    waited = 0
    while together.left(Readings(half), "r", ["most"])["most"] is half:
        waited += 1
        assert waited < 16
    assert (
        together.left(Readings(half), "r", ["most"])["most"] is not half
    )  # and no rest from then on
    together.remove(everything, most)
    assert len(together.left(Readings(whole), "r", ["most"])["most"]) == 1
