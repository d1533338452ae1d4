"""The generator of the demo's messages: the same every time, and not all alike."""

from __future__ import annotations

from collections import Counter

import pytest
from lxml import etree

from demo.acceptance import independent_refusal
from demo.graph_oracle import is_graph_type
from demo.independent_parse import parse
from demo.messages import SPOILT_COUNT, demo_messages

SEED = 2004


def test_the_same_seed_gives_the_same_messages() -> None:
    assert demo_messages(SEED) == demo_messages(SEED)


def test_another_seed_gives_other_messages() -> None:
    pairs = zip(demo_messages(SEED), demo_messages(SEED + 1), strict=True)
    same = [one.name for one, other in pairs if one.data == other.data]
    # The one that is not XML at all is always the same.
    assert same == ["warnings-026"]


def test_a_limit_gives_the_first_messages_of_each_source() -> None:
    every = demo_messages(SEED)
    limited = demo_messages(SEED, 7)
    assert Counter(message.source for message in limited) == {
        "news": 7,
        "markets": 7,
        "warnings": 7,
        "planet": 7,
    }
    assert set(limited) <= set(every)
    assert [message for message in every if message in limited] == limited


@pytest.mark.parametrize("seed", [SEED, 1, 2, 3])
def test_there_are_enough_and_just_the_spoilt_ones_are_not_acceptable(seed: int) -> None:
    messages = demo_messages(seed)
    assert len(messages) >= 300
    assert Counter(message.source for message in messages) == {
        "news": 140,
        "markets": 120,
        "warnings": 60,
        "planet": 60,
    }
    refused = 0
    for message in messages:
        refused += independent_refusal(message.data, message.media_type) is not None
    assert refused == SPOILT_COUNT


def test_messages_are_varied() -> None:
    messages = demo_messages(SEED)
    sizes = sorted(len(message.data) for message in messages)
    assert sizes[len(sizes) // 10] < 1_500
    assert sizes[-1] > 12_000
    texts = [message.data for message in messages]
    for kind in (b"<batched-nitf", b"<!--", b"<![CDATA[", b"&desk;", b"ISO-8859-1"):
        assert any(kind in text for text in texts), kind
    assert any(text.startswith(b"\xff\xfe") for text in texts)
    assert any("海岸".encode() in text for text in texts)


def test_blocks_and_baskets_are_recursive_and_paragraphs_mixed() -> None:
    roots = [
        _root(message.data)
        for message in demo_messages(SEED)
        if not is_graph_type(message.media_type)
    ]
    found = [root for root in roots if root is not None]
    assert any(root.xpath("//block/block/block/block") for root in found)
    deep = "//*[local-name()='basket']/*[local-name()='basket']/*[local-name()='basket']"
    assert any(root.xpath(deep) for root in found)
    assert any(root.xpath("//p[text()[2]][*]") for root in found)


def test_markets_use_prefixes_default_namespaces_and_none() -> None:
    roots = [_root(message.data) for message in demo_messages(SEED) if message.source == "markets"]
    kinds = Counter(
        (root.prefix, etree.QName(root).namespace) for root in roots if root is not None
    )
    assert set(kinds) == {("m", "urn:demo:markets"), (None, "urn:demo:markets"), (None, None)}
    assert min(kinds.values()) >= 10


def _root(data: bytes) -> etree._Element | None:
    try:
        return parse(data)
    except etree.XMLSyntaxError:
        return None
