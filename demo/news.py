"""The demo's news source: articles after the manner of NITF, the example of the ONYX paper.

An article has the elements that the paper's profiles ask for (head/pubdata/@edition.area,
tobject.subject, series, body.head/hedline, body.content) and around them what makes real articles
hard: mixed content, recursive blocks, tables, comments, CDATA.  About every fifth message is a
``batched-nitf`` of several articles (section 3.3 of the paper).
"""

from __future__ import annotations

from random import Random

from demo.markup import block, cdata, document, element, text
from demo.words import (
    CITY_OF_AREA,
    ORGANISATIONS,
    PEOPLE,
    date,
    headline,
    sentence,
    sentences,
)

# Type of subject -> its matters.
SUBJECTS = {
    "Stock": ("technology", "energy", "retail", "shipping"),
    "Sports": ("baseball", "rowing", "football"),
    "Weather": ("storm", "heat", "fog"),
    "Outdoors": ("fishing", "sailing", "hiking"),
    "Politics": ("election", "budget", "council"),
    "Science": ("astronomy", "medicine", "geology"),
    "Arts": ("music", "film", "theatre"),
}
SERIES = ("Tide Forecasts", "Faces of the Bay", "Ten Years After", "Market Lessons")
SECTIONS = ("A", "B", "Business", "Sports", "Metro")
MEDIA = ("image", "audio", "video")
BATCH_SHARE = 0.2
# An entity of the internal subset, which is expanded; nothing outside the message is read.
_DESK = '<!DOCTYPE nitf [\n  <!ENTITY desk "from the night desk">\n]>'


def news_message(random: Random, index: int) -> bytes:
    """One message of the news source."""
    if random.random() < BATCH_SHARE:
        count = random.randint(2, 6)
        articles = [_article(random, index * 10 + part, paragraphs=2) for part in range(count)]
        batch = {"batch.id": f"b{index}", "count": str(count)}
        return document(block("batched-nitf", batch, "<!-- one evening's articles -->", *articles))
    article = _article(random, index * 10, paragraphs=random.choice((1, 2, 3, 5, 8, 14)))
    if random.random() < 0.05:
        return document(article.replace("</title>", " (&desk;)</title>"), doctype=_DESK)
    return document(article, random.choices(("UTF-8", "UTF-16"), (30, 1))[0])


def _article(random: Random, number: int, paragraphs: int) -> str:
    area = random.choice(tuple(CITY_OF_AREA))
    attributes = {"uno": f"demo.{number}", "version": random.choice(("2.5", "3.0"))}
    if random.random() < 0.3:
        attributes["change.date"] = date(random)
    return block(
        "nitf",
        attributes,
        _head(random, number, area),
        block(
            "body",
            None,
            _body_head(random, area),
            _body_content(random, paragraphs),
            _body_end(random),
        ),
    )


def _head(random: Random, number: int, area: str) -> str:
    editions = [area, *random.sample(tuple(CITY_OF_AREA), random.choice((0, 0, 0, 1)))]
    return block(
        "head",
        None,
        element("title", None, text(headline(random))),
        element("meta", {"name": "desk", "content": random.choice(("day", "night"))}),
        block("tobject", {"tobject.type": "news"}, *_subjects(random)),
        _docdata(random, number),
        *[_publication(random, edition) for edition in dict.fromkeys(editions)],
    )


def _subjects(random: Random) -> list[str]:
    kinds = random.sample(tuple(SUBJECTS), random.choice((1, 1, 1, 2, 3)))
    return [
        element(
            "tobject.subject",
            {
                "tobject.subject.refnum": f"{random.randint(1, 17):02}{random.randint(0, 999):03}",
                "tobject.subject.type": kind,
                "tobject.subject.matter": random.choice(SUBJECTS[kind]),
            },
        )
        for kind in kinds
    ]


def _docdata(random: Random, number: int) -> str:
    keys = random.sample([matter for matters in SUBJECTS.values() for matter in matters], 3)
    series = ""
    if random.random() < 0.4:
        total = random.randint(3, 9)
        series = element(
            "series",
            {
                "series.name": random.choices(SERIES, (4, 2, 2, 1))[0],
                "series.part": str(random.randint(1, total)),
                "series.totalpart": str(total),
            },
        )
    return block(
        "docdata",
        None,
        element("doc-id", {"id-string": f"doc-{number:05}"}),
        element("urgency", {"ed-urg": str(random.randint(1, 8))}),
        element("date.issue", {"norm": date(random)}),
        series,
        block("key-list", None, *[element("keyword", {"key": key}) for key in keys]),
    )


def _publication(random: Random, area: str) -> str:
    return element(
        "pubdata",
        {
            "type": random.choice(("print", "web")),
            "edition.area": area,
            "position.section": random.choice(SECTIONS),
            "position.sequence": str(random.randint(1, 40)),
            "item-length": str(random.randint(80, 2400)),
        },
    )


def _body_head(random: Random, area: str) -> str:
    second = element("hl2", None, text(sentence(random))) if random.random() < 0.5 else ""
    abstract = (
        block("abstract", None, element("p", None, text(sentence(random))))
        if random.random() < 0.4
        else ""
    )
    location = element("location", None, element("city", None, text(CITY_OF_AREA[area])))
    return block(
        "body.head",
        None,
        block("hedline", None, element("hl1", None, text(headline(random))), second),
        element(
            "byline", None, "By ", element("person", None, text(random.choice(PEOPLE))), ", staff"
        ),
        element("dateline", None, location),
        abstract,
    )


def _body_content(random: Random, paragraphs: int) -> str:
    parts = [_paragraph(random) for _ in range(paragraphs)]
    if random.random() < 0.35:
        parts.append(_media(random))
    if random.random() < 0.25:
        parts.append(_table(random))
    if random.random() < 0.3:
        parts.append(_nested_block(random, random.randint(1, 4)))
    if random.random() < 0.2:
        parts.insert(1, "<!-- checked by the night desk -->")
    if random.random() < 0.15:
        parts.append(element("pre", None, cdata("if (a < b && b < c) { print(']]>'); }")))
    return block("body.content", None, *parts)


def _paragraph(random: Random) -> str:
    """Mixed content: names and numbers are marked where they stand in the text."""
    inline = (
        element("org", None, text(random.choice(ORGANISATIONS))),
        element("person", None, text(random.choice(PEOPLE))),
        element("money", {"unit": "USD"}, str(random.randint(2, 900))),
        element("em", None, "again", element("em", None, " and again")),
        element("num", None, f"{random.uniform(0, 100):.1f}"),
    )
    chosen = random.choice(inline)
    lede = {"lede": "true"} if random.random() < 0.2 else None
    return element(
        "p",
        lede,
        text(sentences(random, random.randint(1, 3))),
        " ",
        chosen,
        " ",
        text(sentence(random)),
    )


def _media(random: Random) -> str:
    kind = random.choice(MEDIA)
    reference = {"source": f"{kind}-{random.randint(1, 500)}", "mime-type": f"{kind}/x-demo"}
    return block(
        "media",
        {"media-type": kind},
        element("media-reference", reference),
        element("media-caption", None, text(sentence(random))),
        element("media-producer", None, text(random.choice(PEOPLE))),
    )


def _table(random: Random) -> str:
    rows = [
        element(
            "tr",
            None,
            element("td", None, text(random.choice(ORGANISATIONS))),
            element("td", {"align": "right"}, f"{random.uniform(-9, 9):.2f}"),
        )
        for _ in range(random.randint(2, 8))
    ]
    return block("table", None, element("caption", None, "Closing prices"), *rows)


def _nested_block(random: Random, depth: int) -> str:
    """Blocks inside blocks: what ``//`` has to get right."""
    inner = (
        _nested_block(random, depth - 1)
        if depth > 1
        else element("note", None, text(sentence(random)))
    )
    return block("block", {"level": str(depth)}, _paragraph(random), inner)


def _body_end(random: Random) -> str:
    if random.random() < 0.5:
        return element("body.end")
    return block("body.end", None, element("tagline", None, "© The Demo Gazette, 2026"))
