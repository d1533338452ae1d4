"""Rules over metadata: text -> normalised alternatives without paths, ``or`` and ``not``."""

from __future__ import annotations

from typing import NamedTuple


class Constant(NamedTuple):
    """``text``: as a rule writes it."""

    kind: str  # "text" | "number" | "moment" | "iri"
    value: str | float  # text; double; seconds since 1970; IRI
    text: str


class Condition(NamedTuple):
    """Some value of ``property`` compares so with a constant; "": the resource itself does.

    ``operator``: ``= != < <= > >= contains lacks``, of a resource itself ``=`` and ``!=``.  A text
    is compared with the lexical form of any literal, a number and a moment with literals that have
    one, an IRI with resources.
    """

    variable: str
    property: str
    operator: str
    constant: Constant


class Join(NamedTuple):
    """Some value of one property compares so with some value of another; "": the resource itself.

    ``kind``: how values are compared, as that of a Constant; "" where no range tells: as what both
    are, a number, a moment, an IRI, or else a text.
    """

    left: str
    left_property: str
    operator: str
    right: str
    right_property: str
    kind: str = "iri"


class Conjunction(NamedTuple):
    """``classes``: of each variable, in order of appearance; ``rdfs:Resource`` is of whatever
    a statement is about."""

    classes: dict[str, str]
    register: str
    conditions: tuple[Condition, ...]
    joins: tuple[Join, ...]


class Rule(NamedTuple):
    """``sparql`` is the same over all statements; ``names``: the rules it is made of, at all
    depths."""

    text: str
    alternatives: tuple[Conjunction, ...]
    sparql: str
    names: frozenset[str] = frozenset()
