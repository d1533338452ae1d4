"""Random profiles on random messages, or on those of a folder, held against other people's XPath
and XQuery, and the engine against its own oracle (tests/oracle).

===========  ==============================  =================================================
level        oracle                          compared
===========  ==============================  =================================================
XPath 1.0    lxml (libxml2)                  whether each message matches, and its bindings
XPath 2.0    elementpath                     the value, item by item, as strings
XQuery       Saxon, when it is installed     the delivered documents, as canonical XML
===========  ==============================  =================================================

Saxon has the last word where another oracle differs.  At each level the reference engine is held
against the oracle, and the engine delivers what the reference engine does, byte by byte.

A profile that is served answers no message with an error; where XQuery raises one (which
``Evaluation(strict=True)`` does, too) the results are not comparable, and counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TypeAlias, TypeVar

from elementpath import ElementPathError, XPath2Parser, XPathContext
from elementpath.datatypes import UntypedAtomic
from lxml import etree

from benchmarks.corpus_queries import CorpusWriter, messages_of
from benchmarks.random_queries import Level, QueryWriter, random_message
from demo.independent_parse import Element, parse
from demo.oracle import canonical
from demo.saxon import Answer, Form, Saxon, SaxonError, prolog_and_body
from formats.element_stream import ElementStream
from formats.text import parse_text
from tests.oracle.reference import ReferenceMatcher
from yfilter import Matcher, ProfileMatch
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.evaluator import written
from yfilter.language.namespaces import SVRL_NAMESPACE
from yfilter.language.nodes import Construction, DynamicError
from yfilter.language.query_ast import Computed, Constructor, UserCall
from yfilter.language.query_parser import parse_expression, parse_profile
from yfilter.language.query_text import unparse
from yfilter.operators.evaluation import Evaluation

_BATCH = 50  # profiles on the same messages
_MESSAGES = 5
_BYTES_MAX = 6_000  # of a folder's message, for elementpath
_SHOWN_MAX = 20
_Node = TypeVar("_Node")
_COUNTS = (
    *("profiles", "pairs", "matching", "errors", "one_sided", "overruled", "refused", "exceeded"),
    *("engines", "disagreements"),
)


@dataclass
class Comparison:
    """One level: ``pairs`` of a profile and a message, of which ``matching`` gave something;
    ``errors`` where both sides raised one; ``one_sided`` where one did, as it may (another order
    of evaluation); ``overruled`` where Saxon says that the oracle is wrong; ``refused`` profiles
    that the generator made and the parser does not take; ``exceeded`` where a limit ended an
    engine; ``engines``: answers of the two engines that were compared."""

    oracle: str
    profiles: int = 0
    pairs: int = 0
    matching: int = 0
    errors: int = 0
    one_sided: int = 0
    overruled: int = 0
    refused: int = 0
    exceeded: int = 0
    engines: int = 0
    disagreements: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return {
            name: len(self.disagreements) if name == "disagreements" else getattr(self, name)
            for name in _COUNTS
        }

    def disagree(
        self, profile: str, message: bytes, ours: object, theirs: object, whose: str = ""
    ) -> None:
        text = message.decode(errors="replace")
        self.disagreements.append(
            f"{profile}\n  on {text}\n  ours: {ours}\n  {whose or self.oracle}: {theirs}"
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


def compare_at_random(number: int, seed: int, folder: Path | None = None) -> RandomResult:
    """``number`` profiles of each level, each on some messages: random ones, or a folder's."""
    draw = _random_messages if folder is None else _messages_of(folder)
    with Saxon() if find_spec("saxonche") else nullcontext() as saxon:
        judged = {
            "XPath 1.0": _against_lxml(number, Random(seed), draw, saxon),
            "XPath 2.0": _against_elementpath(number, Random(seed + 1), draw, saxon),
        }
        if saxon is not None:
            judged["XQuery"] = _against_saxon(number, Random(seed + 2), draw, saxon)
    return RandomResult(seed, judged)


_Draw: TypeAlias = Callable[[Random, Level], tuple[list[bytes], QueryWriter]]
"""Some messages, and a writer of profiles for them."""


def _random_messages(rng: Random, level: Level) -> tuple[list[bytes], QueryWriter]:
    return [random_message(rng) for _ in range(_MESSAGES)], QueryWriter(rng, level)


def _messages_of(folder: Path) -> _Draw:
    every = list(messages_of(folder))

    def draw(rng: Random, level: Level) -> tuple[list[bytes], QueryWriter]:
        most = _BYTES_MAX if level is Level.XPATH_2 else max(map(len, every))
        few = [message for message in every if len(message) <= most]
        messages = rng.sample(few, min(len(few), _MESSAGES))
        return messages, CorpusWriter(rng, level, messages)

    return draw


@dataclass(frozen=True, slots=True)
class _Batch:
    profiles: list[str]
    messages: list[bytes]
    streams: list[ElementStream]
    trees: list[etree._ElementTree]
    namespaces: Mapping[str, str]


def _batches(
    number: int, rng: Random, level: Level, draw: _Draw, found: Comparison
) -> Iterator[_Batch]:
    while number > 0:
        messages, writer = draw(rng, level)
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
        streams = [parse_text(message) for message in messages]
        trees = [etree.ElementTree(parse(message)) for message in messages]
        yield _Batch(profiles, messages, streams, trees, writer.namespaces)


# -- the engines


@dataclass(frozen=True, slots=True)
class Delivered:
    """Bindings and results of a profile; None where a limit ended them."""

    bindings: tuple[int, ...] | None
    results: list[bytes] | None


def deliver_by_both(
    profiles: Sequence[str], messages: Sequence[bytes], found: Comparison
) -> list[dict[int, Delivered]]:
    """For each message what the reference engine delivers, by the number of the profile; where the
    compiled engine delivers something else they disagree."""
    streams = [parse_text(message) for message in messages]
    ours, theirs = (
        _delivered(matcher, profiles, streams) for matcher in (Matcher(), ReferenceMatcher())
    )
    for message, compiled, reference in zip(messages, ours, theirs, strict=True):
        found.engines += len(profiles)
        for number in compiled.keys() | reference.keys():
            one, other = compiled.get(number), reference.get(number)
            if one == other:
                continue
            if any(each is not None and each.results is None for each in (one, other)):
                found.exceeded += 1
            else:
                found.disagree(profiles[number], message, one, other, "reference engine")
    return theirs


def _delivered(
    matcher: Matcher | ReferenceMatcher, profiles: Sequence[str], streams: Sequence[ElementStream]
) -> list[dict[int, Delivered]]:
    for number, profile in enumerate(profiles):
        matcher.add(profile, str(number))
    return [
        {
            int(match.profile_id): _delivery(match)
            for match in matcher.match(stream)
            if isinstance(match, ProfileMatch)
        }
        for stream in streams
    ]


def _delivery(match: ProfileMatch) -> Delivered:
    try:
        return Delivered(match.bindings, match.results())
    except MatchLimitExceeded:
        return Delivered(None, None)


# -- XPath 1.0


def _against_lxml(number: int, rng: Random, draw: _Draw, saxon: Saxon | None) -> Comparison:
    found = Comparison("lxml")
    for batch in _batches(number, rng, Level.XPATH_1, draw, found):
        delivered = deliver_by_both(batch.profiles, batch.messages, found)
        elements = [_numbers(tree) for tree in batch.trees]
        if saxon is not None:
            saxon.load(batch.messages)
        for index, profile in enumerate(batch.profiles):
            path = prolog_and_body(profile)[1]
            select = etree.XPath(path, namespaces=batch.namespaces)
            count = etree.XPath(f"count({path})", namespaces=batch.namespaces)
            for place, tree in enumerate(batch.trees):
                match, number_of = delivered[place].get(index), count(tree)
                theirs = number_of > 0
                found.matching += theirs
                if (match is not None) is not theirs:
                    if saxon is not None and bool(ask(saxon, profile)[place]) is not theirs:
                        found.overruled += 1
                        continue
                    found.disagree(profile, batch.messages[place], match, theirs)
                elif match is not None:
                    nodes = select(tree)
                    if len(nodes) < number_of:  # lxml does not give the document
                        continue
                    owners = {_owner(node) for node in nodes}
                    wanted = tuple(sorted(elements[place][owner] for owner in owners))
                    if match.bindings not in (wanted, None):
                        found.disagree(profile, batch.messages[place], match.bindings, wanted)
    return found


def _numbers(tree: etree._ElementTree) -> dict[Element, int]:
    """Of elements, in document order."""
    return {element: number for number, element in enumerate(tree.iter(etree.Element))}


def _owner(node: Element) -> Element:
    """The element of an attribute or a text; lxml hangs a text on the node before it."""
    if not isinstance(node, str):
        return node
    owner = node.getparent()  # type: ignore[attr-defined]
    return owner.getparent() if node.is_tail else owner  # type: ignore[attr-defined]


# -- XPath 2.0


def _against_elementpath(number: int, rng: Random, draw: _Draw, saxon: Saxon | None) -> Comparison:
    found = Comparison("elementpath")
    for batch in _batches(number, rng, Level.XPATH_2, draw, found):
        deliver_by_both([*_as_profiles(batch.profiles)], batch.messages, found)
        if saxon is not None:
            saxon.load(batch.messages)
        for profile in batch.profiles:
            ours = [_our_value(profile, stream) for stream in batch.streams]
            theirs = [_their_value(profile, tree, batch.namespaces) for tree in batch.trees]
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


def _as_profiles(expressions: Sequence[str]) -> Iterator[str]:
    """Profiles that deliver the values of expressions, but of those that can only be errors."""
    for prolog, body in map(prolog_and_body, expressions):
        text = f"{prolog}for $onyx in /* return <onyx>{{{body}}}</onyx>"
        with suppress(ProfileRefused):
            parse_profile(text)
            yield text


def _our_value(expression: str, stream: ElementStream) -> Answer:
    """The items as strings, with errors raised as in XPath."""
    evaluation = Evaluation(stream, strict=True)
    try:
        value = evaluation.value(parse_expression(expression))
        return [evaluation.trees.string(item).encode() for item in value]
    except (DynamicError, MatchLimitExceeded) as error:
        return SaxonError(error.code, str(error))


def _their_value(
    expression: str, tree: etree._ElementTree, namespaces: Mapping[str, str]
) -> Answer:
    text = prolog_and_body(expression)[1]
    try:
        token = XPath2Parser(namespaces={**namespaces}).parse(text)
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
        return Evaluation(_NOTHING).trees.string(text)
    return str(text)


_NOTHING = parse_text(b"<x/>")


# -- XQuery


def _against_saxon(number: int, rng: Random, draw: _Draw, saxon: Saxon) -> Comparison:
    found = Comparison("saxonche")
    for batch in _batches(number, rng, Level.XQUERY, draw, found):
        saxon.load(batch.messages)
        delivered = deliver_by_both(batch.profiles, batch.messages, found)
        for index, profile in enumerate(batch.profiles):
            for place, theirs in enumerate(ask(saxon, profile)):
                _judge(found, batch, place, profile, delivered[place].get(index), theirs)
    return found


_SVRL = f'declare namespace svrl = "{SVRL_NAMESPACE}"; '
_LOCATION = (
    "declare function svrl:location($n) { concat(string-join(for $e in $n/ancestor-or-self::* "
    "return concat('/', name($e), '[', 1 + count($e/preceding-sibling::*[name() = name($e)]), "
    "']'), ''), if ($n instance of attribute()) then concat('/@', name($n)) else '') }; "
)


def ask(saxon: Saxon, text: str) -> list[Answer]:
    """What Saxon makes of a profile that the parser takes, on each of the loaded messages."""
    body = parse_profile(text).body
    decisive = ""
    if isinstance(body, Constructor):
        decisive = ", ".join(unparse(_as_written(part)) for part in body.decisive_parts())
    return saxon.answers(in_xquery(text), Form.PATH if body.is_path() else Form.ITEMS, decisive)


def in_xquery(profile: str) -> str:
    """A profile of a rule set with the declarations that only the profile language has by itself:
    the prefix of SVRL and, for elements and attributes, the location of a node."""
    if "{svrl:location(" not in profile:
        return profile
    declared, body = profile.split("for $_context in ", 1)
    return f"{_SVRL}{declared}{_LOCATION}for $_context in {body}"


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
    match: Delivered | None,
    theirs: Answer,
) -> None:
    message = batch.messages[place]
    results = [] if match is None else match.results
    if results is None:
        found.exceeded += 1
        return
    if isinstance(theirs, SaxonError):
        is_also_ours = _raises(profile, batch.streams[place])
        found.errors += is_also_ours
        found.one_sided += not is_also_ours
        return
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
    evaluation = Evaluation(stream, strict=True)
    try:
        value = evaluation.value(parse_profile(profile).body)
        for item in value:
            if isinstance(item, Construction):
                written(evaluation.trees, [item])
    except (DynamicError, MatchLimitExceeded):
        return True
    return False
