"""The demo's markets source: quotes, trades, baskets and trading halts, full of numbers.

What is hard here are namespaces: most venues use ``urn:demo:markets``, some with a prefix and some
as the default namespace; one old venue uses no namespace at all, so that the same local names mean
something else.  Currencies are attributes in a second namespace.  Baskets contain baskets.
"""

from __future__ import annotations

from random import Random

from demo.markup import block, cdata, document, element, text
from demo.words import ORGANISATIONS, PEOPLE, sentence, time_stamp

MARKETS = "urn:demo:markets"
CURRENCY = "urn:demo:currency"
SYMBOLS = ("ACME", "BRVO", "CYGN", "DLTA", "ECHO", "FXTR", "GOLF", "HTEL", "INDA", "JULT")
CURRENCIES = ("USD", "EUR", "JPY", "CHF")
VENUES = ("NYX", "LSX", "TKX", "OLDX")
OLD_VENUE = "OLDX"
_TYPICAL_PRICE = {symbol: 12.0 * 1.6**place for place, symbol in enumerate(SYMBOLS)}


def markets_message(random: Random, index: int) -> bytes:
    """One message of the markets source."""
    venue = random.choices(VENUES, (5, 4, 3, 2))[0]
    message = _Message(random, venue)
    kind = random.choices((message.ticks, message.baskets, message.halt), (8, 2, 1))[0]
    return document(kind(index), random.choices(("UTF-8", "ISO-8859-1"), (20, 1))[0])


class _Message:
    """Writes one message in its venue's way of using namespaces."""

    def __init__(self, random: Random, venue: str) -> None:
        self._random = random
        self._venue = venue
        self._old = venue == OLD_VENUE
        self._prefix = "" if self._old or random.random() < 0.5 else "m:"

    def ticks(self, index: int) -> str:
        count = self._random.choice((3, 5, 8, 13, 21, 34))
        entries = [
            self._quote() if self._random.random() < 0.6 else self._trade(index * 100 + place)
            for place in range(count)
        ]
        return self._root("ticks", index, entries)

    def baskets(self, index: int) -> str:
        entries = [self._basket(self._random.randint(1, 5)) for _ in range(2)]
        return self._root("basket-report", index, entries)

    def halt(self, index: int) -> str:
        symbol = self._random.choice(SYMBOLS)
        entries = [
            self._element("symbol", None, symbol),
            self._element("reason", {"code": f"H{self._random.randint(1, 9)}"}, "news pending"),
            self._element("until", None, time_stamp(self._random)),
            self._element("comment", None, text(_latin(sentence(self._random)))),
        ]
        return self._root("halt", index, entries)

    def _root(self, name: str, index: int, entries: list[str]) -> str:
        attributes = {"venue": self._venue, "seq": str(index), "at": time_stamp(self._random)}
        if not self._old:
            attributes[f"xmlns:{self._prefix[:-1]}" if self._prefix else "xmlns"] = MARKETS
            attributes["xmlns:fx"] = CURRENCY
        return block(self._prefix + name, attributes, *entries)

    def _quote(self) -> str:
        random = self._random
        symbol = random.choice(SYMBOLS)
        bid = _TYPICAL_PRICE[symbol] * random.uniform(0.9, 1.1)
        ask = bid + random.choice((0.01, 0.05, 0.25))
        note = ""
        if random.random() < 0.15:
            note = self._element("note", None, cdata("spread < 0.30 & narrowing"))
        return self._block(
            "quote",
            {"symbol": symbol, **self._currency()},
            self._element("bid", {"size": str(random.randint(1, 90) * 100)}, f"{bid:.2f}"),
            self._element("ask", {"size": str(random.randint(1, 90) * 100)}, f"{ask:.2f}"),
            note,
        )

    def _trade(self, number: int) -> str:
        random = self._random
        symbol = random.choice(SYMBOLS)
        price = _TYPICAL_PRICE[symbol] * random.uniform(0.8, 1.2)
        buyer, seller = random.sample(ORGANISATIONS, 2)
        attributes = {
            "id": f"t{number}",
            "symbol": symbol,
            "side": random.choice(("buy", "sell")),
            **self._currency(),
        }
        return self._block(
            "trade",
            attributes,
            self._element("price", None, f"{price:.2f}"),
            self._element("quantity", None, str(random.randint(1, 500) * 10)),
            self._element("party", {"role": "buyer"}, text(buyer)),
            self._element("party", {"role": "seller"}, text(seller)),
            self._element("trader", None, text(_latin(random.choice(PEOPLE)))),
        )

    def _basket(self, depth: int) -> str:
        random = self._random
        legs = [
            self._element("leg", {"symbol": symbol, "weight": f"{random.uniform(0, 1):.3f}"})
            for symbol in random.sample(SYMBOLS, random.randint(1, 4))
        ]
        inner = self._basket(depth - 1) if depth > 1 else ""
        return self._block("basket", {"name": f"basket {depth}", "depth": str(depth)}, *legs, inner)

    def _currency(self) -> dict[str, str]:
        currency = self._random.choices(CURRENCIES, (6, 3, 2, 1))[0]
        return {"currency" if self._old else "fx:currency": currency}

    def _element(self, name: str, attributes: dict[str, str] | None, *children: str) -> str:
        return element(self._prefix + name, attributes, *children)

    def _block(self, name: str, attributes: dict[str, str] | None, *children: str) -> str:
        return block(self._prefix + name, attributes, *children)


def _latin(value: str) -> str:
    """Only what every encoding in use here can write."""
    return value.encode("latin-1", "replace").decode("latin-1")
