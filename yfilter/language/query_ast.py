"""The abstract syntax of a profile: one tree for everything that a user may say.

A profile is one expression.  What is delivered follows from its form (section 2.1 of the paper): a
path delivers the message as it came, when the path selects anything; a FLWOR expression, or any
other expression, a document for each item; a constructor one document.  All nodes are immutable and
hashable, so that equal parts of different profiles can be shared by looking them up.

``unparse`` in query_text.py gives the text of a node; ``query_parser`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias

from formats.names import QualifiedName
from yfilter.graph.query_ast import GraphQuery
from yfilter.language.comparison import VALUE_COMPARISONS as VALUE_COMPARISONS  # noqa: PLC0414
from yfilter.language.comparison import Operator as Operator  # noqa: PLC0414
from yfilter.language.namespaces import ERROR_NAMESPACE


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


ANY_NAME = NameTest(ANY, ANY)


@dataclass(frozen=True, slots=True)
class LocationStep:
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


@dataclass(frozen=True, slots=True)
class PathExpression:
    """A location path; as a condition it holds when it selects anything.

    ``variable`` is the name without ``$`` when the origin is VARIABLE, else "".  ``start`` is where
    the path starts when the origin is EXPRESSION.  No steps means the origin itself.
    """

    origin: Origin
    steps: tuple[LocationStep, ...]
    variable: str = ""
    start: Expression | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """``left/right`` where ``right`` is no step: its value for each node of ``left``."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class SimpleMap:
    """``left ! right``: the value of ``right`` for each item of ``left``, in their order."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A string, xs:integer, xs:decimal or xs:double; equal only to one of the same type."""

    value: str | int | Decimal | float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self.value if type(self.value) is str else self._key)

    @property
    def _key(self) -> tuple[type, str]:
        value = self.value
        return type(value), str(value.normalize() if isinstance(value, Decimal) else value)


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Expression
    operator: Operator
    right: Expression


@dataclass(frozen=True, slots=True)
class And:
    """Two or more parts, none of them an And."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more parts, none of them an Or."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator other than those above; ``name`` as written, "negate" for a unary minus.

    ``+ - * div idiv mod to``, ``| intersect except``, ``eq ne lt le gt ge``, ``is << >>``.
    """

    name: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """``(a, b)``; no parts is the empty sequence, and never just one."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """``if (condition) then a else b``."""

    condition: Expression
    consequence: Expression
    alternative: Expression


@dataclass(frozen=True, slots=True)
class Quantified:
    """``some $v in e, … satisfies condition``; ``every`` likewise."""

    every: bool
    bindings: tuple[tuple[str, Expression], ...]
    condition: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """``e cast as xs:date``, ``e castable as …``; ``optional`` is the question mark."""

    operand: Expression
    type: str
    optional: bool
    castable: bool


@dataclass(frozen=True, slots=True)
class SequenceType:
    """``name`` is item, empty-sequence, node or an atomic type; ``kind`` and ``test`` say which
    nodes.  ``occurrence`` is "", "?", "*" or "+"."""

    name: str
    kind: NodeKind | None
    test: NameTest | None
    occurrence: str = ""


@dataclass(frozen=True, slots=True)
class Typed:
    """``e treat as type``, which declared types of variables are as well, or ``e instance of``.

    ``declared``: the error that it raises is that of a declared type.
    """

    operand: Expression
    type: SequenceType
    treat: bool
    declared: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class TypeCase:
    """``case $variable as type | type return result``; "" is no variable, no types are any."""

    variable: str
    types: tuple[SequenceType, ...]
    result: Expression


@dataclass(frozen=True, slots=True)
class Typeswitch:
    """``typeswitch (operand) case … default …``; the default is the last case."""

    operand: Expression
    cases: tuple[TypeCase, ...]


_CAUGHT = ("code", "description", "value")
ERROR_VARIABLES = tuple(f"Q{{{ERROR_NAMESPACE}}}{name}" for name in _CAUGHT)
"""What a catch clause binds."""


@dataclass(frozen=True, slots=True)
class CatchClause:
    """``catch name | name { result }``."""

    names: tuple[NameTest, ...]
    result: Expression


@dataclass(frozen=True, slots=True)
class TryCatch:
    """``try { body } catch … { … }``; limits are no errors that could be caught."""

    body: Expression
    clauses: tuple[CatchClause, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function of the documented list; ``name`` without ``fn:``, types as ``xs:date``."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """``declare function name($parameter as type, …) as type { body };``, None for no type.

    A declared variable is one without parameters, ``$Q{}name``, whose body is evaluated once.
    """

    name: str
    parameters: tuple[tuple[str, SequenceType | None], ...]
    result: SequenceType | None
    body: Expression


@dataclass(frozen=True, slots=True)
class UserCall:
    """A call of a declared function, or the name of a declared variable; ``library`` has them
    all, and is empty in their bodies."""

    name: str
    arguments: tuple[Expression, ...]
    library: tuple[FunctionDeclaration, ...] = ()

    @property
    def is_variable(self) -> bool:
        return self.name.startswith("$")

    def variable_value(self, library: tuple[FunctionDeclaration, ...] = ()) -> Expression | None:
        """What a declared variable stands for; None of a function, and where that is not known."""
        found = (one.body for one in self.library or library if one.name == self.name)
        return next(found, None) if self.is_variable else None


@dataclass(frozen=True, slots=True)
class Constructor:
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


@dataclass(frozen=True, slots=True)
class Markup:
    """A comment or processing instruction written in a constructor."""

    kind: NodeKind
    target: str
    value: str


@dataclass(frozen=True, slots=True)
class Computed:
    """``attribute n {…}``, ``text {…}``, ``comment {…}``, ``processing-instruction n {…}``, and
    ``element {name} {…}``; an element whose name is fixed is a Constructor.

    ``name`` is None for text and comments.  ``namespaces``: what the prefixes of a computed name
    mean, "" being the default for elements, as far as the language does not settle that.
    """

    kind: NodeKind
    name: QualifiedName | Expression | None
    content: Expression
    namespaces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ForClause:
    """``for $variable at $position in path``; "" is no position."""

    variable: str
    path: Expression
    position: str = ""


@dataclass(frozen=True, slots=True)
class LetClause:
    variable: str
    value: Expression


@dataclass(frozen=True, slots=True)
class WhereClause:
    """A ``where`` with a ``for`` or ``let`` behind it; the last one is ``Flwor.where``."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class OrderKey:
    """``key descending empty greatest``."""

    key: Expression
    descending: bool = False
    empty_greatest: bool = False


PART_VARIABLE = "binding"


@dataclass(frozen=True, slots=True)
class Part:
    """An expression in content of a constructor whose value was perhaps computed on the way, for
    the element that is ``variable``: a *piece* of the message, of the part's ``digest``.

    ``expression`` calls that element PART_VARIABLE.  A part is in no profile that a user writes;
    projection/parts.py puts it in.
    """

    variable: str
    digest: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Update:
    """An updating expression; it has no value and stands in ``modify`` only.

    ``source``: what is inserted, put in its place, or the name; the empty sequence for DELETE.
    """

    kind: UpdateKind
    target: Expression
    source: Expression | QualifiedName


@dataclass(frozen=True, slots=True)
class Transform:
    """``copy $variable := value, … modify changes return result``."""

    copies: tuple[LetClause, ...]
    changes: Expression
    result: Expression


Clause: TypeAlias = ForClause | LetClause | WhereClause


@dataclass(frozen=True, slots=True)
class Grouping:
    """``group by $key := value, $key …``, and the clauses and ``where`` behind it.

    A key without a value is a variable that is bound in front.
    """

    keys: tuple[tuple[str, Expression | None], ...]
    clauses: tuple[Clause, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Flwor:
    """``for … let … where … group by … order by … return …``."""

    clauses: tuple[Clause, ...]
    where: Expression | None
    result: Expression
    order: tuple[OrderKey, ...] = ()
    group: Grouping | None = None


Expression: TypeAlias = (
    PathExpression
    | Mapped
    | SimpleMap
    | Literal
    | Comparison
    | And
    | Or
    | Operation
    | Sequence
    | Conditional
    | Quantified
    | Cast
    | Typed
    | Typeswitch
    | TryCatch
    | FunctionCall
    | UserCall
    | Constructor
    | Markup
    | Computed
    | Flwor
    | Update
    | Transform
    | Part
    | GraphQuery
)


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
