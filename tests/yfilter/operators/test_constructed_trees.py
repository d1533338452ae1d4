"""Steps in constructed trees go by the columns, as in the message: against lxml on the same tree,
and against the interpreter, for trees of all kinds beside each other."""

from __future__ import annotations

from random import Random

import pytest
from lxml import etree

from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from yfilter.errors import MatchLimitExceeded
from yfilter.language.nodes import DOCUMENT, DynamicError
from yfilter.language.query_parser import parse_expression
from yfilter.operators.evaluation import Evaluation

MESSAGE = parse_text(b"<r><!--c--><a x='1'>t<b/>u</a><a x='2'><b>5</b></a><?pi q?></r>")
TREE = "<e k='0'>a<a i='1'>1<q/></a><b>2</b><!--z--><c k='v'>3<?p q?><d><a>4</a></d></c>y</e>"
# Steps that never lead to the document node, which only lxml's tree has.
INSIDE = (
    *("*", "a", "b", "node()", "text()", "comment()", "processing-instruction('p')", "@*", "@k"),
    *(".//a", "ancestor::*", "ancestor-or-self::*", "following::node()", "preceding::node()"),
    *("following-sibling::node()", "preceding-sibling::*[1]", "self::e", ".//node()", "*[2]"),
    *("a[last()]", "node()[position() mod 2 = 1]", "c[d/a = 4]", "*[. = 2]", "following::*[2]"),
)
ANYWHERE = (*INSIDE, "..", "..//@*", "ancestor::node()", "ancestor-or-self::node()", "*[/r/a]")
FORMS = (
    *("$x/{}", "$x/{}/name()", "count($x/{})", "$x/{} = '2'", "(/r/a, $x/{})/string()"),
    *("$x/{} ! name()", "($x/{})[1]", "($x|$x/{})/name()", "for $y in $x/{} return ($y, $y/..)"),
    *("$x/{} is $x/a", "($x/{}, /r//node())/following::node()/name()", "$x/{}/root()/name()"),
    *("deep-equal($x/{}, $x/*)", "some $z in $x/{} satisfies $z = /r/a/b"),
    *("try {{ $x/{}[/r] }} catch * {{ 'err' }}", "($x/{} intersect $x//*)/name()"),
    "copy $c := ($x/{})[1] modify () return ($c/../name(), $c//node()/name())",
    "let $d := <w>{{$x/{}}}</w> return ($d/@*, $d/node()/name(), $d/*/preceding::node())",
)
ALONE = ("attribute q {'5'}", "text {'abc'}", "comment {'abc'}", "<?p abc?>")


def outcome(expression: str, *, by_oracle: bool = False, strict: bool = False) -> list[str]:
    """The strings of the items, or the error that is raised."""
    parsed = parse_expression(expression)
    try:
        if by_oracle:
            oracle = MessageEvaluator(MESSAGE, strict=strict)
            return list(map(oracle.string, oracle.evaluate(parsed, DOCUMENT, {})))
        evaluation = Evaluation(MESSAGE, strict=strict)
        return list(map(evaluation.trees.string, evaluation.value(parsed)))
    except (DynamicError, MatchLimitExceeded) as error:
        return [error.code]


@pytest.mark.parametrize("seed", range(8))
def test_paths_select_what_those_of_lxml_do(seed: int) -> None:
    random = Random(seed)
    top = etree.fromstring(TREE)
    for _ in range(40):
        path = "/".join(random.choice(INSIDE) for _ in range(random.randint(1, 4)))
        found = top.xpath(path)
        wanted = [str(one) if isinstance(one, str) else one.xpath("string()") for one in found]
        assert outcome(f"let $x := {TREE} return $x/{path}") == wanted, f"seed {seed}: {path}"


@pytest.mark.parametrize("seed", range(12))
def test_trees_beside_each_other_are_those_of_the_interpreter(seed: int) -> None:
    random = Random(seed)
    for _ in range(60):
        path = "/".join(random.choice(ANYWHERE) for _ in range(random.randint(1, 4)))
        made = f"let $x := {TREE} return {random.choice(FORMS).format(path)}"
        for strict in (False, True):
            wanted = outcome(made, by_oracle=True, strict=strict)
            assert outcome(made, strict=strict) == wanted, f"seed {seed}: {made}"


@pytest.mark.parametrize("alone", ALONE)
def test_a_node_without_a_parent_is_a_tree(alone: str) -> None:
    bound = f"let $x := {alone} return "
    assert outcome(f"{bound} count(($x/.., $x/following::node(), $x/preceding::node()))") == ["0"]
    assert outcome(f"{bound} count(($x/self::node(), $x/ancestor-or-self::node()))") == ["2"]
    assert outcome(f"{bound} root($x) is $x") == ["true"]
    assert outcome(f"{bound} ($x | /r)[1]/string()") == ["tu5"]


def test_trees_sort_behind_the_message_as_steps_first_lead_into_them() -> None:
    made = "let $x := <x><y>1</y></x>, $z := <z><y>2</y></z> return ($z/y | /r/a[2]/b | $x/y)"
    assert outcome(made) == ["5", "2", "1"]


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("<e q='1{<a>{2, 3}</a>}{<a>4</a>}5'/>/@q", ["12 345"]),
        ("<e q='{<e q=\"5\"/>}'/>/@q", [""]),
        ("declare function local:f() { <a>{1}</a> }; <e>{local:f()}{text {2}}</e>", ["12"]),
        ("element e { <a>{/r/a[2]/b/text()}</a>, local-name(/*) }", ["5r"]),
    ],
)
def test_trees_hold_trees_wherever_an_expression_may_stand(made: str, wanted: list[str]) -> None:
    assert outcome(made) == outcome(made, by_oracle=True) == wanted
