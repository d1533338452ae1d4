"""One message on the network: push-based execution with priorities (section 4.3.1).

The NFA runs first and hands the elements of each accepting state to its path operator.  From
there an operator is queued once all its inputs have delivered, and runs in its turn::

    high   operators that lead to a link of this tree that is not reached yet     first come,
    low    other operators that lead to a local profile                            first served

An operator of the network that leads to neither is not run at all: the targets behind it are
reached already, or belong to other trees.  The low class is not touched before the high one is
done and its links have been handed out.  A class between the two, dependent on the high one, is
where transformation queries will go.

A run reads the structure and never changes it.  When the structure changes while a run is
unfinished, its links are settled first (``settle_links``), so that a route on the move loses no
message.  Local queries go on: an operator made meanwhile runs only if all its inputs still were
to deliver, which is harmless, for the caller ignores subscribers newer than the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from formats.element_stream import ElementStream
from yfilter.engine.match_limits import MatchLimits
from yfilter.engine.operator_network import OperatorNetwork
from yfilter.engine.operators.operator import Operator
from yfilter.engine.scratch import Elements, Scratch
from yfilter.engine.targets import Query
from yfilter.errors import MatchLimitExceeded


class MessageRun:
    """The scratch space of one message; ``links`` and then ``queries`` drive it."""

    def __init__(
        self,
        network: OperatorNetwork,
        stream: ElementStream,
        root: str,
        limits: MatchLimits,
    ) -> None:
        self.executed = 0
        self.skipped = 0
        self.over_limit = 0
        self._network = network
        self._root = root
        self._scratch = Scratch(stream, limits)
        self._delivered: dict[Operator, Elements] = {}
        self._missing: dict[Operator, int] = {}  # inputs that have not delivered
        self._high: deque[Operator] = deque()
        self._low: deque[Operator] = deque()
        self._reached: set[str] = set()
        self._new_links: deque[str] = deque()
        self._matched: deque[tuple[Query, Elements]] = deque()
        self._started = False
        self._failure: MatchLimitExceeded | None = None
        self._exhausted: set[Operator] = set()  # lead to no open link, now and later

    @property
    def tuples(self) -> int:
        return self._scratch.tuples

    def links(self) -> Iterator[str]:
        """Each link of the tree whose routing query holds, once, as soon as it is known."""
        self._start()
        while self._new_links or self._high:
            if self._new_links:
                yield self._new_links.popleft()
            else:
                self._execute_high()

    def settle_links(self) -> None:
        """Find all links now; ``links`` hands them out later, as it does a failure."""
        try:
            self._start()
            while self._high:
                self._execute_high()
        except MatchLimitExceeded as exceeded:
            self._failure = exceeded
            self._high.clear()

    def raise_failure(self) -> None:
        """Raise what went wrong while links were settled, if anything did."""
        if self._failure is not None:
            raise self._failure

    def queries(self) -> Iterator[tuple[Query, Elements]]:
        """Each local query that is matched, with its elements; after ``links``."""
        self.raise_failure()
        while self._matched or self._low:
            if self._matched:
                yield self._matched.popleft()
            else:
                self._execute(self._low.popleft())

    def _start(self) -> None:
        """Run the NFA, once."""
        if self._started:
            return
        self._started = True
        if self._network.is_empty:
            return
        for state, elements in self._network.nfa.run(self._scratch.stream).items():
            self._deliver(self._network.source(state), elements)

    def _execute_high(self) -> None:
        operator = self._high.popleft()
        if self._leads_to_open_link(operator):
            self._execute(operator)
        else:
            self._queue_low(operator)

    def _execute(self, operator: Operator) -> None:
        if operator.profiles == 0 and operator.routes == 0:
            self.skipped += 1  # removed from the network while it stood in the queue
            return
        self.executed += 1
        inputs = [self._delivered[upstream] for upstream in operator.inputs]
        try:
            elements = operator.execute(inputs, self._scratch)
        except MatchLimitExceeded as exceeded:
            if exceeded.code == "too-many-tuples":
                raise
            # A bound of one condition, not of the message: other profiles must not suffer.
            self.over_limit += 1
            return
        if elements:
            self._deliver(operator, elements)

    def _deliver(self, operator: Operator, elements: Elements) -> None:
        self._scratch.charge(len(elements))
        self._delivered[operator] = elements
        for target in operator.links:
            if target.root == self._root and target.link not in self._reached:
                self._reached.add(target.link)
                self._new_links.append(target.link)
        for query in operator.queries:
            self._matched.append((query, elements))
        for downstream in operator.downstream:
            missing = self._missing.get(downstream, len(downstream.inputs)) - 1
            self._missing[downstream] = missing
            if missing == 0:
                self._queue(downstream)

    def _queue(self, operator: Operator) -> None:
        if (
            operator.routes
            and operator not in self._exhausted
            and self._leads_to_open_link(operator)
        ):
            self._high.append(operator)
        else:
            self._queue_low(operator)

    def _queue_low(self, operator: Operator) -> None:
        if operator.profiles:
            self._low.append(operator)
        else:
            self.skipped += 1

    def _leads_to_open_link(self, operator: Operator) -> bool:
        """Whether a link of this tree, not reached yet, is annotated here or downstream.

        A link once reached stays so; therefore a negative answer is kept for the message.
        """
        visited = {operator: None}
        pending = [operator]
        while pending:
            current = pending.pop()
            for target in current.links:
                if target.root == self._root and target.link not in self._reached:
                    return True
            for downstream in current.downstream:
                if (
                    downstream.routes
                    and downstream not in self._exhausted
                    and downstream not in visited
                ):
                    visited[downstream] = None
                    pending.append(downstream)
        self._exhausted.update(visited)
        return False
