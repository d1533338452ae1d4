"""Schematron rules as profiles: one for each assertion, which matches a message that breaks it.

An assertion ``test`` of a rule with the context ``ram:ID | ram:Name`` becomes::

    declare namespace ram = "…"; (//ram:ID | //ram:Name)[not(test)]

A context is a match pattern, so a relative one is looked for anywhere.  What ``let`` of a rule
binds is bound within the brackets, what ``let`` of a pattern or of the schema binds before, where
it is used.  Left out are functions of a stylesheet's own, and that an element is only held against
the first rule of a pattern that has it as context.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import lxml.etree

_SCHEMATRON = "{http://purl.oclc.org/dsdl/schematron}"
_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|[^\"']+")
_PREFIX = re.compile(r"([A-Za-z_][\w.-]*):(?=[\w*])")
_VARIABLE = re.compile(r"\$([A-Za-z_][\w.-]*)")
_FROM_CONTEXT = re.compile(r"^[^/].*[A-Za-z.*]|\s")


@dataclass(frozen=True, slots=True)
class Rule:
    """One assertion; ``name`` is its id, ``profile`` matches where it does not hold."""

    name: str
    context: str
    test: str
    profile: str


def read_rules(path: Path) -> list[Rule]:
    """The assertions and reports of a preprocessed schema, in order."""
    schema = lxml.etree.parse(path).getroot()
    prefixes = {ns.get("prefix"): ns.get("uri") for ns in schema.iter(_SCHEMATRON + "ns")}
    variables = _variables(schema)
    return [
        rule
        for pattern in schema.iter(_SCHEMATRON + "pattern")
        for rule in _of_pattern(pattern, prefixes, variables | _variables(pattern))
    ]


def _of_pattern(
    pattern: lxml.etree._Element, prefixes: Mapping[str, str], variables: Mapping[str, str]
) -> Iterator[Rule]:
    for rule in pattern.iter(_SCHEMATRON + "rule"):
        context = rule.get("context").strip()
        own = _variables(rule)
        for check in rule.iter(_SCHEMATRON + "assert", _SCHEMATRON + "report"):
            test = check.get("test").strip()
            asked = test if check.tag.endswith("report") else f"not({test})"
            if lets := _used(own, asked):
                bound = " ".join(f"let ${name} := {value}" for name, value in lets.items())
                asked = f"{bound} return {asked}"
            body = f"{_anywhere(context)}[{asked}]"
            declared = "".join(
                f"declare variable ${name} := {_from_message(value)}; "
                for name, value in _used(variables, body).items()
            )
            text = _namespaces(declared + body, prefixes) + declared + body
            # An ampersand in a string begins a reference in XQuery, not in XPath.
            profile = text.replace("&", "&amp;")
            yield Rule(check.get("id") or "", context, test, profile)


def _variables(parent: lxml.etree._Element) -> dict[str, str]:
    lets = parent.findall(_SCHEMATRON + "let")
    return {let.get("name"): let.get("value").strip() for let in lets}


def _used(variables: Mapping[str, str], text: str) -> dict[str, str]:
    """Those that the text needs, by way of others too, in their order."""
    needed: set[str] = set()
    texts = [text]
    while texts:
        for name in _VARIABLE.findall(_bare(texts.pop())):
            if name in variables and name not in needed:
                needed.add(name)
                texts.append(variables[name])
    return {name: value for name, value in variables.items() if name in needed}


def _from_message(value: str) -> str:
    """A value that may be relative, where the message is what it is relative to."""
    return f"/({value})" if _FROM_CONTEXT.search(_bare(value)) else value


def _anywhere(context: str) -> str:
    """A match pattern as a path from the message."""
    paths = [
        path if path.startswith(("/", "(")) else "//" + path
        for path in map(str.strip, _alternatives(context))
    ]
    return paths[0] if len(paths) == 1 else f"({' | '.join(paths)})"


def _alternatives(context: str) -> list[str]:
    """The context at each ``|`` that stands outside of brackets and strings."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(context):
        if token[0] in "\"'":
            parts[-1] += token
            continue
        for character in token:
            depth += (character in "[(") - (character in "])")
            if character == "|" and depth == 0:
                parts.append("")
            else:
                parts[-1] += character
    return parts


def _namespaces(text: str, prefixes: Mapping[str, str]) -> str:
    used = prefixes.keys() & set(_PREFIX.findall(_bare(text))) - {"xs", "fn", "xml"}
    return "".join(f'declare namespace {p} = "{prefixes[p]}"; ' for p in sorted(used))


def _bare(text: str) -> str:
    """Without strings."""
    return "".join(token if token[0] not in "\"'" else "''" for token in _TOKEN.findall(text))
