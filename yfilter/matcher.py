"""Matcher: the engine, where the compiled modules are there (``compiled_matcher.py``)."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakSet

from formats.kernel import AVAILABLE
from yfilter.engine.linear_paths import routing_query
from yfilter.engine.readings import Message
from yfilter.engine.targets import LinkTarget, Transforming
from yfilter.errors import KernelMissing
from yfilter.language.profile_limits import MatchLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile, too_deep

if TYPE_CHECKING or AVAILABLE:
    from yfilter.compiled_matcher import Matcher
else:

    class Matcher:
        """In its place: programs that import it and match nothing run without the engine."""

        def __init__(self, *_: object, **__: object) -> None:
            raise KernelMissing


__all__ = ["LinkTarget", "Matcher", "Message", "Transforming", "check_profile"]

HELD_MAX = 32  # profiles that were tried last


def check_profile(text: str) -> Profile:
    """The profile of a text with which everything that a broker does to a profile works; without
    the engine, all that can be told by its text.

    Raises ProfileRefused otherwise; to be asked before anything is changed or promised.
    """
    profile = parse_profile(text)
    shapes = None if profile.parts is None else profile.parts.shapes()
    # PERF: what is tried here depends on the shapes alone (``benchmarks network``, registering).
    if shapes is None or not _TRIED.issuperset(shapes):
        try:
            if AVAILABLE:
                trial, held = _trial()
                held.append(trial.add(profile))
                if len(held) > HELD_MAX:
                    trial.remove(held.popleft())
            routing_query(profile)
        except RecursionError:
            _trial.cache_clear()  # which may hold a part of it
            raise too_deep(text) from None
        _TRIED.update(shapes or ())
    return profile


@cache
def _trial() -> tuple[Matcher, deque[str]]:
    """A matcher to try profiles on, and the last ones, which it holds: what rules of a set share is
    compiled once."""
    return Matcher(MatchLimits(lazy_bytes_max=4096)), deque()


_TRIED: WeakSet[object] = WeakSet()
