"""Graphs of an archive, which holds them striped, in a syntax that everybody reads."""

from __future__ import annotations

import json
import sys

from formats import FormatError, parse_text
from formats.graph.striped import GRAPH_NAMESPACE
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import has_named_graphs, is_graph, write_graph

_MARK = GRAPH_NAMESPACE.encode()


def with_graphs_as(line: bytes, syntax: GraphSyntax) -> bytes:
    """A line of an archive; a graph in ``syntax``, with its ``media_type``, or in N-Quads where it
    has named graphs and the syntax has none.

    What the syntax cannot say is told on standard error, and stays as it is.
    """
    if _MARK not in line:
        return line
    record = json.loads(line)
    stream = parse_text(record["message"].encode())
    if not is_graph(stream):
        return line
    if has_named_graphs(stream) and not syntax.has_named_graphs:
        syntax = GraphSyntax.N_QUADS
    try:
        record["message"] = write_graph(stream, syntax).decode()
    except FormatError as error:
        print(f"onyx: {record['name']}: {error}", file=sys.stderr)
        return line
    record["media_type"] = syntax.value
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
