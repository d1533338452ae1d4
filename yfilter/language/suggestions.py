"""What somebody probably meant who wrote something else: for the "expected" of a refusal."""

from __future__ import annotations

import re
from difflib import get_close_matches

from yfilter.language.functions import FUNCTIONS, TYPES, other_functions
from yfilter.language.query_ast import Cast, Expression, FunctionCall
from yfilter.language.words import WORD_TESTS

# Names that other languages have for what is a function here.
_FOREIGN = {
    **dict.fromkeys(("toupper", "toUpper", "toUpperCase", "upper"), "upper-case()"),
    **dict.fromkeys(("tolower", "toLower", "toLowerCase", "lower"), "lower-case()"),
    **dict.fromkeys(("len", "length"), "count() or string-length()"),
    **dict.fromkeys(("regexp", "match"), "matches()"),
    **{name: f"xs:{name}()" for name in ("date", "dateTime", "integer", "decimal")},
    "trim": "normalize-space()",
    "size": "count()",
    "split": "tokenize()",
    "join": "string-join()",
    "substr": "substring()",
    "replaceAll": "replace()",
    "isEmpty": "empty()",
    "has": "exists()",
    "mean": "avg()",
    "like": "matches() or contains()",
    "int": "xs:integer()",
    "now": "current-dateTime()",
    "today": "current-date()",
}
# Words of other languages where an operator is expected.
_WORDS = {
    "like": "contains(…), starts-with(…) or matches(…)",
    "in": "'=', which holds for any of several: @a = ('x', 'y')",
    "between": "two comparisons with 'and'",
    "equals": "'='",
    "AND": "'and'",
    "OR": "'or'",
    "IS": "'=', or empty(…)",
    "when": "'where'",
    "having": "'where'",
    "select": "'return'",
    "yield": "'return'",
}
# What is a value of a type.
_VALUES = {
    "xs:boolean": "true",
    "xs:integer": "12",
    "xs:decimal": "1.5",
    "xs:double": "1.5e3",
    "xs:date": "2026-03-02",
    "xs:dateTime": "2026-03-02T12:30:00",
    "xs:time": "12:30:00",
    "xs:dayTimeDuration": "P1DT12H",
    "xs:yearMonthDuration": "P1Y6M",
    "xs:duration": "P1Y6M2DT12H",
}
_KEYWORDS = ("return", "where", "order", "satisfies", "then", "else", "for", "let")


def function_suggestion(name: str) -> str:
    """A function of the language in place of one that there is not; ``name`` with ``xs:`` alone."""
    if name in _FOREIGN:
        return _FOREIGN[name]
    close = get_close_matches(name, (*FUNCTIONS, *other_functions()), n=1)
    return f"{close[0]}()" if close else "a function of the table in docs/profiles.md"


def type_suggestion(name: str) -> str:
    """A type to cast to in place of one that there is not."""
    close = get_close_matches(
        name, (*TYPES, *[other for other in other_functions() if ":" in other]), n=1
    )
    return close[0] if close else ", ".join(TYPES)


def value_suggestion(wrong: Expression) -> str:
    """What could stand in place of a constant that is an error."""
    match wrong:
        case FunctionCall(name, _) if name in WORD_TESTS:
            return "words, of which the last may end in .*"
        case FunctionCall(type_, _) | Cast(_, type_) if type_.startswith("xs:"):
            such = f', such as {type_}("{_VALUES[type_]}")' if type_ in _VALUES else ""
            return f"a value of the type{such}"
    return "a value; 'try { … } catch * { … }' around it where the error is meant"


def instead_of(text: str, offset: int, word: str) -> str:
    """What the token ``word`` at ``offset`` may have been meant for; "" if that cannot be told."""
    before = text[:offset]
    if before.endswith(("'", '"')) and word[:1].isalpha():
        return "the quotation mark doubled inside the string: '' or \"\""
    called = re.search(r"\b(not|exists|empty|count|contains|string|number)\s*$", before)
    if called and word[:1] in "@$/.*":
        return f"{called[1]}(…), with parentheses"
    if re.search(r"\b(for|let|some|every)\s+$", before) and word[:1].isalpha():
        return f"a variable: ${word}"
    if word in _WORDS:
        return _WORDS[word]
    close = get_close_matches(word, _KEYWORDS, n=1, cutoff=0.7) if word.isalpha() else []
    return f"'{close[0]}'" if close and close[0] != word else ""
