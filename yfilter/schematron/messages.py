"""What a failed assertion says: its text, its diagnostics and its place, as content of a result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yfilter.schematron.expressions import CONTEXT, as_xquery
from yfilter.schematron.schema_reader import XSLT, Element, Schema, local, refusal
from yfilter.schematron.stylesheet import literal

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


def location(subject: str | None, *, elements: bool) -> str:
    """The expression of where it is: ``/a[1]/b[2]``, and ``/@c`` or ``/text()`` behind it where not
    only ``elements`` are the rule's.  Names are as the message writes them."""
    node = f"${CONTEXT}{f'/({as_xquery(subject)})' if subject else ''}"
    path = (
        f"string-join(for $_n in {node}/ancestor-or-self::* return concat('/', name($_n), '[', "
        "1 + count($_n/preceding-sibling::*[name() = name($_n)]), ']'), '')"
    )
    if elements and not subject:
        return path
    return (
        f"concat({path}, if ({node} instance of attribute()) then concat('/@', name({node})) "
        f"else if ({node} instance of text()) then '/text()' else '')"
    )


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
            yield _value(f"name({each.get('path', '.')})")
        elif isinstance(each.tag, str):
            yield from _pieces(each)
        if each.tail:
            yield literal(_SPACES.sub(" ", each.tail))


def _value(expression: str) -> str:
    return f"{{for $_value in ${CONTEXT}/({as_xquery(expression)}) return string($_value)}}"
