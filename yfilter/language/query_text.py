"""The text of a profile, or of an expression: the inverse of the parser.

``unparse`` writes names as ``Q{namespace}local``, so that the text needs no prolog:
``parse_profile(unparse(body)).body == body``, and the same for paths and conditions.
"""

from __future__ import annotations

import re

from yfilter.graph import query_text as graph_query_text
from yfilter.graph.query_ast import GraphQuery
from yfilter.language.query_ast import Expression, Profile, UserCall

# PERF: what each call of a declared function or variable has, and little else.
_CALL_OF_DECLARED = re.compile(r"local:|\}[^\s(){}\[\]/]+\(|\$(?:local:|Q\{)")


def unparse(node: Profile | Expression) -> str:
    """The text that the parser reads as ``node``, on one line unless a literal has line ends."""
    body = node.body if isinstance(node, Profile) else node
    if isinstance(body, GraphQuery):
        return graph_query_text.unparse(body)
    text = body.written(plain=True)
    if not _CALL_OF_DECLARED.search(text):
        return text
    declared = {
        (function.name, len(function.parameters)): function
        for call in body.within()
        if isinstance(call, UserCall)
        for function in call.library
    }
    return "".join([function.written() for function in declared.values()]) + text
