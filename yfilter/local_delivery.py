"""LocalDelivery: what local profiles get of a message that they match, as finished results.

Queries whose result is the message share one ``Delivered``; each other one has its own, made when
it is asked for, on the reading of the message that it is of.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from yfilter.answers import Answer, Answers
from yfilter.engine.readings import Reading, Readings
from yfilter.engine.targets import Priority
from yfilter.engine.work import Work
from yfilter.errors import MatchLimitExceeded
from yfilter.index.index import Index
from yfilter.language.budget import too_much_time
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.results import ResultWriter
from yfilter.local_queries import LocalQueries, tree_of
from yfilter.matches import Delivered, MakesNow
from yfilter.query_costs import QueryCosts
from yfilter.rendering import Rendering

_Writers: TypeAlias = dict[Reading, ResultWriter]


class LocalDelivery:
    """Results of the queries that ``local`` has in the ``index``; ``costs`` are theirs."""

    def __init__(
        self, index: Index, local: LocalQueries, limits: EvaluationLimits, work: Work
    ) -> None:
        self.costs = QueryCosts(limits.late_messages)
        self._index = index
        self._local = local
        self._limits = limits
        self._work = work
        self._answers = Answers(index.operators, limits)

    def forget(self, query: int) -> None:
        """A query is gone."""
        self._answers.forget(query)
        self.costs.forget(query)

    def given_up(self, stamp: int) -> Iterator[Delivered]:
        """Queries of which the index does not know whether they match, as that costs too much."""
        for number, limit in self._index.unsure.items():
            numbers = array("i", self._local.open_since(number, stamp))
            if numbers:
                yield Delivered(numbers, [], limit)

    def to(self, message: Readings, profile_ids: Iterable[str]) -> Iterator[Delivered]:
        """What some registered profiles get of a message that is known to match them."""
        local = self._local
        syntax = self._answers.syntax(message)
        writers: _Writers = {}
        for query, registered in local.by_query(profile_ids).items():
            if query in local.made:
                yield self._made(message, query, registered, writers)
            else:
                yield Delivered(
                    registered, [self._answers.whole_message(message)], None, True, syntax
                )

    def of(
        self, message: Readings, found: list[int], makes_now: MakesNow | None, stamp: int
    ) -> Iterator[Delivered]:
        """What queries that were found give, to registrations as of a count of changes."""
        local, made = self._local, self._local.made
        whole = [number for number in found if number not in made] if made else found
        whole_of = local.runs.collect(array("i", whole), len(whole))
        writers: _Writers = {}
        for number in found if made else ():
            if number not in made:
                continue
            numbers = array("i", local.open_since(number, stamp))
            if not numbers:
                continue  # removed meanwhile
            if makes_now is None or makes_now(numbers, number in local.remainders):
                one = self._made(message, number, numbers, writers)
            else:
                one = Delivered(numbers, [], None, is_made=False)
            if one.results or not one.is_made:
                self._work.matched[Priority.PROFILE] += len(numbers)
            if one.results or one.exceeded or not one.is_made:
                yield one
        if local.changes != stamp:
            since, query = local.registrations.since, local.registrations.query
            whole_of = array(
                "i", (one for one in whole_of if query[one] >= 0 and since[one] <= stamp)
            )
        if whole_of:
            self._work.matched[Priority.PROFILE] += len(whole_of)
            if makes_now is None or makes_now(whole_of, False):
                syntax = "" if message.document is not None else self._answers.syntax(message)
                yield Delivered(
                    whole_of, [self._answers.whole_message(message)], None, True, syntax
                )
            else:
                yield Delivered(whole_of, [], None, is_made=False)

    def rendering(self, number: int, message: Readings) -> Rendering:
        """Bindings and results of a query that was found."""
        answer = self._answer(number) if number in self._local.made else None
        reading, text = self._local.reading(number), self._local.text(number)
        return Rendering(text, answer, message, reading, self._answers, self._index.show)

    def has_results(
        self, number: int, message: Readings, rendering: Rendering | None = None
    ) -> bool:
        """Whether a query with a remainder, which was found, has results after all."""
        try:
            answer = self._answer(number)
            if answer.graph is not None:
                # PERF: most of thousands that a message finds (``benchmarks graph``).
                return self._answers.has_results(answer, message, Reading.GRAPH)
            return bool((rendering or self.rendering(number, message)).results())
        except MatchLimitExceeded:
            self._work.over_limit += 1
            return False

    def _made(
        self, message: Readings, query: int, numbers: array[int], writers: _Writers
    ) -> Delivered:
        if self.costs.is_late(query):
            return Delivered(numbers, [], too_much_time(self._limits))
        reading, answer = self._local.reading(query), self._answer(query)
        stream = message.of(reading)
        if stream is None:
            return Delivered(numbers, [])
        try:
            if answer.graph is not None:
                media_type = self._answers.media_type(answer, message)
                results = self._joined(message, query, answer)
                return Delivered(numbers, results, media_type=media_type)
            writer = writers.get(reading)
            if writer is None:
                writer = writers[reading] = self._answers.writer(stream)
            self._index.show(stream)  # the caller may have matched another meanwhile
            before = writer.seconds
            try:
                return Delivered(numbers, self._answers.results_by(writer, answer))
            finally:
                self.costs.add(query, writer.seconds - before)
        except MatchLimitExceeded as exceeded:
            if self._limits.is_final(exceeded.code):
                self._work.over_limit += 1
            else:
                self.costs.note_late(query)
            return Delivered(numbers, [], exceeded)

    def _joined(self, message: Readings, query: int, answer: Answer) -> list[bytes]:
        """The results of a graph profile."""
        before = self._limits.clock()
        try:
            return self._answers.results(answer, message, Reading.GRAPH)
        finally:
            self.costs.add(query, self._limits.clock() - before)

    def _answer(self, number: int) -> Answer:
        """How a local query is answered."""
        answer = self._answers.known.get(number)
        return answer or self._answers.learn(number, tree_of(self._local.text(number)))
