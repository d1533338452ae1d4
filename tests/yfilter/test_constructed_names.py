"""Nothing that is accepted fails later because of its text: names that computed constructors and
renamings give, and what comments and instructions say.

The oracle of what is accepted is lxml, which reads what is made of it.
"""

from __future__ import annotations

from itertools import product

import pytest
from lxml import etree

from formats.text import parse_text
from yfilter import Matcher, parse_profile
from yfilter.errors import ProfileRefused

MESSAGE = b"<o><a k='k1'>x</a></o>"
TEXTS = (
    *("a", "_", "\u0e40a", " a ", "p:a", "xml:a", "xs:a", "a.b-c"),
    *(
        "",
        " ",
        "1a",
        "a b",
        "-",
        "a:",
        ":a",
        "a:b:c",
        "p:1",
        "z:a",
        "xmlns",
        "xmlns:a",
        "xml",
        "XmL",
    ),
    *("xml:id", "a&#10;", "{}", "&lt;"),
)
FORMS = {
    "element": "element {NAME} {'x'}",
    "element by QName": "element {QName('urn:p', NAME)} {'x'}",
    "attribute": "<r>{attribute {NAME} {'x'}, $a}</r>",
    "attribute by QName": "<r>{attribute {QName('urn:p', NAME)} {'x'}, $a}</r>",
    "attribute by QName in no namespace": "<r>{attribute {QName('', NAME)} {'x'}, $a}</r>",
    "instruction": "<r>{$a, processing-instruction {NAME} {'x'}}</r>",
    "renamed element": "copy $c := $a modify rename node $c as NAME return $c",
    "renamed attribute": "copy $c := $a modify rename node $c/@k as NAME return $c",
    "renamed by QName": "copy $c := $a modify rename node $c as QName('urn:p', NAME) return $c",
}


def profile(form: str, text: str) -> str:
    result = form.replace("NAME", f'"{text}"')
    return f'declare namespace p = "urn:p"; for $a in /o/a return {result}'


@pytest.mark.parametrize(("form", "text"), list(product(FORMS, TEXTS)))
def test_a_name_is_refused_at_once_or_given(form: str, text: str) -> None:
    parse_profile(profile(FORMS[form], "good"))  # whose shape the other would have
    try:
        parsed = parse_profile(profile(FORMS[form], text))
    except ProfileRefused as refused:
        assert refused.code == "name", str(refused)
        assert refused.reason[-10:-5] in ("(XQDY", "(FOCA"), refused.reason
        assert refused.column > len('declare namespace p = "urn:p"; for $a in /o/a return ')
        return
    matcher = Matcher()
    matcher.add(parsed, "p")
    ((delivery,),) = [found.results for found in matcher.deliver(parse_text(MESSAGE))]
    etree.fromstring(delivery)


@pytest.mark.parametrize(
    ("form", "text", "fault"),
    [
        ("element", "1a", "XQDY0074"),
        ("element", "z:a", "XQDY0074"),
        ("element", "xmlns:a", "XQDY0074"),
        ("attribute", "a b", "XQDY0074"),
        ("attribute", "z:a", "XQDY0074"),
        ("attribute", "xmlns", "XQDY0044"),
        ("attribute by QName", "xml:a", "XQDY0044"),
        ("element by QName", "xml:a", "XQDY0096"),
        ("element by QName", "1a", "FOCA0002"),
        ("instruction", "p:a", "XQDY0041"),
        ("instruction", "1a", "XQDY0041"),
        ("instruction", "xml", "XQDY0064"),
        ("renamed element", "1a", "XQDY0074"),
    ],
)
def test_the_error_of_xquery_is_named(form: str, text: str, fault: str) -> None:
    with pytest.raises(ProfileRefused, match=f"\\({fault}\\)"):
        parse_profile(profile(FORMS[form], text))


def test_the_place_is_that_of_the_name() -> None:
    with pytest.raises(ProfileRefused) as caught:
        parse_profile('for $a in /o/a\nreturn element {"1a"} { $a }')
    assert (caught.value.line, caught.value.column) == (2, 17)
    assert str(caught.value).startswith(
        "line 2, column 17: '1a' can never be the name of this element (XQDY0074)"
    )


@pytest.mark.parametrize(
    ("kind", "text", "fault"),
    [
        ("comment", "a--b", "XQDY0072"),
        ("comment", "a-", "XQDY0072"),
        ("comment", "a-b", ""),
        ("comment", "", ""),
        ("processing-instruction t", "a?>b", "XQDY0026"),
        ("processing-instruction t", " a?", ""),
        ("processing-instruction {'t'}", "?>", "XQDY0026"),
        ("processing-instruction {name($a)}", "?>", "XQDY0026"),
        ("text", "a--b?>", ""),
    ],
)
def test_what_no_markup_can_say_is_refused(kind: str, text: str, fault: str) -> None:
    form = f"for $a in /o/a return <r>{{$a, {kind} {{'T'}}}}</r>"
    parse_profile(form)  # whose shape the other would have
    if fault:
        with pytest.raises(ProfileRefused, match=f"\\({fault}\\)"):
            parse_profile(form.replace("T", text))
        return
    matcher = Matcher()
    matcher.add(parse_profile(form.replace("T", text)), "p")
    ((delivery,),) = [found.results for found in matcher.deliver(parse_text(MESSAGE))]
    etree.fromstring(delivery)


@pytest.mark.parametrize("kind", ["element", "attribute", "processing-instruction"])
def test_a_uri_is_no_name(kind: str) -> None:
    """Not even where it is not known before a message comes (XPTY0004)."""
    matcher = Matcher()
    tried = f"try {{{kind} {{for $n in data($a/@k) return xs:anyURI($n)}} {{'x'}}}}"
    matcher.add(
        f"for $a in /o/a return <r>{{{tried} catch * {{local-name-from-QName($err:code)}}}}</r>"
    )
    (delivered,) = matcher.deliver(MESSAGE)
    assert delivered.results == [b"<r>XPTY0004</r>"]
