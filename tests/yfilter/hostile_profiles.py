"""Sixty profiles of users who mean harm: each asks for more than a message of theirs is worth.

(name, profile); what is hostile about it is that it costs time, memory or depth out of all
proportion to ``MESSAGE``.
"""

from __future__ import annotations

MESSAGE = (
    b"<a>"
    + b"".join(b'<v k="%d">%d</v>' % (number % 7, number) for number in range(300))
    + b"<t>"
    + b"a" * 2_000
    + b"</t></a>"
)
_FAR = 100_000


def _doubled(start: str, step: str, times: int, result: str) -> str:
    """``let`` clauses, each of which says something of the one before twice."""
    clauses = [f"let $x0 := {start}"]
    clauses += [f"let $x{n} := {step.replace('§', f'$x{n - 1}')}" for n in range(1, times + 1)]
    return f"for $a in /a {' '.join(clauses)} return <r>{{{result.replace('§', f'$x{times}')}}}</r>"


def _nested(inner: str, outer: str, times: int) -> str:
    for _ in range(times):
        inner = outer.replace("§", inner)
    return inner


def _where(condition: str) -> str:
    return f"/a[{condition}]"


def _returns(expression: str) -> str:
    return f"for $a in /a return <r>{{{expression}}}</r>"


HOSTILE: dict[str, str] = {
    # -- loops in loops
    "pairs that never sum": _where(
        f"some $a in 1 to {_FAR}, $b in 1 to {_FAR} satisfies $a + $b = 0"
    ),
    "pairs that always differ": _where(
        f"every $a in 1 to {_FAR}, $b in 1 to {_FAR} satisfies $a > -$b"
    ),
    "three variables": _where(
        "some $a in 1 to 1000, $b in 1 to 1000, $c in 1 to 1000 satisfies $a + $b + $c = 0"
    ),
    "triples of elements": _where("some $a in v, $b in v, $c in v satisfies $a + $b + $c = -1"),
    "quadruples of attributes": _where(
        "some $a in v/@k, $b in v/@k, $c in v/@k, $d in v/@k satisfies concat($a, $b, $c, $d) = 'x'"
    ),
    "a condition in a condition in a condition": _where("v[../v[../v[../v[. + 1 = -1]]]]"),
    "all that stands before all that stands before": _where(
        "v[preceding-sibling::v[preceding-sibling::v[preceding-sibling::v[. * 2 = -1]]]]"
    ),
    "every pair as text": _where(
        "some $x in v, $y in v satisfies matches(concat($x, $y), '^(x+x+)+y$')"
    ),
    "loops in results": _returns(
        f"for $x in 1 to {_FAR} return for $y in 1 to {_FAR} return if ($x + $y = 0) then 1 else ()"
    ),
    "loops over elements in results": _returns(
        "for $x in //v return for $y in //v return for $z in //v where $x + $y = -$z return 1"
    ),
    "counted in loops": _returns("count(for $x in 1 to 5000, $y in 1 to 5000 return $x)"),
    "sums in loops": _returns("sum(for $x in 1 to 3000 return sum(1 to $x))"),
    "a path in a loop in a loop": _returns(
        "count(//v/(for $i in 1 to 1000 return count(//v[. > $i])))"
    ),
    "where in where": (
        "for $a in /a for $x in $a/v for $y in $a/v for $z in $a/v "
        "where $x + $y + $z = -1 return <r/>"
    ),
    "quantified in a loop": _returns(
        "for $x in //v return (some $y in //v, $z in //v satisfies $x + $y + $z = -1)"
    ),
    # -- sequences
    "a range of all integers": _returns("count(1 to 2000000000)"),
    "a range for a condition": _where("count(1 to 100000000) = 5"),
    "ranges beside each other": _returns(
        "count((1 to 400000, 1 to 400000, 1 to 400000, 1 to 400000))"
    ),
    "sequences that double": _doubled("(1, 2, 3)", "(§, §)", 40, "count(§)"),
    "reversed and doubled": _doubled("1 to 100", "(reverse(§), §)", 40, "count(§)"),
    "inserted and doubled": _doubled("1 to 100", "insert-before(§, 1, §)", 40, "count(§)"),
    "distinct of many": _returns(
        "count(distinct-values(for $x in 1 to 3000 return for $y in 1 to 3000 return $x * $y))"
    ),
    "index of everything": _returns("count(for $x in 1 to 20000 return index-of(1 to 20000, $x))"),
    "subsequences": _returns("count(for $x in 1 to 20000 return subsequence(1 to 20000, $x))"),
    "sorted": _returns("for $x in 1 to 90000 order by -$x, $x mod 7, string($x) return $x"),
    "sorted in a loop": _returns(
        "count(for $i in 1 to 1000 return (for $x in //v order by $x * $i return $x))"
    ),
    "compared with everything": _where(
        "(1 to 90000) != (for $x in 1 to 90000 return 0 * $x + 1.5)"
    ),
    "compared as dates": _where(
        "(for $x in 1 to 3000 return xs:date('2026-01-01')) "
        "> (for $x in 1 to 3000 return xs:date('2027-01-01'))"
    ),
    "deep-equal": _returns("count(for $x in 1 to 3000 return deep-equal(/a, /a))"),
    "codepoints there and back": _returns(
        "string-length(codepoints-to-string("
        "for $i in 1 to 3000 return string-to-codepoints(string(/a))))"
    ),
    # -- texts
    "texts that double": _doubled("string(/a/t)", "concat(§, §)", 40, "string-length(§)"),
    "texts that double in a condition": _where(
        "string-length(" + _nested("string(t)", "concat(§, §)", 7) + ") = -1"
    ),
    "replaced by itself": _doubled(
        "string(/a/t)", "replace(§, 'a', 'aaaaaaaaaa')", 12, "string-length(§)"
    ),
    "replace in replace": _where(
        "string-length("
        + _nested("string(t)", "replace(§, 'a', 'aaaaaaaaaaaaaaaaaaaa')", 8)
        + ") = -1"
    ),
    "replaced by groups": _returns(
        _nested("string(/a/t)", "replace(§, '(a)', '$1$1$1$1$1$1$1$1$1$1')", 8)
    ),
    "joined": _returns(
        "string-length(string-join(for $x in 1 to 90000 return string(/a/t), ' and '))"
    ),
    "joined by a long text": _returns(
        "string-length(string-join(for $x in 1 to 20000 return 'x', string(/a/t)))"
    ),
    "tokens of tokens": _returns("count(for $i in 1 to 1000 return tokenize(string(/a), '[^x]'))"),
    "translated in a loop": _returns(
        "count(for $i in 1 to 90000 return translate(string(/a), 'a', 'b'))"
    ),
    "substrings of everything": _returns(
        "count(for $i in 1 to 90000 return substring(string(/a), $i mod 7))"
    ),
    "normalised in a loop": _returns(
        "count(for $i in 1 to 90000 return normalize-space(string(/a)))"
    ),
    "a uri of a text that doubles": _doubled(
        "string(/a/t)", "encode-for-uri(concat(§, '%', §))", 30, "string-length(§)"
    ),
    # -- patterns
    "a pattern that could be tried for ever": _where("matches(t, '(a|aa)+b')"),
    "nested repeats": _where("matches(t, '((a*)*)*b')"),
    "repeats written out": _where("matches(t, '(a{0,30}){0,30}b')"),
    "replace that looks to the end each time": _returns(
        "string-length(replace(string(/a/t), '(a*)b|a', 'c'))"
    ),
    "tokens that look to the end each time": _returns("count(tokenize(string(/a/t), 'a*b|a'))"),
    "a pattern a loop": _returns(
        "count(for $i in 1 to 9000 return matches(string(/a/t), '(a{0,30}){0,30}b'))"
    ),
    "every element by every pattern": _where(
        "some $x in v, $y in v satisfies matches(concat($x, ../t, $y), '^(a|[0-9]|aa)*x$')"
    ),
    # -- what is constructed
    "elements in elements": _returns(_nested("1", "<e>{§, §, //v}</e>", 6)),
    "copies of the message": _returns("for $x in 1 to 90000 return /a"),
    "copies in what is looked into": _returns("count((for $x in 1 to 900 return <e>{/a}</e>)//v)"),
    "constructed and compared": _returns("count(for $x in 1 to 3000 return (<e>{/a}</e>)/a/v[1])"),
    "attributes of everything": _returns("for $x in 1 to 90000 return <e x='{/a}'/>"),
    "a document a tuple": "for $x in /a/v for $y in /a/v for $z in /a/v return <r>{$x, $y, $z}</r>",
    # -- declared functions
    "functions that call themselves twice": (
        "declare function local:f($n as xs:integer) as xs:integer "
        "{ if ($n < 2) then 1 else local:f($n - 1) + local:f($n - 2) }; " + _returns("local:f(40)")
    ),
    "functions that go deep": (
        "declare function local:f($n as xs:integer) as xs:integer "
        "{ 1 + local:f($n + 1) }; " + _returns("local:f(1)")
    ),
    "functions that build": (
        "declare function local:f($n as xs:integer) as element() "
        "{ <e>{ if ($n = 0) then () else (local:f($n - 1), local:f($n - 1)) }</e> }; "
        + _returns("local:f(40)")
    ),
    "copied and changed": _returns(
        "for $x in 1 to 9000 return copy $c := /a modify "
        "(for $v in $c//v return replace value of node $v with 1) return $c"
    ),
    "copies that a path begins in": _returns(
        "count(for $x in 1 to 90000 return copy $c := /a modify () return $c/@k)"
    ),
    # -- numbers
    "numbers that square": _doubled("9999999999", "§ * §", 40, "string-length(string(§))"),
    "decimals that square": _doubled("1.0000000001", "§ * §", 40, "string-length(string(§))"),
}

HARMLESS = frozenset(
    (
        "texts that double in a condition",
        "a pattern that could be tried for ever",
        "nested repeats",
        "repeats written out",
        "elements in elements",
        "numbers that square",
        "decimals that square",
    )
)
"""Those that only look it: they end within the limits."""
