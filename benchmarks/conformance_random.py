"""Random profiles on random messages, held against other people's XPath and XQuery.

===========  ==============================  =================================================
level        oracle                          compared
===========  ==============================  =================================================
XPath 1.0    lxml (libxml2)                  whether each message matches
XPath 2.0    elementpath; Saxon has the       the value, item by item, as strings
             last word where they differ
XQuery       Saxon, when it is installed     the delivered documents, as canonical XML
===========  ==============================  =================================================

A profile that is served answers no message with an error; where XQuery raises one (which
``MessageEvaluator(strict=True)`` does, too) the results are not comparable, and counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from importlib.util import find_spec
from random import Random
from typing import TypeVar

from elementpath import ElementPathError, XPath2Parser, XPathContext
from elementpath.datatypes import UntypedAtomic
from lxml import etree

from benchmarks.random_queries import NAMESPACE, Level, QueryWriter, random_message
from demo.oracle import canonical
from demo.saxon import Answer, Form, Saxon, SaxonError
from formats.element_stream import ElementStream
from formats.text import parse_text
from yfilter import Matcher, ProfileMatch
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.construction import written
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.matching_path import decisive_parts, is_path
from yfilter.language.nodes import DOCUMENT, Construction, DynamicError, Focus
from yfilter.language.query_ast import Computed, Constructor, UserCall
from yfilter.language.query_parser import parse_expression, parse_profile
from yfilter.language.query_text import unparse

_NAMESPACES = {"u": NAMESPACE}
_BATCH = 50  # profiles on the same messages
_MESSAGES = 5
_SHOWN_MAX = 20
_COUNTS = (
    *("profiles", "pairs", "matching", "errors", "one_sided", "overruled", "refused"),
    "disagreements",
)


@dataclass
class Comparison:
    """One level: ``pairs`` of a profile and a message, of which ``matching`` gave something;
    ``errors`` where both sides raised one; ``one_sided`` where one did, as it may (another order
    of evaluation); ``overruled`` where Saxon says that the oracle is wrong; ``refused`` profiles
    that the generator made and the parser does not take."""

    oracle: str
    profiles: int = 0
    pairs: int = 0
    matching: int = 0
    errors: int = 0
    one_sided: int = 0
    overruled: int = 0
    refused: int = 0
    disagreements: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return {
            name: len(self.disagreements) if name == "disagreements" else getattr(self, name)
            for name in _COUNTS
        }

    def disagree(self, profile: str, message: bytes, ours: object, theirs: object) -> None:
        self.disagreements.append(
            f"{profile}\n  on {message.decode()}\n  ours: {ours}\n  {self.oracle}: {theirs}"
        )


@dataclass(frozen=True, slots=True)
class RandomResult:
    """What was compared, by level."""

    seed: int
    comparisons: Mapping[str, Comparison]

    @property
    def good(self) -> bool:
        return not any(one.disagreements for one in self.comparisons.values())

    def to_text(self) -> str:
        lines = [f"random profiles, seed {self.seed}"]
        lines.append(f"{'level':<10}{'oracle':<12}" + "".join(f"{name:>14}" for name in _COUNTS))
        for level, one in self.comparisons.items():
            counts = "".join(f"{count:>14}" for count in one.counts().values())
            lines.append(f"{level:<10}{one.oracle:<12}{counts}")
        for one in self.comparisons.values():
            lines += one.disagreements[:_SHOWN_MAX]
        return "\n".join(lines)

    def to_json(self) -> Mapping[str, object]:
        levels = {
            level: {"oracle": one.oracle, **one.counts()} for level, one in self.comparisons.items()
        }
        return {"seed": self.seed, **levels}


def compare_at_random(number: int, seed: int) -> RandomResult:
    """``number`` profiles of each level, each on some messages."""
    comparisons = {"XPath 1.0": _against_lxml(number, Random(seed))}
    if find_spec("saxonche") is None:
        comparisons["XPath 2.0"] = _against_elementpath(number, Random(seed + 1), None)
        return RandomResult(seed, comparisons)
    with Saxon() as saxon:
        comparisons["XPath 2.0"] = _against_elementpath(number, Random(seed + 1), saxon)
        comparisons["XQuery"] = _against_saxon(number, Random(seed + 2), saxon)
    return RandomResult(seed, comparisons)


@dataclass(frozen=True, slots=True)
class _Batch:
    profiles: list[str]
    messages: list[bytes]
    streams: list[ElementStream]


def _batches(number: int, rng: Random, level: Level, found: Comparison) -> Iterator[_Batch]:
    while number > 0:
        messages = [random_message(rng) for _ in range(_MESSAGES)]
        writer = QueryWriter(rng, level)
        profiles = []
        for _ in range(min(number, _BATCH)):
            text = writer.value() if level is Level.XPATH_2 else writer.profile()
            try:
                parse_expression(text) if level is Level.XPATH_2 else parse_profile(text)
                profiles.append(text)
            except ProfileRefused:
                found.refused += 1
        number -= _BATCH
        found.profiles += len(profiles)
        found.pairs += len(profiles) * len(messages)
        yield _Batch(profiles, messages, [parse_text(message) for message in messages])


def _delivered(batch: _Batch) -> list[dict[str, ProfileMatch]]:
    """What the matcher says of each message, by the number of the profile."""
    matcher = Matcher()
    for index, profile in enumerate(batch.profiles):
        matcher.add(profile, str(index))
    return [
        {
            match.profile_id: match
            for match in matcher.match(stream)
            if isinstance(match, ProfileMatch)
        }
        for stream in batch.streams
    ]


# -- XPath 1.0


def _against_lxml(number: int, rng: Random) -> Comparison:
    found = Comparison("lxml")
    for batch in _batches(number, rng, Level.XPATH_1, found):
        trees = [etree.ElementTree(etree.fromstring(message)) for message in batch.messages]
        delivered = _delivered(batch)
        for index, profile in enumerate(batch.profiles):
            path = profile.partition("; ")[2] or profile
            select = etree.XPath(f"boolean({path})", namespaces=_NAMESPACES)
            for message, tree, matches in zip(batch.messages, trees, delivered, strict=True):
                theirs, ours = bool(select(tree)), str(index) in matches
                found.matching += theirs
                if theirs is not ours:
                    found.disagree(profile, message, ours, theirs)
    return found


# -- XPath 2.0


def _against_elementpath(number: int, rng: Random, saxon: Saxon | None) -> Comparison:
    found = Comparison("elementpath")
    for batch in _batches(number, rng, Level.XPATH_2, found):
        trees = [etree.ElementTree(etree.fromstring(message)) for message in batch.messages]
        if saxon is not None:
            saxon.load(batch.messages)
        for profile in batch.profiles:
            ours = [_our_value(profile, stream) for stream in batch.streams]
            theirs = [_their_value(profile, tree) for tree in trees]
            found.errors += sum(
                isinstance(one, SaxonError) and isinstance(other, SaxonError)
                for one, other in zip(ours, theirs, strict=True)
            )
            found.matching += sum(bool(one) for one in ours)
            differ = [place for place in range(len(ours)) if not _agree(ours[place], theirs[place])]
            if differ and saxon is not None:
                judged = saxon.answers(profile, Form.STRINGS)
                wrong = [place for place in differ if not _agree(ours[place], judged[place])]
                found.overruled += len(differ) - len(wrong)
                theirs, differ = list(judged), wrong
            for place in differ:
                if isinstance(ours[place], SaxonError) or isinstance(theirs[place], SaxonError):
                    found.one_sided += 1
                    continue
                found.disagree(profile, batch.messages[place], ours[place], theirs[place])
    return found


def _our_value(expression: str, stream: ElementStream) -> Answer:
    """The items as strings, with errors raised as in XPath."""
    evaluator = MessageEvaluator(stream, strict=True)
    try:
        value = evaluator.value(parse_expression(expression), Focus(DOCUMENT, 1, 1, {}))
        return [evaluator.string(item).encode() for item in value]
    except DynamicError as error:
        return SaxonError(error.code, str(error))


def _their_value(expression: str, tree: etree._ElementTree) -> Answer:
    text = expression.partition("; ")[2] or expression
    try:
        token = XPath2Parser(namespaces=_NAMESPACES).parse(text)
        context = XPathContext(tree, timezone="Z")
        return [_string(item).encode() for item in token.select(context)]
    except (ElementPathError, ArithmeticError, ValueError, TypeError) as error:
        return SaxonError("error", str(error))


def _agree(ours: Answer, theirs: Answer) -> bool:
    """Whether they are equal, or both an error."""
    if isinstance(ours, SaxonError) or isinstance(theirs, SaxonError):
        return isinstance(ours, SaxonError) and isinstance(theirs, SaxonError)
    return ours == theirs


def _string(item: object) -> str:
    text = getattr(item, "string_value", item)
    if isinstance(text, UntypedAtomic):
        text = text.value
    if isinstance(text, bool):
        return str(text).lower()
    if isinstance(text, int | float | Decimal):
        evaluator = MessageEvaluator(_NOTHING)
        return evaluator.string(text)
    return str(text)


_NOTHING = parse_text(b"<x/>")


# -- XQuery


def _against_saxon(number: int, rng: Random, saxon: Saxon) -> Comparison:
    found = Comparison("saxonche")
    for batch in _batches(number, rng, Level.XQUERY, found):
        saxon.load(batch.messages)
        delivered = _delivered(batch)
        for index, profile in enumerate(batch.profiles):
            for place, theirs in enumerate(ask(saxon, profile)):
                _judge(found, batch, place, profile, delivered[place].get(str(index)), theirs)
    return found


def ask(saxon: Saxon, text: str) -> list[Answer]:
    """What Saxon makes of a profile that the parser takes, on each of the loaded messages."""
    body = parse_profile(text).body
    decisive = ""
    if isinstance(body, Constructor):
        decisive = ", ".join(unparse(_as_written(part)) for part in decisive_parts(body))
    return saxon.answers(text, Form.PATH if is_path(body) else Form.ITEMS, decisive)


_Node = TypeVar("_Node")


def _as_written(node: _Node) -> _Node:
    """A tree without what stands in the prolog, or what ``unparse`` adds to XQuery: the prefixes
    of computed names."""
    if isinstance(node, tuple):
        return type(node)(map(_as_written, node)) if type(node) is tuple else node
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {part.name: _as_written(getattr(node, part.name)) for part in fields(node)}
    if isinstance(node, Computed):
        parts["namespaces"] = ()
    if isinstance(node, UserCall):
        parts["library"] = ()
    return type(node)(**parts)


def _judge(
    found: Comparison,
    batch: _Batch,
    place: int,
    profile: str,
    match: ProfileMatch | None,
    theirs: Answer,
) -> None:
    message = batch.messages[place]
    if isinstance(theirs, SaxonError):
        is_also_ours = _raises(profile, batch.streams[place])
        found.errors += is_also_ours
        found.one_sided += not is_also_ours
        return
    results = [] if match is None else match.results()
    found.matching += bool(theirs)
    if not same_documents(results, theirs, message):
        if _raises(profile, batch.streams[place]):
            found.one_sided += 1
        else:
            found.disagree(profile, message, results, theirs)


def same_documents(ours: list[bytes], theirs: list[bytes], message: bytes) -> bool:
    """Equal as canonical XML, in order; b"" stands for the message itself."""
    return [canonical(one) for one in ours] == [canonical(one or message) for one in theirs]


def _raises(profile: str, stream: ElementStream) -> bool:
    """Whether the whole expression raises an error when errors count."""
    evaluator = MessageEvaluator(stream, strict=True)
    try:
        value = evaluator.value(parse_profile(profile).body, Focus(DOCUMENT, 1, 1, {}))
        for item in value:
            if isinstance(item, Construction):
                written(evaluator, [item])
    except (DynamicError, MatchLimitExceeded):
        return True
    return False
