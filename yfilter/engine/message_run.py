"""One message on the network: push-based execution with priorities (section 4.3.1).

The NFA runs first and hands the elements of each accepting state to its path operator.  From
there an operator is queued once all its inputs have delivered, and runs in its turn::

    high     operators that lead to a link of this tree that is not reached yet    first come,
    medium   others that lead to a transformation query of a link that is reached   first
    low      others that lead to a local profile                                    served

An operator of the network that leads to none of these is not run at all.  While links are being
looked for, what leads to a transformation query only is in a wait queue; which of it is needed is
known when the high class is done.  Each class is driven by its own iterator, in this order, and
what the caller does not ask for is not computed; not even the NFA runs before something needs it.

A run reads the structure and never changes it.  The caller finishes ``links`` and
``transformations`` before the structure of either changes.  Local queries may go on: an operator
made meanwhile runs only if all its inputs still were to deliver, which is harmless, for the caller
ignores subscribers newer than the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from formats.element_stream import ElementStream
from yfilter.engine.match_limits import MatchLimits
from yfilter.engine.operator_network import OperatorNetwork
from yfilter.engine.operators.operator import Operator
from yfilter.engine.scratch import Elements, Scratch
from yfilter.engine.targets import LinkTarget, Priority, Query, Transformation
from yfilter.errors import MatchLimitExceeded


class MessageRun:
    """The scratch space of one message; ``links``, ``transformations``, ``queries`` drive it.

    ``executed`` counts operators by class, ``skipped_reached`` those that led to no link that was
    open, and ``skipped_not_taken`` those that led to transformation queries of other links only.
    """

    def __init__(
        self,
        network: OperatorNetwork,
        stream: ElementStream,
        root: str,
        limits: MatchLimits,
    ) -> None:
        self.executed = [0] * len(Priority)
        self.skipped_reached = 0
        self.skipped_not_taken = 0
        self.over_limit = 0
        self._network = network
        self._root = root
        self._scratch = Scratch(stream, limits)
        self._delivered: dict[Operator, Elements] = {}
        self._missing: dict[Operator, int] = {}  # inputs that have not delivered
        self._phase = Priority.ROUTE
        self._queues: tuple[deque[Operator], ...] = tuple(deque() for _ in Priority)
        self._wait: deque[Operator] = deque()
        self._reached: dict[str, None] = {}
        self._new_links: deque[str] = deque()
        self._transformed: deque[tuple[Transformation, Elements]] = deque()
        self._matched: deque[tuple[Query, Elements]] = deque()
        self._started = False
        self._dead_ends: set[Operator] = set()  # lead to no target that this phase wants

    @property
    def tuples(self) -> int:
        return self._scratch.tuples

    def links(self, reached: Iterable[str]) -> Iterator[str]:
        """Each link of the tree whose routing query holds and that is not ``reached`` already."""
        self._reached.update(dict.fromkeys(reached))
        self._start()
        high = self._queues[Priority.ROUTE]
        while self._new_links or high:
            if self._new_links:
                yield self._new_links.popleft()
                continue
            operator = high.popleft()
            if self._leads_to_wanted(operator, self._is_open_link):
                self._execute(operator)
            else:
                self._queue_behind_links(operator)

    def transformations(self) -> Iterator[tuple[Transformation, Elements]]:
        """Each transformation query of a link that was reached, with its elements."""
        self._phase = Priority.TRANSFORMATION
        self._dead_ends.clear()
        if not self._reached:
            return
        self._start()
        for operator in self._wait:
            self._queue_behind_links(operator)
        self._wait.clear()
        medium = self._queues[Priority.TRANSFORMATION]
        while self._transformed or medium:
            if self._transformed:
                transformation, elements = self._transformed.popleft()
                if self._is_needed(transformation):
                    yield transformation, elements
            else:
                self._execute(medium.popleft())

    def queries(self) -> Iterator[tuple[Query, Elements]]:
        """Each local query that is matched, with its elements."""
        self._phase = Priority.PROFILE
        self._start()
        for operator in self._wait:
            self._queue_low(operator)
        self._wait.clear()
        low = self._queues[Priority.PROFILE]
        while self._matched or low:
            if self._matched:
                yield self._matched.popleft()
            else:
                self._execute(low.popleft())

    def _start(self) -> None:
        """Run the NFA, once, as soon as a class has targets."""
        if self._started or not self._network.has(self._phase):
            return
        self._started = True
        stream = self._scratch.stream
        for state, elements in self._network.nfa.run(stream, self._scratch.charge).items():
            self._deliver(self._network.source(state), elements)

    def _execute(self, operator: Operator) -> None:
        if not any(operator.leads_to):
            return  # removed from the network while it stood in the queue
        self.executed[self._phase] += 1
        inputs = [self._delivered[upstream] for upstream in operator.inputs]
        self._scratch.charge(sum(map(len, inputs)))
        try:
            elements = operator.execute(inputs, self._scratch)
        except MatchLimitExceeded:
            if self._scratch.is_exhausted:
                raise
            # A bound of one condition, not of the message: other profiles must not suffer.
            self.over_limit += 1
            return
        if elements:
            self._deliver(operator, elements)

    def _deliver(self, operator: Operator, elements: Elements) -> None:
        self._delivered[operator] = elements
        for target in operator.targets:
            if isinstance(target, Query):
                self._matched.append((target, elements))
            elif isinstance(target, Transformation):
                self._transformed.append((target, elements))
            elif self._is_open_link(target):
                self._reached[target.link] = None
                self._new_links.append(target.link)
        for downstream in operator.downstream:
            missing = self._missing.get(downstream, len(downstream.inputs)) - 1
            self._missing[downstream] = missing
            if missing == 0:
                self._queue(downstream)

    def _queue(self, operator: Operator) -> None:
        if self._phase is Priority.ROUTE and self._leads_to_wanted(operator, self._is_open_link):
            self._queues[Priority.ROUTE].append(operator)
        else:
            self._queue_behind_links(operator)

    def _queue_behind_links(self, operator: Operator) -> None:
        """Queue what leads to no open link: by now, or by the end of the high class."""
        if not operator.leads_to[Priority.TRANSFORMATION] or self._phase is Priority.PROFILE:
            self._queue_low(operator)
        elif self._phase is Priority.ROUTE:
            self._wait.append(operator)
        elif self._leads_to_wanted(operator, self._is_needed):
            self._queues[Priority.TRANSFORMATION].append(operator)
        else:
            self._queue_low(operator)

    def _queue_low(self, operator: Operator) -> None:
        if operator.leads_to[Priority.PROFILE]:
            self._queues[Priority.PROFILE].append(operator)
        elif operator.leads_to[Priority.TRANSFORMATION]:
            self.skipped_not_taken += 1
        else:
            self.skipped_reached += 1

    def _is_open_link(self, target: object) -> bool:
        return (
            isinstance(target, LinkTarget)
            and target.is_on(self._root)
            and target.link not in self._reached
        )

    def _is_needed(self, target: object) -> bool:
        return isinstance(target, Transformation) and any(
            link in self._reached for link in target.links_of(self._root)
        )

    def _leads_to_wanted(self, operator: Operator, is_wanted: Callable[[object], bool]) -> bool:
        """Whether a target that this phase wants is here or downstream.

        What is not wanted once stays so to the end of the phase; so a negative answer is kept.
        """
        visited: dict[Operator, None] = {}
        pending = [operator]
        while pending:
            current = pending.pop()
            if (
                not current.leads_to[self._phase]
                or current in visited
                or current in self._dead_ends
            ):
                continue
            visited[current] = None
            if any(map(is_wanted, current.targets)):
                return True
            pending.extend(current.downstream)
        self._dead_ends.update(visited)
        return False
