"""The demo's messages: a seeded stream for each of four data sources.

A message is a function of the seed, its source and its number alone, so ``limit`` gives a prefix
of the same messages.  A few are spoilt on purpose, each in another way, to see them refused.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from demo.alerts import alert_message
from demo.markets import markets_message
from demo.news import news_message
from demo.planet import planet_message
from formats.media_types import XML


@dataclass(frozen=True, slots=True)
class DemoMessage:
    """One message: ``source`` publishes it, ``name`` says which one it is to people."""

    source: str
    name: str
    data: bytes
    media_type: str = XML


@dataclass(frozen=True, slots=True)
class DemoSource:
    """A data source: ``city`` is where it stands (the label of a broker, or "" for anywhere)."""

    name: str
    city: str
    description: str


NEWS = DemoSource("news", "Chicago", "articles, single and in batches")
MARKETS = DemoSource("markets", "New York", "quotes, trades, baskets, trading halts")
WARNINGS = DemoSource("warnings", "San Francisco", "alerts in several languages")
PLANET = DemoSource("planet", "Seattle", "weblogs as graphs: RSS 1.0, Turtle, JSON-LD, N-Triples")
SOURCES = (NEWS, MARKETS, WARNINGS, PLANET)

_COUNTS = {"news": 140, "markets": 120, "warnings": 60, "planet": 60}
_GENERATORS: Mapping[str, Callable[[Random, int], bytes]] = {
    "news": news_message,
    "markets": markets_message,
    "warnings": alert_message,
}


def demo_messages(seed: int, limit: int | None = None) -> list[DemoMessage]:
    """The messages of all sources, source by source; ``limit`` is how many of each at most."""
    messages = []
    for source, total in _COUNTS.items():
        count = total if limit is None else min(total, limit)
        messages += [_message(seed, source, index) for index in range(count)]
    return messages


def _message(seed: int, source: str, index: int) -> DemoMessage:
    random = Random(f"{seed}/{source}/{index}")
    if source == PLANET.name:
        data, media_type = planet_message(random, index)
    else:
        data, media_type = _GENERATORS[source](random, index), XML
    spoil = _SPOILT.get((source, index))
    if spoil is not None:
        data = spoil(_in_utf8(data))
    return DemoMessage(source, f"{source}-{index + 1:03}", data, media_type)


def _in_utf8(data: bytes) -> bytes:
    """What is spoilt is spoilt in bytes, which must be those of ASCII markup."""
    if not data.startswith(codecs.BOM_UTF16):
        return data
    return data.decode("utf-16").replace('encoding="UTF-16"', 'encoding="UTF-8"', 1).encode()


def _cut_off(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def _wrong_end_tag(data: bytes) -> bytes:
    start = data.rindex(b"</")
    return data[:start] + b"</finis>\n"


def _bare_ampersand(data: bytes) -> bytes:
    start = data.rindex(b"</")
    return data[:start] + b"<p>fish & chips</p>" + data[start:]


def _attribute_twice(data: bytes) -> bytes:
    start = data.rindex(b"</")
    return data[:start] + b'<x id="1" id="2"/>' + data[start:]


def _undeclared_prefix(data: bytes) -> bytes:
    start = data.rindex(b"</")
    return data[:start] + b"<nobody:knows/>" + data[start:]


def _wrong_character(data: bytes) -> bytes:
    start = data.rindex(b"</")
    return data[:start] + b"<bell>\x07</bell>" + data[start:]


def _no_xml(data: bytes) -> bytes:
    return b'{"alert": "this is not XML"}\n'


def _external_entity(data: bytes) -> bytes:
    """Well-formed; what it asks for, reading a file of the broker's machine, is refused."""
    head, declaration, body = data.partition(b"?>\n")
    name = body[1:].split(None, 1)[0].split(b">")[0].decode("ascii")
    doctype = f'<!DOCTYPE {name} [<!ENTITY secret SYSTEM "file:///etc/hostname">]>\n'
    end = body.rindex(b"</")
    return head + declaration + doctype.encode() + body[:end] + b"<x>&secret;</x>" + body[end:]


# Which messages are spoilt, all of them early enough for a small ``limit``.
_SPOILT: Mapping[tuple[str, int], Callable[[bytes], bytes]] = {
    ("news", 3): _cut_off,
    ("news", 30): _bare_ampersand,
    ("news", 77): _external_entity,
    ("markets", 2): _wrong_end_tag,
    ("markets", 41): _undeclared_prefix,
    ("markets", 90): _attribute_twice,
    ("warnings", 4): _wrong_character,
    ("warnings", 25): _no_xml,
    ("planet", 1): _cut_off,
    ("planet", 4): _undeclared_prefix,
}
SPOILT_COUNT = len(_SPOILT)
