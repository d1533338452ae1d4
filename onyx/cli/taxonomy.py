"""``onyx taxonomy put | list | show | remove``: which classes are below which."""

from __future__ import annotations

import argparse
import sys

from formats.graph.syntaxes import GraphSyntax, by_file_name
from onyx.cli.asking import FIELDS, Told, add_command, add_commands, ask, asked, tell
from onyx.cli.values import print_json, read_input
from onyx.cli.verb import Subparsers, add_noun
from onyx.errors import UsageError
from overlay import verbs
from overlay.answers import TaxonomyPut

SYNTAXES = {syntax.name.lower().replace("_", "-"): syntax for syntax in GraphSyntax}

DETAILS = """\
A taxonomy is a graph: of it count rdfs:subClassOf, rdfs:subPropertyOf, and rdf:type of
instances. All that are put make one together, which has no cycle. Graphs that are
published from then on are closed by it: a profile that asks for a class gets what is of a
class below it. Profiles that ask for a class and those above it are updated.
Nothing is started again, and what was published before stays as it was.

Whoever puts or removes one needs the role operate (onyx access)."""

EXAMPLES = """\
  onyx taxonomy put topics topics.ttl
  onyx taxonomy put schema.org - --syntax turtle < schemaorg.ttl
  onyx taxonomy list
  onyx taxonomy show topics
  onyx taxonomy remove topics
"""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "taxonomy", details=DETAILS, examples=EXAMPLES)
    put = {
        "file FILE": "a graph (-: standard input)",
        f"--syntax {{{','.join(SYNTAXES)}}}": "how FILE is written (default: by its name)",
    }
    add_command(
        *(subverbs, verbs.TaxonomyPut, FIELDS, run_put, put),
        details=DETAILS,
        examples=EXAMPLES,
        kinds={"file": str},
    )
    add_command(subverbs, verbs.TaxonomyShow, run=run_show, details=DETAILS)
    told = {verbs.TaxonomyRemove: Told(lambda answer: f"{answer.name} is removed")}
    add_commands(subverbs, "taxonomy", details=DETAILS, told=told)


async def run_put(arguments: argparse.Namespace) -> None:
    syntax = syntax_of(arguments, arguments.file)
    text = read_input(arguments.file)
    wanted = asked(arguments, syntax=syntax.value, text=text)
    tell(arguments, await ask(arguments, wanted), Told(_done))


def syntax_of(arguments: argparse.Namespace, name: str) -> GraphSyntax:
    """Of a file, by ``--syntax`` or its name; UsageError."""
    syntax = SYNTAXES[arguments.syntax] if arguments.syntax else by_file_name(name)
    if syntax is None:
        raise UsageError(
            f"{name} does not say its syntax by its name; expected --syntax, one of "
            f"{', '.join(SYNTAXES)}"
        )
    return syntax


def _done(answer: TaxonomyPut) -> str:
    if not answer.changed:
        return f"{answer.name}: nothing to do"
    words = ("classes", "properties", "instances")
    counts = ", ".join(f"{getattr(answer, word)} {word}" for word in words)
    return f"{answer.name}: {counts}, version {answer.version}"


async def run_show(arguments: argparse.Namespace) -> None:
    answer = await ask(arguments, asked(arguments))
    if arguments.json:
        print_json({**answer.shown(), "text": answer.text.decode()})
    else:
        sys.stdout.buffer.write(answer.text)
