"""``python -m benchmarks deliver`` on tiny sizes, and what its parts are made of."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import lxml.etree
import pytest

from benchmarks.__main__ import main
from benchmarks.benchmark import WrongAnswers
from benchmarks.delivery.answers import check
from benchmarks.delivery.job import DeliverJob
from benchmarks.delivery.timing import make_matcher
from benchmarks.workload.forms import FORM_EVERYWHERE, FORMS, form_messages
from benchmarks.workload.operators import BASELINES, OPERATORS, make_feeds, mixed_flwor
from yfilter import parse_profile

SEED = 3
XPATH_1 = (
    *("not_equal", "less", "range", "contains", "starts_with", "exists", "not", "not_at_root"),
    *("and", "or", "union", "union_filter", "first", "nth", "last", "count", "join_in_path"),
    *("nested", "not_everywhere", "not_at_root_everywhere", "not_equal_everywhere"),
)

needs_saxon = pytest.mark.skipif(find_spec("saxonche") is None, reason="needs saxonche")


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["deliver", "--quick", *arguments, "--json"]) == 0
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(values, dict)
    return values


@needs_saxon
@pytest.mark.parametrize(
    ("part", "promised"),
    [
        ("paths", {"number", "matches", "all_in_us", "lxml_parse_us", "result_ns_each"}),
        ("flwor", {"flwor_mixed_us", "flwor_checked"}),
        ("returns", {"return_us_each", "lxml_return_us_each", "saxon_return_us_each"}),
        (
            "cliff",
            {"cliff_ratio", "cliff_equality_us_30", "cliff_or_us_30", "form_equality_us_30_5"}
            | {"form_date_us_30_5", "form_date_over_lxml_30_5", "forms_over_lxml_geomean_30_5"}
            | {"forms_over_lxml_least_30_5", "cliff_ratio_30_5", "cliff_checked_30_5"},
        ),
        ("grouping", {"grouping_ms", "grouping_count_ms"}),
        ("links", {"links_1_us", "links_32_us"}),
        ("places", {"places_us_30", "places_looped_us_30", "places_ratio_30"}),
    ],
)
def test_a_part_has_the_promised_keys(
    capsys: pytest.CaptureFixture[str], part: str, promised: set[str]
) -> None:
    some = ("--operators", "or", "join", "aggregate", "--forms", "date")
    values = measured(capsys, "--part", part, *(some if part == "cliff" else ()))
    assert values.keys() >= promised
    assert all(isinstance(values[key], int | float) for key in promised)


SCHEMA = """<schema xmlns="http://purl.oclc.org/dsdl/schematron">
  <ns prefix="o" uri="urn:order"/>
  <let name="most" value="3"/>
  <pattern>
    <rule context="o:item | /o:order/o:gift[contains(@kind, '|')]">
      <let name="n" value="number(@n)"/>
      <assert id="few" test="$n &lt;= $most">Too many.</assert>
      <report id="none" test="$n = 0">None.</report>
    </rule>
    <rule context="/o:order"><assert id="name" test="@name != '&amp;'">A name.</assert></rule>
  </pattern>
</schema>"""


@needs_saxon
def test_rules(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    (folder / "examples").mkdir(parents=True)
    (folder / "order.sch").write_text(SCHEMA)
    (folder / "a part.sch").write_text("<pattern/>")
    for number in range(3):
        (folder / "examples" / f"{number}.xml").write_text(
            f'<order xmlns="urn:order" name="a"><item n="{number}"/><item n="4"/></order>'
        )
    values = measured(capsys, "--part", "rules", "--rules", str(folder))
    assert values["rules_number_orders"] == 3
    assert values["rules_refused_orders"] == 0
    assert values.keys() >= {
        f"{key}_orders"
        for key in ("rules_ms", "saxon_rules_ms", "rules_checked", "rules_imported_per_s")
    }


def test_rules_need_a_rule_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["deliver", "--part", "rules"]) == 2
    assert "needs --rules" in capsys.readouterr().err
    assert main(["deliver", "--part", "rules", "--rules", str(tmp_path)]) == 2
    assert "no schema" in capsys.readouterr().err


@pytest.mark.parametrize("name", OPERATORS)
def test_profiles_of_an_operator_are_distinct_and_understood(name: str) -> None:
    profiles = OPERATORS[name].profiles(10_000, SEED)
    assert len(set(profiles)) == 10_000
    assert profiles[:50] == OPERATORS[name].profiles(50, SEED)
    for profile in profiles[:50]:
        parse_profile(profile)
    assert OPERATORS[name].against in BASELINES


def test_operators_are_as_selective_as_equality() -> None:
    trees = [lxml.etree.fromstring(message) for message in make_feeds(SEED, 10)]

    def matching(name: str) -> float:
        profiles = OPERATORS[name].profiles(400, SEED)
        paths = [lxml.etree.XPath(f"boolean({profile})") for profile in profiles]
        return sum(path(tree) for path in paths for tree in trees) / len(paths) / len(trees)

    baselines = {name: matching(name) for name in ("equality", "equality_everywhere")}
    assert baselines["equality"] == pytest.approx(0.008, rel=0.3)
    for name in XPATH_1:
        against = baselines[OPERATORS[name].against]
        assert matching(name) == pytest.approx(against, rel=0.7), name


@pytest.mark.parametrize("name", FORMS)
def test_profiles_of_a_form_are_distinct_and_understood_and_as_selective(name: str) -> None:
    profiles = FORMS[name].profiles(1_000, 100, SEED)
    assert len({profile for profile, _ in profiles}) == 1_000
    for profile, _ in profiles[:5]:
        parse_profile(profile)
    tree = lxml.etree.fromstring(next(form_messages(FORMS[name], 100, SEED)))
    found = sum(lxml.etree.XPath(f"boolean({xpath})")(tree) for _, xpath in profiles)
    assert found == 1_000 if FORMS[name].against == FORM_EVERYWHERE else 1 <= found <= 30


def test_mixed_profiles_have_what_they_are_said_to_have() -> None:
    profiles = list(mixed_flwor(200, SEED))
    assert len(set(profiles)) == 200
    for word in (" or ", "contains(", "not(", "<hit"):
        assert any(word in profile for profile in profiles)


@needs_saxon
def test_wrong_results_are_told() -> None:
    message = b"<a><b/></a>"
    matcher = make_matcher(["/a/b", "/a/c"])
    job = DeliverJob("paths", checked=1)
    assert check(matcher, ["/a/b", "/a/c"], [message], job) == 2
    with pytest.raises(WrongAnswers, match=re.escape("1 results, by Saxon 0")):
        check(matcher, ["/a/c", "/a/c"], [message], job)
