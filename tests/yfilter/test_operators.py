"""Each operator alone, fed by hand."""

from __future__ import annotations

import pytest

from formats.text import parse_text
from tests.yfilter.test_nfa import steps
from yfilter.engine.match_limits import MatchLimits
from yfilter.engine.nfa import Nfa
from yfilter.engine.operators.conjunction import And
from yfilter.engine.operators.join import Join, ancestors_by
from yfilter.engine.operators.operator import Operator
from yfilter.engine.operators.path import Path
from yfilter.engine.operators.residual import Residual
from yfilter.engine.operators.selection import Selection
from yfilter.engine.scratch import DOCUMENT, Scratch
from yfilter.engine.targets import LinkTarget, Priority, Query
from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_expression, parse_profile

# <a id="x"> <a> <b> <a> <c/> </a> <c/> </b> </a> <c/> </a>; elements 0 a, 1 a, 2 b, 3 a, 4 5 6 c
RECURSIVE = b'<a id="x"><a><b><a><c/></a><c>t</c></b></a><c/></a>'


def scratch(message: bytes = RECURSIVE, tuples_max: int = 1000) -> Scratch:
    return Scratch(parse_text(message), MatchLimits(tuples_max=tuples_max))


def source(path: str = "/a") -> Path:
    return Path(Nfa().add(steps(path)), steps(path))


def test_a_selection_keeps_the_elements_that_meet_its_condition() -> None:
    selection = Selection(source(), parse_expression('@id = "x" or text() = "t"'))
    assert selection.execute([[0, 1, 3, 5]], scratch()) == [0, 5]
    assert selection.describe() == 'σ @id = "x" or text() = "t"'


def test_a_residual_may_look_at_the_whole_message() -> None:
    residual = Residual(source(), parse_expression("not(b) and count(//c) = 3"))
    assert residual.execute([[0, 1, 2]], scratch()) == [0, 2]
    assert residual.describe() == "residual not(b) and count(//c) = 3"


def test_a_residual_has_one_bound_for_all_elements_of_a_message() -> None:
    limits = MatchLimits(evaluation=EvaluationLimits(visits_max=100))
    message = Scratch(parse_text(b"<a>" + b"<b/>" * 30 + b"</a>"), limits)
    children = list(range(1, 31))
    residual = Residual(source(), parse_expression("count(//b) > 0"))
    # Each evaluation visits the 31 elements of the message.
    assert residual.execute([children[:3]], message) == children[:3]
    with pytest.raises(MatchLimitExceeded) as exceeded:
        residual.execute([children[:4]], message)
    assert exceeded.value.code == "too-many-visits"


@pytest.mark.parametrize(
    ("relation", "leaf", "uppers"),
    [
        ("/c", 4, {3}),
        ("/c", 6, {0}),
        ("//c", 4, {3, 2, 1, 0}),
        ("/a/c", 4, {2}),
        ("/b/c", 5, {1}),
        ("/b/c", 4, set()),
        ("//a/c", 4, {2, 1, 0}),
        ("//a//c", 5, {0}),
        ("//a//a//c", 5, set()),
        ("//a//*//c", 4, {0}),
        ("/*/c", 6, set()),  # the document node is no element
        ("//c", 0, set()),
    ],
)
def test_a_relation_leads_up_to_every_element_from_which_it_leads_down(
    relation: str, leaf: int, uppers: set[int]
) -> None:
    found = ancestors_by(steps(relation), leaf, scratch())
    assert set(found) == uppers
    assert len(found) == len(uppers)


def test_a_join_asks_for_an_ancestor_above_and_descendants_below() -> None:
    here, upper, lower, other = source("//a"), source("/a"), source("//c"), source("//b")
    below = ((lower, steps("/c")), (other, steps("//b")))
    join = Join(here, (upper, steps("//a")), below)
    assert join.inputs == (here, upper, lower, other)
    assert join.execute([[0, 1, 3], [0], [4, 5, 6], [2]], scratch()) == []
    # Element 1 has b below; give it a c of its own by another relation.
    loose = Join(here, (upper, steps("//a")), ((lower, steps("//c")), (other, steps("/b"))))
    assert loose.execute([[0, 1, 3], [0], [4, 5, 6], [2]], scratch()) == [1]
    assert loose.describe() == "⋈ ↑//a ↓//c ↓/b"


def test_a_join_is_the_same_in_whatever_order_its_branches_come() -> None:
    here, one, two = source("/a"), source("/a/b"), source("/a/c")
    first = Join(here, None, ((one, steps("/b")), (two, steps("/c"))))
    second = Join(here, None, ((two, steps("/c")), (one, steps("/b"))))
    assert first.key == second.key
    assert first.key != Join(here, None, ((one, steps("//b")), (two, steps("/c")))).key
    assert first.key != Join(here, (one, steps("/b")), ((two, steps("/c")),)).key


def test_a_join_costs_depth_times_steps_however_many_ways_lead_through() -> None:
    depth = 200
    message = scratch(b"<a>" * depth + b"<b/>" + b"</a>" * depth, tuples_max=100_000)
    relation = steps("//a" * 20 + "//b")  # more than 10**27 ways through
    assert len(ancestors_by(relation, depth, message)) == depth - 20
    assert message.tuples < depth * 21


def test_and_is_about_the_message() -> None:
    one, two = source("/a"), source("/b")
    assert And((one, two)).execute([[0], [1, 2]], scratch()) == [DOCUMENT]
    assert And((one, two)).key == And((two, one)).key


def test_an_input_is_taken_once() -> None:
    path = source()
    with pytest.raises(ValueError, match="once"):
        And((path, path))


def test_a_path_is_not_executed() -> None:
    with pytest.raises(TypeError, match="NFA"):
        source().execute([], scratch())


def test_the_budget_of_tuples_is_for_the_message() -> None:
    budget = scratch(tuples_max=10)
    budget.charge(10)
    with pytest.raises(MatchLimitExceeded) as exceeded:
        budget.charge(1)
    assert exceeded.value.code == "too-many-tuples"


def test_what_an_operator_leads_to_is_counted_upstream() -> None:
    path = source()
    left, right = (Selection(path, parse_expression(text)) for text in ("@a", "@b"))
    conjunction = And((left, right))
    operators: tuple[Operator, ...] = (path, left, right, conjunction)
    for operator in operators[1:]:
        operator.connect()
    query = Query(Profile(parse_profile("/a").body), remainder=False)
    link = LinkTarget("root", "link")

    def leads_to(priority: Priority) -> list[int]:
        return [operator.leads_to[priority] for operator in operators]

    conjunction.annotate(link)
    left.annotate(query)
    assert leads_to(Priority.ROUTE) == [2, 1, 1, 1]
    assert leads_to(Priority.TRANSFORMATION) == [0, 0, 0, 0]
    assert leads_to(Priority.PROFILE) == [1, 1, 0, 0]

    conjunction.forget(link)
    assert leads_to(Priority.ROUTE) == [0, 0, 0, 0]
    left.forget(query)
    assert leads_to(Priority.PROFILE) == [0, 0, 0, 0]
    conjunction.disconnect()
    assert not left.used and not right.used and path.used
