"""News messages of a given depth and repetition, as in Figures 7 and 8 of the paper.

The paper generates them from a news DTD; this DTD is small and of our own.  A message is a valid
document of it with ``depth`` levels of elements, and wherever an element may be repeated it
stands one to ``repeat`` times.
"""

from __future__ import annotations

from random import Random
from xml.sax.saxutils import escape, quoteattr

NEWS_DTD = b"""<!ELEMENT news (head, body)>
<!ATTLIST news version CDATA #FIXED "1.1" urgency (flash | urgent | routine) #REQUIRED
               status (usable | embargoed | withheld | cancelled) #REQUIRED>
<!ELEMENT head (title, meta+, docdata, published, subject+, place+)>
<!ELEMENT title (#PCDATA)>
<!ELEMENT meta EMPTY>
<!ATTLIST meta name (author | language | generator | rating) #REQUIRED content CDATA #REQUIRED>
<!ELEMENT docdata (identifier, issued, expires, copyright, keyword+)>
<!ELEMENT identifier EMPTY>
<!ATTLIST identifier id.string CDATA #REQUIRED>
<!ELEMENT issued EMPTY>
<!ATTLIST issued norm CDATA #REQUIRED>
<!ELEMENT expires EMPTY>
<!ATTLIST expires norm CDATA #REQUIRED>
<!ELEMENT copyright EMPTY>
<!ATTLIST copyright year CDATA #REQUIRED holder CDATA #REQUIRED>
<!ELEMENT keyword EMPTY>
<!ATTLIST keyword key CDATA #REQUIRED>
<!ELEMENT published EMPTY>
<!ATTLIST published date CDATA #REQUIRED edition.area CDATA #REQUIRED
                    type (print | web | wire) #REQUIRED>
<!ELEMENT subject (topic+)>
<!ATTLIST subject subject.type (stock | politics | sports | weather | culture) #REQUIRED>
<!ELEMENT topic (#PCDATA)>
<!ATTLIST topic relevance (high | medium | low) #IMPLIED>
<!ELEMENT place (location, country)>
<!ELEMENT location (#PCDATA)>
<!ELEMENT country (#PCDATA)>
<!ATTLIST country iso.code NMTOKEN #REQUIRED>
<!ELEMENT body (headline, byline+, content)>
<!ELEMENT headline (#PCDATA)>
<!ELEMENT byline (person, affiliation)>
<!ELEMENT person (#PCDATA)>
<!ELEMENT affiliation (#PCDATA)>
<!ELEMENT content (block+)>
<!ELEMENT block (#PCDATA | paragraph | quotation)*>
<!ELEMENT paragraph (#PCDATA)>
<!ELEMENT quotation (speaker, statement+)>
<!ELEMENT speaker (#PCDATA)>
<!ELEMENT statement (#PCDATA)>
"""
COMPLEXITIES = ((4, 1), (6, 1), (4, 2), (6, 2), (4, 3), (6, 3))
"""(depth, repeat) in the order of the figures."""
LARGE = (6, 10)
"""Some 9 KB; the paper speaks of 1 to 20 KB (section 2.2), its figures end at 5 KB."""

_WORDS = (
    *("market", "council", "river", "minister", "season", "harbour", "price", "figures"),
    *("forecast", "railway", "evening", "school", "vote", "border", "storm", "museum"),
    *("engine", "harvest", "signal", "budget", "north", "committee", "report", "island"),
)
_PLACES = (("Lyon", "France", "FR"), ("Porto", "Portugal", "PT"), ("Oslo", "Norway", "NO"))


def make_news(random: Random, depth: int, repeat: int) -> bytes:
    """One message as text; ``depth`` 4 leaves out what lies deeper."""
    return _News(random, depth, repeat).message().encode()


class _News:
    def __init__(self, random: Random, depth: int, repeat: int) -> None:
        self._random = random
        self._depth = depth
        self._repeat = repeat

    def message(self) -> str:
        content = self._head() + self._body()
        urgency = self._one("flash", "urgent", "routine")
        status = self._one("usable", "embargoed", "withheld", "cancelled")
        return _tag("news", content, version="1.1", urgency=urgency, status=status)

    def _head(self) -> str:
        date = f"2004-{self._random.randint(1, 12):02}-{self._random.randint(1, 28):02}"
        published = _tag(
            "published",
            "",
            date=date,
            **{"edition.area": self._one("SF", "NY", "LA"), "type": self._one("print", "web")},
        )
        title = _tag("title", self._text(4))
        about = "".join(self._meta() for _ in self._times()) + self._document_data()
        subjects = "".join(self._subject() for _ in self._times())
        places = "".join(self._place() for _ in self._times())
        return _tag("head", title + about + published + subjects + places)

    def _meta(self) -> str:
        name = self._one("author", "language", "generator", "rating")
        return _tag("meta", "", name=name, content=self._text(1))

    def _document_data(self) -> str:
        year, day = self._random.randint(2003, 2004), self._random.randint(10, 28)
        number = self._random.randint(100_000, 999_999)
        parts = [
            _tag("identifier", "", **{"id.string": f"onyx-{number}"}),
            _tag("issued", "", norm=f"{year}11{day}T0900Z"),
            _tag("expires", "", norm=f"{year}12{day}T0900Z"),
            _tag("copyright", "", year=str(year), holder=self._text(2)),
        ]
        keywords = [_tag("keyword", "", key=self._text(1)) for _ in self._times()]
        return _tag("docdata", "".join(parts + keywords))

    def _subject(self) -> str:
        topics = "".join(
            _tag("topic", self._text(1), relevance=self._one("high", "medium", "low"))
            for _ in self._times()
        )
        kind = self._one("stock", "politics", "sports", "weather", "culture")
        return _tag("subject", topics, **{"subject.type": kind})

    def _place(self) -> str:
        location, country, code = self._random.choice(_PLACES)
        return _tag(
            "place", _tag("location", location) + _tag("country", country, **{"iso.code": code})
        )

    def _body(self) -> str:
        byline = _tag("person", self._text(2)) + _tag("affiliation", self._text(2))
        bylines = "".join(_tag("byline", byline) for _ in self._times())
        blocks = "".join(self._block() for _ in self._times())
        return _tag("body", _tag("headline", self._text(5)) + bylines + _tag("content", blocks))

    def _block(self) -> str:
        """Its text at depth 4, paragraphs and quotations (which are deeper) at depth 6."""
        if self._depth < 6:
            return _tag("block", self._text(12))
        parts = "".join(_tag("paragraph", self._text(12)) for _ in self._times())
        statements = "".join(_tag("statement", self._text(6)) for _ in self._times())
        parts += _tag("quotation", _tag("speaker", self._text(2)) + statements)
        return _tag("block", parts)

    def _times(self) -> range:
        return range(self._random.randint(1, self._repeat))

    def _one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _text(self, words: int) -> str:
        return " ".join(self._random.choices(_WORDS, k=words))


def _tag(name: str, content: str, /, **attributes: str) -> str:
    markup = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    inside = content if content.startswith("<") else escape(content)
    return f"<{name}{markup}>{inside}</{name}>"
