"""Random messages and profiles for the engine's oracle tests, and their XPath 1.0 for lxml.

Few names, so that messages recurse and ``//`` is ambiguous.  What a random profile compares is
kept to where XPath 1.0 and the profile language agree: strings with ``=`` and ``!=``, numbers
with attributes that hold numbers only.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from lxml import etree

from formats.element_stream import ElementStream
from formats.text import parse_text
from yfilter.language.query_ast import (
    ANY,
    And,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    LocationStep,
    NameTest,
    NodeKind,
    Operator,
    Or,
    Origin,
    PathExpression,
)
from yfilter.language.query_text import unparse

NAMESPACE = "urn:u"
NAMES = ("a", "b", "c", "d")
WORDS = ("x", "y", "z")
ID = NameTest("", "id")
NUMBER = NameTest("", "n")


class Message:
    """A message with its two readings: ours and lxml's."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.stream: ElementStream = parse_text(text)
        self.tree = etree.fromstring(text)
        elements = [node for node in self.tree.iter() if isinstance(node.tag, str)]
        self.number = {node: number for number, node in enumerate(elements)}
        assert len(elements) == len(self.stream)

    def select(self, xpath: str) -> tuple[int, ...]:
        """The elements that an XPath 1.0 expression selects, or owns what it selects."""
        found = self.tree.getroottree().xpath(xpath, namespaces={"u": NAMESPACE})
        elements = {_owner(node) if isinstance(node, str) else node for node in found}
        return tuple(sorted(self.number[element] for element in elements))


def _owner(value: etree._ElementUnicodeResult) -> etree._Element:
    """The element of an attribute or a text node; lxml hangs text on the node before it."""
    owner = value.getparent()
    return owner.getparent() if value.is_tail else owner


def random_message(rng: Random) -> Message:
    budget = [rng.randint(1, 40)]
    return (
        Message(f'<r xmlns:u="{NAMESPACE}">{_children(rng, budget, 1)}</r>'.encode())
        if (rng.random() < 0.3)
        else Message(_element(rng, budget, 0, f' xmlns:u="{NAMESPACE}"').encode())
    )


def _element(rng: Random, budget: list[int], depth: int, more: str = "") -> str:
    budget[0] -= 1
    name = rng.choice(NAMES)
    if rng.random() < 0.15:
        name = f"u:{name}"
    attributes = more
    if rng.random() < 0.5:
        attributes += f' id="{rng.choice(WORDS)}"'
    if rng.random() < 0.5:
        attributes += f' n="{rng.randint(1, 4)}"'
    return f"<{name}{attributes}>{_children(rng, budget, depth + 1)}</{name}>"


def _children(rng: Random, budget: list[int], depth: int) -> str:
    parts = []
    while budget[0] > 0 and depth < 8 and rng.random() < 0.7:
        parts.append(_element(rng, budget, depth))
        if rng.random() < 0.2:
            parts.append(rng.choice(("<!--x-->", "<?p x?>", " ", rng.choice(WORDS))))
    if not parts and rng.random() < 0.6:
        parts.append(rng.choice(WORDS))
    return "".join(parts)


def random_profile(rng: Random, *, conditions: float = 0.4) -> PathExpression:
    """A path from the message; ``conditions`` is how likely a step has one."""
    steps = _element_steps(rng, rng.randint(1, 4), conditions, 0)
    if rng.random() < 0.15:
        steps = (*steps, _leaf(rng, descendant=False))
    return PathExpression(Origin.MESSAGE, steps)


def random_linear_profile(rng: Random) -> PathExpression:
    """A path whose conditions each step's element decides alone."""
    steps = []
    for step in _element_steps(rng, rng.randint(1, 4), 0, 0):
        local = tuple(_local_condition(rng) for _ in range(rng.choice((0, 0, 1, 2))))
        steps.append(LocationStep(step.descendant, step.kind, step.test, local))
    return PathExpression(Origin.MESSAGE, tuple(steps))


def random_flwor(rng: Random) -> str:
    """The text of a FLWOR profile over names in no namespace; the expressions are XPath 2.0's."""
    clauses = [f"for $v in {_plain(rng, Origin.MESSAGE)}"]
    variables = ["$v"]
    if rng.random() < 0.4:
        clauses.append(f"let $l := $v/{_plain(rng, Origin.CONTEXT)}")
        variables.append("$l")
    if rng.random() < 0.4:
        clauses.append(f"for $w in {rng.choice(variables)}/{_plain(rng, Origin.CONTEXT)}")
        variables.append("$w")
    if rng.random() < 0.7:
        conditions = [_where(rng, variables) for _ in range(rng.randint(1, 3))]
        clauses.append(f"where {rng.choice((' and ', ' or ')).join(conditions)}")
    source = rng.choice(variables)
    result = rng.choice(
        (
            source,
            f"{source}/{_plain(rng, Origin.CONTEXT)}",
            f'<x i="{{{source}/@id}}">{{{source}}}</x>',
            f"<x>{{{source}/{_plain(rng, Origin.CONTEXT)}}}</x>",
        )
    )
    flwor = f"{' '.join(clauses)} return {result}"
    return f"<all>{{ {flwor} }}</all>" if rng.random() < 0.2 else flwor


def _where(rng: Random, variables: list[str]) -> str:
    left = f"{rng.choice(variables)}/{_plain(rng, Origin.CONTEXT)}"
    right = f"{rng.choice(variables)}/{_plain(rng, Origin.CONTEXT)}"
    return rng.choice(
        (
            left,
            f'{left}/@id = "{rng.choice(WORDS)}"',
            f"{left}/@n > {rng.randint(1, 4)}",
            f"not({left})",
            f"{left}/@id = {right}/@id",
            f"count({left}) >= 2",
            f'({left} or {right} = "{rng.choice(WORDS)}")',
        )
    )


def _plain(rng: Random, origin: Origin) -> str:
    """A path without namespaces, from the message or relative to follow a slash."""
    while True:
        steps = _element_steps(rng, rng.randint(1, 2), 0.2, 1)
        if origin is Origin.CONTEXT and steps[0].descendant:
            steps = (replace(steps[0], descendant=False), *steps[1:])
        text = unparse(PathExpression(origin, steps))
        if "Q{" not in text:
            return text


def _element_steps(
    rng: Random, count: int, conditions: float, depth: int
) -> tuple[LocationStep, ...]:
    steps = []
    for _ in range(count):
        predicates: tuple[Expression, ...] = ()
        while rng.random() < conditions / (depth + 1):
            predicates = (*predicates, random_condition(rng, depth + 1))
        steps.append(
            LocationStep(rng.random() < 0.4, NodeKind.ELEMENT, _name_test(rng), predicates)
        )
    return tuple(steps)


def _name_test(rng: Random) -> NameTest:
    drawn = rng.random()
    if drawn < 0.2:
        return NameTest(ANY, ANY)
    if drawn < 0.25:
        return NameTest(NAMESPACE, ANY)
    if drawn < 0.3:
        return NameTest(ANY, rng.choice(NAMES))
    return NameTest(NAMESPACE if drawn < 0.38 else "", rng.choice(NAMES))


def _leaf(rng: Random, *, descendant: bool) -> LocationStep:
    if rng.random() < 0.4:
        return LocationStep(descendant, NodeKind.TEXT, None)
    return LocationStep(descendant, NodeKind.ATTRIBUTE, rng.choice((ID, NUMBER)))


def random_condition(rng: Random, depth: int) -> Expression:
    drawn = rng.random()
    if drawn < 0.3 or depth > 3:
        return _local_condition(rng)
    if drawn < 0.6:
        return _nested_path(rng, depth)
    if drawn < 0.8:
        parts = (random_condition(rng, depth + 1), random_condition(rng, depth + 1))
        kind = rng.choice((And, Or))
        return kind(_flat(kind, parts))
    if drawn < 0.88:
        return FunctionCall("not", (random_condition(rng, depth + 1),))
    if drawn < 0.92:
        count = FunctionCall("count", (_plain_nested_path(rng),))
        return Comparison(count, rng.choice(list(Operator)), Literal(rng.randint(0, 2)))
    if drawn < 0.96:
        return Comparison(_plain_nested_path(rng), Operator.EQ, _plain_nested_path(rng))
    return FunctionCall("contains", (_plain_nested_path(rng), Literal(rng.choice(WORDS))))


def _flat(kind: type[And] | type[Or], parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
    return tuple(
        nested for part in parts for nested in (part.parts if isinstance(part, kind) else (part,))
    )


def _local_condition(rng: Random) -> Expression:
    kind = rng.randrange(6)
    word = Literal(rng.choice(WORDS))
    if kind == 0:
        return _context(LocationStep(False, NodeKind.ATTRIBUTE, rng.choice((ID, NUMBER))))
    if kind == 1:
        number = _context(LocationStep(False, NodeKind.ATTRIBUTE, NUMBER))
        return Comparison(number, rng.choice(list(Operator)), Literal(rng.randint(1, 4)))
    equality = rng.choice((Operator.EQ, Operator.EQ, Operator.NE))
    if kind == 2:
        return Comparison(_context(LocationStep(False, NodeKind.TEXT, None)), equality, word)
    if kind == 3:
        return Comparison(_context(), equality, word)
    identity = _context(LocationStep(False, NodeKind.ATTRIBUTE, ID))
    if kind == 4:
        return Comparison(word, equality, identity)
    return Or((Comparison(identity, Operator.EQ, word), FunctionCall("not", (identity,))))


def _nested_path(rng: Random, depth: int) -> Expression:
    steps = _element_steps(rng, rng.randint(1, 3), 0.4, depth)
    if rng.random() < 0.1:
        steps = (LocationStep(False, NodeKind.PARENT, None), *steps)
    elif rng.random() < 0.1:
        steps = (*steps, LocationStep(False, NodeKind.PARENT, None))
        if rng.random() < 0.5:
            steps = (*steps, *_element_steps(rng, 1, 0, depth))
    elif rng.random() < 0.1:
        steps = ()
    if rng.random() < 0.6 and (not steps or steps[-1].kind is NodeKind.ELEMENT):
        leaf = _leaf(rng, descendant=not steps or rng.random() < 0.2)
        path = PathExpression(Origin.CONTEXT, (*steps, leaf))
        if leaf.test == NUMBER:
            bound = Literal(rng.randint(1, 4))
            return Comparison(path, rng.choice(list(Operator)), bound)
        return Comparison(path, Operator.EQ, Literal(rng.choice(WORDS)))
    if not steps:
        return _context()
    origin = Origin.MESSAGE if rng.random() < 0.08 else Origin.CONTEXT
    if origin is Origin.MESSAGE and steps[0].kind is NodeKind.PARENT:
        steps = steps[1:]
    path = PathExpression(origin, steps)
    if steps[-1].kind is NodeKind.ELEMENT and rng.random() < 0.2:
        return Comparison(Literal(rng.choice(WORDS)), Operator.EQ, path)
    return path


def _plain_nested_path(rng: Random) -> PathExpression:
    return PathExpression(Origin.CONTEXT, _element_steps(rng, rng.randint(1, 2), 0, 0))


def _context(*steps: LocationStep) -> PathExpression:
    return PathExpression(Origin.CONTEXT, steps)


def xpath1(node: Expression) -> str:
    """The same expression as XPath 1.0; written apart from ``unparse``, for it is the oracle."""
    match node:
        case PathExpression():
            return _xpath1_path(node)
        case Literal(str(value)):
            return f"'{value}'"
        case Literal(value):
            return repr(value)
        case Comparison(left, operator, right):
            return f"({xpath1(left)} {operator.value} {xpath1(right)})"
        case And(parts):
            return f"({' and '.join(map(xpath1, parts))})"
        case Or(parts):
            return f"({' or '.join(map(xpath1, parts))})"
        case FunctionCall(name, arguments):
            return f"{name}({', '.join(map(xpath1, arguments))})"
    raise TypeError(node)


def _xpath1_path(path: PathExpression) -> str:
    text = "self::node()" if path.origin is Origin.CONTEXT else ""
    for step in path.steps:
        text += "//" if step.descendant else "/"
        text += _xpath1_test(step) + "".join(
            f"[boolean({xpath1(predicate)})]" for predicate in step.predicates
        )
    return text


def _xpath1_test(step: LocationStep) -> str:
    if step.test is None:
        return step.kind.value
    axis = "@" if step.kind is NodeKind.ATTRIBUTE else ""
    namespace, local = step.test.namespace, step.test.local
    if namespace == ANY:
        return axis + (ANY if local == ANY else f"*[local-name() = '{local}']")
    return axis + (f"u:{local}" if namespace == NAMESPACE else local)
