"""Profiles of one form each, ``/r/i[form]``, with another constant in each; and their messages.

A message is an ``<r>`` with any number of elements ``<i>``, so that work which is done for each
profile and element shows.  Half of the texts and numbers of a
message are in no other.  A profile holds of one element in 12,000, whichever the form: constants
are drawn from domains of that size, and bounds reach so far that the largest of so many elements
passes as many of them.  A form that holds nearly everywhere (``!=``) stands against equalities that
do.  Beside each form stands its XPath 1.0, which lxml can evaluate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

_DOMAIN = 12_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_UPPER, _LOWER = _LETTERS.upper() + "É", _LETTERS + "é"
_FLAGS = 30
_SHORTEST, _LENGTHS = 10, 16
_PARTS = ("<f>0</f>", "<f>30.5</f>", "<f> 69.50 </f>")
_DAYS_EACH, _FIRST_DAY = 2, date(2020, 1, 1)

FORM_EQUALITY, FORM_EVERYWHERE = "equality", "everywhere"


@dataclass(frozen=True, slots=True)
class Form:
    """A condition; ``against`` names the form that holds as often, of equality alone."""

    name: str
    condition: str
    xpath: str
    against: str = FORM_EQUALITY

    def profiles(self, number: int, elements: int, seed: int) -> list[tuple[str, str]]:
        """So many distinct profiles for messages of so many elements, each with its XPath 1.0."""
        random = Random(f"{self.name} {seed}")
        return [
            (_profile(self.condition, constants), _profile(self.xpath, constants))
            for chosen in random.sample(range(_DOMAIN), number)
            for constants in (_constants(chosen, elements),)
        ]


def _profile(condition: str, constants: Mapping[str, object]) -> str:
    text = condition.format_map(constants)
    return text if text.startswith("/") else f"/r/i[{text}]"


def form_messages(form: Form, elements: int, seed: int) -> Iterator[bytes]:
    """Messages without end, each with so many elements."""
    random = Random(f"messages {form.name} {elements} {seed}")
    flags = "".join(f' f{n}="on"' for n in range(_FLAGS)) if "@f" in form.condition else ""
    more = [name for name in ("@q", "@x", "@t", "(f)", "//g") if name in form.condition]
    while True:
        items = "".join([_item(random, elements, more) for _ in range(elements)])
        yield f"<r{flags}>{items}</r>".encode()


def _item(random: Random, elements: int, more: Sequence[str]) -> str:
    """An element with code, text and number; ``more``: what else its form looks at."""
    code, title, other, fresh = [int(random.random() * size) for size in (*[_DOMAIN] * 3, 1 << 31)]
    number = f"{fresh % _DOMAIN}.{fresh % 997}" if fresh & 1 else _number(code)
    text = _text(title, f"Nr {fresh:x}" if fresh & 2 else "")
    day = _FIRST_DAY + timedelta(other % (elements * _DAYS_EACH))
    said = {
        "@q": f' q="{fresh % 89}"',
        "@x": f' x="news t{other:05} b{fresh % 8}"',
        "@t": f' t="{day}"',
        "(f)": "".join(_PARTS[: fresh % 4]),
        "//g": f"<h><g>g{other}</g></h>",
    }
    attributes = "".join([said[name] for name in more if name[0] == "@"])
    inside = "".join([said[name] for name in more if name[0] != "@"])
    return f'<i c="c{code:05}"{attributes}><d>{text}</d><e>{number}</e>{inside}</i>'


def _word(number: int, factor: int) -> str:
    """Five letters, others for each number of the domain; the last are not all small."""
    rest = number * factor % 26**4
    letters = [_LETTERS[rest // 26**place % 26] for place in range(4)]
    letters[number % 4] = letters[number % 4].upper()
    return "".join(letters) + ("É" if number % 5 == 0 else "x")


def _text(number: int, middle: str = "") -> str:
    """The text of an element ``d``: its first and last word depend on the number alone."""
    before, behind = " " if number % 3 == 0 else "", "\n  " if number % 7 == 0 else ""
    space = "  " if number % 2 else " "
    return f"{before}{_word(number, 7_919)}{space}{middle}-{_word(number, 104_729)}{behind}"


def _number(number: int) -> str:
    return (f"{number}", f"{number}.25", f"{number}.250", f" {number}.4", f"{number}.0")[number % 5]


def _constants(number: int, elements: int) -> dict[str, object]:
    """All that a condition may name, for one number of the domain."""
    text, other, beyond = _text(number), _text((number * 7 + 13) % _DOMAIN), number + 0.5
    word, tail = _word(number, 7_919), text.rpartition("-")[2]
    return {
        "code": f"c{number:05}",
        "text": text,
        "other": other,
        "word": word,
        "small": word.lower(),
        "start": text[:5],
        "end": tail[-5:] if number % 7 else tail[-7:],
        "end_length": 5 if number % 7 else 7,
        "normal": " ".join(text.split()),
        "letter": (letter := text.strip()[1]),
        "without": text.replace(letter, ""),
        "lowered": text.lower(),
        "first": text[:4],
        "before": text.partition("-")[0],
        "after": tail,
        "both": f"c{number:05}{_number(number)}",
        "place": number + 1,
        "number": number,
        "modulus": _DOMAIN + 1 + number,
        "low": number % (_DOMAIN // 2),
        "length": f"{_SHORTEST + _LENGTHS * beyond / elements:.4f}",
        "many": f"{3 * beyond / elements:.4f}",
        "total": f"{100 * beyond / elements:.4f}",
        "bound": f"{_DOMAIN * beyond / elements:.2f}",
        "twice": f"{2 * _DOMAIN * beyond / elements:.2f}",
        "day": (day := _FIRST_DAY + timedelta(_DAYS_EACH * number)),
        "day_number": f"{day:%Y%m%d}",
        "upper_letters": _UPPER,
        "lower_letters": _LOWER,
        "flag": number % _FLAGS,
        "flag2": number // _FLAGS % _FLAGS,
        "flag3": number // _FLAGS**2,
    }


_FOLDED = "translate(d, '{upper_letters}', '{lower_letters}')"


def _form(name: str, condition: str, xpath: str = "", against: str = FORM_EQUALITY) -> Form:
    return Form(name, condition, xpath or condition, against)


_FORMS = (
    _form(FORM_EQUALITY, "@c = '{code}'"),
    _form(
        FORM_EVERYWHERE,
        "/r[@f{flag} = 'on'][@f{flag2} = 'on'][@f{flag3} = 'on']/i",
        against=FORM_EVERYWHERE,
    ),
    _form("text", "d = '{text}'"),
    _form("contains", "contains(d, '{word}')"),
    _form("starts_with", "starts-with(d, '{start}')"),
    _form(
        "ends_with",
        "ends-with(d, '{end}')",
        "substring(d, string-length(d) - {end_length} + 1) = '{end}'",
    ),
    _form(
        "matches",
        "matches(d, '^\\s*{word}[- a-zA-Z]')",
        "starts-with(normalize-space(d), '{word}')",
    ),
    _form("contains_translated", f"contains({_FOLDED}, '{{small}}')"),
    _form("normalize_space", "normalize-space(d) = '{normal}'"),
    _form("lower_case", "lower-case(d) = '{lowered}'", f"{_FOLDED} = '{{lowered}}'"),
    _form("string_length", "string-length(d) > {length}"),
    _form("number", "number(e) > {bound}"),
    _form("product", "e * 2 > {twice}"),
    _form("difference", "e - @q > {bound}"),
    _form("substring", "substring(d, 1, 4) = '{first}'"),
    _form("substring_before", "substring-before(d, '-') = '{before}'"),
    _form("substring_after", "substring-after(d, '-') = '{after}'"),
    _form("concat", "concat(@c, e) = '{both}'"),
    _form("count", "count(f) > {many}"),
    _form("sum", "sum(f) > {total}"),
    _form("position", "position() = {place}"),
    _form("position_modulo", "position() mod {modulus} = {place}"),
    _form("last", "last() - {number}"),
    _form("modulo", "e mod {modulus} = {number}"),
    _form("range", "e = {number} to {number} + 1", "e = {number} or e = {number} + 1"),
    _form("replace", "contains(replace(d, '{word}', 'zqz'), 'zqz')", "contains(d, '{word}')"),
    _form(
        "some_two",
        "some $d in d, $e in e satisfies (contains($d, '{word}') and $e > {low})",
        "contains(d, '{word}') and e > {low}",
    ),
    _form("some_sum", "some $e in e, $q in @q satisfies $e + $q > {bound}", "e + @q > {bound}"),
    _form(
        "every_contains",
        "every $d in d satisfies contains($d, '{word}')",
        "not(d[not(contains(., '{word}'))])",
    ),
    _form("translate_own", "translate(d, '{letter}', '') = '{without}'"),
    _form("concat_own", "contains(concat(@c, '-{number}'), '{code}-')"),
    _form(
        "occurrences",
        "string-length(d) - string-length(translate(d, '{letter}', '')) > {many}",
    ),
    _form("tokenize", "count(tokenize(d, '{word}')) > 1", "contains(d, '{word}')"),
    _form("floor_own", "floor(e * 12000 div {modulus}) = {low}"),
    _form("some_plus", "some $e in e, $q in @q satisfies $e = $q + {number}", "e = @q + {number}"),
    _form(
        "date_difference",
        "xs:date(@t) - xs:date('{day}') > xs:dayTimeDuration('P0D')",
        "translate(@t, '-', '') > {day_number}",
    ),
    _form("union", "(e[. > {bound}] | d[. = '{text}'])", "e > {bound} or d = '{text}'"),
    _form("count_above", "count(e[. > {bound}]) = 1"),
    _form("not_contains", "not(contains(d, '{word}'))", against=FORM_EVERYWHERE),
    _form("not_equal", "@c != '{code}'", against=FORM_EVERYWHERE),
    _form("one_of", "d = ('{text}', '{other}')", "d = '{text}' or d = '{other}'"),
    _form("or", "@c = '{code}' or d = '{other}'"),
    _form("round", "round(e) = {number}"),
    _form("floor", "floor(e) = {number}"),
    _form("number_and_contains", "e >= {low} and contains(d, '{word}')"),
    _form("preceding", "preceding-sibling::i[1]/@c = '{code}'"),
    _form("preceding_count", "count(preceding-sibling::i) = {number}"),
    _form("descendant", ".//g = 'g{number}'"),
    _form("token", "contains(concat(' ', @x, ' '), ' t{number:05} ')"),
    _form(
        "date",
        "xs:date(@t) > xs:date('{day}')",
        "translate(@t, '-', '') > {day_number}",
    ),
)

FORMS: Mapping[str, Form] = {form.name: form for form in _FORMS}
