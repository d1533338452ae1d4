"""XPath of a rule set, taken apart as far as its translation needs: strings, brackets, names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from yfilter.language.functions import FUNCTIONS, ArgumentKind, ResultKind
from yfilter.schematron.errors import SchematronRefused

_STRING = r"\"[^\"]*\"|'[^']*'"
_TOKEN = re.compile(rf"{_STRING}|\(:.*?:\)|[^\"'(]+|.", re.DOTALL)
_NO_NAME = r"(?<![\w.\-:$@])"
_PREFIX = re.compile(r"(?<![\w.\-])([A-Za-z_][\w.-]*):(?=[A-Za-z_*])")
_VARIABLE = re.compile(r"\$\s*([A-Za-z_][\w.:-]*)")
_CALL = re.compile(_NO_NAME + r"([A-Za-z_][\w.-]*:[A-Za-z_][\w.-]*)\s*\(")
_OF_XSLT = re.compile(
    rf"{_STRING}|\(:.*?:\)|{_NO_NAME}(?:(current)\s*\(\s*\)|key\s*\(\s*({_STRING})\s*,)", re.DOTALL
)

_ANY_CALL = re.compile(rf"{_STRING}|\(:.*?:\)|{_NO_NAME}(?:fn:)?([\w.:-]+)\s*\(", re.DOTALL)
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

CONTEXT = "_context"  # the variable of the node that a rule is about


def tokens(text: str) -> Iterator[str]:
    """Strings, comments and what is between them."""
    return (found.group() for found in _TOKEN.finditer(text))


def bare(text: str) -> str:
    """Without what is in strings and comments."""
    return "".join(
        "''" if token[0] in "\"'" else " " if token.startswith("(:") else token
        for token in tokens(text)
    )


def prefixes(text: str) -> set[str]:
    return set(_PREFIX.findall(bare(text)))


def variables(text: str) -> set[str]:
    return set(_VARIABLE.findall(bare(text)))


def calls(text: str) -> set[str]:
    """Functions with a prefix that are called."""
    return set(_CALL.findall(bare(text)))


def as_xquery(text: str) -> str:
    """What XQuery writes otherwise than XPath in XSLT: ``&`` in a string begins a reference,
    ``current()`` is the variable CONTEXT, ``key("k", v)`` calls a function of the key.
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
            return f"{key_function(found[2][1:-1])}("
        return found[0].replace("&", "&amp;") if found[0][0] in "\"'" else found[0]

    return _OF_XSLT.sub(written, text.strip())


def key_function(name: str) -> str:
    return f"local:key.{name.replace(':', '.')}"


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
                and not _is_at_most_one(each)
                else each
                for index, each in enumerate(arguments)
            )
            at = end
    return written + text[at:]


def _is_at_most_one(argument: str) -> bool:
    """Whether there cannot be several items, as far as its text tells."""
    if _AT_MOST_ONE.fullmatch(argument):
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


def split(text: str, separators: Sequence[str]) -> list[tuple[str, str]]:
    """(separator before it, part) at each separator outside of brackets and strings; where two
    begin at a place, the first one given."""
    parts = [["", ""]]
    depth = 0
    for token in tokens(text):
        at = 0
        whole = _is_whole(token)
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


def closing(text: str) -> int:
    """Behind the bracket that closes the one at the beginning; the end where none does."""
    depth = at = 0
    for token in tokens(text):
        if not _is_whole(token):
            for offset, character in enumerate(token):
                depth += _nesting(character)
                if depth == 0:
                    return at + offset + 1
        at += len(token)
    return len(text)


def _begins(text: str, at: int, separators: Sequence[str]) -> str:
    return next((each for each in separators if text.startswith(each, at)), "")


def _is_whole(token: str) -> bool:
    """Whether it is a string or a comment."""
    return token[0] in "\"'" or token.startswith("(:")


def _nesting(character: str) -> int:
    """By how much it goes deeper into brackets."""
    return (character in "[({") - (character in "])}")
