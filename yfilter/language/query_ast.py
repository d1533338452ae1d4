"""The expressions of the profile language: one class each, and one tree for all that a user says.

A profile is one expression.  What is delivered follows from its form (section 2.1 of the paper): a
path delivers the message as it came, when the path selects anything; a FLWOR expression, or any
other expression, a document for each item; a constructor one document.  All nodes are immutable and
hashable, so that equal parts of different profiles can be shared by looking them up.

An expression says by its own methods which expressions it has in it, which variables it binds and
what its value depends on, which kinds of items it can yield, and how it is written.
"""

from __future__ import annotations

import operator as python_operators
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from functools import lru_cache, reduce
from math import isnan, nan
from operator import is_, or_
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from formats.names import QualifiedName
from yfilter.language.functions import (
    ABOUT_NODES,
    ANYTHING,
    ATOMS,
    CHILDREN,
    CONTEXT_FUNCTIONS,
    CURRENT,
    NODES,
    NOTHING,
    PARENTS,
    RESULTS,
    TEMPORAL,
    TYPES,
    ArgumentKind,
    ItemKind,
    Kinds,
    ResultKind,
    signature_of,
    type_result,
)
from yfilter.language.namespaces import ERROR_NAMESPACE, braced
from yfilter.language.numbers import number_text
from yfilter.language.places import EXCHANGED
from yfilter.language.trees import Blank, NeedsWords, by_identity, flat, parts_of, split
from yfilter.language.words import NOWHERE, OPERATOR, WILDCARD, WORD_TESTS, Spacing, needles_of

# -------------------------------------------------------------------------------------------------
# How two values are compared, in profiles of every language.


_NAMES = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Operator(Enum):
    """General comparison: holds when some pair of items does."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    def __init__(self, sign: str) -> None:
        self.holds: Callable[[Any, Any], bool] = getattr(python_operators, _NAMES[sign])


GENERAL = {one.value: one for one in Operator}
VALUE_COMPARISONS = {one.name.lower(): one for one in Operator}
"""``eq`` and the others, which compare one value with one, by their words."""

MIRRORED = {
    **{one: one for one in Operator},
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""What says the same with the sides exchanged."""

NEGATED = {
    Operator.EQ: Operator.NE,
    Operator.LT: Operator.GE,
    Operator.GT: Operator.LE,
    Operator.NE: Operator.EQ,
    Operator.GE: Operator.LT,
    Operator.LE: Operator.GT,
}
"""What holds of two texts where the other does not."""


Variables: TypeAlias = Mapping[str, Kinds]
"""The kinds of items of the variables that are bound around an expression."""


class NodeKind(Enum):
    """What a location step selects."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    TEXT = "text()"
    SELF = "."
    PARENT = ".."
    COMMENT = "comment()"
    PROCESSING_INSTRUCTION = "processing-instruction()"
    NODE = "node()"
    DOCUMENT = "document-node()"

    @property
    def word(self) -> str:
        """As it is written without parentheses."""
        return self.value.removesuffix("()")

    @property
    def kinds(self) -> Kinds:
        """The kinds of items that are such nodes."""
        return _NODE_KINDS[self]


_NODE_KINDS = {
    NodeKind.ELEMENT: ItemKind.ELEMENT,
    NodeKind.ATTRIBUTE: ItemKind.ATTRIBUTE,
    NodeKind.TEXT: ItemKind.TEXT,
    NodeKind.COMMENT: ItemKind.COMMENT,
    NodeKind.PROCESSING_INSTRUCTION: ItemKind.COMMENT,
    NodeKind.DOCUMENT: ItemKind.DOCUMENT,
    NodeKind.NODE: NODES,
}


class Axis(Enum):
    """An axis that has to be written out; child, attribute, ``.`` and ``..`` are a step's kind."""

    SELF = "self"
    PARENT = "parent"
    DESCENDANT = "descendant"
    DESCENDANT_OR_SELF = "descendant-or-self"
    ANCESTOR = "ancestor"
    ANCESTOR_OR_SELF = "ancestor-or-self"
    FOLLOWING_SIBLING = "following-sibling"
    PRECEDING_SIBLING = "preceding-sibling"
    FOLLOWING = "following"
    PRECEDING = "preceding"

    def kinds_from(self, kinds: Kinds) -> Kinds:
        """The kinds of nodes on the axis of nodes of ``kinds``."""
        below = CHILDREN if kinds & PARENTS else NOTHING
        above = PARENTS if kinds & CHILDREN else NOTHING
        if kinds & ItemKind.ATTRIBUTE:
            above |= ItemKind.ELEMENT if self is Axis.PARENT else PARENTS
        match self:
            case Axis.SELF:
                return kinds & NODES
            case Axis.PARENT | Axis.ANCESTOR:
                return above
            case Axis.ANCESTOR_OR_SELF:
                return above | kinds & NODES
            case Axis.DESCENDANT:
                return below
            case Axis.DESCENDANT_OR_SELF:
                return below | kinds & NODES
            case Axis.FOLLOWING_SIBLING | Axis.PRECEDING_SIBLING:
                return CHILDREN if kinds & CHILDREN else NOTHING
            case _:
                return CHILDREN if kinds & NODES else NOTHING


class Origin(Enum):
    """Where a path starts."""

    MESSAGE = "$msg"  # the document node: "/a", "//a", "$msg/a"
    CONTEXT = "."  # the context item inside a predicate: "a", ".//a", "@a"
    VARIABLE = "$"  # a variable bound by for or let
    EXPRESSION = "()"  # any other expression: "(//a)[1]", "<a/>/b"


class UpdateKind(Enum):
    """What is done to a node of a copy, in the words before the node and between it and the new."""

    DELETE = ("delete node", "")
    REPLACE = ("replace node", "with")
    REPLACE_VALUE = ("replace value of node", "with")
    RENAME = ("rename node", "as")
    INSERT_INTO = ("insert node", "into")
    INSERT_FIRST = ("insert node", "as first into")
    INSERT_LAST = ("insert node", "as last into")
    INSERT_BEFORE = ("insert node", "before")
    INSERT_AFTER = ("insert node", "after")


# In a NameTest: any namespace, any local name.
ANY = "*"


class NameTest(NamedTuple):
    """``name``, ``prefix:name``, ``*``, ``*:name`` or ``prefix:*``; either part may be ANY."""

    namespace: str
    local: str

    @property
    def is_full(self) -> bool:
        """Whether it accepts one name only."""
        return ANY not in (self.namespace, self.local)

    def accepts(self, namespace: str, local: str) -> bool:
        return self.namespace in (ANY, namespace) and self.local in (ANY, local)

    def written(self, plain: bool) -> str:
        if self.namespace == ANY:
            return ANY if self.local == ANY else f"*:{self.local}"
        if self.namespace == "" and self.local != ANY and plain:
            return self.local
        return braced(self.namespace) + self.local


ANY_NAME = NameTest(ANY, ANY)

Number: TypeAlias = int | Decimal | float


class LeafCondition(NamedTuple):
    """A comparison of the values of one leaf of an element with a constant.

    ``kind``, ``test``: attributes or texts; the element's string value has SELF and no test.
    ``operator`` None: that there is a value, as ``leaf`` is.
    """

    kind: NodeKind
    test: NameTest | None
    operator: Operator | None = None
    value: str | Number = ""

    @property
    def leaf(self) -> LeafCondition:
        """The leaf without the comparison."""
        return LeafCondition(self.kind, self.test)

    @property
    def path(self) -> PathExpression:
        """The leaf as a path from its element."""
        steps = (LocationStep(False, self.kind, self.test),)
        return relative() if self.kind is NodeKind.SELF else relative(*steps)

    @property
    def number(self) -> float:
        """The value as a number: untyped values, which become xs:double, are compared with it."""
        return float(self.value)

    @property
    def is_full(self) -> bool:
        """Whether the leaf has one name at most."""
        return self.test is None or self.test.is_full

    @property
    def is_single(self) -> bool:
        """Whether there is never more than one value."""
        return self.kind is NodeKind.SELF or (self.kind is NodeKind.ATTRIBUTE and self.is_full)

    @property
    def equals_text(self) -> bool:
        """Whether the value has to be one text."""
        return self.operator is Operator.EQ and isinstance(self.value, str)

    def has_all_of(self, other: LeafCondition) -> bool:
        """Whether each value of the other leaf is one of this leaf: ``@*`` has those of ``@x``."""
        if self[:2] == other[:2]:
            return True
        if self.kind is not other.kind or self.test is None or other.test is None:
            return False
        return self.test.accepts(other.test.namespace, other.test.local)

    def compared(self, operator: Operator, value: str | Number) -> LeafCondition | None:
        """The leaf compared with a constant; None for one that is no xs:double."""
        if not isinstance(value, str) and isnan(double_of(value)):
            return None
        return self._replace(operator=operator, value=value)


def double_of(value: Number) -> float:
    """The nearest xs:double; NaN beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return nan


class ValueList(NamedTuple):
    """``path = (values)``: an equality of a leaf with one of several texts."""

    path: Expression
    leaf: LeafCondition
    values: frozenset[str]

    def equal_to(self, value: str) -> Comparison:
        """The equality with one of them."""
        return Comparison(self.path, Operator.EQ, Literal(value))


# -- expressions

# From the loosest to the tightest; operators of one level group from the left.
LEVELS: tuple[frozenset[str], ...] = (
    frozenset(("or",)),
    frozenset(("and",)),
    frozenset((*GENERAL, *VALUE_COMPARISONS, "is", "<<", ">>")),
    frozenset(("contains",)),
    frozenset(("||",)),
    frozenset(("to",)),
    frozenset(("+", "-")),
    frozenset(("*", "div", "idiv", "mod")),
    frozenset(("|", "union")),
    frozenset(("intersect", "except")),
)
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names}
COMPARISON_LEVEL, WORDS_LEVEL, RANGE_LEVEL = 2, 3, 5
CAST_LEVEL = len(LEVELS)
UNARY_LEVEL = CAST_LEVEL + 1
_SINGLE, _PRIMARY = -1, UNARY_LEVEL + 1
_ARITHMETIC = frozenset(("+", "-", "*", "div", "idiv", "mod", "to", "negate"))
_SET_OPERATORS = frozenset(("|", "intersect", "except"))


class Use(Enum):
    """How an expression uses the value of one of its parts."""

    PASSED = "its items are items of the whole value"
    THERE = "whether there are items, and which nodes they are"
    VALUE = "its atomic values"
    COPY = "its nodes with all that is in them"


class PartUse(NamedTuple):
    """``binds``: variables for the items of the part, in the parts behind it."""

    part: Expression
    use: Use = Use.THERE
    binds: tuple[str, ...] = ()


class Expression:
    """The answers that most classes of expressions give about themselves."""

    __slots__ = ()

    # -- what is in it

    def same_focus(self) -> list[Expression]:
        """Its direct parts whose context item is that of the expression itself."""
        return _expressions(parts_of(self) or ())

    def new_focus(self) -> list[Expression]:
        """Its direct parts with another context item."""
        return []

    def within(self) -> Iterator[Expression]:
        """The expression and all in it, each before its parts."""
        waiting = [self]
        while waiting:
            found = waiting.pop()
            yield found
            waiting += reversed((*found.same_focus(), *found.new_focus()))

    @property
    def size(self) -> int:
        """How many steps it has; an expression that is no path counts as one."""
        return sum(part.own_size for part in self.within())

    @property
    def own_size(self) -> int:
        return 1

    @property
    def constructs(self) -> bool:
        """Whether a node that is not of the message may be made anywhere in it."""
        kinds = Constructor | Computed | Markup | Transform | UserCall
        return any(isinstance(part, kinds) for part in self.within())

    # -- what its value depends on

    def binds(self) -> Iterable[str]:
        """The variables that it binds itself."""
        return ()

    def refers(self) -> str:
        """The variable that it is about itself."""
        return ""

    def in_scope(self) -> list[Expression]:
        """Its direct parts in which the variables around it mean the same."""
        return [*self.same_focus(), *self.new_focus()]

    def free_variables(self) -> frozenset[str]:
        """The variables that it uses and does not bind; no name is bound twice in a profile."""
        used: set[str] = {""}
        bound: set[str] = {""}
        waiting = [self]
        while waiting:
            part = waiting.pop()
            used.add(part.refers())
            bound.update(part.binds())
            waiting += part.in_scope()
        return frozenset(used - bound)

    def uses_context(self) -> bool:
        """Whether the context item, its position or their number comes into it."""
        return any(part.uses_context() for part in self.same_focus())

    def depends_on_message_alone(self) -> bool:
        """Whether it has one value for a whole message, and another for another message."""
        return (
            not self.uses_context()
            and not self.free_variables()
            and any(part.origin is Origin.MESSAGE for part in self.within())
        )

    def uses_position(self) -> bool:
        """Whether position() or last() of the expression's own focus occurs in it."""
        return any(part.uses_position() for part in self.same_focus())

    def asks_item(self) -> bool:
        """Whether it depends on the context item, and not on its position alone."""
        parts = self.same_focus()
        return any(part.asks_item() for part in parts) if parts else self.uses_context()

    def stands_alone(self) -> bool:
        """Whether it depends on neither context nor variables, as far as its text tells; not if it
        is about literals only."""
        parts = [part for part in self.same_focus() if not isinstance(part, Literal)]
        return bool(parts) and all(part.stands_alone() for part in parts)

    def outcomes(self) -> Iterable[Expression]:
        """The parts whose values, of one or of all of them, are its value."""
        return ()

    def may_be_number(self) -> bool:
        """Whether the value can be a number, which in brackets would be a position."""
        return any(part.may_be_number() for part in self.outcomes())

    @by_identity(2_048)
    def is_positional(self) -> bool:
        """Whether it depends on more than its node as a predicate, as far as its text tells.

        ::

            [2]  [last()]  [position() < 3]  [@a + 1]     order and place among others matter
            [@a = 2]  [b[1]]  [count(c)  > 1]             the node alone decides
        """
        return self.may_be_number() or self.uses_position()

    def surely_number(self) -> bool:
        """Whether its value is one number, if it can be a number at all."""
        return False

    def literals(self) -> tuple[Literal, ...]:
        """Itself if it is a literal, its parts if it is a sequence of literals; else none."""
        return ()

    def is_constant(self) -> bool:
        """Whether it is a literal, or a literal converted to a type."""
        return False

    def with_parts(self, parts: tuple[Expression, ...]) -> Expression | None:
        """An expression of the same kind of other parts; None of a kind that has more."""
        return None

    def with_places(self, places: Mapping[str, Expression]) -> Expression | None:
        """The expression with position() and last() of its own focus replaced."""
        if not self.uses_position():
            return self
        parts = [part.with_places(places) for part in self.same_focus()]
        known = tuple(part for part in parts if part is not None)
        return self.with_parts(known) if len(known) == len(parts) else None

    def replaced(self, bindings: Mapping[str, Expression]) -> Expression | None:
        """The expression with paths or literals in the place of variables, seen from the same
        context item; None where that cannot be said."""
        if self.free_variables().isdisjoint(bindings):
            return self
        parts = [part.replaced(bindings) for part in self.same_focus()]
        known = tuple(part for part in parts if part is not None)
        return self.with_parts(known) if len(known) == len(parts) else None

    part_use: ClassVar[Use] = Use.THERE
    """The use of a part that is no outcome."""

    def part_uses(self) -> Iterable[PartUse]:
        """The uses of its direct parts with the same focus, in their order; a function uses
        nothing of the context item, and a path its start only."""
        passed = [*map(id, self.outcomes())]
        return [
            PartUse(part, Use.PASSED if id(part) in passed else self.part_use)
            for part in self.same_focus()
        ]

    # -- what has to be there

    def needed(self) -> tuple[PathExpression, ...] | None:
        """Paths that lead down from the context item, or from the message, of which one selects
        something wherever the value is not empty; no path if it always is, None where none are
        known.

        Positions and axes that do not lead down are left out of the paths."""
        outcomes = tuple(self.outcomes())
        return needed_by_one(outcomes) if outcomes else None

    def implied(self) -> Iterator[Expression]:
        """Conditions of such paths that hold wherever it does as a condition.

        Nothing is implied by what is not understood."""
        return iter(()) if self.is_local else _some_of(self)

    def implied_by_text(self) -> Iterator[Expression]:
        """The conditions implied where its string value is not empty."""
        return _some_of(self)

    # -- its type

    def is_boolean(self) -> bool:
        """Whether its value is one xs:boolean."""
        return False

    def has_truth(self) -> bool:
        """Whether its value, if there is no error, surely has an effective boolean value."""
        return bool(self.steps) or self.is_boolean()

    never_fails: ClassVar[bool] = False
    """Whether no evaluation is an error if that of no part is."""

    def is_sure(self, nodes: Iterable[str] = ()) -> bool:
        """Whether it can be seen that no evaluation of it is an error, outside ``try``; ``nodes``:
        variables that are nodes."""
        return self.never_fails and all(part.is_sure(nodes) for part in self.same_focus())

    def is_path(self, library: tuple[FunctionDeclaration, ...] = ()) -> bool:
        """Whether it selects nodes of the message, so that a profile that is nothing else delivers
        the message as it came.

        Also one that starts with parentheses, ``(//a)[1]``, and paths combined: ``/a | /b``; and
        what is declared as one, in the ``library`` of the calls around it."""
        return False

    def is_at_most_one(self) -> bool:
        """Whether a value is one item, or an attribute of the context item, for all the text
        tells."""
        return False

    def word_condition(self) -> WordCondition | None:
        """The words that a condition looks for, if they are written down; else None."""
        return None

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        """The kinds of items that it can yield; ``context`` is what ``.`` can be."""
        return _union(self.outcomes(), variables, context)

    # -- its text

    @property
    def level(self) -> int:
        """How tightly it holds together: the level of an operator, or a looser or tighter one."""
        return _PRIMARY

    def written(self, plain: bool) -> str:
        """Its text; ``plain``: a name without a prefix is in no namespace at this place."""
        raise TypeError(f"{type(self).__name__} has no text")

    def inside(self, least: int, plain: bool) -> str:
        """In parentheses if it holds together less tightly than ``least``."""
        text = self.written(plain)
        return f"({text})" if self.level < least else text

    def single(self, plain: bool) -> str:
        """As one of several, with commas or words between them."""
        return self.inside(_SINGLE, plain)

    def start_text(self, plain: bool) -> str:
        """As the left side of ``/`` or ``!``."""
        return f"({self.written(plain)})"

    def enclosed(self, plain: bool) -> str:
        """As content of a constructor."""
        return f"{{{self.written(plain)}}}"

    # -- as a condition of a node

    def leaf(self) -> LeafCondition | None:
        """The leaf of the context element that it is the path to, if it is one."""
        return None

    def leaf_condition(self) -> LeafCondition | None:
        """The condition as a comparison of one leaf with a literal, if it is one."""
        return self.leaf()

    def value_list(self) -> ValueList | None:
        """The condition as a comparison of one leaf with a list of texts, if it is one."""
        return None

    def conjuncts(self) -> tuple[Expression, ...]:
        """The parts that all have to hold; none for ``.`` and ``/``, which always do."""
        return (self,)

    def as_condition(self) -> Expression:
        """An expression that has the same effective boolean value and binds no variables, as far
        as such a one is known.

        ::

            some $v in a/b satisfies $v = "x"        a/b = "x"
            some $v in a/b satisfies $v/c and $v/d   a/b[c][d]
            some $v in a, $w in b satisfies          a[c] and b[d]
                $v/c and $w/d
            let $v := a/b return $v = "x"            a/b = "x"
            exists(a[some $v in b satisfies $v/c])   a[b[c]]
            every $v in a/b satisfies $v/c           not(a/b[not(c)])
            if (a) then b else c                     a and b or not(a) and c
            compare(a, "x") > 0                      a gt "x"
        """
        return self

    def denied(self) -> Expression:
        """The condition that holds where this one does not, if it is no error."""
        return FunctionCall("not", (self,))

    def as_predicate(self) -> Expression:
        """The condition as a predicate: a number in brackets would be a position."""
        return FunctionCall("boolean", (self,)) if self.may_be_number() else self

    is_of_its_parts: ClassVar[bool] = False
    """Whether nothing but its parts comes into its value."""

    @property
    def is_local(self) -> bool:
        """Whether an element decides it by its name, attributes, text and string value."""
        return self.is_of_its_parts and all(part.is_local for part in self.same_focus())

    def as_existence(self) -> PathExpression | None:
        """The path that selects something exactly when it holds, if there is one.

        A comparison of a path with a literal holds when it does for some node of the path, so it
        becomes a predicate of the last step: ``a/@id = "x"`` is ``a/@id[. = "x"]``.
        """
        return None

    # -- as a path, which starts at its value where it is none

    is_location: ClassVar[bool] = False
    """Whether it is written as a location path."""

    @property
    def origin(self) -> Origin:
        return Origin.EXPRESSION

    @property
    def steps(self) -> tuple[LocationStep, ...]:
        return ()

    @property
    def bare_variable(self) -> str:
        """The variable whose name it is, and nothing else."""
        return ""

    def divided(self) -> tuple[Expression, Expression | None]:
        """A path without the last conditions of its last step, and these."""
        return self, None

    def with_step(self, step: LocationStep) -> PathExpression:
        """``self/step``; what can be said in fewer steps is."""
        return PathExpression(Origin.EXPRESSION, (), start=self).with_step(step)

    def with_steps(self, steps: tuple[LocationStep, ...]) -> PathExpression:
        """Other steps from the same origin."""
        return PathExpression(Origin.EXPRESSION, steps, start=self)

    def with_filter(self, step: LocationStep) -> Expression:
        """``self[…]``, where positions count in the whole value."""
        return PathExpression(Origin.EXPRESSION, (step,), start=self)


class Fragment:
    """A part of the syntax that has expressions in it and is none."""

    __slots__ = ()


def _expressions(parts: Iterable[object]) -> list[Expression]:
    """Those that are expressions, also in fragments and tuples."""
    found: list[Expression] = []
    for part in parts:
        if isinstance(part, Expression):
            found.append(part)
        elif type(part) is tuple:
            found += _expressions(part)
        elif isinstance(part, Fragment):
            found += _expressions(parts_of(part) or ())
    return found


def needed_by_one(parts: Iterable[Expression]) -> tuple[PathExpression, ...] | None:
    """As ``needed``, where one of some expressions has a value that is not empty."""
    found: dict[PathExpression, None] = {}
    for part in parts:
        needed = part.needed()
        if needed is None:
            return None
        found.update(dict.fromkeys(needed))
    return tuple(found)


def _some_of(*values: Expression) -> Iterator[Expression]:
    """For each value, taken to be not empty, the condition that one of its paths is there."""
    for value in values:
        needed = value.needed()
        if needed:
            yield needed[0] if len(needed) == 1 else Or(needed)


def _where(value: Expression, condition: Expression) -> Expression:
    """``value[condition]``."""
    return value.with_filter(LocationStep(False, NodeKind.SELF, None, (condition,)))


def _union(parts: Iterable[Expression], variables: Variables, context: Kinds) -> Kinds:
    return reduce(or_, (part.kinds(variables, context) for part in parts), NOTHING)


def _listed(parts: Iterable[Expression], plain: bool) -> str:
    return ", ".join(part.single(plain) for part in parts)


class Condition(Expression):
    """Its value is one xs:boolean."""

    __slots__ = ()

    def is_boolean(self) -> bool:
        return True

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return ItemKind.BOOLEAN


# -- paths


@dataclass(frozen=True, slots=True)
class LocationStep(Fragment):
    """One step; ``descendant`` says that ``//`` stood before it.

    ``test`` is None where the kind says all.  ``//x`` is XPath's
    ``/descendant-or-self::node()/child::x``.  SELF and PARENT are never descendant.  SELF as a
    path's first step filters where the path starts (``.[a]``, ``$n[2]``); further on it stands only
    with a condition on positions, else its predicates belong to the step before it.  A step with
    an ``axis`` is never descendant.
    """

    descendant: bool
    kind: NodeKind
    test: NameTest | None
    predicates: tuple[Expression, ...] = ()
    axis: Axis | None = None

    @property
    def is_self(self) -> bool:
        return self.kind is NodeKind.SELF and self.axis is None

    @property
    def is_single(self) -> bool:
        """Whether it leads from a node to one node at most, as far as its kind tells."""
        if self.kind is NodeKind.PARENT:
            return True
        is_attribute = self.kind is NodeKind.ATTRIBUTE and self.axis is None
        return is_attribute and not self.descendant and bool(self.test and self.test.is_full)

    @property
    def is_positional(self) -> bool:
        """Whether a predicate depends on the place of a node among others."""
        return any(part.is_positional() for part in self.predicates)

    @property
    def is_plain(self) -> bool:
        """Whether the engine may take the step apart, and its predicates in any order."""
        return self.axis is None and self.kind in _PLAIN_KINDS and not self.is_positional

    def normal(self) -> LocationStep:
        """The short form of a step that has one, as far as no position is asked for."""
        if self.axis is Axis.DESCENDANT and self.kind in _BELOW:
            return replace(self, descendant=True, axis=None)
        if self.kind is NodeKind.NODE and not self.descendant:
            if self.axis is Axis.SELF:
                return replace(self, kind=NodeKind.SELF, axis=None)
            if self.axis is Axis.PARENT:
                return replace(self, kind=NodeKind.PARENT, axis=None)
        return self

    def placed(self) -> LocationStep:
        """The same step with positions among siblings as conditions on each node, where that can
        be said."""
        is_child = self.axis is None and self.kind is NodeKind.ELEMENT
        if not is_child or sum(part.is_positional() for part in self.predicates) != 1:
            return self  # of several each would stand in the next one, twice
        kept: tuple[Expression, ...] = ()
        for predicate in self.predicates:
            if predicate.is_positional():
                before, behind = (
                    LocationStep(False, self.kind, self.test, kept, axis)
                    for axis in (Axis.PRECEDING_SIBLING, Axis.FOLLOWING_SIBLING)
                )
                condition = _placed(predicate, _count_of(before), _count_of(behind))
                if condition is None:
                    return self
                kept = (*kept, condition)
            else:
                kept = (*kept, predicate)
        return replace(self, predicates=kept)

    def with_conditions(self) -> LocationStep:
        """The step with predicates that bind no variables: see ``as_condition``."""
        if not self.predicates:
            return self
        predicates = tuple([part.as_condition() for part in self.predicates])
        is_same = all(map(is_, predicates, self.predicates))
        return self if is_same else replace(self, predicates=predicates)

    def with_predicates(self, predicates: tuple[Expression, ...]) -> LocationStep:
        """The step with more predicates behind its own."""
        return replace(self, predicates=self.predicates + predicates) if predicates else self

    def kinds_from(self, kinds: Kinds) -> Kinds:
        """The kinds of nodes that it leads to from ``kinds``; NOTHING if it can lead nowhere."""
        kind = self.kind
        if self.axis is not None:
            return self.axis.kinds_from(kinds) & kind.kinds
        if kind is NodeKind.SELF:
            return kinds
        if kind is NodeKind.PARENT:
            return Axis.PARENT.kinds_from(kinds)
        is_below = kind not in (NodeKind.ATTRIBUTE, NodeKind.TEXT)
        leads_on = kinds & (PARENTS if self.descendant or is_below else ItemKind.ELEMENT)
        selected = kind.kinds & CHILDREN if kind is not NodeKind.ATTRIBUTE else kind.kinds
        return selected if leads_on else NOTHING

    def written(self, plain: bool) -> str:
        predicates = "".join([_bracketed(part, plain) for part in self.predicates])
        slash = "//" if self.descendant else "/"
        axis = f"{self.axis.value}::" if self.axis else ""
        return f"{slash}{axis}{self.written_test(plain)}{predicates}"

    def written_test(self, plain: bool) -> str:
        if self.test is None:
            return self.kind.value
        if self.kind is NodeKind.PROCESSING_INSTRUCTION:
            return f"processing-instruction({_quoted(self.test.local)})"
        if self.kind is NodeKind.ATTRIBUTE:
            name = self.test.written(plain=True)
            return f"attribute({name})" if self.axis else f"@{name}"
        return self.test.written(plain)


def _count_of(step: LocationStep) -> Expression:
    return FunctionCall("count", (relative(step),))


def _placed(predicate: Expression, before: Expression, behind: Expression) -> Expression | None:
    """A predicate on the position as one on the siblings ``before`` and ``behind``; None where its
    text does not tell whether it is a number, or where the position stands elsewhere.

    ::

        a[2]            a[count(preceding-sibling::a) + 1 = 2]
        a[last()]       a[count(following-sibling::a) = 0]
        a[@b][2]        a[@b][count(preceding-sibling::a[@b]) + 1 = 2]
    """
    match predicate:
        case FunctionCall("last", ()):
            return Comparison(behind, Operator.EQ, Literal(0))
        case Operation("-", (FunctionCall("last", ()), Literal() as fewer)):
            return Comparison(behind, Operator.EQ, fewer)
        case Comparison(
            FunctionCall("position", ()),
            operator,
            Operation("-", (FunctionCall("last", ()), Literal() as fewer)),
        ):
            return Comparison(behind, MIRRORED[operator], fewer)
    if predicate.may_be_number():
        if not predicate.surely_number():
            return None
        predicate = Comparison(FunctionCall("position", ()), Operator.EQ, predicate)
    place = Operation("+", (before, Literal(1)))
    return predicate.with_places({"position": place, "last": Operation("+", (place, behind))})


@by_identity(256)
def _bracketed(predicate: Expression, plain: bool) -> str:
    return f"[{predicate.written(plain)}]"


# Kinds that descendant:: finds where ``//`` finds them.
_BELOW = frozenset(
    (NodeKind.ELEMENT, NodeKind.TEXT, NodeKind.COMMENT, NodeKind.PROCESSING_INSTRUCTION)
)
_PLAIN_KINDS = frozenset(
    (NodeKind.ELEMENT, NodeKind.ATTRIBUTE, NodeKind.TEXT, NodeKind.SELF, NodeKind.PARENT)
)
_LISTED_MAX = 64  # integers of a range that are written one by one
_WRITTEN_OUT_MAX = 512  # steps of a condition without its variables
ANY_DEPTH = LocationStep(False, NodeKind.NODE, None, (), Axis.DESCENDANT_OR_SELF)


class Downward(NamedTuple):
    """A path of plain steps that selects at least what another does.

    ``exact``: just that.  ``cut``: it ends before the other one does, at other nodes.
    """

    path: PathExpression
    exact: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class PathExpression(Expression):
    """A location path; as a condition it holds when it selects anything.

    ``variable`` is the name without ``$`` when the origin is VARIABLE, else "".  ``start`` is where
    the path starts when the origin is EXPRESSION.  No steps means the origin itself.
    """

    origin: Origin = field()
    steps: tuple[LocationStep, ...] = field()
    variable: str = ""
    start: Expression | None = None

    is_location = True

    @property
    def bare_variable(self) -> str:
        return "" if self.steps else self.variable

    def same_focus(self) -> list[Expression]:
        return [] if self.start is None else [self.start]

    def new_focus(self) -> list[Expression]:
        return [part for step in self.steps for part in step.predicates]

    @property
    def own_size(self) -> int:
        return len(self.steps)

    def refers(self) -> str:
        return self.variable

    def uses_context(self) -> bool:
        is_relative = self.origin is Origin.CONTEXT
        return is_relative or (self.start is not None and self.start.uses_context())

    def stands_alone(self) -> bool:
        if any(part.free_variables() for part in self.new_focus()):
            return False
        is_alone = self.start is not None and self.start.stands_alone()
        return is_alone or self.origin is Origin.MESSAGE

    def may_be_number(self) -> bool:
        starts_anywhere = self.origin in (Origin.VARIABLE, Origin.EXPRESSION)
        return starts_anywhere and all(step.kind is NodeKind.SELF for step in self.steps)

    def origin_kinds(self, variables: Variables, context: Kinds) -> Kinds:
        if self.origin is Origin.MESSAGE:
            return ItemKind.DOCUMENT
        if self.origin is Origin.VARIABLE:
            return variables[self.variable]
        return context if self.start is None else self.start.kinds(variables, context)

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        kinds = self.origin_kinds(variables, context)
        for step in self.steps:
            kinds = step.kinds_from(kinds)
        return kinds

    def written(self, plain: bool) -> str:
        steps = "".join([step.written(plain) for step in self.steps])
        is_filtered = bool(self.steps) and self.steps[0].is_self
        if is_filtered:
            steps = steps.removeprefix("/.")
        if self.origin is Origin.VARIABLE:
            return f"${self.variable}{steps}"
        if self.start is not None:
            return f"({self.start.written(plain)}){steps}"
        if self.origin is Origin.MESSAGE:
            return steps if steps and not is_filtered else f"$msg{steps}"
        if not steps or is_filtered or self.steps[0].descendant:
            return f".{steps}"
        return steps.removeprefix("/")

    def start_text(self, plain: bool) -> str:
        return self.written(plain)

    def with_step(self, step: LocationStep) -> PathExpression:
        is_self = step.is_self
        is_short = step.axis is None and not is_self and step.kind is not NodeKind.PARENT
        steps = self.steps
        if step.descendant and not is_short:
            steps = (*steps, ANY_DEPTH)
            step = replace(step, descendant=False)
        last = steps[-1] if steps else None
        if last is not None and last.axis is not None and last == ANY_DEPTH and is_short:
            # A document or an element has the same children and attributes under either name.
            return self.with_steps((*steps[:-1], replace(step, descendant=True)))
        if is_self and last is not None and not step.is_positional:
            return self.with_steps((*steps[:-1], last.with_predicates(step.predicates)))
        if is_self and last is None and not step.predicates:
            if self.origin in (Origin.MESSAGE, Origin.CONTEXT):
                return self
            # Of many nodes each once, in document order.
            step = LocationStep(False, NodeKind.NODE, None, (), Axis.SELF)
        return self.with_steps((*steps, step))

    def straight(self) -> PathExpression:
        """The same path from the message with axes that do not lead down said as conditions, where
        nothing selective is asked in front of them.

        ::

            //self::a[b]                 //a[b]
            c/self::a[b]                 c[self::a][b]
            c/following-sibling::a[b]    a[b][preceding-sibling::c]
            //c/following::a[b]          //a[b][preceding::c]
        """
        steps: list[LocationStep] = []
        for step in self.steps:
            said = _said_downward(steps, step)
            if said is None:
                return self
            steps = said
        return self if len(steps) == len(self.steps) else self.with_steps(tuple(steps))

    def placed(self) -> PathExpression:
        """The same path with positions among siblings as conditions on each node, where that can
        be said."""
        steps = tuple([step.placed() for step in self.steps])
        return self if steps == self.steps else self.with_steps(steps)

    def replaced(self, bindings: Mapping[str, Expression]) -> Expression | None:
        """A variable inside a predicate stays out of reach: the context is another one there."""
        if any(not part.free_variables().isdisjoint(bindings) for part in self.new_focus()):
            return None
        if self.start is not None:
            start = self.start.replaced(bindings)
            return None if start is None else replace(self, start=start)
        bound = bindings.get(self.variable) if self.origin is Origin.VARIABLE else self
        if not self.steps or bound is self or bound is None:
            return self if bound is None else bound
        if self.steps[0].is_self and self.steps[0].is_positional:
            return PathExpression(Origin.EXPRESSION, self.steps, start=bound)
        if isinstance(bound, PathExpression):
            return bound.joined(self.steps)
        return PathExpression(Origin.EXPRESSION, self.steps, start=bound)

    def as_condition(self) -> PathExpression:
        steps = tuple([step.with_conditions() for step in self.steps])
        return self if all(map(is_, steps, self.steps)) else self.with_steps(steps)

    @property
    def leads_to_nodes(self) -> bool:
        """Whether its items are nodes, whatever it starts from."""
        return any(not step.is_self for step in self.steps)

    def is_at_most_one(self) -> bool:
        leaf = self.leaf()
        return leaf is not None and leaf.is_single

    def with_steps(self, steps: tuple[LocationStep, ...]) -> PathExpression:
        return PathExpression(self.origin, steps, self.variable, self.start)

    def with_filter(self, step: LocationStep) -> Expression:
        if not self.steps:
            return self.with_steps((step,))
        if step.is_positional:
            return PathExpression(Origin.EXPRESSION, (step,), start=self)
        return self.with_step(step)

    def with_predicates(self, predicates: tuple[Expression, ...]) -> PathExpression:
        """The path with more predicates of its last step."""
        if not predicates:
            return self
        if not self.steps:
            return self.with_steps((LocationStep(False, NodeKind.SELF, None, predicates),))
        return self.with_steps((*self.steps[:-1], self.steps[-1].with_predicates(predicates)))

    def joined(self, steps: tuple[LocationStep, ...]) -> PathExpression:
        """``self/steps``; a leading ``.[a]`` gives its predicates to the step before it."""
        first, *rest = steps
        if first.kind is NodeKind.SELF and self.steps:
            path = self.with_predicates(first.predicates)
            return path.with_steps((*path.steps, *rest))
        return self.with_steps(self.steps + steps)

    def leaf(self) -> LeafCondition | None:
        if self.origin is not Origin.CONTEXT or len(self.steps) > 1:
            return None
        if not self.steps:
            return LeafCondition(NodeKind.SELF, None)
        step = self.steps[0]
        is_bare = not (step.predicates or step.descendant or step.axis)
        if is_bare and step.kind in (NodeKind.ATTRIBUTE, NodeKind.TEXT):
            return LeafCondition(step.kind, step.test)
        return None

    def conjuncts(self) -> tuple[Expression, ...]:
        is_simple = self.origin in (Origin.CONTEXT, Origin.MESSAGE)
        if not self.steps:
            return () if is_simple else (self,)
        step = self.steps[0]
        is_filter = self.origin is Origin.CONTEXT and len(self.steps) == 1
        if is_filter and step.kind is NodeKind.SELF and step.is_plain:
            return tuple(part for one in step.predicates for part in one.conjuncts())
        return (self,)

    @property
    def is_local(self) -> bool:
        """``.``, ``@name`` or ``text()``; with predicates only if these stay where they are."""
        if self.origin is not Origin.CONTEXT:
            return False
        for place, step in enumerate(self.steps, 1):
            is_leaf = step.kind in (NodeKind.ATTRIBUTE, NodeKind.TEXT)
            is_here = step.axis is None and not step.descendant
            if not is_here or not (is_leaf or step.kind is NodeKind.SELF):
                return False
            if is_leaf and place < len(self.steps):
                return False
            if not all(part.is_local for part in step.predicates):
                return False
        return True

    @property
    def is_plain(self) -> bool:
        """Whether every step of the path may be taken apart."""
        return self.start is None and all(step.is_plain for step in self.steps)

    def as_existence(self) -> PathExpression | None:
        return self if self.is_plain else None

    def divided(self) -> tuple[PathExpression, Expression | None]:
        if not self.steps:
            return self, None
        last = self.steps[-1]
        kept = len(last.predicates)
        while kept and not last.predicates[kept - 1].is_positional():
            kept -= 1
        conditions = last.predicates[kept:]
        base = self.with_steps((*self.steps[:-1], replace(last, predicates=last.predicates[:kept])))
        if len(conditions) < 2:
            return base, conditions[0] if conditions else None
        return base, And(flat(conditions, And))

    def downward(self) -> Downward:
        """What is left of the path without positions, without axes that do not lead down, and
        without ``..``, which is said as a condition where it can be.

        The engine takes predicates apart and puts them together in any order, which positions do
        not allow."""
        steps: list[LocationStep] = []
        exact, cut = True, False
        for step in self.steps:
            if (
                step.axis is not None
                or step.kind not in _PLAIN_KINDS
                or (step.is_self and not steps)
            ):
                cut = not step.is_self
                exact = False
                if cut:
                    break
                continue
            kept = tuple(part for part in step.predicates if not part.is_positional())
            if len(kept) < len(step.predicates):
                step = replace(step, predicates=kept)  # noqa: PLW2901
                exact = False
            steps.append(step)
        folded = self.with_steps(tuple(steps)).folded()
        for index, step in enumerate(folded):
            if step.kind in (NodeKind.PARENT, NodeKind.SELF):
                folded, exact, cut = folded[:index], False, True
                break
        left = self if folded == self.steps else self.with_steps(folded)
        return Downward(left, exact, cut or not folded)

    def is_sure(self, nodes: Iterable[str] = ()) -> bool:
        start = self.start
        return start is None or (start.needed() is not None and start.is_sure(nodes))

    def is_path(self, library: tuple[FunctionDeclaration, ...] = ()) -> bool:
        return self.start is None or self.start.is_path(library)

    def needed(self) -> tuple[PathExpression, ...] | None:
        if self.start is not None:
            return self.start.needed()
        path = self if self.origin is Origin.VARIABLE else self.downward().path
        return (path,) if path.steps and self.origin is not Origin.VARIABLE else None

    def implied(self) -> Iterator[Expression]:
        return iter(()) if self.is_plain else _some_of(self)

    def folded(self) -> tuple[LocationStep, ...]:
        """The same steps with ``..`` after a child step said as a predicate: ``a/b/..`` is
        ``a[b]``.

        Only the first step of the result can be ``.[…]``; ``..`` stays where it leads above the
        origin, or after ``//``, whose steps have more than one way up.
        """
        folded: list[LocationStep] = []
        for step in self.steps:
            last = folded[-1] if folded else None
            if step.kind is NodeKind.SELF and last is not None:
                folded[-1] = last.with_predicates(step.predicates)
            elif (
                step.kind is NodeKind.PARENT
                and last is not None
                and not last.descendant
                and last.kind not in (NodeKind.PARENT, NodeKind.SELF)
            ):
                folded.pop()
                predicates = (relative(last), *step.predicates)
                if folded:
                    folded[-1] = folded[-1].with_predicates(predicates)
                else:
                    folded.append(LocationStep(False, NodeKind.SELF, None, predicates))
            else:
                folded.append(step)
        return tuple(folded)


INVERSE = {
    Axis.FOLLOWING_SIBLING: Axis.PRECEDING_SIBLING,
    Axis.PRECEDING_SIBLING: Axis.FOLLOWING_SIBLING,
    Axis.FOLLOWING: Axis.PRECEDING,
    Axis.PRECEDING: Axis.FOLLOWING,
}


def _said_downward(steps: list[LocationStep], step: LocationStep) -> list[LocationStep] | None:
    """Steps from the message and one more, without its axis; None where that cannot be said."""
    if step.axis is None or (step == ANY_DEPTH and not steps):
        return [*steps, step]
    if step.kind is not NodeKind.ELEMENT or step.is_positional:
        return None
    plain = replace(step, axis=None)
    if steps in ([], [ANY_DEPTH]):
        is_anywhere = step.axis is Axis.DESCENDANT_OR_SELF or (
            step.axis is Axis.SELF and bool(steps)
        )
        return [replace(plain, descendant=True)] if is_anywhere else None
    last = steps[-1]
    if last.kind is not NodeKind.ELEMENT or last.is_positional:
        return None
    if step.axis is Axis.SELF:
        kept = () if step.test == last.test else (relative(replace(step, predicates=())),)
        return [*steps[:-1], last.with_predicates((*kept, *step.predicates))]
    is_near = step.axis in (Axis.FOLLOWING_SIBLING, Axis.PRECEDING_SIBLING)
    if step.axis not in INVERSE or not (is_near or (len(steps) == 1 and last.descendant)):
        return None
    if any(each.predicates for each in steps):
        return None
    before = relative(replace(last, descendant=False, axis=INVERSE[step.axis]))
    moved = replace(plain, descendant=last.descendant)
    return [*steps[:-1], moved.with_predicates((before,))]


def relative(*steps: LocationStep) -> PathExpression:
    """A path from the context item."""
    return PathExpression(Origin.CONTEXT, steps)


def absolute(*steps: LocationStep) -> PathExpression:
    """A path from the message."""
    return PathExpression(Origin.MESSAGE, steps)


def variable(name: str, *steps: LocationStep) -> PathExpression:
    """``$name``, with steps behind it."""
    return PathExpression(Origin.VARIABLE, steps, name)


DOT = relative()
MESSAGE = absolute()
"""``$msg``."""


@dataclass(frozen=True, slots=True)
class _Map(Expression):
    """The value of ``right`` with each item of ``left`` as the context item."""

    left: Expression
    right: Expression

    def same_focus(self) -> list[Expression]:
        return [self.left]

    def new_focus(self) -> list[Expression]:
        return [self.right]

    def stands_alone(self) -> bool:
        return self.left.stands_alone() and not self.right.free_variables()

    def needed(self) -> tuple[PathExpression, ...] | None:
        return self.left.needed()

    def may_be_number(self) -> bool:
        return self.right.may_be_number()


@dataclass(frozen=True, slots=True)
class Mapped(_Map):
    """``left/right`` where ``right`` is no step: its value for each node of ``left``."""

    def is_path(self, library: tuple[FunctionDeclaration, ...] = ()) -> bool:
        return self.left.is_path(library) and self.right.is_path(library)

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return self.right.kinds(variables, self.left.kinds(variables, context) & NODES)

    def written(self, plain: bool) -> str:
        is_step = isinstance(self.right, FunctionCall | UserCall) and self.right.level == _PRIMARY
        inner = self.right.written(plain) if is_step else f"({self.right.written(plain)})"
        return f"{self.left.start_text(plain)}/{inner}"

    def start_text(self, plain: bool) -> str:
        return self.written(plain)


@dataclass(frozen=True, slots=True)
class SimpleMap(_Map):
    """``left ! right``: the value of ``right`` for each item of ``left``, in their order."""

    level = UNARY_LEVEL

    def outcomes(self) -> Iterable[Expression]:
        return (self.right,)

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return self.right.kinds(variables, self.left.kinds(variables, context))

    def written(self, plain: bool) -> str:
        # a path on the right would take what follows it
        return f"{self.left.start_text(plain)} ! ({self.right.written(plain)})"


# -- values and operators


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A string, xs:integer, xs:decimal or xs:double; equal only to one of the same type."""

    value: str | Number

    is_of_its_parts = True
    never_fails = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self.value if type(self.value) is str else self._key)

    @property
    def _key(self) -> tuple[type, str]:
        value = self.value
        return type(value), str(value.normalize() if isinstance(value, Decimal) else value)

    def same_focus(self) -> list[Expression]:
        return []

    def literals(self) -> tuple[Literal, ...]:
        return (self,)

    def is_constant(self) -> bool:
        return True

    def may_be_number(self) -> bool:
        return not isinstance(self.value, str)

    def surely_number(self) -> bool:
        return True

    def is_at_most_one(self) -> bool:
        return True

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return ItemKind.STRING if isinstance(self.value, str) else ItemKind.NUMBER

    @property
    def level(self) -> int:
        is_signed = not isinstance(self.value, str) and self.written(plain=True)[0] == "-"
        return UNARY_LEVEL if is_signed else _PRIMARY

    def written(self, plain: bool) -> str:
        value = self.value
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, float):
            text = number_text(value)
            return text if "E" in text else f"{text}e0"
        text = f"{value:f}" if isinstance(value, Decimal) else str(value)
        return text if isinstance(value, int) or "." in text else f"{text}.0"

    @property
    def word(self) -> str:
        """Its text without quotation marks."""
        text = self.written(plain=True)
        return text[1:-1] if isinstance(self.value, str) else text


def _quoted(value: str) -> str:
    value = value.replace("&", "&amp;").replace('"', '""').replace("\r", "&#13;")
    return f'"{value}"'


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    left: Expression
    operator: Operator
    right: Expression

    level = COMPARISON_LEVEL
    is_of_its_parts = True
    part_use = Use.VALUE

    def is_sure(self, nodes: Iterable[str] = ()) -> bool:
        sides = [side for side in (self.left, self.right) if isinstance(side, PathExpression)]
        values = {side.variable for side in sides if not side.steps}
        # of values with values, some are errors
        return values <= {*nodes} and self.left.is_sure(nodes) and self.right.is_sure(nodes)

    def as_condition(self) -> Expression:
        value, operator, constant = self.compared()
        match value, constant:
            case FunctionCall("compare", (_, _) as texts), Literal(value=int(sign)):
                if isinstance(sign, Blank):
                    raise NeedsWords
                if sign == 0:
                    return Operation(operator.name.lower(), texts).as_condition()
            case _, Operation("to", (first, last)) if operator is Operator.EQ:
                least, most = _integer(first), _integer(last)
                if least is not None and most is not None:
                    if 0 < most - least < _LISTED_MAX:
                        listed = Sequence(tuple(map(Literal, range(least, most + 1))))
                        return Comparison(_atomized(value), operator, listed)
                    range_ = Operation("to", (Literal(least), Literal(most)))
                    return Comparison(_atomized(value), operator, range_)
        left, right = _atomized(self.left), _atomized(self.right)
        return self if left is self.left and right is self.right else self.with_parts((left, right))

    def compared(self) -> tuple[Expression, Operator, Expression]:
        """Its sides, a constant on the right."""
        if self.left.is_constant() and not self.right.is_constant():
            return self.right, MIRRORED[self.operator], self.left
        return self.left, self.operator, self.right

    def as_existence(self) -> PathExpression | None:
        path, operator, literal = self.compared()
        if isinstance(path, PathExpression) and isinstance(literal, Literal) and path.is_plain:
            return path.with_predicates((Comparison(DOT, operator, literal),))
        return None

    def implied(self) -> Iterator[Expression]:
        value, operator, literal = self.compared()
        if isinstance(literal, Literal) and isinstance(value, FunctionCall):
            yield from value.implied_if(operator, literal.value)
        elif operator is Operator.EQ and isinstance(literal, Operation) and literal.name == "to":
            least, most = literal.operands
            yield Comparison(value, Operator.GE, least)
            yield Comparison(value, Operator.LE, most)
        elif self.as_existence() is None:
            sides = tuple(_some_of(self.left, self.right))
            yield from sides if len(sides) == 2 or not self.is_local else ()

    def leaf_condition(self) -> LeafCondition | None:
        value, operator, literal = self.compared()
        leaf = value.leaf()
        if leaf is None or not isinstance(literal, Literal):
            return None
        return leaf.compared(operator, literal.value)

    def value_list(self) -> ValueList | None:
        if self.operator is not Operator.EQ or not isinstance(self.right, Sequence):
            return None
        return self._value_list()

    @by_identity(4_096)
    def _value_list(self) -> ValueList | None:
        leaf = self.left.leaf()
        parts = self.right.literals()
        values = frozenset(part.value for part in parts if isinstance(part.value, str))
        if leaf is None or not values or len(values) != len(parts):
            return None
        return ValueList(self.left, leaf, values)

    def of_some(self, variable: str, source: Expression) -> Comparison | None:
        """``$v = text`` of some item of a source as ``source = text``, where that cannot be an
        error."""
        for side, operator, other in (
            (self.left, self.operator, self.right),
            (self.right, MIRRORED[self.operator], self.left),
        ):
            inner = other
            if isinstance(other, FunctionCall) and other.name == "normalize-space":
                inner = other.arguments[0] if other.arguments else DOT
            is_safe = isinstance(inner, PathExpression | Literal)
            is_other = is_safe and variable not in other.free_variables()
            if is_other and side.bare_variable == variable:
                return Comparison(source, operator, other)
        return None

    def written(self, plain: bool) -> str:
        sides = (side.inside(COMPARISON_LEVEL + 1, plain) for side in (self.left, self.right))
        return f" {self.operator.value} ".join(sides)

    def with_parts(self, parts: tuple[Expression, ...]) -> Comparison:
        return Comparison(parts[0], self.operator, parts[1])

    def denied(self) -> Expression:
        """The condition that holds for one value where this one does not."""
        value, operator, constant = self.compared()
        if isinstance(constant, Literal) and isinstance(constant.value, str) and value == DOT:
            return Comparison(value, NEGATED[operator], constant)
        return Expression.denied(self)


def _integer(constant: Expression) -> int | None:
    """The integer that literals with signs between them are, ``5 + 1``; None for others.

    NeedsWords if it cannot be known."""
    match constant:
        case Literal(int(value)):
            if isinstance(value, Blank):
                raise NeedsWords
            return value
        case Operation("+" | "-" as sign, (left, right)):
            one, other = _integer(left), _integer(right)
            if one is None or other is None:
                return None
            return one + other if sign == "+" else one - other
    return None


def _atomized(value: Expression) -> Expression:
    """An expression with the same atomic values."""
    match value:
        case FunctionCall("data", (items,)):
            return _atomized(items)
        case FunctionCall("head", (PathExpression(leads_to_nodes=True) as path,)):
            return path.with_filter(LocationStep(False, NodeKind.SELF, None, (Literal(1),)))
        case _:
            return value


@dataclass(frozen=True, slots=True)
class _Joined(Condition):
    """Two or more parts, none of them of the same class."""

    parts: tuple[Expression, ...]

    is_of_its_parts = True

    def written(self, plain: bool) -> str:
        parts = [part.inside(self.level + 1, plain) for part in self.parts]
        return f" {type(self).__name__.lower()} ".join(parts)

    def with_parts(self, parts: tuple[Expression, ...]) -> Expression:
        return type(self)(flat(parts, type(self)))

    def as_condition(self) -> Expression:
        parts = tuple([part.as_condition() for part in self.parts])
        return self if all(map(is_, parts, self.parts)) else self.with_parts(parts)

    def is_sure(self, nodes: Iterable[str] = ()) -> bool:
        return all(part.has_truth() and part.is_sure(nodes) for part in self.parts)


@dataclass(frozen=True, slots=True)
class And(_Joined):
    """``a and b``."""

    level = LEVEL_OF["and"]

    def conjuncts(self) -> tuple[Expression, ...]:
        return tuple(part for one in self.parts for part in one.conjuncts())


@dataclass(frozen=True, slots=True)
class Or(_Joined):
    """``a or b``."""

    level = LEVEL_OF["or"]


@dataclass(frozen=True, slots=True)
class Operation(Expression):
    """An operator other than those above; ``name`` as written, "negate" for a unary minus.

    ``+ - * div idiv mod to``, ``| intersect except``, ``eq ne lt le gt ge``, ``is << >>``.
    """

    name: str
    operands: tuple[Expression, ...]

    is_of_its_parts = True

    def may_be_number(self) -> bool:
        return self.name in _ARITHMETIC

    def surely_number(self) -> bool:
        return self.name in _ARITHMETIC and self.name != "to"

    def is_path(self, library: tuple[FunctionDeclaration, ...] = ()) -> bool:
        return self.name in _SET_OPERATORS and all(each.is_path(library) for each in self.operands)

    def needed(self) -> tuple[PathExpression, ...] | None:
        if self.name not in _SET_OPERATORS:
            return None
        return needed_by_one(self.operands if self.name == "|" else self.operands[:1])

    def as_condition(self) -> Expression:
        if self.name not in VALUE_COMPARISONS:
            return self
        operands = tuple([_atomized(operand) for operand in self.operands])
        return self if all(map(is_, operands, self.operands)) else self.with_parts(operands)

    def implied(self) -> Iterator[Expression]:
        if LEVEL_OF.get(self.name) != COMPARISON_LEVEL:
            yield from _some_of(self)
            return
        left, right = self.operands
        comparison = VALUE_COMPARISONS.get(self.name)
        if comparison and isinstance(right, Literal) and isinstance(right.value, str):
            # with a string it is the general comparison of a single value
            yield from _some_of(_where(left, Comparison(DOT, comparison, right)))
        else:
            yield from _some_of(left, right)
        if comparison and isinstance(right, Literal) and isinstance(left, FunctionCall):
            yield from left.implied_if(comparison, right.value)

    def with_parts(self, parts: tuple[Expression, ...]) -> Expression:
        return Operation(self.name, parts)

    def part_uses(self) -> Iterable[PartUse]:
        use = Use.PASSED if self.name in _SET_OPERATORS else Use.VALUE
        if self.name in ("is", "<<", ">>"):
            use = Use.THERE
        return [PartUse(operand, use) for operand in self.operands]

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        if self.name in _SET_OPERATORS:
            return _union(self.operands, variables, context)
        if self.name in ("+", "-", "*", "div"):
            kinds = _union(self.operands, variables, context)
            return ATOMS if kinds & (TEMPORAL | ItemKind.OTHER) else ItemKind.NUMBER
        return ItemKind.NUMBER if self.name in _ARITHMETIC else ItemKind.BOOLEAN

    @property
    def level(self) -> int:
        return LEVEL_OF.get(self.name, UNARY_LEVEL)

    def written(self, plain: bool) -> str:
        level = self.level
        last = self.operands[-1].inside(level + 1, plain)
        if self.name == "negate":
            return f"-{last}"
        groups = level not in (COMPARISON_LEVEL, RANGE_LEVEL)
        return f"{self.operands[0].inside(level + (not groups), plain)} {self.name} {last}"


@dataclass(frozen=True, slots=True)
class Sequence(Expression):
    """``(a, b)``; no parts is the empty sequence, and never just one."""

    parts: tuple[Expression, ...]

    is_of_its_parts = True
    never_fails = True

    def outcomes(self) -> Iterable[Expression]:
        return self.parts

    def literals(self) -> tuple[Literal, ...]:
        found = tuple(part for part in self.parts if isinstance(part, Literal))
        return found if len(found) == len(self.parts) else ()

    def needed(self) -> tuple[PathExpression, ...] | None:
        return needed_by_one(self.parts)

    def written(self, plain: bool) -> str:
        return f"({_listed(self.parts, plain)})"


EMPTY = Sequence(())


@dataclass(frozen=True, slots=True)
class Conditional(Expression):
    """``if (condition) then a else b``."""

    condition: Expression
    consequence: Expression
    alternative: Expression

    level = _SINGLE

    def outcomes(self) -> Iterable[Expression]:
        return self.consequence, self.alternative

    def as_condition(self) -> Expression:
        if self.may_be_number():
            return self
        asked, then, otherwise = (part.as_condition() for part in self.same_focus())
        both = And(flat((asked, then), And)) if then != _TRUE else asked.as_predicate()
        denied = asked.denied()
        other = And(flat((denied, otherwise), And)) if otherwise != _TRUE else denied
        if _FALSE in (then, otherwise):
            return other if then == _FALSE else both
        return Or(flat((both, other), Or))

    def written(self, plain: bool) -> str:
        consequence, alternative = self.consequence.single(plain), self.alternative.single(plain)
        return f"if ({self.condition.written(plain)}) then {consequence} else {alternative}"


@dataclass(frozen=True, slots=True)
class Quantified(Condition):
    """``some $v in e, … satisfies condition``; ``every`` likewise."""

    every: bool
    bindings: tuple[tuple[str, Expression], ...]
    condition: Expression

    level = _SINGLE

    def binds(self) -> Iterable[str]:
        return [name for name, _ in self.bindings]

    def as_condition(self) -> Expression:
        (name, source), *others = self.bindings
        if self.every:
            if not self.condition.is_sure(self.binds()):
                return self  # an error of one item is one of the whole
            denied = Quantified(False, self.bindings, self.condition.as_condition().denied())
            some = denied.as_condition()
            return self if isinstance(some, Quantified) else some.denied()
        asked = Quantified(False, tuple(others), self.condition) if others else self.condition
        condition = asked.as_condition()
        parts = split(condition, And)
        own = tuple(part for part in parts if name in part.free_variables())
        if source != DOT and own and len(own) < len(parts):
            some = Quantified(False, ((name, source),), own[0] if len(own) == 1 else And(own))
            apart = (part.as_predicate() for part in parts if part not in own)
            return And(flat((some.as_condition(), *apart), And))
        if isinstance(condition, Comparison):
            of_all = condition.of_some(name, source)
            if of_all is not None:
                return of_all
        about = condition.replaced({name: DOT})
        about = about and about.as_condition()
        if (
            about is None
            or condition.uses_context()
            or not isinstance(source, PathExpression)
            or not source.leads_to_nodes
        ):
            return self
        predicates = tuple([part.as_predicate() for part in split(about, And)])
        return source.as_condition().with_predicates(predicates)

    def part_uses(self) -> Iterable[PartUse]:
        ranges = [PartUse(source, binds=(name,)) for name, source in self.bindings]
        return [*ranges, PartUse(self.condition)]

    def implied(self) -> Iterator[Expression]:
        return iter(()) if self.every else _some_of(self.bindings[0][1])

    def written(self, plain: bool) -> str:
        ranges = ", ".join(f"${name} in {source.single(plain)}" for name, source in self.bindings)
        word = "every" if self.every else "some"
        return f"{word} {ranges} satisfies {self.condition.single(plain)}"


# -- types


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """``e cast as xs:date``, ``e castable as …``; ``optional`` is the question mark."""

    operand: Expression
    type: str
    optional: bool
    castable: bool

    level = CAST_LEVEL
    is_of_its_parts = True
    part_use = Use.VALUE

    def is_boolean(self) -> bool:
        return self.castable

    def may_be_number(self) -> bool:
        return not self.castable

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        result = type_result(self.type)
        assert result is not None  # the parser looked it up
        return ItemKind.BOOLEAN if self.castable else RESULTS[result]

    def written(self, plain: bool) -> str:
        word = "castable" if self.castable else "cast"
        operand = self.operand.inside(CAST_LEVEL, plain)
        return f"{operand} {word} as {self.type}{'?' * self.optional}"


@dataclass(frozen=True, slots=True)
class SequenceType:
    """``name`` is item, empty-sequence, node or an atomic type; ``kind`` and ``test`` say which
    nodes.  ``occurrence`` is "", "?", "*" or "+"."""

    name: str
    kind: NodeKind | None
    test: NameTest | None
    occurrence: str = ""

    @property
    def kinds(self) -> Kinds:
        """The kinds of items of a variable of the type."""
        if self.kind is not None:
            return self.kind.kinds
        if self.name in ("item", "empty-sequence"):
            return ANYTHING if self.name == "item" else NOTHING
        result = None if self.name == "xs:untypedAtomic" else type_result(self.name)
        return ATOMS if result is None else RESULTS[result]

    def written(self, plain: bool = True) -> str:
        name = self.name
        if self.kind is not None:
            test = LocationStep(False, self.kind, self.test).written_test(plain).removeprefix("@")
            is_named = self.kind in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE)
            name = f"{self.kind.word}({test})" if is_named else test
        elif not name.startswith("xs:"):
            name += "()"
        return name + self.occurrence


ANY_ITEMS = SequenceType("item", None, None, "*")


def declared_kinds(type_: SequenceType | None) -> Kinds:
    """The kinds of items that a declared type lets through; anything if there is none."""
    return ANYTHING if type_ is None else type_.kinds


def _declared_type(type_: SequenceType | None) -> str:
    return "" if type_ is None else f" as {type_.written()}"


@dataclass(frozen=True, slots=True)
class Typed(Expression):
    """``e treat as type``, which declared types of variables are as well, or ``e instance of``.

    ``declared``: the error that it raises is that of a declared type.
    """

    operand: Expression
    type: SequenceType
    treat: bool
    declared: bool = field(default=False, compare=False)

    level = COMPARISON_LEVEL + 1  # its type would take a + or * behind it

    def part_uses(self) -> Iterable[PartUse]:
        return [PartUse(self.operand, Use.PASSED)]

    def is_boolean(self) -> bool:
        return not self.treat

    def may_be_number(self) -> bool:
        return self.treat and self.operand.may_be_number()

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        if not self.treat:
            return ItemKind.BOOLEAN
        return self.operand.kinds(variables, context) & self.type.kinds

    def written(self, plain: bool) -> str:
        word = "treat as" if self.treat else "instance of"
        return f"{self.operand.inside(CAST_LEVEL, plain)} {word} {self.type.written(plain)}"


@dataclass(frozen=True, slots=True)
class TypeCase(Fragment):
    """``case $variable as type | type return result``; "" is no variable, no types are any."""

    variable: str
    types: tuple[SequenceType, ...]
    result: Expression

    def written(self, plain: bool) -> str:
        types = " | ".join(type_.written(plain) for type_ in self.types)
        bound = f" ${self.variable}" * bool(self.variable)
        head = f"case{bound and bound + ' as'} {types}" if types else f"default{bound}"
        return f" {head} return {self.result.single(plain)}"


def kinds_of_case(types: tuple[SequenceType, ...], operand: Kinds) -> Kinds:
    """The kinds of an operand that are left in a case of ``typeswitch``."""
    return operand & reduce(or_, (type_.kinds for type_ in types)) if types else operand


@dataclass(frozen=True, slots=True)
class Typeswitch(Expression):
    """``typeswitch (operand) case … default …``; the default is the last case."""

    operand: Expression
    cases: tuple[TypeCase, ...]

    level = _SINGLE

    def binds(self) -> Iterable[str]:
        return [case.variable for case in self.cases]

    def outcomes(self) -> Iterable[Expression]:
        return [case.result for case in self.cases]

    def part_uses(self) -> Iterable[PartUse]:
        results = [PartUse(case.result, Use.PASSED) for case in self.cases]
        return [PartUse(self.operand, binds=tuple(self.binds())), *results]

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        operand = self.operand.kinds(variables, context)
        found = NOTHING
        for case in self.cases:
            scope = {**variables, case.variable: kinds_of_case(case.types, operand)}
            found |= case.result.kinds(scope, context)
        return found

    def written(self, plain: bool) -> str:
        cases = "".join(case.written(plain) for case in self.cases)
        return f"typeswitch ({self.operand.written(plain)}){cases}"


_CAUGHT = ("code", "description", "value")
ERROR_VARIABLES = tuple(f"Q{{{ERROR_NAMESPACE}}}{name}" for name in _CAUGHT)
"""What a catch clause binds."""


@dataclass(frozen=True, slots=True)
class CatchClause(Fragment):
    """``catch name | name { result }``."""

    names: tuple[NameTest, ...]
    result: Expression

    def written(self, plain: bool) -> str:
        names = " | ".join(test.written(plain=True) for test in self.names)
        return f" catch {names} {{{self.result.written(plain)}}}"


@dataclass(frozen=True, slots=True)
class TryCatch(Expression):
    """``try { body } catch … { … }``; limits are no errors that could be caught."""

    body: Expression
    clauses: tuple[CatchClause, ...]

    def binds(self) -> Iterable[str]:
        return ERROR_VARIABLES

    def outcomes(self) -> Iterable[Expression]:
        return [self.body, *(clause.result for clause in self.clauses)]

    def part_uses(self) -> Iterable[PartUse]:
        handled = [PartUse(clause.result, Use.PASSED) for clause in self.clauses]
        # a value goes with an error
        return [PartUse(self.body, Use.PASSED, ERROR_VARIABLES), *handled]

    def implied(self) -> Iterator[Expression]:
        if all(clause.result in (_FALSE, EMPTY) for clause in self.clauses):
            yield self.body

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        scope = {**variables, **dict.fromkeys(ERROR_VARIABLES, ANYTHING)}
        handled = _union((clause.result for clause in self.clauses), scope, context)
        return self.body.kinds(variables, context) | handled

    def written(self, plain: bool) -> str:
        caught = "".join(clause.written(plain) for clause in self.clauses)
        return f"try {{{self.body.written(plain)}}}{caught}"


# -- calls


_OF_ITS_ARGUMENT = frozenset(
    (
        *("zero-or-one", "one-or-more", "exactly-one", "reverse", "subsequence", "remove"),
        *("head", "tail"),
    )
)
_OF_ALL_ARGUMENTS = frozenset(("insert-before", "unordered", "trace"))
_KINDS_OF_CALLS = {
    "root": PARENTS,
    "error": NOTHING,
    **dict.fromkeys(("min", "max", "distinct-values", "data"), ATOMS),
}


# Functions that give one string, whatever they are about.
_OF_ONE_STRING = frozenset(
    (
        "concat",
        "lower-case",
        "normalize-space",
        "string",
        "string-join",
        "substring",
        "translate",
        "upper-case",
    )
)


# Functions of one value that are never an error, as they take the first of several values.
_SURE_CALLS = frozenset(
    (
        *("not", "boolean", "exists", "empty", "count", "true", "false"),
        *("contains", "starts-with", "ends-with", "string", "concat", "normalize-space", "number"),
        *("string-length", "lower-case", "upper-case", "substring-before", "substring-after"),
        *("name", "local-name", "namespace-uri"),
    )
)
_EMPTY_OF_EMPTY = frozenset(("distinct-values", "data", "reverse", "head", "tail"))
# Conditions on a string that the empty string does not meet, when the second argument is not "".
_STRING_TESTS = frozenset(("contains", "starts-with", "ends-with"))
# Functions of one argument, and their values where that has no nodes.
_VALUES_OF_NOTHING: Mapping[str, str | float] = {
    "count": 0,
    "string-length": 0,
    "number": nan,
    **dict.fromkeys(("string", "normalize-space", "lower-case", "upper-case"), ""),
}


class WordCondition(NamedTuple):
    """``source`` has a value in which one, or every, of the needles is, when it is spaced so."""

    source: Expression
    spacing: Spacing
    needles: list[bytes]
    every: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """A function of the documented list; ``name`` without ``fn:``, types as ``xs:date``."""

    name: str
    arguments: tuple[Expression, ...]

    def uses_context(self) -> bool:
        name = self.name
        if name in CONTEXT_FUNCTIONS or name in _OF_FOCUS:
            return True
        if not self.arguments:
            signature = signature_of(name)
            return signature is None or signature.context
        return any(argument.uses_context() for argument in self.arguments)

    def asks_item(self) -> bool:
        return self.name not in _OF_FOCUS and Expression.asks_item(self)

    def stands_alone(self) -> bool:
        return Expression.stands_alone(self) if self.arguments else self.name in CURRENT

    @property
    def is_local(self) -> bool:
        is_about_others = self.name in ABOUT_NODES or self.name == "svrl:location"
        return not is_about_others and all(part.is_local for part in self.arguments)

    def uses_position(self) -> bool:
        return self.name in _OF_FOCUS or any(part.uses_position() for part in self.arguments)

    def may_be_number(self) -> bool:
        signature = signature_of(self.name)
        return signature is None or signature.result in (ResultKind.NUMBER, ResultKind.ANY)

    def is_constant(self) -> bool:
        return self.name in TYPES and all(isinstance(part, Literal) for part in self.arguments)

    def surely_number(self) -> bool:
        signature = signature_of(self.name)
        return signature is not None and signature.result is ResultKind.NUMBER

    def with_parts(self, parts: tuple[Expression, ...]) -> Expression:
        return FunctionCall(self.name, parts)

    def with_places(self, places: Mapping[str, Expression]) -> Expression | None:
        return places.get(self.name) or Expression.with_places(self, places)

    def as_condition(self) -> Expression:
        match self:
            case FunctionCall("exists" | "boolean", (PathExpression(leads_to_nodes=True) as path,)):
                return path.as_condition()
            case FunctionCall("not", (condition,)):
                denied = condition.as_condition().denied()
                return self if denied == self else denied
            case _:
                return self

    def denied(self) -> Expression:
        match self:
            case FunctionCall("not", (condition,)):
                return condition.as_predicate()
            case _:
                return Expression.denied(self)

    def part_uses(self) -> Iterable[PartUse]:
        return [PartUse(part, self._use_of(at)) for at, part in enumerate(self.arguments)]

    def _use_of(self, argument: int) -> Use:
        signature = signature_of(self.name)
        if self.name in _OF_ITS_ARGUMENT or self.name in _OF_ALL_ARGUMENTS:
            return Use.PASSED
        match signature and signature.argument(argument):
            case ArgumentKind.CONDITION | ArgumentKind.NODES:
                return Use.THERE
            case ArgumentKind.ITEMS:
                return Use.THERE if self.name in ("count", "exists", "empty") else Use.COPY
        return Use.VALUE

    def is_boolean(self) -> bool:
        signature = signature_of(self.name)
        is_truth = signature is not None and signature.result is ResultKind.BOOLEAN
        return is_truth and self.name not in TYPES

    def has_truth(self) -> bool:
        return self.is_boolean() or self.name in _SURE_CALLS

    def is_sure(self, nodes: Iterable[str] = ()) -> bool:
        match self.name, self.arguments:
            case "not" | "boolean", (operand,) if not operand.has_truth():
                return False
            case "matches", (_, *patterns):
                is_known = all(isinstance(pattern, Literal) for pattern in patterns)
            case _:
                is_known = self.name in _SURE_CALLS
        return is_known and all(part.is_sure(nodes) for part in self.arguments)

    def needed(self) -> tuple[PathExpression, ...] | None:
        return self.arguments[0].needed() if self.name in _EMPTY_OF_EMPTY else None

    def implied(self) -> Iterator[Expression]:
        match self.arguments:
            case (inner,) if self.name in ("boolean", "exists"):
                return _some_of(inner)
            case (value, Literal(str(text))) if self.name in _STRING_TESTS and text:
                # it looks at the first node, so it holds for some node
                call = FunctionCall(self.name, (DOT, self.arguments[1]))
                return iter(()) if self.is_local else _some_of(_where(value, call))
        if self.name in EXCHANGED and (about := self._about_a_place()):
            return iter(()) if self.is_local else _some_of(_where(*about))
        return _some_of(self)

    def _about_a_place(self) -> tuple[Expression, FunctionCall] | None:
        """Of a function of places of which the profile says one: the other, and what it asks of
        some node of that."""
        match self.arguments:
            case (place, Literal() as known):
                return place, FunctionCall(self.name, (DOT, known))
            case (Literal() as known, place):
                return place, FunctionCall(self.name, (known, DOT))
        return None

    def implied_if(self, operator: Operator, value: str | Number) -> Iterator[Expression]:
        """The conditions implied where its value compares so with a constant: that there are nodes,
        if the comparison does not hold for none."""
        if self.name == "place:distance" and (about := self._about_a_place()):
            place, least = about
            is_of_some = operator in (Operator.LT, Operator.LE) and not self.is_local
            near = Comparison(least, operator, Literal(value))
            return _some_of(_where(place, near)) if is_of_some else iter(())
        there = tuple(_some_of(*self.arguments))
        if self.name == "string-length":
            there = tuple(self.arguments[0].implied_by_text()) if self.arguments else ()
        if len(self.arguments) != 1 or self.name not in _VALUES_OF_NOTHING or not there:
            return iter(())
        if isinstance(value, Blank):
            raise NeedsWords  # whether it holds for nothing depends on the value
        of_nothing = _VALUES_OF_NOTHING[self.name]
        if isinstance(of_nothing, str):
            is_other = isinstance(value, str) and operator is Operator.EQ and value != of_nothing
        else:
            is_number = not isinstance(value, str)
            is_other = is_number and not operator.holds(of_nothing, float(value))
        return iter(there if is_other else ())

    def implied_by_text(self) -> Iterator[Expression]:
        match self.name, self.arguments:
            case "substring-before" | "substring-after", (_, Literal()):
                yield FunctionCall("contains", self.arguments)
            case "normalize-space" | "lower-case" | "upper-case", (text,):
                yield from text.implied_by_text()
            case _:
                yield from _some_of(self)

    def is_at_most_one(self) -> bool:
        return self.name in _OF_ONE_STRING

    def word_condition(self) -> WordCondition | None:
        """``contains(concat(" ", normalize-space(@a), " "), " b ")`` is what XPath 1.0 has for
        ``contains-token(@a, "b")``."""
        match self:
            case FunctionCall("contains-token" as name, (source, Literal(str(token)))):
                return WordCondition(source, Spacing.TOKENS, needles_of(name, [token]))
            case FunctionCall(
                "contains",
                (
                    FunctionCall(
                        "concat",
                        (
                            Literal(" "),
                            FunctionCall("normalize-space", (*_, source)),
                            Literal(" "),
                        ),
                    ),
                    Literal(str(text)),
                ),
            ) if source.is_at_most_one() and text.encode().split():
                return WordCondition(source, Spacing.TOKENS, [text.encode()])
            case FunctionCall(name, (source, words)) if name in WORD_TESTS:
                listed = words.literals()
                texts = [one.value for one in listed if isinstance(one.value, str)]
                needles = needles_of(name, texts) if texts or words == EMPTY else []
                if len(texts) < len(listed) or not needles:
                    return None
                test = WORD_TESTS[name]
                return WordCondition(source, test.spacing, needles, test.every)
            case _:
                return None

    def token_source(self) -> Expression | None:
        """Of ``contains`` the value of which it asks for a token, as ``contains-token`` does."""
        found = self.word_condition()
        text = self.arguments[1]
        assert isinstance(text, Literal)
        is_token = found is not None and (
            found.needles == needles_of("contains-token", [str(text.value)])
        )
        return found.source if found is not None and is_token else None

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        name = self.name
        if name in _OF_ITS_ARGUMENT:
            return self.arguments[0].kinds(variables, context)
        if name == "insert-before":
            return _union(self.arguments[::2], variables, context)
        if name in _KINDS_OF_CALLS:
            return _KINDS_OF_CALLS[name]
        signature = signature_of(name)
        assert signature is not None  # the parser looked it up
        return RESULTS[signature.result]

    def each_word(self, text: str) -> tuple[Expression, ...]:
        """``contains text`` for any or all words of a string as a call for each word; the call
        itself where there is none."""
        name = WORD_TESTS[self.name]._replace(mode="any").name
        words = [
            needle.decode().strip() + WILDCARD * (not needle.endswith(b" "))
            for needle in needles_of(self.name, [text])
            if needle != NOWHERE
        ]
        each = [FunctionCall(name, (self.arguments[0], Literal(word))) for word in words]
        return tuple(each) or (self,)

    @property
    def level(self) -> int:
        return WORDS_LEVEL if self.name in WORD_TESTS else _PRIMARY

    def written(self, plain: bool) -> str:
        if self.name in WORD_TESTS:
            source, words = self.arguments
            said = words.written(plain) if isinstance(words, Literal) else words.enclosed(plain)
            options = self.name.removeprefix(OPERATOR)
            return f"{source.inside(WORDS_LEVEL + 1, plain)} {OPERATOR} {said}{options}"
        is_of_context = self.name in CONTEXT_FUNCTIONS and self.arguments[-1] == DOT
        arguments = self.arguments[:-1] if is_of_context else self.arguments
        return f"{self.name}({_listed(arguments, plain)})"

    def start_text(self, plain: bool) -> str:
        return self.inside(_PRIMARY, plain)


_OF_FOCUS = frozenset(("position", "last"))
_TRUE, _FALSE = FunctionCall("true", ()), FunctionCall("false", ())


@dataclass(frozen=True, slots=True)
class FunctionDeclaration(Fragment):
    """``declare function name($parameter as type, …) as type { body };``, None for no type.

    A declared variable is one without parameters, ``$Q{}name``, whose body is evaluated once.
    """

    name: str
    parameters: tuple[tuple[str, SequenceType | None], ...]
    result: SequenceType | None
    body: Expression

    def written(self) -> str:
        body = self.body.written(plain=True)
        if self.name.startswith("$"):
            return f"declare variable {self.name} := {body}; "
        named = ", ".join(f"${name}{_declared_type(type_)}" for name, type_ in self.parameters)
        return f"declare function {self.name}({named}){_declared_type(self.result)} {{{body}}}; "


@dataclass(frozen=True, slots=True)
class UserCall(Expression):
    """A call of a declared function, or the name of a declared variable; ``library`` has them
    all, and is empty in their bodies."""

    name: str
    arguments: tuple[Expression, ...]
    library: tuple[FunctionDeclaration, ...] = ()

    def same_focus(self) -> list[Expression]:
        return list(self.arguments)

    def new_focus(self) -> list[Expression]:
        return [function.body for function in self.library]

    def in_scope(self) -> list[Expression]:
        return self.same_focus()

    def stands_alone(self) -> bool:
        return Expression.stands_alone(self) if self.arguments else bool(self.library)

    def is_path(self, library: tuple[FunctionDeclaration, ...] = ()) -> bool:
        value = self.variable_value(library)
        return value is not None and value.is_path(self.library or library)

    def needed(self) -> tuple[PathExpression, ...] | None:
        value = self.variable_value()
        return None if value is None else value.needed()

    def may_be_number(self) -> bool:
        return not self.library or bool(self.kinds({}, NOTHING) & ItemKind.NUMBER)

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        key = function_key(self.name, len(self.arguments))
        return _kinds_in(self.library)[key] if self.library else variables.get(key, ANYTHING)

    def written(self, plain: bool) -> str:
        return self.name if self.is_variable else f"{self.name}({_listed(self.arguments, plain)})"

    @property
    def is_variable(self) -> bool:
        return self.name.startswith("$")

    def variable_value(self, library: tuple[FunctionDeclaration, ...] = ()) -> Expression | None:
        """What a declared variable stands for; None of a function, and where that is not known."""
        found = (one.body for one in self.library or library if one.name == self.name)
        return next(found, None) if self.is_variable else None


def function_key(name: str, arity: int) -> str:
    """The key of a declared function among the variables of a scope."""
    return f"{name}#{arity}"


@lru_cache(maxsize=256)
def _kinds_in(library: tuple[FunctionDeclaration, ...]) -> Variables:
    """The kinds that each function yields: the least that agrees with all their bodies."""
    known = {function_key(one.name, len(one.parameters)): NOTHING for one in library}
    while True:
        found = dict(known)
        for function in library:
            parameters = {name: declared_kinds(type_) for name, type_ in function.parameters}
            inside = function.body.kinds({**known, **parameters}, NOTHING)
            if function.result is not None:
                inside = function.result.kinds
            key = function_key(function.name, len(parameters))
            found[key] = known[key] | inside
        if found == known:
            return known
        known = found


# -- constructors


_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "{": "{{",
    "}": "}}",
}


def _escaped(value: str, *, in_value: bool) -> str:
    special = r'[&<>{}"\r\t\n]' if in_value else r"[&<>{}\r]"
    return re.sub(special, lambda match: _ESCAPES.get(match[0], f"&#{ord(match[0])};"), value)


def _content_text(value: str) -> str:
    """Literal text; white space that the parser would strip is written as a reference."""
    if not value.strip(" \t\n\r"):
        return f"&#{ord(value[0])};{_escaped(value[1:], in_value=False)}"
    return _escaped(value, in_value=False)


@dataclass(frozen=True, slots=True)
class Constructor(Expression):
    """A direct element constructor.

    ``attributes``: each value is a sequence of literal text and enclosed expressions.
    ``declarations``: (prefix, namespace) declared by the constructor itself, followed by those
    that its own names need and no constructor around it declares; so a constructor says all
    about its namespaces, whatever the prolog was.
    ``content``: literal text (boundary white space already stripped), nested constructors and
    enclosed expressions, in order.
    """

    name: QualifiedName
    attributes: tuple[tuple[QualifiedName, tuple[str | Expression, ...]], ...] = ()
    declarations: tuple[tuple[str, str], ...] = ()
    content: tuple[str | Expression, ...] = ()

    def stands_alone(self) -> bool:
        return False  # it is written where it stands

    def same_focus(self) -> list[Expression]:
        return _expressions((self.attributes, self.content))

    def part_uses(self) -> Iterable[PartUse]:
        values = [PartUse(part, Use.VALUE) for part in _expressions(self.attributes)]
        return [*values, *(PartUse(part, Use.COPY) for part in _expressions(self.content))]

    def is_sure(self, nodes: Iterable[str] = ()) -> bool:
        return self._keeps_order() and all(part.is_sure(nodes) for part in self.same_focus())

    def _keeps_order(self) -> bool:
        """Whether no attribute can come behind other content, which is an error."""
        behind = False
        for part in self.content:
            if isinstance(part, Sequence):
                return False
            steps = () if isinstance(part, str) else part.steps
            if not steps or steps[-1].kind not in (NodeKind.ATTRIBUTE, NodeKind.NODE):
                behind = True
            elif behind:
                return False
        return True

    def decisive_parts(self) -> tuple[Expression, ...]:
        """The parts of which one has to yield something, if it is a whole profile: the FLWOR
        expressions directly in it; where there is none, whatever stands in ``{ }``."""
        enclosed = tuple(
            part for part in self.content if not isinstance(part, str | Constructor | Markup)
        )
        return tuple(part for part in enclosed if isinstance(part, Flwor)) or enclosed

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return ItemKind.ELEMENT

    def written(self, plain: bool) -> str:
        start = f"<{self.name}"
        for prefix, namespace in self.declarations:
            if prefix == "":
                plain = namespace == ""
            name = f"xmlns:{prefix}" if prefix else "xmlns"
            start += f' {name}="{_escaped(namespace, in_value=True)}"'
        for attribute, value in self.attributes:
            parts = (
                _escaped(part, in_value=True)
                if isinstance(part, str)
                else f"{{{part.written(plain)}}}"
                for part in value
            )
            start += f' {attribute}="{"".join(parts)}"'
        content = "".join(
            _content_text(part) if isinstance(part, str) else part.enclosed(plain)
            for part in self.content
        )
        return f"{start}>{content}</{self.name}>" if content else f"{start}/>"

    def enclosed(self, plain: bool) -> str:
        return self.written(plain)


@dataclass(frozen=True, slots=True)
class Markup(Expression):
    """A comment or processing instruction written in a constructor."""

    kind: NodeKind
    target: str
    value: str

    never_fails = True

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return ItemKind.COMMENT

    def written(self, plain: bool) -> str:
        if self.kind is NodeKind.COMMENT:
            return f"<!--{self.value}-->"
        return f"<?{self.target}{' ' * bool(self.value)}{self.value}?>"

    def enclosed(self, plain: bool) -> str:
        return self.written(plain)


@dataclass(frozen=True, slots=True)
class Computed(Expression):
    """``attribute n {…}``, ``text {…}``, ``comment {…}``, ``processing-instruction n {…}``, and
    ``element {name} {…}``; an element whose name is fixed is a Constructor.

    ``name`` is None for text and comments.  ``namespaces``: what the prefixes of a computed name
    mean, "" being the default for elements, as far as the language does not settle that.
    """

    kind: NodeKind
    name: QualifiedName | Expression | None
    content: Expression
    namespaces: tuple[tuple[str, str], ...] = ()

    def stands_alone(self) -> bool:
        return False  # it is written where it stands

    def part_uses(self) -> Iterable[PartUse]:
        use = Use.COPY if self.kind is NodeKind.ELEMENT else Use.VALUE
        names = [PartUse(part, Use.VALUE) for part in _expressions((self.name,))]
        return [*names, PartUse(self.content, use)]

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return self.kind.kinds

    def written(self, plain: bool) -> str:
        name = ""
        if isinstance(self.name, Expression):
            listed = "".join(f", {_quoted(part)}" for one in self.namespaces for part in one)
            name = f" {{{self.name.written(plain)}{listed}}}"
        elif self.name is not None:
            name = f" {self.name}"
            if self.name.prefix not in ("", "xml"):
                parts = (str(self.name), self.name.prefix, self.name.namespace)
                name = f" {{{', '.join(map(_quoted, parts))}}}"
        content = "" if self.content == EMPTY else self.content.written(plain)
        return f"{self.kind.word}{name} {{{content}}}"


PART_VARIABLE = "binding"


@dataclass(frozen=True, slots=True)
class Part(Expression):
    """An expression in content of a constructor whose value was perhaps computed on the way, for
    the element that is ``variable``: a *piece* of the message, of the part's ``digest``.

    ``expression`` calls that element PART_VARIABLE.  A part is in no profile that a user writes;
    projection/parts.py puts it in.
    """

    variable: str
    digest: str
    expression: Expression

    def in_scope(self) -> list[Expression]:
        return []

    def refers(self) -> str:
        return self.variable

    def uses_context(self) -> bool:
        return True

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        return ANYTHING


# -- FLWOR expressions and copies


@dataclass(frozen=True, slots=True)
class ForClause(Fragment):
    """``for $variable at $position in path``; "" is no position."""

    variable: str
    path: Expression
    position: str = ""

    def binds(self) -> Iterable[str]:
        return self.variable, self.position

    def part_use(self) -> PartUse:
        return PartUse(self.path, binds=(self.variable,))

    def bind_kinds(self, scope: dict[str, Kinds], context: Kinds) -> None:
        """Adds what its variables can be."""
        scope[self.variable] = self.path.kinds(scope, context)
        if self.position:
            scope[self.position] = ItemKind.NUMBER

    def written(self, plain: bool) -> str:
        at = f" at ${self.position}" if self.position else ""
        return f"for ${self.variable}{at} in {self.path.single(plain)}"


@dataclass(frozen=True, slots=True)
class LetClause(Fragment):
    variable: str
    value: Expression

    def binds(self) -> Iterable[str]:
        return (self.variable,)

    def part_use(self) -> PartUse:
        return PartUse(self.value, binds=(self.variable,))

    def bind_kinds(self, scope: dict[str, Kinds], context: Kinds) -> None:
        scope[self.variable] = self.value.kinds(scope, context)

    def written(self, plain: bool) -> str:
        return f"let ${self.variable} := {self.value.single(plain)}"


@dataclass(frozen=True, slots=True)
class WhereClause(Fragment):
    """A ``where`` with a ``for`` or ``let`` behind it; the last one is ``Flwor.where``."""

    condition: Expression

    def binds(self) -> Iterable[str]:
        return ()

    def part_use(self) -> PartUse:
        return PartUse(self.condition)

    def bind_kinds(self, scope: dict[str, Kinds], context: Kinds) -> None:
        pass

    def written(self, plain: bool) -> str:
        return f"where {self.condition.single(plain)}"


Clause: TypeAlias = ForClause | LetClause | WhereClause


@dataclass(frozen=True, slots=True)
class OrderKey(Fragment):
    """``key descending empty greatest``."""

    key: Expression
    descending: bool = False
    empty_greatest: bool = False

    def written(self, plain: bool) -> str:
        direction = " descending" if self.descending else ""
        return f"{self.key.single(plain)}{direction}{' empty greatest' * self.empty_greatest}"


@dataclass(frozen=True, slots=True)
class Grouping(Fragment):
    """``group by $key := value, $key …``, and the clauses and ``where`` behind it.

    A key without a value is a variable that is bound in front.
    """

    keys: tuple[tuple[str, Expression | None], ...]
    clauses: tuple[Clause, ...] = ()
    where: Expression | None = None

    def written_keys(self, plain: bool) -> str:
        keys = (
            f"${name}" + (f" := {value.single(plain)}" if value is not None else "")
            for name, value in self.keys
        )
        return f"group by {', '.join(keys)}"


@dataclass(frozen=True, slots=True)
class Flwor(Expression):
    """``for … let … where … group by … order by … return …``."""

    clauses: tuple[Clause, ...]
    where: Expression | None
    result: Expression
    order: tuple[OrderKey, ...] = ()
    group: Grouping | None = None

    level = _SINGLE

    @property
    def _all_clauses(self) -> tuple[Clause, ...]:
        return self.clauses if self.group is None else self.clauses + self.group.clauses

    def same_focus(self) -> list[Expression]:
        return _expressions((self.clauses, self.where, self.group, self.order, self.result))

    def binds(self) -> Iterable[str]:
        keys = () if self.group is None else self.group.keys
        yield from (name for name, value in keys if value is not None)
        for clause in self._all_clauses:
            yield from clause.binds()

    def outcomes(self) -> Iterable[Expression]:
        return (self.result,)

    def as_condition(self) -> Expression:
        bindings: dict[str, Expression] = {}
        for clause in self.clauses:
            if not isinstance(clause, LetClause) or self.order or self.group is not None:
                return self
            value = clause.value.replaced(bindings)
            if value is None or value.constructs:
                return self
            bindings[clause.variable] = value
        asked = [self.result] if self.where is None else [self.where, self.result]
        parts = [part.as_condition().replaced(bindings) for part in asked]
        known = tuple(part for part in parts if part is not None)
        if (
            sum(part.size for part in known) > _WRITTEN_OUT_MAX
            or len(known) < len(parts)
            or (len(parts) == 1 and known[0].may_be_number())
        ):
            return self
        return known[0] if len(known) == 1 else And(flat(known, And))

    def part_uses(self) -> Iterable[PartUse]:
        yield from (clause.part_use() for clause in self.clauses)
        yield from map(PartUse, _expressions((self.where,)))
        if self.group is not None:
            for name, value in self.group.keys:
                key = variable(name) if value is None else value
                yield PartUse(key, Use.VALUE, (name,))
            yield from (clause.part_use() for clause in self.group.clauses)
            yield from map(PartUse, _expressions((self.group.where,)))
        yield from (PartUse(key.key, Use.VALUE) for key in self.order)
        yield PartUse(self.result, Use.PASSED)

    def nodes(self) -> set[str]:
        """The variables that are surely nodes of the message, or literals."""
        uses = [clause.part_use() for clause in self.clauses]
        return {
            name
            for part, _, binds in uses
            for name in binds
            if part.steps or part.needed() or isinstance(part, Literal)
        }

    def is_sure(self, nodes: Iterable[str] = ()) -> bool:
        is_plain = not self.order and self.group is None
        is_content = isinstance(self.result, Constructor | Literal)
        known = {*nodes, *self.nodes()}
        return is_content and is_plain and all(part.is_sure(known) for part in self.same_focus())

    def needed(self) -> tuple[PathExpression, ...] | None:
        ranges = (clause.path for clause in self.clauses if isinstance(clause, ForClause))
        found = (value.needed() for value in (*ranges, self.result))
        return next((paths for paths in found if paths is not None), None)

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        scope = dict(variables)
        for clause in self.clauses:
            clause.bind_kinds(scope, context)
        if self.group is not None:
            scope.update(dict.fromkeys((name for name, _ in self.group.keys), ATOMS))
            for clause in self.group.clauses:
                clause.bind_kinds(scope, context)
        return self.result.kinds(scope, context)

    def written(self, plain: bool) -> str:
        parts = [clause.written(plain) for clause in self.clauses]
        if self.where is not None:
            parts.append(f"where {self.where.single(plain)}")
        if self.group is not None:
            parts.append(self.group.written_keys(plain))
            parts += (clause.written(plain) for clause in self.group.clauses)
            if self.group.where is not None:
                parts.append(f"where {self.group.where.single(plain)}")
        if self.order:
            parts.append(f"order by {', '.join(key.written(plain) for key in self.order)}")
        return " ".join((*parts, f"return {self.result.single(plain)}"))


@dataclass(frozen=True, slots=True)
class Update(Expression):
    """An updating expression; it has no value and stands in ``modify`` only.

    ``source``: what is inserted, put in its place, or the name; the empty sequence for DELETE.
    """

    kind: UpdateKind
    target: Expression
    source: Expression | QualifiedName

    level = _SINGLE
    part_use = Use.COPY

    def written(self, plain: bool) -> str:
        first, between = self.kind.value
        target = self.target.single(plain)
        if not between:
            return f"{first} {target}"
        if isinstance(self.source, Expression):
            source = self.source.single(plain)
        else:
            source = f"QName({_quoted(self.source.namespace)}, {_quoted(str(self.source))})"
        if first == "insert node":
            return f"{first} {source} {between} {target}"
        return f"{first} {target} {between} {source}"


@dataclass(frozen=True, slots=True)
class Transform(Expression):
    """``copy $variable := value, … modify changes return result``."""

    copies: tuple[LetClause, ...]
    changes: Expression
    result: Expression

    level = _SINGLE

    def binds(self) -> Iterable[str]:
        return [copy.variable for copy in self.copies]

    def part_uses(self) -> Iterable[PartUse]:
        copies = [PartUse(copy.value, Use.COPY, (copy.variable,)) for copy in self.copies]
        return [*copies, PartUse(self.changes), PartUse(self.result, Use.PASSED)]

    def outcomes(self) -> Iterable[Expression]:
        return (self.result,)

    def needed(self) -> tuple[PathExpression, ...] | None:
        return self.copies[0].value.needed()  # which copies one node, or is an error

    def kinds(self, variables: Variables, context: Kinds) -> Kinds:
        scope = dict(variables)
        for copy in self.copies:
            scope[copy.variable] = copy.value.kinds(scope, context) & NODES
        return self.result.kinds(scope, context)

    def written(self, plain: bool) -> str:
        copies = ", ".join(copy.written(plain).removeprefix("let ") for copy in self.copies)
        changes, result = self.changes.single(plain), self.result.single(plain)
        return f"copy {copies} modify {changes} return {result}"


# -- profiles


class Filled(Protocol):
    """What a tree, or its text, can be made of: see shapes.py.

    ``shapes``: those of the index that it has, which others may have, too.
    """

    def fill(self) -> Expression: ...
    def text(self) -> str: ...
    def shapes(self) -> tuple[object, ...]: ...


class Profile:
    """A parsed profile; ``text`` is what the user wrote.

    Two profiles with equal bodies are one internal query.  One made ``of_parts`` has its body made
    when that is asked for.  ``matching``: its MatchingPart, once that was found.
    """

    __slots__ = ("_body", "_hash", "matching", "parts", "text")

    def __init__(self, body: Expression, text: str = "") -> None:
        self._body: Expression | None = body
        self._hash: int | None = None
        self.matching: Any = None
        self.parts: Filled | None = None
        self.text = text

    @classmethod
    def of_parts(cls, parts: Filled, text: str = "") -> Profile:
        profile = cls.__new__(cls)
        profile._body = None
        profile._hash = None
        profile.matching = None
        profile.parts = parts
        profile.text = text
        return profile

    @property
    def body(self) -> Expression:
        if self._body is None:
            assert self.parts is not None
            self._body = self.parts.fill()
        return self._body

    def __repr__(self) -> str:
        return f"Profile(body={self.body!r}, text={self.text!r})"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Profile) and self.body == other.body)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.body)
        return self._hash

    @property
    def flwor(self) -> Flwor | None:
        """The FLWOR expression when it is the whole, or the only one directly in the constructor
        that is the whole."""
        if isinstance(self.body, Flwor):
            return self.body
        if isinstance(self.body, Constructor):
            inside = [part for part in self.body.content if isinstance(part, Flwor)]
            return inside[0] if len(inside) == 1 else None
        return None
