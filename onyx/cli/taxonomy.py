"""``onyx taxonomy put | list | show | remove``: which classes are below which."""

from __future__ import annotations

import argparse
import sys

import trio

from formats.graph.syntaxes import GraphSyntax, by_file_name
from onyx.cli.access import ask
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments
from onyx.cli.values import print_json, read_input, table
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.errors import EXIT_OK, UsageError
from onyx.registration_client import Result
from overlay import verbs

SYNTAXES = {syntax.name.lower().replace("_", "-"): syntax for syntax in GraphSyntax}

DETAILS = f"""\
A taxonomy is a graph: of it count rdfs:subClassOf, rdfs:subPropertyOf, and rdf:type of
instances. All that are put make one together, which has no cycle. Graphs that are
published from then on are closed by it: a profile that asks for a class gets what is of a
class below it. Profiles that ask for a class and those above it are updated.
Nothing is started again, and what was published before stays as it was.

Whoever puts or removes one needs the role operate (onyx access).
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx taxonomy put topics topics.ttl
  onyx taxonomy put schema.org - --syntax turtle < schemaorg.ttl
  onyx taxonomy list
  onyx taxonomy show topics
  onyx taxonomy remove topics
"""


def add_parser(subparsers: Subparsers) -> None:
    summary = "say which classes are below which"
    verb = add_verb(subparsers, "taxonomy", summary, details=DETAILS, examples=EXAMPLES)
    verbs = add_subverbs(verb)
    put = add_verb(verbs, "put", "add one, or replace it", details=DETAILS, examples=EXAMPLES)
    put.add_argument("name", metavar="NAME")
    put.add_argument("file", metavar="FILE", help="a graph; - is standard input")
    put.add_argument(
        "--syntax", choices=tuple(SYNTAXES), help="how FILE is written (default: by its name)"
    )
    set_run(put, run_put)
    listing = add_verb(verbs, "list", "list those that there are", details=DETAILS)
    set_run(listing, run_list)
    show = add_verb(verbs, "show", "print one as it was put", details=DETAILS)
    show.add_argument("name", metavar="NAME")
    set_run(show, run_show)
    remove = add_verb(verbs, "remove", "take one back", details=DETAILS)
    remove.add_argument("name", metavar="NAME")
    set_run(remove, run_remove)
    for parser in (put, listing, show, remove):
        add_client_arguments(parser)


def run_put(arguments: argparse.Namespace) -> int:
    syntax = SYNTAXES[arguments.syntax] if arguments.syntax else by_file_name(arguments.file)
    if syntax is None:
        raise UsageError(
            f"{arguments.file} does not say its syntax by its name; expected --syntax, one of "
            f"{', '.join(SYNTAXES)}"
        )
    text = read_input(arguments.file)
    asked = verbs.TaxonomyPut(name=arguments.name, syntax=syntax.value, text=text)
    answer = trio.run(ask, arguments, asked)
    if arguments.json:
        print_json(answer)
    elif answer["changed"]:
        print(f"{arguments.name}: {_counts(answer)}, version {answer['version']}")
    else:
        print(f"{arguments.name}: nothing to do")
    return EXIT_OK


def run_list(arguments: argparse.Namespace) -> int:
    taxonomies = trio.run(ask, arguments, verbs.TaxonomyList())["taxonomies"]
    if arguments.json:
        for name, version, syntax, size, counts in taxonomies:
            print_json(
                {"name": name, "version": version, "syntax": syntax, "bytes": size, **counts}
            )
    elif taxonomies:
        rows = [
            (name, str(version), syntax, str(size), *map(str, counts.values()))
            for name, version, syntax, size, counts in taxonomies
        ]
        heads = ("NAME", "VERSION", "SYNTAX", "BYTES", "CLASSES", "PROPERTIES", "INSTANCES")
        print(table(heads, rows))
    else:
        print("There is no taxonomy.")
    return EXIT_OK


def run_show(arguments: argparse.Namespace) -> int:
    answer = trio.run(ask, arguments, verbs.TaxonomyShow(name=arguments.name))
    if arguments.json:
        print_json({**answer, "text": answer["text"].decode()})
    else:
        sys.stdout.buffer.write(answer["text"])
    return EXIT_OK


def run_remove(arguments: argparse.Namespace) -> int:
    answer = trio.run(ask, arguments, verbs.TaxonomyRemove(name=arguments.name))
    if arguments.json:
        print_json(answer)
    else:
        print(f"{arguments.name} is removed")
    return EXIT_OK


def _counts(answer: Result) -> str:
    return ", ".join(f"{answer[word]} {word}" for word in ("classes", "properties", "instances"))
