"""The text of a syntax tree: the inverse of the parser.

``unparse`` writes names as ``Q{namespace}local``, so that the text needs no prolog:
``parse_profile(unparse(body)).body == body``, and the same for paths and conditions.
"""

from __future__ import annotations

import re
from decimal import Decimal

from formats.names import QualifiedName
from yfilter.graph import query_text as graph_query_text
from yfilter.graph.query_ast import GraphQuery
from yfilter.language import query_ast as ast
from yfilter.language.functions import CONTEXT_FUNCTIONS
from yfilter.language.namespaces import braced
from yfilter.language.numbers import number_text
from yfilter.language.operator_parser import (
    CAST_LEVEL,
    COMPARISON_LEVEL,
    LEVEL_OF,
    RANGE_LEVEL,
    UNARY_LEVEL,
    WORDS_LEVEL,
)
from yfilter.language.subexpressions import all_within
from yfilter.language.trees import by_identity
from yfilter.language.words import OPERATOR, WORD_TESTS

_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "{": "{{",
    "}": "}}",
}

# PERF: what each call of a declared function or variable has, and little else.
_CALL_OF_DECLARED = re.compile(r"local:|\}[^\s(){}\[\]/]+\(|\$(?:local:|Q\{)")


_DOT = ast.PathExpression(ast.Origin.CONTEXT, ())

# How tightly an expression holds together: that of an operator is its level, and around them:
_SEQUENCE, _SINGLE, _PRIMARY = -2, -1, UNARY_LEVEL + 1


def unparse(node: ast.Profile | ast.Expression) -> str:
    """The text that the parser reads as ``node``, on one line unless a literal has line ends."""
    body = node.body if isinstance(node, ast.Profile) else node
    if isinstance(body, GraphQuery):
        return graph_query_text.unparse(body)
    text = _whole(body, plain=True)
    if not _CALL_OF_DECLARED.search(text):
        return text
    declared = {
        (function.name, len(function.parameters)): function
        for call in all_within(body)
        if isinstance(call, ast.UserCall)
        for function in call.library
    }
    return "".join(map(_declared, declared.values())) + text


def _declared(function: ast.FunctionDeclaration) -> str:
    parameters = ", ".join(f"${name}{_of_type(type_)}" for name, type_ in function.parameters)
    body = _whole(function.body, plain=True)
    if function.name.startswith("$"):
        return f"declare variable {function.name} := {body}; "
    result = _of_type(function.result)
    return f"declare function {function.name}({parameters}){result} {{{body}}}; "


def _of_type(type_: ast.SequenceType | None) -> str:
    return "" if type_ is None else f" as {_type(type_, plain=True)}"


def _whole(node: ast.Expression, plain: bool) -> str:
    """``plain``: a name without a prefix is in no namespace at this place."""
    match node:
        case ast.PathExpression():
            return _path(node, plain)
        case ast.Mapped(left, right):
            is_step = isinstance(right, ast.FunctionCall | ast.UserCall)
            is_step = is_step and _level(right) == _PRIMARY
            inner = _whole(right, plain) if is_step else f"({_whole(right, plain)})"
            return f"{_start(left, plain)}/{inner}"
        case ast.SimpleMap(left, right):
            # a path on the right would take what follows it
            return f"{_start(left, plain)} ! ({_whole(right, plain)})"
        case ast.TryCatch(body, clauses):
            caught = "".join(_catch(clause, plain) for clause in clauses)
            return f"try {{{_whole(body, plain)}}}{caught}"
        case ast.Literal():
            return _literal(node)
        case ast.And(parts) | ast.Or(parts):
            word = " and " if isinstance(node, ast.And) else " or "
            return word.join(_inside(part, _level(node) + 1, plain) for part in parts)
        case ast.UserCall(name) if node.is_variable:
            return name
        case ast.FunctionCall(name, (source, words)) if name in WORD_TESTS:
            written = _whole(words, plain)
            if not isinstance(words, ast.Literal):
                written = f"{{{written}}}"
            options = name.removeprefix(OPERATOR)
            return f"{_inside(source, WORDS_LEVEL + 1, plain)} {OPERATOR} {written}{options}"
        case ast.FunctionCall(name, (*arguments, last)) if (
            name in CONTEXT_FUNCTIONS and last == _DOT
        ):
            return f"{name}({', '.join(_inside(part, _SINGLE, plain) for part in arguments)})"
        case ast.FunctionCall(name, arguments) | ast.UserCall(name, arguments):
            return f"{name}({', '.join(_inside(part, _SINGLE, plain) for part in arguments)})"
        case ast.Sequence(parts):
            return f"({', '.join(_inside(part, _SINGLE, plain) for part in parts)})"
        case ast.Constructor():
            return _constructor(node, plain)
        case ast.Markup():
            return _markup(node)
        case ast.Computed():
            return _computed(node, plain)
        case ast.Flwor():
            return _flwor(node, plain)
        case _:
            return _operators(node, plain)


def _operators(node: ast.Expression, plain: bool) -> str:
    level = _level(node)
    match node:
        case ast.Comparison(left, operator, right):
            sides = (_inside(left, level + 1, plain), _inside(right, level + 1, plain))
            return f" {operator.value} ".join(sides)
        case ast.Operation("negate", (operand,)):
            return f"-{_inside(operand, level + 1, plain)}"
        case ast.Operation(name, (left, right)):
            groups = level not in (COMPARISON_LEVEL, RANGE_LEVEL)
            first = _inside(left, level if groups else level + 1, plain)
            return f"{first} {name} {_inside(right, level + 1, plain)}"
        case ast.Conditional(condition, consequence, alternative):
            return (
                f"if ({_whole(condition, plain)}) then {_inside(consequence, _SINGLE, plain)} "
                f"else {_inside(alternative, _SINGLE, plain)}"
            )
        case ast.Quantified(every, bindings, condition):
            ranges = ", ".join(
                f"${name} in {_inside(source, _SINGLE, plain)}" for name, source in bindings
            )
            word = "every" if every else "some"
            return f"{word} {ranges} satisfies {_inside(condition, _SINGLE, plain)}"
        case ast.Typed(operand, type_):
            word = "treat as" if node.treat else "instance of"
            return f"{_inside(operand, CAST_LEVEL, plain)} {word} {_type(type_, plain)}"
        case ast.Cast(operand, type_name, optional, castable):
            word = "castable" if castable else "cast"
            return f"{_inside(operand, level, plain)} {word} as {type_name}{'?' * optional}"
        case ast.Typeswitch(operand, cases):
            written = "".join(_case(case, plain) for case in cases)
            return f"typeswitch ({_whole(operand, plain)}){written}"
        case ast.Update():
            return _update(node, plain)
        case ast.Transform(copies, changes, result):
            copied = ", ".join(
                f"${copy.variable} := {_inside(copy.value, _SINGLE, plain)}" for copy in copies
            )
            return (
                f"copy {copied} modify {_inside(changes, _SINGLE, plain)} "
                f"return {_inside(result, _SINGLE, plain)}"
            )
    raise TypeError(f"{type(node).__name__} has no text")


def _case(case: ast.TypeCase, plain: bool) -> str:
    types = " | ".join(_type(type_, plain) for type_ in case.types)
    bound = f" ${case.variable}" * bool(case.variable)
    head = f"case{bound and bound + ' as'} {types}" if types else f"default{bound}"
    return f" {head} return {_inside(case.result, _SINGLE, plain)}"


def _catch(clause: ast.CatchClause, plain: bool) -> str:
    names = " | ".join(_name_test(test, plain=True) for test in clause.names)
    return f" catch {names} {{{_whole(clause.result, plain)}}}"


def _update(update: ast.Update, plain: bool) -> str:
    first, between = update.kind.value
    target = _inside(update.target, _SINGLE, plain)
    if isinstance(update.source, QualifiedName):
        name = update.source
        source = f"QName({_quoted(name.namespace)}, {_quoted(str(name))})"
    else:
        source = _inside(update.source, _SINGLE, plain)
    if not between:
        return f"{first} {target}"
    if first == "insert node":
        return f"{first} {source} {between} {target}"
    return f"{first} {target} {between} {source}"


def _type(type_: ast.SequenceType, plain: bool) -> str:
    name = type_.name
    if type_.kind is not None:
        step = ast.LocationStep(False, type_.kind, type_.test)
        word = type_.kind.value.removesuffix("()")
        is_named = type_.kind in (ast.NodeKind.ELEMENT, ast.NodeKind.ATTRIBUTE)
        test = _node_test(step, plain).removeprefix("@")
        name = f"{word}({test})" if is_named else test
    elif not name.startswith("xs:"):
        name += "()"
    return name + type_.occurrence


def _level(node: ast.Expression) -> int:
    match node:
        case (
            ast.Flwor()
            | ast.Conditional()
            | ast.Quantified()
            | ast.Typeswitch()
            | ast.Update()
            | ast.Transform()
        ):
            return _SINGLE
        case ast.Or():
            return 0
        case ast.And():
            return 1
        case ast.Comparison():
            return COMPARISON_LEVEL
        case ast.FunctionCall(name) if name in WORD_TESTS:
            return WORDS_LEVEL
        case ast.Operation("negate"):
            return UNARY_LEVEL
        case ast.Operation(name):
            return LEVEL_OF[name]
        case ast.Typed():  # its type would take a + or * behind it
            return COMPARISON_LEVEL + 1
        case ast.Cast():
            return CAST_LEVEL
        case ast.SimpleMap():
            return UNARY_LEVEL
        case ast.Literal(value) if not isinstance(value, str) and _literal(node).startswith("-"):
            return UNARY_LEVEL
        case _:
            return _PRIMARY


def _inside(node: ast.Expression, least: int, plain: bool) -> str:
    """In parentheses if it holds together less tightly than ``least``."""
    text = _whole(node, plain)
    return f"({text})" if _level(node) < least else text


# -- paths


def _path(path: ast.PathExpression, plain: bool) -> str:
    steps = [_step(step, plain) for step in path.steps]
    is_filtered = bool(path.steps) and _is_self(path.steps[0])
    if is_filtered:
        steps[0] = steps[0].removeprefix("/.")
    if path.origin is ast.Origin.VARIABLE:
        return f"${path.variable}{''.join(steps)}"
    if path.start is not None:
        return f"({_whole(path.start, plain)}){''.join(steps)}"
    if path.origin is ast.Origin.MESSAGE:
        return "".join(steps) if steps and not is_filtered else f"$msg{''.join(steps)}"
    if not steps or is_filtered or path.steps[0].descendant:
        return f".{''.join(steps)}"
    return "".join(steps).removeprefix("/")


def _start(left: ast.Expression, plain: bool) -> str:
    text = _whole(left, plain)
    is_step = isinstance(left, ast.PathExpression | ast.Mapped | ast.FunctionCall)
    return text if is_step and _level(left) == _PRIMARY else f"({text})"


def _is_self(step: ast.LocationStep) -> bool:
    return step.kind is ast.NodeKind.SELF and step.axis is None


def _step(step: ast.LocationStep, plain: bool) -> str:
    predicates = "".join([_predicate(predicate, plain) for predicate in step.predicates])
    slash = "//" if step.descendant else "/"
    axis = f"{step.axis.value}::" if step.axis else ""
    return f"{slash}{axis}{_node_test(step, plain)}{predicates}"


@by_identity(256)
def _predicate(predicate: ast.Expression, plain: bool) -> str:
    return f"[{_whole(predicate, plain)}]"


def _node_test(step: ast.LocationStep, plain: bool) -> str:
    if step.kind is ast.NodeKind.PROCESSING_INSTRUCTION and step.test is not None:
        return f"processing-instruction({_quoted(step.test.local)})"
    if step.test is None:
        return step.kind.value
    if step.kind is ast.NodeKind.ATTRIBUTE:
        name = _name_test(step.test, plain=True)
        return f"attribute({name})" if step.axis else f"@{name}"
    return _name_test(step.test, plain=plain)


def _name_test(test: ast.NameTest, *, plain: bool) -> str:
    if test.namespace == ast.ANY:
        return ast.ANY if test.local == ast.ANY else f"*:{test.local}"
    if test.namespace == "" and test.local != ast.ANY and plain:
        return test.local
    return braced(test.namespace) + test.local


def written_word(word: str | int | Decimal | float) -> str:
    """A literal, without its quotation marks, or a name."""
    text = _literal(ast.Literal(word))
    return text[1:-1] if isinstance(word, str) else text


def _literal(literal: ast.Literal) -> str:
    value = literal.value
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        text = number_text(value)
        return text if "E" in text else f"{text}e0"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return text if isinstance(value, int) or "." in text else f"{text}.0"


def _quoted(value: str) -> str:
    value = value.replace("&", "&amp;").replace('"', '""').replace("\r", "&#13;")
    return f'"{value}"'


# -- FLWOR and constructors


def _flwor(flwor: ast.Flwor, plain: bool) -> str:
    parts = [_clause(clause, plain) for clause in flwor.clauses]
    if flwor.where is not None:
        parts.append(f"where {_inside(flwor.where, _SINGLE, plain)}")
    group = flwor.group
    if group is not None:
        keys = (
            f"${name}" + (f" := {_inside(value, _SINGLE, plain)}" if value is not None else "")
            for name, value in group.keys
        )
        parts.append(f"group by {', '.join(keys)}")
        parts += (_clause(clause, plain) for clause in group.clauses)
        if group.where is not None:
            parts.append(f"where {_inside(group.where, _SINGLE, plain)}")
    if flwor.order:
        parts.append(f"order by {', '.join(_order_key(key, plain) for key in flwor.order)}")
    parts.append(f"return {_inside(flwor.result, _SINGLE, plain)}")
    return " ".join(parts)


def _clause(clause: ast.Clause, plain: bool) -> str:
    match clause:
        case ast.ForClause(variable, source, position):
            at = f" at ${position}" if position else ""
            return f"for ${variable}{at} in {_inside(source, _SINGLE, plain)}"
        case ast.LetClause(variable, value):
            return f"let ${variable} := {_inside(value, _SINGLE, plain)}"
        case ast.WhereClause(condition):
            return f"where {_inside(condition, _SINGLE, plain)}"


def _order_key(key: ast.OrderKey, plain: bool) -> str:
    direction = " descending" if key.descending else ""
    empty = " empty greatest" if key.empty_greatest else ""
    return f"{_inside(key.key, _SINGLE, plain)}{direction}{empty}"


def _computed(node: ast.Computed, plain: bool) -> str:
    name = ""
    if isinstance(node.name, QualifiedName):
        named = node.name
        name = f" {named}"
        if named.prefix and named.prefix != "xml":
            parts = (str(named), named.prefix, named.namespace)
            name = f" {{{', '.join(map(_quoted, parts))}}}"
    elif node.name is not None:
        listed = "".join(f", {_quoted(part)}" for one in node.namespaces for part in one)
        name = f" {{{_whole(node.name, plain)}{listed}}}"
    word = node.kind.value.removesuffix("()")
    content = "" if node.content == ast.Sequence(()) else _whole(node.content, plain)
    return f"{word}{name} {{{content}}}"


def _markup(node: ast.Markup) -> str:
    if node.kind is ast.NodeKind.COMMENT:
        return f"<!--{node.value}-->"
    return f"<?{node.target} {node.value}?>" if node.value else f"<?{node.target}?>"


def _constructor(constructor: ast.Constructor, plain: bool) -> str:
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


def _attribute(name: QualifiedName, value: tuple[str | ast.Expression, ...], plain: bool) -> str:
    written = "".join(
        _escaped(part, in_value=True) if isinstance(part, str) else f"{{{_whole(part, plain)}}}"
        for part in value
    )
    return f' {name}="{written}"'


def _enclosed(part: ast.Expression, plain: bool) -> str:
    text = _whole(part, plain)
    return text if isinstance(part, ast.Constructor | ast.Markup) else f"{{{text}}}"


def _content_text(value: str) -> str:
    """Literal text; white space that the parser would strip is written as a reference."""
    if not value.strip(" \t\n\r"):
        return f"&#{ord(value[0])};{_escaped(value[1:], in_value=False)}"
    return _escaped(value, in_value=False)


def _escaped(value: str, *, in_value: bool) -> str:
    special = r'[&<>{}"\r\t\n]' if in_value else r"[&<>{}\r]"
    return re.sub(special, lambda match: _ESCAPES.get(match[0], f"&#{ord(match[0])};"), value)
