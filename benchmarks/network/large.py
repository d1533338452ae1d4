"""``large``: messages of 20,000 quotes for 1,000 FLWOR profiles that are connected, with pings.

Half of the profiles ask for a symbol, half for a range of prices; a hundredth of the quotes is a
result of each, in elements that the profile constructs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import trio

from benchmarks.network.feed import Feed
from benchmarks.network.onyx_network import onyx_network, publish, publisher, register
from benchmarks.network.pings import NetworkReport, pinged
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import onyx_takers

_SYMBOLS = 100
_PRICES = 10_000
_RANGE = _PRICES // 100


@dataclass(frozen=True, slots=True)
class _Quote:
    symbol: str
    price: int

    def __str__(self) -> str:
        return f'<quote symbol="{self.symbol}"><last>{self.price}</last></quote>'


async def measure_large(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """Seconds a message, and what else the broker answers meanwhile."""
    directory.mkdir()
    messages = sizes.large_messages
    feed = await trio.to_thread.run_sync(quotes_feed, sizes)
    file = feed.write(directory / "feed.json")
    expected = feed.expected(messages)
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = await register(network, feed.profiles, sizes.at_once)
        async with onyx_takers(file, network.registration, ids, sizes) as takers:
            await takers.connect()
            before = await network.processor_seconds()
            async with pinged(network, report, "large"):
                start = time.perf_counter()
                await publish(source, feed.published(messages))
                accepted = time.perf_counter() - start
                taken = await takers.wait(sum(map(len, expected)))
            used = await network.processor_seconds() - before
            checked = await takers.check(expected)
    results = sum(len(each) for of in feed.answers for each in of)
    report.figure("large_profiles", "large: FLWOR profiles", len(ids))
    report.figure("large_quotes", "large: quotes in a message", sizes.large_quotes)
    report.figure("large_bytes", "large: bytes of a message", feed.size(1))
    report.figure("large_results", "large: results of a message", results / messages)
    report.figure("large_accepted_s", "large: until accepted, a message", accepted / messages, "s")
    seconds = (taken.at - start) / messages
    report.figure("large_delivered_s", "large: until delivered, a message", seconds, "s")
    label = "large: processor time, a message"
    report.figure("large_cpu_ms", label, used / messages * 1e3, "ms")
    report.figure("large_checked", "large: deliveries checked", checked)


def quotes_feed(sizes: Sizes) -> Feed:
    """Messages of quotes, and profiles with their results."""
    generator = random.Random(sizes.seed)
    messages = [
        [
            _Quote(f"S{generator.randrange(_SYMBOLS)}", generator.randrange(_PRICES))
            for _ in range(sizes.large_quotes)
        ]
        for _ in range(sizes.large_messages)
    ]
    profiles, answers = [], []
    for text, chosen in _profiles(sizes.large_profiles, messages):
        profiles.append(text)
        answers.append(chosen)
    texts = [f"<quotes>{''.join(map(str, quotes))}</quotes>".encode() for quotes in messages]
    return Feed(texts, profiles, answers)


def _profiles(number: int, messages: list[list[_Quote]]) -> Iterator[tuple[str, list[list[bytes]]]]:
    """Texts, and the results for each message."""
    for place in range(number):
        name = f"hit{place}"
        if place % 2:
            low = place * _PRICES // number
            where = f"$q/last >= {low} and $q/last < {low + _RANGE}"
            prices = range(low, low + _RANGE)
            chosen = [[quote for quote in quotes if quote.price in prices] for quotes in messages]
        else:
            symbol = f"S{place // 2 % _SYMBOLS}"
            where = f'$q/@symbol = "{symbol}"'
            chosen = [[quote for quote in quotes if quote.symbol == symbol] for quotes in messages]
        result = f"<{name}>{{$q/@symbol}}{{$q/last}}</{name}>"
        text = f"for $q in /quotes/quote where {where} return {result}"
        yield text, [[_result(name, quote) for quote in of] for of in chosen]


def _result(name: str, quote: _Quote) -> bytes:
    text = f'<{name} symbol="{quote.symbol}"><last>{quote.price}</last></{name}>'
    return text.encode()
