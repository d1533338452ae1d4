"""What the functions do.  ``functions.py`` says what each takes, and arguments come so converted.

==============================  ==========================================================
ArgumentKind                    the argument arrives as
==============================  ==========================================================
STRING, PATTERN, FLAGS          str
NUMBER                          int, Decimal, float, or None for the empty sequence
INTEGER                         int, or None
ATOM, TEMPORAL                  an atomic value, or None
ATOMS, STRINGS                  a list of atomic values
NODES, ITEMS, CONDITION         the value as it is
==============================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yfilter.language.atoms import atom_text, cast, is_number, to_double
from yfilter.language.budget import POINTER_BYTES, TEXT_VISIT
from yfilter.language.evaluator import Evaluator, effective_boolean
from yfilter.language.functions import FUNCTIONS, NEEDED, TYPES, ArgumentKind
from yfilter.language.math_functions import MATH_FUNCTIONS
from yfilter.language.namespaces import ERROR_NAMESPACE, braced
from yfilter.language.nodes import (
    NODES,
    AnyUri,
    Atom,
    DynamicError,
    Focus,
    Opaque,
    Untyped,
    Value,
)
from yfilter.language.number_functions import NUMBER_FUNCTIONS
from yfilter.language.other_functions import call_other
from yfilter.language.query_ast import FunctionCall
from yfilter.language.sequence_functions import SEQUENCE_FUNCTIONS, deep_equal
from yfilter.language.string_functions import CHARGED, STRING_FUNCTIONS
from yfilter.language.temporal import Temporal

FEW_ITEMS = 8  # which cost no more than the call


def call(evaluator: Evaluator, call_: FunctionCall, focus: Focus) -> Value:
    """The value of a function call; DynamicError for arguments that it cannot take."""
    name = call_.name
    if name in ("position", "last"):
        if focus.item is None:
            raise DynamicError("XPDY0002", f"{name}() without a context item")
        return [focus.position if name == "position" else focus.size]
    signature = FUNCTIONS.get(name)
    if signature is None:
        return call_other(evaluator, call_, focus)
    values = [evaluator.value(argument, focus) for argument in call_.arguments]
    if not values and signature.context:
        if focus.item is None:
            raise DynamicError("XPDY0002", f"{name}() without a context item")
        values = [[focus.item]]
    return applied(evaluator, name, values)


def applied(evaluator: Evaluator, name: str, values: list[Value]) -> Value:
    """What a function of FUNCTIONS gives for the values of its arguments; DynamicError."""
    signature = FUNCTIONS[name]
    if name in _ABOUT_NODES:
        return _ABOUT_NODES[name](evaluator, *values)
    if name == "compare" and not all(values):
        return []
    if evaluator.strict and not all(values):
        _check_needed(name, values)
    arguments = [
        _converted(evaluator, name, signature.argument(index), value)
        for index, value in enumerate(values)
    ]
    if name in TYPES or name in _OF_ONE:
        return _of_one(name, arguments[0])
    if name in CHARGED:
        return as_value(evaluator, CHARGED[name](evaluator, *arguments))
    for argument in arguments:
        if isinstance(argument, str):
            if len(argument) >= TEXT_VISIT:
                evaluator.charge_text(len(argument))
        elif isinstance(argument, list) and len(argument) >= FEW_ITEMS:
            evaluator.charge_memory(POINTER_BYTES * len(argument))
            evaluator.charge(len(argument))
    return as_value(evaluator, _FUNCTIONS[name](*arguments))


def _check_needed(name: str, values: list[Value]) -> None:
    needed = NEEDED.get(name, ())
    if any(not value and index in needed for index, value in enumerate(values)):
        raise DynamicError("XPTY0004", f"{name}() takes one item, this is none")


def as_value(evaluator: Evaluator, result: Any) -> Value:
    """What a function has made, charged."""
    if isinstance(result, list):
        evaluator.charge(len(result))
        return result
    if isinstance(result, str):
        evaluator.charge(len(result) // 16)
    return [result]


def _converted(evaluator: Evaluator, name: str, kind: ArgumentKind, value: Value) -> Any:
    match kind:
        case ArgumentKind.NODES | ArgumentKind.ITEMS | ArgumentKind.CONDITION:
            return value
        case ArgumentKind.ATOMS:
            return evaluator.atoms(value)
        case ArgumentKind.STRINGS:
            return [atom_text(atom) for atom in evaluator.atoms(value)]
        case _:
            pass
    if len(value) > 1 and evaluator.strict:
        raise DynamicError("XPTY0004", f"{name}() takes one item, these are several")
    atom = evaluator.atom(value[0]) if value else None
    if kind in (ArgumentKind.ATOM, ArgumentKind.TEMPORAL):
        return atom
    if kind is ArgumentKind.NUMBER:
        if atom is None or is_number(atom):
            return atom
        if not isinstance(atom, Untyped):
            raise DynamicError("XPTY0004", f"{name}() takes a number")
        return to_double(atom)
    if kind is ArgumentKind.INTEGER:
        whole = cast(atom, "xs:integer") if isinstance(atom, Untyped) else atom
        if whole is not None and (not isinstance(whole, int) or isinstance(whole, bool)):
            raise DynamicError("XPTY0004", f"{name}() takes an integer")
        return whole
    if atom is not None and not isinstance(atom, str):
        raise DynamicError("XPTY0004", f"{name}() takes a string")
    return atom or ""


# -- functions of the whole value


def _boolean(evaluator: Evaluator, value: Value) -> Value:
    return [effective_boolean(value, strict=evaluator.strict)]


def _not(evaluator: Evaluator, value: Value) -> Value:
    return [not _boolean(evaluator, value)[0]]


def _named(part: str) -> Callable[..., Value]:
    def name_of(evaluator: Evaluator, value: Value) -> Value:
        if len(value) > 1 and evaluator.strict:
            raise DynamicError("XPTY0004", f"{part}() takes one node, these are several")
        name = None
        for first in value[:1]:
            if not isinstance(first, NODES):
                raise DynamicError("XPTY0004", f"{part}() takes a node")
            name = evaluator.name_of(first)
        if part == "namespace-uri":
            return [AnyUri(name.namespace if name else "")]
        return [("" if name is None else str(name) if part == "name" else name.local)]

    return name_of


def _root(evaluator: Evaluator, value: Value) -> Value:
    if len(value) > 1 or not all(isinstance(item, NODES) for item in value):
        raise DynamicError("XPTY0004", "root() takes one node")
    nodes = evaluator.nodes(value)
    if not nodes:
        return []
    return [evaluator.axes.root(nodes[0])]


def _string(evaluator: Evaluator, value: Value) -> Value:
    if len(value) > 1 and evaluator.strict:
        raise DynamicError("XPTY0004", "string() takes one item")
    return [evaluator.first_string(value)]


def _error(evaluator: Evaluator, name: Value = (), reason: Value = (), value: Value = ()) -> Value:
    code = evaluator.one_atom(name)
    if code is not None and not (isinstance(code, Opaque) and code.type == "xs:QName"):
        raise DynamicError("XPTY0004", "error() takes the name of an error")
    namespace, local = (ERROR_NAMESPACE, "FOER0000") if code is None else code.key
    is_known = namespace == ERROR_NAMESPACE
    said = evaluator.first_string(reason) or "an error of the profile's own"
    raise DynamicError(local if is_known else f"{braced(namespace)}{local}", said, value)


_ABOUT_NODES: dict[str, Callable[..., Value]] = {
    "not": _not,
    "boolean": _boolean,
    "name": _named("name"),
    "local-name": _named("local-name"),
    "namespace-uri": _named("namespace-uri"),
    "root": _root,
    "error": _error,
    "string": _string,
    "deep-equal": lambda *arguments: [deep_equal(*arguments)],
}


# -- functions of one value, empty for the empty sequence

_OF_ONE = frozenset(
    f"{part}-from-{kind}"
    for kind, parts in (
        ("date", ("year", "month", "day")),
        ("dateTime", ("year", "month", "day", "hours", "minutes", "seconds")),
    )
    for part in parts
)


def _of_one(name: str, atom: Atom | None) -> Value:
    if atom is None:
        return []
    if name in TYPES:
        return [cast(atom, name)]
    part, _, kind = name.partition("-from-")
    moment = cast(atom, f"xs:{kind}") if isinstance(atom, Untyped) else atom
    if not isinstance(moment, Temporal) or moment.type != f"xs:{kind}":
        raise DynamicError("XPTY0004", f"{name}() takes a {kind}")
    if part == "seconds":
        return [moment.seconds]
    return [int(getattr(moment.local, part.removesuffix("s")))]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "true": lambda: True,
    "false": lambda: False,
    **STRING_FUNCTIONS,
    **NUMBER_FUNCTIONS,
    **SEQUENCE_FUNCTIONS,
    **MATH_FUNCTIONS,
}
