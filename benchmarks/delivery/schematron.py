"""Schematron rules as profiles: one for each assertion, which matches a message that breaks it.

An assertion ``test`` of a rule with the context ``ram:ID | ram:Name`` becomes::

    declare namespace ram = "…"; (//ram:ID | //ram:Name)[not(test)]

A context is a match pattern, so a relative one is looked for anywhere.  What ``let`` of a rule
binds is bound within the brackets, what ``let`` of a pattern or of the schema binds before.  That
an element is only held against the first rule of a pattern that has it as context is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lxml.etree

_SCHEMATRON = "{http://purl.oclc.org/dsdl/schematron}"
_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|[^\"']+")
_PREFIX = re.compile(r"([A-Za-z_][\w.-]*):(?=[\w*])(?!:)")
_BUILT_IN = {"xs", "fn", "xml"}


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
        for rule in _of_pattern(pattern, prefixes, variables)
    ]


def _of_pattern(
    pattern: lxml.etree._Element, prefixes: dict[str, str], above: dict[str, str]
) -> Iterator[Rule]:
    variables = above | _variables(pattern)
    for rule in pattern.iter(_SCHEMATRON + "rule"):
        context = " ".join(rule.get("context").split())
        own = _variables(rule)
        for check in rule.iter(_SCHEMATRON + "assert", _SCHEMATRON + "report"):
            test = " ".join(check.get("test").split())
            asked = test if check.tag.endswith("report") else f"not({test})"
            lets = "".join(f"let ${name} := {value} " for name, value in own.items())
            path = (
                f"{_anywhere(context)}[{lets}return {asked}]"
                if lets
                else (f"{_anywhere(context)}[{asked}]")
            )
            body = _escaped(path)
            declared = "".join(
                f"declare variable ${name} := {_escaped(value)}; "
                for name, value in variables.items()
            )
            spaces = _namespaces(declared + body, prefixes)
            yield Rule(check.get("id") or "", context, test, f"{spaces}{declared}{body}")


def _variables(parent: lxml.etree._Element) -> dict[str, str]:
    lets = parent.findall(_SCHEMATRON + "let")
    return {let.get("name"): " ".join(let.get("value").split()) for let in lets}


def _anywhere(context: str) -> str:
    """A match pattern as a path from the message."""
    paths = [
        path if path.startswith("/") else "//" + path
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


def _escaped(text: str) -> str:
    """XPath as XQuery: an ampersand in a string begins a reference there."""
    return text.replace("&", "&amp;")


def _namespaces(text: str, prefixes: dict[str, str]) -> str:
    bare = "".join(token for token in _TOKEN.findall(text) if token[0] not in "\"'")
    used = set(_PREFIX.findall(bare)) & prefixes.keys() - _BUILT_IN
    return "".join(f'declare namespace {p} = "{prefixes[p]}"; ' for p in sorted(used))
