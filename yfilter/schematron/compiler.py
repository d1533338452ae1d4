"""Each assertion of a Schematron schema as a profile, which yields what SVRL says of it.

An assertion ``test`` of a rule with the context ``ram:ID | ram:Name`` becomes::

    declare namespace ram = "…"; declare variable $schema-level := …;
    for $_context in (//ram:ID | //ram:Name)[let $rule := … return not(some $_test in . satisfies
    (test))][not(an earlier rule's)]
    return <svrl:failed-assert id="…" location="{…}"><svrl:text>…{…}…</svrl:text></…>

so that the condition is the matching path's, where index and operators see it, and what equal rules
have in common they share.  A report is the same without ``not``.  The text is XQuery.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from yfilter.errors import ProfileRefused, SchematronRefused
from yfilter.language.query_parser import parse_profile
from yfilter.language.trees import is_taller
from yfilter.matcher import check_profile
from yfilter.schematron.contexts import Alternative, alternatives, excluded, path_of
from yfilter.schematron.expressions import (
    ANY_KEY,
    BRACKETS,
    CONTEXT,
    as_xquery,
    calls,
    key_function,
    outside,
    prefixes,
    refuse_position,
    variables,
)
from yfilter.schematron.schema_reader import (
    OF_XPATH_1,
    XSLT,
    Element,
    Pattern,
    Read,
    Rule,
    Schema,
    local,
    place,
    read_schema,
    refusal,
)
from yfilter.schematron.stylesheet import (
    PLAIN_PATH,
    any_key_text,
    functions_text,
    joined,
    key_text,
    literal,
    may_be_texts,
    quoted,
    value_of,
)

# -------------------------------------------------------------------------------------------------
# What a failed assertion says: its text, its diagnostics and its place, as content of a result.


_SPACES = re.compile(r"\s+")


def message(check: Element, schema: Schema) -> str:
    """``<svrl:text>`` and a reference for each diagnostic and property; SchematronRefused."""
    parts = [f"<svrl:text>{_text(check)}</svrl:text>"]
    for kind, names in (("diagnostic", "diagnostics"), ("property", "properties")):
        for name in check.get(names, "").split():
            note = schema.notes.get(name)
            if note is None:
                raise refusal(check, f"there is no {kind} {name!r}")
            tag = f"svrl:{kind}-reference"
            text = _text(note)
            parts.append(f'<{tag} {kind}="{literal(name)}"><svrl:text>{text}</svrl:text></{tag}>')
    return "".join(parts)


def location(subject: str | None) -> str:
    """The expression of where it is."""
    return f"svrl:location(${CONTEXT}{f' ! ({as_xquery(subject)})' if subject else ''})"


def _text(element: Element) -> str:
    """White space is one space, and none at the ends."""
    pieces = list(_pieces(element))
    for at in (0, -1):
        if pieces and not pieces[at].startswith("{") and pieces[at].isspace():
            del pieces[at]
    if pieces:
        pieces[0] = (
            pieces[0].lstrip() if pieces[0][0] != "{" or pieces[0][:2] == "{{" else pieces[0]
        )
        pieces[-1] = pieces[-1].rstrip()
    return "".join("&#32;" if piece == " " else piece for piece in pieces)


def _pieces(element: Element) -> Iterator[str]:
    if element.text:
        yield literal(_SPACES.sub(" ", element.text))
    for each in element:
        name = local(each)
        if name == "value-of" or each.tag == f"{{{XSLT}}}value-of":
            yield _value(each.get("select", ""))
        elif name == "name":
            yield _name(each.get("path", "."))
        elif isinstance(each.tag, str):
            yield from _pieces(each)
        if each.tail:
            yield literal(_SPACES.sub(" ", each.tail))


def _name(path: str) -> str:
    """That of a node, or the name that the path computes."""
    node = f"({_of_context(as_xquery(path))})[1]"
    return (
        f"{{for $_value in {node} return typeswitch ($_value) case $_node as node() return "
        "name($_node) default return string($_value)}"
    )


def _value(expression: str) -> str:
    """As ``xsl:value-of`` joins a sequence: texts that follow each other are one."""
    refuse_position(expression)
    asked = as_xquery(expression)
    value = _of_context(asked)
    if may_be_texts(asked):
        return f"{{{joined(value, quoted(' '))}}}"
    return f"{{for $_value in {value} return string($_value)}}"


def _told(value: str) -> str:
    """A variable of a text: if it is an error nothing of it is told, but that the test fails."""
    if PLAIN_PATH.fullmatch(value):
        return _of_context(value)
    return f"for $_one in ${CONTEXT} return $_one ! ({value})"


def _of_context(expression: str) -> str:
    """A sequence in its own order, with all that is in it; of a plain path both ways say the same,
    and a step needs no objects."""
    return f"${CONTEXT}{'/' if PLAIN_PATH.fullmatch(expression) else ' ! '}({expression})"


# -------------------------------------------------------------------------------------------------


SVRL = "http://purl.oclc.org/dsdl/svrl"
_TALL = 48  # expressions in each other, well within what Python calls in each other
_KNOWN = {"fn", "xs", "xml", "local"}
_NOT_RELATIVE = re.compile(
    r"\$\s*[\w.:-]+|(?:true|false)\s*\(\s*\)|[\w.:-]+\s*\((?!\s*\))|'[^']*'|\d[\w.]*"
    r"|\b(?:castable\s+as|cast\s+as|treat\s+as|instance\s+of)\s+[\w:]+[?*+]?"
    r"|/\s*(?:[a-z-]+::)?@?[\w.:*-]+|(?<![\w$/@:-])(?:if|then|else|for|in|return|let|some|every|satisfies"
    r"|and|or|to|div|idiv|mod|eq|ne|lt|le|gt|ge|is|union|intersect|except)(?![\w:-])"
)


@dataclass(frozen=True, slots=True)
class RuleProfile:
    """The profile of an assertion.  ``key`` names it within its rule set and is the same as long as
    its id is, or its place; ``context`` and ``test`` as written."""

    key: str
    id: str
    role: str
    file: str
    line: int
    context: str
    test: str
    text: str


class RefusedRule(SchematronRefused):
    """An assertion that is not in the language: why, and what was expected."""

    def __init__(self, key: str, file: str, line: int, reason: str) -> None:
        super().__init__(f"{key}: {reason}", file, line)
        self.key = key


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All assertions and reports of a schema, in order."""

    profiles: tuple[RuleProfile, ...]
    refused: tuple[RefusedRule, ...]

    @property
    def total(self) -> int:
        return len(self.profiles) + len(self.refused)


def no_other_files(name: str) -> bytes:
    raise SchematronRefused(f"{name} is another file; expected all in one")


def compile_schematron(
    text: bytes,
    *,
    file: str = "",
    phase: str | None = None,
    read: Read = no_other_files,
    documents: Mapping[str, bytes] | None = None,
) -> RuleSet:
    """The profiles of the schema in ``text``; ``file`` is its name, ``phase`` which of its phases
    ("#ALL": every pattern; None: its default phase, or all), ``read`` gives what it includes,
    ``documents`` are those that its expressions may read, by their names seen from the schema's.

    SchematronRefused where it is no schema, or something that it includes is not there.
    """
    schema = read_schema(text, file, phase, read, documents or {})
    profiles: list[RuleProfile] = []
    refused: list[RefusedRule] = []
    for pattern, keys in zip(schema.patterns, keys_of(schema), strict=True):
        writer = _Writer(schema, pattern)
        for (rule, context), of_rule in zip(writer.contexts(), keys, strict=True):
            for check, key in zip(rule.checks, of_rule, strict=True):
                name = check.get("id") or key
                where = place(check)
                try:
                    profile = _checked(writer.profile(rule, context, check, name))
                except SchematronRefused as refusal:
                    refused.append(RefusedRule(key, *where, refusal.reason))
                except ProfileRefused as refusal:
                    refused.append(RefusedRule(key, *where, _reason(refusal)))
                else:
                    role = check.get("role") or check.get("flag") or ""
                    test = check.get("test", "").strip()
                    profiles.append(
                        RuleProfile(key, name, role, *where, rule.context, test, profile)
                    )
    return RuleSet(tuple(profiles), tuple(refused))


def _checked(profile: str) -> str:
    """A profile in which a path that can never select anything is empty; ProfileRefused.

    PERF: of all that the registration service tries, only a tall tree can be refused that is read.
    """
    try:
        parsed = parse_profile(profile)
    except ProfileRefused as refused:
        if refused.code != "idle-path":
            raise
        profile = f'declare option svrl:idle-paths "empty"; {profile}'
        parsed = parse_profile(profile)
    if is_taller(parsed.body, _TALL):
        check_profile(profile)
    return profile


def keys_of(schema: Schema) -> list[list[list[str]]]:
    """By pattern and rule: the id of an assertion, else its place; numbered if it comes again."""
    seen = Counter[str]()

    def key(name: str) -> str:
        name = re.sub(r"[^\w./-]+", "-", name)
        seen[name] += 1
        return name if seen[name] == 1 else f"{name}.{seen[name]}"

    return [
        [
            [
                key(check.get("id") or f"{pattern.id or pattern_at}/{rule_at}/{check_at}")
                for check_at, check in enumerate(rule.checks, 1)
            ]
            for rule_at, rule in enumerate(pattern.rules, 1)
        ]
        for pattern_at, pattern in enumerate(schema.patterns, 1)
    ]


class Context(NamedTuple):
    """The path of a rule's nodes, and brackets that leave out earlier rules'."""

    path: str
    excluded: str


class _Writer:
    """Writes the profiles of a pattern."""

    def __init__(self, schema: Schema, pattern: Pattern) -> None:
        self._schema = schema
        self._pattern = pattern
        others = [let for each in schema.patterns for let in each.lets]  # XSLT has one scope
        lets = (*schema.globals, *others, *schema.globals, *pattern.lets)  # declared in that order
        self._seen = (*schema.globals, *pattern.lets)
        self._lets = {each.get("name", ""): each for each in lets}
        self._keys = {key_function(name): name for name in schema.keys}

    def contexts(self) -> Iterator[tuple[Rule, Context]]:
        """The rules, each with the nodes that are its, and no earlier rule's."""
        earlier: list[Alternative] = []
        for rule in self._pattern.rules:
            try:
                context = alternatives(as_xquery(rule.context))
            except SchematronRefused as refused:
                raise refusal(rule.element, refused.reason) from None
            yield rule, Context(path_of(context), excluded(context, earlier))
            earlier += context

    def profile(self, rule: Rule, context: Context, check: Element, name: str) -> str:
        """SchematronRefused, or a text that may still be refused."""
        if not (test := check.get("test", "").strip()):
            raise refusal(check, "an assertion without a test")
        is_report = local(check) == "report"
        asked = as_xquery(test)
        refuse_position(asked)
        own = {each.get("name", ""): each for each in rule.lets}
        _refuse_doubles(rule.lets, check)
        said = message(check, self._schema)
        bound = self._bound(own, asked, str)
        condition = _shown(f"{bound}return ({asked})" if bound else asked)
        if not is_report:
            condition = f"not({condition})"
        if f"${CONTEXT}" in condition:
            condition = f"let ${CONTEXT} := . return {condition}"
        tag = "successful-report" if is_report else "failed-assert"
        attributes = "".join(
            f' {key}="{literal(value)}"'
            for key in ("role", "flag", "see")
            if (value := check.get(key) or rule.element.get(key))
        )
        subject = check.get("subject") or rule.element.get("subject")
        body = (
            f"for ${CONTEXT} in {context.path}[{condition}]{context.excluded} "
            f"{self._bound(own, said, _told)}"
            f'return <svrl:{tag} xmlns:svrl="{SVRL}" id="{literal(name)}"{attributes}'
            f' location="{{{location(subject)}}}">{said}</svrl:{tag}>'
        )
        return self._prolog(check, body) + body

    def _bound(self, lets: Mapping[str, Element], text: str, form: Callable[[str], str]) -> str:
        """Those variables of the rule that the text needs, by way of others too."""
        needed = _closure(text, lets, lambda name: value_of(lets[name]), variables)
        for value in needed.values():
            refuse_position(value)
        return "".join(f"let ${name} := {form(value)} " for name, value in needed.items())

    def _prolog(self, check: Element, body: str) -> str:
        """What the body needs, declared in front."""
        functions = self._schema.functions

        def written(name: str) -> str:
            if name in self._keys:
                key = self._keys[name]
                is_xslt_1 = self._schema.binding in OF_XPATH_1
                return key_text(key, self._schema.keys[key], is_xslt_1=is_xslt_1)
            if name == ANY_KEY:
                return any_key_text(self._schema.keys)
            if name in functions:
                return functions_text(functions[name])
            return value_of(self._lets[name])

        named = {**self._lets, **functions, **self._keys, ANY_KEY: None}
        needed = _closure(body, named, written, lambda text: variables(text) | calls(text))
        for name in calls(body + "".join(needed.values())):
            if name.startswith(f"{ANY_KEY}.") and name not in self._keys:
                raise refusal(check, f"there is no key {name.removeprefix(f'{ANY_KEY}.')!r}")
        _refuse_doubles((each for each in self._seen if each.get("name") in needed), check)
        declared = "".join(
            text
            if name not in self._lets
            else f"declare variable ${name} := {_from_message(text)}; "
            for name, text in needed.items()
        )
        known = check.nsmap | dict(self._schema.namespaces)
        spaces = "".join(
            f'declare namespace {prefix} = "{literal(known[prefix])}"; '
            for prefix in sorted(prefixes(declared + body) - _KNOWN)
            if prefix in known
        )
        return spaces + declared


def _refuse_doubles(lets: Iterable[Element], check: Element) -> None:
    """Of two variables of one scope nobody could say which is meant."""
    places: dict[str, int] = {}
    for each in filter(local, lets):  # variables of XSLT may be those of an import
        name, line = each.get("name", ""), place(each)[1]
        if name in places:
            lines = f"in line {places[name]} and in line {line}"
            raise refusal(check, f"there are two variables ${name}, {lines}; expected one")
        places[name] = line


def _shown(test: str) -> str:
    """Whether a test holds; what is an error does not, nor is it one of the whole, as it is in a
    quantifier."""
    return f"(some $_test in . satisfies ({test}))"


def _closure(
    text: str,
    named: Mapping[str, object],
    written: Callable[[str], str],
    names: Callable[[str], Iterable[str]],
) -> dict[str, str]:
    """What of ``named`` the text needs, by way of others too, as it is ``written``; in order."""
    found: dict[str, str] = {}
    texts = [text]
    while texts:
        for name in names(texts.pop()):
            if name in named and name not in found:
                found[name] = written(name)
                texts.append(found[name])
    return {name: found[name] for name in named if name in found}


def _from_message(value: str) -> str:
    """A value that may be relative, where the message is what it is relative to."""
    if f"${CONTEXT}" in value:  # current() is the message
        value = f"let ${CONTEXT} := . return ({value})"
    left = _NOT_RELATIVE.sub(" ", outside(BRACKETS, value))
    return f"(/) ! ({value})" if re.search(r"[\w.*]", left) else value


def _reason(refused: ProfileRefused) -> str:
    """Why, with what stands there, as the text of the profile is not the user's."""
    line = refused.source_line
    there = line[max(0, refused.column - 1) :][:40] if line else ""
    expected = f"; expected {refused.expected}" if refused.expected else ""
    return f"{refused.reason}{expected} [{refused.code}], at {there!r}"
