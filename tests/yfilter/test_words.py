"""``contains text`` and ``contains-token``: which words are found where, by a definition of its
own, the interpreter and the engine alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from random import Random
from xml.sax.saxutils import quoteattr

import pytest

from formats.text import parse_text
from tests.yfilter.evaluated import evaluate, select
from yfilter import Matcher
from yfilter.errors import ProfileRefused
from yfilter.language.matching_path import matching_path
from yfilter.language.patterns import compile_pattern
from yfilter.language.query_ast import PathExpression
from yfilter.language.query_parser import parse_expression, parse_profile
from yfilter.language.query_text import unparse

VOCABULARY = ("storm", "Storm", "STORMS", "warning", "straße", "STRASSE", "ǅ", "e\u0301", "é", "1a")
BETWEEN = (" ", "-", "  ", "'", "\n", ". ", "\u2028", "_", "\U0001f300")
MODES = ("", "any", "all", "phrase", "any word", "all words")

# A selection as a text, and whether it holds for a text of the message.
Selection = tuple[str, Callable[[str], bool]]


def words_of(text: str, sensitive: bool) -> list[str]:
    """Longest runs of the categories L, M and N."""
    runs = groupby(text, lambda character: unicodedata.category(character)[0] in "LMN")
    words = ["".join(run) for is_word, run in runs if is_word]
    return words if sensitive else [word.casefold() for word in words]


def has_phrase(text: str, phrase: str, sensitive: bool, wildcards: bool = False) -> bool:
    """Whether the words of the phrase stand in a text one behind the other."""
    words = words_of(text, sensitive)
    *wanted, last = words_of(phrase, sensitive) or [""]
    is_open = wildcards and phrase.endswith(".*")
    size = len(wanted) + 1
    return bool(last) and any(
        words[at : at + size - 1] == wanted
        and (words[at + size - 1].startswith(last) if is_open else words[at + size - 1] == last)
        for at in range(len(words) - size + 1)
    )


def has_token(text: str, token: str) -> bool:
    return token in text.replace("\n", " ").split(" ") and token != ""


def some_text(rng: Random, most: int) -> str:
    return "".join(
        rng.choice(VOCABULARY) + rng.choice(BETWEEN) for _ in range(rng.randint(0, most))
    )


def primary(rng: Random) -> Selection:
    sensitive, wildcards = rng.random() < 0.3, rng.random() < 0.3
    mode = rng.choice(MODES)
    phrases = [some_text(rng, 2).strip() for _ in range(rng.randint(1, 3))]
    if wildcards:
        phrases = [phrase.replace(".", "") for phrase in phrases]
        *others, last = [rng.choice((phrase, f"{phrase}1.*")) for phrase in phrases]
        phrases = phrases[:-1] if mode == "phrase" else others
        phrases.append(last if rng.random() < 0.5 else rng.choice(VOCABULARY)[:3] + ".*")
    each = phrases
    if "word" in mode:
        each = [word for phrase in phrases for part in phrase.split() for word in parts(part)]
    elif mode == "phrase":
        each = [" ".join(phrases)]
    listed = ", ".join(f'"{phrase}"' for phrase in phrases)
    written = f'"{phrases[0]}"' if len(phrases) == 1 else f"{{{listed}}}"
    case = rng.choice((" using case insensitive", "")) if not sensitive else " using case sensitive"
    options = case + " using wildcards" * wildcards + rng.choice(("", " using no stemming"))

    def holds(text: str) -> bool:
        found = [has_phrase(text, phrase, sensitive, wildcards) for phrase in each]
        return (all(found) and bool(found)) if mode.startswith("all") else any(found)

    return f"{written} {mode}{options}", holds


def parts(written: str) -> list[str]:
    """The words of what white space encloses, the last of them with its wildcard."""
    words = words_of(written, sensitive=True)
    return [*words[:-1], words[-1] + ".*" * written.endswith(".*")] if words else []


def selection(rng: Random, depth: int = 2) -> Selection:
    kind = rng.choice(("words", "and", "or", "not")) if depth else "words"
    if kind == "words":
        return primary(rng)
    (one, holds), (other, too) = selection(rng, depth - 1), selection(rng, depth - 1)
    match kind:
        case "and":
            return f"({one}) ftand ({other})", lambda text: holds(text) and too(text)
        case "or":
            return f"{one} ftor {other}", lambda text: holds(text) or too(text)
        case _:
            return f"ftnot ({one})", lambda text: not holds(text)


def sources(h: str | None, d: Sequence[str]) -> dict[str, list[str]]:
    """The texts that each source is, where an element has such an attribute and children."""
    of_h = [] if h is None else [h]
    return {
        "@h": of_h,
        "d": list(d),
        ".": ["".join(d)],
        "(@h, d)": of_h + list(d),
        "upper-case(@h)": [(h or "").upper()],
    }


@pytest.mark.parametrize("seed", range(8))
def test_words_are_found_as_they_are_defined(seed: int) -> None:
    rng = Random(seed)
    matcher = Matcher()
    asked: dict[str, tuple[str, Callable[[str], bool], PathExpression]] = {}
    while len(asked) < 40:
        source, (written, holds) = rng.choice(list(sources(None, ()))), selection(rng)
        text = f"//i[{source} contains text {written}]"
        try:
            asked[matcher.add(text)] = source, holds, matching_path(parse_profile(text))
        except ProfileRefused as refused:
            assert "FTDY0020" in str(refused), refused  # a wildcard that is not at the end
    found = 0
    for _ in range(12):
        h = rng.choice((None, some_text(rng, 5)))
        d = [some_text(rng, 4) for _ in range(rng.randint(0, 3))]
        attribute = "" if h is None else f" h={quoteattr(h)}"
        message = f"<r><i{attribute}>{''.join(f'<d>{one}</d>' for one in d)}</i></r>".encode()
        stream = parse_text(message)
        expected = {
            number
            for number, (source, holds, _) in asked.items()
            if any(map(holds, sources(h, d)[source]))
        }
        assert {number for number, asks in asked.items() if select(asks[2], stream)} == expected
        assert set(matcher.matched_ids(message)) == expected
        found += len(expected)
    assert 60 < found < 400


@pytest.mark.parametrize("seed", range(6))
def test_words_that_the_index_looks_for_come_and_go(seed: int) -> None:
    rng = Random(seed)
    matcher = Matcher()
    asked: dict[str, tuple[str, Callable[[str], bool]]] = {}
    for step in range(80):
        if asked and rng.random() < 0.3:
            gone = rng.choice(sorted(asked))
            matcher.remove(gone)
            del asked[gone]
        else:
            attribute, words = rng.choice("kl"), some_text(rng, 2).strip()
            if rng.random() < 0.3:
                holds = partial(has_token, token=words)
                profile = f'contains-token(@{attribute}, "{words}")'
            else:
                sensitive = rng.random() < 0.5
                holds = partial(has_phrase, phrase=words, sensitive=sensitive)
                profile = f'@{attribute} contains text "{words}"'
                profile += " using case sensitive" * sensitive
            asked[matcher.add(f"//e[{profile}]")] = attribute, holds
        if step % 8 == 7:
            values = {attribute: some_text(rng, 6) for attribute in "kl"}
            written = "".join(f" {name}={quoteattr(value)}" for name, value in values.items())
            expected = {
                number for number, (attribute, holds) in asked.items() if holds(values[attribute])
            }
            assert set(matcher.matched_ids(f"<r><e{written}/></r>".encode())) == expected
    for number in asked:
        matcher.remove(number)
    assert matcher.statistics().index_atoms == Matcher().statistics().index_atoms


@pytest.mark.parametrize("flags", ["", "i"])
def test_patterns_that_are_texts_match_as_patterns_do(flags: str) -> None:
    rng = Random(1)
    letters = "ksiKSI\u212a\u017f\u0131\u0130é"
    matcher = Matcher()
    asked = {}
    for _ in range(200):
        text = "".join(rng.choices("ksiKSI ", k=rng.randint(1, 3)))
        pattern = rng.choice(("", "^")) + text + rng.choice(("", "$"))
        asked[matcher.add(f'//e[matches(@k, "{pattern}", "{flags}")]')] = pattern
    for _ in range(50):
        value = "".join(rng.choices(letters + " ", k=rng.randint(0, 5)))
        found = set(matcher.matched_ids(f'<e k="{value}"/>'.encode()))
        assert found == {
            number
            for number, pattern in asked.items()
            if compile_pattern(pattern, flags).search(value)
        }
    assert matcher.statistics().operators == 0


def test_words_are_looked_up_and_no_candidate_verified() -> None:
    matcher = Matcher()
    for number in range(300):
        matcher.add(f'//e[@k contains text "v{number}"]')
        matcher.add(f'//e[@k contains text "v{number}1.*" using wildcards]')
        matcher.add(f'//e[contains-token(@k, "v{number}")]')
        matcher.add(f'//e[@k contains text "v{number} x{number}" any word]')
    found = matcher.matched_ids(b'<e k="(V123, v5"/>')
    assert set(found) == {"p21", "p23", "p24", "p493", "p496"}
    many = " ".join(f"y{number}" for number in range(500))
    assert set(matcher.matched_ids(f'<e k="{many} V123"/>'.encode())) == {"p493", "p496"}
    sizes = matcher.statistics()
    assert (sizes.operators, sizes.candidates_profile) == (0, 0)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('"This is YOUR World" contains text "your world"', True),
        ('"Respect Upper Case" contains text "upper" using case sensitive', False),
        ('"Respect Upper Case" contains text "Upper" using case sensitive', True),
        ('"Rain, and\nstorm!" contains text "rain and storm"', True),
        ('"Rain, and storm" contains text "rain storm"', False),
        ('"Rain, and storm" contains text "rain storm" all words', True),
        ('"Rain, and storm" contains text {"hail", "storm"}', True),
        ('"Rain, and storm" contains text {"hail", "storm"} all', False),
        ('"Rain, and storm" contains text {"and", "storm"} phrase', True),
        ('"rainstorm" contains text "storm"', False),
        ('"rainstorm" contains text "rain.*" using wildcards', True),
        ('"a rain storm" contains text "rain st.*" using wildcards', True),
        ('"STRASSE" contains text "Straße"', True),
        ('"café" contains text "cafe"', False),
        ("""'don"t' contains text "don t\"""", True),
        ('"a" contains text "!"', False),
        ('"a" contains text ""', False),
        ('"a" contains text {"a", "!"} all', False),
        ('"a" contains text {"a", "!"} all words', True),
        ('"a" contains text {()} all', False),
        ('() contains text ftnot "a"', False),
        ('"a" contains text ftnot "b"', True),
        ('("a b", "c") contains text "a" ftand "c"', False),
        ('("a b", "c") contains text "a" ftand "b"', True),
        ('"a" contains text "b" ftand "c" ftor "a"', True),
        ('"a" contains text "a" = true()', True),
        ('contains-token("a b\tc", " c ")', True),
        ('contains-token(("a", "b-c"), "b")', False),
        ('contains-token("a", "A")', False),
    ],
)
def test_what_a_condition_says(condition: str, expected: bool) -> None:
    expression = parse_expression(condition)
    assert evaluate(expression, parse_text(b"<a/>")) == [expected]
    assert parse_expression(unparse(expression)) == expression
    matcher = Matcher()
    matcher.add(f"/a[{condition}]")
    assert bool(matcher.matched_ids(b"<a/>")) == expected


@pytest.mark.parametrize(
    ("selection", "at", "reason"),
    [
        ('"x" using stemming', "stemming", "'using stemming' is not in the profile language"),
        ('"x" using stop words default', "stop", "'using stop' is not in the profile language"),
        ('"x" using diacritics insensitive', "insensitive", "is not in the profile language"),
        ('"x" using language "en"', "language", "'using language' is not in the profile language"),
        ('"x" occurs at least 2 times', "occurs", "'occurs' of XQuery Full Text is not"),
        ('"x" ftand "y" window 3 words', "window", "'window' of XQuery Full Text is not"),
        ('"x" not in "x y"', "not", "'not' of XQuery Full Text is not"),
        ('("x" ftor "y") using case sensitive', "using", "'using' of XQuery Full Text is not"),
        ('"x.*y" using wildcards', '"x.*y"', "there is only .* at the end of a word (FTDY0020)"),
        ('{@y} ftand "x"', "{@y}", "words that depend on the context item, beside ftand"),
        ("{1}", "{1}", "'contains text' takes strings"),
        ("x", "x]", "unexpected 'x'"),
    ],
)
def test_what_is_not_there_is_refused_where_it_stands(selection: str, at: str, reason: str) -> None:
    text = f"//i[d contains text {selection}]"
    with pytest.raises(ProfileRefused) as caught:
        parse_profile(text)
    assert reason in caught.value.reason
    assert caught.value.column == text.index(at) + 1
    assert caught.value.expected
