"""A profile parsed once more, with the place of each step in its text."""

from __future__ import annotations

from yfilter.language.checked_text import checked_text
from yfilter.language.item_kinds import Kinds
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS
from yfilter.language.query_ast import Expression, LocationStep
from yfilter.language.query_parser import QueryParser


class LocatedSteps:
    """``body``: the profile's expression; ``place`` says where one of its steps stands."""

    def __init__(self, text: str) -> None:
        self._text = checked_text(text, DEFAULT_PROFILE_LIMITS)
        parser = _LocatingParser(self._text, DEFAULT_PROFILE_LIMITS)
        self.body: Expression = parser.profile()
        self._offsets = parser.offsets

    def place(self, step: LocationStep) -> tuple[int, int, str]:
        """Line and column from 1, and the text of the line."""
        _, offset = self._offsets.get(id(step), (step, -1))
        if offset < 0:  # the parser put it together with another one: the first that looks like it
            same = [at for known, at in self._offsets.values() if known.test == step.test]
            offset = min(same, default=0)
        before = self._text[:offset]
        start = before.rfind("\n") + 1
        line = self._text[start:].partition("\n")[0]
        return before.count("\n") + 1, offset - start + 1, line


class _LocatingParser(QueryParser):
    """Notes where each step begins; the step is kept so that its id stays its own."""

    offsets: dict[int, tuple[LocationStep, int]]

    def _step(self, kinds: Kinds, descendant: bool) -> LocationStep:
        if not hasattr(self, "offsets"):
            self.offsets = {}
        offset = self.lexer.peek().offset
        step = super()._step(kinds, descendant)
        self.offsets[id(step)] = (step, offset)
        return step
