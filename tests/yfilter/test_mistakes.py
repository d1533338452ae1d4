"""What people write by mistake, and what they are told: the place, and what to write instead."""

from __future__ import annotations

import pytest

from yfilter import ProfileRefused, parse_profile

MISTAKES = (
    ("//item[@price => 20]", 15, "'=>' is not an operator; expected '>='"),
    ("//item[@price == 20]", 15, "expected '='"),
    ("//item[@price <> 20]", 15, "expected '!='"),
    ("//item[a && b]", 10, "expected 'and'"),
    ("//item[a OR b]", 10, "expected 'or'"),
    ("//item[contian(title, 'x')]", 8, "expected contains()"),
    ("//item[toUpper(title) = 'X']", 8, "expected upper-case()"),
    ("//item[trim(title) = 'X']", 8, "expected normalize-space()"),
    ("//item[zzz(title)]", 8, "expected a function of the table in docs/profiles.md"),
    ("//item[ends_with(a, 'x')]", 8, "expected ends-with()"),
    ("//item[xs:dat(@d) < 1]", 8, "expected xs:date()"),
    ("//item[@d < date('2026-01-01')]", 13, "expected xs:date()"),
    (
        "//item[@d > current-date()]",
        13,
        'expected a date as xs:date("…"), or a date of the message',
    ),
    ("//item[not @x]", 12, "expected not(…), with parentheses"),
    ("//item[@a like 'x%']", 11, "expected contains(…), starts-with(…) or matches(…)"),
    ("//item[@a in ('x','y')]", 11, "expected '=', which holds for any of several"),
    ("//item[@a = 'it's']", 17, "expected the quotation mark doubled inside the string"),
    ("//item[@n = “5”]", 13, "expected a straight quotation mark"),
    ("//item[price < '20]", 16, "this string is not closed; expected a closing '"),
    ("//item[price < 20", 18, "unexpected the end of the profile; expected ']' or an operator"),
    ("//item[a = 1]]", 14, "unexpected ']'; expected the end of the profile"),
    ("//item[5 < price < 10]", 18, "expected 'and' between two comparisons"),
    ("//item[1 = 'x']", 8, "expected number(…) around the string"),
    ("//item[@price < 20 and]", 23, "expected a path, a literal or a function call"),
    ("//item[matches(a, '(')]", 19, "expected a regular expression of XPath 2.0"),
    ("//item[count(a, b) = 1]", 8, "expected 1 argument"),
    ("//item/childs::b", 8, "expected child::"),
    ("//p:item", 3, 'expected declare namespace p = "…"; at the start'),
    ("//item and //b", 1, "expected a path with the condition in brackets"),
    ("item[@a = 1]", 1, "expected a path that starts with $msg, '/' or '//'"),
    ("doc('x.xml')//item", 1, "expected a path from $msg"),
    ("for i in //item return $i", 5, "expected a variable: $i"),
    ("for $i = //item return $i", 8, "expected 'in'"),
    ("for $i in //item when $i/a return $i", 18, "expected 'where'"),
    ("for $i in //item where $i/a = 1 retrun $i", 33, "expected 'return'"),
    ("for $i in //item return $j", 25, "expected $msg, $i"),
    ("for $i in //item return $i/@a", 25, "expected a path to elements, or a constructor"),
    ("for $i in //item order $i/a return $i", 24, "expected 'by'"),
    ("let $x = 5 for $i in //item return $i", 8, "expected ':='"),
    ("if (//a) then <x/>", 19, "expected 'else'"),
    ("<r>{//item}</s>", 12, "expected </r>"),
    ("<r>{//item</r>", 11, "expected '}' before it"),
    ("<r>//item}</r>", 10, "expected '}}' for the character }"),
    ("<r a=5>{//item}</r>", 6, "expected a quotation mark"),
    (
        "declare namespace p = urn:x; //p:a",
        23,
        "expected the URI of the namespace, in quotation marks",
    ),
    ("declare default namespace 'urn:x'; //a", 17, "expected 'element'"),
)


@pytest.mark.parametrize(("text", "column", "words"), MISTAKES)
def test_a_mistake_is_placed_and_a_remedy_named(text: str, column: int, words: str) -> None:
    with pytest.raises(ProfileRefused) as refused:
        parse_profile(text)
    assert words in str(refused.value)
    assert (refused.value.line, refused.value.column) == (1, column)
    caret = str(refused.value).splitlines()[2]
    assert caret == " " * (4 + column - 1) + "^"
