"""Of striped graphs: which of their values have an order, and which say next to nothing.

IRIs, blank nodes and languages have none that means anything, so there are no ranges of them.  That
a text is in a language, or that a graph has a subject, holds of nearly all messages.
"""

from __future__ import annotations

from formats.graph.striped import (
    BLANK,
    DATATYPE,
    GRAPH_BLANK,
    GRAPH_IRI,
    GRAPH_NAMESPACE,
    IRI_OBJECT,
    IRI_SUBJECT,
    LANGUAGE,
    PROPERTY_IRI,
    SUBJECT,
)
from yfilter.engine.implication import Leaf
from yfilter.engine.linear_paths import ANY_DOCUMENT, ANY_GRAPH, LinearPath, LinearStep
from yfilter.engine.readings import Reading, reading_of
from yfilter.language.query_ast import NameTest, NodeKind

_UNORDERED = frozenset(
    (IRI_SUBJECT, IRI_OBJECT, GRAPH_IRI, PROPERTY_IRI, DATATYPE, BLANK, GRAPH_BLANK, LANGUAGE)
)
_SUBJECTS = *ANY_GRAPH.paths[0].steps, LinearStep(False, NameTest(GRAPH_NAMESPACE, SUBJECT))
_ALWAYS = frozenset(step.test for step in _SUBJECTS)

ANYTHING = frozenset((ANY_DOCUMENT.text, ANY_GRAPH.text, str(LinearPath(_SUBJECTS))))
"""The texts of what all messages of a reading satisfy."""


def reading_of_all(paths: tuple[LinearPath, ...]) -> Reading:
    """The reading of a conjunction of them."""
    return max(reading_of(path.steps) for path in paths)


def root_steps(path: LinearPath) -> tuple[LinearStep, ...]:
    """What a path of the same reading has to begin with."""
    return ANY_GRAPH.paths[0].steps if reading_of(path.steps) is Reading.GRAPH else ()


def has_order(leaf: Leaf, reading: Reading) -> bool:
    """Whether a range of the values of a leaf says anything."""
    return reading is Reading.DOCUMENT or _attribute(leaf) not in _UNORDERED


def is_telling(leaf: Leaf, reading: Reading) -> bool:
    """Whether an equality of a leaf holds of few messages."""
    return reading is Reading.DOCUMENT or _attribute(leaf) != LANGUAGE


def is_everywhere(test: NameTest, reading: Reading) -> bool:
    """Whether all messages of a reading have an element of a name."""
    return reading is Reading.GRAPH and test in _ALWAYS


def _attribute(leaf: Leaf) -> str:
    """The name of an attribute in no namespace, "" for anything else."""
    test = leaf.test if leaf.kind is NodeKind.ATTRIBUTE else None
    return "" if test is None or test.namespace else test.local
