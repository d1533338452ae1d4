"""Evaluates one profile on one message, as late_questions.py asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from formats.codec import WireFormat, decode, encode
from formats.element_stream import ElementStream
from formats.limits import MessageLimits
from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import EvaluationLimits, MatchLimits
from yfilter.language.query_parser import parse_accepted
from yfilter.late_questions import EvaluateProfile, ProfileEvaluated
from yfilter.matcher import Matcher
from yfilter.projection.parts import PIECES_BYTES_MAX, pack_pieces, unpack_pieces

PROFILES_KEPT = 64


def question_about(
    text: str, stream: ElementStream, limits: MessageLimits, seconds: float
) -> EvaluateProfile:
    """About a profile and a message that is here."""
    pieces = pack_pieces(stream.pieces) if stream.pieces else b""
    message = encode(stream, WireFormat.BINARY)
    return EvaluateProfile(text, message, pieces, limits, seconds, stream.accepted)


def evaluate_profile(question: EvaluateProfile, clock: Callable[[], float]) -> ProfileEvaluated:
    """The answer; ``clock``: seconds of processor time."""
    began = clock()
    stream = decode(question.message, WireFormat.BINARY, question.limits)
    if question.pieces:
        stream.pieces = unpack_pieces(question.pieces, len(stream), PIECES_BYTES_MAX)
    stream.accepted = question.accepted
    return evaluate(question.text, stream, question.seconds, clock, began)


def evaluate(
    text: str, stream: ElementStream, seconds: float, clock: Callable[[], float], began: float
) -> ProfileEvaluated:
    """The same of a message that is here; ``began``: when, by the clock, it was asked for."""
    results: tuple[bytes, ...] = ()
    exceeded, media_type = None, ""
    try:
        for delivered in _matcher(text, seconds, clock).deliver(stream):
            results, exceeded = tuple(delivered.results), delivered.exceeded
            media_type = delivered.media_type
    except MatchLimitExceeded as error:
        exceeded = error
    limit = None if exceeded is None else (exceeded.code, exceeded.reason)
    return ProfileEvaluated(results, limit, clock() - began, media_type)


@lru_cache(PROFILES_KEPT)
def _matcher(text: str, seconds: float, clock: Callable[[], float]) -> Matcher:
    evaluation = EvaluationLimits(seconds_max=seconds, clock=clock)
    matcher = Matcher(MatchLimits(lazy_bytes_max=4096, evaluation=evaluation))
    matcher.add(parse_accepted(text))
    return matcher
