"""Hostile messages and profiles: bounded cost, by counts not by the clock, and clear refusals."""

from __future__ import annotations

from random import Random

import pytest

from formats.errors import MessageRefused
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.text import parse_text
from yfilter import (
    Conjunction,
    LinkTarget,
    Matcher,
    MatchLimitExceeded,
    MatchLimits,
    ProfileMatch,
    ProfileRefused,
)
from yfilter.language.profile_limits import EvaluationLimits

# Every way to say a lot in a few characters: ambiguous descendants, nested paths of them.
CHAINS = (
    "//*" * 60,
    "//*//*/*" * 20 + "/nothing",
    "//a" * 60 + "[@x = 1]",
    "//a[@x]" * 30 + '[@y = "1"]',
    "/a[" + ".//*/*" + "//*/*" * 14 + "/nothing]",
    "/a[.//a[.//a[.//a[.//a[.//nothing]]]]]",
    "//a[.//a//a//a//a//a//a//a//a//nothing]",
)
DEEP = b'<a x="1">' * 200 + b"</a>" * 200
WIDE = b"<a>" + b'<a x="1"><a/></a>' * 2_000 + b"</a>"


def cost(matcher: Matcher) -> int:
    """Everything that visits_max bounds."""
    return matcher.statistics().index_visits


def matched(matcher: Matcher, message: bytes) -> list[str]:
    return [m.profile_id for m in matcher.match(message, "r") if isinstance(m, ProfileMatch)]


# -- profiles that ask for much


@pytest.mark.parametrize("message", [DEEP, WIDE], ids=["deep", "wide"])
@pytest.mark.parametrize("profile", CHAINS)
def test_a_chain_of_descendants_costs_no_more_than_steps_times_elements_times_depth(
    profile: str, message: bytes
) -> None:
    matcher = Matcher()
    matcher.add(profile, "it")
    stream = parse_text(message)
    matched(matcher, message)
    steps = profile.count("/") + 1
    assert cost(matcher) <= steps * len(stream) * 201 * 2  # all ways down would be 200 over 60


@pytest.mark.parametrize("profile", CHAINS)
def test_a_chain_of_descendants_as_a_routing_query(profile: str) -> None:
    matcher = Matcher()
    other = Conjunction.parse("//b")
    chain = profile.partition("[")[0] if "[." in profile else profile
    text = " and ".join(sorted((chain, "//a//a/a//nothing")))
    matcher.add_route(Conjunction.parse(text), LinkTarget("r", "link"))
    matcher.add_route(other, LinkTarget("r", "open"))
    assert matched(matcher, DEEP) == []
    assert cost(matcher) <= 300 * 200 * 201


def test_states_that_are_alternatives_of_many_positions_do_not_multiply() -> None:
    """``//a/*/*…`` has a deterministic state for each set of positions: two to the tenth here."""
    rng = Random(5)
    bound = 64 * 1024
    matcher = Matcher(MatchLimits(lazy_bytes_max=bound))
    roomy = Matcher()
    for name in "abc":
        for engine in (matcher, roomy):
            engine.add(f"//{name}" + "/*" * 9, name)
    for _ in range(30):
        names = [rng.choice("abc") for _ in range(100)]
        message = "".join(f"<{name}>" for name in names) + "".join(
            f"</{name}>" for name in reversed(names)
        )
        assert matched(matcher, message.encode()) == matched(roomy, message.encode())
        assert matcher.statistics().index_lazy_bytes <= 2 * bound
    sizes = matcher.statistics()
    assert sizes.index_lazy_turns > 0  # the bound was reached, many times over
    assert sizes.index_heads == 30 * 100


def refused(matcher: Matcher, message: bytes) -> str:
    with pytest.raises(MatchLimitExceeded) as exceeded:
        matched(matcher, message)
    assert matched(matcher, b"<r/>") == []  # the next message is not affected
    return exceeded.value.code


def test_heads_are_counted_for_every_child_that_starts_from_them() -> None:
    """Attributes by depth by children: none of the children has a head of its own."""
    matcher = Matcher(MatchLimits(visits_max=100_000))
    for number in range(100):
        matcher.add(f'//a[@x{number} = "1"]/*/c')
    attributes = b" ".join(b'x%d="1"' % number for number in range(100))
    message = b"<a %s><b>" % attributes + b"<d/>" * 2_000 + b"</b></a>"
    assert refused(matcher, message) == "too-many-visits"
    assert matcher.statistics().index_heads < 2_500


def test_heads_that_are_compared_with_each_other_are_counted() -> None:
    matcher = Matcher(MatchLimits(visits_max=200_000))
    for number in range(150):
        matcher.add(f"//a[@x{number} > 1]//c")
    attributes = [
        b" ".join(b'x%d="%d"' % (number, depth) for number in range(150)) for depth in range(2, 60)
    ]
    message = b"".join(b"<a %s>" % one for one in attributes) + b"</a>" * len(attributes)
    assert refused(matcher, message) == "too-many-visits"


def test_candidates_are_counted_and_their_conditions() -> None:
    matcher = Matcher(MatchLimits(visits_max=20_000))
    for number in range(200):
        matcher.add(f'//b[@x = "1"][@y != "{number}"]')
    one = b'<b x="1"/>'
    assert matched(matcher, b"<a>" + one * 50 + b"</a>") == []
    assert matcher.statistics().candidates_profile == 50 * 200
    assert refused(matcher, b"<a>" + one * 1_000 + b"</a>") == "too-many-visits"
    many = Matcher(MatchLimits(visits_max=20_000))
    conditions = "".join(f"[@c{number}]" for number in range(200))
    many.add(f'//b[@x = "1"]{conditions}[@y]')
    attributes = b" ".join(b'c%d=""' % number for number in range(200))
    message = b'<a><b y=""/>' + b'<b x="1" %s/>' % attributes * 200 + b"</a>"
    assert refused(many, message) == "too-many-visits"


def test_the_work_for_links_counts_against_the_same_bound() -> None:
    matcher = Matcher(MatchLimits(visits_max=20))
    matcher.add_route(Conjunction.parse("//x"), LinkTarget("r", "link"))
    matcher.add("//y")
    assert list(matcher.match(b"<r>" + b"<a/>" * 7 + b"</r>", "r")) == []
    with pytest.raises(MatchLimitExceeded):
        list(matcher.match(b"<r>" + b"<a/>" * 12 + b"</r>", "r"))


def test_what_operators_look_at_is_counted_though_they_find_nothing() -> None:
    matcher = Matcher(MatchLimits(visits_max=20_000))
    for number in range(50):
        matcher.add(f'//b[not(@x != "{number}")]')
    message = b"<a>" + b'<b x="x"/>' * 1_000 + b"</a>"
    assert refused(matcher, message) == "too-many-visits"


# Conditions whose cost is that of the message squared: by compiled operators and the interpreter.
SQUARES = (
    "//b[count(following-sibling::b[position() < last()]) > 999999]",
    "//b[../b[@x = 1]]",
    "//b[not(not(../b[@x = 1]))]",
    "//b[every $b in ../b satisfies $b/@x = $b/@y]",
    "//b[count(../b[preceding-sibling::b]) > 999999]",
    "//b[@x = distinct-values(following-sibling::b/@y)]",
    "//b[following::b[last()]/c]",
)


@pytest.mark.parametrize("profile", SQUARES)
def test_a_condition_has_one_bound_for_all_elements_of_a_message(profile: str) -> None:
    """However many elements it is asked of, and whoever else is asked of them."""
    matcher = Matcher(MatchLimits(evaluation=EvaluationLimits(visits_max=5_000)))
    matcher.add(profile, "dear")
    matcher.add("//b[not(c)]", "modest")
    message = b"<a>" + b"<b/>" * 1_000 + b"</a>"
    for turn in (1, 2):
        assert matched(matcher, message) == ["modest"]
        assert matcher.statistics().over_limit == turn
        assert cost(matcher) < turn * 20_000
    assert matched(matcher, b"<a><b x='2'/></a>") == ["modest"]
    assert matcher.statistics().over_limit == 2


def test_what_a_condition_asks_for_and_does_not_get_costs_the_message_nothing() -> None:
    matcher = Matcher()
    matcher.add("//a[count(1 to 1000000000) > 5]")
    matcher.add("//a", "modest")
    assert matched(matcher, b"<a/>") == ["modest"]
    assert cost(matcher) < 10_000_000


def test_what_the_interpreter_looks_at_counts_against_the_bound_of_the_message() -> None:
    matcher = Matcher(MatchLimits(visits_max=10_000))
    for number in range(10):
        matcher.add(f"//b[count(1 to {2_000 + number}) < 2]")
    assert refused(matcher, b"<a><b/></a>") == "too-many-visits"


@pytest.mark.parametrize(
    ("profile", "code"),
    [
        ("//*" * 1_025, "too-many-steps"),
        ("/a" + "[a" * 70 + "]" * 70, "too-deep"),
        ("/a[" + "(" * 70 + "a" + ")" * 70 + "]", "too-deep"),
        ("/a[@x = '" + "x" * 270_000 + "']", "too-long"),
        (
            " ".join(f"for $v{number} in /a" for number in range(257)) + " return $v0",
            "too-many-clauses",
        ),
    ],
)
def test_a_profile_beyond_a_bound_is_refused_and_leaves_nothing(profile: str, code: str) -> None:
    matcher = Matcher()
    with pytest.raises(ProfileRefused) as refusal:
        matcher.add(profile.replace("'", '"'))
    assert refusal.value.code == code
    assert matcher.statistics() == Matcher().statistics()


# -- messages


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"<a>" * 100_000 + b"</a>" * 100_000, "too-deep"),
        (b"<a>" * 300, "too-deep"),  # before it is known whether it ends
        (b"<a " + b" ".join(b'a%d=""' % n for n in range(15_000)) + b"/>", "too-many-attributes"),
        (b"<a>" + b" " * DEFAULT_LIMITS.bytes_max + b"</a>", "too-large"),
        (b"<a>" + b"".join(b"<a%d/>" % n for n in range(30_000)) + b"</a>", "too-many-names"),
        (b"<" + b"a" * 2_000 + b"/>", "name-too-long"),
        (
            b"<!DOCTYPE a [<!ENTITY x '"
            + b"y" * 1_000
            + b"'>"
            + b"".join(
                b"<!ENTITY x%d '%s'>" % (n, b"&x%s;" % (b"%d" % (n - 1) if n else b"") * 10)
                for n in range(6)
            )
            + b"]><a>&x5;</a>",
            "entity-expansion",
        ),
    ],
)
def test_a_message_beyond_a_bound_is_refused_before_it_is_matched(
    message: bytes, code: str
) -> None:
    matcher = Matcher()
    matcher.add("//a")
    with pytest.raises(MessageRefused) as refusal:
        matcher.match(message)
    assert refusal.value.code == code
    assert matcher.statistics().messages == 0


def test_a_message_at_the_bounds_costs_its_size() -> None:
    """As deep and with as many attributes as may be: every element is looked at once."""
    matcher = Matcher()
    for number in range(20):
        matcher.add(f'//a[@a{number} = "1"]')
    attributes = b" ".join(b'a%d="0"' % number for number in range(1_000))
    depth = DEFAULT_LIMITS.depth_max
    message = b"".join(b"<a %s>" % attributes for _ in range(depth)) + b"</a>" * depth
    assert matched(matcher, message) == []
    assert cost(matcher) <= 25 * depth


def test_limits_are_the_callers() -> None:
    matcher = Matcher(message_limits=MessageLimits(elements_max=3))
    matcher.add("/a")
    assert len(matched(matcher, b"<a><b/><b/></a>")) == 1
    with pytest.raises(MessageRefused) as refusal:
        matcher.match(b"<a><b/><b/><b/></a>")
    assert refusal.value.code == "too-many-elements"
