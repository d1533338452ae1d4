"""Types of expressions, as Spark's DDL: those of columns are known, those of calls inferred.

sqlglot knows the types of most functions of Spark; ``sql_functions`` and this module have those
that it leaves open or says otherwise than Spark, above all decimals.  A type that is not known is
"".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from registration.queries.column_types import NoType, Type, read_type
from registration.queries.sql_functions import FUNCTIONS

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NUMBERS = (*_WHOLE, "decimal", "float", "double")


def common(first: str, second: str) -> str:
    """The type of values of both, of numbers the wider one; "" where that is not known."""
    if first == second or not second or second == "void":
        return first
    if not first or first == "void":
        return second
    if first in _WHOLE and second in _WHOLE:
        return max(first, second, key=lambda each: _WHOLE[each])
    kinds = {first.partition("(")[0], second.partition("(")[0]}
    if kinds <= {"float", "double", *_WHOLE, "decimal"} and kinds & {"float", "double"}:
        return "float" if kinds == {"float"} else "double"
    one, other = _digits(first), _digits(second)
    if one and other:
        scale = max(one[1], other[1])
        return _decimal(max(one[0] - one[1], other[0] - other[1]) + scale, scale)
    return ""


def fits(given: str, wanted: str) -> bool:
    """A value of type ``given`` may be an argument of type ``wanted``."""
    if not given or given in (wanted, "void"):
        return True
    first, second = given.partition("(")[0], wanted.partition("(")[0]
    if first in _NUMBERS and second in _NUMBERS:
        return _NUMBERS.index(first) <= _NUMBERS.index(second)
    return {first, second} <= {"string", "varchar", "char"}


def ddl(type_: exp.Expr | None) -> str:
    """Of a type of sqlglot, "" where it is not known."""
    try:
        return str(read_type(type_.sql("spark"))) if isinstance(type_, exp.DataType) else ""
    except NoType:
        return ""


def parts(type_: str, kind: str) -> dict[str, str]:
    """Name and type of each part (``column_types.Type``) of a type of that kind, none of others."""
    try:
        found = read_type(type_)
    except NoType:
        return {}
    return {name: str(of) for name, of in found.parts if found.name == kind}


def element(type_: str) -> str:
    """Of an array."""
    return parts(type_, "array").get("element", "")


def field(type_: str, name: str) -> str:
    """Of a struct, or of each struct of an array, in any case; KeyError."""
    inside = element(type_)
    known = {each.lower(): of for each, of in parts(inside or type_, "struct").items()}
    found = known[name.lower()]
    return f"array<{found}>" if inside and found else found


def _digits(type_: str) -> tuple[int, int] | None:
    found = _DECIMAL.fullmatch(type_)
    if found:
        return int(found[1]), int(found[2])
    return (_WHOLE[type_], 0) if type_ in _WHOLE else None


def _decimal(digits: int, scale: int) -> str:
    """Of more than 38 digits, those behind the point go first, down to six."""
    if digits > 38:
        scale = max(38 - (digits - scale), min(scale, 6))
        digits = 38
    return f"decimal({digits},{scale})"


def type_of(node: exp.Expr) -> str:
    """Of an expression whose columns know theirs (``meta["type"]``)."""
    known = node.meta.get("type")
    if known is not None:
        return str(known)
    match node:
        case exp.Paren() | exp.Alias() | exp.Filter() | exp.IgnoreNulls() | exp.RespectNulls():
            return type_of(node.this)
        case exp.Window() | exp.WithinGroup() | exp.Neg() | exp.BitwiseNot():
            return type_of(node.this)
        case exp.Subquery() | exp.Select() | exp.SetOperation():
            outputs = node.meta.get("outputs", ("",))
            return outputs[0] if len(outputs) == 1 else ""
        case (
            exp.Predicate() | exp.Connector() | exp.Not() | exp.Boolean() | exp.In() | exp.Exists()
        ):
            return "boolean"
        case exp.Cast() | exp.TryCast():
            return ddl(node.to)
        case exp.DPipe():
            return _concat(type_of(node.this))
        case exp.Literal() if node.is_string:
            return "string"
        case exp.Literal():
            return _number(node.name)
        case exp.Extract():
            return "decimal(8,6)" if node.name.upper().startswith("SECOND") else "int"
        case exp.Trim() | exp.Substring():
            return "string"
        case exp.StrPosition():
            return "int"
        case exp.CurrentDate():
            return "date"
        case exp.CurrentTimestamp():
            return "timestamp"
        case exp.Null():
            return "void"
        case exp.Dot():
            try:
                return field(type_of(node.this), node.expression.name)
            except KeyError:
                return ""
        case exp.Bracket():
            inner = type_of(node.this)
            return element(inner) or parts(inner, "map").get("value", "")
        case exp.Case():
            branches = [each.args["true"] for each in node.args["ifs"]]
            default = node.args.get("default")
            return _common([*branches, default] if default is not None else branches)
        case exp.Binary():
            return _arithmetic(node, type_of(node.this), type_of(node.expression))
        case exp.Anonymous():
            return _call(node.name.lower(), node.expressions) or _inferred(node)
        case _:
            return _inferred(node)


def _number(text: str) -> str:
    if "e" in text.lower():
        return "double"
    if "." in text:
        whole, _, part = text.partition(".")
        whole = whole.lstrip("0")
        return _decimal(max(len(whole) + len(part), 1), len(part))
    return "int" if int(text) < 2**31 else "bigint" if int(text) < 2**63 else _decimal(len(text), 0)


def _concat(first: str) -> str:
    return first if first.startswith("array") or first == "binary" else "string"


def _common(nodes: list[exp.Expr]) -> str:
    found = "void"
    for node in nodes:
        type_ = type_of(node)
        if not type_ or not (found := common(found, type_)):
            return ""
    return "" if found == "void" else found


def _arithmetic(node: exp.Binary, left: str, right: str) -> str:
    if isinstance(node, exp.IntDiv):
        return "bigint"
    if not left or not right:
        return ""
    one, other = _literal_digits(node.this, left), _literal_digits(node.expression, right)
    if "decimal" in left + right and one and other:
        (p1, s1), (p2, s2) = one, other
        match node:
            case exp.Add() | exp.Sub():
                return _decimal(max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2))
            case exp.Mul():
                return _decimal(p1 + p2 + 1, s1 + s2)
            case exp.Div():
                scale = max(6, s1 + p2 + 1)
                return _decimal(p1 - s1 + s2 + scale, scale)
            case exp.Mod():
                return _decimal(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))
    if isinstance(node, exp.Div):
        return "double" if left in _NUMBERS and right in _NUMBERS else ""
    if {left, right} <= set(_NUMBERS):
        return common(left, right)
    if left in ("date", "timestamp") or right in ("date", "timestamp"):
        return ""
    return "double" if "string" in (left, right) and {left, right} & set(_NUMBERS) else ""


def _literal_digits(node: exp.Expr, type_: str) -> tuple[int, int] | None:
    """A whole number beside a decimal counts with the digits that it has."""
    if isinstance(node, exp.Literal) and type_ in _WHOLE:
        return len(node.name), 0
    return _digits(type_)


def _call(name: str, given: list[exp.Expr]) -> str:
    """Of what is listed here, "" for another."""
    first = given[0] if given else None
    if isinstance(first, exp.Distinct):
        first = first.expressions[0]
    said = FUNCTIONS.get(name, "")
    if said.strip("=") or first is None:
        return said.strip("=")
    type_ = "" if isinstance(first, exp.Lambda) else type_of(first)
    digits = _digits(type_) if type_.startswith("decimal") else None
    if said:
        return _common(given[:2]) if name in ("nvl", "ifnull", "nanvl") else type_
    match name:
        case "coalesce" | "greatest" | "least":
            return _common(given)
        case "if" | "nvl2":
            return _common(given[1:])
        case "sum" | "try_sum":
            if digits:
                return _decimal(min(38, digits[0] + 10), digits[1])
            return "bigint" if type_ in _WHOLE else "double" if type_ else ""
        case "avg" | "mean" | "try_avg" | "median":
            if digits and name != "median":
                return _decimal(min(38, digits[0] + 4), min(38, digits[1] + 4))
            return "double"
        case "ceil" | "ceiling" | "floor" if len(given) == 1:
            return _decimal(digits[0] - digits[1] + 1, 0) if digits else "bigint"
        case "collect_list" | "collect_set" | "array_agg":
            return f"array<{type_}>" if type_ else ""
        case "array":
            inner = _common(given)
            return f"array<{inner}>" if inner else ""
        case "array_max" | "array_min" | "get" | "element_at" | "try_element_at":
            return element(type_) or parts(type_, "map").get("value", "")
        case "map_keys" | "map_values":
            inner = parts(type_, "map").get("value" if name == "map_values" else "key", "")
            return f"array<{inner}>" if inner else ""
        case "concat":
            return _concat(type_)
        case "round" | "bround":
            if digits is None:
                return type_
            places = int(given[1].name) if len(given) > 1 and given[1].name.isdecimal() else 0
            scale = min(places, digits[1])
            return _decimal(digits[0] - digits[1] + (scale < digits[1]) + scale, scale)
        case "mod" | "pmod":
            return _common(given) if digits is None else ""
        case "named_struct":
            pairs = zip(given[::2], given[1::2], strict=False)
            return _struct((key.name, value) for key, value in pairs)
        case "struct":
            return _struct((e.output_name or f"col{n}", e) for n, e in enumerate(given, 1))
    return ""


def _struct(fields: Iterable[tuple[str, exp.Expr]]) -> str:
    said = [(name, type_of(value)) for name, value in fields]
    known = all(of for _, of in said)
    return str(Type("struct", tuple((n, read_type(t)) for n, t in said))) if said and known else ""


def _inferred(node: exp.Expr) -> str:
    """As sqlglot has it, of calls by its own names."""
    typed = node.copy()
    for column in list(typed.find_all(exp.Column)):
        known = column.meta.get("type")
        if not known:
            return ""
        column.replace(exp.cast(exp.Null(), known, dialect="spark"))
    try:
        found = typed.transform(_known_call)
        return ddl(annotate_types(found, dialect="spark").type)
    except (SqlglotError, ValueError, TypeError, AttributeError, RecursionError):
        return ""


def _known_call(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.upper() in Spark.Parser.FUNCTIONS:
        return exp.func(node.name, *node.expressions, dialect="spark")
    return node
