# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Values: the operators whose value is items, and the interpreter as an operator.

Numbers, texts and dates are what they are in the interpreter (yfilter/language/atoms.py), and so
is what is done with them; what is saved is the way there.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan

from formats.names import QualifiedName
from yfilter.language.atoms import arithmetic, cast, compare, negate
from yfilter.language.function_library import applied
from yfilter.language.functions import FUNCTIONS, ArgumentKind, ResultKind
from yfilter.language.general_comparison import some_pair
from yfilter.language.memo import FEW
from yfilter.language.nodes import Atom, DynamicError, Focus, Item, Value
from yfilter.language.query_ast import Expression
from yfilter.language.query_ast import Operator as Relation

if cython.compiled:
    from cython.cimports.yfilter.operators.conditions import Constant
    from cython.cimports.yfilter.operators.operator import Operator
    from cython.cimports.yfilter.operators.path import Nodes, Path, Selected, Variable
    from cython.cimports.yfilter.operators.scratch import Scratch
    from cython.cimports.yfilter.operators.value_tests import compares
else:
    from yfilter.operators.conditions import Constant
    from yfilter.operators.operator import Operator
    from yfilter.operators.path import Nodes, Path, Selected, Variable
    from yfilter.operators.scratch import (
        KIND_ATTRIBUTE,
        KIND_MASK,
        KIND_SHIFT,
        KIND_TEXT,
        ROOT,
        Scratch,
    )
    from yfilter.operators.value_tests import compares
from yfilter.operators.value_tests import RELATIONS

# How an argument is handed over: as it is, as all its atomic values, or as the first of them.
AS_IT_IS, ATOMS, FIRST = range(3)
_TAKES = {
    ArgumentKind.NODES: AS_IT_IS,
    ArgumentKind.ITEMS: AS_IT_IS,
    ArgumentKind.CONDITION: AS_IT_IS,
    ArgumentKind.ATOMS: ATOMS,
    ArgumentKind.STRINGS: ATOMS,
}


class Interpreted(Operator):
    """Whatever no operator can say; ``variables`` are those bound around it, by their names."""

    def __init__(
        self,
        scratch: Scratch,
        expression: Expression,
        variables: Mapping[str, Variable | ItemVariable],
    ) -> None:
        super().__init__()
        self._scratch = scratch
        self._expression = expression
        self._variables = dict(variables)
        self.free = frozenset(variables.values())
        self.uses_context = True
        self.is_costly = True

    def value(self, node: cython.longlong) -> Value:
        return self._run(node)

    def items(self, node: cython.longlong) -> list[Atom]:
        return self._scratch.evaluator().atoms(self._run(node))

    def _run(self, node: cython.longlong) -> Value:
        scratch: Scratch = self._scratch
        variables = {}
        for name, variable in self._variables.items():
            if isinstance(variable, ItemVariable):
                variables[name] = variable._items
            else:
                variables[name] = [scratch.node_of(variable.node)]
        focus = Focus(scratch.node_of(node), 1, 1, variables)
        return scratch.evaluator().value(self._expression, focus)


class ItemVariable(Operator):
    """A variable that ranges over items of any kind: the one at hand."""

    def __init__(self, scratch: Scratch) -> None:
        super().__init__()
        self._scratch = scratch
        self._items: list[Item] = []
        self.free = frozenset((self,))

    def value(self, node: cython.longlong) -> Value:
        return self._items

    def items(self, node: cython.longlong) -> list[Atom]:
        return self._scratch.evaluator().atoms(self._items)

    def bind(self, item: Item) -> None:
        self._items = [item]


class NameOf(Operator):
    """``name``, ``local-name`` or ``namespace-uri`` of the first node of a path, an element or an
    attribute; found out once for each name of a message."""

    def __init__(self, path: Path, said: Callable[[QualifiedName], str]) -> None:
        super().__init__((path,))
        self._scratch = path.scratch
        self._path = path
        self._said = said
        self._nothing = said(QualifiedName("", "", ""))
        self._message = 0
        self._texts: list[str] = []

    def value(self, node: cython.longlong) -> Value:
        return [self.first_atom(node)]  # type: ignore[list-item]

    def first_atom(self, node: cython.longlong) -> Atom | None:
        scratch: Scratch = self._scratch
        found: cython.longlong = self._path.first_node(node)
        number: cython.int = found >> KIND_SHIFT
        if self._message != scratch.message:
            self._message = scratch.message
            self._texts = [self._said(name) for name in scratch.columns._stream.names]
        if found < 0 or found & KIND_MASK == KIND_TEXT:
            return self._nothing
        if found & KIND_MASK == KIND_ATTRIBUTE:
            return self._texts[scratch.columns.attribute_name[number]]
        return self._texts[scratch.columns.name[number]]


class AtMostOne(Selected):
    """``zero-or-one(nodes)``."""

    def collect(self, node: cython.longlong) -> cython.int:
        scratch: Scratch = self.scratch
        base: cython.int = self._source.collect(node)
        if scratch.top > base + 1:
            raise DynamicError("FORG0003", "several items where one at most is wanted")
        return base


class CountOf(Operator):
    """How many nodes a path leads to."""

    def __init__(self, path: Path) -> None:
        super().__init__((path,))
        self._path = path

    def value(self, node: cython.longlong) -> Value:
        return [self._path.count(node)]


class Call(Operator):
    """A function of functions.py."""

    def __init__(self, scratch: Scratch, name: str, arguments: Sequence[Operator]) -> None:
        super().__init__(arguments)
        self.is_costly = True
        signature = FUNCTIONS[name]
        self._scratch = scratch
        self._name = name
        self._arguments = list(arguments)
        kinds = [signature.argument(index) for index in range(len(self._arguments))]
        self._takes = bytes(_TAKES.get(kind, FIRST) for kind in kinds)
        if name == "string":
            self._takes = bytes((FIRST,))
        self._may_give_nodes = signature.result is ResultKind.ANY

    def value(self, node: cython.longlong) -> Value:
        argument: Operator
        values: list[Value] = []
        i: cython.int
        for i in range(len(self._arguments)):
            argument = self._arguments[i]
            if self._takes[i] == 2:
                first = argument.first_atom(node)
                values.append([] if first is None else [first])
            elif self._takes[i] == 1:
                values.append(argument.items(node))
            else:
                values.append(argument.value(node))
        return applied(self._scratch.evaluator(), self._name, values)

    def items(self, node: cython.longlong) -> list[Atom]:
        value = self.value(node)
        if self._may_give_nodes:
            return self._scratch.evaluator().atoms(value)
        return value[:]  # type: ignore[return-value]


class TextCall(Operator):
    """A function of texts, each the first of its argument, an empty one for none."""

    def __init__(
        self, scratch: Scratch, function: Callable[..., Atom], arguments: Sequence[Operator]
    ) -> None:
        super().__init__(arguments)
        self.is_costly = True
        self._scratch = scratch
        self._function = function
        self._arguments = list(arguments)

    def value(self, node: cython.longlong) -> Value:
        return [self.first_atom(node)]  # type: ignore[list-item]

    def first_atom(self, node: cython.longlong) -> Atom | None:
        argument: Operator
        scratch: Scratch = self._scratch
        texts = []
        for argument in self._arguments:
            text = argument.first_atom(node)
            if text is None:
                text = ""
            elif not isinstance(text, str):
                raise DynamicError("XPTY0004", "a function takes a string")
            texts.append(text)
        for text in texts:
            scratch.visit(len(text) >> 6)
        return self._function(*texts)

    def atom(self, node: cython.longlong) -> Atom | None:
        return self.first_atom(node)

    def holds(self, node: cython.longlong) -> cython.bint:
        return bool(self.first_atom(node))


class Arithmetic(Operator):
    """``+ - * div idiv mod`` of two numbers; nothing if either is missing."""

    def __init__(self, name: str, left: Operator, right: Operator) -> None:
        super().__init__((left, right))
        self.is_costly = True
        self._name = name
        self._left = left
        self._right = right

    def value(self, node: cython.longlong) -> Value:
        found = self.atom(node)
        return [] if found is None else [found]

    def atom(self, node: cython.longlong) -> Atom | None:
        left = self._left.atom(node)
        right = self._right.atom(node)
        if left is None or right is None:
            return None
        return arithmetic(self._name, left, right)


class Negated(Operator):
    """A number with its sign turned."""

    def __init__(self, operand: Operator) -> None:
        super().__init__((operand,))
        self._operand = operand

    def value(self, node: cython.longlong) -> Value:
        atom = self._operand.atom(node)
        return [] if atom is None else [negate(atom)]


class CastTo(Operator):
    """``cast as``, which takes one value, or none if that is ``optional``."""

    def __init__(self, type_name: str, optional: bool, operand: Operator) -> None:
        super().__init__((operand,))
        self._type = type_name
        self._optional = optional
        self._operand = operand

    def value(self, node: cython.longlong) -> Value:
        atom = self._operand.atom(node)
        if atom is not None:
            return [cast(atom, self._type)]
        if not self._optional:
            raise DynamicError("XPTY0004", "a cast of the empty sequence")
        return []


class Remembered(Operator):
    """What a function of many values gives, found out once for each node of a message."""

    def __init__(self, scratch: Scratch, operand: Operator) -> None:
        super().__init__((operand,))
        self._scratch = scratch
        self._operand = operand
        self._message = 0
        self._known: dict[int, list[Atom]] = {}

    def value(self, node: cython.longlong) -> Value:
        return self.items(node)

    def items(self, node: cython.longlong) -> list[Atom]:
        if self._message != self._scratch.message:
            self._message = self._scratch.message
            self._known = {}
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._operand.items(node)
        return known


class ItemComparison(Operator):
    """A general comparison: some pair of a value on the left and one on the right compares so."""

    def __init__(
        self, scratch: Scratch, left: Operator, relation: Relation, right: Operator
    ) -> None:
        super().__init__((left, right))
        self._scratch = scratch
        self._left = left
        self._relation = relation
        self._right = right
        self._compared = RELATIONS[relation]
        self._number = right.number() if isinstance(right, Constant) else nan
        self._has_number = not isnan(self._number)
        self.is_costly = not (self._has_number and isinstance(left, Remembered))
        if self._compared == 0 and isinstance(left, OncePerMessage):
            self._left, self._right = right, left
        self._is_list = self._compared == 0 and isinstance(self._right, OncePerMessage)
        self._list: list[Atom] = []
        self._texts: frozenset[str] | None = None

    def value(self, node: cython.longlong) -> Value:
        return [self.holds(node)]

    def holds(self, node: cython.longlong) -> cython.bint:
        left = self._left.items(node)
        number: cython.double
        if self._has_number and len(left) == 1 and type(left[0]) is float:
            number = left[0]
            if number == number:  # noqa: PLR0124 - not NaN
                return compares(number, self._compared, self._number)
        right = self._right.items(node)
        if not left or not right:
            return False
        if self._compared == 0 and len(left) == 1 and len(right) == 1:
            one, other = left[0], right[0]
            if isinstance(one, str) and isinstance(other, str):
                return one == other  # texts, or untyped
        if self._is_list and len(right) > FEW:
            texts = self._texts_of(right)
            if texts is not None and all(isinstance(one, str) for one in left):
                self._scratch.visit(len(left))
                return not texts.isdisjoint(left)
        answer: cython.bint = some_pair(self._scratch.evaluator(), left, self._relation, right)
        return answer

    def _texts_of(self, values: list[Atom]) -> frozenset[str] | None:
        """The same list's as a set, if all of it are texts, or untyped."""
        if values is not self._list:
            self._scratch.visit(len(values))
            self._list = values
            texts = [value for value in values if isinstance(value, str)]
            self._texts = frozenset(texts) if len(texts) == len(values) else None
        return self._texts


class ValueComparison(Operator):
    """``eq`` and its like: one value with one; nothing if either is missing."""

    def __init__(self, left: Operator, relation: Relation, right: Operator) -> None:
        super().__init__((left, right))
        self.is_costly = True
        self._left = left
        self._relation = relation
        self._right = right

    def value(self, node: cython.longlong) -> Value:
        left = self._left.atom(node)
        right = self._right.atom(node)
        if left is None or right is None:
            return []
        return [compare(left, self._relation, right)]


class ForEachNode(Operator):
    """``left/right`` where ``right`` is no step: its atomic values for each node of ``left``."""

    def __init__(self, left: Nodes, right: Operator) -> None:
        super().__init__((left, right))
        self.is_costly = True
        self._left = left
        self._right = right
        self._scratch = left.scratch
        self.uses_context = left.uses_context

    def value(self, node: cython.longlong) -> Value:
        scratch: Scratch = self._scratch
        base: cython.int = self._left.collect(node)
        i: cython.int
        found: list[Item] = []
        for i in range(base, scratch.top):
            scratch.visit(1)
            found += self._right.value(scratch.nodes[i])
        scratch.top = base
        return found


class Chosen(Operator):
    """``if``."""

    def __init__(self, condition: Operator, consequence: Operator, alternative: Operator) -> None:
        super().__init__((condition, consequence, alternative))
        self._condition = condition
        self._consequence = consequence
        self._alternative = alternative

    def value(self, node: cython.longlong) -> Value:
        if self._condition.holds(node):
            return self._consequence.value(node)
        return self._alternative.value(node)

    def items(self, node: cython.longlong) -> list[Atom]:
        if self._condition.holds(node):
            return self._consequence.items(node)
        return self._alternative.items(node)

    def holds(self, node: cython.longlong) -> cython.bint:
        if self._condition.holds(node):
            return self._consequence.holds(node)
        return self._alternative.holds(node)


class Joined(Operator):
    """``(a, b)``."""

    def __init__(self, parts: Sequence[Operator]) -> None:
        super().__init__(parts)
        self._parts = list(parts)

    def value(self, node: cython.longlong) -> Value:
        part: Operator
        found: list[Item] = []
        for part in self._parts:
            found += part.value(node)
        return found

    def items(self, node: cython.longlong) -> list[Atom]:
        part: Operator
        found: list[Atom] = []
        for part in self._parts:
            found += part.items(node)
        return found


class RangingItems(Operator):
    """As ``Ranging``, over items of any kind."""

    def __init__(
        self,
        scratch: Scratch,
        every: bool,
        variable: ItemVariable,
        source: Operator,
        condition: Operator,
    ) -> None:
        super().__init__((source, condition))
        self._scratch = scratch
        self._every = every
        self._variable = variable
        self._source = source
        self._condition = condition
        self.free = source.free | (condition.free - {variable})
        self.is_costly = True

    def value(self, node: cython.longlong) -> Value:
        return [self.holds(node)]

    def holds(self, node: cython.longlong) -> cython.bint:
        holds: cython.bint
        scratch: Scratch = self._scratch
        for item in self._source.value(node):
            scratch.visit(1)
            self._variable.bind(item)
            try:
                holds = self._condition.holds(node)
            except DynamicError:
                holds = False
            if holds != self._every:
                return not self._every
        return self._every


class OncePerMessage(Operator):
    """What depends on the message alone: found out once for each, an error as well."""

    def __init__(self, scratch: Scratch, operand: Operator) -> None:
        super().__init__()
        self._scratch = scratch
        self.operand = operand
        self._message = 0
        self._value: Value | None = None
        self._atoms: list[Atom] | None = None
        self._truth: bool | None = None
        self._error: DynamicError | None = None

    def value(self, node: cython.longlong) -> Value:
        self._look()
        if self._value is None:
            try:
                self._value = self.operand.value(ROOT)
            except DynamicError as error:
                self._error = error
                raise
        return self._value

    def items(self, node: cython.longlong) -> list[Atom]:
        self._look()
        if self._atoms is None:
            try:
                self._atoms = self.operand.items(ROOT)
            except DynamicError as error:
                self._error = error
                raise
        return self._atoms

    def holds(self, node: cython.longlong) -> cython.bint:
        self._look()
        if self._truth is None:
            try:
                self._truth = self.operand.holds(ROOT)
            except DynamicError as error:
                self._error = error
                raise
        answer: cython.bint = self._truth
        return answer

    def _look(self) -> cython.int:
        """Forget what was of another message; raise the error that is known of this one."""
        if self._message != self._scratch.message:
            self._message = self._scratch.message
            self._value = self._atoms = self._truth = self._error = None
        if self._error is not None:
            raise self._error
        return 0
