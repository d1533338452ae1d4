"""Reads the text of a profile for the oracle: where each XPath expression begins and ends.

Nothing is parsed that elementpath can parse; this only cuts the text at ``for``, ``let``,
``where``, ``return``, braces and tags, and says which namespaces hold for each piece.  It takes
for granted that the profile is one that the system accepts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias


class NotUnderstoodError(ValueError):
    """The text is not a profile that the oracle can read."""


@dataclass(frozen=True)
class Selector:
    """An XPath 2.0 expression with what its names mean."""

    xpath: str
    namespaces: tuple[tuple[str, str], ...]
    default_namespace: str


@dataclass(frozen=True)
class Binding:
    """``for $variable in selector``, or ``let`` when not ``each``."""

    variable: str
    selector: Selector
    each: bool


@dataclass(frozen=True)
class Query:
    bindings: tuple[Binding, ...]
    where: Selector | None
    result: Part


@dataclass
class Template:
    """A direct element constructor; names in Clark notation."""

    tag: str = ""
    attributes: list[tuple[str, list[Part]]] = field(default_factory=list)
    content: list[Part] = field(default_factory=list)


Part: TypeAlias = "str | Selector | Query | Template"

_NAME = r"[\w][\w.\-·]*"
_DECLARE = re.compile(
    rf"declare\s+(?:namespace\s+({_NAME})\s*=|default\s+element\s+namespace)\s*"
    r"((?:\"[^\"]*\")+|(?:'[^']*')+)\s*;"
)
_STRING = re.compile(r"\"[^\"]*\"(?:\"[^\"]*\")*|'[^']*'(?:'[^']*')*")
_EXPANDED_NAME = re.compile(rf"(@?)Q\{{([^}}]*)\}}({_NAME}|\*)")
_WORD = re.compile(rf"[$@]?{_NAME}")
_CLAUSE_WORDS = frozenset(("for", "let", "where", "return"))
_OPERATORS = frozenset(("and", "or"))


class ProfileText:
    """A cursor over the text of a profile."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._at = 0
        self._prefixes: dict[str, str] = {}
        self._default = ""

    def read(self) -> Part:
        """The whole profile."""
        self._skip_space()
        while match := _DECLARE.match(self._text, self._at):
            quote = match[2][0]
            uri = " ".join(_expand(match[2][1:-1].replace(quote * 2, quote)).split())
            if match[1]:
                self._prefixes[match[1]] = uri
            else:
                self._default = uri
            self._at = match.end()
            self._skip_space()
        part = self._part()
        self._skip_space()
        if self._at != len(self._text):
            raise NotUnderstoodError(f"what is {self._text[self._at :]!r}?")
        return part

    def _part(self) -> Part:
        self._skip_space()
        if self._text.startswith("<", self._at):
            return self._template()
        if re.compile(r"(for|let)\s*\$").match(self._text, self._at):
            return self._query()
        return self._selector()

    def _query(self) -> Query:
        bindings: list[Binding] = []
        where = None
        while (word := self._take_word()) in ("for", "let"):
            bindings.append(self._binding(each=word == "for"))
            while self._text.startswith(",", self._at):
                self._at += 1
                bindings.append(self._binding(each=word == "for"))
        if word == "where":
            where = self._selector()
            word = self._take_word()
        if word != "return":
            raise NotUnderstoodError(f"'{word}' instead of 'return'")
        return Query(tuple(bindings), where, self._part())

    def _binding(self, *, each: bool) -> Binding:
        self._skip_space()
        head = re.compile(rf"\$\s*({_NAME})\s*(in\b|:=)").match(self._text, self._at)
        if head is None:
            raise NotUnderstoodError(f"no variable at {self._text[self._at :]!r}")
        self._at = head.end()
        return Binding(head[1], self._selector(), each)

    # -- expressions

    def _selector(self) -> Selector:
        """Everything up to a clause word, a comma or a closing brace outside brackets."""
        written: list[str] = []
        depth = 0
        previous = ""
        names: dict[str, str] = dict(self._prefixes)
        while self._at < len(self._text):
            if self._skip_space():
                written.append(" ")
                continue
            piece, text = self._piece(names)
            if depth == 0 and (
                piece in ("}", ",") or (piece in _CLAUSE_WORDS and _ends_operand(previous))
            ):
                break
            depth += (piece in "([") - (piece in ")]") if len(piece) == 1 else 0
            written.append(text)
            self._at += len(piece)
            previous = piece
        xpath = "".join(written).strip()
        if not xpath:
            raise NotUnderstoodError(f"no expression at {self._text[self._at :]!r}")
        return Selector(xpath, tuple(sorted(names.items())), self._default)

    def _piece(self, names: dict[str, str]) -> tuple[str, str]:
        """The next piece of an expression: as it is written, and as XPath 2.0 has it."""
        text, at = self._text, self._at
        if match := _STRING.match(text, at):
            quote = match[0][0]
            value = _expand(match[0][1:-1].replace(quote * 2, quote))
            doubled = value.replace('"', '""')
            return match[0], f'"{doubled}"'
        if match := _EXPANDED_NAME.match(text, at):
            return match[0], _as_xpath_2(match, names)
        if match := _WORD.match(text, at):
            return match[0], match[0]
        return text[at], text[at]

    # -- constructors

    def _template(self) -> Template:
        outer = dict(self._prefixes), self._default
        start = re.compile(rf"<({_NAME}(?::{_NAME})?)").match(self._text, self._at)
        if start is None:
            raise NotUnderstoodError(f"no tag at {self._text[self._at :]!r}")
        self._at = start.end()
        template = Template()
        raw = self._raw_attributes()
        for name, first, last in raw:
            if name == "xmlns" or name.startswith("xmlns:"):
                uri = " ".join(_expand(self._text[first:last]).split())
                if name == "xmlns":
                    self._default = uri
                else:
                    self._prefixes[name[6:]] = uri
        template.tag = self._clark(start[1], self._default)
        ended = self._at
        for name, first, last in raw:
            if name != "xmlns" and not name.startswith("xmlns:"):
                value = self._value(first, last)
                template.attributes.append((self._clark(name, ""), value))
        self._at = ended
        if self._text[self._at - 2 : self._at] != "/>":
            self._content(template)
        self._prefixes, self._default = outer
        return template

    def _clark(self, name: str, default: str) -> str:
        prefix, _, local = name.rpartition(":")
        if prefix == "xml":
            return f"{{http://www.w3.org/XML/1998/namespace}}{local}"
        uri = self._prefixes[prefix] if prefix else default
        return f"{{{uri}}}{local}" if uri else local

    def _raw_attributes(self) -> list[tuple[str, int, int]]:
        raw = []
        attribute = re.compile(rf"\s+({_NAME}(?::{_NAME})?)\s*=\s*([\"'])")
        while match := attribute.match(self._text, self._at):
            self._at = first = match.end()
            while True:
                character = self._text[self._at]
                if self._text.startswith(character * 2, self._at) and character in "{}" + match[2]:
                    self._at += 2
                elif character == match[2]:
                    break
                elif character == "{":
                    self._skip_enclosed()
                else:
                    self._at += 1
            raw.append((match[1], first, self._at))
            self._at += 1
        end = re.compile(r"\s*/?>").match(self._text, self._at)
        if end is None:
            raise NotUnderstoodError(f"a tag without end at {self._text[self._at :]!r}")
        self._at = end.end()
        return raw

    def _skip_enclosed(self) -> None:
        depth = 0
        while True:
            if match := _STRING.match(self._text, self._at):
                self._at = match.end()
                continue
            if self._skip_space():
                continue
            depth += {"{": 1, "}": -1}.get(self._text[self._at], 0)
            self._at += 1
            if depth == 0:
                return

    def _value(self, first: int, last: int) -> list[Part]:
        quote = self._text[last]
        parts: list[Part] = []
        literal = ""
        self._at = first
        while self._at < last:
            character = self._text[self._at]
            if self._text.startswith(character * 2, self._at) and character in "{}" + quote:
                literal += character
                self._at += 2
            elif character == "{":
                parts += [_expand(literal), self._enclosed()]
                literal = ""
            else:
                literal += " " if character in "\t\n" else character
                self._at += 1
        return [part for part in [*parts, _expand(literal)] if part != ""]

    def _enclosed(self) -> Part:
        self._at += 1
        part = self._part()
        self._skip_space()
        if self._text[self._at] != "}":
            raise NotUnderstoodError(f"no '}}' at {self._text[self._at :]!r}")
        self._at += 1
        return part

    def _content(self, template: Template) -> None:
        literal, verbatim = "", False
        while not self._text.startswith("</", self._at):
            rest = self._at
            reference = re.compile(r"&[^;]+;").match(self._text, rest)
            if self._text.startswith("<![CDATA[", rest):
                end = self._text.index("]]>", rest)
                literal, verbatim = literal + self._text[rest + 9 : end], True
                self._at = end + 3
            elif reference:
                literal, verbatim = literal + _expand(reference[0]), True
                self._at = reference.end()
            elif self._text.startswith(("{{", "}}"), rest):
                literal += self._text[rest]
                self._at += 2
            elif self._text[rest] in "{<":
                if literal.strip(" \t\n\r") or verbatim:
                    template.content.append(literal)
                literal, verbatim = "", False
                nested = self._text[rest] == "<"
                template.content.append(self._template() if nested else self._enclosed())
            else:
                literal += self._text[rest]
                self._at += 1
        if literal.strip(" \t\n\r") or verbatim:
            template.content.append(literal)
        self._at = self._text.index(">", self._at) + 1

    # -- characters

    def _take_word(self) -> str:
        self._skip_space()
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise NotUnderstoodError(f"no word at {self._text[self._at :]!r}")
        self._at = match.end()
        return match[0]

    def _skip_space(self) -> bool:
        start = self._at
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\n":
                self._at += 1
            if not self._text.startswith("(:", self._at):
                return self._at > start
            depth = 0
            for edge in re.compile(r"\(:|:\)").finditer(self._text, self._at):
                depth += 1 if edge[0] == "(:" else -1
                if depth == 0:
                    self._at = edge.end()
                    break


def _expand(text: str) -> str:
    """Character and entity references resolved."""
    return re.sub(r"&(#x?)?(\w+);", _character, text)


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[2], 16 if match[1] == "#x" else 10))
    return {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}[match[2]]


def _ends_operand(piece: str) -> bool:
    """Whether a clause word can follow; after an operator or a slash it would be a name."""
    return piece != "" and piece not in _OPERATORS and piece[-1] not in "/@:=<>([,|!"


def _as_xpath_2(match: re.Match[str], names: dict[str, str]) -> str:
    """``Q{uri}local`` with a prefix of its own, added to ``names``."""
    at, uri, local = match[1], " ".join(_expand(match[2]).split()), match[3]
    if not uri:
        if at:
            return f"@{local}" if local != "*" else "@*[namespace-uri() = '']"
        named = "" if local == "*" else f" and local-name() = '{local}'"
        return f"*[namespace-uri() = ''{named}]"
    prefix = next((prefix for prefix, known in names.items() if known == uri), f"q{len(names)}")
    names[prefix] = uri
    return f"{at}{prefix}:{local}"
