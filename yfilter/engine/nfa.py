"""The NFA: the structure of all linear paths at once, with shared prefixes (section 4.1).

A path is a sequence of steps ``(descendant, name test)``.  Each state but the start has one
source, so the automaton is a tree: two paths share exactly their common prefix.  A ``//`` becomes
an ε-move to a state with a self-loop on every name::

    /nitf/head/pubdata                1 ──nitf──▶ 2 ──head──▶ 3 ──pubdata──▶ (4)
    /nitf//tobject.subject                        └──ε──▶ 5⟲ ──tobject.subject──▶ (6)
    /nitf//series                                         └──series──▶ (7)

It runs on an element stream with a stack of active state sets, one per open element; the set of
the document node is the start state and its ε-closure, so ``/a`` can only be the root element and
``//a`` is found at any depth.

Invariants: a state lives exactly as long as an accepting state at or below it; the symbols known
are exactly those on live transitions.  A run keeps nothing in the structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeAlias

from formats.element_stream import ElementStream
from formats.names import QualifiedName
from yfilter.language.query_ast import ANY, ANY_NAME, NameTest

# One step of a path as the automaton sees it: (descendant, test).
StructuralStep: TypeAlias = tuple[bool, NameTest]


class State:
    """One state; compared by identity.

    ``loop`` is the state behind the ε-move, ``looping`` says that this state is one.
    ``paths`` counts the paths that end here: the state is accepting while it is above zero.
    """

    __slots__ = ("loop", "looping", "paths", "source", "symbol", "transitions")

    def __init__(self, source: State | None, symbol: NameTest | None, looping: bool) -> None:
        self.source = source
        self.symbol = symbol
        self.looping = looping
        self.transitions: dict[NameTest, State] = {}
        self.loop: State | None = None
        self.paths = 0

    @property
    def accepting(self) -> bool:
        return self.paths > 0


class Nfa:
    """Add and remove linear paths; run all of them on a message."""

    def __init__(self) -> None:
        self._start = State(None, None, looping=False)
        self._symbols: dict[NameTest, int] = {}  # -> number of transitions that carry it
        self._states = 1
        self._accepting = 0
        self._paths = 0

    def add(self, steps: tuple[StructuralStep, ...]) -> State:
        """The accepting state of a path of at least one step; one ``remove`` undoes it."""
        if not steps:
            raise ValueError("a linear path has at least one step")
        state = self._start
        for descendant, test in steps:
            if descendant:
                state = self._loop_of(state)
            state = self._follow(state, test)
        if not state.accepting:
            self._accepting += 1
        state.paths += 1
        self._paths += 1
        return state

    def remove(self, state: State) -> None:
        """Take back one path that ends in ``state``; states that serve no other are freed."""
        if state.paths == 0:
            raise KeyError("no path ends in this state")
        state.paths -= 1
        self._paths -= 1
        if state.paths == 0:
            self._accepting -= 1
        current = state
        while current.source is not None and not (
            current.paths or current.transitions or current.loop
        ):
            current = self._free(current, current.source)

    def run(self, stream: ElementStream, charge: Callable[[int], None]) -> dict[State, list[int]]:
        """The elements that reach each accepting state, in document order; none, no entry.

        ``charge`` is told how many states are active at each element; it may raise.
        """
        reached: dict[State, list[int]] = {}
        moves = [self._expand(name) for name in stream.names]
        active: list[list[State]] = [self._closure(self._start)]
        names, depths = stream.element_name, stream.element_depth
        for element in range(len(stream)):
            depth = depths[element]
            del active[depth + 1 :]
            following = _successors(active[depth], moves[names[element]])
            active.append(following)
            charge(len(following))
            for state in following:
                if state.paths:
                    reached.setdefault(state, []).append(element)
        return reached

    def statistics(self) -> dict[str, int]:
        return {
            "nfa_states": self._states,
            "nfa_accepting_states": self._accepting,
            "nfa_paths": self._paths,
            "nfa_symbols": len(self._symbols),
        }

    def numbered(self, states_max: int) -> dict[State, int]:
        """The first states with a number: 1 for the start, then in order of creation, depth first.

        At most so many, the start among them.
        """
        return {state: number for number, state in enumerate(islice(self._walk(), states_max), 1)}

    def _loop_of(self, state: State) -> State:
        if state.loop is None:
            state.loop = State(state, None, looping=True)
            self._states += 1
        return state.loop

    def _follow(self, state: State, test: NameTest) -> State:
        following = state.transitions.get(test)
        if following is None:
            following = state.transitions[test] = State(state, test, looping=False)
            self._states += 1
            self._symbols[test] = self._symbols.get(test, 0) + 1
        return following

    def _free(self, state: State, source: State) -> State:
        if state.symbol is None:
            source.loop = None
        else:
            del source.transitions[state.symbol]
            self._symbols[state.symbol] -= 1
            if not self._symbols[state.symbol]:
                del self._symbols[state.symbol]
        self._states -= 1
        return source

    def _expand(self, name: QualifiedName) -> tuple[NameTest, ...]:
        """The known symbols that accept a name of the message: at most four."""
        candidates = (
            NameTest(name.namespace, name.local),
            NameTest(name.namespace, ANY),
            NameTest(ANY, name.local),
            ANY_NAME,
        )
        return tuple(test for test in candidates if test in self._symbols)

    @staticmethod
    def _closure(state: State) -> list[State]:
        return [state] if state.loop is None else [state, state.loop]

    def _walk(self) -> Iterator[State]:
        pending = [self._start]
        while pending:
            state = pending.pop()
            yield state
            if state.loop is not None:
                pending.append(state.loop)
            pending.extend(reversed(state.transitions.values()))


def format_test(test: NameTest) -> str:
    """A name test for people: ``name``, ``Q{uri}name``, ``Q{uri}*``, ``*:name``, ``*``."""
    if test.namespace == ANY:
        return ANY if test.local == ANY else f"*:{test.local}"
    if not test.namespace and test.local != ANY:
        return test.local
    return f"Q{{{test.namespace}}}{test.local}"


def _successors(active: list[State], symbols: tuple[NameTest, ...]) -> list[State]:
    """The next state set, ε-closed and without duplicates.

    Only a looping state can be reached twice: by staying in it and by its ε-move.
    """
    following: dict[State, None] = {}
    for state in active:
        if state.looping:
            following[state] = None
        transitions = state.transitions
        if transitions:
            for symbol in symbols:
                target = transitions.get(symbol)
                if target is not None:
                    following[target] = None
                    if target.loop is not None:
                        following[target.loop] = None
    return list(following)
