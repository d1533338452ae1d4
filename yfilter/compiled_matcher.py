"""Matcher: one message against everything a broker holds; the one entry of the engine.

Routing queries, the needs of links and local profiles are one holistic plan (section 4.3.1).
Queries stand in the ``Index``: an automaton over the structure and the selective comparisons of all
of them, and behind it operators that verify the rest.  ``match`` yields in order of need: first the
links to forward to, then what is left of the message for each of them, then the local profiles.  It
is lazy: what the caller does not ask for is not computed.  Equal profiles are one internal query.

When profiles or routes change while an iterator is unfinished, it goes on with what there was when
``match`` was called: every link of that time is yielded, also one whose route has been removed
since (so that a route on the move loses no message), and every profile that is still registered.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias
from weakref import WeakSet

from formats.element_stream import ElementStream
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.text import parse_text
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.match_limits import DEFAULT_MATCH_LIMITS, MatchLimits
from yfilter.engine.readings import Derive, Readings, graph_meant, readings_of
from yfilter.engine.targets import LinkTarget, Priority, Transforming
from yfilter.engine.work import Work
from yfilter.errors import ProfileRefused
from yfilter.explanation import Explanation
from yfilter.index.index import Index
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.link_queries import LinkQueries
from yfilter.local_delivery import LocalDelivery
from yfilter.local_queries import LocalQueries
from yfilter.matches import (
    PAUSE,
    Delivered,
    MakesNow,
    Match,
    ProfileMatch,
    RouteMatch,
    TransformationMatch,
)
from yfilter.message_match import MessageMatch
from yfilter.plan_graph import NODES_MAX, PlanGraph
from yfilter.projection.needs import Need
from yfilter.projection.transformations import Transformations

__all__ = ["Matcher", "Message"]

DUMP_NODES_MAX = 2_000

Message: TypeAlias = bytes | ElementStream | Readings
"""As text, which is parsed at once; parsed, with the readings that its root element says; or as
readings, so that all who are asked about it share the graph."""


class Matcher:
    """Add and remove profiles and routes at any time; match messages."""

    def __init__(
        self,
        limits: MatchLimits = DEFAULT_MATCH_LIMITS,
        message_limits: MessageLimits = DEFAULT_LIMITS,
        derive: Derive = graph_meant,
    ) -> None:
        """``derive``: the graph of an RDF/XML document, which is asked for once a call and only
        where some query is of graphs; whoever has it gives the message as Readings."""
        self.limits = limits
        self._message_limits = message_limits
        self._derive = derive
        self._index = Index(limits.lazy_bytes_max, limits.evaluation)
        self._local = LocalQueries(self._index)
        self._unfinished: WeakSet[MessageMatch] = WeakSet()
        self._link_queries = LinkQueries(self._index, limits)
        self._transformations = Transformations(self._index, limits=limits.evaluation)
        self._generated = 0
        self._work = Work()
        self._delivery = LocalDelivery(self._index, self._local, limits.evaluation, self._work)

    def add(self, profile: str | Profile, profile_id: str | None = None) -> str:
        """Register a profile; gives its id, "p1", "p2", ... unless one is named.

        Raises ProfileRefused, and ValueError for an id that is in use.
        """
        registrations = self._local.registrations
        if profile_id is not None and registrations.find(profile_id):
            raise ValueError(f"the profile id {profile_id!r} is in use")
        if len(registrations) >= self.limits.profiles_max:
            raise ProfileRefused(
                "too-many-profiles", f"{self.limits.profiles_max} profiles are registered already"
            )
        parsed = parse_profile(profile) if isinstance(profile, str) else profile
        name = self._new_id() if profile_id is None else profile_id
        self._local.add(parsed, name)
        return name

    def remove(self, profile_id: str) -> None:
        """Take a profile out; KeyError if it is not known."""
        gone = self._local.remove(profile_id)
        if gone:
            self._delivery.forget(gone)

    def add_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """A disjunct of the target's routing query; ValueError if it is there already.

        Raises ProfileRefused beyond ``routes_max``.
        """
        self._settle()
        self._link_queries.add_route(conjunction, target)

    def remove_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """Undo ``add_route`` of exactly this pair; KeyError if it is not there."""
        self._settle()
        self._link_queries.remove_route(conjunction, target)

    def open_needs(self, target: LinkTarget) -> None:
        """What nobody behind a link needs is left out of its messages from now on, on its trees; so
        far nobody needs anything."""
        self._settle()
        self._transformations.open(target)

    def close_needs(self, target: LinkTarget) -> None:
        """A link is no longer transformed; KeyError if its needs are not open."""
        self._settle()
        self._transformations.close(target)

    def add_need(self, need: Need, target: LinkTarget) -> None:
        """One taker more behind a link, whose needs are opened if they are not open."""
        self._settle()
        self._transformations.add(need, target)

    def remove_need(self, need: Need, target: LinkTarget) -> None:
        """Undo one ``add_need`` of this pair; KeyError if it is not there."""
        self._settle()
        self._transformations.remove(need, target)

    def set_transforming(self, link: str, transforming: Transforming) -> None:
        """What is done to the messages of a link whose needs are open: CUTTING, if nothing is
        said."""
        self._settle()
        self._transformations.set_mode(link, transforming)

    def transformed(
        self, message: Message, root: str, links: Sequence[str]
    ) -> dict[str, ElementStream]:
        """What is left of a message for those of the links of a tree that are transformed; one
        object for those that keep the same, the message itself where that is nearly all."""
        return self._transformations.left(self._read(message), root, links)

    def prepare(self) -> None:
        """Get memory ready for the first messages, after very many profiles were added at once.

        No answer depends on it; without it the first messages wait for the memory.
        """
        self._index.prepare()

    def match(self, message: Message, root: str = "") -> Iterator[Match]:
        """What the message matches, in order of need.

        First a RouteMatch for each link of the tree of ``root`` whose routing query holds, then a
        TransformationMatch for each of these links whose needs are open, then a ProfileMatch for
        each local profile.  Lazy; a message as text is parsed at once.  Raises
        MessageRefused for a text that is not XML or beyond the message limits, and
        MatchLimitExceeded ("too-many-visits") from the iterator.  A query whose
        own conditions exceed EvaluationLimits on the message does not match it; statistics count
        that as ``over_limit``.
        """
        matching = self._begin(message, root)
        return self._finish(matching, self._local.changes)

    def matched_links(self, message: bytes | ElementStream | Readings) -> Iterator[str]:
        """The links whose routing query holds, and nothing else of ``match``; lazy, and raises what
        that does."""
        matching = self._begin(message, "")
        try:
            for found in self._urgent(matching):
                if isinstance(found, RouteMatch):
                    yield found.link
        finally:
            self._end(matching)

    def match_in_stages(
        self, message: Message, root: str = ""
    ) -> tuple[list[Match], Iterator[Match]]:
        """``match`` in two: what links need, at once, and the local profiles, when they are asked
        for, which may be after other messages were matched.

        Raises what ``match`` and, as to the links, its iterator raise.
        """
        urgent, matching = self._in_stages(message, root)
        return urgent, self._finish_local(matching, self._local.changes)

    def deliver_in_stages(
        self, message: Message, root: str = "", makes_now: MakesNow | None = None
    ) -> tuple[list[Match], Iterator[Delivered]]:
        """``match_in_stages`` with finished results for the local profiles, as of ``deliver``; but
        for those for which ``makes_now`` is False.  Matching a long message has pauses: PAUSE."""
        urgent, local = self._in_stages(message, root)
        return urgent, self._finish_delivered(local, self._local.changes, makes_now)

    def deliver_to(self, message: Message, profile_ids: Iterable[str]) -> Iterator[Delivered]:
        """What some registered profiles get of a message that is known to match them; KeyError.

        Nothing is matched.  One ``Delivered`` for each distinct query, made when it is asked for;
        no results and no limit exceeded: it comes to nothing.
        """
        return self._delivery.to(self._read(message), profile_ids)

    def _in_stages(self, message: Message, root: str) -> tuple[list[Match], MessageMatch]:
        matching = self._begin(message, root)
        try:
            return list(self._urgent(matching)), matching
        except BaseException:
            self._end(matching)
            raise

    def matched_ids(self, message: Message) -> list[str]:
        """The ids of all local profiles that the message matches, at once; in no order.

        What ``match`` says of them, without an object for each; links are not looked at.  Raises
        what ``match`` and its iterator raise.
        """
        name = self._local.registrations.name
        return [name(number) for number in self.matched_numbers(message)]

    def matched_numbers(self, message: Message) -> array[int]:
        """As ``matched_ids``, by number: ``number_of`` a profile id, which ``id_of`` gives back.

        Thousands of ids are thousands of strings, each somewhere in memory; their numbers are one
        column.  The number of a profile that was removed is given again.
        """
        readings = self._read(message)
        self._work.messages += 1
        self._work.local_asked += 1
        local, visits_max = self._local, self.limits.visits_max
        if not local.remainders:
            found = self._index.match_runs(readings, visits_max, local.runs)
        else:
            kept = [
                number
                for number in self._index.match(readings, visits_max)
                if number not in local.remainders or self._delivery.has_results(number, readings)
            ]
            found = local.runs.collect(array("i", kept), len(kept))
        self._work.matched[Priority.PROFILE] += len(found)
        return found

    def deliver(self, message: Message) -> Iterator[Delivered]:
        """What local profiles get of a message, as finished results; links are not looked at.

        One ``Delivered`` for all profiles that get the message itself, the last one, and one for
        each other query, made when it is asked for.  Profiles that are added or removed meanwhile
        are treated as in ``match``.  Raises what ``match`` and its iterator raise; a query whose
        results exceed EvaluationLimits is delivered without any, and says which limit.
        """
        readings = self._read(message)
        self._work.messages += 1
        self._work.local_asked += 1
        stamp = self._local.changes
        found = self._index.match(readings, self.limits.visits_max)
        given_up = list(self._delivery.given_up(stamp))
        return chain(given_up, self._delivery.of(readings, found, None, stamp))

    def number_of(self, profile_id: str) -> int:
        """The number of a registered profile, from 1; KeyError if it is not known."""
        return self._local.number_of(profile_id)

    def take_costs(self, least: float) -> list[tuple[list[str], float]]:
        """(the ids of equal profiles, seconds) of those that have taken at least so many seconds of
        processor time, about, since they were told here last; what is less is told later."""
        costs = {query: nanos * 1e-9 for query, nanos in self._index.take_costs(int(least * 1e9))}
        for query, seconds in self._delivery.costs.take(least).items():
            costs[query] = costs.get(query, 0.0) + seconds
        found = ((self._local.names_of(query), seconds) for query, seconds in costs.items())
        return [(names, seconds) for names, seconds in found if names]

    @property
    def changes(self) -> int:
        """How often profiles have been added and removed."""
        return self._local.changes

    def query_of(self, profile_id: str) -> int:
        """A number that equal profiles share until one is added or removed; KeyError if the id is
        not known."""
        return self._local.registrations.query[self._local.number_of(profile_id)]

    def id_of(self, number: int) -> str:
        """The profile id of a number that is in use."""
        return self._local.registrations.name(number)

    def explain(self, profile: str | Profile, message: Message | None = None) -> Explanation:
        """How a profile is served, and which of its parts hold on a message; see Explanation.

        A registered one by its id, or any by its text.  Raises ProfileRefused, MessageRefused,
        and MatchLimitExceeded where the profile does not match because that would cost too much.
        """
        from yfilter.compiled_deciders import CompiledDeciders  # noqa: PLC0415 - as below
        from yfilter.explain import explain  # noqa: PLC0415 - who runs need not explain

        if isinstance(profile, str):
            profile = self._local.profile_of(profile) or parse_profile(profile)
        readings = None if message is None else self._read(message)
        served_by, limits = self._served_by(profile), self.limits.evaluation
        return explain(profile, served_by, readings, limits, CompiledDeciders())

    def statistics(self) -> dict[str, int]:
        """Sizes of the structure, and counts over all messages; see docs/engine.md."""
        return {
            **self._local.statistics(),
            **self._link_queries.statistics(),
            **self._transformations.statistics(),
            **self._index.statistics(),
            **self._work.statistics(),
            "over_limit": self._work.over_limit + self._index.operators.over_limit,
        }

    def dump(self, nodes_max: int = DUMP_NODES_MAX) -> str:
        """The plan for people: the automaton, its tree patterns and operators, the needs of links.

        At most about ``nodes_max`` nodes of each, the oldest, and how many more there are.
        """
        index = self._index
        pictures = (
            *(index.picture(self._names_of), index.twig_picture(), index.operators),
            self._transformations,
        )
        return "\n\n".join(
            filter(None, ("\n".join(picture.lines(nodes_max)) for picture in pictures))
        )

    def dump_graphviz(self, nodes_max: int = NODES_MAX) -> str:
        """The same as a graph, in DOT, the language of Graphviz; of all together ``nodes_max``."""
        graph = PlanGraph(nodes_max)
        self._index.picture(self._names_of).draw(graph)
        self._index.twig_picture().draw(graph)
        return graph.dot()

    def _served_by(self, profile: Profile) -> str:
        number = self._local.index_number(profile)
        if not number:
            trial = Matcher(MatchLimits(lazy_bytes_max=4096))
            trial.add(profile)
            return trial._served_by(profile)
        return self._index.picture(self._names_of).describe_query(number)

    def _names_of(self, query: int) -> list[str]:
        """For people: who has a query that is no routing query."""
        return self._transformations.names_of(query) or self._local.names_of(query)

    def _new_id(self) -> str:
        while True:
            self._generated += 1
            name = f"p{self._generated}"
            if not self._local.registrations.find(name):
                return name

    def _settle(self) -> None:
        """Before a link's queries change: what is urgent in every match under way, as it is."""
        for matching in list(self._unfinished):
            matching.settle()

    def _begin(self, message: Message, root: str) -> MessageMatch:
        readings = self._read(message)
        self._work.messages += 1
        matching = MessageMatch(
            *(self._index, self._link_queries, self._transformations),
            *(readings, root, self.limits),
        )
        if self._link_queries.routes:
            self._unfinished.add(matching)
        return matching

    def _read(self, message: Message) -> Readings:
        """The readings of a message; one as text is parsed."""
        if isinstance(message, bytes):
            message = parse_text(message, self._message_limits)
        return readings_of(message, self._derive) if isinstance(message, ElementStream) else message

    def _end(self, matching: MessageMatch) -> None:
        self._unfinished.discard(matching)

    def _finish(self, matching: MessageMatch, stamp: int) -> Iterator[Match]:
        try:
            yield from self._urgent(matching)
            yield from self._matched_profiles(matching, stamp)
        finally:
            self._end(matching)

    def _finish_local(self, matching: MessageMatch, stamp: int) -> Iterator[Match]:
        try:
            yield from self._matched_profiles(matching, stamp)
        finally:
            self._end(matching)

    def _finish_delivered(
        self, matching: MessageMatch, stamp: int, makes_now: MakesNow | None
    ) -> Iterator[Delivered]:
        try:
            self._work.local_asked += 1
            for found in self._index.match_in_steps(matching.message, matching.visits_left):
                if found is not None:
                    if self._index.unsure:
                        yield from list(self._delivery.given_up(stamp))
                    yield from self._delivery.of(matching.message, found, makes_now, stamp)
                    break
                yield PAUSE
        finally:
            self._end(matching)

    def _urgent(self, matching: MessageMatch) -> Iterator[Match]:
        for found in matching.urgent():
            if isinstance(found, str):
                self._work.matched[Priority.ROUTE] += 1
                yield RouteMatch(found)
            else:
                self._work.matched[Priority.TRANSFORMATION] += 1
                yield TransformationMatch(*found)

    def _matched_profiles(self, matching: MessageMatch, stamp: int) -> Iterator[ProfileMatch]:
        self._work.local_asked += 1
        for number in matching.local():
            yield from self._matches(number, matching.message, stamp)

    def _matches(self, number: int, message: Readings, stamp: int) -> Iterator[ProfileMatch]:
        """The registrations of a query, without those added or removed meanwhile."""
        local = self._local
        found = local.open_since(number, stamp)
        if not found:
            return
        rendering = self._delivery.rendering(number, message)
        if number in local.remainders and not self._delivery.has_results(
            number, message, rendering
        ):
            return
        query, since, name = (
            local.registrations.query,
            local.registrations.since,
            local.registrations.name,
        )
        for registration in found:
            # The caller may have removed it meanwhile, and added another one.
            if query[registration] == number and since[registration] <= stamp:
                self._work.matched[Priority.PROFILE] += 1
                yield ProfileMatch(name(registration), rendering)
