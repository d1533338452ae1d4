"""Random messages and random profiles about them, in three levels of language.

``XPATH_1``  paths that XPath 1.0 means the same by: strings with = and !=, numbers with attributes
             that hold numbers
``XPATH_2``  expressions of XPath 2.0: operators, quantifiers, ``if``, positions, more functions
``XQUERY``   whole profiles: FLWOR, ``order by``, constructors direct and computed

Few names, so that messages recurse and ``//`` is ambiguous.  The same seed gives the same texts.

Expressions are made from templates, in which a letter behind ``%`` stands for a part:

====  ==============================  ====  =========================================
%p    a path from the context         %w    characters of a string
%c    a condition                     %k    a small number
%n    a number                        %v    a variable bound here, %u it once more
%s    a string                        %C    a condition on that variable
%i    attributes ``id``; %m those     %t    paths from the context with the other
      named ``n``, %d ``d``                 operators of nodes
====  ==============================  ====  =========================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from random import Random

NAMES = ("a", "b", "c", "d")
WORDS = ("x", "y", "z", "x y", "")
NUMBERS = ("1", "2", "3", "4", "2.5", " 3 ")
NAMESPACE = "urn:u"


class Level(IntEnum):
    XPATH_1 = 1
    XPATH_2 = 2
    XQUERY = 3


def random_message(rng: Random) -> bytes:
    """A document of 1 to 40 elements."""
    budget = [rng.randint(1, 40)]
    outside = rng.choice(("", "", "<!--before-->", "<?p before?>"))
    return (outside + _element(rng, budget, 0, f' xmlns:u="{NAMESPACE}"')).encode()


def _element(rng: Random, budget: list[int], depth: int, more: str = "") -> str:
    budget[0] -= 1
    name = rng.choice(NAMES)
    if rng.random() < 0.12:
        name = f"u:{name}"
    attributes = more
    if rng.random() < 0.5:
        attributes += f' id="{rng.choice(WORDS)}"'
    if rng.random() < 0.5:
        attributes += f' n="{rng.choice(NUMBERS)}"'
    if rng.random() < 0.2:
        attributes += f' d="2026-0{rng.randint(1, 3)}-1{rng.randint(0, 3)}"'
    if rng.random() < 0.1:
        attributes += f' u:id="{rng.choice(WORDS)}"'
    parts = []
    while budget[0] > 0 and depth < 7 and rng.random() < 0.72:
        parts.append(_element(rng, budget, depth + 1))
        if rng.random() < 0.25:
            parts.append(
                rng.choice(("<!--c-->", "<?p q?>", " ", "\n  ", *WORDS[:4], "7", "&lt;&#9;"))
            )
    if not parts and rng.random() < 0.6:
        parts.append(rng.choice((*WORDS, "1", "2.0", "<![CDATA[x]]>")))
    return f"<{name}{attributes}>{''.join(parts)}</{name}>"


_AXES = (
    *("child", "descendant", "descendant-or-self", "self", "parent", "ancestor"),
    *("ancestor-or-self", "following-sibling", "preceding-sibling", "following", "preceding"),
)
_CONDITIONS = (
    *("%p", "%p", "%i = '%w'", "%i != '%w'", "%m < %k", "%m >= %k", "%m = %k", "%p = '%w'"),
    *("count(%p) = %k", "count(%p) > %k", "contains(%i, 'x')", "not(%c)", "%p = %p"),
    *("(%c or %c)", "%c and %c"),
)
_CONDITIONS_2 = (
    *("%n eq %n", "%n lt %n", "%n ge %n", "%n != %n", "%s eq %s", "%s lt %s", "%s ne %s"),
    *("some $%v in %p satisfies %C", "every $%v in %p satisfies %C", "%p = ('x', '%w')"),
    *("%m = (%k to %k)", "%d < xs:date('2026-02-11')", "%d >= xs:date('2026-02-11')"),
    *("matches(%s, 'x')", "matches(%s, '^y| ')", "matches(%s, '[xz]$')", "starts-with(%s, 'x')"),
    *("ends-with(%s, 'x')", "exists(%p)", "empty(%p)", "(%p)[1] is (%p)[1]", "(%p)[1] << (%p)[1]"),
    *("deep-equal(%p, %p)", "(%p)[1] castable as xs:integer", "(%p)[1] castable as xs:date"),
    *("%p < %p", "%p != %p", "exists(%t)", "(if (%c) then %c else %c)", "%p > %k"),
    *("node-name((%p)[1]) = QName('', 'a')", "matches(%s, '^\\w+\\s?\\p{L}*$')"),
)
_NUMBERS = (
    *("%k", "%k", "-3", "0.5", "1e1", "count(%p)", "number((%p)[1])", "string-length(%s)"),
    *("sum(%m)", "min(%m)", "max(%m)", "avg(%m)", "(%n + %n)", "(%n - %n)", "(%n * %n)"),
    *(
        "round-half-to-even(%n div %n, 4)",
        "(%n idiv %n)",
        "(%n mod %n)",
        "abs(%n)",
        "round(%n)",
        "floor(%n)",
    ),
    *("ceiling(%n)", "round-half-to-even(%n)", "(if (%c) then %n else %n)", "-(%n)"),
)
_STRINGS = (
    *("'%w'", "string((%p)[1])", "string-join(%p, '-')", "name((%p)[1])", "local-name((%p)[1])"),
    *("string(%n)", "upper-case(%s)", "normalize-space(%s)", "concat(%s, %s)"),
    *("substring-before(%s, ' ')", "substring-after(%s, 'x')", "substring(%s, %k)"),
    *("substring(%s, %k, 2)", "translate(%s, 'xy', 'A')", "replace(%s, '[xy]', '$0$0')"),
    *("string-join(for $%v in tokenize(%s, ' ') return upper-case($%u), '+')",),
    *("string-join(distinct-values(%p), '|')", "namespace-uri((%p)[1])"),
    *("string(node-name((%p)[1]))", "string(resolve-QName('u:k', (//*)[1]))"),
    *("string(local-name-from-QName(node-name((%p)[1])))", "replace(%s, '(\\w)\\s*', '$1_')"),
)
_CONTENTS = (
    *("{$%x}", "{%p}", "{%n, %s}", "text", " ", "&lt;", "{{x}}", "<!--k-->", "<?q z?>"),
    *("<![CDATA[<]]>", "{count(%p)}", "{$%x/text()}", "{%f}", "%e", "{%q}", "{$%x/@*}"),
    (
        "{typeswitch ($%x) case element(a) return %s case $%v as element()+ return count($%u) "
        "default return %n}"
    ),
    (
        "{typeswitch (%p) case $%v as attribute() | text() return string($%u)"
        " case empty-sequence() "
        "return 0 default return %p}"
    ),
    "{count(//*[@id = $%x/@id])}",
)
_COMPUTED = (
    *("element e {attribute m {%s}}", "element e {attribute m {%s}, $%x/text()}"),
    *("element e {text {%s}}", "element e {comment {'c'}, %e}", "element e {$%x/@n, %e}"),
    *("element {concat('e', local-name(($%x)[1]))} {$%x/@*, %p}", "element e {%f}"),
    *("element {node-name(($%x/self::*)[1])} {$%x/@*, %f}", "element {node-name((%p)[1])} {%s}"),
    "element {QName('urn:q', 'u:q')} {attribute {QName('urn:p', 'u:r')} {%s}, %e}",
    "element e {for $%v in $%x/@* return attribute {node-name($%u)} {%s}}",
)
_RESULTS = ("$%x/self::*", "%e", "%e", "%e", "%q", "if (%c) then %e else ()", "(%e, %q)")
_ATTRIBUTES = ("", "", " k='v'", " k='{%s}'", " k='a{$%x/@id}b'", " k='{%n}' j='{{}}'")
_KEYS = (
    *("($%x/@id)[1]", "number(($%x/@n)[1])", "count(%p)", "($%x/@id)[1] descending"),
    *("number(($%x/@n)[1]) empty greatest", "string(($%x/@d)[1]) descending"),
)
_PART = re.compile("%(.)")
_PREFIX = re.compile(r"([\w.-]+):(?!:)")


class QueryWriter:
    """Writes random expressions of one level; all choices come from ``rng``."""

    def __init__(self, rng: Random, level: Level) -> None:
        self.namespaces = {"u": NAMESPACE}
        self._rng = rng
        self._level = level
        self._names = 0
        self._words: Sequence[str] = WORDS

    def profile(self) -> str:
        """A path, or for XQUERY a whole profile."""
        if self._level < Level.XQUERY or self._rng.random() < 0.15:
            return self._declared(self._path("", 3))
        body = self._flwor("", (), 4)
        if self._rng.random() < 0.2:
            body = f"<all n='{self._rng.randint(1, 3)}'>{{{body}}}</all>"
        return self._declared(body)

    def value(self) -> str:
        """An expression whose value is a number, a string, a condition or nodes."""
        return self._declared(self._fill(self._one("%n", "%s", "%c", "%p"), "", (), 4))

    def _fill(self, template: str, at: str, variables: tuple[str, ...], depth: int) -> str:
        """``at``: where paths start, "" for the message, "." or "$v"."""
        variable = self._rng.choice(variables) if variables else ""
        bound = f"v{self._names}"
        numbers: Sequence[str] = _NUMBERS if depth > 0 else _NUMBERS[:6]
        strings: Sequence[str] = _STRINGS if depth > 0 else _STRINGS[:5]

        def part(match: re.Match[str]) -> str:
            nonlocal bound
            match match[1]:
                case "p":
                    return self._path(at, depth - 1)
                case "t":
                    operator = self._rng.choice(("|", "union", "intersect", "except"))
                    return f"({self._path(at, depth - 1)} {operator} {self._path(at, depth - 1)})"
                case "c":
                    return self._condition(at, depth - 1)
                case "C":
                    return self._condition(f"${bound}", depth - 1)
                case "n":
                    return self._fill(self._rng.choice(numbers), at, variables, depth - 1)
                case "s":
                    return self._fill(self._rng.choice(strings), at, variables, depth - 1)
                case "i":
                    return self._attribute(at, "id")
                case "m":
                    return self._attribute(at, "n")
                case "d":
                    return self._attribute(at, "d")
                case "w":
                    return self._rng.choice(self._words)
                case "k":
                    return str(self._rng.randint(0, 4))
                case "v":
                    self._names += 1
                    bound = f"v{self._names}"
                    return bound
                case "u":
                    return bound
                case "x":
                    return variable
                case "e":
                    return self._element(variables, depth - 1)
                case "q":
                    return self._fill(
                        self._rng.choice(_COMPUTED), f"${variable}", variables, depth - 1
                    )
                case _:
                    if depth <= 0:
                        return f"${variable}/@id"
                    return self._flwor(f"${variable}", variables, depth - 1)

        return _PART.sub(part, template)

    # -- paths and conditions

    def _path(self, at: str, depth: int) -> str:
        text = {"": self._one("/", "//", "//"), ".": ""}.get(at, at + self._one("/", "/", "//"))
        for place in range(self._rng.choice((1, 1, 2, 3))):
            text += self._one("/", "/", "//") if place else ""
            text += self._step(depth)
        if self._rng.random() < 0.12:
            text += self._one("/@id", "/@n", "/text()", "/@*", "/..", "/.")
        return text

    def _step(self, depth: int) -> str:
        step = self._one(*NAMES, *NAMES, "*")
        if self._rng.random() < 0.1:
            step = "*:a" if self._level > Level.XPATH_1 else self._one("u:a", "u:b", "u:*")
        if self._rng.random() < 0.12:
            step = f"{self._one(*_AXES)}::{step}"
        while depth > 0 and self._rng.random() < 0.3:
            step += f"[{self._condition('.', depth - 1)}]"
        if self._rng.random() < 0.12:
            step += self._one("[1]", "[2]", "[last()]", "[position() < 3]", "[position() = last()]")
        return step

    def _condition(self, at: str, depth: int) -> str:
        if depth <= 0:
            return self._fill(self._rng.choice(_CONDITIONS[:8]), at, (), 0)
        more: Sequence[str] = _CONDITIONS_2 if self._level > Level.XPATH_1 else ()
        return self._fill(self._rng.choice((*_CONDITIONS, *more)), at, (), depth)

    def _attribute(self, at: str, name: str) -> str:
        """Attributes of the context, or of what a path selects."""
        here = {".": "", "": "//a/"}.get(at, f"{at}/")
        path = here if self._rng.random() < 0.6 else f"{self._path(at, 0)}/"
        return self._fix(f"{path}@{name}")

    @staticmethod
    def _fix(path: str) -> str:
        """Behind an attribute or a text there is no attribute."""
        return re.sub(r"/(?:@[\w.:*-]+|text\(\))/@", "/@", path)

    # -- whole profiles

    def _flwor(self, at: str, outer: tuple[str, ...], depth: int) -> str:
        variables, clauses = list(outer), []
        for index in range(self._rng.randint(1, 3)):
            start = at if not index else f"${self._rng.choice(variables)}"
            start = start if self._rng.random() < 0.8 else ""
            self._names += 1
            name = f"v{self._names}"
            if index and self._rng.random() < 0.35:
                clauses.append(f"let ${name} := {self._nodes(start)}")
            else:
                position = f" at $p{name}" if self._rng.random() < 0.15 else ""
                clauses.append(f"for ${name}{position} in {self._nodes(start)}")
            variables.append(name)
            if self._rng.random() < 0.2:
                clauses.append(f"where {self._condition(f'${name}', 2)}")
        if len(variables) > 1 and self._rng.random() < 0.3:
            one, other = (f"${self._rng.choice(variables)}/@{self._one('id', 'n')}" for _ in "12")
            clauses.append(f"where {one} = {other}")
        if self._rng.random() < 0.5:
            clauses.append(f"where {self._condition(f'${variables[-1]}', 3)}")
        if self._rng.random() < 0.3:
            keys = [self._one(*_KEYS) for _ in range(self._rng.randint(1, 2))]
            filled = (self._fill(key, f"${variables[-1]}", tuple(variables), 1) for key in keys)
            clauses.append(f"order by {', '.join(filled)}")
        result = self._fill(self._one(*_RESULTS), f"${variables[-1]}", tuple(variables), depth)
        return f"{' '.join(clauses)} return {result}"

    def _nodes(self, at: str) -> str:
        """Elements, so that steps can follow."""
        path = re.sub(r"/(?:@[\w.:*-]+|text\(\))$", "", self._path(at, self._rng.choice((0, 0, 2))))
        return f"({path})[position() < 4]" if self._rng.random() < 0.1 else path

    def _element(self, variables: tuple[str, ...], depth: int) -> str:
        name = self._one("r", "s", "u:t")
        contents = _CONTENTS[:12] if depth <= 0 else _CONTENTS
        parts = [self._one(*_ATTRIBUTES), *self._rng.choices(contents, k=self._rng.randint(0, 3))]
        at = f"${self._rng.choice(variables)}"
        attributes, *content = [self._fill(part, at, variables, depth) for part in parts]
        return f"<{name}{attributes}>{''.join(content)}</{name}>"

    # -- small choices

    def _declared(self, body: str) -> str:
        """With a prolog of the prefixes that the body uses."""
        used = set(_PREFIX.findall(body))
        return (
            "".join(
                f'declare namespace {prefix} = "{uri}"; '
                for prefix, uri in self.namespaces.items()
                if prefix in used
            )
            + body
        )

    def _one(self, *options: str) -> str:
        return self._rng.choice(options)
