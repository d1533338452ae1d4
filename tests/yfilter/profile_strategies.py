"""Random profiles as syntax trees, and random messages for them.

The trees are well typed and in the parser's canonical form, so that every one of them is what the
parser makes of its text.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Protocol, TypeVar

from hypothesis import strategies as st

from formats.names import QualifiedName
from yfilter.language.functions import NODES, PARENTS, ItemKind, Kinds
from yfilter.language.query_ast import (
    ANY,
    And,
    Comparison,
    Constructor,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    LetClause,
    Literal,
    LocationStep,
    NameTest,
    NodeKind,
    Operator,
    Or,
    Origin,
    PathExpression,
)
from yfilter.language.query_parser import Scope

NAMESPACE = "urn:u"
WORDS = ("x", "y", "5", "05", " 5 ", "1e1", "-3", "INF", "NaN", "1_0", "x y", "")
NUMBERS = (0.0, 5.0, -3.0, 10.0, 2.5)
LOCALS = ("a", "b", "c")
ATTRIBUTES = ("k", "n")
T = TypeVar("T")


class Draw(Protocol):
    def __call__(self, strategy: st.SearchStrategy[T]) -> T: ...


class ProfileMaker:
    """Draws one profile; ``odd`` also draws names and literals that test quoting."""

    def __init__(self, draw: Draw, *, odd: bool = False) -> None:
        self._draw = draw
        self._odd = odd
        self._variables = 0
        self._budget = 20  # of nodes: keeps trees small
        self._predicates_deep = 0

    def path_profile(self) -> PathExpression:
        path = self._path(Scope({}, {}), origin=Origin.MESSAGE, spine=True)
        if self._one_of(True, False, False, False) and path.steps[-1].kind is NodeKind.ELEMENT:
            kind = self._one_of(NodeKind.ATTRIBUTE, NodeKind.TEXT)
            test = self._test(kind)
            last = LocationStep(self._one_of(True, False), kind, test)
            path = replace(path, steps=(*path.steps, last))
        return path

    def flwor_profile(self, namespaces: dict[str, str] | None = None) -> Flwor:
        scope = Scope({}, {})
        first = ForClause(self._variable(), self._path(scope, origin=Origin.MESSAGE, spine=True))
        scope = scope.with_variable(first.variable, ItemKind.ELEMENT)
        return self._flwor(scope, (first,), element_result=True, namespaces=namespaces)

    def enclosed_profile(self) -> Constructor:
        name, declarations = self._constructed_name({})
        content: list[str | Expression] = [self.flwor_profile(dict(declarations))]
        if self._one_of(True, False):
            content.insert(self._one_of(0, 1), self._text())
        attributes: tuple[tuple[QualifiedName, tuple[str | Expression, ...]], ...] = ()
        if self._one_of(True, False):
            path = self._path(Scope({}, {}), origin=Origin.MESSAGE)
            attributes = ((QualifiedName("", "", "from"), ("<", path, "{}")),)
        return Constructor(name, attributes, declarations, tuple(content))

    def condition(self, scope: Scope) -> Expression:
        self._budget -= 1
        if self._budget <= 0:
            return self._path(scope)
        match self._one_of("compare", "compare", "exists", "and", "or", "not", "call"):
            case "compare":
                return self._comparison(scope)
            case "and" | "or" as joint:
                parts = [self.condition(scope) for _ in range(self._one_of(2, 3))]
                kind = And if joint == "and" else Or
                flat: list[Expression] = []
                for part in parts:
                    flat.extend(part.parts if isinstance(part, kind) else (part,))
                return kind(tuple(flat))
            case "not":
                return FunctionCall("not", (self.condition(scope),))
            case "call":
                name = self._one_of("contains", "starts-with", "ends-with")
                if self._one_of(True, False, False):
                    pattern = Literal(self._one_of("x|y", "^5", "[0-9]+$", "^\\s"))
                    return FunctionCall("matches", (self._stringish(scope), pattern))
                return FunctionCall(name, (self._stringish(scope), self._stringish(scope)))
            case _:
                return self._path(scope)

    # -- parts of conditions

    def _comparison(self, scope: Scope) -> Comparison:
        operator = self._draw(st.sampled_from(Operator))
        sides = self._one_of(
            (self._path, self._string),
            (self._path, self._number),
            (self._path, self._number),
            (self._path, self._path),
            (self._string, self._string),
            (self._number, self._number),
        )
        if self._one_of(True, False):
            sides = sides[::-1]
        return Comparison(sides[0](scope), operator, sides[1](scope))

    def _string(self, scope: Scope) -> Expression:
        self._budget -= 1
        if self._budget <= 0 or self._one_of(True, True, False):
            return Literal(self._word())
        match self._one_of("fold", "join", "concat", "string"):
            case "fold":
                name = self._one_of("normalize-space", "lower-case", "upper-case")
                return FunctionCall(name, (self._stringish(scope),))
            case "join":
                return FunctionCall("string-join", (self._path(scope), self._string(scope)))
            case "concat":
                count = FunctionCall("count", (self._path(scope),))
                return FunctionCall("concat", (self._path(scope), self._string(scope), count))
            case _:
                if scope.context and self._one_of(True, False):
                    return FunctionCall("string", ())
                return FunctionCall("string", (self._path(scope),))

    def _number(self, scope: Scope) -> Expression:
        match self._one_of("literal", "literal", "count", "length", "number"):
            case "count":
                return FunctionCall("count", (self._path(scope),))
            case "length":
                return FunctionCall("string-length", (self._stringish(scope),))
            case "number":
                return FunctionCall("number", (self._path(scope),))
            case _:
                return self._number_literal()

    def _number_literal(self) -> Literal:
        if not self._odd:
            return Literal(self._draw(st.sampled_from(NUMBERS)))
        value = self._draw(st.floats(allow_nan=False, allow_infinity=False))
        return self._one_of(
            Literal(value), Literal(1_000_000), Literal(Decimal("0.0000001")), Literal(-7)
        )

    def _stringish(self, scope: Scope) -> Expression:
        return self._path(scope) if self._one_of(True, True, False) else self._string(scope)

    def _word(self) -> str:
        if self._odd and self._one_of(True, False):
            return self._draw(st.text("ab \"'&<>{}\n\r\t(:)é\u2028", max_size=5))
        return self._one_of(*WORDS)

    # -- paths

    def _path(
        self, scope: Scope, origin: Origin | None = None, *, spine: bool = False
    ) -> PathExpression:
        nodes = [name for name, kinds in scope.variables.items() if not kinds & ~NODES]
        origins = [Origin.MESSAGE]
        origins += [Origin.CONTEXT] * 6 if scope.context else []
        origins += [Origin.VARIABLE] * 6 if nodes else []
        origin = origin or self._one_of(*origins)
        variable = self._one_of(*nodes) if origin is Origin.VARIABLE else ""
        kinds = PathExpression(origin, (), variable).kinds(scope.variables, scope.context)
        least = 1 if spine or origin is Origin.MESSAGE else 0
        steps: list[LocationStep] = []
        for _ in range(self._draw(st.integers(least, 3))):
            step = self._step(scope, kinds, spine=spine)
            if step is None:
                break
            steps.append(step)
            kinds = step.kinds_from(kinds)
        return PathExpression(origin, tuple(steps), variable)

    def _step(self, scope: Scope, kinds: Kinds, *, spine: bool) -> LocationStep | None:
        self._budget -= 1
        choices = [NodeKind.ELEMENT] * 4
        if not spine:
            choices += [NodeKind.ATTRIBUTE, NodeKind.TEXT, NodeKind.PARENT]
        kind = self._one_of(*choices)
        descendant = kind is not NodeKind.PARENT and self._one_of(True, False, False)
        selected = LocationStep(descendant, kind, None).kinds_from(kinds)
        if not selected:
            kind, descendant = NodeKind.ELEMENT, False
            selected = LocationStep(descendant, kind, None).kinds_from(kinds)
            if not selected:
                return None
        predicates: tuple[Expression, ...] = ()
        if self._predicates_deep < 2 and self._budget > 0 and self._one_of(True, False, False):
            self._predicates_deep += 1
            predicates = (self.condition(replace(scope, context=selected)),)
            self._predicates_deep -= 1
        return LocationStep(descendant, kind, self._test(kind), predicates)

    def _test(self, kind: NodeKind) -> NameTest | None:
        if kind not in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
            return None
        locals_: tuple[str, ...] = LOCALS if kind is NodeKind.ELEMENT else ATTRIBUTES
        if self._odd:
            locals_ += ("for", "and", "text", "body.head-1", "é")
        local = self._one_of(*locals_)
        odd: tuple[NameTest, ...] = (
            NameTest("a&{}b", local),
            NameTest("", ANY),
            NameTest(NAMESPACE, ANY),
        )
        plain = [NameTest("", local)] * 3
        wild = [NameTest(NAMESPACE, local), NameTest(ANY, local), NameTest(ANY, ANY)]
        return self._one_of(*plain, *wild, *(odd if self._odd else ()))

    # -- FLWOR and constructors

    def _flwor(
        self,
        scope: Scope,
        clauses: tuple[ForClause | LetClause, ...],
        *,
        element_result: bool = False,
        namespaces: dict[str, str] | None = None,
    ) -> Flwor:
        found = list(clauses)
        for _ in range(self._one_of(0, 0, 1, 2)):
            if self._one_of(True, False):
                path = self._path(scope)
                clause: ForClause | LetClause = ForClause(self._variable(), path)
                kinds = path.kinds(scope.variables, scope.context)
            else:
                value = self._one_of(self._path, self._string, self._number)(scope)
                clause = LetClause(self._variable(), value)
                kinds = value.kinds(scope.variables, scope.context)
            scope = scope.with_variable(clause.variable, kinds)
            found.append(clause)
        where = self.condition(scope) if self._one_of(True, True, False) else None
        result: Expression | None = None
        if self._one_of(True, False, False):
            path = self._path(scope)
            kinds = path.kinds(scope.variables, scope.context)
            if not kinds & ~(PARENTS if element_result else ~ItemKind.ATTRIBUTE):
                result = path
        if result is None:
            result = self._constructor(scope, namespaces or {})
        return Flwor(tuple(found), where, result)

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _constructor(self, scope: Scope, namespaces: dict[str, str]) -> Constructor:
        name, declarations = self._constructed_name(namespaces)
        inner = {**namespaces, **dict(declarations)}
        attributes: list[tuple[QualifiedName, tuple[str | Expression, ...]]] = []
        for local in self._draw(st.lists(st.sampled_from(["k", "z"]), unique=True, max_size=2)):
            value: list[str | Expression] = [self._path(scope)]
            if self._one_of(True, False):
                value.append(self._text())
            attributes.append((QualifiedName("", "", local), tuple(value)))
        content: list[str | Expression] = []
        is_attribute_place = True
        for _ in range(self._one_of(0, 1, 2, 3)):
            part = self._part(scope, inner)
            if isinstance(part, str) and content and isinstance(content[-1], str):
                continue
            is_attribute = False
            if not isinstance(part, str):
                kinds = part.kinds(scope.variables, scope.context)
                is_attribute = bool(kinds & ItemKind.ATTRIBUTE)
                if is_attribute and not is_attribute_place:
                    part = FunctionCall("string", (part,))
            is_attribute_place = is_attribute_place and is_attribute
            content.append(part)
        return Constructor(name, tuple(attributes), declarations, tuple(content))

    def _constructed_name(
        self, namespaces: dict[str, str]
    ) -> tuple[QualifiedName, tuple[tuple[str, str], ...]]:
        name = self._one_of(
            QualifiedName("", namespaces.get("", ""), "r"),
            QualifiedName("", namespaces.get("", ""), "r"),
            QualifiedName("", "urn:d", "r"),
            QualifiedName("u", NAMESPACE, "r"),
            QualifiedName("u", "urn:other", "s"),
        )
        if namespaces.get(name.prefix, "") == name.namespace:
            return name, ()
        return name, ((name.prefix, name.namespace),)

    def _part(self, scope: Scope, namespaces: dict[str, str]) -> str | Expression:
        self._budget -= 1
        kinds = ["text", "path", "path", "string", "number"]
        if self._budget > 0:
            kinds += ["constructor", "flwor"]
        match self._one_of(*kinds):
            case "text":
                return self._text()
            case "string":
                return self._string(scope)
            case "number":
                return self._number(scope)
            case "constructor":
                return self._constructor(scope, namespaces)
            case "flwor":
                clause = ForClause(self._variable(), self._path(scope))
                kinds_bound = clause.path.kinds(scope.variables, scope.context)
                inside = scope.with_variable(clause.variable, kinds_bound)
                return self._flwor(inside, (clause,), namespaces=namespaces)
            case _:
                return self._path(scope)

    def _text(self) -> str:
        if self._odd:
            return self._draw(st.text("ab \"'&<>{}\n\r\t(:)é]", min_size=1, max_size=5))
        return self._one_of("t", " ", "{&<", " é ")

    def _one_of(self, *choices: T) -> T:
        return self._draw(st.sampled_from(choices))


@st.composite
def profiles(draw: Draw, *, odd: bool = False) -> PathExpression | Flwor | Constructor:
    """The body of a random profile."""
    maker = ProfileMaker(draw, odd=odd)
    kind = draw(st.sampled_from(["path", "flwor", "flwor", "enclosed"]))
    if kind == "path":
        return maker.path_profile()
    return maker.flwor_profile() if kind == "flwor" else maker.enclosed_profile()


@st.composite
def conditions(draw: Draw) -> Expression:
    """A random condition on an element as its context item."""
    return ProfileMaker(draw).condition(Scope({}, {}, ItemKind.ELEMENT))


@st.composite
def messages(draw: Draw) -> bytes:
    """A random message with comments, CDATA, processing instructions and namespaces in it."""

    def element(depth: int, declaration: str = "") -> str:
        prefix = draw(st.sampled_from(["", "", "u:"]))
        name = prefix + draw(st.sampled_from(LOCALS))
        declaration += draw(st.sampled_from(["", "", "", ' xmlns="urn:u"', ' xmlns:v="urn:v"']))
        attributes = "".join(
            f' {attribute}="{draw(st.sampled_from(WORDS))}"'
            for attribute in draw(
                st.lists(st.sampled_from(["k", "n", "u:k"]), unique=True, max_size=2)
            )
        )
        content = ""
        for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
            content += draw(
                st.sampled_from(["", "", "5", "x", " ", "<!--c-->", "<?pi d?>", "<![CDATA[<&]]>"])
            )
            content += element(depth + 1)
        content += draw(st.sampled_from(WORDS))
        return f"<{name}{declaration}{attributes}>{content}</{name}>"

    before = draw(st.sampled_from(["", "", "<!--before-->"]))
    after = draw(st.sampled_from(["", "", "<?after?>"]))
    return f"{before}{element(0, f' xmlns:u={chr(34)}{NAMESPACE}{chr(34)}')}{after}".encode()
