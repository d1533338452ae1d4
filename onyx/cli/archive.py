"""``onyx archive read``: what root brokers have archived, over the network."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from msgspec.structs import replace

from formats import FormatError, parse_text
from formats.graph.striped import GRAPH_NAMESPACE
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import has_named_graphs, is_graph, write_graph
from onyx.cli.asking import add_command, asked, network
from onyx.cli.taxonomy import SYNTAXES
from onyx.cli.values import say
from onyx.cli.verb import Subparsers, add_noun
from onyx.errors import EXIT_OK, EXIT_STORE
from onyx.registration_client import NetworkClient
from overlay import verbs
from overlay.archive_file import A_TIME, time_said

# -------------------------------------------------------------------------------------------------
# Graphs of an archive, which holds them striped, in a syntax that everybody reads.


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
        say(f"{record['name']}: {error}")
        return line
    record["media_type"] = syntax.value
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


DETAILS = """\
Prints the messages of a source that its root broker has archived (onyx up --archive), the
oldest first, as lines of JSON: name, source, number, time and message. onyx backtest reads
them in a folder of .jsonl.gz files, and the .msgpack.zst files of brokers. Messages of the
last second or two may be missing. It takes the role read-archive (onyx access).
Exit code 74: some messages are on a damaged part of a file, of which standard error
tells how many; the others were printed.

A message that was published as a graph, and not as RDF/XML, is printed in N-Triples, or
in N-Quads where it has named graphs, with its media_type; --graphs names another syntax,
or "striped" for what the archive itself holds."""

EXAMPLES = """\
  onyx archive read s1-w7d4bz3h | gzip > news/weather.jsonl.gz
  onyx archive read s1-w7d4bz3h --from 2026-11-21T17:00Z --to 2026-11-21T18:00Z
  onyx archive read s2-k3v9q2mx --graphs turtle
"""


_SYNTAXES = {**SYNTAXES, "striped": None}


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "archive", details=DETAILS, examples=EXAMPLES)
    takes = {
        "--from TIME": f"published then or later: {A_TIME.removeprefix('a time ')}",
        "--to TIME": f"published before: {A_TIME.removeprefix('a time ')}",
        f"--graphs SYNTAX{{{','.join(_SYNTAXES)}}} = n-triples": "of graphs (default: n-triples)",
    }
    add = partial(add_command, subverbs, verbs.ArchiveRead, run=run_read, takes=takes)
    but = ("since", "until", "after")
    add(but=but, details=DETAILS, examples=EXAMPLES, kinds={"from": _time, "to": _time})


async def run_read(arguments: argparse.Namespace) -> int:
    code = EXIT_OK
    syntax = _SYNTAXES[arguments.graphs]
    async with network(arguments) as registration:
        source = await registration.source(arguments.source)
    since, until = getattr(arguments, "from"), arguments.to
    wanted = asked(arguments, source=source.id, since=since, until=until)
    async with NetworkClient(source.address) as root:
        while True:
            page = await root.ask(wanted)
            lines = page.lines
            if syntax is not None:
                lines = b"".join(
                    with_graphs_as(line, syntax) for line in lines.splitlines(keepends=True)
                )
            sys.stdout.write(lines.decode())
            sys.stdout.flush()
            for damaged in page.damaged:
                say(damaged)
                code = EXIT_STORE
            wanted = replace(wanted, after=page.next)
            if not page.next:
                return code


def _time(text: str) -> float:
    try:
        return time_said(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
