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
    ("//item[@d > now()]", 13, "expected current-dateTime()"),
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
    ("//item[matches(a, '(')]", 19, "expected a regular expression of XPath 3.1"),
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
    ("declare function f($a) { $a }; //a", 18, "expected a prefix of your own, such as local:f"),
    (
        "declare function local:f($a) { $a }; //a[local:f(b, c)]",
        42,
        "local:f() is called with 2 arguments; expected 1 argument",
    ),
    (
        "declare function local:clean($a) { $a }; //a[local:claen(b)]",
        46,
        "there is no function local:claen(); expected local:clean()",
    ),
    ("//a[local:f(b)]", 5, "expected declare function local:f(…) { … }; in front"),
    (
        "declare function local:f($a) { local:g($a) }; //a",
        32,
        "there is no function local:g(); expected local:f()",
    ),
    (
        "declare function local:f() { 1 }; declare function local:f() { 2 }; //a",
        52,
        "with no arguments is declared twice",
    ),
    ("declare function local:f($a, $a) { 1 }; //a", 30, "$a is bound already"),
    ("declare function local:f($a) { b }; //a", 32, "a relative path and nothing is there"),
    ("declare function local:f($a) { $b }; //a", 32, "expected $msg, $a"),
    ("declare function local:f($a) = 1; //a", 30, "expected '{'"),
    ("declare function local:f($a as node() { $a }; //a", 39, "expected ',' or ')'"),
    ("for $a in //a return typeswitch ($a) default return $a", 38, "expected 'case'"),
    ("for $a in //a return typeswitch ($a) case b return $a", 43, "the type b is"),
    ("for $a in //a return typeswitch ($a) case element(b) return $a", 63, "expected 'default'"),
    ("for $a in //a return delete node $a/b", 22, "expected copy $c := … modify … return $c"),
    ("for $a in //a return copy $c := $a return $c", 36, "expected 'modify'"),
    ("for $a in //a return copy $c := $a modify $c/b return $c", 43, "expected 'delete node'"),
    (
        "for $a in //a return copy $c := $a modify delete node $c[delete node b] return $c",
        58,
        "changes a node outside 'modify'",
    ),
    ("for $a in //a return copy $c := 5 modify () return $c", 33, "a value is no node to copy"),
    (
        "for $a in //a return copy $c := $a modify insert node <b/> onto $c return $c",
        60,
        "expected 'into', 'as first into', 'as last into', 'before' or 'after'",
    ),
    (
        'for $a in //a return copy $c := $a modify rename node $c as "a b" return $c',
        61,
        "can never be the name of this element (XQDY0074)",
    ),
    ("for $a in //a return copy $c := $a modify replace node $c/b by 5 return $c", 61, "'with'"),
)


@pytest.mark.parametrize(("text", "column", "words"), MISTAKES)
def test_a_mistake_is_placed_and_a_remedy_named(text: str, column: int, words: str) -> None:
    with pytest.raises(ProfileRefused) as refused:
        parse_profile(text)
    assert words in str(refused.value)
    assert (refused.value.line, refused.value.column) == (1, column)
    caret = str(refused.value).splitlines()[2]
    assert caret == " " * (4 + column - 1) + "^"
