"""Types of expressions, as Spark's DDL: those of columns are known, those of calls inferred.

sqlglot knows the types of most functions of Spark; here are those that it leaves open or says
otherwise than Spark, above all decimals.  A type that is not known is "".
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NUMBERS = (*_WHOLE, "decimal", "float", "double")
_AS_ARGUMENT = _words(
    """any_value array_append array_compact array_distinct array_except array_insert
    array_intersect array_prepend array_remove array_sort array_union first first_value
    lag last last_value lead max max_by min min_by mode nth_value negative positive reverse
    shuffle slice sort_array abs nullif nullifzero zeroifnull ifnull bit_and bit_or bit_xor
    shiftleft shiftright filter map_filter nvl nanvl percentile_disc"""
)
_FIXED = {
    name: type_
    for type_, names in {
        "bigint": """count count_if regr_count approx_count_distinct crc32 xxhash64 unix_timestamp
        unix_seconds unix_millis unix_micros factorial to_unix_timestamp""",
        "int": """rank dense_rank row_number ntile size cardinality array_size length len
        char_length character_length ascii instr locate position levenshtein year
        quarter month day dayofmonth dayofweek dayofyear weekday weekofyear hour minute
        second datediff date_diff hash unix_date find_in_set bit_count bit_length
        octet_length regexp_count regexp_instr json_array_length""",
        "double": """cume_dist percent_rank corr covar_pop covar_samp kurtosis skewness std stddev
        stddev_pop stddev_samp var_pop var_samp variance sqrt exp ln log log2 log10
        log1p pow power sin cos tan cot asin acos atan atan2 sinh cosh tanh cbrt degrees
        radians rint hypot e pi months_between signum sign expm1 percentile
        percentile_cont""",
        "string": """listagg string_agg concat_ws upper lower ucase lcase trim ltrim rtrim btrim
        lpad rpad initcap repeat replace translate split_part substring_index regexp_replace
        md5 sha sha1 sha2 hex base64 conv date_format from_unixtime format_number
        format_string printf get_json_object to_json typeof regexp_extract regexp_substr
        soundex space bin chr char dayname monthname url_encode url_decode parse_url
        xpath_string to_char""",
        "date": """current_date to_date date_add date_sub add_months last_day next_day make_date
        trunc date_from_unix_date try_to_date""",
        "timestamp": """current_timestamp now to_timestamp date_trunc from_utc_timestamp
        to_utc_timestamp timestamp_seconds timestamp_millis timestamp_micros
        try_to_timestamp make_timestamp""",
        "boolean": """any some every bool_and bool_or isnull isnotnull isnan array_contains contains
        startswith endswith regexp_like arrays_overlap exists forall map_contains_key
        equal_null luhn_check""",
        "binary": """unhex unbase64 encode to_binary""",
        "array<string>": """split regexp_extract_all json_object_keys xpath""",
    }.items()
    for name in names.split()
}


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


@lru_cache(4_096)
def parsed(type_: str) -> exp.DataType | None:
    try:
        return exp.DataType.build(type_, dialect="spark") if type_ else None
    except SqlglotError:
        return None


def ddl(type_: exp.Expr | None) -> str:
    """Of a type of sqlglot: lower case without blanks, or "" where it is not known."""
    if not isinstance(type_, exp.DataType) or type_.is_type("unknown", "null"):
        return ""
    if any(each.is_type("unknown") for each in type_.find_all(exp.DataType)):
        return ""
    return _ddl(type_)


def _ddl(type_: exp.DataType) -> str:
    inner = type_.expressions
    if type_.is_type("struct"):
        fields = [f"{_quoted(each.name)}:{_ddl(each.args['kind'])}" for each in inner]
        return f"struct<{','.join(fields)}>"
    if type_.is_type("array", "map"):
        return f"{type_.this.name.lower()}<{','.join(map(_ddl, inner))}>"
    said = type_.sql("spark").lower().replace(" ", "")
    return "decimal(10,0)" if said == "decimal" else said


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name, re.ASCII) else f"`{name}`"


def element(type_: str) -> str:
    """Of an array."""
    found = parsed(type_)
    return ddl(found.expressions[0]) if found and found.is_type("array") else ""


def pair(type_: str) -> tuple[str, str]:
    """Key and value of a map."""
    found = parsed(type_)
    if not found or not found.is_type("map"):
        return "", ""
    return ddl(found.expressions[0]), ddl(found.expressions[1])


def fields(type_: str) -> dict[str, str]:
    """Name and type of each field of a struct."""
    found = parsed(type_)
    if not found or not found.is_type("struct"):
        return {}
    return {each.name: ddl(each.args["kind"]) for each in found.expressions}


def field(type_: str, name: str) -> str:
    """Of a struct, or of each struct of an array, in any case; KeyError."""
    inside = element(type_)
    known = {each.lower(): of for each, of in fields(inside or type_).items()}
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
            return element(inner) or pair(inner)[1]
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
    if name in _FIXED:
        return _FIXED[name]
    if first is None:
        return ""
    type_ = "" if isinstance(first, exp.Lambda) else type_of(first)
    digits = _digits(type_) if type_.startswith("decimal") else None
    if name in _AS_ARGUMENT:
        return _common(given[:2]) if name in ("nvl", "ifnull", "nanvl") else type_
    match name:
        case "coalesce" | "greatest" | "least":
            return _common(given)
        case "if":
            return _common(given[1:])
        case "nvl2":
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
            return element(type_) or pair(type_)[1]
        case "map_keys" | "map_values":
            inner = pair(type_)[name == "map_values"]
            return f"array<{inner}>" if inner else ""
        case "concat":
            return _concat(type_)
        case "substring" | "substr" | "left" | "right":
            return "string"
        case "round" | "bround":
            if digits is None:
                return type_
            places = int(given[1].name) if len(given) > 1 and given[1].name.isdecimal() else 0
            scale = min(places, digits[1])
            return _decimal(digits[0] - digits[1] + (scale < digits[1]) + scale, scale)
        case "mod" | "pmod":
            return _common(given) if digits is None else ""
        case "int" | "bigint" | "smallint" | "tinyint" | "double" | "float" | "string" | "date":
            return name
        case "boolean" | "timestamp" | "binary":
            return name
        case "named_struct":
            parts = zip(given[::2], given[1::2], strict=False)
            said = [(each.name, type_of(value)) for each, value in parts]
            inner = ",".join(f"{_quoted(each)}:{of}" for each, of in said)
            return f"struct<{inner}>" if said and all(of for _, of in said) else ""
        case "struct":
            said = [
                (each.output_name or f"col{place}", type_of(each))
                for place, each in enumerate(given, 1)
            ]
            inner = ",".join(f"{_quoted(each)}:{of}" for each, of in said)
            return f"struct<{inner}>" if all(of for _, of in said) else ""
    return ""


def _inferred(node: exp.Expr) -> str:
    """As sqlglot has it, of calls by its own names."""
    typed = node.copy()
    for column in list(typed.find_all(exp.Column)):
        known = parsed(column.meta.get("type", ""))
        if known is None:
            return ""
        column.replace(exp.Cast(this=exp.Null(), to=known.copy()))
    try:
        found = typed.transform(_known_call)
        return ddl(annotate_types(found, dialect="spark").type)
    except (SqlglotError, ValueError, TypeError, AttributeError, RecursionError):
        return ""


def _known_call(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.upper() in Spark.Parser.FUNCTIONS:
        return exp.func(node.name, *node.expressions, dialect="spark")
    return node
