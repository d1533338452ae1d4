"""A Schematron schema as an XSLT stylesheet, written as the standard says, for Saxon to run.

A pattern is a mode that visits every node, a rule a template with its context as match pattern, the
earlier the higher its priority; so which rule a node is, is XSLT's to find.  What it says is a line
for each failed assertion: key, place and text.  Tests and contexts stand as in the schema; only
what is abstract or included is read by ``yfilter.schematron``.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from copy import deepcopy

import lxml.etree

from yfilter.schematron.compiler import keys_of
from yfilter.schematron.schema_reader import XSLT, Element, Rule, Schema, local

_XSL = f"{{{XSLT}}}"
_PATH = """<r:r xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:r="urn:rules">
<xsl:value-of select="string-join(for $n in ancestor-or-self::* return concat('/', name($n), '[',
 1 + count($n/preceding-sibling::*[name() = name($n)]), ']'), ''), if (. instance of attribute())
 then concat('/@', name(.)) else if (. instance of text()) then concat('/text()', if
 (count(../text()) = 1) then '' else concat('[', 1 + count(preceding-sibling::text()), ']'))
 else if (. instance of comment()) then concat('/comment()[',
 1 + count(preceding-sibling::comment()), ']')
 else if (. instance of processing-instruction()) then concat('/processing-instruction()[',
 1 + count(preceding-sibling::processing-instruction()), ']') else ''" separator=""/>
</r:r>"""


def stylesheet(schema: Schema, accepted: Container[str]) -> bytes:
    """With the assertions that are ``accepted``, by their keys."""
    keys = keys_of(schema)
    spaces = {"xsl": XSLT, "xs": "http://www.w3.org/2001/XMLSchema", **schema.namespaces}
    root = lxml.etree.Element(f"{_XSL}stylesheet", nsmap={k: v for k, v in spaces.items() if k})
    root.set("version", "3.0")
    root.append(lxml.etree.Element(f"{_XSL}output", method="xml"))
    for named in (*schema.keys.values(), *schema.functions.values()):
        root.extend(map(deepcopy, named))
    root.extend(_variable(each) for each in schema.globals)
    main = lxml.etree.SubElement(root, f"{_XSL}template", match="/")
    result = lxml.etree.SubElement(main, "fired")
    names = {each.get("name") for each in schema.globals}
    for number, (pattern, of_pattern) in enumerate(zip(schema.patterns, keys, strict=True)):
        mode = f"M{number}"
        root.extend(_variable(each) for each in pattern.lets if each.get("name") not in names)
        names |= {each.get("name") for each in pattern.lets}
        lxml.etree.SubElement(result, f"{_XSL}apply-templates", select="/", mode=mode)
        for at, (rule, of_rule) in enumerate(zip(pattern.rules, of_pattern, strict=True)):
            template = lxml.etree.SubElement(root, f"{_XSL}template", match=rule.context, mode=mode)
            template.set("priority", str(len(of_pattern) - at))
            for check, key in zip(rule.checks, of_rule, strict=True):
                if key in accepted:
                    template.append(_check(rule, check, key))
            lxml.etree.SubElement(template, f"{_XSL}apply-templates", select="@*|node()", mode=mode)
        rest = lxml.etree.SubElement(root, f"{_XSL}template", match="node()|@*|/", mode=mode)
        rest.set("priority", "-9")
        lxml.etree.SubElement(rest, f"{_XSL}apply-templates", select="@*|node()", mode=mode)
    return bytes(lxml.etree.tostring(root))


def _spaces(element: Element) -> dict[str, str]:
    return {prefix: uri for prefix, uri in element.nsmap.items() if prefix}


def _variable(let: Element) -> Element:
    made = lxml.etree.Element(
        f"{_XSL}variable", name=let.get("name"), nsmap={k: v for k, v in let.nsmap.items() if k}
    )
    value = let.get("value", let.get("select"))
    if value is not None:
        made.set("select", value)
    else:
        made.text = let.text
        made.extend(deepcopy(each) for each in let)
    return made


def _check(rule: Rule, check: Element, key: str) -> Element:
    """Where the test is an error, that is said.  (Not as ``not(test)``, of which Saxon makes
    ``x < 0`` for ``not(x >= 0)``, NaN or not.)"""
    made = lxml.etree.Element(f"{_XSL}try", nsmap=_spaces(check))
    made.extend(_variable(each) for each in rule.lets)
    choose = lxml.etree.SubElement(made, f"{_XSL}choose")
    holds = lxml.etree.SubElement(choose, f"{_XSL}when", test=check.get("test", ""))
    fires = holds if local(check) == "report" else lxml.etree.SubElement(choose, f"{_XSL}otherwise")
    row = _row(fires, "f", key)
    row.extend(_text(check))
    caught = lxml.etree.SubElement(made, f"{_XSL}catch", errors="*")
    _row(caught, "error", key)
    return made


def _row(parent: Element, tag: str, key: str) -> Element:
    row = lxml.etree.SubElement(parent, tag, key=key)
    where = lxml.etree.SubElement(row, f"{_XSL}attribute", name="at")
    where.extend(list(lxml.etree.fromstring(_PATH)))
    return row


def _text(element: Element) -> Iterator[Element]:
    yield _constant(element.text)
    for each in element:
        if local(each) == "value-of":
            made = lxml.etree.Element(f"{_XSL}value-of", select=each.get("select", ""))
            yield made
        elif local(each) == "name":
            yield lxml.etree.Element(f"{_XSL}value-of", select=f"name({each.get('path', '.')})")
        elif isinstance(each.tag, str):
            yield from _text(each)
        yield _constant(each.tail)


def _constant(text: str | None) -> Element:
    made = lxml.etree.Element(f"{_XSL}text")
    made.text = text
    return made
