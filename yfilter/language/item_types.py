"""Sequence types: whether a value is of one, and what it is as an argument of a declared type."""

from __future__ import annotations

from yfilter.language import query_ast as ast
from yfilter.language.atoms import cast, is_number, type_name
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import (
    AnyUri,
    Atom,
    Construction,
    Detached,
    DynamicError,
    Item,
    Node,
    Untyped,
    Value,
)

_LEAST_MOST = {"": (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}


def as_declared(evaluator: Evaluator, value: Value, wanted: ast.SequenceType | None) -> Value:
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


def is_of_type(evaluator: Evaluator, value: Value, wanted: ast.SequenceType) -> bool:
    if wanted.name == "empty-sequence":
        return not value
    least, most = _LEAST_MOST[wanted.occurrence]
    if len(value) < least or (most is not None and len(value) > most):
        return False
    return wanted.name == "item" or all(_item_matches(evaluator, item, wanted) for item in value)


def _item_matches(evaluator: Evaluator, item: Item, wanted: ast.SequenceType) -> bool:
    if isinstance(item, Detached):
        name = item.name
        return wanted.kind is ast.NodeKind.NODE or (
            item.kind is wanted.kind
            and (wanted.test is None or name is None or wanted.test.accepts(name[1], name[2]))
        )
    if isinstance(item, Construction):  # still to be written; its name is all that is asked
        test, constructed = wanted.test, item.constructor.name
        return wanted.kind is ast.NodeKind.NODE or (
            wanted.kind is ast.NodeKind.ELEMENT
            and test is not None
            and test.accepts(constructed.namespace, constructed.local)
        )
    if isinstance(item, Node):
        if wanted.kind is None:
            return False
        step = ast.LocationStep(False, wanted.kind, wanted.test, (), ast.Axis.SELF)
        return bool(list(evaluator.axes.step(item, step)))
    name_ = type_name(item)
    return wanted.name in (name_, "xs:anyAtomicType") or (
        (name_, wanted.name) == ("xs:integer", "xs:decimal")
        or (wanted.name == "xs:duration" and name_.endswith("Duration"))
    )
