"""What a case of the QT3 suite yields, held against what the suite asserts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from lxml import etree

from formats.text import parse_text
from yfilter.errors import ProfileRefused
from yfilter.language.evaluator import Evaluator, effective_boolean, written
from yfilter.language.function_library import deep_equal
from yfilter.language.functions import ANYTHING
from yfilter.language.nodes import Atom, DynamicError, Item
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_parser import parse_expression
from yfilter.operators.evaluation import Evaluation

ACCEPTED = 1_795_903_200_123_456  # the current time, in microseconds of the epoch
LIMITS = ProfileLimits(
    length_max=1 << 20, steps_max=10_000, clauses_max=10_000, idle_paths_refused=False
)


@dataclass
class Outcome:
    """A value with what evaluated it, or the codes that the error may have."""

    value: list[Item] = field(default_factory=list)
    evaluation: Evaluation | None = None
    errors: frozenset[str] = frozenset()


def check(expected: etree._Element, outcome: Outcome, home: Path) -> str:
    """What is wrong with the outcome; "" if nothing is.  ``home``: where files of results are."""
    word = etree.QName(expected).localname
    parts = [part for part in expected if isinstance(part.tag, str)]
    if word == "any-of":
        problems = [check(part, outcome, home) for part in parts]
        return "" if "" in problems else "; ".join(problems)
    if word == "all-of":
        return next((problem for part in parts if (problem := check(part, outcome, home))), "")
    if word == "not":
        return "" if check(parts[0], outcome, home) else "the opposite"
    if word == "error":
        code = str(expected.get("code"))
        if outcome.errors & {code, "*"} or (outcome.errors and code == "*"):
            return ""
        return f"{_said(outcome)} instead of {code}"
    if outcome.errors:
        return _said(outcome)
    assert outcome.evaluation is not None
    try:
        return _check_value(word, expected, outcome.value, outcome.evaluation, home)
    except (DynamicError, etree.XMLSyntaxError) as error:
        return f"{word}: {type(error).__name__} {str(error).splitlines()[0]}"


def _said(outcome: Outcome) -> str:
    return f"error {min(outcome.errors)}" if outcome.errors else "a value"


def _check_value(
    word: str,
    expected: etree._Element,
    value: list[Item],
    evaluation: Evaluation,
    home: Path,
) -> str:
    evaluator = evaluation.trees
    wanted = str(expected.text or "")
    match word:
        case "assert-true" | "assert-false":
            return "" if value == [word == "assert-true"] else f"{_shown(evaluator, value)}"
        case "assert-empty":
            return "" if not value else f"{_shown(evaluator, value)}, not empty"
        case "assert-count":
            return "" if len(value) == int(wanted) else f"{len(value)} items, not {wanted}"
        case "assert-string-value":
            found = " ".join(evaluator.string(item) for item in value)
            if expected.get("normalize-space") == "true":
                found, wanted = " ".join(found.split()), " ".join(wanted.split())
            return "" if found == wanted else f"{found[:60]!r}, not {wanted[:60]!r}"
        case "assert-eq":
            return _asserted(evaluation, value, f"$result eq ({wanted})")
        case "assert-deep-eq":
            return _asserted(evaluation, value, f"deep-equal($result, ({wanted}))")
        case "assert-type":
            return _asserted(evaluation, value, f"$result instance of {wanted}")
        case "assert":
            return _asserted(evaluation, value, wanted)
        case "assert-permutation":
            same = _is_permutation(evaluator, evaluator.atoms(value), _evaluated(wanted))
            return "" if same else f"{_shown(evaluator, value)}, not {wanted}"
        case "assert-xml":
            if expected.get("file"):
                wanted = (home / str(expected.get("file"))).read_text(encoding="utf-8")
            text = written(evaluator, value)
            same = _is_same_xml(text, wanted.encode(), expected.get("ignore-prefixes") == "true")
            return "" if same else f"{text[:80]!r}, not {wanted[:80]!r}"
        case "serialization-matches":
            flags = re.DOTALL if "s" in str(expected.get("flags")) else 0
            text = written(evaluator, value)
            return "" if re.search(wanted, text.decode(), flags) else f"{text[:80]!r}"
        case _:  # of serialization, or of what other versions have
            raise ProfileRefused("unsupported", word)


def _asserted(evaluation: Evaluation, value: list[Item], condition: str) -> str:
    """What is wrong where a condition of ``$result`` does not hold."""
    parsed = parse_expression(_as_xquery(condition), LIMITS, {"result": ANYTHING}, ANYTHING)
    held = effective_boolean(evaluation.value(parsed, None, {"result": value}))
    return "" if held else f"{_shown(evaluation.trees, value)}: {condition} does not hold"


def _as_xquery(condition: str) -> str:
    """An assertion, which is XPath: there a carriage return in it stays one."""
    return condition.replace("\r", "&#13;")


def _evaluated(expression: str) -> list[Item]:
    stream = parse_text(b"<none/>")
    stream.accepted = ACCEPTED
    parsed = parse_expression(_as_xquery(expression), LIMITS, context=ANYTHING)
    return list(Evaluation(stream, strict=True).value(parsed, None))


def _is_permutation(evaluator: Evaluator, found: list[Atom], wanted: list[Item]) -> bool:
    rest = list(wanted)
    for atom in found:
        equal = (place for place, one in enumerate(rest) if deep_equal(evaluator, [atom], [one]))
        if (place := next(equal, -1)) < 0:
            return False
        rest.pop(place)
    return not rest


def _shown(evaluator: Evaluator, value: list[Item]) -> str:
    return repr(" ".join(evaluator.string(item) for item in value)[:60])


def _is_same_xml(one: bytes, other: bytes, any_prefixes: bool) -> bool:
    """By both canonical forms: where two prefixes mean one namespace, the newer chooses either."""
    texts = [f"<x>{xml.decode()}</x>" for xml in (one, other)]
    newer = {
        etree.canonicalize(text, with_comments=True, rewrite_prefixes=any_prefixes)
        for text in texts
    }
    return len(newer) == 1 or len({_inclusive(text) for text in texts}) == 1


def _inclusive(text: str) -> bytes:
    try:
        return bytes(etree.tostring(etree.fromstring(text), method="c14n", with_comments=True))
    except etree.C14NError:  # there is none where the URI of a namespace is a relative one
        return text.encode()
