"""Profiles of a DocumentSchema: paths as users would write them, as texts of the profile language.

A profile walks down the schema for up to six steps, so that it can match; some steps become ``*``
or are reached by ``//``; it has up to two predicates that compare an attribute or a text, and one
profile in five has a nested path::

    /nitf/body//quote[@dir="left"]/*[person[@id="k7"]]

Profile number n of a seed is always the same, whichever others are made.  Narrow profiles are
very particular ones, with conditions on values that hardly occur: a mixture of ordinary and narrow
profiles matches as small a share of the messages as wished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from benchmarks.workload.domains import NUMBERS, RARE_SIZE
from benchmarks.workload.schema import DocumentSchema

STEPS_MAX = 6
_STEPS = (2, 3, 4, 4, 5, 5, 6, STEPS_MAX)
_ANY_ELEMENT = 0.15
_DESCENDANT = 0.15
_NESTED = 0.2
_PREDICATES = (0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2)
_ATTEMPTS = 6


@dataclass(slots=True)
class _Step:
    """``element`` is what the step was made for, ``test`` what is asked for."""

    element: str
    axis: str
    test: str
    predicates: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return self.axis + self.test + "".join(f"[{p}]" for p in self.predicates)


class ProfileMaker:
    """Makes the profiles of one schema and seed."""

    def __init__(self, schema: DocumentSchema, seed: int) -> None:
        self._schema = schema
        self._seed = seed

    def distinct(self, ordinary: float = 1.0) -> Iterator[str]:
        """Texts without end, no two the same; this share of them ordinary, the others narrow."""
        random = Random(f"mixture {self._seed}")
        seen: set[str] = set()
        for number in count():
            text = self.text(number, narrow=random.random() >= ordinary)
            if text not in seen:
                seen.add(text)
                yield text

    def text(self, number: int, narrow: bool = False) -> str:
        """Profile ``number`` of this seed, ordinary or narrow."""
        random = Random((self._seed << 32) + number)
        steps = self._steps(random, random.choice(_STEPS))
        conditions = random.choice(_PREDICATES)
        if narrow:
            while not self._add_rare_condition(random, steps):
                steps = self._steps(random, random.choice(_STEPS))
            self._add_rare_condition(random, steps)
            conditions = 0
        for _ in range(conditions):
            self._add_condition(random, steps)
        if random.random() < _NESTED:
            self._add_nested_path(random, steps)
        return "".join(map(str, steps))

    def _steps(self, random: Random, length: int) -> list[_Step]:
        children = self._schema.children
        steps: list[_Step] = []
        inner: tuple[str, ...] = (self._schema.root,)
        while inner and len(steps) < length:
            element = random.choice(inner)
            axis = "/"
            if random.random() < _DESCENDANT:
                axis = "//"
                for _ in range(random.randint(0, 2)):
                    element = random.choice(children[element] or (element,))
            steps.append(self._step(random, element, axis))
            inner = children[element]
        return steps

    def _step(self, random: Random, element: str, axis: str) -> _Step:
        return _Step(element, axis, "*" if random.random() < _ANY_ELEMENT else element)

    def _add_condition(self, random: Random, steps: list[_Step]) -> None:
        """A predicate on the last step, or on any; none if the steps chosen have no values."""
        for _ in range(_ATTEMPTS):
            step = steps[-1] if random.random() < 0.5 else random.choice(steps)
            condition = self._condition(random, step.element)
            if condition and condition not in step.predicates:
                step.predicates.append(condition)
                return

    def _condition(self, random: Random, element: str) -> str:
        """A comparison of an attribute of the element or of its text; "" if it has none."""
        schema, kind = self._schema, self._schema.types[element]
        if kind.text is not None and random.random() < 0.15:
            operand, domain = "text()", kind.text
        elif kind.attributes:
            name = random.choice(kind.attributes)[0]
            operand, domain = "@" + name, schema.domains[name]
        else:
            return ""
        if domain.numeric and random.random() < 0.7:
            operator = random.choice(("<", "<=", ">", ">="))
            return f"{operand} {operator} {random.randrange(100, NUMBERS - 100)}"
        return f'{operand} = "{domain.draw(random)}"'

    def _add_rare_condition(self, random: Random, steps: list[_Step]) -> bool:
        """An equality with a value that hardly occurs, on the last step that can have one."""
        schema = self._schema
        for step in reversed(steps):
            kind = schema.types[step.element]
            operands = {f"@{name}": schema.domains[name] for name, _ in kind.attributes}
            if kind.text is not None:
                operands["text()"] = kind.text
            rare = [
                operand
                for operand, domain in operands.items()
                if domain.size >= RARE_SIZE and not any(operand in p for p in step.predicates)
            ]
            if rare:
                operand = random.choice(rare)
                step.predicates.append(f'{operand} = "{operands[operand].draw_rare(random)}"')
                return True
        return False

    def _add_nested_path(self, random: Random, steps: list[_Step]) -> None:
        """A path of up to three steps as predicate, mostly with an equality at its end."""
        candidates = [step for step in steps if self._schema.children[step.element]]
        if not candidates:
            return
        step = random.choice(candidates)
        inner = self._inner_steps(random, step.element, random.choice((1, 2, 2, 3)))
        kind = self._schema.types[inner[-1].element]
        if kind.attributes and random.random() < 0.8:
            name = random.choice(kind.attributes)[0]
            value = self._schema.domains[name].draw(random)
            inner[-1].predicates.append(f'@{name} = "{value}"')
        text = "".join(map(str, inner))
        step.predicates.append("." + text if text.startswith("//") else text.removeprefix("/"))

    def _inner_steps(self, random: Random, element: str, length: int) -> list[_Step]:
        children = self._schema.children
        steps: list[_Step] = []
        while children[element] and len(steps) < length:
            element = random.choice(children[element])
            axis = "/"
            if random.random() < _DESCENDANT:
                axis = "//"
                element = random.choice(children[element] or (element,))
            steps.append(self._step(random, element, axis))
        return steps
