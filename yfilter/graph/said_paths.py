"""What a disjunct of the graph reading asks for, as a graph pattern, for people.

::

    /Q{urn:onyx:graph}g/Q{urn:onyx:graph}d/Q{http://e/}by[@v = "ann"]  and
    /Q{urn:onyx:graph}g/Q{urn:onyx:graph}d/Q{http://e/}size[@n > 3]

    { ?a <http://e/by> "ann" . ?b <http://e/size> ?m FILTER(?m > 3) }

Each path of a disjunct is by itself: that two triples have the same subject is for the host broker
to find, so each has a variable of its own.  What has no words here stays the path that it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from formats.graph import striped
from formats.graph.vocabulary import RDF
from yfilter.engine.linear_paths import Conjunction, LinearPath, LinearStep
from yfilter.graph.query_text import quoted
from yfilter.language import query_ast as ast
from yfilter.language.query_text import unparse

_GRAPH_PATH = f"/Q{{{striped.GRAPH_NAMESPACE}}}{striped.GRAPH}"
_CLASS_PATH = "a/<http://www.w3.org/2000/01/rdf-schema#subClassOf>*"
_CLASS = [
    ast.NameTest(striped.GRAPH_NAMESPACE, local) for local in (striped.CLOSURE, striped.CLASS)
]


def said_disjunct(text: str) -> str:
    """The text of a disjunct (``str`` of a Conjunction) as a graph pattern; one of the document
    reading as it is."""
    if not text.startswith(_GRAPH_PATH):
        return text
    triples = said_paths(Conjunction.parse(text).paths)
    return f"{{ {' . '.join(triples)} }}"


def said_paths(paths: Iterable[LinearPath]) -> list[str]:
    """Triple patterns, each with variables of its own; a path that is none as it is."""
    return [_triple(path, number) or str(path) for number, path in zip(count(), paths)]


def _triple(path: LinearPath, number: int) -> str:
    """ "" for what has no words."""
    if len(path.steps) < 2 or any(step.descendant for step in path.steps):
        return ""
    _, subject, *inner = path.steps
    asked = _equalities(subject.selections)
    if subject.test.namespace != striped.GRAPH_NAMESPACE or asked is None:
        return ""
    graph = asked.pop(striped.GRAPH_IRI, "")
    name = _term(asked, _variable("s", number))
    said = name and _said(name, inner, number)
    if said and subject.test.local == striped.NAMED_SUBJECT:
        return f"GRAPH {f'<{graph}>' if graph else _variable('g', number)} {{ {said} }}"
    return said


def _said(name: str, inner: Sequence[LinearStep], number: int) -> str:
    """What is said of a subject of that name."""
    if not inner:
        return f"{name} {_variable('p', number)} {_variable('o', number)}"
    if [step.test for step in inner] == _CLASS:
        asked = _equalities(inner[1].selections)
        value = asked and _term(asked, "")
        return f"{name} {_CLASS_PATH} {value}" if value else ""
    verb = "" if len(inner) > 1 else _verb(inner[0].test, number)
    return f"{name} {verb} {_object(inner[0], number)}" if verb else ""


def _verb(test: ast.NameTest, number: int) -> str:
    if not test.is_full:
        return _variable("p", number)
    if test.namespace == striped.GRAPH_NAMESPACE:
        return ""
    return "a" if test == (RDF, "type") else f"<{test.namespace}{test.local}>"


def _object(step: LinearStep, number: int) -> str:
    """A term; or a variable with what is asked of it."""
    variable = _variable("o", number)
    asked = _equalities(step.selections)
    if asked is not None and (term := _term(asked, variable)):
        return term
    said = [_filter(selection, variable) for selection in step.selections]
    return f"{variable} FILTER({' && '.join(said)})"


def _equalities(selections: Iterable[ast.Expression]) -> dict[str, str] | None:
    """Attributes, and what they are to be; None where more is asked."""
    found: dict[str, str] = {}
    for selection in selections:
        attribute, operator, value = _compared(selection)
        if operator is not ast.Operator.EQ or not isinstance(value, str) or attribute in found:
            return None
        found[attribute] = value
    return found


def _term(asked: Mapping[str, str], variable: str) -> str:
    """The term that has these attributes; the variable if nothing is asked; "" if it is no term."""
    match dict(asked):
        case {striped.IRI_SUBJECT: iri, **rest} | {striped.IRI_OBJECT: iri, **rest} if not rest:
            return f"<{iri}>"
        case {striped.STRING: text, **rest} if not rest:
            return quoted(text)
        case {striped.TEXT: text, striped.LANGUAGE: language, **rest} if not rest:
            return f"{quoted(text)}@{language}"
        case {striped.LEXICAL: text, striped.DATATYPE: datatype, **rest} if not rest:
            return f"{quoted(text)}^^<{datatype}>"
        case {**rest} if not rest:
            return variable
    return ""


def _filter(selection: ast.Expression, variable: str) -> str:
    attribute, operator, value = _compared(selection)
    if attribute == striped.NUMBER and operator is not None:
        return f"{variable} {operator.value} {value}"
    return unparse(selection)


def _compared(selection: ast.Expression) -> tuple[str, ast.Operator | None, object]:
    """The attribute that is compared with a literal, how and with what; "" if it is not that."""
    match selection:
        case ast.Comparison(path, operator, ast.Literal(value)) if len(path.steps) == 1:
            step = path.steps[0]
            if step.kind is ast.NodeKind.ATTRIBUTE and step.test is not None:
                return step.test.local, operator, value
    return "", None, None


def _variable(letter: str, number: int) -> str:
    return f"?{letter}{number + 1}"
