"""Profiles of one operator each, as selective as a profile of one equality; and their messages.

A message is a ``<feed>`` of 28 entries, four of each of seven kinds (elements ``e0`` to ``e6``),
with codes, numbers and parts drawn evenly from domains so large that a profile about one kind
matches nearly one message in a hundred, whichever the operator: ``/feed/e3[@code = "c017"]``, or
``//e3[@number < 20417]``.  What can never be as selective (``!=`` of a code, ``not`` of a value) is
held against equalities that hold on nearly every message; what constructs something, against
equalities that construct the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

KINDS, ENTRIES_A_KIND, PARTS = 7, 4, 4
_CODES, _LOTS, _BINS, _DAYS = 500, 1_000, 2_000, 125
_NUMBERS = 10_000_000
_LETTERS = "abcdefghijklmnopqrstuv"
_SERIAL, _MARK = 24, 8
_FLAGS = 30
_COLOURS = ("red", "green", "blue", "black", "white", "grey", "pink", "brown", "gold", "plum")
_WORDS = ("alpha", "beta", "gamma", "delta", "caf\u00e9", "R&amp;D", "omega", "sigma", "kappa")

Maker: TypeAlias = Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class OperatorWorkload:
    """Profiles of one operator; ``against`` names the workload that it may cost three times as."""

    name: str
    make: Maker
    against: str

    def profiles(self, number: int, seed: int) -> list[str]:
        """So many distinct texts, the same for the same seed; ValueError if there are too few."""
        random = Random(f"{self.name} {seed}")
        texts: dict[str, None] = {}
        for _ in range(20 * number + 1_000):
            if len(texts) == number:
                return list(texts)
            texts[self.make(random)] = None
        raise ValueError(f"{self.name}: there are only {len(texts)} distinct profiles")


def make_feeds(seed: int, number: int) -> list[bytes]:
    """So many messages, of about 10 KB."""
    random = Random(f"feeds {seed}")
    return [make_feed(random) for _ in range(number)]


def make_feed(random: Random) -> bytes:
    """One message."""
    kinds = [kind for kind in range(KINDS) for _ in range(ENTRIES_A_KIND)]
    random.shuffle(kinds)
    entries = "".join(_entry(random, serial, kind) for serial, kind in enumerate(kinds))
    flags = "".join(f' f{n}="on"' for n in range(_FLAGS))
    return f'<feed day="{_day(random)}"{flags}>{entries}</feed>'.encode()


def _entry(random: Random, serial: int, kind: int) -> str:
    referred = random.randrange(KINDS * ENTRIES_A_KIND)
    parts = "".join(
        f'<part k="{_code(random)}" m="{_bin(random)}" v="{random.randrange(1_000_000)}"/>'
        for _ in range(PARTS)
    )
    title = " ".join(random.choices(_WORDS, k=4))
    option = f"o{random.randrange(_LOTS):03}"
    return (
        f'<e{kind} id="i{serial}" ref="i{referred}" code="{_code(random)}" area="{_code(random)}" '
        f'lot="{_lot(random)}" pack="{_lot(random)}" bin="{_bin(random)}" '
        f'number="{random.randrange(_NUMBERS)}" serial="{_letters(random, _SERIAL)}" '
        f'mark="{_letters(random, _MARK)}" {_property(random)}="{random.choice(_COLOURS)}">'
        f"<title>{title}</title><price>{random.randrange(1_000_000) / 100}</price><{option}/>"
        f"{parts}</e{kind}>"
    )


def _day(random: Random) -> str:
    return f"d{random.randrange(_DAYS)}"


def _code(random: Random) -> str:
    return f"c{random.randrange(_CODES):03}"


def _lot(random: Random) -> str:
    return f"l{random.randrange(_LOTS):03}"


def _bin(random: Random) -> str:
    return f"b{random.randrange(_BINS):04}"


def _property(random: Random) -> str:
    return f"p{random.randrange(_CODES):03}"


def _letters(random: Random, length: int) -> str:
    return "".join(random.choices(_LETTERS, k=length))


def _kind(random: Random) -> str:
    return f"e{random.randrange(KINDS)}"


def _path(random: Random) -> str:
    """The entries of one kind."""
    return random.choice(("/feed/", "//")) + _kind(random)


def _where(condition: str) -> Maker:
    """``path[condition]``; what stands in braces is drawn."""
    return lambda random: f"{_path(random)}[{_drawn(condition, random)}]"


def _text(*forms: str) -> Maker:
    """One of these; what stands in braces is drawn."""
    return lambda random: _drawn(random.choice(forms), random)


_DRAWN: Mapping[str, Maker] = {
    "path": _path,
    "kind": _kind,
    "other": _kind,
    "day": _day,
    "code": _code,
    "code2": _code,
    "lot": _lot,
    "lot2": _lot,
    "bin": _bin,
    "bin2": _bin,
    "bin3": _bin,
    "bin4": _bin,
    "property": _property,
    "option": lambda random: f"o{random.randrange(_LOTS):03}",
    "option2": lambda random: f"o{random.randrange(_LOTS):03}",
    "colour": lambda random: random.choice(_COLOURS),
    "two": lambda random: _letters(random, 2),
    "three": lambda random: _letters(random, 3),
    "letter": lambda random: _letters(random, 1),
    "place": lambda random: str(random.randint(1, 4)),
    "coded": lambda random: random.choice(("code", "area")),
    "lettered": lambda random: random.choice(("serial", "mark")),
    "stored": lambda random: random.choice(("lot", "pack")),
    "axis": lambda random: random.choice(("/", "//")),
    "flag2": lambda random: f"f{random.randrange(_FLAGS)}",
    "flag": lambda random: f"f{random.randrange(_FLAGS)}",
    # Bounds that one number in five hundred is beyond, more or less.
    "low": lambda random: str(random.randrange(10_000, 30_000)),
    "high": lambda random: str(_NUMBERS - random.randrange(10_000, 30_000)),
    "sum": lambda random: str(3_532_000 + random.randrange(-20_000, 20_000)),
    "mean": lambda random: str(883_000 + random.randrange(-5_000, 5_000)),
    "least": lambda random: str(788_000 + random.randrange(-5_000, 5_000)),
    "most": lambda random: str(999_500 + random.randrange(-250, 250)),
    "prices": lambda random: str(33_400 + random.randrange(-400, 400)),
}


def _drawn(form: str, random: Random) -> str:
    """The form with what is named in braces drawn, each name once."""
    names = [piece.partition("}")[0] for piece in form.split("{")[1:]]
    text = form
    for name in dict.fromkeys(names):
        if name in _DRAWN:
            text = text.replace(f"{{{name}}}", _DRAWN[name](random))
    return text


def _range(random: Random) -> str:
    low = random.randrange(_NUMBERS - 20_000)
    high = low + random.randrange(15_000, 25_000)
    conditions = random.choice(
        (f"[@number >= {low} and @number < {high}]", f"[@number > {low}][@number <= {high}]")
    )
    return _path(random) + conditions


EQUALITY, EVERYWHERE, CONSTRUCTED = "equality", "equality_everywhere", "equality_constructed"

# A join is found in one message in a hundred since one side of it is an equality.
_JOINS = (
    "for $a in /feed/*, $b in //{kind} where $a/@id = $b/@ref and $b/@{coded} = '{code}' return $a",
    "for $b in /feed/{kind}[@{coded} = '{code}'] for $a in //*[@id = $b/@ref] return $a",
)

_WORKLOADS = (
    (EQUALITY, _where("@{coded} = '{code}'"), EQUALITY),
    (EVERYWHERE, _text("/feed[@{flag} = 'on'][@{flag2} = 'on']{axis}{kind}"), EVERYWHERE),
    (
        CONSTRUCTED,
        _text("for $b in {path} where $b/@{coded} = '{code}' return $b"),
        CONSTRUCTED,
    ),
    ("not_equal", _where("@{property} != '{colour}'"), EQUALITY),
    ("less", _text("{path}[@number < {low}]", "{path}[@number >= {high}]"), EQUALITY),
    ("range", _range, EQUALITY),
    ("one_of", _where("@bin = ('{bin}', '{bin2}', '{bin3}', '{bin4}')"), EQUALITY),
    ("contains", _where("contains(@serial, '{three}')"), EQUALITY),
    ("starts_with", _where("starts-with(@{lettered}, '{two}')"), EQUALITY),
    ("ends_with", _where("ends-with(@{lettered}, '{two}')"), EQUALITY),
    (
        "matches",
        _text(
            "{path}[matches(@serial, '^{letter}[a-v]?{two}')]",
            "{path}[matches(@serial, '{three}.*$')]",
            "{path}[matches(@serial, '{two}[a-k]{letter}')]",
        ),
        EQUALITY,
    ),
    ("exists", _text("{path}[@{property}]", "{path}[{option}]"), EQUALITY),
    (
        "not",
        _text(
            "{path}[@code = '{code}'][not(@lot = '{lot}')]",
            "{path}[not(@lot = '{lot}') and @code = '{code}']",
        ),
        EQUALITY,
    ),
    ("not_at_root", _text("/feed[@day = '{day}'][not({kind}/@code = '{code}')]"), EQUALITY),
    ("not_everywhere", _text("{path}[not(@{coded} = '{code}')]"), EVERYWHERE),
    ("not_at_root_everywhere", _text("/feed[not({kind}/@{stored} = '{lot}')]"), EVERYWHERE),
    ("not_equal_everywhere", _text("{path}[@{coded} != '{code}']"), EVERYWHERE),
    ("and", _where("@{property} and @code != '{code}'"), EQUALITY),
    ("or", _where("@lot = '{lot}' or @pack = '{lot2}'"), EQUALITY),
    (
        "union",
        _text(
            "/feed/{kind}/{option} | //{other}/{option2}",
            "{path}[@lot = '{lot}'] | /feed/{other}[@pack = '{lot2}']",
        ),
        EQUALITY,
    ),
    ("union_filter", _text("(/feed/{kind} | /feed/{other})[@lot = '{lot}']"), EQUALITY),
    ("first", _text("{path}/part[1][@k = '{code}']", "{path}[1]/part[@k = '{code}']"), EQUALITY),
    (
        "nth",
        _text("{path}/part[{place}][@k = '{code}']", "{path}[{place}]/part[@k = '{code}']"),
        EQUALITY,
    ),
    (
        "last",
        _text("{path}/part[last()][@k = '{code}']", "{path}[last()]/part[@k = '{code}']"),
        EQUALITY,
    ),
    (
        "count",
        _text(
            "/feed[count({kind}[@{coded} = '{code}']) >= 1]",
            "{path}[count(part[@m = '{bin}']) = 1]",
        ),
        EQUALITY,
    ),
    (
        "aggregate",
        _text(
            "{path}[sum(part/@v) > {sum}]",
            "{path}[avg(part/@v) > {mean}]",
            "{path}[min(part/@v) > {least}]",
            "{path}[max(part/@v) > {most}]",
            "/feed[sum({kind}/price) > {prices}]",
        ),
        EQUALITY,
    ),
    (
        "join_in_path",
        _text(
            "{path}[@code = '{code}'][@ref = /feed/*/@id]",
            "{path}[@code = '{code}'][@ref = //*/@id]",
        ),
        EQUALITY,
    ),
    ("join", _text(*_JOINS), CONSTRUCTED),
    (
        "grouping",
        _text(
            "for $v in distinct-values({path}/@{property}) "
            "return <g v='{$v}'>{{path}[@{property} = $v]/title}</g>",
            "for $v in distinct-values({path}/@{property}) let $same := {path}[@{property} = $v] "
            "return <g v='{$v}' n='{count($same)}'>{$same/title}</g>",
        ),
        CONSTRUCTED,
    ),
    ("nested", _text("{path}[part/@m = '{bin}']", "{path}[part[@m = '{bin}']]/title"), EQUALITY),
)

OPERATORS: Mapping[str, OperatorWorkload] = {
    name: OperatorWorkload(name, make, against) for name, make, against in _WORKLOADS
}
BASELINES = tuple(name for name, operator in OPERATORS.items() if operator.against == name)


def mixed_flwor(number: int, seed: int) -> Iterator[str]:
    """FLWOR profiles whose ``where`` has ``or``, ``contains`` and ``not``, all distinct."""
    random = Random(f"mixed {seed}")
    seen: set[str] = set()
    while len(seen) < number:
        condition = _drawn(random.choice(_MIXED), random)
        text = f"for $e in {_path(random)} where {condition} return {random.choice(_RETURNS)}"
        if text not in seen:
            seen.add(text)
            yield text


_MIXED = (
    "$e/@lot = '{lot}' or $e/@pack = '{lot2}'",
    "$e/@code = '{code}' or contains($e/@serial, '{three}')",
    "contains($e/@serial, '{three}') and not($e/@lot = '{lot}')",
    "not($e/@{property}) and ($e/@lot = '{lot}' or contains($e/@serial, '{three}'))",
    "$e/@code = '{code}' and not(contains($e/title, 'alpha') or $e/part/@k = '{code2}')",
)
_RETURNS = (
    "$e",
    "<hit id='{$e/@id}'>{$e/title}</hit>",
    "<hit id='{$e/@id}'>{$e/title}{$e/price}</hit>",
)
