"""Containment against what it means: no document has the special one without the general one."""

from __future__ import annotations

from functools import cache
from itertools import permutations, product
from random import Random

import pytest
from lxml import etree

from formats.text import parse_text
from tests.yfilter.evaluated import select
from yfilter.engine.containment import Pattern, covers, implies
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.engine.readings import readings_of
from yfilter.language.query_ast import Expression, PathExpression
from yfilter.language.query_parser import parse_expression, parse_profile


def pattern(text: str) -> Pattern:
    return Pattern(Conjunction.parse(text))


def conjunction(*profiles: str) -> Pattern:
    """All of them together; each is one linear path, written in any way."""
    parsed = [routing_query(parse_profile(profile)) for profile in profiles]
    return Pattern(Conjunction(tuple(path for (one,) in parsed for path in one.paths)))


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("/a", "/a/b"),
        ("//b", "/a/b"),
        ("/*/b", "/a/b"),
        ("/a//*/b", "/a/*//b"),
        ("/a/*//b", "/a//*/b"),
        ("//*/*", "/*/*"),
        ("/*/*", "//*//*"),
        ("//b//d", "/a/b/c/d"),
        ("/*", "//x//y"),
        ("//b[@x]", '/a/b[@x = "1"]/c'),
        ("//*[@x > 2]", '/a/b[@x = "3.0"]'),
        ("//*[@* = 3]", "/a/b[@x = 3]"),
        ("/*:a", "/Q{urn:p}a"),
        ("/Q{urn:p}*", "/Q{urn:p}a"),
        ("//b", "/a/b and /a/c"),
        ("/a and /a/b", "/a/b"),
        ("/a[@x or @y]", "/a[@x]"),
        ("/a[@x]", "/a[@x = 1 or @x = 2]"),
    ],
)
def test_the_general_one_covers_the_special_one(general: str, special: str) -> None:
    assert covers(pattern(general), pattern(special))


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("/a/b", "/a//b"),
        ("/a/*/b", "/a//b"),
        ("/a/b", "/a"),
        ("/a/b", "/b/a"),
        ("/a//*/b", "/a/b"),
        ("/*/*", "/a"),
        ("/a", "/*"),
        ("/a", "/*:a"),
        ("//a//a", "//a"),
        ('/a[@x = "3"]', "/a[@x = 3]"),
        ("/a[@x]", "/a[@*]"),
        ("/a[@x and @y]", "/a[@x]"),
        ("/a/b and /a/c", "/a/b"),
        # Each condition holds somewhere, not at one element.
        ("//b[@x][@y]", "/a/b[@x] and /a/b[@y]"),
    ],
)
def test_what_does_not_cover(general: str, special: str) -> None:
    assert not covers(pattern(general), pattern(special))


CHAIN_DOCUMENTS = [
    etree.fromstring("".join(f"<{n}>" for n in names) + "".join(f"</{n}>" for n in reversed(names)))
    for length in range(1, 7)
    for names in product("abz", repeat=length)
]


@cache
def chain_documents_with(xpath: str) -> frozenset[int]:
    matches = etree.XPath(f"boolean({xpath})")
    return frozenset(i for i, tree in enumerate(CHAIN_DOCUMENTS) if matches(tree))


def test_structure_alone_is_decided_exactly() -> None:
    """Every pair of short paths over two names, on every chain of elements up to depth 6."""
    steps = [axis + test for axis in ("/", "//") for test in ("a", "b", "*")]
    paths = ["".join(path) for length in (1, 2, 3) for path in product(steps, repeat=length)]
    patterns = {path: pattern(path) for path in paths}
    for general in paths:
        mine = chain_documents_with(general)
        for special in paths:
            contained = chain_documents_with(special) <= mine
            assert covers(patterns[general], patterns[special]) is contained, (general, special)


def random_condition(rng: Random) -> str:
    leaf = rng.choice(["@x", "@y", "@x", "text()", "."])
    value = rng.choice(["1", "2", "3", '"1"', '"2"'])
    operator = rng.choice(["=", "=", "!=", "<", "<=", ">", ">="])
    if isinstance(value, str) and value.startswith('"'):
        operator = rng.choice(["=", "!="])  # XPath 1.0 compares texts as numbers otherwise
    return rng.choice(
        [
            f"{leaf} {operator} {value}",
            f"{leaf} {operator} {value}",
            rng.choice(["@x", "@y", "text()"]),
            f"{leaf} {operator} {value} or @y = 2",
            f"contains(@x, {rng.choice(['1', '2', '12'])!r})",
            f"starts-with(@x, {rng.choice(['1', '2', '12'])!r})",
        ]
    )


def random_linear(rng: Random) -> str:
    text = ""
    for _ in range(rng.randint(1, 3)):
        text += rng.choice(["/", "/", "//"]) + rng.choice("aab*")
        while rng.random() < 0.4:
            text += f"[{random_condition(rng)}]"
    return text


def random_document(rng: Random, depth: int = 0) -> str:
    name = rng.choice("ab")
    attributes = "".join(
        f' {key}="{rng.choice(["1", "2", "3", "12", "w"])}"' for key in "xy" if rng.random() < 0.5
    )
    inside = "".join(
        random_document(rng, depth + 1) if rng.random() < 0.7 else rng.choice("123w")
        for _ in range(rng.randrange(4) if depth < 3 else rng.randrange(2) * 0)
    )
    return f"<{name}{attributes}>{inside or rng.choice(['', '1', '2'])}</{name}>"


@pytest.mark.parametrize("seed", range(4))
def test_yes_is_always_right(seed: int) -> None:
    """Random conjunctions on random documents, lxml deciding who has them."""
    rng = Random(seed)
    documents = [etree.fromstring(random_document(rng)) for _ in range(250)]
    cases: list[tuple[Pattern, frozenset[int]]] = []
    for _ in range(120):
        paths = [random_linear(rng) for _ in range(rng.choice([1, 1, 2]))]
        matches = etree.XPath(" and ".join(f"boolean({path})" for path in paths))
        found = frozenset(i for i, document in enumerate(documents) if matches(document))
        cases.append((conjunction(*paths), found))
    said_yes = 0
    for (general, more), (special, fewer) in permutations(cases, 2):
        if covers(general, special):
            said_yes += 1
            assert fewer <= more, (seed, str(general.disjunct), str(special.disjunct))
    assert said_yes > 50  # the test is about something


def test_nothing_covers_what_is_of_the_other_reading() -> None:
    graph = "/Q{urn:onyx:graph}g"
    documents = [pattern(text) for text in ("/*", "//*", "//b", "/a/b", '//b[@x = "1"]')]
    graphs = [pattern(text) for text in (graph, f"{graph}/b", f"{graph}//b", f"/* and {graph}/b")]
    for one, other in product(documents, graphs):
        assert not covers(one, other) and not covers(other, one)
    assert covers(graphs[0], graphs[1]) and covers(graphs[2], graphs[1])
    assert covers(graphs[0], graphs[3])


def in_graph(rng: Random, text: str) -> str:
    return f"/Q{{urn:onyx:graph}}g{text}" if rng.random() < 0.5 else text


@pytest.mark.parametrize("seed", range(3))
def test_yes_is_always_right_of_readings(seed: int) -> None:
    """Random disjuncts of both readings, the interpreter deciding which messages have them: of a
    document those of documents, of a striped graph those of graphs."""
    rng = Random(seed)
    messages = []
    for _ in range(120):
        text = random_document(rng)
        messages.append(readings_of(parse_text(text.encode())))
        graph = f'<k:g xmlns:k="urn:onyx:graph">{random_document(rng)}</k:g>'
        messages.append(readings_of(parse_text(graph.encode())))
    cases: list[tuple[Pattern, frozenset[int]]] = []
    for _ in range(100):
        paths = [in_graph(rng, random_linear(rng)) for _ in range(rng.choice([1, 1, 2]))]
        one = conjunction(*paths)
        streams = [message.of(one.reading) for message in messages]
        found = frozenset(
            number
            for number, stream in enumerate(streams)
            if stream is not None
            and all(select(path.expression, stream) for path in one.disjunct.paths)
        )
        cases.append((one, found))
    said_yes = 0
    for (general, more), (special, fewer) in permutations(cases, 2):
        if covers(general, special):
            said_yes += 1
            assert general.reading is special.reading
            assert fewer <= more, (seed, str(general.disjunct), str(special.disjunct))
    assert said_yes > 30


def test_covering_is_transitive_on_a_sample() -> None:
    rng = Random(7)
    patterns = [conjunction(random_linear(rng)) for _ in range(60)]
    for a, b, c in product(patterns, repeat=3):
        if covers(a, b) and covers(b, c):
            assert covers(a, c), (str(a.disjunct), str(b.disjunct), str(c.disjunct))


@pytest.mark.parametrize(
    ("special", "general", "expected"),
    [
        ('@s = "abc"', 'starts-with(@s, "ab")', True),
        ('@s = "abc"', 'ends-with(@s, "bc")', True),
        ('@s = "abc"', 'contains(@s, "x")', False),
        ('starts-with(@s, "abc")', 'starts-with(@s, "ab")', True),
        ('starts-with(@s, "ab")', 'starts-with(@s, "abc")', False),
        ('contains(@s, "abc")', 'contains(@s, "b")', True),
        ('text() = "abc"', 'contains(text(), "b")', False),  # with two texts an error
        ('@s contains text "A b"', '@s contains text "b"', True),
        ('@s contains text "ab"', '@s contains text "a.*" using wildcards', True),
        ('text() contains text "a b"', 'text() contains text "a"', True),
        ('@s contains text "ab"', '@s contains text "b"', False),
        ('@s contains text "ab"', '@s contains text "ab" using case sensitive', False),
        ('@s = "5"', "@s < 6", True),
        ("@s = 5", '@s = "5"', False),
        ('@s < "b"', '@s <= "c"', True),
        ("@s < 5", '@s < "6"', False),
        ("@s > 5 and @s < 7", "@s > 4", True),
        ("not(@s)", "not(@s)", True),
        ("not(@s)", "@s", False),
        ('@s = "abc"', '@s = ("abc", "d")', True),
        ('@s = "abcd"', '@s = ("abc", "d")', False),
        ('@s = ("a", "b")', '@s = ("c", "b", "a")', True),
        ('@s = ("a", "b")', '@s = ("b", "c")', False),
        ('@s = ("ab", "ac")', 'starts-with(@s, "a")', True),
        ('@s = ("ab", "ac")', '@s = "ab"', False),
        ("@s = 5", '@s = ("5", "6")', False),
        ('@s = ("5", 6)', '@s = ("5", "6")', False),
        ('@*  = "5"', '@s = ("5", "6")', False),
        ('@s = "5"', '@* = ("5", "6")', True),
    ],
)
def test_implication_of_conditions(special: str, general: str, expected: bool) -> None:
    def condition(text: str) -> Expression:
        path = parse_expression(f"/a[{text}]")
        assert isinstance(path, PathExpression)
        return path.steps[0].predicates[0]

    assert implies(condition(special), condition(general)) is expected
