# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Candidates: the queries whose access path was met, until they are found or not.

``settle`` takes the lists of a group of elements together, and then what is left to verify, so that
their cache misses do not wait for each other.
A query that was found is marked by a bit, which stays in the cache where a number each would not.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from yfilter.errors import MatchLimitExceeded
from yfilter.index.columns import grown, ints, longs

if cython.compiled:
    from cython.cimports.yfilter.index.accept_lists import AcceptLists
    from cython.cimports.yfilter.index.message_view import MessageView
    from cython.cimports.yfilter.index.offers import Offers
    from cython.cimports.yfilter.index.residuals import Residuals
    from cython.cimports.yfilter.index.subscriber_runs import SubscriberRuns
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.accept_lists import (
        GROUP_COUNT,
        GROUP_ELEMENT,
        GROUP_EPOCH,
        GROUP_POSITION,
        GROUP_QUERIES,
        GROUPED_WIDTH,
        LIST_EPOCH,
        LIST_GROUPS,
        LIST_QUERIES,
        LIST_QUICK,
        LIST_SECONDS,
        LIST_SLOW,
        LIST_SURE,
        LISTED_QUERY,
        LISTED_REQUIRED,
        LISTED_RESIDUAL,
        LISTED_TWIG,
        QUICK_WIDTH,
        SLOW_WIDTH,
        AcceptLists,
    )
    from yfilter.index.message_view import MessageView
    from yfilter.index.names_below import ANSWER_PERHAPS, ANSWER_YES
    from yfilter.index.offers import Offers
    from yfilter.index.residual_rows import CODE_ABSOLUTE, CODE_DEPTH
    from yfilter.index.residuals import Residuals
    from yfilter.index.subscriber_runs import SubscriberRuns
    from yfilter.index.trie import Trie

from yfilter.index.target_groups import TargetGroups


class Candidates(Offers):
    """``begin`` a message, ``offer`` and ``settle``; ``found`` has ``count`` queries in the end,
    ``unsure`` those of which a condition was given up, as it costs too much, with the limit."""

    def __init__(self, view: MessageView, residuals: Residuals, trie: Trie) -> None:
        super().__init__(view, residuals)
        self._twigs = residuals.twigs
        self.trie = trie
        self.found = ints(1024)
        self.unsure: dict[int, MatchLimitExceeded] = {}
        self.count = 0
        self.candidates = 0
        self.visits = 0
        self.passed_over = 0
        self._epoch = 0
        self._groups: TargetGroups | None = None
        self._stamp = 0
        self._group_of = self._verdict = self.found
        self._marks = array("Q", bytes(64))
        self.costs = longs(512)
        self.is_spent = False
        self._waiting = 0
        self._query = ints(256)
        self._record = ints(256)
        self._where = ints(256)

    def begin(
        self, epoch: cython.int, visits_max: cython.longlong, groups: TargetGroups | None
    ) -> cython.int:
        """A new run; with ``groups`` only what is wanted is verified."""
        i: cython.int
        words: cython.int = self.trie.query_bound // 64 + 1
        self._epoch = epoch
        self._groups = groups
        if groups is not None:
            self._stamp = groups.stamp
            self._group_of = groups.group_of
            self._verdict = groups.verdict
        for i in range(self.count):
            self._marks[self.found[i] >> 6] = 0
        if len(self._marks) < words:
            self._marks = array("Q", bytes(16 * words))
            self.costs = grown(self.costs, 128 * words)
        self.count = 0
        if self.unsure:
            self.unsure = {}
        self._offered = 0
        self._waiting = 0
        self.residuals.begin(visits_max)
        return 0

    def settle(self, accepts: AcceptLists) -> cython.int:
        """Take over the queries of all lists offered, as far as they hold."""
        Offers.settle(self, accepts)
        return self._verify()

    def is_any_wanted(self) -> cython.bint:
        """Whether there are links left to look for."""
        return self._groups is None or self._stamp != 0

    def end(self) -> cython.int:
        """How many queries were found in the message."""
        self.visits += self.residuals.visits
        if self.unsure:
            self.unsure = {
                query: limit for query, limit in self.unsure.items() if not self._is_found(query)
            }
        return self.count

    def registrations(self, runs: SubscriberRuns) -> array[int]:
        """The registrations of all queries found."""
        return runs.collect(self.found, self.count)

    def take_costs(self, least: cython.longlong) -> list[tuple[int, int]]:
        """(query, nanoseconds) of those whose conditions have taken at least so many since they
        were told last."""
        query: cython.int
        found: list[tuple[int, int]] = []
        if not self.is_spent:
            return found
        self.is_spent = False
        for query in range(len(self.costs)):
            if self.costs[query] >= least:
                found.append((query, self.costs[query]))
                self.costs[query] = 0
        return found

    def forget(self, query: cython.int) -> None:
        """A query is gone."""
        if query < len(self.costs):
            self.costs[query] = 0

    def _take_list(self, place: cython.int, element: cython.int) -> cython.int:
        """The queries of a list at an element; those with a residual record wait."""
        sure: cython.int = self._lists[place + LIST_SURE]
        quick: cython.int = self._lists[place + LIST_QUICK]
        slow: cython.int = self._lists[place + LIST_SLOW]
        at: cython.int = place + LIST_QUERIES
        end: cython.int
        i: cython.int
        self._cover_found(sure + quick + self._lists[place + LIST_GROUPS] + len(self._query))
        self.residuals.visits += 1 + (quick >> 3)
        is_new: cython.bint = self._lists[place + LIST_EPOCH] != self._epoch
        self._lists[place + LIST_EPOCH] = self._epoch  # once a message is enough for the sure ones
        if self._groups is not None:
            if is_new:
                self._take_sure(place, element)
            return self._take_unsure(place, element)
        self.candidates += quick
        if is_new:
            for i in range(at, at + sure):
                self._find(self._lists[i + LISTED_QUERY])
        at += sure
        end = at + QUICK_WIDTH * quick
        while at < end:
            if self.residuals.ancestor_holds(self._lists[at + LISTED_RESIDUAL], element):
                self._find(self._lists[at + LISTED_QUERY])
            at += QUICK_WIDTH
        end = at + SLOW_WIDTH * slow
        self._take_rows(at, end, element)
        at = end
        end = at + self._lists[place + LIST_GROUPS]
        self._take_groups(at, end, element)
        return self._take_seconds(end, end + self._lists[place + LIST_SECONDS], element)

    def _take_groups(self, at: cython.int, end: cython.int, element: cython.int) -> cython.int:
        """The queries with a twig of an ancestor, once for each ancestor."""
        ancestor: cython.int
        count: cython.int
        row: cython.int
        while at < end:
            count = self._lists[at + GROUP_COUNT]
            ancestor = self.residuals.ancestor(
                element,
                self._lists[at + GROUP_POSITION] & CODE_DEPTH,
                self._lists[at + GROUP_POSITION] & CODE_ABSOLUTE,
            )
            if self.view.end[ancestor] > ancestor + 1 and (
                self._lists[at + GROUP_EPOCH] != self._epoch
                or self._lists[at + GROUP_ELEMENT] != ancestor
            ):
                self._lists[at + GROUP_EPOCH] = self._epoch
                self._lists[at + GROUP_ELEMENT] = ancestor
                self.candidates += count
                self.residuals.visits += 1 + (count >> 3)
                row = self.residuals.twig_row(ancestor, count)
                self._take_group(
                    at + GROUP_QUERIES, at + GROUP_QUERIES + GROUPED_WIDTH * count, row, ancestor
                )
            at += GROUP_QUERIES + GROUPED_WIDTH * count
        return 0

    def _take_group(
        self, at: cython.int, end: cython.int, row: cython.int, ancestor: cython.int
    ) -> cython.int:
        """The queries of a group whose twig is found below an ancestor that has this row."""
        # PERF: of ten thousands of queries; without a call for each.
        lists: cython.int[::1] = self._lists
        rows: cython.ulonglong[::1] = self._twigs.rows
        twig: cython.int
        known: cython.int
        if row < 0:
            while at < end:
                twig = lists[at + LISTED_TWIG]
                known = self._twigs.answer(twig, ancestor)
                if known == ANSWER_YES:
                    self._find(lists[at + LISTED_QUERY])
                elif known == ANSWER_PERHAPS:
                    self._wait(lists[at + LISTED_QUERY], self._twigs.record(twig), ancestor)
                at += GROUPED_WIDTH
            return 0
        while at < end:
            twig = lists[at + LISTED_TWIG]
            if (rows[row + (twig >> 6)] >> (twig & 63)) & 1:
                self._find(lists[at + LISTED_QUERY])
            at += GROUPED_WIDTH
        return 0

    def _take_rows(self, at: cython.int, end: cython.int, element: cython.int) -> cython.int:
        residual: cython.int
        count: cython.int = (end - at) // SLOW_WIDTH
        self._cover_found(count + len(self._query))
        if self._groups is not None:
            return Offers._take_rows(self, at, end, element)
        self.residuals.visits += count >> 3
        self.candidates += count
        while at < end:
            residual = self._lists[at + LISTED_RESIDUAL]
            if residual < 0:
                if self.is_possible(self._lists[at + LISTED_REQUIRED]):
                    self._wait(self._lists[at + LISTED_QUERY], -residual, element)
            elif residual == 0 or self.residuals.ancestor_holds(residual, element):
                self._find(self._lists[at + LISTED_QUERY])
            at += SLOW_WIDTH
        return 0

    def _take(self, query: cython.int, residual: cython.int, element: cython.int) -> cython.int:
        """Take a query over, if it is wanted still and its residual holds."""
        groups: TargetGroups | None = self._groups
        known: cython.int
        holds: cython.bint
        if groups is None or self._is_found(query):
            return 0
        known = self._verdict[self._group_of[query]]
        if (
            self._stamp == 0
            or known == -self._epoch
            or (known != self._stamp and not groups.is_open(self._group_of[query]))
        ):
            self.passed_over += 1
            return 0
        self.candidates += 1
        if residual > 0 and not self.residuals.ancestor_holds(residual, element):
            return 0
        if residual < 0:
            holds = self.residuals.hold(-residual, element)
            self.residuals.operators.gave_up = False  # a link is rather taken than missed
            if not holds:
                return 0
        self._find(query)
        self._stamp = groups.reach(query)
        return 0

    def _wait(self, query: cython.int, record: cython.int, element: cython.int) -> cython.int:
        """Verify a query with the next ones."""
        i: cython.int = self._waiting
        if self._is_found(query):
            return 0
        if i >= len(self._query):
            self._verify()
            i = 0
        self._query[i] = query
        self._record[i] = record
        self._where[i] = element
        self._waiting = i + 1
        return 0

    def _verify(self) -> cython.int:
        """Take over those waiting whose residual holds."""
        words: cython.int[::1] = self.residuals.words
        touched: cython.int = 0
        holds: cython.bint
        i: cython.int
        for i in range(self._waiting):
            touched ^= words[self._record[i]]
        self._touched = touched
        self._cover_found(self._waiting)
        for i in range(self._waiting):
            holds = self._held(self._query[i], self._record[i], self._where[i])
            if self.residuals.operators.gave_up:
                self.residuals.operators.gave_up = False
                if holds:
                    self.unsure[self._query[i]] = self.residuals.operators.exceeded
            elif holds:
                self._find(self._query[i])
        self._waiting = 0
        return 0

    def _held(self, query: cython.int, record: cython.int, element: cython.int) -> cython.bint:
        nanos: cython.longlong = self.residuals.operators.nanos
        holds: cython.bint = self.residuals.hold(record, element)
        if self.residuals.operators.nanos != nanos and self._groups is None:
            self.costs[query] += self.residuals.operators.nanos - nanos
            self.is_spent = True
        return holds

    def _take_held(self, at: cython.int, end: cython.int, element: cython.int) -> cython.int:
        if self._groups is not None:
            return Offers._take_held(self, at, end, element)
        count: cython.int = (end - at) // SLOW_WIDTH
        self._cover_found(count + len(self._query))
        self.residuals.visits += count >> 3
        self.candidates += count
        while at < end:
            self._find(self._lists[at + LISTED_QUERY])
            at += SLOW_WIDTH
        return 0

    def _is_found(self, query: cython.int) -> cython.bint:
        return (self._marks[query >> 6] >> (query & 63)) & 1

    def _find(self, query: cython.int) -> cython.int:
        """A query that holds, in the room that there is."""
        # PERF: three of four are found already, in no order that a branch could foresee.
        word: cython.int = query >> 6
        marks: cython.ulonglong = self._marks[word]
        bit: cython.ulonglong = 1
        bit = bit << (query & 63)
        self._marks[word] = marks | bit
        self.found[self.count] = query
        self.count += not marks & bit
        return 0

    def _cover_found(self, more: cython.int) -> cython.int:
        """Room for more to be found; those waiting count as well, for they may be verified."""
        if self.count + more >= len(self.found):
            self.found = grown(self.found, 2 * (self.count + more))
        return 0
