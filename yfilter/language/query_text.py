"""The text of a syntax tree: the inverse of the parser.

``unparse`` writes names as ``Q{namespace}local``, so that the text needs no prolog:
``parse_profile(unparse(body)).body == body``, and the same for paths and conditions.
"""

from __future__ import annotations

import re

from formats.names import QualifiedName
from yfilter.language.numbers import number_text
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
    Or,
    Origin,
    PathExpression,
    Profile,
)

_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "{": "{{",
    "}": "}}",
}


def unparse(node: Profile | Expression) -> str:
    """The text that the parser reads as ``node``, on one line unless a literal has line ends."""
    return _unparse(node.body if isinstance(node, Profile) else node, unprefixed_is_plain=True)


def _unparse(node: Expression, *, unprefixed_is_plain: bool) -> str:
    """``unprefixed_is_plain``: a name without a prefix is in no namespace at this place."""
    plain = unprefixed_is_plain
    match node:
        case PathExpression():
            return _path(node, plain)
        case Literal():
            return _literal(node)
        case Comparison(left, operator, right):
            return f"{_condition(left, plain)} {operator.value} {_condition(right, plain)}"
        case And(parts):
            return " and ".join(
                f"({_condition(part, plain)})" if isinstance(part, Or) else _condition(part, plain)
                for part in parts
            )
        case Or(parts):
            return " or ".join(_condition(part, plain) for part in parts)
        case FunctionCall(name, arguments):
            return f"{name}({', '.join(_condition(argument, plain) for argument in arguments)})"
        case Constructor():
            return _constructor(node, plain)
        case Flwor():
            return _flwor(node, plain)


def _condition(node: Expression, plain: bool) -> str:
    return _unparse(node, unprefixed_is_plain=plain)


# -- paths


def _path(path: PathExpression, plain: bool) -> str:
    steps = [_step(step, plain) for step in path.steps]
    if path.origin is Origin.VARIABLE:
        return f"${path.variable}{''.join(steps)}"
    is_filtered = bool(path.steps) and path.steps[0].kind is NodeKind.SELF
    if path.origin is Origin.MESSAGE:
        return "".join(steps) if steps and not is_filtered else f"$msg{''.join(steps)}"
    if not steps or is_filtered or path.steps[0].descendant:
        return f".{''.join(steps)}"
    return "".join(steps).removeprefix("/")


def _step(step: LocationStep, plain: bool) -> str:
    predicates = "".join(f"[{_condition(predicate, plain)}]" for predicate in step.predicates)
    if step.kind is NodeKind.SELF:
        return predicates
    slash = "//" if step.descendant else "/"
    return f"{slash}{_node_test(step, plain)}{predicates}"


def _node_test(step: LocationStep, plain: bool) -> str:
    if step.test is None:
        return step.kind.value
    if step.kind is NodeKind.ATTRIBUTE:
        return f"@{_name_test(step.test, plain=True)}"
    return _name_test(step.test, plain=plain)


def _name_test(test: NameTest, *, plain: bool) -> str:
    if test.namespace == ANY:
        return ANY if test.local == ANY else f"*:{test.local}"
    if test.namespace == "" and test.local != ANY and plain:
        return test.local
    namespace = re.sub("[&{}]", lambda match: f"&#{ord(match[0])};", test.namespace)
    return f"Q{{{namespace}}}{test.local}"


def _literal(literal: Literal) -> str:
    if literal.written:
        return literal.written
    if isinstance(literal.value, str):
        return _quoted(literal.value)
    text = number_text(float(literal.value))
    return "-0e0" if text == "-0" else text


def _quoted(value: str) -> str:
    value = value.replace("&", "&amp;").replace('"', '""').replace("\r", "&#13;")
    return f'"{value}"'


# -- FLWOR and constructors


def _flwor(flwor: Flwor, plain: bool) -> str:
    parts = [_clause(clause, plain) for clause in flwor.clauses]
    if flwor.where is not None:
        parts.append(f"where {_condition(flwor.where, plain)}")
    parts.append(f"return {_condition(flwor.result, plain)}")
    return " ".join(parts)


def _clause(clause: ForClause | LetClause, plain: bool) -> str:
    if isinstance(clause, ForClause):
        return f"for ${clause.variable} in {_path(clause.path, plain)}"
    return f"let ${clause.variable} := {_condition(clause.value, plain)}"


def _constructor(constructor: Constructor, plain: bool) -> str:
    for prefix, namespace in constructor.declarations:
        if prefix == "":
            plain = namespace == ""
    tag = str(constructor.name)
    declarations = "".join(
        f' {_declaration_name(prefix)}="{_escaped(namespace, in_value=True)}"'
        for prefix, namespace in constructor.declarations
    )
    attributes = "".join(_attribute(name, value, plain) for name, value in constructor.attributes)
    content = "".join(
        _content_text(part) if isinstance(part, str) else _enclosed(part, plain)
        for part in constructor.content
    )
    start = f"<{tag}{declarations}{attributes}"
    return f"{start}>{content}</{tag}>" if content else f"{start}/>"


def _declaration_name(prefix: str) -> str:
    return f"xmlns:{prefix}" if prefix else "xmlns"


def _attribute(name: QualifiedName, value: tuple[str | Expression, ...], plain: bool) -> str:
    written = "".join(
        _escaped(part, in_value=True) if isinstance(part, str) else f"{{{_condition(part, plain)}}}"
        for part in value
    )
    return f' {name}="{written}"'


def _enclosed(part: Expression, plain: bool) -> str:
    text = _condition(part, plain)
    return text if isinstance(part, Constructor) else f"{{{text}}}"


def _content_text(value: str) -> str:
    """Literal text; white space that the parser would strip is written as a reference."""
    if not value.strip(" \t\n\r"):
        return f"&#{ord(value[0])};{_escaped(value[1:], in_value=False)}"
    return _escaped(value, in_value=False)


def _escaped(value: str, *, in_value: bool) -> str:
    special = r'[&<>{}"\r\t\n]' if in_value else r"[&<>{}\r]"
    return re.sub(special, lambda match: _ESCAPES.get(match[0], f"&#{ord(match[0])};"), value)
