"""NetworkPicture: NFA and operator network, for people: as text and as a graph.

One transition a line, accepting states in parentheses with their number of paths; then one line an
operator: number, what it does, its inputs, its targets::

    NFA
    1 -nitf-> 2
    2 -ε-> 3⟲

    Operators
    #1 path /nitf/head  [state 4]
    #2 σ @id = "x"  [#1]  -> alice
"""

from __future__ import annotations

from collections.abc import Iterator

from yfilter.engine.nfa import Nfa, State, format_test
from yfilter.engine.operators.operator import Operator
from yfilter.engine.operators.path import Path
from yfilter.plan_graph import PlanGraph, some_of


class NetworkPicture:
    """The oldest states and operators; how many there are in all is said."""

    def __init__(self, nfa: Nfa, operators: list[Operator]) -> None:
        self._nfa = nfa
        self._operators = operators

    def lines(self, nodes_max: int) -> Iterator[str]:
        numbers = self._nfa.numbered(nodes_max)
        yield "NFA"
        yield from self._transitions(numbers)
        yield from _more(self._states() - len(numbers), "states")
        yield from ("", "Operators")
        shown = {operator: n for n, operator in enumerate(self._operators[:nodes_max], 1)}
        for operator, number in shown.items():
            inputs = ", ".join(f"#{shown[upstream]}" for upstream in operator.inputs)
            if isinstance(operator, Path):
                state = numbers.get(operator.state)
                inputs = f"state {'…' if state is None else state}"
            targets = [f"-> {name}" for target in operator.targets for name in target.names()]
            yield "  ".join((f"#{number} {operator.describe()}  [{inputs}]", *targets))
        yield from _more(len(self._operators) - len(shown), "operators")

    def draw(self, graph: PlanGraph) -> None:
        """States take a third of the room, operators another, targets the rest."""
        if not self._operators:
            return
        numbers = self._nfa.numbered(graph.room // 3)
        operators = self._operators[: graph.room // 3]
        graph.group("NFA")
        for state, number in numbers.items():
            graph.node(state, str(number), "accepting" if state.accepting else "state")
        for state in numbers:
            for symbol, following in state.transitions.items():
                graph.edge(state, following, format_test(symbol))
            if state.loop is not None:
                graph.edge(state, state.loop, "ε")
            if state.looping:
                graph.edge(state, state, "*")
        graph.group("Operator network")
        for operator in operators:
            graph.node(operator, operator.describe(), "operator")
            for upstream in operator.inputs:
                graph.edge(upstream, operator)
            if isinstance(operator, Path):
                graph.edge(operator.state, operator)
            if operator.targets:
                names = [name for target in operator.targets for name in target.names()]
                graph.node(("targets", operator), some_of(names), "target")
                graph.edge(operator, ("targets", operator))
        graph.cut(self._states() - len(numbers) + len(self._operators) - len(operators))

    def _transitions(self, numbers: dict[State, int]) -> Iterator[str]:
        if len(numbers) == 1:
            yield "1"
        for state, number in numbers.items():
            for symbol, following in state.transitions.items():
                if following in numbers:
                    yield f"{number} -{format_test(symbol)}-> {_label(following, numbers)}"
            if state.loop in numbers:
                yield f"{number} -ε-> {_label(state.loop, numbers)}"

    def _states(self) -> int:
        return self._nfa.statistics()["nfa_states"]


def _label(state: State, numbers: dict[State, int]) -> str:
    loop = "⟲" if state.looping else ""
    number = numbers[state]
    return f"({number}: {state.paths}){loop}" if state.paths else f"{number}{loop}"


def _more(count: int, what: str) -> Iterator[str]:
    if count:
        yield f"… and {count} {what} more"
