"""The abstract syntax of a profile: one tree for everything that a user may say.

A profile is one expression.  Two forms are deliverable: a path (the message as it came, when the
path selects anything) and a FLWOR expression, bare or inside an enclosing element constructor
(section 2.1 of the paper).  All nodes are immutable and hashable, so that equal parts of
different profiles can be shared by looking them up.

``unparse`` in query_text.py gives the text of a node; ``query_parser`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from formats.names import QualifiedName

# In a NameTest: any namespace, any local name.
ANY = "*"


class NodeKind(Enum):
    """What a location step selects."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    TEXT = "text()"
    SELF = "."
    PARENT = ".."


class Origin(Enum):
    """Where a path starts."""

    MESSAGE = "$msg"  # the document node: "/a", "//a", "$msg/a"
    CONTEXT = "."  # the context item inside a predicate: "a", ".//a", "@a"
    VARIABLE = "$"  # a variable bound by for or let


@dataclass(frozen=True, slots=True)
class NameTest:
    """``name``, ``prefix:name``, ``*``, ``*:name`` or ``prefix:*``; either part may be ANY."""

    namespace: str
    local: str

    def accepts(self, namespace: str, local: str) -> bool:
        return self.namespace in (ANY, namespace) and self.local in (ANY, local)


@dataclass(frozen=True, slots=True)
class LocationStep:
    """One step; ``descendant`` says that ``//`` stood before it.

    ``test`` is None for TEXT, SELF and PARENT.  ``//x`` is XPath's
    ``/descendant-or-self::node()/child::x``.  SELF and PARENT are never descendant, and SELF
    stands only as a path's first step, with predicates (``.[a]``, ``$n[a]``): anywhere else its
    predicates belong to the step before it.
    """

    descendant: bool
    kind: NodeKind
    test: NameTest | None
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class PathExpression:
    """A location path; as a condition it holds when it selects anything.

    ``variable`` is the name without ``$`` when the origin is VARIABLE, else "".  No steps means
    the origin itself (``$n`` or ``.``).
    """

    origin: Origin
    steps: tuple[LocationStep, ...]
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or a number; an untyped value is compared with it as its type says.

    ``written`` is how an integer or decimal literal reads as a string, where the xs:double of
    the same value would read otherwise ("1000000", not "1.0E6"); else "".
    """

    value: str | float
    written: str = ""


class Operator(Enum):
    """General comparison: holds when some pair of items does."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


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
class FunctionCall:
    """A function of the documented list, ``not`` among them; ``name`` without ``fn:``."""

    name: str
    arguments: tuple[Expression, ...]


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
class ForClause:
    """``for $variable in path``; the first one's path starts at the message."""

    variable: str
    path: PathExpression


@dataclass(frozen=True, slots=True)
class LetClause:
    variable: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Flwor:
    """``for … let … where … return …``."""

    clauses: tuple[ForClause | LetClause, ...]
    where: Expression | None
    result: Expression


Expression: TypeAlias = (
    PathExpression | Literal | Comparison | And | Or | FunctionCall | Constructor | Flwor
)


@dataclass(frozen=True, slots=True)
class Profile:
    """A parsed profile.

    ``text`` is what the user wrote; ``body`` a PathExpression, a Flwor, or a Constructor whose
    content holds exactly one Flwor.  Two profiles with equal bodies are one internal query.
    """

    body: PathExpression | Flwor | Constructor
    text: str = field(default="", compare=False)

    @property
    def flwor(self) -> Flwor | None:
        """The FLWOR expression, wherever it stands; None for a path profile."""
        if isinstance(self.body, Flwor):
            return self.body
        if isinstance(self.body, Constructor):
            return next(part for part in self.body.content if isinstance(part, Flwor))
        return None
