"""What somebody probably meant who wrote something else: for the "expected" of a refusal."""

from __future__ import annotations

import re
from difflib import get_close_matches

from yfilter.language.functions import FUNCTIONS, TYPES
from yfilter.language.other_functions import other_functions

# Names that other languages have for what is a function here.
_FOREIGN = {
    "toupper": "upper-case()",
    "toUpper": "upper-case()",
    "toUpperCase": "upper-case()",
    "upper": "upper-case()",
    "tolower": "lower-case()",
    "toLower": "lower-case()",
    "toLowerCase": "lower-case()",
    "lower": "lower-case()",
    "trim": "normalize-space()",
    "len": "count() or string-length()",
    "length": "count() or string-length()",
    "size": "count()",
    "split": "tokenize()",
    "join": "string-join()",
    "substr": "substring()",
    "replaceAll": "replace()",
    "isEmpty": "empty()",
    "has": "exists()",
    "mean": "avg()",
    "regexp": "matches()",
    "match": "matches()",
    "like": "matches() or contains()",
    "date": "xs:date()",
    "dateTime": "xs:dateTime()",
    "integer": "xs:integer()",
    "decimal": "xs:decimal()",
    "int": "xs:integer()",
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
