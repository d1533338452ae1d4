"""Evaluates ``instance of``, ``treat as`` and the types that clauses declare."""

from __future__ import annotations

from yfilter.language.atoms import cast, is_number, type_name
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import (
    AnyUri,
    Atom,
    Construction,
    Detached,
    DynamicError,
    Focus,
    Item,
    Node,
    Untyped,
    Value,
)
from yfilter.language.query_ast import Axis, LocationStep, NodeKind, SequenceType, Typed

_LEAST_MOST = {"": (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}


def typed(evaluator: Evaluator, expression: Typed, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    matches = is_of_type(evaluator, value, expression.type)
    if not expression.treat:
        return [matches]
    if not matches:
        code = "XPTY0004" if expression.declared else "XPDY0050"
        raise DynamicError(code, "a value of another type than the one declared")
    return value


def as_declared(evaluator: Evaluator, value: Value, wanted: SequenceType | None) -> Value:
    """A value as an argument or a result of a function: atomic where that is declared."""
    if wanted is None:
        return value
    if wanted.name.startswith("xs:"):
        value = [_promoted(atom, wanted.name) for atom in evaluator.atoms(value)]
    if not is_of_type(evaluator, value, wanted):
        raise DynamicError("XPTY0004", "a value of another type than the one declared")
    return value


def _promoted(atom: Atom, wanted: str) -> Atom:
    if isinstance(atom, Untyped) and wanted not in ("xs:untypedAtomic", "xs:anyAtomicType"):
        return cast(atom, wanted)
    if wanted in ("xs:float", "xs:double") and is_number(atom):
        return cast(atom, wanted)
    if wanted == "xs:string" and isinstance(atom, AnyUri):
        return str(atom)
    if wanted == "xs:anyURI" and isinstance(atom, str):  # functions of names give strings
        return AnyUri(atom)
    return atom


def is_of_type(evaluator: Evaluator, value: Value, wanted: SequenceType) -> bool:
    if wanted.name == "empty-sequence":
        return not value
    least, most = _LEAST_MOST[wanted.occurrence]
    if len(value) < least or (most is not None and len(value) > most):
        return False
    return all(_item_matches(evaluator, item, wanted) for item in value)


def _item_matches(evaluator: Evaluator, item: Item, wanted: SequenceType) -> bool:
    if wanted.name == "item":
        return True
    if isinstance(item, Detached):
        name = item.name
        return wanted.kind is NodeKind.NODE or (
            item.kind is wanted.kind
            and (wanted.test is None or name is None or wanted.test.accepts(name[1], name[2]))
        )
    if isinstance(item, Construction):  # still to be written; its name is all that is asked
        test, constructed = wanted.test, item.constructor.name
        return wanted.kind is NodeKind.NODE or (
            wanted.kind is NodeKind.ELEMENT
            and test is not None
            and test.accepts(constructed.namespace, constructed.local)
        )
    if isinstance(item, Node):
        if wanted.kind is None:
            return False
        step = LocationStep(False, wanted.kind, wanted.test, (), Axis.SELF)
        return bool(list(evaluator.axes.step(item, step)))
    name_ = type_name(item)
    return wanted.name in (name_, "xs:anyAtomicType") or (
        (name_, wanted.name) == ("xs:integer", "xs:decimal")
        or (wanted.name == "xs:duration" and name_.endswith("Duration"))
    )
