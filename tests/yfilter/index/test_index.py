"""The index against the evaluator on each profile alone, and against what it costs."""

from __future__ import annotations

from random import Random

import pytest

from formats.text import parse_text
from tests.yfilter.evaluated import select
from tests.yfilter.figures import figures
from tests.yfilter.random_cases import (
    random_linear_profile,
    random_message,
    random_profile,
)
from yfilter.compiled_matcher import indexed_part
from yfilter.engine.readings import Readings
from yfilter.errors import MatchLimitExceeded
from yfilter.index.automaton import ROOTS
from yfilter.index.index import Index
from yfilter.language.matching_path import matching_path
from yfilter.language.query_ast import PathExpression, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse

VISITS_MAX = 10_000_000
EMPTY = (
    "index_nodes",
    "index_queries",
    "index_atoms",
    "index_records",
    "index_twigs",
    "index_twig_nodes",
    "index_symbols",
    "index_attributes",
    "index_bytes_used",
    "operators",
)


def path_of(text: str) -> PathExpression:
    return matching_path(parse_profile(text))


def add(index: Index, text: str) -> int:
    return index.add(indexed_part(parse_profile(text)).ways)


def add_path(index: Index, path: PathExpression) -> int:
    return index.add(indexed_part(Profile(path)).ways)


def matches(profile: str, message: str) -> bool:
    index = Index()
    query = add(index, profile)
    return index.match(Readings(parse_text(message.encode())), VISITS_MAX) == [query]


def sizes(index: Index) -> dict[str, int]:
    statistics = figures(index)
    return {key: getattr(statistics, key) for key in EMPTY}


def dump(index: Index) -> str:
    return "\n".join(index.picture(lambda query: [f"#{query}"]).lines(1000))


@pytest.mark.parametrize("place", ["@n", "text()", "."])
@pytest.mark.parametrize("literal", ["9", "9.0", "0", "-0.0", "-9", "1e2", "0.1"])
def test_a_number_is_found_however_it_is_written(place: str, literal: str) -> None:
    index = Index()
    empty = sizes(index)
    number = add(index, f"/m[{place} = {literal}]")
    text = add(index, f'/m[{place} = "9"]')
    for written in ("9", " 9 ", "09", "9.00", "+9", "9e0", "0", "-0", "", "9x", "100", ".1", "-9"):
        message = f'<m n="{written}">{written}</m>'.encode()
        stream = parse_text(message)
        expected = {
            query
            for query, profile in (
                (number, f"/m[{place} = {literal}]"),
                (text, f'/m[{place} = "9"]'),
            )
            if select(path_of(profile), stream)
        }
        assert set(index.match(Readings(stream), VISITS_MAX)) == expected, written
    index.remove(text)
    index.remove(number)
    assert sizes(index) == empty


def test_each_number_is_an_edge_of_its_own() -> None:
    index = Index()
    numbers = [add(index, f"/m[@n = {n}]/a") for n in range(100)]
    assert index.match(Readings(parse_text(b'<m n="7"><a/></m>')), VISITS_MAX) == [numbers[7]]
    assert all(f"\n      = {n}\n" in dump(index) for n in range(100))


# -- answers


@pytest.mark.parametrize("lazy_bytes_max", [1, 4_000, 20_000, 1 << 20])
@pytest.mark.parametrize("seed", range(12))
def test_changes_and_messages_interleaved_agree_with_each_profile_alone(
    seed: int, lazy_bytes_max: int
) -> None:
    rng = Random(seed)
    index = Index(lazy_bytes_max)
    if seed % 2:  # else twigs are looked for one by one, for here they are few
        index._twigs.questions_min = 0
        index._twigs.row_bytes_max = 32
    empty = sizes(index)
    live: dict[int, PathExpression] = {}
    matched = 0
    for _ in range(25):
        for _ in range(rng.randint(1, 12)):
            if live and rng.random() < 0.4:
                query = rng.choice(sorted(live))
                index.remove(query)
                del live[query]
                continue
            draw = random_profile if rng.random() < 0.6 else random_linear_profile
            path = matching_path(Profile(draw(rng)))
            added = add_path(index, path)
            assert added not in live
            live[added] = path
        message = random_message(rng)
        wanted = {query for query, path in live.items() if select(path, message.stream)}
        found = index.match(Readings(message.stream), VISITS_MAX)
        wrong = [unparse(live[query]) for query in wanted ^ set(found)]
        assert not wrong, (message.text, wrong)
        assert len(found) == len(wanted)  # each once
        matched += len(wanted)
    assert matched > 0
    for query in live:
        index.remove(query)
    assert sizes(index) == empty


@pytest.mark.parametrize("seed", range(6))
def test_the_same_messages_between_very_many_changes(seed: int) -> None:
    rng = Random(seed)
    index = Index(lazy_bytes_max=rng.choice((0, 60_000)))
    drawn = [
        matching_path(Profile(rng.choice((random_profile, random_linear_profile))(rng)))
        for _ in range(rng.choice((40, 120)))
    ]
    pool = [(indexed_part(Profile(path)).ways, path) for path in drawn]
    messages = [random_message(rng).stream for _ in range(6)]
    matching = [[bool(select(path, stream)) for _, path in pool] for stream in messages]
    live: dict[int, int] = {}  # query to place in the pool
    for _ in range(150):
        for _ in range(rng.choice((1, 1, 2, 3, 10, 40))):
            if live and rng.random() < 0.5:
                query = rng.choice(sorted(live))
                index.remove(query)
                del live[query]
            else:
                place = rng.randrange(len(pool))
                live[index.add(pool[place][0])] = place
        number = rng.randrange(len(messages))
        found = index.match(Readings(messages[number]), VISITS_MAX)
        wanted = [query for query, place in live.items() if matching[number][place]]
        assert sorted(found) == sorted(wanted)


def test_twigs_found_together_are_those_found_one_by_one() -> None:
    rng = Random(5)
    names = "abcd*"
    alone, together = Index(), Index()
    together._twigs.questions_min = 0
    for _ in range(300):
        main, twig = (
            "".join(rng.choice(("/", "/", "//")) + rng.choice(names) for _ in range(length))
            for length in (rng.randint(1, 3), rng.randint(2, 4))
        )
        text = f"{main}[{twig.lstrip('/')}]{rng.choice(('', '/a', '//b', '/*/c'))}"
        assert add(alone, text) == add(together, text)
    for _ in range(100):
        stream = random_message(rng).stream
        assert sorted(together.match(Readings(stream), VISITS_MAX)) == sorted(
            alone.match(Readings(stream), VISITS_MAX)
        )
    assert figures(alone).index_twig_visits < figures(together).index_twig_visits


def test_many_queries_that_ask_of_an_element_cost_one_walk() -> None:
    index = Index()
    for number in range(1_000):
        add(index, f"/a[b{number}/c]")
    message = parse_text(f"<a>{'<b7><c/></b7>' * 50}</a>".encode())
    assert index.match(Readings(message), VISITS_MAX) == [8]
    statistics = figures(index)
    assert statistics.index_twig_visits == 100
    assert statistics.index_visits < 250


def test_what_lacks_a_name_below_its_element_costs_no_visit() -> None:
    index = Index()
    for number in range(400):
        add(index, f"/a[b{number}/c]")
    message = parse_text(f"<a>{'<b7><c/></b7>' * 50}</a>".encode())
    assert index.match(Readings(message), VISITS_MAX) == [8]
    statistics = figures(index)
    assert statistics.index_twig_visits == 0
    assert statistics.index_visits < 300


def test_what_a_change_does_not_concern_is_not_computed_again() -> None:
    message = parse_text(b'<a><b><c x="1"><d/></c></b></a>')
    index = Index()
    for text in ("/a/b/c/d", '/a/b/c[@x = "1"]/d', "/a//c", "/a/b/*"):
        add(index, text)
    assert len(index.match(Readings(message), VISITS_MAX)) == 4
    steps = figures(index).index_lazy_steps_computed
    add(index, "/a/e")  # an edge that is not met
    assert len(index.match(Readings(message), VISITS_MAX)) == 4
    assert figures(index).index_lazy_steps_computed == steps
    add(index, "/*/b")  # three sets have a node more; what is behind the last is as before
    assert len(index.match(Readings(message), VISITS_MAX)) == 5
    assert figures(index).index_lazy_steps_computed <= steps + 3 < 2 * steps


def test_what_was_removed_leaves_nothing_to_compute() -> None:
    message = parse_text(b'<a><b><c x="1"><d/></c></b></a>')
    index = Index()
    for text in ("/a/b/c/d", "/a//c", "/a/b/*"):
        add(index, text)
    others = [add(index, text) for text in ('/a/b/c[@x = "1"]/d', "/a/b//d", "/*/b/c")]
    assert len(index.match(Readings(message), VISITS_MAX)) == 6
    steps = figures(index).index_lazy_steps_computed
    for query in others:
        index.remove(query)
        index.match(Readings(message), VISITS_MAX)
    assert len(index.match(Readings(message), VISITS_MAX)) == 3
    assert figures(index).index_lazy_steps_computed == steps


def test_a_wildcard_more_leaves_what_is_behind_other_steps() -> None:
    message = parse_text(b"<a><b><c/><d/></b><e><c/><d/></e></a>")
    index = Index()
    for text in ("/a/b/c", "/a/b/d", "/a/e/c", "/a/e/d"):
        add(index, text)
    assert len(index.match(Readings(message), VISITS_MAX)) == 4
    steps = figures(index).index_lazy_steps_computed
    add(index, "/a/*/x")  # two sets have a node more; what is behind them is as before
    assert len(index.match(Readings(message), VISITS_MAX)) == 4
    assert figures(index).index_lazy_steps_computed == steps + 2


def test_the_bound_of_the_lazy_states_is_kept_by_new_generations() -> None:
    rng = Random(3)
    roomy, tight = Index(), Index(16_384)
    for _ in range(150):
        path = matching_path(Profile(random_linear_profile(rng)))
        assert add_path(roomy, path) == add_path(tight, path)
    for _ in range(80):
        stream = random_message(rng).stream
        assert sorted(tight.match(Readings(stream), VISITS_MAX)) == sorted(
            roomy.match(Readings(stream), VISITS_MAX)
        )
    assert figures(roomy).index_lazy_turns == 0
    statistics = figures(tight)
    assert statistics.index_lazy_turns > 0
    assert statistics.index_lazy_bytes < 3 * 16_384


def test_sets_of_hundreds_of_nodes_and_queries_of_one_node_are_all_there() -> None:
    index = Index()
    wanted = {add(index, f"//a//b//c{i % 7}[d{i}]") for i in range(500)}
    wanted |= {add(index, f"/a/b/*[@e{i}]") for i in range(500)}
    wanted |= {add(index, f"//x{i}//*/c0") for i in range(200)}
    children = "".join(f"<c{i}>{twigs}</c{i}>" for i, twigs in enumerate(_twigs(500, 7)))
    attributes = " ".join(f'e{i}="1"' for i in range(500))
    inner = f"<a><b>{children}<f {attributes}/></b></a>"
    outer = "".join(f"<x{i}>" for i in range(200)), "".join(f"</x{199 - i}>" for i in range(200))
    found = set(index.match(Readings(parse_text(inner.encode())), VISITS_MAX))
    found |= set(
        index.match(Readings(parse_text(f"{outer[0]}{inner}{outer[1]}".encode())), VISITS_MAX)
    )
    assert found == wanted


def _twigs(number: int, kinds: int) -> list[str]:
    return ["".join(f"<d{i}/>" for i in range(kind, number, kinds)) for kind in range(kinds)]


def test_memory_asked_for_ahead_makes_no_difference() -> None:
    rng = Random(8)
    for bound in (0, 16_384):
        prepared, other = Index(bound), Index(bound)
        prepared.prepare()
        for _ in range(60):
            path = matching_path(Profile(random_linear_profile(rng)))
            assert add_path(prepared, path) == add_path(other, path)
            prepared.prepare()
            stream = random_message(rng).stream
            found = prepared.match(Readings(stream), VISITS_MAX)
            assert sorted(found) == sorted(other.match(Readings(stream), VISITS_MAX))
        prepared.prepare()
        assert sizes(prepared) == sizes(other)


@pytest.mark.parametrize(
    ("profile", "message", "wanted"),
    [
        # Prefixed and partly named tests.
        ("/*:a", '<p:a xmlns:p="u"/>', True),
        ('declare namespace q = "u"; /q:a/q:*', '<p:a xmlns:p="u"><p:b/></p:a>', True),
        ('declare namespace q = "u"; /q:a/q:*', '<p:a xmlns:p="u"><b/></p:a>', False),
        ("/a", '<a xmlns="u"/>', False),
        # The same name with two prefixes is one name.
        (
            'declare namespace q = "u"; /r[.//q:b/q:c]',
            '<r xmlns:p="u" xmlns:s="u"><p:b/><s:b><p:c/></s:b></r>',
            True,
        ),
        # Any single text node, the string value, and neither.
        ('/a[text() = "y"]', "<a>x<b/>y</a>", True),
        ('/a[text() = "xy"]', "<a>x<b/>y</a>", False),
        ('/a[. = "xy"]', "<a>x<b/>y</a>", True),
        ('/a[. = "xy"]', "<a>x<b><!--z-->y</b></a>", True),
        ('/a[b = "y"]', "<a><b>x</b><b><c>y</c></b></a>", True),
        ('/a[. = ""]', "<a><b/></a>", True),
        ("/a[. < 12.5]", "<a>1<b>2</b></a>", True),
        ("/a[. < 12]", "<a>1<?p?>2</a>", False),
        # Numbers as xs:double; what is none compares with nothing.
        ("/a[@n = 1]", '<a n=" 1.0 "/>', True),
        ("/a[@n = 1]", '<a n="10e-1"/>', True),
        ("/a[@n >= 1]", '<a n="INF"/>', True),
        ("/a[@n >= 1]", '<a n="+INF"/>', False),
        ("/a[@n <= 1]", '<a n="NaN"/>', False),
        ("/a[@n < 1]", '<a n="-.5"/>', True),
        ("/a[@n < 1]", '<a n="."/>', False),
        ("/a[@n < 1]", '<a n="1_0"/>', False),
        ("/a[@n = 0.1]", '<a n="0.1"/>', True),
        ("/a[@n = 12345678901234567]", '<a n="12345678901234567"/>', True),
        ('/a[@n = "1"]', '<a n="1.0"/>', False),
        ("/a[1 < @n]", '<a n="2"/>', True),
        # Values in UTF-8, empty ones, and some that differ.
        ('/a[@n = "Zürich"]', '<a n="Zürich"/>', True),
        ('/a[@n = ""]', '<a n=""/>', True),
        ('/a[@n = ""]', "<a/>", False),
        ('/a[@n != "x"]', "<a/>", False),
        ('/a[@n != "x"]', '<a n="y"/>', True),
        ('/a[text() != "x"]', "<a>x<b/>y</a>", True),
        ("/a[@n]", '<a n=""/>', True),
        ("/a[text()]", "<a><!--x--></a>", False),
        # The same ancestors have to satisfy all conditions.
        ('//a[@x = "1"]//b[@y = "2"]', '<a x="1"><b y="3"/><a x="2"><b y="2"/></a></a>', True),
        ('//a[@x = "1"]/b[@y = "2"]', '<a x="1"><b y="3"/><a x="2"><b y="2"/></a></a>', False),
        ('//a[@x = "1"][@z]//b//c', '<a x="1"><a z=""><b><c/></b></a></a>', False),
        ("//a[c]//a[@x]/b", "<a><c/><a><a x=''><b/></a></a></a>", True),
        ("//a[c]/a[@x]/b", "<a><c/><a><a x=''><b/></a></a></a>", False),
        ("/a[.//b//c/d]", "<a><b><e/></b><b><c><b><c><d/></c></b></c></b></a>", True),
        ("/a[b/*//c]", "<a><b><c/></b></a>", False),
    ],
)
def test_what_paths_and_comparisons_mean(profile: str, message: str, wanted: bool) -> None:
    assert matches(profile, message) is wanted


def test_conditions_deeper_than_a_short_residual_can_say() -> None:
    profile = '/a[@n = "1"]' + "/a" * 40 + '[@n = "2"]'
    message = '<a n="1">' + "<a>" * 39 + '<a n="2"/>' + "</a>" * 40
    assert matches(profile, message)
    assert not matches(profile, message.replace('"1"', '"3"'))


@pytest.mark.parametrize(
    "profile", ["/a[not(b)]", "/a[b or c]", "/a[@*]", '/a[@n < "x"]', "/a[b = c]"]
)
def test_what_the_index_cannot_look_up_is_verified_by_an_operator(profile: str) -> None:
    index = Index()
    before = sizes(index)
    query = add(index, profile)
    assert sizes(index) == before | {
        "index_nodes": ROOTS + 1,
        "index_queries": 1,
        "index_records": 1,
        "index_symbols": 1,
        "index_bytes_used": figures(index).index_bytes_used,
        "operators": 1,
    }
    index.remove(query)
    assert sizes(index) == before


# -- shape


def test_equal_beginnings_and_residuals_are_shared() -> None:
    index = Index()
    add(index, '/a/b[@id = "x"]/c')
    one = sizes(index)
    add(index, '/a/b[@id = "x"]/d')
    two = sizes(index)
    assert two["index_nodes"] - one["index_nodes"] == 1
    assert two["index_atoms"] == one["index_atoms"] == 1
    add(index, "/a/b[c/d[@n < 3]]/e")
    add(index, "/a/b[c/d[@n < 4]]/f")
    before = sizes(index)
    add(index, "/a[g][b]")
    add(index, "/b[g][b]")
    assert sizes(index)["index_records"] - before["index_records"] == 3  # both, and two paths


def test_the_access_predicate_is_the_equality_with_most_constants() -> None:
    index = Index()
    for number in range(5):
        add(index, f'/a[@many = "{number}"]')
    add(index, '/a[@few = "1"][@many = "2"]/b[@n > 7]')
    found = dump(index)
    assert '    [@many]\n      = "0"  -> #1' in found
    assert "[@few]" not in found and "[@n]" not in found
    add(index, "/a[@n > 7]")
    assert "[@n]\n      > number  -> #7" in dump(index)


def test_only_candidates_are_verified() -> None:
    index = Index()
    for number in range(1000):
        add(index, f'/a[@id = "{number}"][b[@n]]')
    index.match(Readings(parse_text(b'<a id="7"><b n=""/></a>')), VISITS_MAX)
    assert figures(index).index_candidates == 1


# -- bounds


def test_a_removed_query_gives_its_memory_back() -> None:
    rng = Random(1)
    index = Index()
    message = random_message(rng).stream
    allocated = []
    for _ in range(8):
        queries = []
        for number in range(300):
            path = matching_path(Profile(random_linear_profile(rng)))
            queries.append(add_path(index, path))
            queries.append(add(index, f'/a[@id = "value {number}"][b/c[@n > {number}]]'))
        index.match(Readings(message), VISITS_MAX)
        for query in queries:
            index.remove(query)
        allocated.append(figures(index).index_bytes)
    assert sizes(index) == sizes(Index())
    assert allocated[-1] <= 1.3 * allocated[0]


@pytest.mark.parametrize(
    "profile",
    [
        "//*" * 30,
        "/a[" + ".//*/*" + "//*/*" * 14 + "/x]",
        "//a[@x]" * 20 + '[@y = "1"]',
        "/a[.//a[.//a[.//a[.//x]]]]",
    ],
)
def test_many_ways_down_cost_bounded_time(profile: str) -> None:
    index = Index()
    add(index, profile)
    deep = parse_text(b'<a x="">' * 200 + b"</a>" * 200)
    index.match(Readings(deep), 2_000_000)  # by all ways it would be 200 over 30


def test_a_message_beyond_the_bound_is_refused_and_the_next_is_not() -> None:
    index = Index()
    query = add(index, "//a[.//b]")
    many = parse_text(b"<a>" * 50 + b"<c/>" * 50 + b"</a>" * 50)
    with pytest.raises(MatchLimitExceeded) as refused:
        index.match(Readings(many), 60)
    assert refused.value.code == "too-many-visits"
    assert index.match(Readings(parse_text(b"<a><b/></a>")), 60) == [query]


def test_counters_of_32_bits_start_again_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yfilter.index.index._TIME_MAX", 12)
    rng = Random(9)
    index = Index()
    live: dict[int, PathExpression] = {}
    for _ in range(60):
        path = matching_path(Profile(random_linear_profile(rng)))
        live[add_path(index, path)] = path
        for _ in range(2):
            message = random_message(rng).stream
            wanted = {query for query, path in live.items() if select(path, message)}
            assert set(index.match(Readings(message), VISITS_MAX)) == wanted
