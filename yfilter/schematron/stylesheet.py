"""What XSLT a rule set may bring along, in the words of the profile language.

A ``xsl:function`` whose body is variables, conditions and sequences becomes a declared function, a
``xsl:key`` a function too: ``key("k", $v)`` is what is looked for with ``//match[use = $v]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import lxml.etree

from yfilter.schematron.contexts import alternatives, path_of
from yfilter.schematron.expressions import as_xquery, key_function
from yfilter.schematron.schema_reader import XSLT, Element, refusal

_ATOMIC = re.compile(r"(xs:(?:string|boolean|integer|decimal|double|date|dateTime|time))\??")
_SPACE = " \t\r\n"
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "{": "{{", "}": "}}"}
)


def function_text(function: Element) -> str:
    """``declare function …;``; SchematronRefused where its body is more than an expression."""
    children = [each for each in function if isinstance(each.tag, str)]
    parameters = [each for each in children if _is(each, "param")]
    named = ", ".join(f"${each.get('name', '')}{_type(each)}" for each in parameters)
    body = _body([each for each in children if each not in parameters], function)
    return f"declare function {function.get('name', '')}({named}){_type(function)} {{ {body} }}; "


def key_text(name: str, keys: Iterable[Element]) -> str:
    paths = [
        f"{path_of(alternatives(as_xquery(key.get('match', ''))))}"
        f"[({as_xquery(key.get('use', '.'))}) = $value]"
        for key in keys
    ]
    return f"declare function {key_function(name)}($value) {{ {' | '.join(paths)} }}; "


def value_of(element: Element) -> str:
    """A variable's expression, which its type converts as an argument's does."""
    declared = _ATOMIC.fullmatch(element.get("as", ""))
    value = _value_of(element)
    return f"data({value}) cast as {declared[1]}?" if declared else value


def _value_of(element: Element) -> str:
    """Its attribute, or what is in it."""
    value = element.get("value", element.get("select"))
    if value is not None:
        return as_xquery(value)
    if not len(element):
        return quoted(element.text or "")
    if any(_is(each, None) for each in element):
        return f"({_body(list(element), element)})"
    return f"<_>{_content(element)}</_>"


def quoted(text: str) -> str:
    return '"' + text.replace("&", "&amp;").replace('"', '""') + '"'


def literal(text: str) -> str:
    """As text within a constructor."""
    return text.translate(_ESCAPES)


def _body(children: Sequence[Element], parent: Element) -> str:
    parts: list[str] = []
    for at, each in enumerate(children):
        if _is(each, "variable"):
            value = f"let ${each.get('name', '')} := {value_of(each)}"
            parts.append(f"{value} return ({_body(children[at + 1 :], parent)})")
            break
        parts.append(_instruction(each))
    if len(children) == 0 and (parent.text or "").strip(_SPACE):
        parts.append(f"text {{ {quoted(parent.text or '')} }}")
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _instruction(element: Element) -> str:
    select = as_xquery(element.get("select", ""))
    if _is(element, "sequence") or _is(element, "copy-of"):
        return f"({select})"
    if _is(element, "value-of"):
        return f"text {{ {select} }}"
    if _is(element, "text"):
        return f"text {{ {quoted(element.text or '')} }}"
    if _is(element, "if"):
        return _if(element, "()")
    if _is(element, "choose"):
        written = "()"
        for each in reversed(element):
            written = _body(each, each) if _is(each, "otherwise") else _if(each, written)
        return written
    raise refusal(
        element,
        f"{lxml.etree.QName(element).localname} in a function; expected sequence, value-of, "
        "variable, choose or if",
    )


def _if(element: Element, otherwise: str) -> str:
    then = _body(list(element), element)
    return f"(if ({as_xquery(element.get('test', ''))}) then ({then}) else {otherwise})"


def _content(element: Element) -> str:
    """Elements as they stand, each with its namespace."""
    parts = [literal(element.text or "")]
    for each in element:
        name = lxml.etree.QName(each)
        attributes = "".join(
            f' {key}="{literal(value)}"' for key, value in each.attrib.items() if key[0] != "{"
        )
        space = f' xmlns="{literal(name.namespace or "")}"'
        parts.append(f"<{name.localname}{space}{attributes}>{_content(each)}</{name.localname}>")
        parts.append(literal(each.tail or ""))
    return "".join(parts)


def _type(element: Element) -> str:
    declared = element.get("as")
    return f" as {declared}" if declared else ""


def _is(element: Element, name: str | None) -> bool:
    """Whether this is an element of XSLT, of that name."""
    found = lxml.etree.QName(element)
    return found.namespace == XSLT and name in (None, found.localname)
