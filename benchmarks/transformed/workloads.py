"""Messages, and profiles that want a share of their content.

===========  =====================================================================================
batches      ``<batched-nitf>`` of 20 articles, as in section 3.2 of the paper; a profile wants the
             articles of one edition area
feeds        50 items, each with a title, a summary, links, a text, a picture
finance      FpML messages of ``../shared/data``; profiles want all elements of one name each
pictures     feeds, of which everybody wants the texts without pictures and notes, in forms of his
             own around what all have in common
===========  =====================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

from formats import ElementStream, FormatError, parse_text

SHARES = (1, 10, 100)  # percent
ARTICLES, ITEMS, VALUES = 20, 50, 100

_FINANCE = Path(__file__).resolve().parents[3] / "shared" / "data" / "fpml"
_WORDS = (
    *("market", "harbour", "council", "river", "season", "price", "figures", "minister", "report"),
    *("growth", "bank", "the", "of", "and", "in", "after", "before", "said", "would", "against"),
    *("between", "north", "south", "company", "shares", "interest", "rate"),
)


@dataclass(frozen=True, slots=True)
class Workload:
    """``profiles`` by the share of the content that they want together, in percent."""

    name: str
    messages: Sequence[bytes]
    profiles: Mapping[int, Sequence[str]]


def batches(messages: int, random: Random) -> Workload:
    """A share of the edition areas."""
    made = [_batch(random) for _ in range(messages)]
    areas = range(VALUES)
    profiles = {
        share: [
            f'for $n in $msg/batched-nitf/nitf where $n/head/pubdata/@edition.area = "A{area}" '
            "return $n"
            for area in areas[:share]
        ]
        for share in SHARES
    }
    return Workload("batches", made, profiles)


def feeds(messages: int, random: Random) -> Workload:
    """A share of the categories."""
    made = [_feed(random) for _ in range(messages)]
    profiles = {
        share: [
            f'for $i in /feed/entry where $i/category/@term = "c{term}" return $i'
            for term in range(share)
        ]
        for share in SHARES
    }
    return Workload("feeds", made, profiles)


def pictures(messages: int, random: Random) -> Workload:
    """Of a tenth of the items what is not a picture or a note."""
    made = [_feed(random) for _ in range(messages)]
    text = "<text>{for $p in $i/content/div/* where not($p/img) and not($p/note) return $p}</text>"
    profiles = [
        f'for $i in /feed/entry where $i/category/@term = "c{term}" '
        f"return <item{form}>{{$i/title}}{text}</item{form}>"
        for term in range(10)
        for form in range(4)
    ]
    return Workload("pictures", made, {10: profiles})


def finance(messages: int, _: Random) -> Workload | None:
    """None where the data is not there."""
    found = []
    for path in sorted(_FINANCE.glob("*.xml")):
        data = path.read_bytes()
        try:
            found.append((data, parse_text(data)))
        except FormatError:
            continue
    if not found:
        return None
    chosen = found[:: max(1, len(found) // messages)][:messages]
    streams = [stream for _, stream in chosen]
    profiles: dict[int, Sequence[str]] = {100: ["/*"]}
    for share in SHARES[:2]:
        names = _names_of_a_share(streams, share / 100)
        profiles[share] = [f"for $e in //*:{name} return <found>{{$e}}</found>" for name in names]
    return Workload("finance", [data for data, _ in chosen], profiles)


def _batch(random: Random) -> bytes:
    articles = "".join(_article(random) for _ in range(ARTICLES))
    return f"<batched-nitf>{articles}</batched-nitf>".encode()


def _article(random: Random) -> str:
    paragraphs = "".join(f"<p>{_text(random, 40)}</p>" for _ in range(random.randint(4, 8)))
    return (
        f'<nitf version="1"><head><title>{_text(random, 6)}</title>'
        f'<docdata><doc-id id-string="{random.getrandbits(48):x}"/></docdata>'
        f'<pubdata edition.area="A{random.randrange(VALUES)}" type="print"/>'
        f'<tobject><tobject.subject tobject.subject.type="{random.choice(_WORDS)}"/></tobject>'
        f"</head><body><body.head><hedline><hl1>{_text(random, 8)}</hl1></hedline></body.head>"
        f"<body.content>{paragraphs}</body.content></body></nitf>"
    )


def _feed(random: Random) -> bytes:
    entries = "".join(_entry(random, number) for number in range(ITEMS))
    return f"<feed><title>{_text(random, 4)}</title>{entries}</feed>".encode()


def _entry(random: Random, number: int) -> str:
    picture = random.randbytes(150).hex()
    return (
        f'<entry id="{number}"><title>{_text(random, 6)}</title>'
        f"<updated>2004-08-{random.randint(10, 30)}T12:00:00Z</updated>"
        f"<author><name>{_text(random, 2)}</name></author>"
        f'<category term="c{random.randrange(VALUES)}"/>'
        f'<link href="http://example.org/{random.getrandbits(40):x}"/>'
        f"<summary>{_text(random, 20)}</summary><content><div><p>{_text(random, 30)}</p>"
        f"<p><img>{picture}</img></p><p>{_text(random, 30)}</p>"
        f"<p><note>{_text(random, 15)}</note></p></div></content></entry>"
    )


def _text(random: Random, words: int) -> str:
    return escape(" ".join(random.choices(_WORDS, k=words)))


def _names_of_a_share(streams: Sequence[ElementStream], share: float) -> list[str]:
    """Element names, the most common first, whose elements have about a share of all content."""
    seen: Counter[str] = Counter()
    for stream in streams:
        seen.update({stream.name_of(element).local for element in range(len(stream))})
    names: list[str] = []
    for name, _ in sorted(seen.items(), key=lambda entry: (-entry[1], entry[0])):
        if _share_of(streams, {*names, name}) <= share:
            names.append(name)
    return names


def _share_of(streams: Sequence[ElementStream], names: set[str]) -> float:
    """What elements of these names have, of all elements and bytes of text."""
    kept = total = 0
    for stream in streams:
        total += _weight(stream, 0)
        element = 0
        while element < len(stream):
            if stream.name_of(element).local in names:
                kept += _weight(stream, element)
                element = stream.element_end[element]
            else:
                element += 1
    return kept / total


def _weight(stream: ElementStream, element: int) -> int:
    end = stream.element_end[element]
    content = stream.content_within(element)
    first, last = stream.attribute_start[element], stream.attribute_start[end]
    return (
        4 * (end - element)
        + stream.content_offset[content.stop]
        - stream.content_offset[content.start]
        + stream.attribute_offset[last]
        - stream.attribute_offset[first]
    )
