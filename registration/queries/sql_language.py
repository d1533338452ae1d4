"""The part of Spark's SQL that a query may use: text -> tree of allowed nodes, tree -> text.

Whatever is not listed here is refused with its place, so an unknown construct is never passed on.
Functions stay calls by name as the user wrote them: a name is allowed or not, and is printed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from registration.queries.refusals import QueryCode, QueryRefused

LENGTH_MAX = 100_000
"""Characters of a text; words and signs (those in strings count as well) and nested parentheses
have bounds beside it, since the tokenizer and the parser take time and stack for them."""
_WORDS_MAX = 20_000
_BRACKETS_MAX = 40
_DEPTH_MAX = 80


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ANY: frozenset[str] = frozenset()
_NODES: dict[type[exp.Expr], frozenset[str]] = {
    getattr(exp, name): frozenset(parts.split())
    for name, parts in {
        "Select": "expressions distinct from_ joins laterals where group having order limit offset "
        "with_ windows",
        "Union": "this expression distinct with_ order limit offset",
        "Intersect": "this expression distinct with_ order limit offset",
        "Except": "this expression distinct with_ order limit offset",
        "Subquery": "this alias with_ order limit offset joins",
        "With": "expressions",
        "CTE": "this alias",
        "From": "this",
        "Join": "this on using kind side",
        "Table": "this db alias joins",
        "TableAlias": "this columns",
        "Lateral": "this view outer alias",
        "Distinct": "expressions",
        "Group": "expressions all cube rollup grouping_sets",
        "Star": "except_",
        "Cast": "this to",
        "TryCast": "this to safe",
        "DataType": "this expressions nested",
        "DataTypeParam": "this",
        "ColumnDef": "this kind",
        "Window": "this partition_by order spec alias over",
        "WindowSpec": "kind start start_side end end_side",
        "Anonymous": "this expressions",
        "Ordered": "this desc nulls_first",
    }.items()
} | {
    getattr(exp, name): _ANY
    for name in _words(
        """Where Having Order Limit Offset Cube Rollup GroupingSets Column Identifier Literal
    HexString Boolean Null Paren Tuple Alias Aliases Dot Bracket Kwarg Lambda Var
    Case If And Or Not Neg BitwiseNot Add Sub Mul Div IntDiv Mod BitwiseAnd BitwiseOr
    BitwiseXor DPipe EQ NEQ NullSafeEQ NullSafeNEQ GT GTE LT LTE Is In Between Like ILike
    RegexpLike Escape Exists Interval IntervalSpan Extract Trim Substring StrPosition Filter
    WithinGroup IgnoreNulls RespectNulls CurrentDate CurrentTimestamp RawString"""
    )
}
_TYPES = _words(
    """TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL TEXT VARCHAR CHAR BINARY BOOLEAN DATE
    TIMESTAMP TIMESTAMPTZ TIMESTAMPLTZ TIMESTAMPNTZ ARRAY MAP STRUCT"""
)
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[\w ]*", re.ASCII)
_NUMBER = re.compile(r"[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?")
_TOKEN_PLACE = re.compile(r"from (\d+):(\d+)")


class _Parser(Spark.Parser):  # type: ignore[misc,valid-type]
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: Spark.Parser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "TRIM", "SUBSTRING")
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    STRICT_CAST = True
    JOINS_HAVE_EQUAL_PRECEDENCE = False


class _Generator(Spark.Generator):  # type: ignore[misc,valid-type]
    def trycast_sql(self, expression: exp.TryCast) -> str:
        return str(self.cast_sql(expression, safe_prefix="TRY_"))

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        """Typed literals as literals: ``DATE '2026-01-01'``, ``1L``."""
        inner, type_ = expression.this, expression.to
        if isinstance(inner, exp.Literal) and not safe_prefix:
            said = self.sql(inner)
            word = self.sql(type_)
            if inner.is_string and word in ("DATE", "TIMESTAMP"):
                return f"{word} {said}"
            if not inner.is_string and type_.is_type("bigint", "double"):
                return f"{said}{'L' if type_.is_type('bigint') else 'D'}"
        return str(super().cast_sql(expression, safe_prefix=safe_prefix))

    def not_sql(self, expression: exp.Not) -> str:
        inner = expression.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return f"{self.sql(inner, 'this')} IS NOT NULL"
        return str(super().not_sql(expression))


class QuerySql(Spark):
    """Spark's SQL with all functions as calls by name, but for those with a syntax of their own."""

    Parser = _Parser
    Generator = _Generator


def print_sql(tree: exp.Expr, dialect: type[Spark] = QuerySql) -> str:
    """On one line, all identifiers quoted, names of functions as the user wrote them."""
    return tree.sql(dialect, identify=True, comments=False, normalize_functions=False)


class Text:
    """A query's text, by which refusals know the place of a node."""

    def __init__(self, text: str) -> None:
        self.text = text

    def refuse(
        self, code: QueryCode, reason: str, at: exp.Expr | int | None, hint: str = ""
    ) -> QueryRefused:
        """The error to raise; ``at``: a node of the tree, or an offset in the text."""
        offset = at if isinstance(at, int) else _offset_of(at)
        offset = min(offset or 0, len(self.text))
        line = self.text.count("\n", 0, offset) + 1
        first = self.text.rfind("\n", 0, offset) + 1
        source_line = self.text[first:].partition("\n")[0]
        return QueryRefused(code, reason, "", line, offset - first + 1, source_line, hint)

    def parse(self) -> exp.Query:
        """The tree, of allowed nodes alone; QueryRefused (syntax, forbidden-sql)."""
        try:
            found = self._parse(self._tokens())
            _check_depth(self, found)
            for node in found.walk():
                self._check(node)
        except RecursionError:
            raise self.refuse("syntax", "the query is nested too deeply", 0) from None
        return found

    def _tokens(self) -> list[Token]:
        if len(self.text) > LENGTH_MAX:
            reason = f"the query has more than {LENGTH_MAX:,} characters"
            raise self.refuse("syntax", reason, LENGTH_MAX)
        beyond = next(islice(_WORD_OR_SIGN.finditer(self.text), _WORDS_MAX, None), None)
        if beyond is not None:
            reason = f"the query has more than {_WORDS_MAX:,} words and signs"
            raise self.refuse("syntax", reason, beyond.start())
        try:
            tokens: list[Token] = QuerySql().tokenize(self.text)
        except TokenError as error:
            raise self._untold(str(error)) from None
        while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
            tokens.pop()
        if not tokens:
            raise self.refuse("syntax", "there is no query", 0)
        self._check_tokens(tokens)
        return tokens

    def _untold(self, message: str) -> QueryRefused:
        """A string, comment or name that does not end; the tokenizer tells where it begins."""
        found = _TOKEN_PLACE.search(message)
        offset = len(self.text)
        if found:
            lines = self.text.splitlines(keepends=True)
            offset = sum(map(len, lines[: int(found[1]) - 1])) + max(0, int(found[2]) - 1)
        return self.refuse("syntax", "a string, name or comment does not end, or is none", offset)

    def _check_tokens(self, tokens: list[Token]) -> None:
        depth = types = 0
        before = tokens[0]
        if before.token_type not in _FIRST:
            reason = f"a query begins with SELECT, WITH or FROM, not with {_shown(before.text)}"
            raise self.refuse("forbidden-sql", reason, before.start)
        for token in tokens:
            kind = token.token_type
            if kind is TokenType.SEMICOLON:
                raise self.refuse("forbidden-sql", "a query is one statement", token.start)
            if kind in _REFUSED:
                raise self.refuse("forbidden-sql", _REFUSED[kind], token.start)
            depth += (kind in _OPEN) - (kind in _CLOSE)
            types += kind is TokenType.LT and before.token_type in _NESTED_TYPES
            if max(depth, types) > _BRACKETS_MAX:
                reason = f"more than {_BRACKETS_MAX} parentheses or types within each other"
                raise self.refuse("syntax", reason, token.start)
            before = token

    def _parse(self, tokens: list[Token]) -> exp.Query:
        try:
            found = QuerySql().parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, self.text)
        except ParseError as error:
            told = error.errors[0] if error.errors else {}
            line, end = told.get("line") or 1, told.get("col") or 1
            lines = self.text.splitlines(keepends=True)
            width = len(told.get("highlight") or "") or 1
            offset = sum(map(len, lines[: line - 1])) + max(0, end - width)
            reason = (told.get("description") or "").rstrip(".")
            if not reason or "<class" in reason:
                reason = "something is missing here"
            raise self.refuse("syntax", reason, offset) from None
        tree = found[0]
        if len(found) != 1 or not isinstance(tree, exp.Query):
            raise self.refuse("forbidden-sql", "a query is one SELECT", tokens[0].start)
        return tree

    def _check(self, node: exp.Expr) -> None:
        parts = _NODES.get(type(node))
        if parts is None:
            hint = "write \\' for a quote in a string" if isinstance(node, exp.Concat) else ""
            reason = f"{_said(node)} is not allowed in a query"
            raise self.refuse("forbidden-sql", reason, node, hint)
        for key, value in node.args.items():
            if parts and key not in parts and value not in (None, False, []):
                at = value if isinstance(value, exp.Expr) else node
                reason = f"{_said(at)} ({key.strip('_')}) is not allowed in a query"
                raise self.refuse("forbidden-sql", reason, at)
            if isinstance(value, str) and not self._is_plain(node, key, value):
                raise self.refuse("forbidden-sql", f"{_shown(value)} is not allowed here", node)
        if isinstance(node, exp.DataType) and node.this.name not in _TYPES:
            raise self.refuse("forbidden-sql", f"{node.this.name} is no type of a query", node)
        if isinstance(node, exp.Anonymous) and not isinstance(node.this, str):
            reason = "a function is called by a plain name"
            raise self.refuse("forbidden-sql", reason, node.this)

    @staticmethod
    def _is_plain(node: exp.Expr, key: str, value: str) -> bool:
        if key == "this" and isinstance(node, exp.Identifier):
            return bool(value) and value.isprintable()
        if key == "this" and isinstance(node, exp.Literal):
            return node.is_string or bool(_NUMBER.fullmatch(value))
        if isinstance(node, exp.RawString):
            return True
        return bool(_WORD.fullmatch(value)) and not (isinstance(node, exp.Var) and " " in value)


_FIRST = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM)
_REFUSED = {
    TokenType.HINT: "hints are not allowed in a query",
    TokenType.PARAMETER: "parameters are not allowed in a query",
    TokenType.PLACEHOLDER: "parameters are not allowed in a query",
    TokenType.PIPE_GT: "pipes are not allowed in a query",
}
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_NESTED_TYPES = (TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT)


def _check_depth(text: Text, tree: exp.Expr) -> None:
    """Chains of AND, of OR and of UNION are taken apart in loops, all else level by level."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEPTH_MAX:
            raise text.refuse("syntax", f"more than {_DEPTH_MAX} operators within each other", node)
        for inner in node.iter_expressions():
            chained = type(inner) is type(node) and isinstance(
                node, exp.Connector | exp.SetOperation
            )
            waiting.append((inner, depth if chained else depth + 1))


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions that AND connects, left to right."""
    waiting = [condition] if condition is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And):
            waiting += (node.expression, node.this)
        elif isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
            waiting.append(node.this)
        else:
            yield node


def _offset_of(node: exp.Expr | None) -> int | None:
    """Where a node begins, or the nearest one around it that knows."""
    while node is not None:
        starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        if starts:
            return int(min(starts))
        node = node.parent
    return None


def _said(node: exp.Expr) -> str:
    """``TABLESAMPLE`` of a node TableSample."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _shown(word: str) -> str:
    return repr(word[:40])
