"""XPath of a rule set, taken apart as far as its translation needs: strings, brackets, names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from yfilter.errors import SchematronRefused
from yfilter.language.functions import FUNCTIONS, ArgumentKind, ResultKind

_STRING = r"\"[^\"]*\"|'[^']*'"
_TOKEN = re.compile(rf"{_STRING}|\(:|:\)|[^\"'(:]+|.", re.DOTALL)
_STRINGS = re.compile(rf"{_STRING}|[\"']")
_NO_NAME = r"(?<![\w.\-:$@])"
_PREFIX = re.compile(r"(?<![\w.\-])([A-Za-z_][\w.-]*):(?=[A-Za-z_*])")
_VARIABLE = re.compile(r"\$\s*([A-Za-z_][\w.:-]*)")
_CALL = re.compile(_NO_NAME + r"([A-Za-z_][\w.-]*:[A-Za-z_][\w.-]*)\s*\(")
_OF_XSLT = re.compile(
    rf"{_STRING}|\(:.*?:\)|{_NO_NAME}(?:fn:)?"
    rf"(?:(current)\s*\(\s*\)|(key)\s*\(\s*(?:({_STRING})\s*,)?)",
    re.DOTALL,
)

_ANY_CALL = re.compile(rf"{_STRING}|{_NO_NAME}(?:fn:)?([\w.:-]+)\s*\(", re.DOTALL)
_ONE_VALUE = {
    ArgumentKind.STRING,
    ArgumentKind.ATOM,
    ArgumentKind.NUMBER,
    ArgumentKind.TEMPORAL,
    ArgumentKind.NODES,
}
_AT_MOST_ONE = re.compile(rf"\s*(?:{_STRING}|[\d.]+|\.\.|(?:\.\s*/\s*)?@\s*[\w.:-]+)?\s*")
_OF_ONE = {"zero-or-one", "exactly-one", "head"}  # that give one item at most
_OF_SEVERAL = {"tokenize", "string-to-codepoints", "index-of"}

BRACKETS = re.compile(r"\[[^\[\]]*\]")
_GROUPS = re.compile(r"\([^()]*\)")
_COMPARES = re.compile(r"[=<>]|\s(?:and|or)\s")
_OTHERWISE = re.compile(r"[,{]|\b(?:if|for|let|some|every|return|to)\b")
# Where an error may end less than the whole, and what may be one, but for several items.
_CONTAINS = re.compile(r"[\[!]|\b(?:not|empty|count|some|every|for|if|boolean|and|or)\b")
_FALLIBLE = re.compile(
    r"[<>+]|[=-]\s*[\d.$(]|[\w.-]:[\w.-]+\s*\(|=\s*[\w:-]+\s*\("
    r"|\b(?:eq|ne|lt|le|gt|ge|is|to|div|idiv|mod|cast|treat|error|key|number|-one|or-more)\b"
)
# Where an error is one of the whole nevertheless, but for what is compared with it; of these what
# is of one type.
_SWALLOWS = re.compile(
    r"!(?!=)|\b(?:some|every|for|let|try|replace|error|key|index-of|insert-before|remove|math)\b"
    # Of these all arguments but the first are needed, and literals are there.
    r"|\b(?:substring|subsequence|translate|string-join|round(?:-half-to-even)?)\s*\("
    r"(?!(?:[^(),]|\((?:[^()]|\([^()]*\))*\))*(?:,\s*(?:''|[\d.]+)\s*)*\))"
)
_PAIRS = re.compile(
    r"[<>]|=\s*(?:[\d.$(]|-\d|[\w:-]+\s*\()|(?<![\w.:$-])(?!(?:xs|fn|math):)[\w.-]+:[\w.-]+\s*\("
)
_OF_ONE_TYPE = re.compile(
    r"(?:(xs:\w+)\s*\([^()]*\)\s*=\s*\1|resolve-QName\s*\([^()]*\)\s*=\s*xs:QName"
    r"|xs:boolean\s*\([^()]*\)\s*=\s*(?:true|false))\s*\("
)
A_CONDITION = re.compile(
    r"[=<>]|\s(?:and|or|eq|ne|lt|le|gt|ge|is)\s"
    r"|^\s*(?:not|exists|empty|boolean|contains|starts-with|ends-with|matches|true|false|lang)\s*\("
    r"|^\s*\$_context\s*(?://?\s*(?:\.\.|@?(?:self::)?[\w.:*-]+)\s*)*$"
    r"|^\s*(?:some|every|let)\s*\$|^\s*try\s*\{"
    r"|^\s*(?:\.?/|\.//|@|\.\./)?[A-Za-z_*][\w.:*-]*(?:\s*//?\s*@?[\w.:*-]+)*\s*$"
)
_OWN_POSITION = re.compile(r"(?<![\w.:$@-])(?<![/!])(?<![/!]\s)(position|last)\s*\(\s*\)")
A_POSITION = re.compile(r"\b(?:position|last)\s*\(")

ANY_KEY = "local:key"  # the function of a key whose name is not written down
CONTEXT = "_context"  # the variable of the node that a rule is about


def tokens(text: str) -> Iterator[str]:
    """Strings, and what is between them; comments, which may be in each other, are left out."""
    depth = at = 0
    while found := _TOKEN.match(text, at):
        token, at = found[0], found.end()
        if depth and token[0] in "\"'" and len(token) > 1:
            at = found.start() + 1  # in a comment a quotation mark is a character
        elif token == "(:":
            depth += 1
        elif depth:
            depth -= token == ":)"
            if not depth:
                yield " "
        else:
            yield token
    if depth:
        raise SchematronRefused(f"a comment does not end in {text.strip()[:40]!r}")


@lru_cache(maxsize=1024)
def bare(text: str) -> str:
    """Without what is in strings and comments."""
    if "(:" not in text:
        return _STRINGS.sub("''", text)
    return "".join("''" if token[0] in "\"'" else token for token in tokens(text))


def prefixes(text: str) -> set[str]:
    return set(_PREFIX.findall(bare(text)))


def variables(text: str) -> set[str]:
    return set(_VARIABLE.findall(bare(text)))


def calls(text: str) -> set[str]:
    """Functions with a prefix that are called."""
    return set(_CALL.findall(bare(text)))


@lru_cache(maxsize=1024)
def as_xquery(text: str) -> str:
    """What XQuery writes otherwise than XPath in XSLT, without comments: ``&`` in a string begins
    a reference, ``current()`` is the variable CONTEXT, ``key("k", v)`` calls a function of the key.
    SchematronRefused for one that would end elsewhere than the text does."""
    depth = 0
    for character in bare(text):
        depth += _nesting(character)
        if depth < 0:
            break
    if depth or any(token in ('"', "'") for token in tokens(text)):
        shown = text.strip()[:40]
        raise SchematronRefused(f"brackets or quotation marks do not match in {shown!r}")

    def written(found: re.Match[str]) -> str:
        if found[1]:
            return f"${CONTEXT}"
        if found[2]:
            return f"{key_function(found[3][1:-1]) if found[3] else ANY_KEY}("
        return found[0].replace("&", "&amp;") if found[0][0] in "\"'" else found[0]

    return _OF_XSLT.sub(written, "".join(tokens(text)).strip())


def key_function(name: str) -> str:
    return f"{ANY_KEY}.{name.replace(':', '.')}"


def with_errors(text: str) -> str:
    """With an error where a function of one value has several, as in XPath: the profile language
    takes the first of them, but for ``zero-or-one(…)``."""
    written, at = "", 0
    while found := _ANY_CALL.search(text, at):
        written += text[at : found.end()]
        at = found.end()
        if (signature := FUNCTIONS.get(found[1] or "")) is not None:
            end = at - 2 + closing(text[at - 1 :])
            arguments = [with_errors(each) for _, each in split(text[at:end], (",",))]
            written += ",".join(
                f"zero-or-one({each})"
                if signature.arguments
                and signature.argument(index) in _ONE_VALUE
                and not is_at_most_one(each)
                else each
                for index, each in enumerate(arguments)
            )
            at = end
    return written + text[at:]


def is_at_most_one(argument: str) -> bool:
    """Whether there cannot be several items, as far as its text tells."""
    if _AT_MOST_ONE.fullmatch(argument) or is_truth(argument):
        return True
    argument = argument.strip()
    call = _ANY_CALL.match(argument)
    if call is None or call.end() - 1 + closing(argument[call.end() - 1 :]) != len(argument):
        return False
    signature = FUNCTIONS.get(call[1] or "")
    return call[1] in _OF_ONE or (
        signature is not None
        and signature.result is not ResultKind.ANY
        and call[1] not in _OF_SEVERAL
    )


def is_truth(expression: str) -> bool:
    """Whether it is a comparison, or several with ``and`` and ``or``."""
    top = outside(_GROUPS, outside(BRACKETS, expression))
    return bool(_COMPARES.search(top)) and not _OTHERWISE.search(top)


def outside(innermost: re.Pattern[str], text: str) -> str:
    """What is left of an expression without all that is nested so."""
    left, before = bare(text), ""
    while left != before:
        left, before = innermost.sub("", left), left
    return left


def with_guards(context: str) -> str:
    """With a predicate that may be an error beneath a ``not()`` or another bracket in ``try``: an
    error ends all of a context, and in conditions of the language only the innermost bracket."""
    written, at = "", 0
    masked = "".join(" " * len(token) if token[0] in "\"'" else token for token in tokens(context))
    while (start := masked.find("[", at)) >= 0:
        end = start + closing(context[start:])
        inside = context[start + 1 : end - 1]
        is_safe = (
            not _CONTAINS.search(bare(inside)) or not _is_fallible(inside) or _ends_all(inside)
        )
        if is_safe or inside.startswith("try {") or A_POSITION.search(bare(inside)):
            inside = with_errors(inside)
        else:
            asked = f"boolean({inside})"
            if not A_CONDITION.search(outside(BRACKETS, inside)):  # it may be a number
                asked = (
                    f"let $_value := ({inside}) return "
                    "if (count($_value) = 1) then $_value else boolean($_value)"
                )
            inside = f"try {{ {asked} }} catch * {{ false() }}"
        written += f"{context[at:start]}[{inside}]"
        at = end
    return written + context[at:]


def _is_fallible(text: str) -> bool:
    return bool(_FALLIBLE.search(bare(text))) or with_errors(text) != text


def _ends_all(text: str) -> bool:
    """Whether an error in it is one of all of it without ``try`` too."""
    if _SWALLOWS.search(bare(text)):
        return False
    at = 0
    masked = "".join(" " * len(token) if token[0] in "\"'" else token for token in tokens(text))
    while (start := masked.find("[", at)) >= 0:
        at = start + closing(text[start:])
        if _is_fallible(text[start + 1 : at - 1]):
            return False
    return not _PAIRS.search(_OF_ONE_TYPE.sub("", outside(BRACKETS, text)))


def split(text: str, separators: Sequence[str]) -> list[tuple[str, str]]:
    """(separator before it, part) at each separator outside of brackets and strings; where two
    begin at a place, the first one given."""
    parts = [["", ""]]
    depth = 0
    for token in tokens(text):
        at = 0
        whole = token[0] in "\"'"
        while at < len(token):
            found = "" if depth or whole else _begins(token, at, separators)
            if found:
                parts.append([found, ""])
            else:
                found = token if whole else token[at]
                depth += _nesting(found)
                parts[-1][1] += found
            at += len(found)
    return [(separator, part) for separator, part in parts]


def refuse_position(text: str) -> None:
    """A place among nodes that a stylesheet visits together, of which the standard says nothing."""
    if found := _OWN_POSITION.search(outside(BRACKETS, text)):
        raise SchematronRefused(
            f"{found[1]}() of the rule's node depends on how a stylesheet visits nodes; "
            "expected one in brackets, or count(preceding-sibling::*)"
        )


def closing(text: str) -> int:
    """Behind the bracket that closes the one at the beginning; the end where none does."""
    depth = at = 0
    for token in tokens(text):
        if token[0] not in "\"'":
            for offset, character in enumerate(token):
                depth += _nesting(character)
                if depth == 0:
                    return at + offset + 1
        at += len(token)
    return len(text)


def _begins(text: str, at: int, separators: Sequence[str]) -> str:
    return next((each for each in separators if text.startswith(each, at)), "")


def _nesting(character: str) -> int:
    """By how much it goes deeper into brackets."""
    return (character in "[({") - (character in "])}")
