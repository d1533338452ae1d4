"""The context of a rule, a match pattern of XSLT, as a path from the message.

==================  =====================  ===========================================
pattern             path                   as a condition of a node
==================  =====================  ===========================================
``a/b[c]``          ``//a/b[c]``           ``self::b[c][parent::a]``
``/a//b``           ``/a//b``              ``self::b[ancestor::a[not(parent::*)]]``
``@x``              ``//@x``               ``self::attribute(x)``
``/``               ``/*/..``              ``not(parent::node())``
``a[1]``            ``//a[1]``             ``. intersect (//a[1])``
==================  =====================  ===========================================

A node is the first rule's of a pattern that matches it, so the later ones' paths say in brackets
that the earlier ones do not, wherever the names of the steps leave it open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from yfilter.errors import SchematronRefused
from yfilter.schematron.expressions import (
    A_CONDITION,
    A_POSITION,
    CONTEXT,
    bare,
    closing,
    split,
    with_guards,
)

_AXES = {"child": "", "attribute": "@"}
_AXIS = re.compile(r"^(child|attribute)\s*::\s*")
_UP = {"/": "parent", "//": "ancestor"}
_NAME = re.compile(r"(?:[\w.-]+|\*):(?:[\w.-]+|\*)|Q\{[^}]*\}[\w.*-]+|[\w.-]+|\*")
_KIND = re.compile(r"([a-z-]+)\s*\(\s*(.*?)\s*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    """``separator`` before it: "", "/" or "//"; ``kind``: of nodes ("" not known), ``name`` as
    written ("*" any); ``predicates`` with their brackets."""

    separator: str
    kind: str
    name: str
    predicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One path of a context: ``path`` from the message, ``steps`` None where it is no plain one."""

    path: str
    steps: tuple[Step, ...] | None

    def excludes(self, other: Alternative) -> bool:
        """Whether, by names and kinds alone, no node is both's."""
        ours, theirs = self.steps, other.steps
        if ours is None or theirs is None:
            return False
        for one, two in zip(reversed(ours), reversed(theirs), strict=False):
            if _disjoint(one, two):
                return True
            if one.separator != "/" or two.separator != "/":
                return False
        return len(ours) != len(theirs)

    @property
    def condition(self) -> str:
        """True where the context item is one of its nodes."""
        if self.steps and all(map(_is_condition, self.steps)):
            return _condition(self.steps, "self")
        return f". intersect ({self.path})"


def alternatives(context: str) -> list[Alternative]:
    """Those of a context in XQuery's words.  Where it is an error for a node, the node is none of
    its nodes, as XSLT says of patterns and the profile language of conditions."""
    found: list[Alternative] = []
    parts = split(with_guards(context), ("|", " union ", "\nunion "))
    for part in (each.strip() for _, each in parts):
        if part.startswith("(") and (spread := _spread(part)):
            found += alternatives(spread)
            continue
        if part.startswith("("):
            found.append(Alternative(_grouped(part), None))
            continue
        steps = tuple(_steps(part))
        if steps == (Step("/", "root", "", ()),):
            found.append(Alternative("/*/..", steps))
            continue
        path = part
        if f"${CONTEXT}" in part:  # current(), which is the node that is matched
            steps = (step := _with_itself(steps),)
            test = f"@{step.name}" if step.kind == "attribute" else _test(step)
            path = test + step.predicates[0]
        known = None if any(not step.kind for step in steps) else steps
        found.append(Alternative(path if path.startswith("/") else f"//{path}", known))
    return found


def path_of(context: Sequence[Alternative]) -> str:
    """All nodes of a context."""
    paths = [alternative.path for alternative in context]
    return paths[0] if len(paths) == 1 else f"({' | '.join(paths)})"


def excluded(context: Sequence[Alternative], earlier: Sequence[Alternative]) -> str:
    """A bracket that leaves out what is ``earlier`` contexts' too.

    PERF: one ``or``, so that a node is asked no more than it takes (CEN's rules for CII: 5 ms an
    invoice, and 14 with a bracket each)."""
    conditions = dict.fromkeys(
        each.condition
        for each in earlier
        if not all(alternative.excludes(each) for alternative in context)
    )
    return f"[not({' or '.join(conditions)})]" if conditions else ""


def _spread(part: str) -> str:
    """``(a | b)[c]/d`` as ``a[c]/d | b[c]/d``, where nothing behind the parentheses counts."""
    end = closing(part)
    rest = part[end:]
    try:
        first, *_ = _steps(f"a{rest}")
    except ValueError:
        return ""
    if not _is_condition(first) or (rest and rest[0] not in "[/"):
        return ""
    inside = [each.strip() for _, each in split(part[1 : end - 1], ("|", " union ", "\nunion "))]
    return " | ".join(f"{each}{rest}" for each in inside)


def _grouped(part: str) -> str:
    """``(a | b)/c``: what is in the parentheses is looked for anywhere, then what follows."""
    end = closing(part)
    inside = " | ".join(each.path for each in alternatives(part[1 : end - 1]))
    return f"({inside}){part[end:]}"


def _with_itself(steps: tuple[Step, ...]) -> Step:
    """The last step, with all that the path asks as a condition of its node."""
    if not all(step.kind and _is_condition(step) for step in steps):
        raise SchematronRefused("current() in a context is read beside names and conditions only")
    asked = f"[let ${CONTEXT} := . return exists({_condition(steps, 'self')})]"
    return Step("", steps[-1].kind, steps[-1].name, (asked,))


def _steps(part: str) -> Iterator[Step]:
    if part == "/":
        yield Step("/", "root", "", ())
        return
    pieces = split(part, ("//", "/"))
    if part.startswith("/"):
        pieces = pieces[1:]
    for separator, piece in pieces:
        text = _AXIS.sub(lambda found: _AXES[found[1]], piece.strip(), count=1)
        test, _, _ = text.partition("[")
        yield Step(separator, *_kind(test.strip()), tuple(_predicates(text[len(test) :])))


def _predicates(text: str) -> Iterator[str]:
    """``[a][b]`` -> ``[a]``, ``[b]``."""
    while text := text.strip():
        end = closing(text)
        yield text[:end]
        text = text[end:]


def _kind(test: str) -> tuple[str, str]:
    if test.startswith("@"):
        name = test[1:].strip()
        return ("attribute", name) if _NAME.fullmatch(name) else ("", test)
    if _NAME.fullmatch(test):
        return "element", test
    found = _KIND.fullmatch(test)
    if found and not found[2] and found[1] in ("text", "comment", "node"):
        return found[1], "*"
    return "", test


def _test(step: Step) -> str:
    if step.kind == "element":
        return step.name
    if step.kind == "attribute":
        return f"attribute({step.name})" if step.name != "*" else "attribute()"
    return f"{step.kind}()"


def _condition(steps: Sequence[Step], axis: str) -> str:
    step, before = steps[-1], steps[:-1]
    written = f"{axis}::{_test(step)}{''.join(step.predicates)}"
    if before:
        return f"{written}[{_condition(before, _UP[step.separator])}]"
    return f"{written}[not(parent::*)]" if step.separator == "/" else written


def _is_condition(step: Step) -> bool:
    """Whether its predicates are neither numbers nor about positions."""
    inside = [bare(predicate)[1:-1] for predicate in step.predicates]
    return step.kind != "root" and all(
        A_CONDITION.search(each) and not A_POSITION.search(each) for each in inside
    )


def _disjoint(one: Step, two: Step) -> bool:
    """Two prefixes may be one namespace's, so that local names count."""
    kinds = {one.kind, two.kind}
    if "node" in kinds:
        return bool(kinds & {"attribute", "root"})
    names = {name.rpartition("}")[2].rpartition(":")[2] for name in (one.name, two.name)}
    return len(kinds) > 1 or (len(names) > 1 and "*" not in names)
