"""The functions and types of XPath 2.0 that ``functions.py`` does not have; elementpath does them.

::

    xs:dayTimeDuration(@d) > xs:dayTimeDuration("PT1H")     hours-from-time(xs:time(@at)) >= 18
    encode-for-uri(title)        lang("en")                 adjust-date-to-timezone(xs:date(@d), ())

Names, numbers of arguments and types come from the table of elementpath's parser.  Arguments are
evaluated here and handed over as values, so nothing of the message is copied; what is about a node
is in ``node_functions.py``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from yfilter.language.atoms import cast
from yfilter.language.budget import ELEMENTPATH_COST
from yfilter.language.elementpath_bridge import NEWER_FUNCTIONS, evaluate
from yfilter.language.evaluator import Evaluator
from yfilter.language.functions import (
    FUNCTIONS,
    LEFT_OUT,
    TYPES,
    ArgumentKind,
    ResultKind,
    Signature,
)
from yfilter.language.node_functions import NODE_FUNCTIONS
from yfilter.language.nodes import NODES, Atom, DynamicError, Focus, Node, Untyped, Value
from yfilter.language.query_ast import (
    Cast,
    Expression,
    FunctionCall,
)
from yfilter.language.subexpressions import all_within

# About the context item, which the parser adds, where their last argument is left out.
CONTEXT_FUNCTIONS = frozenset(("lang",))
_AS_THEY_ARE = frozenset(("unordered", "trace"))
_LISTS = frozenset(("ENTITIES", "IDREFS", "NMTOKENS"))  # no XPath 2.0 cast leads to them
_NEEDS_NAMES = frozenset(("NOTATION",))
_NEWER = frozenset(("dateTimeStamp",))  # of XML Schema 1.1

_NUMBERS = (
    "float long int short byte unsignedLong unsignedInt unsignedShort unsignedByte numeric"
    " nonNegativeInteger nonPositiveInteger positiveInteger negativeInteger"
)
_STRINGS = "anyURI normalizedString token language Name NCName NMTOKEN ID IDREF ENTITY"
_OTHERS = (
    "duration dayTimeDuration yearMonthDuration time QName hexBinary base64Binary"
    " gDay gMonth gMonthDay gYear gYearMonth"
)
_RESULTS = {
    **TYPES,
    **{f"xs:{name}": ResultKind.NUMBER for name in _NUMBERS.split()},
    **{f"xs:{name}": ResultKind.STRING for name in _STRINGS.split()},
    **{f"xs:{name}": ResultKind.OTHER for name in _OTHERS.split()},
}
OPAQUE_TYPES = frozenset(name for name, kind in _RESULTS.items() if kind is ResultKind.OTHER)


def signature_of(name: str) -> Signature | None:
    """What a function takes and gives, whoever does it; None if there is no such function."""
    return FUNCTIONS.get(name) or other_functions().get(name)


def type_result(name: str) -> ResultKind | None:
    """What a cast to a type gives; None if there is no such cast."""
    if name in TYPES:
        return TYPES[name]
    signature = other_functions().get(name) if name.startswith("xs:") else None
    return None if signature is None else signature.result


def falls_back(expression: Expression) -> bool:
    """Whether elementpath has a part in evaluating it, as far as its text tells."""
    return any(
        (isinstance(part, FunctionCall) and part.name not in FUNCTIONS)
        or (isinstance(part, Cast) and part.type not in TYPES)
        for part in all_within(expression)
    )


@cache
def other_functions() -> dict[str, Signature]:
    """All of them, types with ``xs:`` included."""
    found = {"xs:QName": Signature(ResultKind.OTHER, (ArgumentKind.ATOM,), required=1)}
    for name, token in _tokens().items():
        label = str(token.label)
        if "function" in label and name not in FUNCTIONS and name not in LEFT_OUT:
            if label != "constructor function":
                found[name] = _signature(name, token)
            elif f"xs:{name}" not in TYPES and name not in _LISTS | _NEEDS_NAMES | _NEWER:
                found[f"xs:{name}"] = Signature(
                    _RESULTS[f"xs:{name}"], (ArgumentKind.ATOM,), required=1
                )
    return found


def call_other(evaluator: Evaluator, call: FunctionCall, focus: Focus) -> Value:
    """The value of a call; DynamicError for arguments that the function cannot take."""
    name = call.name
    values = [evaluator.value(argument, focus) for argument in call.arguments]
    evaluator.charge(ELEMENTPATH_COST)
    if name in _AS_THEY_ARE:
        return values[0]
    if name.startswith("xs:"):
        (atom,) = _argument(evaluator, values[0], "?")
        return [] if atom is None else [cast(atom, name)]
    types = _tokens()[name].sequence_types
    nodes = _node(evaluator, name, values.pop()) if name in NODE_FUNCTIONS else []
    arguments = [
        _typed(_argument(evaluator, value, type_), type_)
        for value, type_ in zip(values, types, strict=False)
    ]
    if name in NODE_FUNCTIONS:
        return NODE_FUNCTIONS[name](evaluator, nodes[0], *arguments) if nodes else []
    variables = ", ".join(f"$a{number}" for number in range(len(arguments)))
    for argument in arguments:
        evaluator.charge(_cost(argument))
    return evaluate(f"{name}({variables})", *arguments)


def _node(evaluator: Evaluator, name: str, value: Value) -> list[Node]:
    is_one = len(value) <= 1 or not evaluator.strict
    if not is_one or not all(isinstance(item, NODES) for item in value):
        raise DynamicError("XPTY0004", f"{name}() takes one node")
    return evaluator.nodes(value)


def _cost(argument: Any) -> int:
    """Visits of elementpath's for it: a character is a call, or several."""
    if isinstance(argument, list):
        return sum(map(_cost, argument))
    return len(argument) if isinstance(argument, str) else 1


def _argument(evaluator: Evaluator, value: Value, type_: str) -> list[Atom | None]:
    """The values of an argument; where one is wanted, the first one, None if there is none."""
    evaluator.charge(len(value))
    if type_.endswith(("*", "+")):
        return list(evaluator.atoms(value))
    if len(value) > 1 and evaluator.strict:
        raise DynamicError("XPTY0004", "a function that takes one item is given several")
    return [evaluator.atom(value[0]) if value else None]


def _typed(atoms: list[Atom | None], type_: str) -> Any:
    """An argument as elementpath gets it: untyped values are of the type that is wanted."""
    wanted = type_.rstrip("?*+").replace("xs:numeric", "xs:double")
    is_castable = wanted.startswith("xs:") and wanted != "xs:anyAtomicType"
    typed = [
        cast(atom, wanted) if is_castable and isinstance(atom, Untyped) else atom for atom in atoms
    ]
    return typed if type_.endswith(("*", "+")) else typed[0]


@cache
def _tokens() -> dict[str, Any]:
    """The classes of elementpath's parser by what they are called there, without namespaces."""
    from elementpath import XPath2Parser  # noqa: PLC0415
    from elementpath.xpath31 import XPath31Parser  # noqa: PLC0415

    table: dict[str, Any] = {**XPath2Parser.symbol_table}
    table.update((name, XPath31Parser.symbol_table[name]) for name in NEWER_FUNCTIONS)
    return {key: token for key, token in table.items() if hasattr(token, "sequence_types")}


def _signature(name: str, token: Any) -> Signature:
    least, most = token.nargs if isinstance(token.nargs, tuple) else (token.nargs, token.nargs)
    if name in ("dateTime", "QName"):  # with one argument they are elementpath's constructors
        least = 2
    kinds = [ArgumentKind.ATOMS] * most
    if name in NODE_FUNCTIONS:
        kinds[-1] = ArgumentKind.NODES
    result = token.sequence_types[-1].rstrip("?*+")
    return Signature(_RESULTS.get(result, ResultKind.ANY), tuple(kinds), least)
