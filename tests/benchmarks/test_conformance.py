"""The runner of the suite on one of its own; on the real one where it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.conformance import run_suite
from benchmarks.conformance_random import Comparison, compare_at_random, deliver_by_both
from benchmarks.corpus_queries import FOLDERS
from tests.formats.support import SHARED_DATA
from tests.oracle.reference import ReferenceMatcher

_HEAD = '<{0} xmlns="http://www.w3.org/2010/09/qt-fots-catalog"{1}>{2}</{0}>'
_CASES = {
    "right": ("count(//a)", "<assert-eq>2</assert-eq>", ""),
    "wrong": ("count(//a)", "<assert-eq>3</assert-eq>", ""),
    "xml": ("&lt;r>{//a[1]}&lt;/r>", "<assert-xml>&lt;r>&lt;a/>&lt;/r></assert-xml>", ""),
    "error": ("1 + 'x'", '<error code="XPTY0004"/>', ""),
    "other-error": ("1 + 'x'", '<error code="FOAR0001"/>', ""),
    "no-error": ("1 + 1", '<error code="XPTY0004"/>', ""),
    "refused": ("1 +", '<error code="XPST0003"/>', ""),
    "refused-as-out": ("doc(1)", '<error code="XPTY0004"/>', ""),
    "typed": ("1 div 2", "<assert-type>xs:decimal</assert-type>", ""),
    "not-typed": ("1 div 2", "<assert-type>xs:integer</assert-type>", ""),
    "either": ("()", "<any-of><assert-true/><assert-empty/></any-of>", ""),
    "out": ("doc('x')", "<assert-true/>", ""),
    "older": ("1", "<assert-eq>1</assert-eq>", '<dependency type="spec" value="XQ10 XQ30"/>'),
    "named": ("declare function count() {1}; 1", '<error code="XQST0045"/>', ""),
    "permuted": (
        "1.2, '1.2', 1",
        "<assert-permutation>'1.2', 1, 1.2</assert-permutation>",
        "",
    ),
    "not-permuted": (
        "1.2, '1.2', 1",
        "<assert-permutation>'1.2', 1, '1.2'</assert-permutation>",
        "",
    ),
    "carriage-return": ("'&amp;#13;'", "<assert-eq>'&#13;'</assert-eq>", ""),
    "prefixes": (
        '&lt;p:r xmlns:p="u"/>',
        '<assert-xml ignore-prefixes="true">&lt;q:r xmlns:q="u"/></assert-xml>',
        "",
    ),
    "other-prefixes": (
        '&lt;p:r xmlns:p="u"/>',
        '<assert-xml>&lt;q:r xmlns:q="u"/></assert-xml>',
        "",
    ),
    "newer": ("1", "<assert-eq>1</assert-eq>", '<dependency type="spec" value="XQ30+"/>'),
}


def _suite(directory: Path) -> Path:
    cases = "".join(
        f'<test-case name="{name}">{more}<environment ref="e"/><test>{test}</test>'
        f"<result>{result}</result></test-case>"
        for name, (test, result, more) in _CASES.items()
    )
    environment = '<environment name="e"><source role="." file="d.xml"/></environment>'
    (directory / "d.xml").write_text("<o><a/><a/></o>")
    (directory / "s.xml").write_text(_HEAD.format("test-set", ' name="s"', environment + cases))
    (directory / "catalog.xml").write_text(
        _HEAD.format("catalog", "", '<test-set name="s" file="s.xml"/>')
    )
    return directory


def test_cases_are_classified_run_and_judged(tmp_path: Path) -> None:
    report = run_suite(_suite(tmp_path), ("s",))["s"]
    assert report.passed == 10
    assert set(report.failed) == {
        *("wrong", "no-error", "other-error", "not-typed"),
        *("not-permuted", "other-prefixes"),
    }
    (out,) = report.out
    assert out.startswith("unsupported: doc() is not in the profile language")
    assert report.out.total() == 2
    assert dict(report.beyond) == {"needs XQ30+": 1, "needs XQ10 XQ30": 1}
    assert report.coverage == pytest.approx(16 / 18)


def test_what_yields_a_value_is_delivered_as_well(tmp_path: Path) -> None:
    report = run_suite(_suite(tmp_path), ("s",))["s"]
    assert report.delivered == 7  # right, xml, either, typed, permuted and the two behind it


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["language", str(tmp_path)]) == 2
    assert main(["language", str(_suite(tmp_path)), "--all", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["qt3_failed"], found["qt3_coverage"]) == (6, 0.8889)
    suite = found["suite"]
    assert (suite["passed"], suite["failed"], suite["out"]) == (10, 6, 2)


def test_random_profiles_agree_with_the_oracles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["language"]) == 2
    assert main(["language", "--random", "50", "--seed", "11", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["random"]
    assert found["seed"] == 11
    for level in ("XPath 1.0", "XPath 2.0"):
        assert found[level]["pairs"] > 200
        assert found[level]["matching"] > 30


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no reference data here")
@pytest.mark.parametrize("folder", FOLDERS)
def test_both_engines_agree_with_the_oracles_on_the_messages_of_others(folder: str) -> None:
    """Few profiles here; a campaign has more, and expat's reading of the messages, too."""
    found = compare_at_random(8, 11, SHARED_DATA / folder)
    assert found.good, found.to_text()
    for one in found.comparisons.values():
        assert one.engines >= 5 * (one.profiles - 1) > 0
    assert sum(one.matching for one in found.comparisons.values()) > 20


def test_engines_that_differ_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Comparison("none")
    monkeypatch.setattr(ReferenceMatcher, "match", lambda *_: iter(()))
    assert deliver_by_both(["//a", "//b"], [b"<a/>"], found) == [{}]
    assert len(found.disagreements) == 1 and found.engines == 2


@pytest.mark.skipif("ONYX_QT3" not in os.environ, reason="ONYX_QT3 names no suite")
def test_the_real_suite() -> None:
    reports = run_suite(Path(os.environ["ONYX_QT3"]), ("prod-AxisStep.abbr", "prod-Predicate"))
    assert sum(report.passed for report in reports.values()) > 150
