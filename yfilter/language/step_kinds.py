"""What a path and its steps are, in words: where it starts, along which axis, to which nodes."""

from __future__ import annotations

from enum import Enum


class NodeKind(Enum):
    """What a location step selects."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    TEXT = "text()"
    SELF = "."
    PARENT = ".."
    COMMENT = "comment()"
    PROCESSING_INSTRUCTION = "processing-instruction()"
    NODE = "node()"
    DOCUMENT = "document-node()"


class Axis(Enum):
    """An axis that has to be written out; child, attribute, ``.`` and ``..`` are a step's kind."""

    SELF = "self"
    PARENT = "parent"
    DESCENDANT = "descendant"
    DESCENDANT_OR_SELF = "descendant-or-self"
    ANCESTOR = "ancestor"
    ANCESTOR_OR_SELF = "ancestor-or-self"
    FOLLOWING_SIBLING = "following-sibling"
    PRECEDING_SIBLING = "preceding-sibling"
    FOLLOWING = "following"
    PRECEDING = "preceding"


class Origin(Enum):
    """Where a path starts."""

    MESSAGE = "$msg"  # the document node: "/a", "//a", "$msg/a"
    CONTEXT = "."  # the context item inside a predicate: "a", ".//a", "@a"
    VARIABLE = "$"  # a variable bound by for or let
    EXPRESSION = "()"  # any other expression: "(//a)[1]", "<a/>/b"
