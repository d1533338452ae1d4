"""The queries of XMark as profiles, on the auction message that the QT3 suite has, and a small one.

Each is registered and served as any other, with the limits of a broker but for its clock, and is

- **right**: what is delivered is what the suite has as the answer, on the small message Saxon's;
- **told**: refused with a reason, or delivered with the limit that left it without results;
- else wrong, or vanished: then the result is not good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lxml import etree

from benchmarks.conformance_random import ask, same_documents
from benchmarks.conformance_suite import Case, cases_of, sets_of
from demo.saxon import Answer, Saxon, SaxonError
from yfilter import Matcher
from yfilter.errors import MatchLimitExceeded, ProfileRefused

_SET = "app-XMark"
_WHOLE = "XMark-All"  # all queries in one, with what each of them gives
_SMALL = 20  # of that many siblings of one name the small message has the first


@dataclass(frozen=True, slots=True)
class XmarkResult:
    """What became of each query on the whole message and on the small one."""

    verdicts: Mapping[str, tuple[str, str]]

    @property
    def told(self) -> int:
        """The queries of which the user hears: right, or told why not, on both messages."""
        return sum(
            all(one.startswith(("right", "told")) for one in pair)
            for pair in self.verdicts.values()
        )

    @property
    def good(self) -> bool:
        return self.told == len(self.verdicts)

    def to_text(self) -> str:
        lines = [f"{'XMark':<8}{'the whole message':<44}a small one"]
        lines += (f"{name:<8}{whole:<44}{small}" for name, (whole, small) in self.verdicts.items())
        return "\n".join(lines)

    def to_json(self) -> Mapping[str, object]:
        whole, small = (
            Counter(pair[side].partition(":")[0] for pair in self.verdicts.values())
            for side in range(2)
        )
        return {"queries": len(self.verdicts), "whole": dict(whole), "small": dict(small)}


def run_xmark(directory: Path) -> XmarkResult | None:
    """The queries of the suite in ``directory``; None if it has none, or Saxon is not there."""
    file = sets_of(directory).get(_SET)
    if file is None or find_spec("saxonche") is None:
        return None
    verdicts = {}
    message = small = b""
    for case in cases_of(directory, file):
        if case.document is None or case.name == _WHOLE or case.beyond:
            continue
        if not message:
            message = case.document.read_bytes()
            small = _cut(message)
        name = case.name.rpartition("-")[2]
        answer = _of_saxon(case.query, small)
        verdicts[name] = (
            _verdict(case.query, message, _of_suite(case)),
            _verdict(case.query, small, answer),
        )
    return XmarkResult(verdicts)


def _cut(message: bytes) -> bytes:
    """The message with at most ``_SMALL`` siblings of one name."""
    root = etree.fromstring(message)
    for element in list(root.iter()):
        seen: Counter[str] = Counter()
        for child in list(element):
            seen[str(child.tag)] += 1
            if seen[str(child.tag)] > _SMALL:
                element.remove(child)
    return bytes(etree.tostring(root))


def _of_suite(case: Case) -> Answer:
    """The answer that the suite has; an element without content is delivered to nobody."""
    file = case.result.get("file")
    text = (case.home / str(file)).read_bytes() if file else str(case.result.text).encode()
    root = etree.fromstring(text)
    return [text] if len(root) or root.text else []


def _of_saxon(query: str, message: bytes) -> Answer:
    try:
        with Saxon() as saxon:
            saxon.load([message])
            return ask(saxon, query)[0]
    except ProfileRefused:
        return []  # _verdict says so


def _verdict(query: str, message: bytes, wanted: Answer) -> str:
    """What becomes of a query on a message; ``wanted``: the documents that it should make."""
    matcher = Matcher()
    try:
        matcher.add(query, "xmark")
        made = list(matcher.deliver(message))
    except ProfileRefused as refused:
        return f"told: {refused.reason}"
    except MatchLimitExceeded as exceeded:
        return f"told: {exceeded.code}"
    limits = [one.exceeded.code for one in made if one.exceeded is not None]
    if limits:
        return f"told: {limits[0]}"
    if isinstance(wanted, SaxonError):
        return f"wrong: Saxon raises {wanted.code}"
    found = [one for delivered in made for one in delivered.results]
    if same_documents(found, wanted, message):
        return "right" if found else "right: nothing"
    return "wrong" if found else "vanished"
