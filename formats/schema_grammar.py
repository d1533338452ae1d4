"""The Grammar of a schema: what its declarations let one expect, in their order.

Only what has one name can be expected, and what is declared first under a name counts.  A child
must be there where no choice and no ``least`` of 0 is around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from formats.grammar import ElementDeclaration, Grammar, Name, make_grammar
from formats.schema import Schema
from formats.schema_model import ANYTHING, Elements, Particle, SchemaModel, TextContent
from formats.schema_reader import read_schema_model

_CHILDREN_MAX = 256  # of one element
# Particles looked at, as often as they are referred to; what comes after that is not expected.
_STEPS_MAX = 200_000


def read_grammar(schema: Schema) -> Grammar:
    """The grammar of a schema that ``read_schema`` has accepted."""
    return make_grammar(_Expectations(read_schema_model(schema)).declarations())


class _Expectations:
    def __init__(self, model: SchemaModel) -> None:
        self._model = model
        self._steps = 0

    def declarations(self) -> dict[Name, ElementDeclaration]:
        declarations: dict[Name, ElementDeclaration] = {}
        for declaration in self._model.declarations:
            name, content = declaration.expected, declaration.content
            if name is None or name in declarations:
                continue
            declarations[name] = declared = ElementDeclaration()
            declared.text = content.text is TextContent.ANY
            for child in self._children(content.particle, True):
                declared.children.append(child)
                if len(declared.children) >= _CHILDREN_MAX:
                    break
            for attribute in content.attributes:
                if attribute.expected is not None:
                    declared.add_attribute(attribute.expected, attribute.required)
        return declarations

    def _children(self, particle: Particle, required: bool) -> Iterator[tuple[Name, bool]]:
        self._steps += 1
        if self._steps > _STEPS_MAX:
            return
        required = required and particle.least > 0
        if isinstance(particle, Elements):
            number = particle.declarations[0]
            name = self._model.declarations[number].expected
            if name is not None and number != ANYTHING:
                yield name, required
            return
        for part in particle.parts:
            yield from self._children(part, required and not particle.is_choice)
